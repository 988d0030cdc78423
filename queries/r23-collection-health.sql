-- id: R23
-- title: Collection health
-- question: Which events may be missing from the archive?
-- controls: PCI DSS 10.7.2, 10.2.1.6; NIST 800-53 AU-5; NIS2 3.2.3(k), 3.2.6
-- param: baseline_days integer from 0 to 36500 = 56 | days before the period from which the report learns the usual number of events
-- param: quiet_share number from 0 to 1 = 0.1 | a day with less than this share of the usual events of its weekday is quiet
-- param: usual_min integer from 0 to 1000000000 = 20 | the report never calls a weekday with fewer usual events quiet
-- param: unread_after duration to 3660d = 48h | a day that is not completely read this long after its end, and after the end of its windows, is a detection
-- chart: heatmap x=day_utc y=source,team_id value=events | Events archived, by day
-- severity: column
-- note: one row for each team, stream and UTC day from the archive's beginning on; days and windows are in UTC by definition
-- note: 'read in part' in state: the archive begins within the day, the day is not over, or windows are missing; only missing windows are a detection
-- note: 'never read' in state: Annals has read something of the team, but no window of this stream, so all its events are missing
-- note: gaps are recorded intervals in which events were, or may have been, lost; permanent: the plan's span has passed, a removal deleted the events, or newer billing entries hide them, so nobody can read them later
-- note: there is no column for duplicates: Annals recognises an event that it reads twice, and neither keeps nor counts the copy; unknown_fields counts undocumented fields of people and computers, while an event keeps its undocumented fields in its text
-- note: removed_before counts computers that were removed before Annals first read the day: their connections are missing
-- note: clock_steps counts how often Annals found this machine's clock set back; polls counts the requests that read the day's windows
-- note: events counts each archived revision of an event
-- note: polls, events and late are empty, and no day is quiet by them, if a window of the day spans several days ([windows] length): Annals counts them by window
WITH beginning AS (
    SELECT team_id, stream, min(from_time) AS begins_at FROM findings WHERE kind = 'archive_begins' GROUP BY ALL
), grid AS (
    -- The plan's span can begin inside the first window.
    SELECT c.team_id, c.stream, greatest(min(c.window_start), any_value(b.begins_at)) AS begins_at, max(c.window_end) AS ends_at,
        arg_max(c.window_end - c.window_start, c.window_start) AS window_length
    FROM coverage c LEFT JOIN beginning b ON b.team_id = c.team_id AND b.stream = c.stream
    WHERE $team IS NULL OR c.team_id = $team GROUP BY ALL
), day AS (
    SELECT g.team_id, g.stream, d.day_utc, d.day_utc + INTERVAL 1 DAY AS next_day, g.begins_at,
        -- The next window: no read of it is recorded yet.
        CASE WHEN d.day_utc >= g.ends_at THEN g.ends_at + g.window_length END AS next_end
    FROM grid g CROSS JOIN (SELECT unnest(generate_series(date_trunc('day', $from),
        least($to, $now) - INTERVAL 1 MICROSECOND, INTERVAL 1 DAY)) AS day_utc) d
    WHERE d.day_utc + INTERVAL 1 DAY > g.begins_at
), piece AS (
    -- A window lies on each day that it overlaps. The numbers of a window of several days belong to none of them.
    SELECT team_id, stream, state, window_start, window_end, settled_at, window_end <= date_trunc('day', window_start) + INTERVAL 1 DAY AS is_of_one_day,
        requests, events, late,
        unnest(generate_series(date_trunc('day', window_start), window_end - INTERVAL 1 MICROSECOND, INTERVAL 1 DAY)) AS day_utc
    FROM coverage
    WHERE window_end > date_trunc('day', $from) - to_days($baseline_days::INTEGER) AND window_start < date_trunc('day', $to - INTERVAL 1 MICROSECOND) + INTERVAL 1 DAY
        AND ($team IS NULL OR team_id = $team)
), held AS (
    SELECT team_id, stream, day_utc, count(*) AS windows, count(*) FILTER (WHERE state = 'provisional') AS provisional,
        sum(date_diff('second', greatest(window_start, day_utc), least(window_end, day_utc + INTERVAL 1 DAY)))::BIGINT AS seconds,
        CASE WHEN bool_and(is_of_one_day) THEN sum(requests)::BIGINT END AS polls, CASE WHEN bool_and(is_of_one_day) THEN sum(events)::BIGINT END AS events,
        CASE WHEN bool_and(is_of_one_day) THEN sum(late)::BIGINT END AS late, max(settled_at) AS settled_at, max(window_end) AS read_to
    FROM piece GROUP BY ALL
), usual AS (
    SELECT team_id, stream, dayofweek(day_utc) AS weekday, median(events) AS usual FROM held
    WHERE day_utc < date_trunc('day', $from) AND provisional = 0 GROUP BY ALL
    -- Fewer days are too few to learn from.
    HAVING count(events) >= 4
), standing AS (
    SELECT f.* FROM findings f
    WHERE ($team IS NULL OR f.team_id = $team) AND NOT (f.kind = 'gap' AND EXISTS (
        SELECT 1 FROM findings c WHERE c.kind = 'gap_closed' AND c.team_id = f.team_id
            AND c.stream IS NOT DISTINCT FROM f.stream AND c.subject = f.subject
            AND c.from_time IS NOT DISTINCT FROM f.from_time AND c.to_time IS NOT DISTINCT FROM f.to_time))
), gap AS (
    SELECT d.team_id, d.stream, d.day_utc, count(*) AS gaps, min(greatest(s.from_time, d.day_utc)) AS from_at,
        max(least(s.to_time, d.next_day)) AS to_at, string_agg(DISTINCT s.reason, '; ' ORDER BY s.reason) AS reasons,
        bool_or(s.stream = 'billing' OR contains(s.reason, 'plan') OR contains(s.reason, 'removed')) AS is_permanent
    FROM day d JOIN standing s ON s.kind = 'gap' AND s.team_id = d.team_id AND s.stream = d.stream
        AND (s.from_time IS NULL OR s.from_time < d.next_day) AND (s.to_time IS NULL OR s.to_time > d.day_utc)
    GROUP BY ALL
), removed AS (
    SELECT d.team_id, d.stream, d.day_utc, count(DISTINCT s.subject) AS removed_before
    FROM day d JOIN standing s ON s.kind = 'removed_before' AND s.team_id = d.team_id AND s.stream = d.stream
        AND s.from_time < d.next_day AND s.to_time > d.day_utc
    GROUP BY ALL
), other AS (
    SELECT d.team_id, d.stream, d.day_utc,
        coalesce(sum(s."count") FILTER (WHERE s.kind = 'quarantined'), 0)::BIGINT AS quarantined,
        count(*) FILTER (WHERE s.kind = 'new_event_type') AS new_event_types,
        count(*) FILTER (WHERE s.kind IN ('changed_upstream', 'no_longer_served')) AS changed_upstream,
        count(*) FILTER (WHERE s.kind IN ('paging_anomaly', 'unstable_window', 'ambiguous_overlap')) AS anomalies,
        count(*) FILTER (WHERE s.kind = 'silence') AS silences
    FROM day d JOIN standing s ON s.kind <> 'gap' AND s.team_id = d.team_id AND s.stream = d.stream
        AND coalesce(s.from_time, s.found_at) >= d.day_utc AND coalesce(s.from_time, s.found_at) < d.next_day
    GROUP BY ALL
), whole_team AS (
    SELECT team_id, date_trunc('day', found_at) AS day_utc, count(*) FILTER (WHERE kind = 'clock_regression') AS clock_steps,
        coalesce(sum("count") FILTER (WHERE kind = 'unknown_field'), 0)::BIGINT AS unknown_fields
    FROM standing WHERE kind IN ('clock_regression', 'unknown_field') GROUP BY ALL
), joined AS (
    SELECT d.*, h.windows, h.provisional, h.seconds, h.polls, h.events, h.late, h.settled_at, u.usual,
        coalesce(r.removed_before, 0) AS removed_before, coalesce(g.gaps, 0) AS gaps, g.from_at, g.to_at, g.reasons, g.is_permanent,
        coalesce(o.quarantined, 0) AS quarantined, coalesce(o.new_event_types, 0) AS new_event_types,
        coalesce(o.changed_upstream, 0) AS changed_upstream, coalesce(o.anomalies, 0) AS anomalies,
        coalesce(o.silences, 0) AS silences, coalesce(c.clock_steps, 0) AS clock_steps, coalesce(c.unknown_fields, 0) AS unknown_fields,
        greatest(d.next_day, d.next_end, h.read_to) + to_seconds($unread_after) <= $now AS is_due
    FROM day d
        LEFT JOIN held h ON h.team_id = d.team_id AND h.stream = d.stream AND h.day_utc = d.day_utc
        LEFT JOIN usual u ON u.team_id = d.team_id AND u.stream = d.stream AND u.weekday = dayofweek(d.day_utc)
        LEFT JOIN gap g ON g.team_id = d.team_id AND g.stream = d.stream AND g.day_utc = d.day_utc
        LEFT JOIN removed r ON r.team_id = d.team_id AND r.stream = d.stream AND r.day_utc = d.day_utc
        LEFT JOIN other o ON o.team_id = d.team_id AND o.stream = d.stream AND o.day_utc = d.day_utc
        LEFT JOIN whole_team c ON c.team_id = d.team_id AND c.day_utc = d.day_utc
), judged AS (
    SELECT *, CASE WHEN windows IS NULL THEN 'not read'
            WHEN begins_at <= day_utc AND seconds < 86400 AND is_due THEN 'read in part'
            WHEN provisional > 0 THEN 'provisional'
            WHEN begins_at > day_utc OR seconds < 86400 THEN 'read in part' ELSE 'read whole' END AS state,
        coalesce(usual >= $usual_min AND provisional = 0 AND events < usual * $quiet_share, false) OR silences > 0 AS is_quiet
    FROM joined
)
SELECT team_id, stream AS source, day_utc, state, windows, polls, events, late, usual::BIGINT AS usual_events, is_quiet,
    gaps, local_time(from_at, $tz) AS gap_from_local, local_time(to_at, $tz) AS gap_to_local, reasons AS gap_reasons,
    coalesce(is_permanent, false) AS is_permanent, removed_before, quarantined, new_event_types, changed_upstream, anomalies, clock_steps, unknown_fields,
    local_time(settled_at, $tz) AS settled_local,
    CASE WHEN is_permanent THEN 'critical' WHEN gaps > 0 THEN 'high'
        WHEN state IN ('not read', 'read in part') AND is_due AND begins_at <= day_utc THEN 'high'
        WHEN state = 'provisional' AND is_due THEN 'medium'
        WHEN removed_before > 0 OR is_quiet OR clock_steps > 0 OR anomalies > 0 THEN 'medium' WHEN quarantined > 0 THEN 'low'
        WHEN new_event_types > 0 OR changed_upstream > 0 OR unknown_fields > 0 THEN 'info' END AS severity
