-- id: R10
-- title: Second-factor coverage
-- question: Who could sign in without a second factor?
-- controls: PCI DSS 8.4.2, 8.4.3; NIST 800-53 AC-17, IA-2(1); NIS2 21(2)(j); ISO 27001 A.8.5
-- param: password_words list = password,email | words in a sign-in method that mean a password of this service
-- param: privileged_roles list = admin,admin-read-only | roles for which a missing second factor is more severe
-- chart: step x=time_local y=people series=verdict | People by second factor, over the period
-- severity: column
-- note: the roster at --as-of (by default the period's end); the later reading decides, of the roster or of the sign-in details; an empty list of sign-in methods decides nothing while the other names one
-- note: while a reading of the sign-in details is not complete, a newer row of the roster decides, even if that reading has already shown a person's details again unchanged
-- note: PASS: the service's own second factor is on. FAIL: it is off, and the person signs in with a password or the service names no sign-in method. UNKNOWN: the person signs in through an identity provider only (only the provider knows whether it asks for a second factor), or the service does not say
-- note: a person with a password, an identity provider and no second factor is a FAIL, because the password alone is enough to sign in
-- note: turned_off_local is the first reading in the period that showed the second factor off after it had been on
-- note: 'not yet read': Annals had not read the team's roster at that moment
WITH version AS (
    SELECT team_id, user_id, valid_from, totp_enabled,
        lag(totp_enabled) OVER one_user AS earlier, lag(valid_to) OVER one_user AS earlier_to
    FROM (SELECT team_id, user_id, valid_from, valid_to, totp_enabled, 'users' AS part FROM inventory_users
          UNION ALL SELECT team_id, user_id, valid_from, valid_to, totp_enabled, 'sign_in' FROM inventory_sign_in)
    WHERE $team IS NULL OR team_id = $team
    WINDOW one_user AS (PARTITION BY team_id, user_id, part ORDER BY valid_from)
), turned_off AS (
    SELECT team_id, user_id, max(valid_from) AS moment FROM version
    WHERE valid_from >= $from AND valid_from < $to AND earlier_to = valid_from AND earlier AND NOT totp_enabled
    GROUP BY ALL
), person AS (
    -- The later reading wins: the sign-in details usually come after the roster, but not at each reading.
    SELECT u.team_id, u.user_id, u.email, u.role, u.remote_access,
        CASE WHEN u.valid_from > f.read_at AND coalesce(u.valid_from > i.valid_from, true) THEN coalesce(u.totp_enabled, i.totp_enabled) ELSE coalesce(i.totp_enabled, u.totp_enabled) END AS has_totp,
        coalesce(TRY(from_json(CASE WHEN u.valid_from > f.read_at AND coalesce(u.valid_from > i.valid_from, true) THEN coalesce(nullif(u.auth_providers, '[]'), i.auth_providers)
            ELSE coalesce(nullif(i.auth_providers, '[]'), u.auth_providers) END, '["VARCHAR"]')), []) AS methods,
        o.user_id IS NOT NULL AS is_sso
    FROM inventory_users u
        LEFT JOIN (SELECT team_id, max(read_at) AS read_at FROM inventory_reads
            WHERE part = 'sign_in' AND visible AND read_at <= $as_of GROUP BY team_id) f ON f.team_id = u.team_id
        LEFT JOIN inventory_sign_in i ON i.team_id = u.team_id AND i.user_id = u.user_id
            AND i.valid_from <= $as_of AND (i.valid_to IS NULL OR $as_of < i.valid_to)
        LEFT JOIN inventory_sso_users o ON o.team_id = u.team_id AND o.user_id = u.user_id
            AND o.valid_from <= $as_of AND (o.valid_to IS NULL OR $as_of < o.valid_to)
    WHERE u.valid_from <= $as_of AND (u.valid_to IS NULL OR $as_of < u.valid_to) AND ($team IS NULL OR u.team_id = $team)
), judged AS (
    SELECT *, len(list_filter(methods, lambda m: len(list_filter(from_json($password_words, '["VARCHAR"]'),
            lambda w: contains(lower(m), lower(w)))) > 0)) > 0 AS has_password,
        role IN (SELECT unnest(from_json($privileged_roles, '["VARCHAR"]'))) AS is_privileged
    FROM person
), verdict AS (
    SELECT *,
        CASE WHEN has_totp THEN 'PASS' WHEN has_totp IS NULL THEN 'UNKNOWN' WHEN has_password THEN 'FAIL'
            WHEN len(methods) = 0 AND NOT is_sso THEN 'FAIL' ELSE 'UNKNOWN' END AS verdict,
        CASE WHEN has_totp THEN 'second factor on'
            WHEN has_totp IS NULL THEN 'the service does not say whether it is on'
            WHEN has_password AND (is_sso OR len(methods) > 1) THEN 'off, and a password beside an identity provider'
            WHEN has_password THEN 'off, and a password'
            WHEN len(methods) = 0 AND NOT is_sso THEN 'off, and no identity provider'
            ELSE 'identity provider alone' END AS why
    FROM judged
), unread AS (
    SELECT team_id FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads)
    WHERE ($team IS NULL OR team_id = $team) AND team_id NOT IN (
        SELECT team_id FROM inventory_reads WHERE part = 'users' AND visible AND read_at <= $as_of)
)
SELECT * FROM (
SELECT v.team_id, v.user_id, v.email, v.role, v.remote_access, v.has_totp AS totp_enabled,
    array_to_string(list_sort(v.methods), ', ') AS sign_in_methods, v.verdict, v.why,
    local_time(t.moment, $tz) AS turned_off_local,
    CASE WHEN v.verdict = 'FAIL' AND (v.is_privileged OR t.moment IS NOT NULL) THEN 'high'
        WHEN v.verdict = 'FAIL' AND v.remote_access IS DISTINCT FROM 'disabled' THEN 'medium'
        WHEN v.verdict = 'FAIL' OR t.moment IS NOT NULL THEN 'low' END AS severity
FROM verdict v LEFT JOIN turned_off t ON t.team_id = v.team_id AND t.user_id = v.user_id
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, NULL, 'not yet read', 'the roster was not read before that moment', NULL, NULL
FROM unread
)
ORDER BY team_id, CASE verdict WHEN 'FAIL' THEN 0 WHEN 'UNKNOWN' THEN 1 WHEN 'PASS' THEN 2 ELSE 3 END, email, user_id;

