-- R14 Out-of-hours access: who connected outside working hours?
-- param: opens = 07:00
-- param: closes = 19:00
-- param: workdays = mon,tue,wed,thu,fri
-- param: holidays = 
-- param: reached_only = true
-- Days are separated by commas: holidays as 2026-12-25,2026-12-26.
WITH begun AS (
    SELECT *, convert_timezone('UTC', :tz, first_event_at) AS start_local FROM sessions
    WHERE first_event_at >= CAST(:from AS TIMESTAMP_NTZ) AND first_event_at < CAST(:to AS TIMESTAMP_NTZ)
        AND (:team IS NULL OR team_id = :team) AND (NOT :reached_only OR outcome IN ('ended', 'open', 'closed_only'))
), timed AS (
    SELECT *, date_format(start_local, 'HH:mm:ss') AS start_time, rpad(:opens, 8, ':00') AS opens,
        rpad(:closes, 8, ':00') AS closes
    FROM begun
), placed AS (
    -- A working day that ends on the next day still belongs to its first day after midnight.
    SELECT *, CASE WHEN closes < opens AND start_time < closes THEN start_local - INTERVAL '1' DAY ELSE start_local END AS day_of
    FROM timed
), judged AS (
    SELECT *, array_contains(split(lower(:workdays), ','), lower(left(date_format(day_of, 'EEEE'), 3)))
        AND NOT array_contains(split(:holidays, ','), date_format(day_of, 'yyyy-MM-dd')) AS is_workday,
        CASE WHEN closes > opens THEN start_time >= opens AND start_time < closes
            ELSE start_time >= opens OR start_time < closes END AS is_open
    FROM placed
)
SELECT team_id, peer_email, peer_ip, device_id, computer_host_name, start_local,
    date_format(start_local, 'EEEE') AS weekday, hour(start_local) AS hour,
    CASE WHEN is_workday THEN 'outside hours' ELSE 'no working day' END AS why, outcome,
    round(duration_ms / 60000.0D, 1) AS minutes, connection_id, first_event_at AS start_at
FROM judged WHERE NOT (is_workday AND is_open)
ORDER BY first_event_at, team_id, connection_id
