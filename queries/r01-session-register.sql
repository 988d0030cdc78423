-- id: R01
-- title: Session register
-- question: Who reached which computer, when, from where, and for how long?
-- controls: PCI DSS 10.2.1.1, 10.2.2; NIST 800-53 AU-3, AC-17(1); ISO 27001 A.8.15; HIPAA 164.312(b); NIS2 3.2.3(c)
-- chart: columns x=day_local y=sessions series=end_state | Sessions a day, by how they ended
-- note: a session belongs to the period of its first event; the columns without _local hold the same times in UTC
-- note: end_state: closed, open (established or authenticated, no close event), failed (authentication failed and never succeeded), no-auth (only requested), orphan-close (closed, but no event says that it was established or authenticated)
-- note: authentication events exist for fluid tunnels only, so authenticated_local stays empty for the others
-- note: computer_name is the name on the team's list when the session began, and empty before the first reading of that list; computer_host_name is the name that the computer itself sent
-- note: conflicts names the fields in which the events of one connection contradict each other
SELECT s.team_id, s.connection_id,
    local_time(s.requested_at, $tz) AS requested_local,
    local_time(s.established_at, $tz) AS established_local,
    local_time(s.authenticated_at, $tz) AS authenticated_local,
    local_time(s.closed_at, $tz) AS closed_local,
    round(s.duration_ms / 1000.0, 3) AS duration_seconds,
    CASE s.outcome WHEN 'ended' THEN 'closed' WHEN 'auth_failed' THEN 'failed' WHEN 'requested_only' THEN 'no-auth'
        WHEN 'closed_only' THEN 'orphan-close' ELSE s.outcome END AS end_state,
    s.failed_attempts, s.peer_email, s.peer_ip, s.device_id,
    CASE WHEN c.valid_to IS NULL OR s.first_event_at < c.valid_to THEN c.name END AS computer_name,
    s.computer_host_name, s.local_user_name, s.tunnel_id, s.source_type, s.direct_ip, s.conflicts,
    s.requested_at, s.established_at, s.authenticated_at, s.closed_at,
    local_time(s.first_event_at, $tz) AS first_event_local, s.first_event_at
FROM sessions s
ASOF LEFT JOIN inventory_computers c
    ON c.team_id = s.team_id AND c.device_id = s.device_id AND s.first_event_at >= c.valid_from
WHERE s.first_event_at >= $from AND s.first_event_at < $to AND ($team IS NULL OR s.team_id = $team)
ORDER BY s.first_event_at, s.team_id, s.connection_id;

-- chart rows
SELECT date_trunc('day', first_event_local) AS day_local, end_state, count(*) AS sessions
FROM report GROUP BY 1, 2 ORDER BY 1, 2;
