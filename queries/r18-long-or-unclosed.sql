-- id: R18
-- title: Long or unclosed sessions
-- question: Which sessions lasted very long, or have no recorded end?
-- controls: NIST 800-53 AC-12; SOC 2 CC7.2
-- param: long duration from 1s to 36500d = 12h | the report lists a session that lasted longer than this
-- param: percentile number from 0 to 1 = 0.99 | the report also lists a session that lasted longer than this share of the period's closed sessions
-- param: percentile_sessions integer from 1 to 1000000000 = 100 | the report ignores the percentile if the period has fewer closed sessions
-- chart: histogram x=hours y=sessions log | Durations of all closed sessions, in hours
-- severity: column
-- note: the data holds no idle time, so the report says nothing about idle sessions or their lock (PCI DSS 8.2.8)
-- note: state: longer than the limit; longer than the percentile (there are always some; this is no fault); never closed (open in R01, and at the period's end without a close event for longer than the limit); not closed yet (open in R01, but begun later: the report of the next period judges it)
-- note: the report also judges a session without an end that began before the period, at most the limit earlier
-- note: a session stays unclosed here if its close event was lost in a gap (R23)
WITH begun AS (
    SELECT *, duration_ms / 3600000.0 AS hours FROM sessions
    WHERE first_event_at >= $from - CASE WHEN outcome = 'open' THEN to_seconds($long) ELSE to_seconds(0) END
        AND first_event_at < $to AND ($team IS NULL OR team_id = $team)
), bound AS (
    SELECT CASE WHEN count(hours) >= $percentile_sessions THEN quantile_cont(hours, $percentile) END AS percentile_hours
    FROM begun
), state AS (
    SELECT b.*, p.percentile_hours,
        CASE WHEN b.hours > $long / 3600.0 THEN 'longer than the limit'
            WHEN b.hours > p.percentile_hours THEN 'longer than the percentile'
            WHEN b.outcome = 'open' AND b.first_event_at < least($now, $to) - to_seconds($long) THEN 'never closed'
            WHEN b.outcome = 'open' THEN 'not closed yet' END AS state
    FROM begun b CROSS JOIN bound p
)
SELECT team_id, connection_id, peer_email, peer_ip, device_id, computer_host_name, tunnel_id, state,
    local_time(first_event_at, $tz) AS start_local, local_time(closed_at, $tz) AS closed_local,
    round(coalesce(hours, CASE WHEN outcome = 'open' THEN date_diff('second', first_event_at, least($now, $to)) / 3600.0 END), 2) AS hours,
    round(percentile_hours, 2) AS percentile_hours,
    CASE state WHEN 'longer than the percentile' THEN 'info' WHEN 'not closed yet' THEN NULL ELSE 'low' END AS severity,
    first_event_at AS start_at, closed_at
FROM state WHERE state IS NOT NULL
ORDER BY state, hours DESC, first_event_at, team_id, connection_id;

-- chart rows
-- A chart reads 10,000 rows, so a row is the middle of all durations with the same two first digits.
SELECT round((floor(hours / unit * (1 + 1e-12)) + 0.5) * unit, 10) AS hours, count(*) AS sessions
FROM (SELECT duration_ms / 3600000.0 AS hours, pow(10, floor(log10(hours)) - 1) AS unit FROM sessions
      WHERE first_event_at >= $from AND first_event_at < $to AND ($team IS NULL OR team_id = $team) AND duration_ms > 0)
GROUP BY 1 ORDER BY 1;
