-- id: R13
-- title: Tokens
-- question: Which sign-in tokens and API credentials are stale, never expire, or belong to people who left?
-- controls: PCI DSS 7.2.5.1; NIST 800-53 AC-2(3); ISO 27001 A.5.17
-- param: expiring_days integer from 0 to 36500 = 30 | the report lists a token that expires within this many days
-- param: stale_days integer from 0 to 36500 = 90 | the report lists a token that nobody has used for this many days
-- chart: timeline start=start_local end=end_local lane=token series=state | At most 24 tokens, detections first: from the first reading that showed them to their end
-- severity: column
-- note: the tokens in each person's sign-in details at --as-of (by default the period's end); the service shows no token id and never the token itself
-- note: state: endless (it never expires), expired, expiring (within expiring_days), stale (no use for stale_days, or no use at all although the archive holds a reading that showed it that long ago; an expired token is not stale too), owner left (the owner is not on the roster any more; the row shows the last reading before that), owner erased (`annals erase` replaced the id of an owner on the roster: no later reading shows the pseudonym, so nobody can tell whether the owner left, and the row is no detection); a token can have several states
-- note: expiry unknown, use unknown: the archive holds no such time of the token, and the service sent the team one that Annals cannot read (the finding unknown_field in R23 counts such values), so nobody can tell whether the token is endless or stale
-- note: 'not yet read' in state: Annals had not read the team's tokens at that moment, or its token may not read them
WITH token AS (
    SELECT * FROM inventory_tokens
    WHERE valid_from <= $as_of AND (valid_to IS NULL OR $as_of < valid_to) AND ($team IS NULL OR team_id = $team)
), known AS (
    SELECT team_id, user_id, token_key, min(valid_from) AS known_at FROM inventory_tokens
    WHERE $team IS NULL OR team_id = $team GROUP BY ALL
), owner AS (
    SELECT team_id, user_id, arg_max(email, valid_from) AS email, arg_max(role, valid_from) AS role,
        bool_or(valid_to IS NULL OR $as_of < valid_to) AS is_there, max(valid_to) AS gone_at
    FROM inventory_users WHERE valid_from <= $as_of AND ($team IS NULL OR team_id = $team) GROUP BY ALL
), erased AS (
    -- The last reading before the owner was gone is from before an erasure.
    SELECT team_id, user_id FROM owner o
    WHERE NOT is_there AND regexp_matches(user_id, '^erased-[0-9a-f]{32}$') AND EXISTS (
        SELECT 1 FROM erasures e WHERE e.team_id = o.team_id AND e.dataset = 'inventory_users' AND e.erased_at <= o.gone_at
            AND e.erased_at > (SELECT max(r.read_at) FROM inventory_reads r WHERE r.team_id = o.team_id
                AND r.part = 'users' AND r.visible AND r.read_at < o.gone_at))
), unreadable AS (
    SELECT team_id, bool_or(starts_with(subject, 'info.tokenLog.expiresAt: ')) AS expiry, bool_or(starts_with(subject, 'info.tokenLog.lastUsed: ')) AS use
    FROM findings WHERE kind = 'unknown_field' GROUP BY team_id
), aged AS (
    SELECT t.team_id, t.user_id, o.email, o.role, t.token_key, t.title, t.scopes, t.last_used_at, t.last_used_ip,
        t.expires_at, k.known_at, e.user_id IS NOT NULL AS is_erased,
        NOT coalesce(o.is_there, false) AND NOT is_erased AS owner_left,
        t.expires_at IS NULL AND coalesce(x.expiry, false) AS is_end_unknown, t.last_used_at IS NULL AND coalesce(x.use, false) AS is_use_unknown,
        date_sub('day', k.known_at, least($as_of, $now)) AS days_known,
        date_sub('day', t.last_used_at, least($as_of, $now)) AS days_unused
    FROM token t JOIN known k USING (team_id, user_id, token_key) LEFT JOIN owner o USING (team_id, user_id)
        LEFT JOIN erased e USING (team_id, user_id) LEFT JOIN unreadable x ON x.team_id = t.team_id
), state AS (
    SELECT *, expires_at <= least($as_of, $now) AS is_expired, expires_at IS NULL AND NOT is_end_unknown AS is_endless,
        expires_at > least($as_of, $now)
            AND expires_at < least($as_of, $now) + to_days($expiring_days::INTEGER) AS is_expiring,
        NOT is_use_unknown AND coalesce(days_unused, days_known) > $stale_days AS is_stale
    FROM aged
), unread AS (
    SELECT team_id FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads)
    WHERE ($team IS NULL OR team_id = $team) AND team_id NOT IN (
        SELECT team_id FROM inventory_reads WHERE part = 'tokens' AND visible AND read_at <= $as_of)
)
SELECT team_id, user_id, email AS owner, role, title, array_to_string(TRY(from_json(scopes, '["VARCHAR"]')), ', ') AS scopes,
    coalesce(nullif(concat_ws(', ', CASE WHEN owner_left THEN 'owner left' END, CASE WHEN is_erased THEN 'owner erased' END, CASE WHEN is_endless THEN 'endless' END, CASE WHEN is_end_unknown THEN 'expiry unknown' END,
        CASE WHEN is_expired THEN 'expired' END, CASE WHEN is_expiring THEN 'expiring' END,
        CASE WHEN is_stale AND NOT coalesce(is_expired, false) THEN 'stale' END, CASE WHEN is_use_unknown THEN 'use unknown' END), ''), 'ok') AS state,
    days_unused, local_time(last_used_at, $tz) AS last_used_local, last_used_ip,
    local_time(expires_at, $tz) AS expires_local, local_time(known_at, $tz) AS first_read_local,
    CASE WHEN is_erased THEN NULL WHEN is_expired THEN 'info' WHEN owner_left OR is_endless OR is_stale THEN 'medium'
        WHEN is_expiring OR is_end_unknown OR is_use_unknown THEN 'low' END AS severity,
    last_used_at, expires_at, token_key
FROM state
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, 'not yet read', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM unread
ORDER BY team_id, owner, user_id, title, token_key;

-- chart rows
SELECT concat_ws(' / ', coalesce(owner, user_id), title) AS token, state, first_read_local AS start_local,
    coalesce(expires_local, greatest(local_time($as_of, $tz), first_read_local) + INTERVAL 90 DAYS) AS end_local
FROM report WHERE user_id IS NOT NULL
    AND coalesce(expires_local, local_time($as_of, $tz)) >= first_read_local
ORDER BY severity IS NULL, 4 DESC, 1, 3 LIMIT 24;
