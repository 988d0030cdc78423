-- R03 Failure, then success: did somebody guess a password?
-- param: min_failures = 3
-- param: window = 900
-- The window is in seconds.
WITH revision AS (
    -- Event ids may be unique only within a connection.
    SELECT team_id, concat_ws(' ', event_id, connection_id) AS event_id, event_type, event_time, event_time_ns, event_type = 'authSucceededEvent' AS is_success, connection_id,
        device_id, coalesce(device_id, computer_host_name) AS computer, computer_host_name,
        nullif(lower(trim(peer_email)), '') AS peer, peer_email, peer_ip, failure_reason,
        row_number() OVER (PARTITION BY team_id, event_id, connection_id ORDER BY revision DESC, first_seen_at DESC, event_time DESC) AS nth
    FROM connections
    WHERE event_time >= CAST(:from AS TIMESTAMP_NTZ) - make_dt_interval(0, 0, 0, :window)
        AND event_time < CAST(:to AS TIMESTAMP_NTZ)
        AND (event_type IN ('authFailedEvent', 'authSucceededEvent') OR revision > 1)
        AND (:team IS NULL OR team_id = :team)
), authentication AS (
    -- A revision is the same event again, and can have another type.
    SELECT * FROM revision
    WHERE nth = 1 AND event_type IN ('authFailedEvent', 'authSucceededEvent') AND computer IS NOT NULL
), next AS (
    -- The next success on the same computer from the same address, and the next success for the same peer. A row without an address or a
    -- peer is alone in its partition.
    SELECT *,
        last_value(CASE WHEN is_success THEN event_id END) IGNORE NULLS OVER (
            PARTITION BY team_id, computer, coalesce(peer_ip, event_id) ORDER BY event_time DESC, is_success DESC, event_id DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS by_address,
        last_value(CASE WHEN is_success THEN event_id END) IGNORE NULLS OVER (
            PARTITION BY team_id, computer, coalesce(peer, event_id) ORDER BY event_time DESC, is_success DESC, event_id DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS by_peer
    FROM authentication
), followed AS (
    -- A failure that matches a success by peer and by address counts once.
    SELECT team_id, event_id, event_time, event_time_ns, failure_reason, by_address AS success FROM next
    WHERE NOT is_success AND by_address IS NOT NULL
    UNION ALL
    SELECT team_id, event_id, event_time, event_time_ns, failure_reason, by_peer FROM next
    WHERE NOT is_success AND by_peer IS NOT NULL AND (by_address IS NULL OR by_peer <> by_address)
)
SELECT s.team_id, s.peer_email, s.peer_ip, s.device_id, max(s.computer_host_name) AS computer_host_name,
    count(*) AS failures,
    convert_timezone('UTC', :tz, min(f.event_time)) AS first_failure_local,
    convert_timezone('UTC', :tz, s.event_time) AS success_local,
    round((s.event_time_ns DIV 1000000 - min(f.event_time_ns) DIV 1000000) / 1000.0D, 3) AS seconds,
    CASE WHEN count(f.failure_reason) > 0 THEN array_join(sort_array(collect_set(f.failure_reason)), ', ') END AS reasons,
    s.connection_id, min(f.event_time) AS first_failure_at, s.event_time AS success_at
FROM authentication s JOIN followed f ON f.team_id = s.team_id AND f.success = s.event_id
WHERE s.is_success AND s.event_time >= CAST(:from AS TIMESTAMP_NTZ)
    AND f.event_time >= s.event_time - make_dt_interval(0, 0, 0, :window)
GROUP BY s.team_id, s.event_id, s.peer_email, s.peer_ip, s.device_id, s.connection_id, s.event_time, s.event_time_ns
HAVING count(*) >= :min_failures
ORDER BY s.event_time, s.team_id, s.event_id
