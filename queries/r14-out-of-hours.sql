-- id: R14
-- title: Out-of-hours access
-- question: Who connected outside working hours?
-- controls: NIST 800-53 AC-2(12); SOC 2 CC7.2; ISO 27001 A.8.16
-- param: opens time = 07:00 | when a working day begins, in the zone's local time
-- param: closes time = 19:00 | when a working day ends; if closes is earlier than opens, it ends on the next day
-- param: workdays list of mon,tue,wed,thu,fri,sat,sun = mon,tue,wed,thu,fri | the days that have working hours
-- param: holidays list of dates = null | days without working hours: 2026-12-25,2026-12-26
-- param: reached_only boolean = true | leave out sessions that were only requested or failed to authenticate
-- chart: punchcard x=hour y=weekday value=sessions | Sessions outside working hours
-- severity: low
-- note: hours and weekdays are local to the report's zone, with its summer time: name the team's own zone with --tz; for teams in several zones, run the report once for each with --team
-- note: a session counts by its beginning; R18 shows how long sessions lasted
WITH hours AS (
    SELECT $opens AS opens, $closes AS closes,
        list_transform(from_json($workdays, '["VARCHAR"]'), lambda d: lower(left(d, 3))) AS workdays,
        coalesce(from_json($holidays, '["VARCHAR"]'), []) AS holidays
), begun AS (
    SELECT s.*, local_time(s.first_event_at, $tz) AS start_local FROM sessions s
    WHERE s.first_event_at >= $from AND s.first_event_at < $to AND ($team IS NULL OR s.team_id = $team)
        AND (NOT $reached_only OR s.outcome IN ('ended', 'open', 'closed_only'))
), placed AS (
    -- A working day that ends on the next day still belongs to its first day after midnight.
    SELECT b.*, h.*, CASE WHEN h.closes < h.opens AND b.start_local::TIME < h.closes
        THEN b.start_local - INTERVAL 1 DAY ELSE b.start_local END AS day_of
    FROM begun b CROSS JOIN hours h
), judged AS (
    SELECT *, list_contains(workdays, lower(left(dayname(day_of), 3)))
        AND NOT list_contains(holidays, strftime(day_of, '%Y-%m-%d')) AS is_workday,
        CASE WHEN closes > opens THEN start_local::TIME >= opens AND start_local::TIME < closes
            ELSE start_local::TIME >= opens OR start_local::TIME < closes END AS is_open
    FROM placed
)
SELECT team_id, peer_email, peer_ip, device_id, computer_host_name, start_local, dayname(start_local) AS weekday,
    hour(start_local) AS hour, CASE WHEN is_workday THEN 'outside hours' ELSE 'no working day' END AS why, outcome,
    round(duration_ms / 60000.0, 1) AS minutes, connection_id, first_event_at AS start_at
FROM judged WHERE NOT (is_workday AND is_open)
ORDER BY first_event_at, team_id, connection_id;

-- chart rows
SELECT hour, weekday, count(*) AS sessions FROM report GROUP BY 1, 2
ORDER BY list_position(['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'], weekday), hour;
