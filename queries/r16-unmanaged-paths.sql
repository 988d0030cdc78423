-- id: R16
-- title: Unmanaged paths
-- question: Which connections bypassed the managed path: by direct address, by rdp or vnc, or in an unknown way?
-- controls: NIST 800-53 AC-17(2), AC-17(3); SOC 2 CC6.6; PCI DSS 8.4.3
-- param: history_days integer from 0 to 36500 = 90 | days of history before the period; a combination that they do not hold for the computer is new
-- chart: area100 x=day_local y=sessions series=path | Paths of all sessions, as shares
-- severity: column
-- note: the report lists sessions whose source is not cloud or whose tunnel is not fluid, and those that name no source or no tunnel; is_new: nobody reached the computer in that way in the history_days before the period; empty if expired months (R25) cut this history, because then nobody can tell
-- note: authentication events exist for fluid tunnels only, so the data does not show who signed in on the computer through other tunnels
WITH path AS (
    SELECT team_id, first_event_at, peer_email, peer_ip, device_id, computer_host_name,
        coalesce(device_id, computer_host_name) AS computer, source_type, tunnel_id, direct_ip, outcome
    FROM sessions
    WHERE first_event_at >= $from - to_days($history_days::INTEGER) AND first_event_at < $to
        AND ($team IS NULL OR team_id = $team)
        AND (source_type IS DISTINCT FROM 'cloud' OR tunnel_id IS DISTINCT FROM 'fluid')
), known AS (
    SELECT DISTINCT team_id, computer, source_type, tunnel_id FROM path
    WHERE first_event_at < $from AND outcome IN ('ended', 'open', 'closed_only')
), cut AS (
    SELECT DISTINCT team_id FROM coverage
    WHERE stream = 'connections' AND state = 'expired' AND window_end > $from - to_days($history_days::INTEGER)
), judged AS (
    SELECT p.*, CASE WHEN k.team_id IS NOT NULL THEN false WHEN c.team_id IS NULL THEN true END AS is_new
    FROM path p LEFT JOIN known k ON k.team_id = p.team_id AND k.computer IS NOT DISTINCT FROM p.computer
            AND k.source_type IS NOT DISTINCT FROM p.source_type AND k.tunnel_id IS NOT DISTINCT FROM p.tunnel_id
        LEFT JOIN cut c ON c.team_id = p.team_id
    WHERE p.first_event_at >= $from
)
SELECT p.team_id, p.source_type, p.tunnel_id, p.device_id, max(p.computer_host_name) AS computer_host_name, p.peer_email,
    count(*) AS sessions,
    count(*) FILTER (WHERE p.outcome IN ('ended', 'open', 'closed_only')) AS reached,
    string_agg(DISTINCT p.peer_ip, ', ' ORDER BY p.peer_ip) AS peer_ips,
    string_agg(DISTINCT p.direct_ip, ', ' ORDER BY p.direct_ip) AS direct_ips,
    local_time(min(p.first_event_at), $tz) AS first_local, local_time(max(p.first_event_at), $tz) AS last_local,
    bool_and(p.is_new) AS is_new,
    CASE WHEN bool_and(p.is_new) THEN 'medium'
        WHEN p.source_type IS DISTINCT FROM 'cloud' OR coalesce(p.tunnel_id, 'unknown') = 'unknown' THEN 'low' ELSE 'info' END AS severity,
    min(p.first_event_at) AS first_at
FROM judged p
GROUP BY p.team_id, p.source_type, p.tunnel_id, p.device_id, p.computer, p.peer_email
ORDER BY is_new DESC NULLS LAST, p.team_id, first_at, p.device_id, p.computer, p.peer_email, p.source_type, p.tunnel_id;

-- chart rows
SELECT date_trunc('day', local_time(first_event_at, $tz)) AS day_local,
    concat_ws(' / ', coalesce(source_type, 'not said'), coalesce(tunnel_id, 'not said')) AS path, count(*) AS sessions
FROM sessions
WHERE first_event_at >= $from AND first_event_at < $to AND ($team IS NULL OR team_id = $team)
GROUP BY 1, 2 ORDER BY 1, 2;
