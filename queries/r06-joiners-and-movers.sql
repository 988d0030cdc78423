-- id: R06
-- title: Joiners and movers
-- question: Does an event record each change of people, and who made it?
-- controls: PCI DSS 8.2.4, 10.2.1.5; NIST 800-53 AC-2(4); SOC 2 CC6.2, CC6.3; NIS2 3.2.3(b)
-- param: joined_words list = added,joined,created,accepted,provisioned | words in an event's type that mean a new person
-- param: left_words list = removed,deleted,left | words in an event's type that mean a removal
-- param: changed_words list = role,access,changed,updated,modified,enabled,disabled | words in an event's type that mean a change of a person
-- param: login_words list = logged,login,signin,signedin | words in the types of events that change nobody
-- param: lookback duration to 3660d = 31d | how far before the period the report looks for events that explain its first readings
-- chart: columns x=day_local y=people series=change | Joiners and leavers a day
-- severity: column
-- note: the report compares each difference between two readings of the roster with the activity events between them that name the person's id or email anywhere in the payload
-- note: standing: recorded; no event (a change in the roster without an event); no change seen (an event without a change at the next reading); not yet read again; roster not yet read (the event came before the first reading of the roster, so nothing is known: no detection); erased (the first reading after `annals erase` lacks the pseudonym of an id, and shows a person who is still on the team under the real id: nobody can tell who joined or left, so no detection)
-- note: the service documents four event types only, so parameters hold the words for joiners, leavers and changes; an event whose type names a group and a user matches a change of membership; the removal of a person, or of a group, explains that the person left the group
-- note: no change of an address is listed where `annals erase` replaced only the earlier or only the later address
-- note: actor, and the email of a change that is about a group or that no reading shows, is the person's newest address; an address in tokenInfo means the person who had it at the time of the event, as in R20
-- note: before and after come from the readings of the roster; R20 shows the payload of events, which the service does not document
-- note: the first reading that the archive holds of a team shows no joiners; a gap in activity (R23) can explain a missing event
WITH word AS (
    SELECT 'joined' AS kind, lower(unnest(from_json($joined_words, '["VARCHAR"]'))) AS word
    UNION ALL SELECT 'left', lower(unnest(from_json($left_words, '["VARCHAR"]')))
    UNION ALL SELECT 'changed', lower(unnest(from_json($changed_words, '["VARCHAR"]')))
    UNION ALL SELECT 'login', lower(unnest(from_json($login_words, '["VARCHAR"]')))
), reading AS (
    SELECT team_id, part, read_at, lag(read_at) OVER (PARTITION BY team_id, part ORDER BY read_at) AS before_at
    FROM inventory_reads
    WHERE part IN ('users', 'memberships') AND visible AND ($team IS NULL OR team_id = $team)
), first_reading AS (SELECT team_id, part, min(read_at) AS read_at FROM reading GROUP BY ALL),
last_reading AS (SELECT team_id, part, max(read_at) AS read_at FROM reading GROUP BY ALL),
version AS MATERIALIZED (
    SELECT team_id, user_id, valid_from, valid_to, email, role, remote_access, lag(valid_to) OVER one_user AS earlier_to, lead(valid_from) OVER one_user AS later_from,
        lag(role) OVER one_user AS earlier_role, lag(remote_access) OVER one_user AS earlier_access,
        lag(email) OVER one_user AS earlier_email
    FROM inventory_users WHERE $team IS NULL OR team_id = $team
    WINDOW one_user AS (PARTITION BY team_id, user_id ORDER BY valid_from)
), user_change AS (
    SELECT v.team_id, v.user_id, v.email, 'joined' AS kind, 'joined' AS change, NULL AS before, v.role AS after,
        v.valid_from AS seen_at
    FROM version v WHERE v.earlier_to IS DISTINCT FROM v.valid_from
    UNION ALL
    SELECT team_id, user_id, email, 'left', 'left', role, NULL, valid_to
    FROM version WHERE valid_to IS NOT NULL AND later_from IS DISTINCT FROM valid_to
    UNION ALL
    SELECT team_id, user_id, email, 'changed', 'role', earlier_role, role, valid_from
    FROM version WHERE earlier_to = valid_from AND role IS DISTINCT FROM earlier_role
    UNION ALL
    SELECT team_id, user_id, email, 'changed', 'remote access', earlier_access, remote_access, valid_from
    FROM version WHERE earlier_to = valid_from AND remote_access IS DISTINCT FROM earlier_access
    UNION ALL
    SELECT team_id, user_id, email, 'changed', 'email', earlier_email, email, valid_from
    FROM version WHERE earlier_to = valid_from AND email IS DISTINCT FROM earlier_email
        -- An erasure that replaced only one of both addresses changed nothing about the person.
        AND coalesce(regexp_matches(email, '^erased-[0-9a-f]{32}(@|$)'), false) = coalesce(regexp_matches(earlier_email, '^erased-[0-9a-f]{32}(@|$)'), false)
), membership_change AS (
    SELECT m.team_id, m.member_id AS user_id, 'group' AS kind, 'joined group' AS change, NULL AS before,
        m.group_id AS after, m.valid_from AS seen_at
    FROM inventory_memberships m
    WHERE m.member_kind = 'user' AND ($team IS NULL OR m.team_id = $team)
    UNION ALL
    SELECT team_id, member_id, 'group', 'left group', group_id, NULL, valid_to
    FROM inventory_memberships
    WHERE member_kind = 'user' AND valid_to IS NOT NULL AND ($team IS NULL OR team_id = $team)
), person AS (
    SELECT DISTINCT team_id, user_id, nullif(lower(trim(email)), '') AS peer FROM version
), named AS (SELECT team_id, user_id, arg_max(email, valid_from) AS email FROM version GROUP BY ALL),
diff AS (
    SELECT d.team_id, d.user_id, d.email, d.kind, d.change, d.before, d.after, d.seen_at, r.before_at,
        row_number() OVER (ORDER BY d.team_id, d.seen_at, d.user_id, d.change, d.before, d.after) AS nr
    FROM (SELECT * FROM user_change
          UNION ALL BY NAME SELECT m.*, n.email FROM membership_change m LEFT JOIN named n USING (team_id, user_id)) d
        JOIN first_reading f ON f.team_id = d.team_id AND f.part = CASE d.kind WHEN 'group' THEN 'memberships' ELSE 'users' END
            AND d.seen_at > f.read_at
        LEFT JOIN reading r ON r.team_id = d.team_id AND r.part = f.part AND r.read_at = d.seen_at
    WHERE d.seen_at < $to + to_seconds($lookback)
), unclear AS (
    -- No reading shows the pseudonym of an id. A person who is still on the team seems to leave, and to join under the real id.
    SELECT team_id, user_id, before_at, seen_at
    FROM (SELECT *, change = 'left' AND regexp_matches(user_id, '^erased-[0-9a-f]{32}$') AS is_pseudonym,
              bool_or(is_pseudonym) OVER (PARTITION BY team_id, seen_at) AS has_pseudonym
          FROM diff d
          WHERE EXISTS (SELECT 1 FROM erasures e WHERE e.team_id = d.team_id AND e.dataset = 'inventory_users'
              AND e.erased_at > d.before_at AND e.erased_at <= d.seen_at))
    WHERE is_pseudonym OR (change = 'joined' AND has_pseudonym)
), told_event AS (
    SELECT a.team_id, a.event_id, a.event_time, a.event_type, a.token_info, a.payload,
        CASE WHEN contains(lower(a.event_type), 'group') THEN 'group'
            WHEN list_contains(w.kinds, 'joined') THEN 'joined' WHEN list_contains(w.kinds, 'left') THEN 'left'
            ELSE 'changed' END AS kind, list_contains(w.kinds, 'left') AS is_removal,
        regexp_matches(lower(a.event_type), 'group|device|computer|access') AS is_narrow
    FROM activity a
        JOIN (SELECT t.event_type, list(DISTINCT w.kind) AS kinds
              FROM (SELECT DISTINCT event_type FROM activity
                    WHERE event_time >= $from - to_seconds($lookback) AND event_time < $to) t
                  JOIN word w ON contains(lower(t.event_type), w.word)
              WHERE contains(lower(t.event_type), 'user') OR contains(lower(t.event_type), 'group')
              GROUP BY ALL) w ON w.event_type = a.event_type
    WHERE a.event_time >= $from - to_seconds($lookback) AND a.event_time < $to
        AND ($team IS NULL OR a.team_id = $team) AND NOT list_contains(w.kinds, 'login')
), told AS (
    SELECT team_id, event_id, unnest(list_distinct(json_strings(payload))) AS term
    FROM told_event
), person_told AS (
    SELECT t.team_id, t.event_id, p.user_id FROM told t JOIN person p ON p.team_id = t.team_id AND p.user_id = t.term
    UNION
    SELECT t.team_id, t.event_id, p.user_id FROM told t JOIN person p ON p.team_id = t.team_id AND p.peer = lower(trim(t.term))
), event AS (
    -- An event belongs to the known people that it names. An event that names nobody stays, without a person.
    SELECT w.team_id, w.event_id, w.event_time, w.event_type, w.token_info, w.kind, n.user_id, m.email, w.is_narrow
    FROM told_event w LEFT JOIN person_told n ON n.team_id = w.team_id AND n.event_id = w.event_id
        LEFT JOIN named m ON m.team_id = n.team_id AND m.user_id = n.user_id
    WHERE n.user_id IS NOT NULL OR w.kind <> 'group'
    UNION ALL
    -- A removal of a group names no person: it belongs to each person who then left the group.
    SELECT w.team_id, w.event_id, w.event_time, w.event_type, w.token_info, w.kind, d.user_id, d.email, w.is_narrow
    FROM told_event w JOIN told t USING (team_id, event_id)
        JOIN diff d ON d.team_id = w.team_id AND d.change = 'left group' AND d.before = t.term
            AND w.event_time <= d.seen_at AND w.event_time > d.before_at
    WHERE w.kind = 'group' AND w.is_removal
        AND NOT EXISTS (SELECT 1 FROM person_told p WHERE p.team_id = w.team_id AND p.event_id = w.event_id)
), matched AS (
    -- Whoever is removed leaves the groups too.
    SELECT d.nr, d.kind, e.event_id, e.user_id, e.team_id
    FROM diff d JOIN event e ON e.team_id = d.team_id AND e.user_id = d.user_id
        AND (e.kind = d.kind OR (d.change = 'left group' AND e.kind = 'left'))
        AND e.event_time <= d.seen_at AND e.event_time > d.before_at
), explained AS (
    -- As in R05: the first removal tells that somebody left, and an event about a computer or an access only if no other does.
    SELECT m.nr, CASE WHEN any_value(m.kind) = 'left' THEN arg_min(e, (e.is_narrow, e.event_time, e.event_id))
        WHEN any_value(m.kind) = 'joined' THEN arg_max(e, (NOT e.is_narrow, e.event_time, e.event_id))
        ELSE arg_max(e, (e.event_time, e.event_id)) END AS event
    FROM matched m JOIN event e ON e.team_id = m.team_id AND e.event_id = m.event_id AND e.user_id = m.user_id
    GROUP BY m.nr
), row_of AS (
    SELECT d.team_id, x.event.event_time AS at, x.event.event_id AS event_id, x.event.token_info AS token_info,
        d.user_id, d.email, d.change, d.before, d.after, d.seen_at, x.event.event_type AS event_type,
        CASE WHEN x.nr IS NOT NULL THEN 'recorded' WHEN u.user_id IS NOT NULL THEN 'erased' ELSE 'no event' END AS standing
    FROM diff d LEFT JOIN explained x ON x.nr = d.nr LEFT JOIN unclear u USING (team_id, user_id, seen_at)
    WHERE d.seen_at >= $from AND d.seen_at < $to
    UNION ALL
    SELECT e.team_id, e.event_time, e.event_id, e.token_info, e.user_id, e.email, e.kind, NULL, NULL, NULL, e.event_type,
        CASE WHEN l.read_at < e.event_time THEN 'not yet read again' WHEN u.user_id IS NOT NULL THEN 'erased' WHEN f.read_at < e.event_time THEN 'no change seen'
            ELSE 'roster not yet read' END
    FROM event e
        LEFT JOIN first_reading f ON f.team_id = e.team_id AND f.part = CASE e.kind WHEN 'group' THEN 'memberships' ELSE 'users' END
        LEFT JOIN last_reading l ON l.team_id = f.team_id AND l.part = f.part
        LEFT JOIN unclear u ON u.team_id = e.team_id AND u.user_id = e.user_id AND e.event_time > u.before_at AND e.event_time <= u.seen_at
    WHERE e.event_time >= $from AND NOT EXISTS (SELECT 1 FROM matched m
        WHERE m.team_id = e.team_id AND m.event_id = e.event_id AND m.user_id IS NOT DISTINCT FROM e.user_id
            AND m.kind = e.kind)
), actor_term AS (
    SELECT team_id, event_id, acted_at, unnest(json_strings(token_info)) AS term
    FROM (SELECT DISTINCT r.team_id, r.event_id, r.at AS acted_at, r.token_info FROM row_of r WHERE r.token_info IS NOT NULL)
), acting AS (
    -- As in R20: an address is the person who had it then, and a person is called by the newest address.
    SELECT a.team_id, a.event_id, n.user_id FROM actor_term a JOIN named n ON n.team_id = a.team_id AND n.user_id = a.term
    UNION
    SELECT a.team_id, a.event_id, h.user_id FROM actor_term a JOIN inventory_addresses h ON h.team_id = a.team_id AND h.email = lower(trim(a.term))
        AND (h.held_from IS NULL OR h.held_from <= a.acted_at) AND (h.held_to IS NULL OR a.acted_at < h.held_to)
), actor AS (
    SELECT a.team_id, a.event_id, string_agg(coalesce(n.email, n.user_id), ', ' ORDER BY coalesce(n.email, n.user_id)) AS actor
    FROM acting a JOIN named n USING (team_id, user_id) GROUP BY ALL
)
SELECT r.team_id, local_time(r.at, $tz) AS event_local,
    coalesce(a.actor, r.token_info) AS actor, r.user_id, r.email, r.change,
    coalesce(g.name, r.before) AS before, coalesce(h.name, r.after) AS after,
    local_time(r.seen_at, $tz) AS seen_in_reading_local, r.event_type, r.standing,
    CASE r.standing WHEN 'no event' THEN 'medium' WHEN 'no change seen' THEN 'low' END AS severity,
    r.at AS event_at, r.seen_at AS seen_in_reading_at, r.event_id
FROM row_of r
    LEFT JOIN actor a ON a.team_id = r.team_id AND a.event_id = r.event_id
    LEFT JOIN inventory_groups g ON r.change = 'left group' AND g.team_id = r.team_id AND g.group_id = r.before
        AND g.valid_from < r.seen_at AND (g.valid_to IS NULL OR r.seen_at <= g.valid_to)
    LEFT JOIN inventory_groups h ON r.change = 'joined group' AND h.team_id = r.team_id AND h.group_id = r.after
        AND h.valid_from <= r.seen_at AND (h.valid_to IS NULL OR r.seen_at < h.valid_to)
ORDER BY coalesce(r.at, r.seen_at), r.team_id, r.user_id, r.change, r.event_id, before, after;

-- chart rows
SELECT date_trunc('day', coalesce(seen_in_reading_local, event_local)) AS day_local, change,
    sum(CASE change WHEN 'left' THEN -1 ELSE 1 END)::BIGINT AS people
FROM report
WHERE change IN ('joined', 'left') AND standing IN ('recorded', 'no event') GROUP BY 1, 2 ORDER BY 1, 2;
