-- id: R21
-- title: Dossier
-- question: What does the archive hold about one person or one computer?
-- controls: GDPR 15; NIST 800-53 AU-7; ISO 27001 A.5.28
-- param: subject text | an email address or user id, or a computer's id or name
-- param: aliases list = null | further addresses, ids or local user names that mean the same subject
-- chart: dots x=time_local y=source series=role | Rows about the subject, over time
-- note: the report searches for the subject's id, and for every email address or name that the roster ever gave that id, in connections, activity, billing and quarantine, in every part of the roster and in the reviews
-- note: for an answer under GDPR article 15, choose a period from the archive's beginning; held is the archived text, or the columns where the archive did not keep the text, and may name other people
-- note: the report does not list sessions, because they derive from connection events (R01 shows them); it lists an event of a connection only if that event itself holds one of the values
-- note: in a quarantined event that is not JSON, and in the reason of a quarantined event, a whole word counts too
-- note: an address or id counts only if it is a whole column or a whole JSON string of the event's text, as a value or a key, in any spelling, and in JSON text inside a string (up to two texts deep); `annals erase` finds the same rows if you give it each of these values
WITH given AS (
    SELECT one_spelling($subject) AS term
    UNION SELECT one_spelling(unnest(from_json($aliases, '["VARCHAR"]')))
), user_of AS (
    SELECT DISTINCT team_id, user_id FROM inventory_users
    WHERE (one_spelling(user_id) IN (FROM given) OR one_spelling(email) IN (FROM given)) AND ($team IS NULL OR team_id = $team)
    UNION SELECT team_id, user_id FROM inventory_sso_users
    WHERE (one_spelling(user_id) IN (FROM given) OR one_spelling(email) IN (FROM given)) AND ($team IS NULL OR team_id = $team)
), computer_of AS (
    SELECT DISTINCT team_id, device_id FROM inventory_computers
    WHERE (one_spelling(device_id) IN (FROM given) OR one_spelling(name) IN (FROM given)) AND ($team IS NULL OR team_id = $team)
), term AS (
    SELECT term FROM given
    UNION SELECT one_spelling(user_id) FROM user_of
    UNION SELECT one_spelling(u.email) FROM inventory_users u JOIN user_of USING (team_id, user_id) WHERE one_spelling(u.email) <> ''
    UNION SELECT one_spelling(u.email) FROM inventory_sso_users u JOIN user_of USING (team_id, user_id) WHERE one_spelling(u.email) <> ''
    UNION SELECT one_spelling(device_id) FROM computer_of
    UNION SELECT one_spelling(c.name) FROM inventory_computers c JOIN computer_of USING (team_id, device_id) WHERE one_spelling(c.name) <> ''
), texts AS (
    SELECT team_id, event_time, 'activity' AS source, event_type, event_id, coalesce(raw, token_info) AS raw, token_info, NULL AS words, []::VARCHAR[] AS columns FROM activity
    WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team)
    UNION ALL
    SELECT team_id, event_time, 'billing', event_type, event_id, raw, NULL, NULL, [] FROM billing
    WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team)
    UNION ALL
    SELECT team_id, coalesce(event_time, first_seen_at), 'quarantine', reason, event_id, raw, NULL,
        concat_ws(' ', detail, CASE WHEN NOT json_valid(raw) THEN raw END), [] FROM quarantine
    WHERE coalesce(event_time, first_seen_at) >= $from AND coalesce(event_time, first_seen_at) < $to
        AND ($team IS NULL OR team_id = $team)
    UNION ALL
    SELECT team_id, event_time, 'connections', event_type, event_id, coalesce(raw, to_json(c)::VARCHAR), NULL, NULL,
        [peer_email, peer_ip, direct_ip, device_id, computer_host_name, local_user_name, connection_id, tunnel_id, failure_reason]
    FROM connections c WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team)
), told AS (
    SELECT *, [one_spelling(x) FOR x IN json_strings(raw)] AS strings,
        [one_spelling(x) FOR x IN json_strings(token_info)] AS actor_strings
    FROM (SELECT * REPLACE ([one_spelling(x) FOR x IN columns] AS columns) FROM texts)
), word_of AS (
    -- As in `annals erase`: a dot within a word is part of it. An address is a word in each of its spellings.
    SELECT DISTINCT q.team_id, q.event_id, q.event_time FROM told q JOIN term t ON t.term <> '' AND (
        regexp_matches(one_spelling(q.words), concat('(^|[^0-9A-Za-z_.\x{80}-\x{10FFFF}-]|(^|[^0-9A-Za-z_\x{80}-\x{10FFFF}-])[.])', regexp_escape(t.term),
            '($|[^0-9A-Za-z_.\x{80}-\x{10FFFF}-]|[.]($|[^0-9A-Za-z_\x{80}-\x{10FFFF}-]))'))
        OR list_contains([one_spelling(x) FOR x IN regexp_extract_all(q.words, '[0-9A-Fa-f]*:[0-9A-Fa-f:.]*[0-9A-Fa-f:]')], t.term))
    WHERE q.words <> ''
), entry AS (
    SELECT team_id, valid_from, valid_to, 'inventory_users' AS source, user_id AS what, to_json(x) AS held, [user_id, email, first_name, last_name, auth_providers, annotations] AS texts FROM inventory_users x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_sso_users', user_id, to_json(x), [user_id, email, first_name, last_name] FROM inventory_sso_users x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_sign_in', user_id, to_json(x), [user_id, auth_providers] FROM inventory_sign_in x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_tokens', user_id, to_json(x), [user_id, token_key, title, scopes, last_used_ip] FROM inventory_tokens x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_computers', device_id, to_json(x), [device_id, name, tags, annotations, os_hostname, os_platform, os_version] FROM inventory_computers x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_groups', group_id, to_json(x), [group_id, name, annotations] FROM inventory_groups x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_memberships', group_id, to_json(x), [group_id, member_id] FROM inventory_memberships x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_grants', device_id, to_json(x), [device_id, grantee_id] FROM inventory_grants x WHERE $team IS NULL OR team_id = $team
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_team', team_id, to_json(x), [name, plan_features] FROM inventory_team x WHERE $team IS NULL OR team_id = $team
), version AS (
    SELECT team_id, valid_from, valid_to, 'inventory_users' AS source, user_id AS what, to_json(x) AS held FROM inventory_users x SEMI JOIN user_of USING (team_id, user_id)
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_sso_users', user_id, to_json(x) FROM inventory_sso_users x SEMI JOIN user_of USING (team_id, user_id)
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_sign_in', user_id, to_json(x) FROM inventory_sign_in x SEMI JOIN user_of USING (team_id, user_id)
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_tokens', user_id, to_json(x) FROM inventory_tokens x SEMI JOIN user_of USING (team_id, user_id)
    UNION ALL SELECT team_id, valid_from, valid_to, 'inventory_computers', device_id, to_json(x) FROM inventory_computers x SEMI JOIN computer_of USING (team_id, device_id)
    UNION ALL SELECT x.team_id, valid_from, valid_to, 'inventory_memberships', group_id, to_json(x) FROM inventory_memberships x
        WHERE EXISTS (SELECT 1 FROM user_of u WHERE u.team_id = x.team_id AND x.member_kind = 'user' AND u.user_id = x.member_id)
            OR EXISTS (SELECT 1 FROM computer_of c WHERE c.team_id = x.team_id AND x.member_kind = 'computer' AND c.device_id = x.member_id)
    UNION ALL SELECT x.team_id, valid_from, valid_to, 'inventory_grants', device_id, to_json(x) FROM inventory_grants x
        WHERE EXISTS (SELECT 1 FROM user_of u WHERE u.team_id = x.team_id AND x.grantee_kind = 'user' AND u.user_id = x.grantee_id)
            OR EXISTS (SELECT 1 FROM computer_of c WHERE c.team_id = x.team_id AND c.device_id = x.device_id)
    -- A value can also be in a row about something else, such as the last address of a token. UNION drops the rows found before.
    UNION SELECT team_id, valid_from, valid_to, source, what, held FROM entry
    WHERE list_has_any([one_spelling(x) FOR x IN list_concat(texts, flatten([json_strings(y) FOR y IN texts IF contains(y, '"')]))], (SELECT list(term) FROM term))
), held AS (
    SELECT team_id, event_time AS held_at, NULL::TIMESTAMP AS until_at, source,
        CASE WHEN source <> 'connections' THEN CASE WHEN list_has_any(actor_strings, (SELECT list(term) FROM term)) THEN 'actor' ELSE 'named' END
            WHEN list_has_any(columns[1:3], (SELECT list(term) FROM term)) THEN 'peer'
            WHEN list_has_any(columns[4:5], (SELECT list(term) FROM term)) THEN 'computer'
            WHEN list_has_any(columns[6:6], (SELECT list(term) FROM term)) THEN 'local user' ELSE 'named' END AS role,
        event_type AS what, event_id AS id, raw AS held
    FROM told
    WHERE list_has_any(strings, (SELECT list(term) FROM term)) OR list_has_any(columns, (SELECT list(term) FROM term))
        OR (source = 'quarantine' AND (team_id, event_id, event_time) IN (FROM word_of))
    UNION ALL
    SELECT team_id, valid_from, valid_to, source, 'roster', what, NULL, held::VARCHAR FROM version
    WHERE valid_from < $to AND (valid_to IS NULL OR valid_to >= $from)
    UNION ALL
    SELECT team_id, reviewed_at, NULL, 'reviews', 'reviewer', outcome, ticket, to_json(r)::VARCHAR FROM reviews r
    WHERE reviewed_at >= $from AND reviewed_at < $to AND ($team IS NULL OR team_id = $team) AND one_spelling(reviewer) IN (FROM term)
)
SELECT team_id, local_time(held_at, $tz) AS time_local, local_time(until_at, $tz) AS until_local, source, role, what, id, held,
    held_at AS time_at
FROM held
ORDER BY held_at, team_id, source, role, what, id, held;

-- chart rows
WITH row_of AS (
    SELECT *, (epoch_us(time_at) - epoch_us(min(time_at) OVER ())) / greatest(1, epoch_us(max(time_at) OVER ()) - epoch_us(min(time_at) OVER ())) AS share
    FROM report
)
-- A report can have more rows than a chart reads, so one mark stands for all equal ones of a short time.
SELECT min(time_local) AS time_local, source, role FROM row_of GROUP BY source, role, floor(share * 400) ORDER BY 1, 2, 3;
