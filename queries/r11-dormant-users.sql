-- id: R11
-- title: Dormant users
-- question: Which accounts has nobody used for a long time, and which has nobody ever used?
-- controls: PCI DSS 8.2.6; CIS 5.3; NIST 800-53 AC-2(3); NIS2 11.5.4
-- param: dormant_days integer from 0 to 36500 = 90 | days without use after which PCI DSS requires that an account is removed or disabled
-- param: early_days integer from 0 to 36500 = 45 | days without use after which CIS requires it
-- chart: histogram x=days_unused y=users | Days without use, of all users on the roster
-- severity: column
-- note: the roster at --as-of (by default the period's end); last use is the later of the service's own value and the last archived session under an address that the person had on the roster at that time
-- note: never used: neither source shows any use; the archive has no sessions from before its beginning (R23); known_since_local is the first reading that the archive still holds, so expired months (R25) shorten days_known
-- note: unknown: neither source shows a recent use, and the service sent the team a last use that Annals cannot read (the finding unknown_field in R23 counts such values)
-- note: the report lists a person with role user and disabled remote access, but not as a detection
-- note: 'not yet read' in state: Annals had not read the team's roster at that moment, so nothing is known
WITH person AS (
    SELECT * FROM inventory_users
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), known AS (
    SELECT team_id, user_id, min(valid_from) AS known_at FROM inventory_users
    WHERE $team IS NULL OR team_id = $team GROUP BY ALL
), used AS (
    SELECT a.team_id, a.user_id, max(s.first_event_at) AS last_at
    FROM sessions s JOIN inventory_addresses a ON a.team_id = s.team_id AND a.email = lower(trim(s.peer_email))
        AND s.first_event_at >= coalesce(a.held_from, s.first_event_at) AND (a.held_to IS NULL OR s.first_event_at < a.held_to)
    WHERE a.valid_from <= $as_of AND s.first_event_at < $as_of AND s.outcome IN ('ended', 'open', 'closed_only') AND ($team IS NULL OR s.team_id = $team)
    GROUP BY ALL
), unreadable AS (
    SELECT DISTINCT team_id FROM findings WHERE kind = 'unknown_field' AND starts_with(subject, 'users.lastUsedAt: ')
), idle AS (
    SELECT team_id, user_id, p.email, p.role, p.remote_access, p.last_used_at, s.last_at AS last_session_at, k.known_at,
        date_sub('day', greatest(p.last_used_at, s.last_at), least($as_of, $now)) AS days_unused,
        date_sub('day', k.known_at, least($as_of, $now)) AS days_known
    FROM person p JOIN known k USING (team_id, user_id)
        LEFT JOIN used s USING (team_id, user_id)
), state AS (
    SELECT *, CASE WHEN last_used_at IS NULL AND coalesce(days_unused > $early_days, true) AND team_id IN (FROM unreadable) THEN 'unknown'
        WHEN days_unused IS NULL THEN 'never used' WHEN days_unused > $dormant_days THEN 'dormant'
        WHEN days_unused > $early_days THEN 'soon dormant' END AS state
    FROM idle
)
SELECT team_id, user_id, email, role, remote_access, state, days_unused, days_known,
    local_time(last_used_at, $tz) AS last_used_local, local_time(last_session_at, $tz) AS last_session_local,
    local_time(known_at, $tz) AS known_since_local,
    CASE WHEN role IS NOT DISTINCT FROM 'user' AND remote_access IS NOT DISTINCT FROM 'disabled' THEN NULL
        WHEN state = 'dormant' OR (state = 'never used' AND days_known > $dormant_days) THEN 'medium'
        WHEN state IN ('soon dormant', 'unknown') OR (state = 'never used' AND days_known > $early_days) THEN 'low' END AS severity,
    last_used_at, last_session_at
FROM state WHERE state IS NOT NULL
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, 'not yet read', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads)
WHERE ($team IS NULL OR team_id = $team) AND team_id NOT IN (
    SELECT team_id FROM inventory_reads WHERE part = 'users' AND visible AND read_at <= $as_of)
ORDER BY days_unused DESC NULLS FIRST, team_id, email, user_id;

-- chart rows
WITH used AS (
    SELECT a.team_id, a.user_id, max(s.first_event_at) AS last_at
    FROM sessions s JOIN inventory_addresses a ON a.team_id = s.team_id AND a.email = lower(trim(s.peer_email))
        AND s.first_event_at >= coalesce(a.held_from, s.first_event_at) AND (a.held_to IS NULL OR s.first_event_at < a.held_to)
    WHERE a.valid_from <= $as_of AND s.first_event_at < $as_of AND s.outcome IN ('ended', 'open', 'closed_only') AND ($team IS NULL OR s.team_id = $team)
    GROUP BY ALL
)
SELECT date_sub('day', greatest(u.last_used_at, s.last_at), least($as_of, $now)) AS days_unused, count(*) AS users
FROM inventory_users u LEFT JOIN used s ON s.team_id = u.team_id AND s.user_id = u.user_id
WHERE u.valid_from <= $as_of AND (u.valid_to IS NULL OR $as_of < u.valid_to) AND ($team IS NULL OR u.team_id = $team)
    AND coalesce(u.last_used_at, s.last_at) IS NOT NULL
GROUP BY 1 ORDER BY 1;
