-- id: R17
-- title: Shared identities
-- question: Do several people use one identity?
-- controls: PCI DSS 8.2.2; NIS2 11.5.3; ISO 27001 A.5.16
-- param: ips integer from 2 to 1000000 = 2 | the report lists a peer who connects from this many addresses at the same time
-- param: peers integer from 2 to 1000000 = 3 | the report lists an account of a computer that this many peers use
-- chart: heatmap x=other y=identity value=shares | Identities, and the addresses or people that share them
-- severity: medium
-- note: one peer: sessions of one person from that many addresses overlap; a person who uses a telephone and a desk computer looks the same
-- note: one account: a local user name of one computer; a name with a domain (DOMAIN\name, name@domain) is the same account on every computer; a computer without an id in its events counts by its host name
-- note: only sessions that were established or authenticated count, and did not fail to authenticate; shared_by lists every address of the peer's sessions in the period, and shared_by_count says how many were in use at once
-- note: an open session ends here at its last event, so the report can miss an overlap with it; an overlap with a session that began before the period is in R15 only
WITH used AS (
    SELECT team_id, connection_id, first_event_at AS begun_at, coalesce(closed_at, last_event_at) AS end_at,
        nullif(lower(trim(peer_email)), '') AS peer, peer_email, nullif(one_spelling(peer_ip), '') AS peer_ip, device_id, computer_host_name,
        nullif(trim(local_user_name), '') AS account
    FROM sessions
    WHERE first_event_at >= $from AND first_event_at < $to AND ($team IS NULL OR team_id = $team)
        AND outcome IN ('ended', 'open')
), stay AS (
    -- A stay is an unbroken span of one peer at one address. Stays at one address never overlap.
    SELECT team_id, peer, peer_ip, min(begun_at) AS begun_at, max(end_at) AS end_at
    FROM (SELECT *, sum(CASE WHEN begun_at <= latest THEN 0 ELSE 1 END) OVER (
              PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id) AS stay
          FROM (SELECT *, max(end_at) OVER (PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
                FROM used WHERE peer IS NOT NULL AND peer_ip IS NOT NULL))
    GROUP BY team_id, peer, peer_ip, stay
), edge AS (
    SELECT team_id, peer, begun_at, 1 AS step FROM stay
    -- A stay of one event has no length, but it can overlap another stay.
    UNION ALL SELECT team_id, peer, greatest(end_at, begun_at + INTERVAL 1 MICROSECOND), -1 FROM stay
), level AS (
    -- Ends sort before beginnings of the same moment: a stay that follows another does not overlap it.
    SELECT team_id, peer, begun_at, step, sum(step) OVER (PARTITION BY team_id, peer ORDER BY begun_at, step
        ROWS UNBOUNDED PRECEDING) AS open_ips
    FROM edge
), crowded AS (
    SELECT team_id, peer, max(open_ips)::BIGINT AS at_once, count(*) FILTER (WHERE step = 1 AND open_ips >= $ips) AS overlaps,
        min(begun_at) FILTER (WHERE step = 1 AND open_ips >= $ips) AS first_at,
        max(begun_at) FILTER (WHERE step = 1 AND open_ips >= $ips) AS last_at
    FROM level GROUP BY team_id, peer HAVING max(open_ips) >= $ips
), account AS (
    SELECT *, CASE WHEN contains(account, '\') OR contains(account, '@') THEN NULL
        ELSE coalesce(device_id, computer_host_name, 'not named') END AS only_on
    FROM used WHERE account IS NOT NULL
), shared AS (
    SELECT team_id, lower(account) AS account_key, only_on, min(account) AS account, max(CASE WHEN only_on IS NOT NULL THEN device_id END) AS device_id, max(CASE WHEN only_on IS NOT NULL THEN computer_host_name END) AS host,
        count(DISTINCT peer) AS peers, string_agg(DISTINCT peer, ', ' ORDER BY peer) AS who, count(*) AS sessions,
        min(begun_at) AS first_at, max(begun_at) AS last_at
    FROM account GROUP BY team_id, account_key, only_on HAVING count(DISTINCT peer) >= $peers
)
SELECT c.team_id, 'one peer at several addresses' AS what, c.peer AS identity, NULL AS device_id,
    any_value(i.ips) AS shared_by, c.at_once AS shared_by_count, c.overlaps AS occurrences,
    local_time(c.first_at, $tz) AS first_local, local_time(c.last_at, $tz) AS last_local, c.first_at, c.last_at
FROM crowded c JOIN (SELECT team_id, peer, string_agg(DISTINCT peer_ip, ', ' ORDER BY peer_ip) AS ips
        FROM stay GROUP BY ALL) i ON i.team_id = c.team_id AND i.peer = c.peer
GROUP BY c.team_id, c.peer, c.at_once, c.overlaps, c.first_at, c.last_at
UNION ALL
SELECT team_id, 'one account of several peers', concat_ws(' on ', account, coalesce(host, only_on)), device_id, who, peers, sessions,
    local_time(first_at, $tz), local_time(last_at, $tz), first_at, last_at
FROM shared
ORDER BY what, team_id, first_at, identity;

-- chart rows
-- The rows do not say how many sessions each address or person has.
SELECT identity, unnest(string_split(shared_by, ', ')) AS other, 1 AS shares FROM report ORDER BY 1, 2;
