-- id: R09
-- title: Privileged users
-- question: How many administrators are there, since when, and what did they do?
-- controls: ISO 27001 A.8.2; NIST 800-53 AC-6(9); PCI DSS 10.2.1.2; NIS2 11.3.3
-- param: roles list = admin,admin-read-only | the roles that count as privileged
-- param: grant_words list = role,admin,added,joined,created,changed,updated,modified | words in an event's type that may mean a new role
-- param: login_words list = logged,login,signin,signedin | words in the types of events that are no administrative actions
-- param: password_words list = password,email | words in a sign-in method that mean a password of this service
-- param: lookback duration to 36500d = 366d | how far back the report looks for the event that gave the role
-- chart: step x=time_local y=people series=role | Privileged users over time
-- severity: column
-- note: one row for each span of time in which a person held a privileged role during the period; since_known is 'at or before' if the person had the role at the first reading of the roster that the archive holds
-- note: granted_by is the actor, named as in R20, of the last event between two readings that names the person and whose type contains one of grant_words; the service documents four event types only
-- note: actions counts the period's activity events other than logins whose tokenInfo names the person's id or an email address that the person had then; an event without tokenInfo counts for nobody; they count from the first event that may have given the role, otherwise from the reading that showed it; for 'at or before' the actions before that first reading count too
-- note: while a reading of the sign-in details is not complete, a newer row of the roster decides, even if that reading has already shown a person's details again unchanged
-- note: second_factor has the meaning of R10: UNKNOWN if the person signs in through an identity provider
-- note: 'not yet read' in since_known: Annals had not read the team's roster before the period's end, so nothing is known
WITH held AS (
    SELECT *, lag(role) OVER one_user AS earlier_role, lag(valid_to) OVER one_user AS earlier_to
    FROM inventory_users WHERE $team IS NULL OR team_id = $team
    WINDOW one_user AS (PARTITION BY team_id, user_id ORDER BY valid_from)
), island AS (
    SELECT *, sum(CASE WHEN role IS NOT DISTINCT FROM earlier_role AND earlier_to = valid_from THEN 0 ELSE 1 END)
        OVER (PARTITION BY team_id, user_id ORDER BY valid_from) AS island
    FROM held
), span AS (
    -- Later versions say only when the role ended.
    SELECT team_id, user_id, role, min(valid_from) AS since_at,
        CASE WHEN bool_or(valid_to IS NULL) THEN NULL ELSE max(valid_to) END AS until_at, max(valid_from) FILTER (WHERE valid_from < $to) AS shown_at,
        arg_max(email, valid_from) FILTER (WHERE valid_from < $to) AS email,
        arg_max(remote_access, valid_from) FILTER (WHERE valid_from < $to) AS remote_access,
        arg_max(coalesce(auth_providers, '[]'), valid_from) FILTER (WHERE valid_from < $to) AS providers,
        arg_max(totp_enabled, valid_from) FILTER (WHERE valid_from < $to) AS totp
    FROM island
    WHERE role IN (SELECT unnest(from_json($roles, '["VARCHAR"]')))
    GROUP BY team_id, user_id, role, island
    HAVING since_at < $to AND (until_at IS NULL OR until_at > $from)
), spelling AS (
    -- What the roster ever called a person: the id, and each address.
    SELECT team_id, user_id, user_id AS term, NULL AS held_from, NULL AS held_to FROM span
    UNION SELECT team_id, user_id, email, held_from, held_to FROM inventory_addresses SEMI JOIN span USING (team_id, user_id)
), reading AS (
    SELECT team_id, read_at, lag(read_at) OVER (PARTITION BY team_id ORDER BY read_at) AS before_at
    FROM inventory_reads WHERE part = 'users' AND visible AND ($team IS NULL OR team_id = $team)
), act AS (
    SELECT team_id, event_id, event_time, event_type, token_info, payload,
        EXISTS (SELECT 1 FROM (SELECT unnest(from_json($grant_words, '["VARCHAR"]')) AS word)
            WHERE contains(lower(event_type), lower(word))) AS may_grant
    FROM activity
    WHERE event_time >= $from - to_seconds($lookback) AND event_time < $to AND ($team IS NULL OR team_id = $team)
        AND NOT EXISTS (SELECT 1 FROM (SELECT unnest(from_json($login_words, '["VARCHAR"]')) AS word)
            WHERE contains(lower(event_type), lower(word)))
), target AS (
    SELECT team_id, event_id, event_time, token_info,
        unnest(list_distinct(json_strings(payload))) AS term
    FROM act WHERE may_grant
), given AS (
    SELECT s.team_id, s.user_id, s.since_at, min(t.event_time) AS first_at, max(t.event_time) AS event_time,
        arg_max(t.token_info, (t.event_time, t.event_id)) AS token_info
    FROM span s JOIN reading r ON r.team_id = s.team_id AND r.read_at = s.since_at
        JOIN spelling n ON n.team_id = s.team_id AND n.user_id = s.user_id
        JOIN target t ON t.team_id = s.team_id AND (t.term = n.term OR lower(trim(t.term)) = n.term)
            AND t.event_time <= s.since_at AND t.event_time > r.before_at
    GROUP BY ALL
), given_by AS (
    SELECT *, unnest(json_strings(token_info)) AS term FROM given
), giver AS (
    -- As in R20: an address is the person who had it then, and a person is called by the newest address.
    SELECT g.team_id, g.user_id, g.since_at, string_agg(n.label, ', ' ORDER BY n.label) AS giver
    FROM (SELECT t.team_id, t.user_id, t.since_at, u.user_id AS giver_id FROM given_by t JOIN inventory_users u ON u.team_id = t.team_id AND u.user_id = t.term
          UNION
          SELECT t.team_id, t.user_id, t.since_at, h.user_id FROM given_by t JOIN inventory_addresses h ON h.team_id = t.team_id AND h.email = lower(trim(t.term))
              AND (h.held_from IS NULL OR h.held_from <= t.event_time) AND (h.held_to IS NULL OR t.event_time < h.held_to)) g
        JOIN (SELECT team_id, user_id, arg_max(coalesce(email, user_id), valid_from) AS label FROM inventory_users GROUP BY ALL) n
            ON n.team_id = g.team_id AND n.user_id = g.giver_id
    GROUP BY ALL
), actor AS (
    SELECT team_id, event_id, event_time,
        unnest(list_distinct(json_strings(token_info))) AS term
    FROM act WHERE event_time >= $from AND token_info IS NOT NULL
), acted AS (
    SELECT s.team_id, s.user_id, s.since_at, count(DISTINCT a.event_id) AS actions, max(a.event_time) AS last_at
    FROM span s LEFT JOIN reading r ON r.team_id = s.team_id AND r.read_at = s.since_at
        LEFT JOIN given g ON g.team_id = s.team_id AND g.user_id = s.user_id AND g.since_at = s.since_at
        JOIN spelling n ON n.team_id = s.team_id AND n.user_id = s.user_id
        JOIN actor a ON a.team_id = s.team_id AND (a.term = n.term OR lower(trim(a.term)) = n.term)
        AND (r.before_at IS NULL OR a.event_time >= coalesce(g.first_at, s.since_at)) AND (s.until_at IS NULL OR a.event_time < s.until_at)
    -- An address that passed to somebody else is that person's.
    WHERE (n.held_from IS NULL OR n.held_from <= a.event_time) AND (n.held_to IS NULL OR a.event_time < n.held_to)
    GROUP BY ALL
), sign_in AS (
    -- The later reading wins, of the roster or of the sign-in details. A reading of the details can be cut.
    SELECT s.team_id, s.user_id, s.since_at, i.totp_enabled, i.auth_providers, s.shown_at > (
        SELECT max(read_at) FROM inventory_reads f WHERE f.team_id = s.team_id AND f.part = 'sign_in' AND f.visible
            AND f.read_at < least($to, coalesce(s.until_at, $to))) AND s.shown_at > i.valid_from AS roster_is_later
    FROM span s JOIN inventory_sign_in i ON i.team_id = s.team_id AND i.user_id = s.user_id
        AND i.valid_from < least($to, coalesce(s.until_at, $to))
        AND (i.valid_to IS NULL OR least($to, coalesce(s.until_at, $to)) <= i.valid_to)
), factor AS (
    SELECT s.*, CASE WHEN i.roster_is_later THEN coalesce(s.totp, i.totp_enabled) ELSE coalesce(i.totp_enabled, s.totp) END AS has_totp,
        coalesce(TRY(from_json(CASE WHEN i.roster_is_later THEN coalesce(nullif(s.providers, '[]'), i.auth_providers)
            ELSE coalesce(nullif(i.auth_providers, '[]'), s.providers) END, '["VARCHAR"]')), []) AS methods,
        EXISTS (SELECT 1 FROM inventory_sso_users o WHERE o.team_id = s.team_id AND o.user_id = s.user_id
            AND o.valid_from < $to AND (o.valid_to IS NULL OR $to <= o.valid_to)) AS is_sso
    FROM span s LEFT JOIN sign_in i USING (team_id, user_id, since_at)
), verdict AS (
    SELECT *,
        CASE WHEN has_totp THEN 'PASS'
            WHEN has_totp IS NULL THEN 'UNKNOWN'
            WHEN len(list_filter(methods, lambda m: len(list_filter(from_json($password_words, '["VARCHAR"]'),
                lambda w: contains(lower(m), lower(w)))) > 0)) > 0 THEN 'FAIL'
            WHEN len(methods) = 0 AND NOT is_sso THEN 'FAIL'
            ELSE 'UNKNOWN' END AS second_factor
    FROM factor
)
SELECT s.team_id, s.user_id, s.email, s.role, s.remote_access,
    local_time(s.since_at, $tz) AS since_local,
    CASE WHEN r.before_at IS NULL THEN 'at or before' ELSE 'between two readings' END AS since_known,
    local_time(s.until_at, $tz) AS until_local,
    coalesce(w.giver, g.token_info) AS granted_by, local_time(g.event_time, $tz) AS granted_local,
    coalesce(a.actions, 0) AS actions, local_time(a.last_at, $tz) AS last_action_local, s.second_factor,
    CASE WHEN s.second_factor = 'FAIL' AND coalesce(s.until_at >= $to, true) THEN 'high' END AS severity,
    s.since_at, s.until_at
