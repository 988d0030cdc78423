-- id: R20
-- title: Administrative change log
-- question: Who changed what, and when?
-- controls: PCI DSS 10.2.1.2; NIST 800-53 AC-6(9); SOC 2 CC8.1; NIS2 3.2.3(e)
-- param: login_words list = logged,login,signin,signedin | words in the types of events that are no changes
-- param: confirm_within duration to 3660d = 8d | how long after the event a reading of the roster may confirm it
-- chart: bars x=actor y=changes | Changes, by actor
-- note: all activity events of the period except logins; the service documents four event types and no payload, so the report shows the payload as the service sent it
-- note: actor: the person whose id or email is anywhere in tokenInfo; otherwise tokenInfo as the service sent it; empty if the service recorded none
-- note: target: people, computers and groups whose id (or email) is anywhere in the payload; the report cannot recognise one that no reading of the roster showed
-- note: an email address means the person who had it at the time of the event, by the roster: the first holder also before the first reading, and each holder until the roster gives the address to somebody else
-- note: confirmed_by: the parts of the roster in which an entry of a target changed at the first reading after the event; empty if no entry changed, if Annals has not read the part since, if it holds no earlier reading to compare with, or if the change is not in the roster (a setting, an invitation)
WITH word AS (SELECT lower(unnest(from_json($login_words, '["VARCHAR"]'))) AS word),
change AS NOT MATERIALIZED (
    SELECT team_id, event_id, event_time, event_time_ns, event_type, token_info, payload
    FROM activity
    WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team)
        AND NOT EXISTS (SELECT 1 FROM word WHERE contains(lower(event_type), word.word))
), version AS MATERIALIZED (
    SELECT team_id, 'users' AS part, 'user' AS kind, user_id AS id, coalesce(email, user_id) AS label, valid_from, valid_to
    FROM inventory_users WHERE $team IS NULL OR team_id = $team
    UNION ALL
    SELECT team_id, 'computers', 'computer', device_id, coalesce(name, device_id), valid_from, valid_to
    FROM inventory_computers WHERE $team IS NULL OR team_id = $team
    UNION ALL
    SELECT team_id, 'groups', 'group', group_id, coalesce(name, group_id), valid_from, valid_to
    FROM inventory_groups WHERE $team IS NULL OR team_id = $team
), thing AS MATERIALIZED (
    -- Small numbers, in the order of the output, keep the memory for years of events low.
    SELECT *, row_number() OVER (ORDER BY kind DESC, label, id, team_id) AS nr
    FROM (SELECT team_id, kind, id, arg_max(label, valid_from) AS label FROM version GROUP BY ALL)
), spelling AS (
    SELECT team_id, nr, id AS term, NULL::TIMESTAMP AS held_from, NULL::TIMESTAMP AS held_to FROM thing
    UNION SELECT t.team_id, t.nr, a.email, a.held_from, a.held_to
    FROM thing t JOIN inventory_addresses a ON a.team_id = t.team_id AND a.user_id = t.id WHERE t.kind = 'user'
), payload_term AS (
    SELECT team_id, event_id, event_time, json_strings(payload) AS terms FROM change
), named AS (
    SELECT p.team_id, p.event_id, p.event_time, s.nr
    FROM (SELECT * EXCLUDE (terms), unnest(list_distinct(list_concat(terms,
              list_transform(list_filter(terms, lambda t: contains(t, '@')), lambda t: lower(trim(t)))))) AS term FROM payload_term) p
        JOIN spelling s ON s.team_id = p.team_id AND s.term = p.term
            AND p.event_time >= coalesce(s.held_from, p.event_time) AND (s.held_to IS NULL OR p.event_time < s.held_to)
), targets AS (
    SELECT team_id, event_id, list_sort(list_distinct(list(nr))) AS nrs FROM named GROUP BY ALL
), target AS (
    SELECT n.nrs, string_agg(t.kind || ' ' || t.label, '; ' ORDER BY t.nr) AS target,
        string_agg(t.id, ', ' ORDER BY t.nr) AS target_ids
    FROM (SELECT nrs, unnest(nrs) AS nr FROM (SELECT DISTINCT nrs FROM targets)) n JOIN thing t ON t.nr = n.nr GROUP BY ALL
), token_term AS (
    SELECT team_id, token_info, json_strings(token_info) AS terms
    FROM (SELECT DISTINCT team_id, token_info FROM change WHERE token_info IS NOT NULL)
), actor AS (
    SELECT team_id, token_info, list({nr: nr, label: label, held_from: held_from, held_to: held_to}) AS people
    FROM (SELECT DISTINCT p.team_id, p.token_info, t.nr, t.label, s.held_from, s.held_to
          FROM (SELECT * EXCLUDE (terms), unnest(list_concat(terms,
                    list_transform(list_filter(terms, lambda t: contains(t, '@')), lambda t: lower(trim(t))))) AS term FROM token_term) p
              JOIN spelling s ON s.team_id = p.team_id AND s.term = p.term
              JOIN thing t ON t.nr = s.nr AND t.kind = 'user')
    GROUP BY ALL
), touched AS (
    SELECT team_id, part, kind, id, valid_from AS changed_at FROM version WHERE valid_from >= $from
    UNION ALL SELECT team_id, part, kind, id, valid_to FROM version WHERE valid_to >= $from
    UNION ALL SELECT team_id, 'memberships', unnest(['group', member_kind, 'group', member_kind]),
        unnest([group_id, member_id, group_id, member_id]), unnest([valid_from, valid_from, valid_to, valid_to])
    FROM inventory_memberships WHERE valid_from >= $from OR valid_to >= $from
    UNION ALL SELECT team_id, 'grants', unnest(['computer', grantee_kind, 'computer', grantee_kind]),
        unnest([device_id, grantee_id, device_id, grantee_id]), unnest([valid_from, valid_from, valid_to, valid_to])
    FROM inventory_grants WHERE valid_from >= $from OR valid_to >= $from
), reading AS (
    -- A reading is the first reading after every event since the reading before it.
    SELECT team_id, part, read_at, lag(read_at) OVER (PARTITION BY team_id, part ORDER BY read_at) AS before_at
    FROM (SELECT DISTINCT team_id, part, read_at FROM inventory_reads WHERE visible)
), seen AS (
    SELECT DISTINCT h.nr, t.part, r.read_at, r.before_at
    FROM touched t JOIN thing h USING (team_id, kind, id)
        JOIN reading r ON r.team_id = t.team_id AND r.part = t.part AND r.read_at = t.changed_at
), confirmed AS (
    SELECT n.team_id, n.event_id, string_agg(DISTINCT x.part, ', ' ORDER BY x.part) AS parts, min(x.read_at) AS read_at
    FROM named n JOIN seen x ON x.nr = n.nr AND x.read_at >= n.event_time AND x.before_at < n.event_time
        AND x.read_at < n.event_time + to_seconds($confirm_within)
    GROUP BY n.team_id, n.event_id
)
SELECT c.team_id, local_time(c.event_time, $tz) AS event_local,
    coalesce(nullif(array_to_string([p.label FOR p IN list_sort(list_distinct([{nr: p.nr, label: p.label} FOR p IN a.people
        IF coalesce(c.event_time >= p.held_from, true) AND coalesce(c.event_time < p.held_to, true)]))], ', '), ''), c.token_info) AS actor,
    c.event_type,
    t.target, t.target_ids, f.parts AS confirmed_by, local_time(f.read_at, $tz) AS confirmed_local, c.payload, c.token_info,
    c.event_time AS event_at, c.event_id
FROM change c
    LEFT JOIN actor a ON a.team_id = c.team_id AND a.token_info = c.token_info
    LEFT JOIN targets n ON n.team_id = c.team_id AND n.event_id = c.event_id
    LEFT JOIN target t ON t.nrs = n.nrs
    LEFT JOIN confirmed f ON f.team_id = c.team_id AND f.event_id = c.event_id
ORDER BY c.event_time_ns, c.team_id, c.event_id;

-- chart rows
SELECT coalesce(actor, 'not recorded') AS actor, count(*) AS changes FROM report GROUP BY 1 ORDER BY 2 DESC, 1;
