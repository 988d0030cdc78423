-- Events to sessions: the rows of `sessions`, made of `connections` alone.
-- Of an event that changed upstream the latest revision counts, once. Events are ordered by time, then by event id.
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
    SELECT *, struct(event_time_ns, event_id) AS place FROM ranked WHERE nth = 1
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
        collect_set(failure_reason) FILTER (WHERE event_type = 'authFailedEvent') AS reasons,
        min_by(device_id, place) FILTER (WHERE device_id IS NOT NULL) AS device_id,
        min_by(computer_host_name, place) FILTER (WHERE computer_host_name IS NOT NULL) AS computer_host_name,
        min_by(tunnel_id, place) FILTER (WHERE tunnel_id IS NOT NULL) AS tunnel_id,
        min_by(source_type, place) FILTER (WHERE source_type IS NOT NULL) AS source_type,
        min_by(peer_email, place) FILTER (WHERE peer_email IS NOT NULL) AS peer_email,
        min_by(peer_ip, place) FILTER (WHERE peer_ip IS NOT NULL) AS peer_ip,
        min_by(direct_ip, place) FILTER (WHERE direct_ip IS NOT NULL) AS direct_ip,
        min_by(local_user_name, place) FILTER (WHERE local_user_name IS NOT NULL) AS local_user_name,
        count(*) AS event_count,
        -- Where events disagree on a detail, all its values.
        CASE WHEN min(computer_host_name) <> max(computer_host_name) THEN collect_set(computer_host_name) END AS host_names,
        CASE WHEN min(device_id) <> max(device_id) THEN collect_set(device_id) END AS devices,
        CASE WHEN min(direct_ip) <> max(direct_ip) THEN collect_set(direct_ip) END AS direct_ips,
        CASE WHEN min(local_user_name) <> max(local_user_name) THEN collect_set(local_user_name) END AS user_names,
        CASE WHEN min(peer_email) <> max(peer_email) THEN collect_set(peer_email) END AS emails,
        CASE WHEN min(peer_ip) <> max(peer_ip) THEN collect_set(peer_ip) END AS peer_ips,
        CASE WHEN min(source_type) <> max(source_type) THEN collect_set(source_type) END AS source_types,
        CASE WHEN min(tunnel_id) <> max(tunnel_id) THEN collect_set(tunnel_id) END AS tunnels
    FROM event
    GROUP BY team_id, connection_id
)
SELECT team_id, connection_id, requested_at, established_at, authenticated_at, closed_at, first_event_at, last_event_at,
    CASE WHEN begun_ns <= closed_ns THEN (closed_ns - begun_ns) DIV 1000000 END AS duration_ms,
    CASE WHEN failed_attempts > 0 AND authenticated_at IS NULL THEN 'auth_failed'
        WHEN begun_ns IS NOT NULL AND closed_ns IS NOT NULL THEN 'ended'
        WHEN begun_ns IS NOT NULL THEN 'open'
        WHEN closed_ns IS NOT NULL THEN 'closed_only'
        ELSE 'requested_only' END AS outcome,
    failed_attempts,
    CASE WHEN size(reasons) > 0 THEN to_json(sort_array(reasons)) END AS failure_reasons,
    device_id, computer_host_name, tunnel_id, source_type, peer_email, peer_ip, direct_ip, local_user_name, event_count,
    nullif(to_json(named_struct(
        'computer_host_name', sort_array(host_names), 'device_id', sort_array(devices), 'direct_ip', sort_array(direct_ips),
        'local_user_name', sort_array(user_names), 'peer_email', sort_array(emails), 'peer_ip', sort_array(peer_ips),
        'source_type', sort_array(source_types), 'tunnel_id', sort_array(tunnels))), '{}') AS conflicts
FROM gathered
ORDER BY first_event_at, team_id, connection_id
