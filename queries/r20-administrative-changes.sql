-- id: R20
-- title: Administrative change log
-- question: Who changed what, and when?
-- controls: PCI DSS 10.2.1.2; NIST 800-53 AC-6(9); SOC 2 CC8.1; NIS2 3.2.3(e)
-- param: login_words list = logged,login,signin,signedin | words of events that are no change
-- param: confirm_within duration to 3660d = 8d | a reading of the roster so long after the event may confirm it
-- chart: bars x=actor y=changes | Changes, by who made them
-- note: all activity events of the period but logins; the service documents four event types and no payload, so the payload is shown as it came
-- note: actor: the person whose id or email stands anywhere in tokenInfo, else tokenInfo as it came, empty where the service recorded none
-- note: target: people, computers and groups whose id (or email) stands anywhere in the payload; one that was on no reading cannot be recognised
-- note: confirmed_by: parts of the roster in which an entry of a target changed at the first reading after the event; empty where none changed, was not read since, or the change is none of the roster's (a setting, an invitation)
WITH word AS (SELECT lower(unnest(from_json($login_words, '["VARCHAR"]'))) AS word),
change AS (
    SELECT team_id, event_id, event_time, event_time_ns, event_type, token_info, payload, first_seen_at
    FROM activity
    WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team)
        AND NOT EXISTS (SELECT 1 FROM word WHERE contains(lower(event_type), word.word))
), version AS MATERIALIZED (
    SELECT team_id, 'users' AS part, 'user' AS kind, user_id AS id, coalesce(email, user_id) AS label,
        nullif(lower(trim(email)), '') AS spelled, valid_from, valid_to
    FROM inventory_users WHERE $team IS NULL OR team_id = $team
    UNION ALL
    SELECT team_id, 'computers', 'computer', device_id, coalesce(name, device_id), NULL, valid_from, valid_to
    FROM inventory_computers WHERE $team IS NULL OR team_id = $team
    UNION ALL
    SELECT team_id, 'groups', 'group', group_id, coalesce(name, group_id), NULL, valid_from, valid_to
    FROM inventory_groups WHERE $team IS NULL OR team_id = $team
), entity AS (
    SELECT DISTINCT team_id, kind, id, id AS term FROM version
    UNION SELECT DISTINCT team_id, kind, id, spelled FROM version WHERE spelled IS NOT NULL
), label AS (
    SELECT team_id, kind, id, arg_max(label, valid_from) AS label FROM version GROUP BY ALL
), term AS (
    SELECT team_id, event_id, event_time, 'target' AS part, unnest(list_distinct(regexp_extract_all(payload, '"((?:[^"\\]|\\.)*)"', 1))) AS term
    FROM change
    UNION ALL
    SELECT team_id, event_id, event_time, 'actor', unnest(list_distinct(regexp_extract_all(token_info, '"((?:[^"\\]|\\.)*)"', 1)))
    FROM change
), spelled AS (SELECT * FROM term UNION SELECT team_id, event_id, event_time, part, lower(term) FROM term WHERE contains(term, '@')),
named AS (
    SELECT DISTINCT s.team_id, s.event_id, s.event_time, s.part, e.kind, e.id
    FROM spelled s JOIN entity e ON e.team_id = s.team_id AND e.term = s.term
), target AS (
    SELECT n.team_id, n.event_id, string_agg(n.kind || ' ' || l.label, '; ' ORDER BY n.kind DESC, l.label, n.id) AS target,
        string_agg(n.id, ', ' ORDER BY n.kind DESC, l.label, n.id) AS target_ids
    FROM named n JOIN label l USING (team_id, kind, id) WHERE n.part = 'target' GROUP BY ALL
), actor AS (
    SELECT n.team_id, n.event_id, string_agg(l.label, ', ' ORDER BY l.label) AS actor
    FROM named n JOIN label l USING (team_id, kind, id) WHERE n.part = 'actor' AND n.kind = 'user' GROUP BY ALL
), touched AS (
    SELECT team_id, part, kind, id, valid_from AS changed_at FROM version WHERE valid_from >= $from
    UNION ALL SELECT team_id, part, kind, id, valid_to FROM version WHERE valid_to >= $from
    UNION ALL SELECT team_id, 'memberships', unnest(['group', member_kind, 'group', member_kind]),
        unnest([group_id, member_id, group_id, member_id]), unnest([valid_from, valid_from, valid_to, valid_to])
    FROM inventory_memberships WHERE valid_from >= $from OR valid_to >= $from
    UNION ALL SELECT team_id, 'grants', unnest(['computer', grantee_kind, 'computer', grantee_kind]),
        unnest([device_id, grantee_id, device_id, grantee_id]), unnest([valid_from, valid_from, valid_to, valid_to])
    FROM inventory_grants WHERE valid_from >= $from OR valid_to >= $from
), next_reading AS (
    SELECT c.team_id, c.event_id, r.part, min(r.read_at) AS read_at
    FROM change c JOIN inventory_reads r ON r.team_id = c.team_id AND r.visible AND r.read_at >= c.event_time
        AND r.read_at < c.event_time + to_seconds($confirm_within)
    WHERE r.part IN ('users', 'computers', 'groups', 'memberships', 'grants')
    GROUP BY ALL
), confirmed AS (
    SELECT n.team_id, n.event_id, string_agg(DISTINCT t.part, ', ' ORDER BY t.part) AS parts, min(x.read_at) AS read_at
    FROM (SELECT * FROM named WHERE part = 'target') n
        JOIN touched t ON t.team_id = n.team_id AND t.kind = CASE n.kind WHEN 'computer' THEN 'computer' ELSE n.kind END AND t.id = n.id
        JOIN next_reading x ON x.team_id = n.team_id AND x.event_id = n.event_id AND x.part = t.part AND x.read_at = t.changed_at
    GROUP BY n.team_id, n.event_id
)
SELECT c.team_id, local_time(c.event_time, $tz) AS event_local, coalesce(a.actor, c.token_info) AS actor, c.event_type,
    t.target, t.target_ids, f.parts AS confirmed_by, local_time(f.read_at, $tz) AS confirmed_local, c.payload, c.token_info,
    c.event_time AS event_at, c.event_id
FROM change c
    LEFT JOIN actor a ON a.team_id = c.team_id AND a.event_id = c.event_id
    LEFT JOIN target t ON t.team_id = c.team_id AND t.event_id = c.event_id
    LEFT JOIN confirmed f ON f.team_id = c.team_id AND f.event_id = c.event_id
ORDER BY c.event_time_ns, c.team_id, c.event_id;

-- chart rows
SELECT coalesce(actor, 'not recorded') AS actor, count(*) AS changes FROM report GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20;
