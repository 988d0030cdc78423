-- id: R15
-- title: First seen
-- question: Did someone connect from a new place, to a new computer, or from two places at once?
-- controls: NIST 800-53 AC-2(12); SOC 2 CC6.6; ISO 27001 A.8.16
-- param: history_days integer = 90 | days before a session in which the same must not have been seen
-- param: history_min_days integer = 7 | with fewer days of history before it, a first sight is no detection
-- chart: strip x=seen_local series=what | What was seen for the first time
-- severity: column
-- note: what: new peer (no session in the history: its address and computer are not listed again), new network (the address is in a network that the peer was not seen in), new address, new computer, two addresses at once (sessions of one peer overlap)
-- note: a network is the first three numbers of an IPv4 address, the first three groups of an IPv6 address
-- note: days_of_history says how many of those days the archive covers; sessions that failed to authenticate count as sight, for the attempt was made
-- note: geography is left out: the service gives no place, and no table of places is used
WITH seen AS (
    SELECT s.team_id, s.connection_id, s.first_event_at AS begun_at, coalesce(s.closed_at, s.last_event_at) AS end_at, s.outcome,
        lower(trim(s.peer_email)) AS peer, s.peer_email, s.peer_ip, s.device_id, s.computer_host_name,
        CASE WHEN contains(s.peer_ip, ':') THEN array_to_string(string_split(lower(s.peer_ip), ':')[1:3], ':')
            WHEN contains(s.peer_ip, '.') THEN array_to_string(string_split(s.peer_ip, '.')[1:3], '.')
            ELSE s.peer_ip END AS network
    FROM sessions s
    WHERE s.first_event_at >= $from - to_days($history_days::INTEGER) AND s.first_event_at < $to
        AND ($team IS NULL OR s.team_id = $team) AND s.peer_email IS NOT NULL
), earlier AS (
    SELECT *,
        lag(begun_at) OVER (PARTITION BY team_id, peer ORDER BY begun_at, connection_id) AS peer_before,
        CASE WHEN peer_ip IS NOT NULL THEN lag(begun_at) OVER (PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id) END AS ip_before,
        CASE WHEN network IS NOT NULL THEN lag(begun_at) OVER (PARTITION BY team_id, peer, network ORDER BY begun_at, connection_id) END AS network_before,
        CASE WHEN device_id IS NOT NULL THEN lag(begun_at) OVER (PARTITION BY team_id, peer, device_id ORDER BY begun_at, connection_id) END AS device_before
    FROM seen
), fresh AS (
    SELECT *,
        coalesce(peer_before < begun_at - to_days($history_days::INTEGER), true) AS is_new_peer,
        peer_ip IS NOT NULL AND coalesce(ip_before < begun_at - to_days($history_days::INTEGER), true) AS is_new_ip,
        network IS NOT NULL AND coalesce(network_before < begun_at - to_days($history_days::INTEGER), true) AS is_new_network,
        device_id IS NOT NULL AND coalesce(device_before < begun_at - to_days($history_days::INTEGER), true) AS is_new_device
    FROM earlier WHERE begun_at >= $from
), stay AS (
    -- Unbroken stays of one peer begun_at one address: those of two addresses overlap where the later begins before the other ends.
    SELECT team_id, peer, peer_ip, arg_min(connection_id, (begun_at, connection_id)) AS connection_id, min(begun_at) AS begun_at, max(end_at) AS end_at
    FROM (SELECT *, sum(CASE WHEN begun_at <= latest THEN 0 ELSE 1 END) OVER (
              PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id) AS stay
          FROM (SELECT *, max(end_at) OVER (PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
                FROM seen WHERE peer_ip IS NOT NULL AND outcome IN ('ended', 'open')))
    GROUP BY team_id, peer, peer_ip, stay
), overlap AS (
    SELECT * FROM (
        SELECT *, max(end_at) OVER earlier_stays AS other_end, arg_max(peer_ip, end_at) OVER earlier_stays AS other_ip
        FROM stay
        WINDOW earlier_stays AS (PARTITION BY team_id, peer ORDER BY begun_at, peer_ip
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    WHERE begun_at >= $from AND other_end > begun_at AND other_ip <> peer_ip
), begin AS (
    SELECT team_id, min(window_start) AS begins_at FROM coverage WHERE stream = 'connections' GROUP BY team_id
), found AS (
    SELECT *, CASE WHEN is_new_peer THEN 'new peer' WHEN is_new_network THEN 'new network' ELSE 'new address' END AS what, NULL AS other_ip
    FROM fresh WHERE is_new_peer OR is_new_ip
    UNION ALL SELECT *, 'new computer', NULL FROM fresh WHERE is_new_device AND NOT is_new_peer
    UNION ALL SELECT f.*, 'two addresses at once', o.other_ip
    FROM fresh f JOIN overlap o ON o.team_id = f.team_id AND o.connection_id = f.connection_id
), aged AS (
    SELECT f.*, least($history_days, greatest(0, date_diff('second', b.begins_at, f.begun_at) // 86400)) AS days_of_history
    FROM found f LEFT JOIN begin b ON b.team_id = f.team_id
)
SELECT team_id, what, peer_email, peer_ip, network, other_ip, device_id, computer_host_name,
    local_time(begun_at, $tz) AS seen_local, days_of_history, outcome, connection_id,
    CASE WHEN what = 'two addresses at once' THEN 'medium' WHEN days_of_history >= $history_min_days THEN 'low' END AS severity,
    begun_at AS seen_at
FROM aged
ORDER BY begun_at, team_id, connection_id, what;
