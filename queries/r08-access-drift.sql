-- id: R08
-- title: Access drift
-- question: Who gained or lost access to a computer during the period, and which event caused it?
-- controls: SOC 2 CC6.3; ISO 27001 A.5.18; NIST 800-53 AC-2(4)
-- param: removed_words list = removed,deleted,left | words in an event's type that mean a removal
-- param: login_words list = logged,login,signin,signedin | words in the types of events that change nothing
-- chart: bars x=person y=ways series=change | Ways to computers gained and lost, by person
-- note: the difference between the access of R07 at the period's beginning and at its end; it omits access that somebody gained and lost in between (R06 and R20 show it)
-- note: event is the last activity event of the period that names two of person, computer and group anywhere in its payload, or that is a removal of one of them
-- note: 'not read again' in change: Annals did not read the team's grants during the period, so it cannot see a change
-- note: 'groups not read' in change: Annals did not read the team's groups both before the period began and during it, so the report compares only direct access, or does not see a change of a group
-- note: 'not yet read' in change: Annals had not read the team's grants before the period began, so it cannot compare
WITH side AS (
    SELECT 'lost' AS change, $from AS at UNION ALL SELECT 'gained', $to
), team AS (
    SELECT t.team_id, min(r.read_at) FILTER (r.part = 'grants') AS grants_at,
        min(r.read_at) FILTER (r.part = 'memberships') AS groups_at,
        coalesce(bool_or(r.part = 'grants' AND r.read_at > $from AND r.read_at <= $to), false) AS is_read_again,
        coalesce(bool_or(r.part = 'memberships' AND r.read_at > $from AND r.read_at <= $to), false) AS are_groups_read_again
    FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads) t
        LEFT JOIN inventory_reads r ON r.team_id = t.team_id AND r.visible
    WHERE $team IS NULL OR t.team_id = $team GROUP BY t.team_id
), comparable AS (SELECT team_id, groups_at <= $from AS has_groups FROM team WHERE grants_at <= $from),
granted AS (
    SELECT s.change, g.* FROM side s JOIN inventory_grants g
        ON g.valid_from <= s.at AND (g.valid_to IS NULL OR s.at < g.valid_to)
    WHERE g.team_id IN (SELECT team_id FROM comparable)
), member AS (
    SELECT s.change, m.* FROM side s JOIN inventory_memberships m
        ON m.valid_from <= s.at AND (m.valid_to IS NULL OR s.at < m.valid_to)
    WHERE m.team_id IN (SELECT team_id FROM comparable WHERE has_groups)
), group_computer AS (
    SELECT change, team_id, grantee_id AS group_id, device_id FROM granted WHERE grantee_kind = 'group'
    UNION SELECT change, team_id, group_id, member_id FROM member WHERE member_kind = 'computer'
), way AS (
    SELECT change, team_id, grantee_id AS user_id, device_id, NULL AS group_id FROM granted WHERE grantee_kind = 'user'
    UNION
    SELECT m.change, m.team_id, m.member_id, c.device_id, m.group_id
    FROM member m JOIN group_computer c
        ON c.change = m.change AND c.team_id = m.team_id AND c.group_id = m.group_id
    WHERE m.member_kind = 'user'
), drift AS (
    SELECT team_id, user_id, device_id, group_id, max(change) AS change
    FROM way GROUP BY team_id, user_id, device_id, group_id HAVING count(*) = 1
), person AS (
    SELECT team_id, user_id, arg_max(email, valid_from) AS email FROM inventory_users
    WHERE valid_from <= $to GROUP BY ALL
), computer AS (
    SELECT team_id, device_id, arg_max(name, valid_from) AS name FROM inventory_computers
    WHERE valid_from <= $to GROUP BY ALL
), access_group AS (
    SELECT team_id, group_id, arg_max(name, valid_from) AS name FROM inventory_groups
    WHERE valid_from <= $to GROUP BY ALL
), term AS (
    SELECT a.team_id, a.event_id, a.event_time, a.event_type,
        EXISTS (SELECT 1 FROM (SELECT unnest(from_json($removed_words, '["VARCHAR"]')) AS word)
            WHERE contains(lower(a.event_type), lower(word))) AS is_removal,
        unnest(list_distinct(json_strings(a.payload))) AS term
    FROM activity a
    WHERE a.event_time >= $from AND a.event_time < $to AND ($team IS NULL OR a.team_id = $team)
        AND NOT EXISTS (SELECT 1 FROM (SELECT unnest(from_json($login_words, '["VARCHAR"]')) AS word)
            WHERE contains(lower(a.event_type), lower(word)))
), key AS (
    SELECT d.team_id, d.user_id, d.device_id, d.group_id, unnest(['user', 'user', 'computer', 'group']) AS what,
        unnest([d.user_id, nullif(lower(trim(p.email)), ''), d.device_id, d.group_id]) AS term
    FROM drift d LEFT JOIN person p USING (team_id, user_id)
), telling AS (
    SELECT k.team_id, k.user_id, k.device_id, k.group_id, t.event_id, t.event_time, t.event_type
    FROM key k JOIN term t ON t.team_id = k.team_id AND (t.term = k.term OR lower(trim(t.term)) = k.term)
    GROUP BY k.team_id, k.user_id, k.device_id, k.group_id, t.event_id, t.event_time, t.event_type, t.is_removal
    HAVING count(DISTINCT k.what) >= 2
        OR (t.is_removal AND contains(lower(t.event_type), any_value(CASE k.what WHEN 'computer' THEN 'device' ELSE k.what END)))
), event AS (
    SELECT team_id, user_id, device_id, group_id, arg_max(event_type, (event_time, event_id)) AS event_type,
        max(event_time) AS event_time
    FROM telling GROUP BY ALL
)
SELECT d.team_id, d.user_id, p.email, d.device_id, c.name AS computer_name,
    CASE WHEN d.group_id IS NULL THEN 'direct' ELSE 'group ' || coalesce(g.name, d.group_id) END AS via,
    d.change, e.event_type AS event, local_time(e.event_time, $tz) AS event_local, e.event_time AS event_at
FROM drift d
    LEFT JOIN person p USING (team_id, user_id)
    LEFT JOIN computer c ON c.team_id = d.team_id AND c.device_id = d.device_id
    LEFT JOIN access_group g ON g.team_id = d.team_id AND g.group_id = d.group_id
    LEFT JOIN event e ON e.team_id = d.team_id AND e.user_id = d.user_id AND e.device_id = d.device_id
        AND e.group_id IS NOT DISTINCT FROM d.group_id
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, 'not yet read', NULL, NULL, NULL
FROM team WHERE team_id NOT IN (SELECT team_id FROM comparable)
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, 'not read again', NULL, NULL, NULL
FROM team JOIN comparable USING (team_id) WHERE NOT is_read_again
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, 'groups not read', NULL, NULL, NULL
FROM team JOIN comparable USING (team_id) WHERE is_read_again AND NOT (coalesce(has_groups, false) AND are_groups_read_again)
ORDER BY team_id, email, user_id, computer_name, device_id, via, change;

-- chart rows
SELECT coalesce(email, user_id) AS person, change, sum(CASE change WHEN 'lost' THEN -1 ELSE 1 END)::BIGINT AS ways
FROM report WHERE change IN ('gained', 'lost') GROUP BY 1, 2 ORDER BY 1, 2;
