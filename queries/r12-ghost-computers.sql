-- id: R12
-- title: Ghost computers
-- question: Which computers with grants were never online, or not for a long time, and which computers have no grants?
-- controls: ISO 27001 A.5.15, A.5.18; SOC 2 CC6.1
-- param: offline_days integer from 0 to 36500 = 90 | days offline after which the report lists a computer with grants
-- chart: dots x=days_offline y=people series=state | Computers by days offline and people who may reach them
-- severity: column
-- note: the list of computers at --as-of (by default the period's end)
-- note: the service updates last online only when a computer connects or reconnects, so its value is old for a computer that stays connected: the last archived session counts too
-- note: for a computer without any last online time, days_offline begins at the first reading that showed it and that the archive still holds
-- note: people and direct_users count grants as the service shows them, also to somebody who has left the roster: R07 lists such a grant without an email
-- note: state: 'grants not read': Annals had not read who may reach the team's computers, or its token may not read that; 'not yet read': it had not read the team's computers; unknown: no last online time is known, and the service sent the team one that Annals cannot read (the finding unknown_field in R23 counts such values)
WITH computer AS (
    SELECT * FROM inventory_computers
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), known AS (
    SELECT team_id, device_id, min(valid_from) AS known_at FROM inventory_computers
    WHERE $team IS NULL OR team_id = $team GROUP BY ALL
), granted AS (
    SELECT * FROM inventory_grants
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), member AS (
    SELECT * FROM inventory_memberships
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), group_computer AS (
    SELECT team_id, grantee_id AS group_id, device_id FROM granted WHERE grantee_kind = 'group'
    UNION SELECT team_id, group_id, member_id FROM member WHERE member_kind = 'computer'
), reaching AS (
    SELECT team_id, device_id, grantee_id AS user_id FROM granted WHERE grantee_kind = 'user'
    UNION SELECT m.team_id, g.device_id, m.member_id FROM member m
        JOIN group_computer g ON g.team_id = m.team_id AND g.group_id = m.group_id WHERE m.member_kind = 'user'
), direct AS (
    SELECT team_id, device_id, count(*) AS n FROM granted WHERE grantee_kind = 'user' GROUP BY ALL
), through AS (SELECT team_id, device_id, count(*) AS n FROM group_computer GROUP BY ALL),
people AS (SELECT team_id, device_id, count(*) AS n FROM reaching GROUP BY ALL),
used AS (
    SELECT team_id, device_id, max(last_event_at) AS last_at FROM sessions
    WHERE first_event_at < $as_of AND outcome IN ('ended', 'open', 'closed_only') AND ($team IS NULL OR team_id = $team)
    GROUP BY ALL
), readable AS (
    -- Some tokens may read the computers, but not who may reach them.
    SELECT team_id FROM inventory_reads WHERE part IN ('grants', 'memberships') AND visible AND read_at <= $as_of
    GROUP BY team_id HAVING count(DISTINCT part) = 2
), unreadable AS (
    SELECT DISTINCT team_id FROM findings WHERE kind = 'unknown_field' AND starts_with(subject, 'devices.lastOnlineAt: ')
), counted AS (
    SELECT c.team_id, c.device_id, c.name, c.last_online_at, u.last_at AS last_session_at, k.known_at,
        coalesce(d.n, 0) AS direct_users, coalesce(t.n, 0) AS groups, coalesce(p.n, 0) AS people,
        -- A session that began before the moment can end after it.
        greatest(0, date_sub('day', coalesce(greatest(c.last_online_at, u.last_at), k.known_at), least($as_of, $now))) AS days_offline
    FROM computer c JOIN known k USING (team_id, device_id)
        LEFT JOIN used u USING (team_id, device_id)
        LEFT JOIN direct d USING (team_id, device_id)
        LEFT JOIN through t USING (team_id, device_id)
        LEFT JOIN people p USING (team_id, device_id)
), state AS (
    SELECT *,
        CASE WHEN direct_users + groups = 0 AND team_id IN (SELECT team_id FROM readable) THEN 'no grants'
            WHEN direct_users + groups = 0 THEN 'grants not read'
            WHEN last_online_at IS NULL AND (last_session_at IS NULL OR days_offline > $offline_days) AND team_id IN (FROM unreadable) THEN 'unknown'
            WHEN last_online_at IS NULL AND last_session_at IS NULL THEN 'never online'
            WHEN days_offline > $offline_days THEN 'long offline' END AS state
    FROM counted
)
SELECT team_id, device_id, name AS computer_name, state, days_offline,
    local_time(last_online_at, $tz) AS last_online_local, local_time(last_session_at, $tz) AS last_session_local,
    local_time(known_at, $tz) AS known_since_local, direct_users, groups, people,
    CASE state WHEN 'no grants' THEN 'info' WHEN 'grants not read' THEN NULL ELSE 'low' END AS severity, last_online_at
FROM state WHERE state IS NOT NULL
UNION ALL
SELECT team_id, NULL, NULL, 'not yet read', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads)
WHERE ($team IS NULL OR team_id = $team) AND team_id NOT IN (
    SELECT team_id FROM inventory_reads WHERE part = 'computers' AND visible AND read_at <= $as_of)
ORDER BY state, days_offline DESC, team_id, computer_name, device_id;
