-- id: R02
-- title: Failed authentications
-- question: Is someone guessing a password?
-- controls: PCI DSS 10.2.1.4, 8.3.4; NIST 800-53 AC-7; SOC 2 CC7.2; NIS2 3.2.3(d)
-- param: burst_count integer = 10 | failures of one peer in an hour that make a burst
-- chart: columns x=hour y=failures series=reason | Failed authentications an hour
-- severity: column
SELECT
    team_id,
    date_trunc('hour', local_time(event_time, $tz)) AS hour,
    peer_email,
    peer_ip,
    failure_reason AS reason,
    count(*) AS failures,
    CASE WHEN count(*) >= $burst_count THEN 'medium' END AS severity
FROM connections
WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team)
    AND failure_reason IS NOT NULL
GROUP BY ALL
ORDER BY hour, failures DESC, peer_email, peer_ip, reason, team_id;
-- chart rows
SELECT hour, reason, sum(failures)::BIGINT AS failures FROM report GROUP BY ALL ORDER BY ALL;
