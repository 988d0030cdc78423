-- R00 Activity overview: who used which computer on which day, how, and for how long?
WITH started AS (
    SELECT team_id,
        CAST(CAST(convert_timezone('UTC', :tz, first_event_at) AS DATE) AS TIMESTAMP_NTZ) AS day_local, device_id,
        computer_host_name, coalesce(device_id, computer_host_name) AS computer, peer_email, concat_ws(' / ', source_type, tunnel_id) AS connection_type, peer_ip, duration_ms,
        outcome
    FROM sessions
    WHERE first_event_at >= CAST(:from AS TIMESTAMP_NTZ) AND first_event_at < CAST(:to AS TIMESTAMP_NTZ)
        AND (:team IS NULL OR team_id = :team)
)
SELECT team_id, day_local, device_id, max(computer_host_name) AS computer_host_name, peer_email, connection_type, peer_ip,
    count(*) AS sessions,
    count_if(outcome = 'auth_failed') AS failed_sessions,
    round(sum(duration_ms) / 60000.0D, 1) AS minutes
FROM started
GROUP BY team_id, day_local, device_id, computer, peer_email, connection_type, peer_ip
ORDER BY team_id, day_local, device_id NULLS LAST, computer NULLS LAST, peer_email NULLS LAST, connection_type NULLS LAST, peer_ip NULLS LAST
