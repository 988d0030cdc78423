-- id: R07
-- title: Access review
-- question: Who can reach which computer, and why?
-- controls: PCI DSS 7.2.4; ISO 27001 A.5.18; SOC 2 CC6.3; NIST 800-53 AC-2; NIS2 11.2.2(e), 11.2.3
-- param: lookback duration to 36500d = 366d | how far back the report looks for the last session of a person on a computer
-- chart: heatmap x=computer y=person value=ways | Who can reach which computer: the number of ways
-- note: the access that the readings of the roster show at --as-of (by default the period's end); the reviewer fills the columns decision and reviewer
-- note: via: direct, or a group's name (with its id if another group has the same name); a group gives access if the person is a member, and if the computer is in the group or lists the group
-- note: for a person with disabled remote access the report lists the computers that the person could reach if it were enabled; it lists a grant to somebody who is not on the roster without an email
-- note: last_session_here_local: the last session under an address that the person had on the roster at that time
-- note: the data does not show whether a person has an operating system account on the computer
-- note: 'not yet read' in via: Annals had not read the team's grants at that moment, so nothing is known
WITH team AS (
    SELECT t.team_id, min(r.read_at) FILTER (r.part = 'grants') AS grants_at,
        min(r.read_at) FILTER (r.part = 'memberships') AS groups_at
    FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads) t
        LEFT JOIN inventory_reads r ON r.team_id = t.team_id AND r.visible
    WHERE $team IS NULL OR t.team_id = $team GROUP BY t.team_id
), person AS (
    SELECT * FROM inventory_users
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), computer AS (
    SELECT * FROM inventory_computers
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), access_group AS (
    -- Two groups of one name differ by their ids.
    SELECT *, CASE WHEN count(*) OVER (PARTITION BY team_id, name) > 1 THEN name || ' (' || group_id || ')' ELSE name END AS label
    FROM inventory_groups
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), granted AS (
    SELECT * FROM inventory_grants
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), member AS (
    SELECT * FROM inventory_memberships
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), group_computer AS (
    SELECT team_id, grantee_id AS group_id, device_id FROM granted WHERE grantee_kind = 'group'
    UNION SELECT team_id, group_id, member_id FROM member WHERE member_kind = 'computer'
), way AS (
    SELECT team_id, grantee_id AS user_id, device_id, NULL AS group_id FROM granted WHERE grantee_kind = 'user'
    UNION
    SELECT m.team_id, m.member_id, c.device_id, m.group_id
    FROM member m JOIN group_computer c ON c.team_id = m.team_id AND c.group_id = m.group_id
    WHERE m.member_kind = 'user'
), pair AS (
    SELECT team_id, user_id, device_id, string_agg(via, '; ' ORDER BY via) AS via, count(*) AS ways
    FROM (SELECT w.team_id, w.user_id, w.device_id,
              CASE WHEN w.group_id IS NULL THEN 'direct' ELSE 'group ' || coalesce(g.label, w.group_id) END AS via
          FROM way w LEFT JOIN access_group g ON g.team_id = w.team_id AND g.group_id = w.group_id)
    GROUP BY ALL
), used AS (
    SELECT a.team_id, a.user_id, s.device_id, max(s.first_event_at) AS last_at
    FROM sessions s JOIN inventory_addresses a ON a.team_id = s.team_id AND a.email = lower(trim(s.peer_email))
        AND s.first_event_at >= coalesce(a.held_from, s.first_event_at) AND (a.held_to IS NULL OR s.first_event_at < a.held_to)
    WHERE a.valid_from <= $as_of AND s.first_event_at >= $as_of - to_seconds($lookback) AND s.first_event_at < $as_of
        AND ($team IS NULL OR s.team_id = $team) AND s.outcome IN ('ended', 'open', 'closed_only')
    GROUP BY ALL
)
SELECT w.team_id, w.user_id, p.email, nullif(concat_ws(' ', p.first_name, p.last_name), '') AS name, p.role,
    p.remote_access, w.device_id, c.name AS computer_name, w.via, w.ways,
    local_time(p.last_used_at, $tz) AS user_last_used_local,
    local_time(u.last_at, $tz) AS last_session_here_local,
    NULL::VARCHAR AS decision, NULL::VARCHAR AS reviewer
FROM pair w
    LEFT JOIN person p ON p.team_id = w.team_id AND p.user_id = w.user_id
    LEFT JOIN computer c ON c.team_id = w.team_id AND c.device_id = w.device_id
    LEFT JOIN used u ON u.team_id = w.team_id AND u.user_id = w.user_id AND u.device_id = w.device_id
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    CASE WHEN grants_at IS NULL OR grants_at > $as_of THEN 'not yet read'
        ELSE 'direct access only: groups were not readable' END,
    0, NULL, NULL, NULL, NULL
FROM team WHERE grants_at IS NULL OR grants_at > $as_of OR groups_at IS NULL OR groups_at > $as_of
ORDER BY team_id, email, user_id, computer_name, device_id, via;

-- chart rows
-- A chart reads 10,000 rows, so the query itself joins the names that have no room in it.
WITH shown AS (
    SELECT coalesce(email, user_id) AS person, coalesce(computer_name, device_id) AS computer, ways
    FROM report WHERE user_id IS NOT NULL
), top_person AS (SELECT person FROM shown GROUP BY 1 ORDER BY sum(ways) DESC, 1 LIMIT 23),
top_computer AS (SELECT computer FROM shown GROUP BY 1 ORDER BY sum(ways) DESC, 1 LIMIT 39)
SELECT CASE WHEN person IN (FROM top_person) THEN person ELSE 'all others' END AS person,
    CASE WHEN computer IN (FROM top_computer) THEN computer ELSE 'all others' END AS computer, sum(ways)::BIGINT AS ways
FROM shown GROUP BY 1, 2 ORDER BY 1, 2;
