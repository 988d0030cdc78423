-- id: R03
-- title: Failure, then success
-- question: Did somebody guess a password?
-- controls: NIST 800-53 AC-2(12); SOC 2 CC7.2, CC7.3; ISO 27001 A.8.16
-- param: min_failures integer from 1 to 1000000 = 3 | failures before the success
-- param: window duration from 1s to 366d = 15m | how long before the success the failures may happen
-- chart: strip x=success_local | Successes after repeated failures
-- severity: high
-- note: a failure counts if it was on the same computer, from the same address or for the same peer, and if no other such success came between; so a failure can count for two successes, one from its address and one for its peer
-- note: a computer without an id in its events counts by its host name; of several revisions of an event only the latest counts
-- note: authentication events exist for fluid tunnels only
-- note: three typing errors look the same as guesses: ask the person
WITH latest AS (
    -- A connection's id belongs to the key, because event ids may be unique only within a connection.
    SELECT team_id, (event_id, connection_id) AS event, event_type, event_time, event_type = 'authSucceededEvent' AS is_success, connection_id, device_id,
        coalesce(device_id, computer_host_name) AS computer, computer_host_name, nullif(lower(trim(peer_email)), '') AS peer, peer_email, peer_ip, nullif(one_spelling(peer_ip), '') AS ip, failure_reason
    FROM connections
    WHERE event_time >= $from - to_seconds($window) AND event_time < $to
        -- A later revision can have another type.
        AND (event_type IN ('authFailedEvent', 'authSucceededEvent') OR revision > 1)
        AND ($team IS NULL OR team_id = $team)
    -- A revision is the same event again.
    QUALIFY row_number() OVER (PARTITION BY team_id, event_id, connection_id ORDER BY revision DESC, first_seen_at DESC, event_time DESC) = 1
), authentication AS (
    SELECT * FROM latest WHERE event_type IN ('authFailedEvent', 'authSucceededEvent') AND computer IS NOT NULL
), failure AS (SELECT * FROM authentication WHERE NOT is_success),
success AS (SELECT * FROM authentication WHERE is_success),
-- ASOF JOIN takes any of several successes in the same microsecond, so each time has only the one with the smallest id. On several
-- columns it can also join two missing values, so the successes have none.
success_of_ip AS (
    SELECT team_id, computer, ip, event_time, min(event) AS event FROM success WHERE ip IS NOT NULL GROUP BY ALL
), success_of_peer AS (
    SELECT team_id, computer, peer, event_time, min(event) AS event FROM success WHERE peer IS NOT NULL GROUP BY ALL
), followed AS (
    -- UNION instead of UNION ALL: a failure that matches a success by peer and by address counts once.
    SELECT f.team_id, f.event AS failure, f.event_time AS failed_at, f.failure_reason, s.event AS success
    FROM failure f ASOF JOIN success_of_ip s
        ON s.team_id = f.team_id AND s.computer = f.computer AND s.ip = f.ip
        AND f.event_time <= s.event_time
    UNION
    SELECT f.team_id, f.event, f.event_time, f.failure_reason, s.event
    FROM failure f ASOF JOIN success_of_peer s
        ON s.team_id = f.team_id AND s.computer = f.computer AND s.peer = f.peer
        AND f.event_time <= s.event_time
)
SELECT s.team_id, s.peer_email, s.peer_ip, s.device_id, max(s.computer_host_name) AS computer_host_name,
    count(*) AS failures,
    local_time(min(f.failed_at), $tz) AS first_failure_local,
    local_time(s.event_time, $tz) AS success_local,
    round(date_diff('millisecond', min(f.failed_at), s.event_time) / 1000.0, 3) AS seconds,
    string_agg(DISTINCT f.failure_reason, ', ' ORDER BY f.failure_reason) AS reasons,
    s.connection_id, min(f.failed_at) AS first_failure_at, s.event_time AS success_at
FROM success s JOIN followed f ON f.team_id = s.team_id AND f.success = s.event
WHERE s.event_time >= $from AND f.failed_at >= s.event_time - to_seconds($window)
GROUP BY s.team_id, s.event, s.peer_email, s.peer_ip, s.device_id, s.connection_id, s.event_time
HAVING count(*) >= $min_failures
ORDER BY s.event_time, s.team_id, s.event;
