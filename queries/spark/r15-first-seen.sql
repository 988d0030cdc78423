-- R15 First seen: did someone connect from a new place, to a new computer, or from two places at once?
-- param: history_days = 90
-- param: history_min_days = 7
WITH seen AS (
    SELECT team_id, connection_id, first_event_at AS begun_at, coalesce(closed_at, last_event_at) AS end_at, outcome,
        nullif(lower(trim(peer_email)), '') AS peer, peer_email, peer_ip, device_id, computer_host_name,
        CASE WHEN lower(peer_ip) RLIKE '^(::ffff:)?[0-9]+[.]'
                THEN array_join(slice(split(regexp_replace(lower(peer_ip), '^::ffff:', ''), '[.]'), 1, 3), '.')
            -- An address has several spellings: without leading zeros, and with :: for groups of 0.
            WHEN contains(peer_ip, ':') THEN array_join(slice(split(replace(regexp_replace(regexp_replace(
                lower(peer_ip), '^:', '0:'), '(^|:)0+([0-9a-f])', '$1$2'), '::', ':0:0:'), ':'), 1, 3), ':')
            ELSE peer_ip END AS network
    FROM sessions
    WHERE first_event_at >= CAST(:from AS TIMESTAMP_NTZ) - make_dt_interval(:history_days)
        AND first_event_at < CAST(:to AS TIMESTAMP_NTZ)
        AND (:team IS NULL OR team_id = :team) AND trim(peer_email) <> ''
), thing AS (
    -- One row for equal sessions of a day: only the first of them can be new.
    SELECT team_id, peer, kind, thing, CAST(begun_at AS DATE) AS day, max(begun_at) AS last_at, min(begun_at) AS first_at,
        min_by(connection_id, struct(begun_at, connection_id)) AS connection_id
    FROM (
        SELECT team_id, peer, 'peer' AS kind, '' AS thing, begun_at, connection_id FROM seen
        UNION ALL SELECT team_id, peer, 'ip', peer_ip, begun_at, connection_id FROM seen WHERE peer_ip IS NOT NULL
        UNION ALL SELECT team_id, peer, 'network', network, begun_at, connection_id FROM seen WHERE network IS NOT NULL
        UNION ALL SELECT team_id, peer, 'computer', coalesce(device_id, computer_host_name), begun_at, connection_id FROM seen
            WHERE coalesce(device_id, computer_host_name) IS NOT NULL
    )
    GROUP BY team_id, peer, kind, thing, CAST(begun_at AS DATE)
), first_sight AS (
    SELECT team_id, connection_id, bool_or(kind = 'peer') AS new_peer, bool_or(kind = 'ip') AS new_ip,
        bool_or(kind = 'network') AS new_network, bool_or(kind = 'computer') AS new_computer
    FROM (SELECT *, lag(last_at) OVER (PARTITION BY team_id, peer, kind, thing ORDER BY day) AS before FROM thing)
    WHERE first_at >= CAST(:from AS TIMESTAMP_NTZ)
        AND coalesce(before < first_at - make_dt_interval(:history_days), true)
    GROUP BY team_id, connection_id
), stay AS (
    -- A stay is an unbroken span of one peer at one address. Stays at two addresses overlap if the later one begins before the other ends.
    SELECT team_id, peer, peer_ip, max(CASE WHEN starts = 1 THEN connection_id END) AS connection_id,
        min(begun_at) AS begun_at, max(end_at) AS end_at
    FROM (
        SELECT *, CASE WHEN begun_at <= latest THEN 0 ELSE 1 END AS starts,
            sum(CASE WHEN begun_at <= latest THEN 0 ELSE 1 END) OVER (
                PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS stay
        FROM (
            SELECT *, max(end_at) OVER (PARTITION BY team_id, peer, peer_ip ORDER BY begun_at, connection_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
            FROM seen
            WHERE end_at >= CAST(:from AS TIMESTAMP_NTZ) AND peer_ip IS NOT NULL AND outcome IN ('ended', 'open')
        )
    )
    GROUP BY team_id, peer, peer_ip, stay
), overlap AS (
    SELECT * FROM (
        SELECT team_id, connection_id, peer_ip, begun_at,
            max(end_at) OVER (PARTITION BY team_id, peer ORDER BY begun_at, peer_ip
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS other_end,
            max_by(peer_ip, end_at) OVER (PARTITION BY team_id, peer ORDER BY begun_at, peer_ip
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS other_ip
        FROM stay
    )
    WHERE begun_at >= CAST(:from AS TIMESTAMP_NTZ) AND other_end > begun_at AND other_ip <> peer_ip
), begin AS (
    SELECT team_id, greatest(min(window_start), max(CASE WHEN state = 'expired' THEN window_end END)) AS begins_at
    FROM coverage WHERE stream = 'connections' GROUP BY team_id
), fresh AS (
    SELECT s.*, f.new_peer, f.new_ip, f.new_network, f.new_computer FROM seen s
    JOIN first_sight f ON f.team_id = s.team_id AND f.connection_id = s.connection_id
), found AS (
    SELECT team_id, connection_id, begun_at, outcome, peer_email, peer_ip, device_id, computer_host_name, network,
        CASE WHEN new_peer THEN 'new peer' WHEN new_network THEN 'new network' ELSE 'new address' END AS what,
        CAST(NULL AS STRING) AS other_ip
    FROM fresh WHERE new_peer OR new_ip
    UNION ALL
    SELECT team_id, connection_id, begun_at, outcome, peer_email, peer_ip, device_id, computer_host_name, network,
        'new computer', CAST(NULL AS STRING)
    FROM fresh WHERE new_computer AND NOT new_peer
    UNION ALL
    SELECT f.team_id, f.connection_id, f.begun_at, f.outcome, f.peer_email, f.peer_ip, f.device_id, f.computer_host_name,
        f.network, 'two addresses at once', o.other_ip
    FROM seen f JOIN overlap o ON o.team_id = f.team_id AND o.connection_id = f.connection_id
), aged AS (
    SELECT f.*, least(:history_days, greatest(0, timestampdiff(SECOND, b.begins_at, f.begun_at) DIV 86400)) AS days_of_history
    FROM found f LEFT JOIN begin b ON b.team_id = f.team_id
)
SELECT team_id, what, peer_email, peer_ip, network, other_ip, device_id, computer_host_name,
    convert_timezone('UTC', :tz, begun_at) AS seen_local, days_of_history, outcome, connection_id,
    CASE WHEN what = 'two addresses at once' THEN 'medium' WHEN days_of_history >= :history_min_days THEN 'low' END AS severity,
    begun_at AS seen_at
FROM aged
ORDER BY begun_at, team_id, connection_id, what
