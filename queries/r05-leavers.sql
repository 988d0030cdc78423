-- id: R05
-- title: Leavers
-- question: Can a removed user still act, or did one act?
-- controls: PCI DSS 8.2.5; SOC 2 CC6.2; NIST 800-53 AC-2(h); ISO 27001 A.5.18, A.6.5; NIS2 11.2.2(b)
-- param: removed_words list = removed,deleted,left | words in an event's type that mean a removal
-- chart: dots x=removed_local y=hours_after series=activity | Hours from a removal to the person's last activity
-- severity: column
-- note: removed_local is the time of the activity event that names the user and whose type contains user and one of removed_words (the service documents four types only); without such an event it is the first reading of the roster without the user; removed_known_by says which of both
-- note: of several such events the first one counts; an event whose type names a group, a computer or an access counts only if no other event tells of the removal, because it may remove less than the person
-- note: activity after a removal: later sessions under any address that the roster ever gave the user, if nobody else on the roster has that address then, and later changes whose tokenInfo names the user; a closed connection does not count, because the service itself disconnects
-- note: the report lists the removals of the period, and earlier ones with activity in the period; it counts only activity of the period
-- note: of a person who came back, and left again, each activity counts only after the last removal before it
-- note: removed_known_by is erasure if `annals erase` replaced the id of a person on the roster: no later reading shows the pseudonym, so nobody can tell whether the person left, and the row is no detection
-- note: residual grants and groups are those in force at the first reading without the user
-- note: residual_grants, residual_groups and live_tokens are empty where Annals had not read the team's grants, groups or tokens by then, or may not read them: nobody can tell
-- note: live_tokens are the tokens that had not expired at the last reading of the person's tokens, before the removal: the service shows no tokens of removed people and no token ids (R13 shows the titles)
WITH word AS (SELECT lower(unnest(from_json($removed_words, '["VARCHAR"]'))) AS word),
gone AS (
    SELECT u.team_id, u.user_id, u.email, u.role, u.valid_to AS seen_gone_at,
        (SELECT min(v.valid_from) FROM inventory_users v WHERE v.team_id = u.team_id AND v.user_id = u.user_id
            AND v.valid_from > u.valid_to) AS back_at
    FROM inventory_users u
    WHERE u.valid_to IS NOT NULL AND ($team IS NULL OR u.team_id = $team)
        AND NOT EXISTS (SELECT 1 FROM inventory_users v WHERE v.team_id = u.team_id AND v.user_id = u.user_id
            AND v.valid_from = u.valid_to)
), spelling AS (
    -- What the roster ever called a person who is gone: the id, and each address.
    SELECT DISTINCT team_id, user_id, user_id AS term, false AS is_address FROM gone
    UNION
    SELECT u.team_id, u.user_id, lower(trim(u.email)), true FROM inventory_users u JOIN gone USING (team_id, user_id)
    WHERE trim(u.email) <> ''
), last_seen AS (
    SELECT g.team_id, g.user_id, g.seen_gone_at, max(r.read_at) AS last_seen_at
    FROM gone g JOIN inventory_reads r ON r.team_id = g.team_id AND r.part = 'users' AND r.visible
        AND r.read_at < g.seen_gone_at
    GROUP BY ALL
), telling AS (
    SELECT team_id, event_time, regexp_matches(lower(event_type), 'group|device|computer|access') AS is_narrow,
        unnest(list_distinct(json_strings(payload))) AS term
    FROM activity
    WHERE event_time >= (SELECT min(last_seen_at) FROM last_seen) AND event_time < $to
        AND ($team IS NULL OR team_id = $team) AND contains(lower(event_type), 'user')
        AND EXISTS (SELECT 1 FROM word WHERE contains(lower(event_type), word.word))
), leaver AS (
    SELECT g.*, t.told_at, coalesce(t.told_at, g.seen_gone_at) AS removed_at,
        t.told_at IS NULL AND regexp_matches(g.user_id, '^erased-[0-9a-f]{32}$') AND EXISTS (
            SELECT 1 FROM erasures e JOIN last_seen l ON l.team_id = e.team_id AND e.erased_at > l.last_seen_at
            WHERE l.team_id = g.team_id AND l.user_id = g.user_id AND l.seen_gone_at = g.seen_gone_at
                AND e.dataset = 'inventory_users' AND e.erased_at <= g.seen_gone_at) AS is_erased
    FROM gone g LEFT JOIN (
        SELECT g.team_id, g.user_id, g.seen_gone_at,
            coalesce(min(t.event_time) FILTER (NOT t.is_narrow), min(t.event_time)) AS told_at
        FROM gone g JOIN last_seen l USING (team_id, user_id, seen_gone_at)
            JOIN spelling n USING (team_id, user_id)
            JOIN telling t ON t.team_id = g.team_id AND t.event_time <= g.seen_gone_at
                AND t.event_time > l.last_seen_at AND (t.term = n.term OR lower(trim(t.term)) = n.term)
        GROUP BY ALL
    ) t USING (team_id, user_id, seen_gone_at)
    -- An event of the period can tell of a removal that only a reading after the period shows.
    WHERE coalesce(t.told_at, g.seen_gone_at) < $to
), session_after AS (
    SELECT l.team_id, l.user_id, l.seen_gone_at, s.first_event_at AS acted_at
    FROM leaver l JOIN spelling n ON n.team_id = l.team_id AND n.user_id = l.user_id AND n.is_address
        JOIN sessions s ON s.team_id = l.team_id AND lower(trim(s.peer_email)) = n.term
            AND s.first_event_at > l.removed_at AND (l.back_at IS NULL OR s.first_event_at < l.back_at)
    WHERE s.first_event_at >= $from AND s.first_event_at < $to AND NOT EXISTS (
        SELECT 1 FROM inventory_users v WHERE v.team_id = s.team_id AND lower(trim(v.email)) = n.term
            AND v.valid_from <= s.first_event_at AND (v.valid_to IS NULL OR s.first_event_at < v.valid_to)
            AND NOT (v.user_id = l.user_id AND v.valid_to IS NOT DISTINCT FROM l.seen_gone_at))
), actor AS (
    SELECT team_id, event_id, event_time, unnest(list_distinct(json_strings(token_info))) AS term
    FROM activity
    WHERE event_time >= $from AND event_time < $to AND token_info IS NOT NULL AND ($team IS NULL OR team_id = $team)
), change_after AS (
    SELECT DISTINCT l.team_id, l.user_id, l.seen_gone_at, a.event_time AS acted_at, a.event_id
    FROM leaver l JOIN spelling n ON n.team_id = l.team_id AND n.user_id = l.user_id
        JOIN actor a ON a.team_id = l.team_id AND a.event_time > l.removed_at AND (l.back_at IS NULL OR a.event_time < l.back_at)
            AND (a.term = n.term OR lower(trim(a.term)) = n.term)
    WHERE NOT EXISTS (SELECT 1 FROM inventory_users v WHERE v.team_id = a.team_id
        AND (v.user_id = l.user_id OR lower(trim(v.email)) = n.term) AND v.valid_from <= a.event_time
        AND (v.valid_to IS NULL OR a.event_time < v.valid_to)
        AND NOT (v.user_id = l.user_id AND v.valid_to IS NOT DISTINCT FROM l.seen_gone_at))
), acted AS (
    SELECT team_id, user_id, seen_gone_at, max(acted_at) AS last_at,
        count(*) FILTER (WHERE kind = 'session') AS sessions, count(*) FILTER (WHERE kind = 'change') AS changes
    FROM (SELECT *, 'session' AS kind FROM session_after UNION ALL SELECT * EXCLUDE (event_id), 'change' FROM change_after)
    GROUP BY ALL
), residue AS (
    SELECT l.team_id, l.user_id, l.seen_gone_at,
        (SELECT count(*) FROM inventory_grants x WHERE x.team_id = l.team_id AND x.grantee_kind = 'user'
            AND x.grantee_id = l.user_id AND x.valid_from <= l.seen_gone_at
            AND (x.valid_to IS NULL OR l.seen_gone_at < x.valid_to)) AS grants,
        (SELECT count(*) FROM inventory_memberships x WHERE x.team_id = l.team_id AND x.member_kind = 'user'
            AND x.member_id = l.user_id AND x.valid_from <= l.seen_gone_at
            AND (x.valid_to IS NULL OR l.seen_gone_at < x.valid_to)) AS groups,
        (SELECT count(*) FROM inventory_tokens x WHERE x.team_id = l.team_id AND x.user_id = l.user_id
            AND x.valid_from <= l.seen_gone_at AND (x.valid_to IS NULL OR l.seen_gone_at < x.valid_to)
            AND (x.expires_at IS NULL OR x.expires_at > l.seen_gone_at)) AS tokens
    FROM leaver l
), readable AS (
    SELECT l.team_id, l.seen_gone_at, bool_or(r.part = 'grants') AS grants, bool_or(r.part = 'memberships') AS groups,
        bool_or(r.part = 'tokens') AS tokens
    FROM (SELECT DISTINCT team_id, seen_gone_at FROM leaver) l
        JOIN inventory_reads r ON r.team_id = l.team_id AND r.visible AND r.read_at <= l.seen_gone_at
    GROUP BY ALL
)
SELECT l.team_id, l.user_id, l.email, l.role,
    local_time(l.removed_at, $tz) AS removed_local,
    CASE WHEN l.is_erased THEN 'erasure' WHEN l.told_at IS NULL THEN 'reading of the roster' ELSE 'activity event' END AS removed_known_by,
    local_time(a.last_at, $tz) AS last_activity_local,
    round(date_diff('second', l.removed_at, a.last_at) / 3600.0, 1) AS hours_after,
    coalesce(a.sessions, 0) AS sessions_after, coalesce(a.changes, 0) AS changes_after,
    CASE WHEN r.grants > 0 OR k.grants THEN r.grants END AS residual_grants,
    CASE WHEN r.groups > 0 OR k.groups THEN r.groups END AS residual_groups,
    CASE WHEN r.tokens > 0 OR k.tokens THEN r.tokens END AS live_tokens,
    CASE WHEN l.is_erased THEN NULL WHEN a.last_at IS NOT NULL THEN 'critical' WHEN r.grants + r.groups > 0 THEN 'high'
        WHEN r.tokens > 0 THEN 'low' END AS severity,
    l.removed_at, a.last_at AS last_activity_at
FROM leaver l JOIN residue r USING (team_id, user_id, seen_gone_at)
    LEFT JOIN readable k USING (team_id, seen_gone_at)
    LEFT JOIN acted a USING (team_id, user_id, seen_gone_at)
WHERE l.removed_at >= $from OR l.seen_gone_at >= $from OR a.last_at IS NOT NULL
ORDER BY l.removed_at, l.team_id, l.user_id;

-- chart rows
SELECT removed_local, coalesce(hours_after, 0) AS hours_after,
    CASE WHEN hours_after IS NULL THEN 'none after the removal' ELSE 'after the removal' END AS activity
FROM report ORDER BY 1, 2, 3;