-- chart rows
WITH day AS (
    SELECT unnest(generate_series($from, least($to, $now), to_seconds(greatest(86400,
        date_diff('second', $from, $to) // 50)))) AS moment
), person AS (
    SELECT d.moment,
        CASE WHEN u.valid_from > f.read_at AND coalesce(u.valid_from > i.valid_from, true) THEN coalesce(u.totp_enabled, i.totp_enabled) ELSE coalesce(i.totp_enabled, u.totp_enabled) END AS has_totp,
        coalesce(TRY(from_json(CASE WHEN u.valid_from > f.read_at AND coalesce(u.valid_from > i.valid_from, true) THEN coalesce(nullif(u.auth_providers, '[]'), i.auth_providers)
            ELSE coalesce(nullif(i.auth_providers, '[]'), u.auth_providers) END, '["VARCHAR"]')), []) AS methods,
        o.user_id IS NOT NULL AS is_sso
    FROM day d JOIN inventory_users u ON u.valid_from <= d.moment AND (u.valid_to IS NULL OR d.moment < u.valid_to)
        LEFT JOIN (SELECT d.moment, r.team_id, max(r.read_at) AS read_at FROM day d JOIN inventory_reads r
            ON r.part = 'sign_in' AND r.visible AND r.read_at <= d.moment GROUP BY ALL) f ON f.team_id = u.team_id AND f.moment = d.moment
        LEFT JOIN inventory_sign_in i ON i.team_id = u.team_id AND i.user_id = u.user_id
            AND i.valid_from <= d.moment AND (i.valid_to IS NULL OR d.moment < i.valid_to)
        LEFT JOIN inventory_sso_users o ON o.team_id = u.team_id AND o.user_id = u.user_id
            AND o.valid_from <= d.moment AND (o.valid_to IS NULL OR d.moment < o.valid_to)
    WHERE $team IS NULL OR u.team_id = $team
), verdict AS (
    SELECT moment, CASE WHEN has_totp THEN 'PASS' WHEN has_totp IS NULL THEN 'UNKNOWN'
        WHEN len(list_filter(methods, lambda m: len(list_filter(from_json($password_words, '["VARCHAR"]'),
            lambda w: contains(lower(m), lower(w)))) > 0)) > 0 THEN 'FAIL'
        WHEN len(methods) = 0 AND NOT is_sso THEN 'FAIL' ELSE 'UNKNOWN' END AS verdict
    FROM person
)
-- A verdict without people has a row of its own, because a step keeps the last number.
SELECT local_time(m.moment, $tz) AS time_local, k.verdict, count(v.verdict) AS people
FROM (SELECT DISTINCT moment FROM verdict) m CROSS JOIN (SELECT DISTINCT verdict FROM verdict) k
    LEFT JOIN verdict v ON v.moment = m.moment AND v.verdict = k.verdict
GROUP BY 1, 2 ORDER BY 1, 2;
