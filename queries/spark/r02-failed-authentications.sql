-- R02 Failed authentications: is someone guessing a password?
-- param: burst_count = 10
-- param: burst_window = 1800
-- param: spray_devices = 5
-- param: distributed_ips = 5
-- param: spread_window = 86400
-- Windows are in seconds.
WITH failure AS (
    -- A revision is the same event again, and can have another type. Ids may be unique only within a connection.
    SELECT team_id, concat_ws(' ', event_id, connection_id) AS event_id, event_type, event_time, coalesce(nullif(lower(trim(peer_email)), ''), peer_ip) AS peer_or_ip, peer_email,
        peer_ip, device_id, coalesce(device_id, computer_host_name) AS computer, computer_host_name, failure_reason,
        row_number() OVER (PARTITION BY team_id, event_id, connection_id ORDER BY revision DESC, first_seen_at DESC, event_time DESC) AS nth
    FROM connections
    WHERE event_time >= CAST(:from AS TIMESTAMP_NTZ) - make_dt_interval(0, 0, 0, greatest(:burst_window, :spread_window))
        AND event_time < CAST(:to AS TIMESTAMP_NTZ) AND (event_type = 'authFailedEvent' OR revision > 1)
        AND (:team IS NULL OR team_id = :team)
), kind AS (
    SELECT f.*, kind FROM failure f LATERAL VIEW explode(array('burst', 'spray', 'distributed')) v AS kind
    WHERE nth = 1 AND event_type = 'authFailedEvent'
), tried AS (
    -- One row for each failure and pattern: its owner (peer, address or computer), and the value whose distinct number a threshold limits.
    SELECT *,
        CASE kind WHEN 'burst' THEN peer_or_ip WHEN 'spray' THEN peer_ip ELSE computer END AS owner,
        CASE kind WHEN 'burst' THEN event_id WHEN 'spray' THEN computer ELSE peer_ip END AS thing,
        CASE kind WHEN 'burst' THEN :burst_count WHEN 'spray' THEN :spray_devices ELSE :distributed_ips END AS threshold,
        make_dt_interval(0, 0, 0, CASE kind WHEN 'burst' THEN :burst_window ELSE :spread_window END) AS span
    FROM kind
), stay AS (
    -- A failure without an owner forms its own group.
    SELECT *, coalesce(owner, event_id) AS place,
        lag(event_time) OVER (PARTITION BY kind, team_id, coalesce(owner, event_id), thing ORDER BY event_time) AS before,
        lead(event_time) OVER (PARTITION BY kind, team_id, coalesce(owner, event_id), thing ORDER BY event_time) AS after
    FROM tried
), step AS (
    -- A value counts from the first failure of an unbroken series (0) to the end of the window after the last one (2). At each failure
    -- in between, the query counts the values (1).
    SELECT s.*, turn, CASE turn WHEN 2 THEN event_time + span ELSE event_time END AS at,
        CASE WHEN turn = 0 AND thing IS NOT NULL AND (before IS NULL OR before < event_time - span) THEN 1
            WHEN turn = 2 AND thing IS NOT NULL AND (after IS NULL OR after > event_time + span) THEN -1
            ELSE 0 END AS change
    FROM stay s LATERAL VIEW explode(array(0, 1, 2)) v AS turn
), counted AS (
    SELECT *, sum(change) OVER (PARTITION BY kind, team_id, place ORDER BY at, turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS things
    FROM step WHERE turn = 1 OR change <> 0
), marked AS (
    -- A failure belongs to a pattern if this failure, or a later one within the window, reaches the threshold.
    SELECT *,
        coalesce(min(CASE WHEN owner IS NOT NULL AND things >= threshold THEN event_time END) OVER (
            PARTITION BY kind, team_id, place ORDER BY event_time DESC) <= event_time + span, false) AS is_marked,
        convert_timezone('UTC', :tz, event_time) AS time_local
    FROM counted WHERE turn = 1
), hourly AS (
    SELECT *, CAST(CAST(time_local AS DATE) AS TIMESTAMP_NTZ) + make_dt_interval(0, hour(time_local)) AS hour_local
    FROM marked WHERE event_time >= CAST(:from AS TIMESTAMP_NTZ)
), grouped AS (
    SELECT team_id, hour_local, peer_email, peer_ip, device_id, computer, max(computer_host_name) AS computer_host_name,
        failure_reason AS reason, count_if(kind = 'burst') AS failures, bool_or(is_marked AND kind = 'burst') AS is_burst,
        bool_or(is_marked AND kind = 'spray') AS is_spray, bool_or(is_marked AND kind = 'distributed') AS is_distributed,
        min(event_time) AS first_at, max(event_time) AS last_at
    FROM hourly
    GROUP BY team_id, hour_local, peer_email, peer_ip, device_id, computer, failure_reason
)
SELECT team_id, hour_local, peer_email, peer_ip, device_id, computer_host_name, reason, failures,
    nullif(concat_ws(', ', CASE WHEN is_burst THEN 'burst' END, CASE WHEN is_spray THEN 'spray' END,
        CASE WHEN is_distributed THEN 'distributed' END), '') AS pattern,
    CASE WHEN is_burst OR is_spray OR is_distributed THEN 'high' END AS severity, first_at, last_at
FROM grouped
ORDER BY hour_local, team_id, first_at, peer_email NULLS LAST, peer_ip NULLS LAST, device_id NULLS LAST, computer NULLS LAST,
    reason NULLS LAST