FROM verdict s
    LEFT JOIN reading r ON r.team_id = s.team_id AND r.read_at = s.since_at
    LEFT JOIN given g ON g.team_id = s.team_id AND g.user_id = s.user_id AND g.since_at = s.since_at
    LEFT JOIN giver w ON w.team_id = s.team_id AND w.user_id = s.user_id AND w.since_at = s.since_at
    LEFT JOIN acted a ON a.team_id = s.team_id AND a.user_id = s.user_id AND a.since_at = s.since_at
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, 'not yet read', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads)
WHERE ($team IS NULL OR team_id = $team) AND team_id NOT IN (SELECT team_id FROM reading WHERE read_at < $to)
ORDER BY team_id, role, email, user_id, since_at;

-- chart rows
WITH step AS (
    SELECT greatest(since_local, local_time($from, $tz)) AS time_local, role, 1 AS people FROM report WHERE role IS NOT NULL
    UNION ALL SELECT until_local, role, -1 FROM report WHERE until_local < local_time($to, $tz)
    UNION ALL SELECT local_time($to, $tz), role, 0 FROM report WHERE role IS NOT NULL
)
SELECT time_local, role, (sum(sum(people)) OVER (PARTITION BY role ORDER BY time_local))::BIGINT AS people
FROM step GROUP BY time_local, role ORDER BY time_local, role;
