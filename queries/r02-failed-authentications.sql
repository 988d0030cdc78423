-- id: R02
-- title: Failed authentications
-- question: Is someone guessing a password?
-- controls: PCI DSS 10.2.1.4, 8.3.4; NIST 800-53 AC-7; SOC 2 CC7.2; NIS2 3.2.3(d)
-- param: burst_count integer from 1 to 1000000 = 10 | failures of one peer within burst_window that make a burst
-- param: burst_window duration from 1s to 366d = 30m | the window in which they are counted
-- param: spray_devices integer from 1 to 1000000 = 5 | computers tried from one address within spread_window that make a spray
-- param: distributed_ips integer from 1 to 1000000 = 5 | addresses that try one computer within spread_window and make a distributed attempt
-- param: spread_window duration from 1s to 366d = 24h | the window in which computers and addresses are counted
-- chart: columns x=time_local y=failures series=reason | Failed authentications by reason
-- severity: column
-- note: authentication events exist for fluid tunnels only: failed sign-ins over rdp, vnc or unknown tunnels are not in the data
-- note: a burst is counted per peer, and per address where the failure names no peer; failures just before the period are counted along
-- note: reason is the service's or the computer's own text
WITH failure AS (
    SELECT team_id, event_id, event_time, lower(trim(peer_email)) AS peer, peer_email, peer_ip, device_id,
        computer_host_name, failure_reason
    FROM connections
    WHERE event_time >= $from - to_seconds(greatest($burst_window, $spread_window)) AND event_time < $to
        AND event_type = 'authFailedEvent' AND ($team IS NULL OR team_id = $team)
), reached AS (
    SELECT *,
        CASE WHEN coalesce(peer, peer_ip) IS NOT NULL THEN count(*) OVER (
            PARTITION BY team_id, coalesce(peer, peer_ip) ORDER BY event_time
            RANGE BETWEEN to_seconds($burst_window) PRECEDING AND CURRENT ROW) END AS in_burst_window,
        CASE WHEN peer_ip IS NOT NULL THEN count(DISTINCT device_id) OVER (
            PARTITION BY team_id, peer_ip ORDER BY event_time
            RANGE BETWEEN to_seconds($spread_window) PRECEDING AND CURRENT ROW) END AS devices_of_ip,
        CASE WHEN device_id IS NOT NULL THEN count(DISTINCT peer_ip) OVER (
            PARTITION BY team_id, device_id ORDER BY event_time
            RANGE BETWEEN to_seconds($spread_window) PRECEDING AND CURRENT ROW) END AS ips_of_device
    FROM failure
), marked AS (
    -- A failure belongs to a pattern when the threshold is reached at it or within the window after it.
    SELECT *,
        max(in_burst_window) OVER (PARTITION BY team_id, coalesce(peer, peer_ip) ORDER BY event_time
            RANGE BETWEEN CURRENT ROW AND to_seconds($burst_window) FOLLOWING) >= $burst_count AS is_burst,
        max(devices_of_ip) OVER (PARTITION BY team_id, peer_ip ORDER BY event_time
            RANGE BETWEEN CURRENT ROW AND to_seconds($spread_window) FOLLOWING) >= $spray_devices AS is_spray,
        max(ips_of_device) OVER (PARTITION BY team_id, device_id ORDER BY event_time
            RANGE BETWEEN CURRENT ROW AND to_seconds($spread_window) FOLLOWING) >= $distributed_ips AS is_distributed
    FROM reached
), grouped AS (
    SELECT team_id, date_trunc('hour', local_time(event_time, $tz)) AS hour_local, peer_email, peer_ip, device_id,
        max(computer_host_name) AS computer_host_name, failure_reason AS reason, count(*) AS failures,
        coalesce(bool_or(is_burst), false) AS is_burst, coalesce(bool_or(is_spray), false) AS is_spray,
        coalesce(bool_or(is_distributed), false) AS is_distributed,
        min(event_time) AS first_at, max(event_time) AS last_at
    FROM marked WHERE event_time >= $from
    GROUP BY team_id, hour_local, peer_email, peer_ip, device_id, failure_reason
)
SELECT team_id, hour_local, peer_email, peer_ip, device_id, computer_host_name, reason, failures,
    nullif(concat_ws(', ', CASE WHEN is_burst THEN 'burst' END, CASE WHEN is_spray THEN 'spray' END,
        CASE WHEN is_distributed THEN 'distributed' END), '') AS pattern,
    CASE WHEN is_burst OR is_spray OR is_distributed THEN 'high' END AS severity, first_at, last_at
FROM grouped
ORDER BY hour_local, team_id, first_at, peer_email, peer_ip, device_id, reason;

-- chart rows
WITH most AS (
    SELECT coalesce(reason, 'no reason given') AS reason, sum(failures) AS failures
    FROM report GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 7
), span AS (SELECT max(hour_local) - min(hour_local) > INTERVAL 7 DAYS AS is_long FROM report)
SELECT date_trunc(CASE WHEN (SELECT is_long FROM span) THEN 'day' ELSE 'hour' END, hour_local) AS time_local,
    CASE WHEN coalesce(reason, 'no reason given') IN (SELECT reason FROM most)
        THEN coalesce(reason, 'no reason given') ELSE 'all others' END AS reason,
    sum(failures)::BIGINT AS failures
FROM report GROUP BY 1, 2 ORDER BY 1, 2;
