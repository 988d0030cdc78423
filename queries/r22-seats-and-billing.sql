-- id: R22
-- title: Seats and billing
-- question: Does the team use the seats that it pays for, and did every payment succeed?
-- controls: ISO 27001 A.5.23; SOC 2 CC2.1
-- param: seat_words list = count,seat,quantity,licen | words in an entry's type that mean a number of seats
-- param: new_keys list = to,new,after,current,now | names of the new number in a payload that holds several numbers
-- chart: step x=time_local y=people series=what,team_id | Seats, and people with remote access
-- severity: column
-- note: the service documents the types of billing entries but not their field names: seats is the only number (or text of digits) in the payload of an entry whose type contains one of seat_words, or of several the number under one of new_keys; otherwise it stays empty, and the reader finds the number in the payload
-- note: delta is seats minus the people with remote access at the last reading of the roster before the entry; empty before the first reading
-- note: payment: recovered if a payment in the same second or later succeeded, not recovered if none did; of several revisions of an entry only the latest counts
-- note: the chart shows at most three teams, those with the most seats
-- note: the service shows only the ten newest entries; R23 shows a gap where entries were lost between two polls
WITH entry AS (
    SELECT *,
        EXISTS (SELECT 1 FROM (SELECT unnest(from_json($seat_words, '["VARCHAR"]')) AS word)
            WHERE contains(lower(event_type), lower(word))) AS tells_seats,
        contains(lower(event_type), 'payment') AND contains(lower(event_type), 'fail') AS is_failure,
        contains(lower(event_type), 'payment') AND contains(lower(event_type), 'succe') AS is_success,
        contains(lower(event_type), 'cancel') AS is_cancel
    FROM billing
    WHERE event_time >= $from AND event_time < greatest($to, $now) AND ($team IS NULL OR team_id = $team)
    -- A revision is the same entry again.
    QUALIFY row_number() OVER (PARTITION BY team_id, event_id ORDER BY revision DESC, first_seen_at DESC, event_time DESC) = 1
), number AS (
    -- Each number, also as a text of digits and as an item of a list. No fraction is a number of seats.
    SELECT team_id, event_id, id, list_contains(from_json($new_keys, '["VARCHAR"]'), lower(key)) AS is_new,
        CASE WHEN TRY_CAST(number AS DOUBLE) = floor(TRY_CAST(number AS DOUBLE)) THEN TRY_CAST(number AS BIGINT) END AS number
    FROM (SELECT e.team_id, e.event_id, j.id, j.key, j.atom ->> '$' AS number
          FROM entry e, json_tree(CASE WHEN json_valid(e.payload) THEN e.payload ELSE 'null' END) j
          WHERE e.tells_seats AND j.type NOT IN ('OBJECT', 'ARRAY'))
    WHERE regexp_full_match(number, '\s*[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?\s*')
), seat AS (
    SELECT e.*, n.seats FROM entry e LEFT JOIN (
        SELECT team_id, event_id, CASE WHEN count(*) = 1 THEN min(number) ELSE arg_min(number, id) FILTER (is_new) END AS seats
        FROM number GROUP BY ALL) n USING (team_id, event_id)
), recovered AS (
    SELECT f.team_id, f.event_id, min(s.event_time) AS recovered_at
    FROM entry f JOIN entry s ON s.team_id = f.team_id AND s.event_id <> f.event_id AND s.event_time >= f.event_time
        AND f.is_failure AND s.is_success
    GROUP BY ALL
), roster AS (
    SELECT e.team_id, e.event_id, count(u.user_id) AS people,
        count(u.user_id) FILTER (WHERE u.remote_access = 'enabled') AS with_access
    FROM entry e JOIN inventory_users u ON u.team_id = e.team_id AND u.valid_from <= e.event_time
        AND (u.valid_to IS NULL OR e.event_time < u.valid_to)
    GROUP BY ALL
), judged AS (
    SELECT s.*, r.recovered_at, o.people, o.with_access, s.seats - o.with_access AS delta
    FROM seat s LEFT JOIN recovered r USING (team_id, event_id) LEFT JOIN roster o USING (team_id, event_id)
    WHERE s.event_time < $to
)
SELECT team_id, local_time(event_time, $tz) AS time_local, event_type, seats, people AS roster_size,
    with_access AS with_remote_access, delta,
    CASE WHEN is_failure AND recovered_at IS NULL THEN 'not recovered' WHEN is_failure THEN 'recovered'
        WHEN is_success THEN 'succeeded' END AS payment,
    local_time(recovered_at, $tz) AS recovered_local, payload,
    CASE WHEN is_cancel THEN 'high' WHEN is_failure AND recovered_at IS NULL THEN 'medium'
        WHEN delta < 0 THEN 'medium' WHEN is_failure THEN 'low' END AS severity,
    event_time AS time_at, event_id
FROM judged
ORDER BY event_time_ns, team_id, event_id;

-- chart rows
WITH largest AS (
    SELECT team_id, count(*) OVER () > 1 AS are_several FROM report
    GROUP BY team_id ORDER BY max(coalesce(seats, with_remote_access)) DESC NULLS LAST, team_id LIMIT 3
), point AS (
    SELECT team_id, time_local, time_at, event_id, 'seats' AS what, seats AS people FROM report
    UNION ALL SELECT team_id, time_local, time_at, event_id, 'people with remote access', with_remote_access FROM report
)
-- A chart adds up the rows of one series and moment, so entries of one second are one row.
SELECT time_local, what, CASE WHEN are_several THEN team_id END AS team_id, arg_max(people, (time_at, event_id)) AS people
FROM point JOIN largest USING (team_id) WHERE people IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 2, 3, 1;
