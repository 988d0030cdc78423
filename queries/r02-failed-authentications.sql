-- id: R02
-- title: Failed authentications
-- question: Is someone guessing a password?
-- controls: PCI DSS 10.2.1.4, 8.3.4; NIST 800-53 AC-7; SOC 2 CC7.2; NIS2 3.2.3(d)
-- param: burst_count integer from 1 to 1000000 = 10 | this many failures of one peer within burst_window are a burst
-- param: burst_window duration from 1s to 366d = 30m | the window for counting the failures of a burst
-- param: spray_devices integer from 1 to 1000000 = 5 | one address that tries this many computers within spread_window is a spray
-- param: distributed_ips integer from 1 to 1000000 = 5 | this many addresses that try one computer within spread_window are a distributed attempt
-- param: spread_window duration from 1s to 366d = 24h | the window for counting computers and addresses
-- chart: columns x=time_local y=failures series=reason | Failed authentications by reason
-- severity: column
-- note: authentication events exist for fluid tunnels only: the data holds no failed sign-ins over rdp, vnc or unknown tunnels
-- note: the report counts bursts by peer, and by address where the failure names no peer; it includes failures just before the period
-- note: a computer without an id in its events counts by its host name; of several revisions of an event only the latest counts
-- note: reason is the text that the service or the computer sent
WITH latest AS (
    SELECT team_id, event_type, event_time, nullif(one_spelling(peer_ip), '') AS ip,
        coalesce(nullif(lower(trim(peer_email)), ''), ip) AS peer_or_ip, peer_email, peer_ip, device_id,
        coalesce(device_id, computer_host_name) AS computer, computer_host_name, failure_reason
    FROM connections
    WHERE event_time >= $from - to_seconds(greatest($burst_window, $spread_window)) AND event_time < $to
        -- A later revision can have another type.
        AND (event_type = 'authFailedEvent' OR revision > 1) AND ($team IS NULL OR team_id = $team)
    -- A revision is the same event again. Ids may be unique only within a connection.
    QUALIFY row_number() OVER (PARTITION BY team_id, event_id, connection_id ORDER BY revision DESC, first_seen_at DESC, event_time DESC) = 1
), failure AS (
    SELECT * EXCLUDE (event_type) FROM latest WHERE event_type = 'authFailedEvent'
), kind AS MATERIALIZED (
    -- One kind holds the failures that differ only in time. Kinds and keys are numbers, because numbers sort faster
    -- than texts.
    SELECT *, row_number() OVER () AS kind_id,
        CASE WHEN peer_or_ip IS NOT NULL THEN dense_rank() OVER (ORDER BY team_id, peer_or_ip) END AS peer_key,
        CASE WHEN ip IS NOT NULL THEN dense_rank() OVER (ORDER BY team_id, ip) END AS ip_key,
        CASE WHEN computer IS NOT NULL THEN dense_rank() OVER (ORDER BY team_id, computer) END AS device_key
    FROM (SELECT * EXCLUDE (event_time), list(event_time) AS times FROM failure GROUP BY ALL)
), numbered AS MATERIALIZED (
    SELECT kind_id, peer_key, ip_key, device_key, unnest(times) AS event_time FROM kind
), burst_end AS (
    -- Each failure that reaches the threshold.
    SELECT peer_key, event_time FROM numbered WHERE peer_key IS NOT NULL
    QUALIFY lag(event_time, $burst_count - 1) OVER (PARTITION BY peer_key ORDER BY event_time)
        >= event_time - to_seconds($burst_window)
), spray_end AS (
    -- Counting distinct values is slow, so this leaves out addresses that never tried enough computers.
    SELECT ip_key, event_time FROM numbered
    WHERE ip_key IN (SELECT ip_key FROM kind GROUP BY ip_key HAVING count(DISTINCT device_key) >= $spray_devices)
    QUALIFY count(DISTINCT device_key) OVER (PARTITION BY ip_key ORDER BY event_time
        RANGE BETWEEN to_seconds($spread_window) PRECEDING AND CURRENT ROW) >= $spray_devices
), distributed_end AS (
    SELECT device_key, event_time FROM numbered
    WHERE device_key IN (SELECT device_key FROM kind GROUP BY device_key HAVING count(DISTINCT ip_key) >= $distributed_ips)
    QUALIFY count(DISTINCT ip_key) OVER (PARTITION BY device_key ORDER BY event_time
        RANGE BETWEEN to_seconds($spread_window) PRECEDING AND CURRENT ROW) >= $distributed_ips
), marked AS (
    -- A failure belongs to a pattern if this failure, or a later one within the window, reaches the threshold.
    SELECT n.kind_id, n.event_time,
        b.event_time <= n.event_time + to_seconds($burst_window) AS is_burst,
        s.event_time <= n.event_time + to_seconds($spread_window) AS is_spray,
        d.event_time <= n.event_time + to_seconds($spread_window) AS is_distributed
    FROM numbered n
    ASOF LEFT JOIN burst_end b ON b.peer_key = n.peer_key AND b.event_time >= n.event_time
    ASOF LEFT JOIN spray_end s ON s.ip_key = n.ip_key AND s.event_time >= n.event_time
    ASOF LEFT JOIN distributed_end d ON d.device_key = n.device_key AND d.event_time >= n.event_time
    WHERE n.event_time >= $from
), hourly AS (
    SELECT kind_id, date_trunc('hour', local_time(event_time, $tz)) AS hour_local, count(*) AS failures,
        bool_or(is_burst) AS is_burst, bool_or(is_spray) AS is_spray, bool_or(is_distributed) AS is_distributed,
        min(event_time) AS first_at, max(event_time) AS last_at
    FROM marked GROUP BY ALL
), grouped AS (
    SELECT team_id, hour_local, peer_email, peer_ip, device_id, computer, max(computer_host_name) AS computer_host_name,
        failure_reason AS reason, sum(failures)::BIGINT AS failures, coalesce(bool_or(is_burst), false) AS is_burst,
        coalesce(bool_or(is_spray), false) AS is_spray, coalesce(bool_or(is_distributed), false) AS is_distributed,
        min(first_at) AS first_at, max(last_at) AS last_at
    FROM hourly JOIN kind USING (kind_id)
    GROUP BY team_id, hour_local, peer_email, peer_ip, device_id, computer, failure_reason
)
SELECT team_id, hour_local, peer_email, peer_ip, device_id, computer_host_name, reason, failures,
    nullif(concat_ws(', ', CASE WHEN is_burst THEN 'burst' END, CASE WHEN is_spray THEN 'spray' END,
        CASE WHEN is_distributed THEN 'distributed' END), '') AS pattern,
    CASE WHEN is_burst OR is_spray OR is_distributed THEN 'high' END AS severity, first_at, last_at
FROM grouped
ORDER BY hour_local, team_id, first_at, peer_email, peer_ip, device_id, computer, reason;

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
