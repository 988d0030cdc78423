-- R01 Session register: who reached which computer, when, from where, and for how long?
WITH computer AS (
    -- A version of a computer is valid until the next change of this computer.
    SELECT team_id, device_id, name, present, seen_at AS valid_from,
        lead(seen_at) OVER (PARTITION BY team_id, device_id ORDER BY seen_at) AS valid_to
    FROM inventory_computers WHERE NOT repeats
)
SELECT s.team_id, s.connection_id,
    convert_timezone('UTC', :tz, s.requested_at) AS requested_local,
    convert_timezone('UTC', :tz, s.established_at) AS established_local,
    convert_timezone('UTC', :tz, s.authenticated_at) AS authenticated_local,
    convert_timezone('UTC', :tz, s.closed_at) AS closed_local,
    round(s.duration_ms / 1000.0D, 3) AS duration_seconds,
    CASE s.outcome WHEN 'ended' THEN 'closed' WHEN 'auth_failed' THEN 'failed' WHEN 'requested_only' THEN 'no-auth'
        WHEN 'closed_only' THEN 'orphan-close' ELSE s.outcome END AS end_state,
    s.failed_attempts, s.peer_email, s.peer_ip, s.device_id, c.name AS computer_name,
    s.computer_host_name, s.local_user_name, s.tunnel_id, s.source_type, s.direct_ip, s.conflicts,
    s.requested_at, s.established_at, s.authenticated_at, s.closed_at,
    convert_timezone('UTC', :tz, s.first_event_at) AS first_event_local, s.first_event_at
FROM sessions s
LEFT JOIN computer c
    ON c.team_id = s.team_id AND c.device_id = s.device_id AND c.present AND s.first_event_at >= c.valid_from
        AND (c.valid_to IS NULL OR s.first_event_at < c.valid_to)
WHERE s.first_event_at >= CAST(:from AS TIMESTAMP_NTZ) AND s.first_event_at < CAST(:to AS TIMESTAMP_NTZ)
    AND (:team IS NULL OR s.team_id = :team)
ORDER BY s.first_event_at, s.team_id, s.connection_id
