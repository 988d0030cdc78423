-- id: R19
-- title: Third parties
-- question: Which outsiders connected, to which computers, for how long, and inside the agreed window?
-- controls: PCI DSS 8.2.7; SOC 2 CC9.2; ISO 27001 A.5.19; NIS2 11.2.2(d)
-- param: own_domains list = null | email domains of your own people; without a value: the domain that most people on the team's roster have
-- param: approved_from date = null | when the agreed window begins; without a value: any time
-- param: approved_to date = null | when the agreed window ends
-- chart: columns x=month_local y=hours series=domain | Hours of third parties, by month
-- severity: column
-- note: a third party is a peer whose email domain is neither one of own_domains nor a subdomain of one; the column own says which domains the report used; 'not yet read' in own: no reading of the roster up to the period's end shows an email address, and own_domains names none, so nobody can tell outsiders
-- note: R04 lists peers without an email; hours sums the sessions whose beginning and end are known; a computer without an id in its events counts by its host name
-- note: the service has no agreed windows: if you give one as parameters, sessions outside it are detections
WITH roster AS (
    SELECT team_id, lower(trim(regexp_extract(email, '@([^@]*)$', 1))) AS domain, count(DISTINCT user_id) AS people
    FROM inventory_users
    WHERE valid_from < $to AND (valid_to IS NULL OR valid_to >= $from) AND contains(email, '@')
        AND ($team IS NULL OR team_id = $team)
    GROUP BY ALL
), given AS (
    SELECT list_filter(list_transform(coalesce(from_json($own_domains, '["VARCHAR"]'), []), lambda d: lower(ltrim(trim(d), '@'))),
        lambda d: d <> '') AS domains
), own AS (
    SELECT t.team_id, CASE WHEN len(any_value(g.domains)) > 0 THEN any_value(g.domains)
        WHEN count(r.domain) > 0 THEN [arg_max(r.domain, (r.people, r.domain))] END AS domains
    FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads) t
        CROSS JOIN given g LEFT JOIN roster r ON r.team_id = t.team_id
    WHERE $team IS NULL OR t.team_id = $team
    GROUP BY t.team_id
), visit AS (
    SELECT s.team_id, s.first_event_at, s.duration_ms, s.device_id, s.outcome, lower(trim(s.peer_email)) AS peer,
        lower(trim(regexp_extract(s.peer_email, '@([^@]*)$', 1))) AS domain,
        o.domains AS own, coalesce(s.device_id, s.computer_host_name) AS computer
    FROM sessions s JOIN own o ON o.team_id = s.team_id
    WHERE s.first_event_at >= $from AND s.first_event_at < $to AND ($team IS NULL OR s.team_id = $team)
        AND nullif(trim(s.peer_email), '') IS NOT NULL
), outside AS (
    SELECT * FROM visit
    WHERE own IS NOT NULL AND len(list_filter(own, lambda d: domain = d OR ends_with(domain, '.' || d))) = 0
)
SELECT team_id, nullif(domain, '') AS domain, peer AS peer_email, count(DISTINCT computer) AS computers,
    string_agg(DISTINCT device_id, ', ' ORDER BY device_id) AS device_ids, count(*) AS sessions,
    count(*) FILTER (WHERE outcome IN ('ended', 'open', 'closed_only')) AS reached,
    local_time(min(first_event_at), $tz) AS first_local, local_time(max(first_event_at), $tz) AS last_local,
    round(coalesce(sum(duration_ms), 0) / 3600000.0, 2) AS hours,
    count(*) FILTER (WHERE first_event_at < $approved_from OR first_event_at >= $approved_to) AS outside_window,
    array_to_string(any_value(own), ', ') AS own,
    CASE WHEN count(*) FILTER (WHERE first_event_at < $approved_from OR first_event_at >= $approved_to) > 0 THEN 'medium' END AS severity
FROM outside
GROUP BY team_id, domain, peer
UNION ALL
SELECT team_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'not yet read', NULL FROM own WHERE domains IS NULL
ORDER BY team_id, domain, peer_email;

-- chart rows
WITH third AS (SELECT DISTINCT team_id, peer_email, coalesce(domain, 'no domain') AS domain FROM report WHERE peer_email IS NOT NULL),
most AS (SELECT coalesce(domain, 'no domain') AS domain FROM report WHERE peer_email IS NOT NULL GROUP BY 1 ORDER BY sum(hours) DESC, 1 LIMIT 7)
SELECT date_trunc('month', local_time(s.first_event_at, $tz)) AS month_local,
    CASE WHEN t.domain IN (SELECT domain FROM most) THEN t.domain ELSE 'all others' END AS domain,
    round(coalesce(sum(s.duration_ms), 0) / 3600000.0, 2) AS hours
FROM sessions s JOIN third t ON t.team_id = s.team_id AND t.peer_email = lower(trim(s.peer_email))
WHERE s.first_event_at >= $from AND s.first_event_at < $to AND ($team IS NULL OR s.team_id = $team)
GROUP BY 1, 2 ORDER BY 1, 2;
