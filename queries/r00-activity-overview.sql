-- id: R00
-- title: Activity overview
-- question: Who used which computer on which day, how, and for how long?
-- controls: PCI DSS 10.2.2; NIST 800-53 AU-3; ISO 27001 A.8.15
-- chart: columns x=day_local y=sessions series=computer_host_name | Sessions a day, by computer
-- note: a session counts on the local day on which its first event happened
-- note: minutes sums the sessions whose beginning and end are known; an open session adds nothing
-- note: a computer without an id in its events counts by its host name
WITH started AS (
    SELECT team_id, date_trunc('day', local_time(first_event_at, $tz)) AS day_local, device_id, computer_host_name,
        coalesce(device_id, computer_host_name) AS computer,
        peer_email, concat_ws(' / ', source_type, tunnel_id) AS connection_type, peer_ip, duration_ms, outcome
    FROM sessions
    WHERE first_event_at >= $from AND first_event_at < $to AND ($team IS NULL OR team_id = $team)
)
SELECT team_id, day_local, device_id, max(computer_host_name) AS computer_host_name, peer_email, connection_type, peer_ip,
    count(*) AS sessions,
    count(*) FILTER (WHERE outcome = 'auth_failed') AS failed_sessions,
    round(sum(duration_ms) / 60000.0, 1) AS minutes
FROM started
GROUP BY team_id, day_local, device_id, computer, peer_email, connection_type, peer_ip
ORDER BY team_id, day_local, device_id, computer, peer_email, connection_type, peer_ip;

-- chart rows
WITH busiest AS (
    SELECT coalesce(computer_host_name, device_id, 'not named') AS name, sum(sessions) AS sessions
    FROM report GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 7
)
SELECT day_local,
    CASE WHEN coalesce(computer_host_name, device_id, 'not named') IN (SELECT name FROM busiest)
        THEN coalesce(computer_host_name, device_id, 'not named') ELSE 'all others' END AS computer_host_name,
    sum(sessions)::BIGINT AS sessions
FROM report GROUP BY 1, 2 ORDER BY 1, 2;
