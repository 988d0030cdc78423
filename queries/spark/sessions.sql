-- Events to sessions: makes the rows of `sessions` from `connections` alone.
-- Only the latest revision of an event counts. Events are ordered by time, then by event id.
WITH ranked AS (
    SELECT team_id, connection_id, event_id, event_type, event_time, event_time_ns, device_id, computer_host_name, tunnel_id,
        source_type, peer_email, peer_ip, direct_ip, local_user_name, failure_reason, row_number() OVER (
        PARTITION BY team_id, connection_id, event_id
        ORDER BY revision DESC, first_seen_at DESC, event_time_ns DESC, event_type DESC,
            device_id DESC NULLS LAST, computer_host_name DESC NULLS LAST, tunnel_id DESC NULLS LAST,
            source_type DESC NULLS LAST, peer_email DESC NULLS LAST, peer_ip DESC NULLS LAST, direct_ip DESC NULLS LAST,
            local_user_name DESC NULLS LAST, failure_reason DESC NULLS LAST) AS nth
    FROM connections
    WHERE connection_id <> ''
), event AS (
    SELECT *, row_number() OVER (PARTITION BY team_id, connection_id ORDER BY event_time_ns, event_id) AS place
    FROM ranked WHERE nth = 1
), gathered AS (
    SELECT team_id, connection_id,
        min(event_time) FILTER (WHERE event_type = 'incomingConnectionRequest') AS requested_at,
        min(event_time) FILTER (WHERE event_type = 'incomingConnectionEvent') AS established_at,
        min(event_time) FILTER (WHERE event_type = 'authSucceededEvent') AS authenticated_at,
        max(event_time) FILTER (WHERE event_type = 'connectionClosedEvent') AS closed_at,
        min(event_time) AS first_event_at,
        max(event_time) AS last_event_at,
        coalesce(
            min(event_time_ns) FILTER (WHERE event_type = 'incomingConnectionEvent'),
            min(event_time_ns) FILTER (WHERE event_type = 'authSucceededEvent')) AS begun_ns,
        max(event_time_ns) FILTER (WHERE event_type = 'connectionClosedEvent') AS closed_ns,
        count_if(event_type = 'authFailedEvent') AS failed_attempts,
        min_by(device_id, place) FILTER (WHERE device_id IS NOT NULL) AS device_id,
        min_by(computer_host_name, place) FILTER (WHERE computer_host_name IS NOT NULL) AS computer_host_name,
        min_by(tunnel_id, place) FILTER (WHERE tunnel_id IS NOT NULL) AS tunnel_id,
        min_by(source_type, place) FILTER (WHERE source_type IS NOT NULL) AS source_type,
        min_by(peer_email, place) FILTER (WHERE peer_email IS NOT NULL) AS peer_email,
        min_by(peer_ip, place) FILTER (WHERE peer_ip IS NOT NULL) AS peer_ip,
        min_by(direct_ip, place) FILTER (WHERE direct_ip IS NOT NULL) AS direct_ip,
        min_by(local_user_name, place) FILTER (WHERE local_user_name IS NOT NULL) AS local_user_name,
        count(*) AS event_count,
        coalesce(min(device_id) <> max(device_id), false) OR coalesce(min(computer_host_name) <> max(computer_host_name), false)
            OR coalesce(min(tunnel_id) <> max(tunnel_id), false) OR coalesce(min(source_type) <> max(source_type), false)
            OR coalesce(min(peer_email) <> max(peer_email), false) OR coalesce(min(peer_ip) <> max(peer_ip), false)
            OR coalesce(min(direct_ip) <> max(direct_ip), false)
            OR coalesce(min(local_user_name) <> max(local_user_name), false) AS disagrees
    FROM event
    GROUP BY team_id, connection_id
), listed AS (
    -- Lists of values are expensive, and only sessions with failures or with contradicting events need one.
    SELECT e.team_id, e.connection_id,
        collect_set(e.failure_reason) FILTER (WHERE e.event_type = 'authFailedEvent') AS reasons,
        collect_set(e.computer_host_name) AS host_names, collect_set(e.device_id) AS devices,
        collect_set(e.direct_ip) AS direct_ips, collect_set(e.local_user_name) AS user_names,
        collect_set(e.peer_email) AS emails, collect_set(e.peer_ip) AS peer_ips, collect_set(e.source_type) AS source_types,
        collect_set(e.tunnel_id) AS tunnels
    FROM event e
    JOIN gathered g ON g.team_id = e.team_id AND g.connection_id = e.connection_id
    WHERE g.failed_attempts > 0 OR g.disagrees
    GROUP BY e.team_id, e.connection_id
)
SELECT g.team_id, g.connection_id, requested_at, established_at, authenticated_at, closed_at, first_event_at, last_event_at,
    CASE WHEN begun_ns <= closed_ns THEN (closed_ns - begun_ns) DIV 1000000 END AS duration_ms,
    CASE WHEN failed_attempts > 0 AND authenticated_at IS NULL THEN 'auth_failed'
        WHEN begun_ns IS NOT NULL AND closed_ns IS NOT NULL THEN 'ended'
        WHEN begun_ns IS NOT NULL THEN 'open'
        WHEN closed_ns IS NOT NULL THEN 'closed_only'
        ELSE 'requested_only' END AS outcome,
    failed_attempts,
    CASE WHEN size(reasons) > 0 THEN to_json(sort_array(reasons)) END AS failure_reasons,
    device_id, computer_host_name, tunnel_id, source_type, peer_email, peer_ip, direct_ip, local_user_name, event_count,
    -- All values of each detail in which events contradict each other.
    nullif(to_json(named_struct(
        'computer_host_name', CASE WHEN size(host_names) > 1 THEN sort_array(host_names) END,
        'device_id', CASE WHEN size(devices) > 1 THEN sort_array(devices) END,
        'direct_ip', CASE WHEN size(direct_ips) > 1 THEN sort_array(direct_ips) END,
        'local_user_name', CASE WHEN size(user_names) > 1 THEN sort_array(user_names) END,
        'peer_email', CASE WHEN size(emails) > 1 THEN sort_array(emails) END,
        'peer_ip', CASE WHEN size(peer_ips) > 1 THEN sort_array(peer_ips) END,
        'source_type', CASE WHEN size(source_types) > 1 THEN sort_array(source_types) END,
        'tunnel_id', CASE WHEN size(tunnels) > 1 THEN sort_array(tunnels) END)), '{}') AS conflicts
FROM gathered g
LEFT JOIN listed l ON l.team_id = g.team_id AND l.connection_id = g.connection_id
ORDER BY first_event_at, g.team_id, g.connection_id
