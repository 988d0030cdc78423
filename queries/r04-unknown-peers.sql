-- id: R04
-- title: Unknown peers
-- question: Did someone connect who is not on the roster?
-- controls: PCI DSS 8.2.1; SOC 2 CC6.2; NIST 800-53 AC-2; ISO 27001 A.5.16
-- param: reached_only boolean = false | leave out sessions that were only requested or failed to authenticate
-- chart: bars x=peer y=sessions series=standing | Sessions of peers who are not on the roster
-- severity: column
-- note: the report uses the roster at the session's beginning, and knows a person by email address in upper or lower case
-- note: standing: not on the roster; left before (on the roster earlier); on the next reading (joined between two readings of the roster: no detection); no email; roster not yet read (nothing is known: no detection)
-- note: a peer without an email may be a known person whose connection names no email
WITH begun AS (
    SELECT s.team_id, s.connection_id, s.first_event_at, s.outcome, s.peer_email, s.peer_ip, s.device_id,
        s.computer_host_name, coalesce(s.device_id, s.computer_host_name) AS computer, nullif(lower(trim(s.peer_email)), '') AS peer
    FROM sessions s
    WHERE s.first_event_at >= $from AND s.first_event_at < $to AND ($team IS NULL OR s.team_id = $team)
        AND (NOT $reached_only OR s.outcome IN ('ended', 'open', 'closed_only'))
), reading AS (
    SELECT team_id, read_at FROM inventory_reads WHERE part = 'users' AND visible
), first_reading AS (SELECT team_id, min(read_at) AS read_at FROM reading GROUP BY team_id),
person AS (
    SELECT team_id, lower(trim(email)) AS peer, valid_from, valid_to FROM inventory_users WHERE email IS NOT NULL
), unknown AS (
    SELECT b.* FROM begun b
    WHERE b.peer IS NULL OR NOT EXISTS (
        SELECT 1 FROM person p WHERE p.team_id = b.team_id AND p.peer = b.peer
            AND p.valid_from <= b.first_event_at AND (p.valid_to IS NULL OR b.first_event_at < p.valid_to))
), next_reading AS (
    SELECT u.team_id, u.connection_id, min(r.read_at) AS read_at
    FROM unknown u JOIN reading r ON r.team_id = u.team_id AND r.read_at > u.first_event_at GROUP BY ALL
), standing AS (
    SELECT u.*,
        CASE WHEN u.peer IS NULL THEN 'no email'
            WHEN f.read_at IS NULL OR u.first_event_at < f.read_at THEN 'roster not yet read'
            WHEN EXISTS (SELECT 1 FROM person p WHERE p.team_id = u.team_id AND p.peer = u.peer
                AND p.valid_to <= u.first_event_at) THEN 'left before'
            WHEN EXISTS (SELECT 1 FROM person p WHERE p.team_id = u.team_id AND p.peer = u.peer
                AND p.valid_from = n.read_at) THEN 'on the next reading'
            ELSE 'not on the roster' END AS standing
    FROM unknown u LEFT JOIN first_reading f ON f.team_id = u.team_id
        LEFT JOIN next_reading n ON n.team_id = u.team_id AND n.connection_id = u.connection_id
)
SELECT team_id, peer_email, peer_ip, device_id, max(computer_host_name) AS computer_host_name, standing,
    count(*) AS sessions,
    count(*) FILTER (WHERE outcome IN ('ended', 'open', 'closed_only')) AS reached,
    local_time(min(first_event_at), $tz) AS first_local, local_time(max(first_event_at), $tz) AS last_local,
    CASE WHEN standing IN ('roster not yet read', 'on the next reading') THEN NULL ELSE 'medium' END AS severity,
    min(first_event_at) AS first_at, max(first_event_at) AS last_at
FROM standing
GROUP BY team_id, peer_email, peer_ip, device_id, computer, standing
ORDER BY severity IS NULL, team_id, first_at, peer_email, peer_ip, device_id, computer, standing;

-- chart rows
SELECT coalesce(peer_email, 'no email, from ' || coalesce(peer_ip, 'nowhere')) AS peer, standing,
    sum(sessions)::BIGINT AS sessions
FROM report WHERE severity IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2;