FROM judged
UNION ALL BY NAME
SELECT t.team_id, s.source, 'never read' AS state,
    CASE WHEN date_trunc('day', $from) + INTERVAL 1 DAY + to_seconds($unread_after) <= $now THEN 'high' END AS severity
FROM (SELECT team_id FROM coverage UNION SELECT team_id FROM inventory_reads) t
    CROSS JOIN (VALUES ('activity'), ('connections'), ('billing')) AS s(source)
WHERE ($team IS NULL OR t.team_id = $team) AND (t.team_id, s.source) NOT IN (SELECT (team_id, stream) FROM grid)
    -- A ledger without entries has no window; its first reading leaves this finding.
    AND NOT (s.source = 'billing' AND EXISTS (SELECT 1 FROM findings f WHERE f.team_id = t.team_id AND f.kind = 'archive_begins' AND f.stream = 'billing'))
ORDER BY team_id, source, day_utc;

-- chart rows
-- A chart reads 10,000 rows, so the query itself joins the names that have no room in it, and the days of a long time.
WITH shown AS (
    SELECT team_id, source, day_utc, coalesce(events, 0) AS events
    FROM report WHERE day_utc IS NOT NULL AND (events IS NOT NULL OR windows IS NULL)
), stream AS (
    SELECT team_id, source, row_number() OVER (ORDER BY sum(events) DESC, team_id, source) <= 24 AS is_large,
        min(team_id) OVER () <> max(team_id) OVER () AS are_several
    FROM shown GROUP BY team_id, source
)
SELECT date_trunc(CASE WHEN $to - $from > INTERVAL 366 DAYS THEN 'week' ELSE 'day' END, day_utc) AS day_utc,
    CASE WHEN is_large THEN source ELSE 'all others' END AS source, CASE WHEN is_large AND are_several THEN team_id END AS team_id,
    sum(events)::BIGINT AS events
FROM shown JOIN stream USING (team_id, source) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
