-- id: R15
-- title: First seen
-- question: Did someone connect from a new place, to a new computer, or from two places at once?
-- controls: NIST 800-53 AC-2(12); SOC 2 CC6.6; ISO 27001 A.8.16
-- param: history_days integer from 1 to 36500 = 90 | days of history before a session; a value that they do not hold is new
-- param: history_min_days integer from 0 to 36500 = 7 | a new value is no detection if the archive holds fewer days of history
-- chart: strip x=seen_local series=what | New peers, networks, addresses and computers
-- severity: column
-- note: what: new peer (no session in the history; the report does not list its address and computer too), new network (the peer's history has no address in this network), new address, new computer, two addresses at once (sessions of one peer overlap)
-- note: a network is the first three numbers of an IPv4 address, the first three groups of an IPv6 address; an address is the same in each of its spellings, and ::ffff:192.0.2.7 is 192.0.2.7
-- note: a computer without an id in its events counts by its host name; a session at an address that the peer already uses at the same moment adds no second overlap
-- note: days_of_history says how many of those days lie after the archive's beginning and after the last expired month, and a gap (R23) does not shorten it; a session that failed to authenticate counts too, because it is an attempt
-- note: an open session ends here at its last event, so the report can miss an overlap with it
-- note: the report shows no geography: the service sends no places, and Annals has no table of places
WITH seen AS (
    SELECT s.team_id, s.connection_id, s.first_event_at AS begun_at, coalesce(s.closed_at, s.last_event_at) AS end_at, s.outcome,
        nullif(lower(trim(s.peer_email)), '') AS peer, s.peer_email, s.peer_ip, s.device_id, s.computer_host_name, nullif(one_spelling(s.peer_ip), '') AS ip,
        coalesce(s.device_id, s.computer_host_name) AS computer,
        CASE WHEN regexp_matches(ip, '^[0-9]+[.]') THEN array_to_string(string_split(ip, '.')[1:3], '.')
            -- :: means groups of 0.
            WHEN contains(ip, ':') THEN array_to_string(string_split(replace(regexp_replace(ip, '^:', '0:'), '::', ':0:0:'), ':')[1:3], ':')
            ELSE ip END AS network
    FROM sessions s
    WHERE s.first_event_at >= $from - to_days($history_days::INTEGER) AND s.first_event_at < $to
        AND ($team IS NULL OR s.team_id = $team) AND trim(s.peer_email) <> ''
), day AS (
    -- One row for equal sessions of a day: only the first of them can be new.
    SELECT team_id, peer, ip, network, computer, begun_at::DATE AS day,
        max(begun_at) AS last_at, min((begun_at, connection_id)) AS first
    FROM seen GROUP BY ALL
), thing AS (
    SELECT team_id, peer, 'peer' AS kind, NULL AS thing, day, max(last_at) AS last_at, min(first) AS first FROM day GROUP BY ALL
    UNION ALL SELECT team_id, peer, 'ip', ip, day, max(last_at), min(first) FROM day WHERE ip IS NOT NULL GROUP BY ALL
    UNION ALL SELECT team_id, peer, 'network', network, day, max(last_at), min(first) FROM day WHERE network IS NOT NULL GROUP BY ALL
    UNION ALL SELECT team_id, peer, 'computer', computer, day, max(last_at), min(first) FROM day WHERE computer IS NOT NULL GROUP BY ALL
), first_sight AS (
    SELECT team_id, first[2] AS connection_id, bool_or(kind = 'peer') AS peer, bool_or(kind = 'ip') AS ip,
        bool_or(kind = 'network') AS network, bool_or(kind = 'computer') AS computer
    FROM (SELECT *, lag(last_at) OVER (PARTITION BY team_id, peer, kind, thing ORDER BY day) AS before FROM thing)
    WHERE first[1] >= $from AND coalesce(before < first[1] - to_days($history_days::INTEGER), true)
    GROUP BY ALL
), fresh AS (
    SELECT s.*, f AS is_new FROM seen s
    JOIN first_sight f ON f.team_id = s.team_id AND f.connection_id = s.connection_id
), stay AS (
    -- A stay is an unbroken span of one peer at one address. Stays at two addresses overlap if the later one begins
    -- before the other ends. A stay that ended before the period overlaps no stay that begins in the period.
    SELECT team_id, peer, ip, arg_min(peer_ip, (begun_at, connection_id)) AS peer_ip, arg_min(connection_id, (begun_at, connection_id)) AS connection_id, min(begun_at) AS begun_at, max(end_at) AS end_at
    FROM (SELECT *, sum(CASE WHEN begun_at <= latest THEN 0 ELSE 1 END) OVER (
              PARTITION BY team_id, peer, ip ORDER BY begun_at, connection_id) AS stay
          FROM (SELECT *, max(end_at) OVER (PARTITION BY team_id, peer, ip ORDER BY begun_at, connection_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
                FROM seen WHERE end_at >= $from AND ip IS NOT NULL AND outcome IN ('ended', 'open')))
    GROUP BY team_id, peer, ip, stay
), overlap AS (
    SELECT * FROM (
        SELECT *, max(end_at) OVER earlier_stays AS other_end, arg_max((ip, peer_ip), end_at) OVER earlier_stays AS other
        FROM stay
        WINDOW earlier_stays AS (PARTITION BY team_id, peer ORDER BY begun_at, ip
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    WHERE begun_at >= $from AND other_end > begun_at AND other[1] <> ip
), begin AS (
    SELECT team_id, greatest(min(window_start), max(window_end) FILTER (WHERE state = 'expired')) AS begins_at
    FROM coverage WHERE stream = 'connections' GROUP BY team_id
), found AS (
    SELECT * EXCLUDE (is_new), CASE WHEN is_new.peer THEN 'new peer' WHEN is_new.network THEN 'new network' ELSE 'new address' END AS what, NULL AS other_ip
    FROM fresh WHERE is_new.peer OR is_new.ip
    UNION ALL SELECT * EXCLUDE (is_new), 'new computer', NULL FROM fresh WHERE is_new.computer AND NOT is_new.peer
    UNION ALL SELECT f.*, 'two addresses at once', o.other[2]
    FROM seen f JOIN overlap o ON o.team_id = f.team_id AND o.connection_id = f.connection_id
), aged AS (
    SELECT f.*, least($history_days, greatest(0, date_sub('day', b.begins_at, f.begun_at))) AS days_of_history
    FROM found f LEFT JOIN begin b ON b.team_id = f.team_id
)
SELECT team_id, what, peer_email, peer_ip, network, other_ip, device_id, computer_host_name,
    local_time(begun_at, $tz) AS seen_local, days_of_history, outcome, connection_id,
    CASE WHEN what = 'two addresses at once' THEN 'medium' WHEN days_of_history >= $history_min_days THEN 'low' END AS severity,
    begun_at AS seen_at
FROM aged
ORDER BY begun_at, team_id, connection_id, what;

-- chart rows
-- A report can have more rows than a chart reads, so one mark stands for all equal ones of a short time.
SELECT min(seen_local) AS seen_local, what FROM report
GROUP BY what, floor(1500 * (epoch_us(seen_at) - epoch_us($from)) / (epoch_us($to) - epoch_us($from))) ORDER BY 1, 2;
