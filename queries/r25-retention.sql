-- id: R25
-- title: Retention
-- question: Is everything kept as long as it must be, and no longer than it may?
-- controls: PCI DSS 10.5.1; NIST 800-53 AU-11; GDPR 5(1)(e), 17, 30(1)(f); SOC 2 CC C1.2, P4.2, P4.3
-- param: keep_at_least_days integer from 0 to 36500 = 365 | days that must be held (PCI DSS: twelve months)
-- param: keep_at_most_days integer from 0 to 36500 = null | days after which rows are due to go; none given: no such policy
-- chart: bars x=class y=held_days series=team_id | Days held, by class of data
-- severity: column
-- note: classes are the archive's datasets; oldest is the oldest event that a live file holds, as its ledger line says
-- note: this version erases nothing and knows no holds: there are no columns for hold, erased, reason and request id; due is what a policy of yours asks for, given as keep_at_most_days
-- note: short: a stream of the service of which the archive is younger than keep_at_least_days; begins says from when on the service could be read; months removed from the archive by other means show as faults in R24
WITH file AS (
    SELECT team_id, dataset, count(*) AS files, sum("rows")::BIGINT AS row_count, sum(bytes)::BIGINT AS byte_count,
        min(first_event_at) AS oldest_at, max(last_event_at) AS newest_at
    FROM archive_files WHERE ($team IS NULL OR team_id = $team) GROUP BY ALL
), begin AS (
    SELECT team_id, stream, min(window_start) AS begins_at FROM coverage
    WHERE $team IS NULL OR team_id = $team GROUP BY ALL
), held AS (
    SELECT f.*, b.begins_at, date_diff('second', coalesce(b.begins_at, f.oldest_at), least($to, $now)) // 86400 AS held_days
    FROM file f LEFT JOIN begin b ON b.team_id = f.team_id AND b.stream = f.dataset
), judged AS (
    SELECT *, begins_at IS NOT NULL AND held_days < $keep_at_least_days AS is_short,
        oldest_at + to_days($keep_at_most_days::INTEGER) AS due_at
    FROM held
)
SELECT team_id, dataset AS class, files, row_count AS "rows", byte_count AS bytes, local_time(oldest_at, $tz) AS oldest_local,
    local_time(newest_at, $tz) AS newest_local, local_time(begins_at, $tz) AS begins_local, held_days,
    CASE WHEN due_at <= least($to, $now) THEN 'overdue' WHEN is_short THEN 'short' ELSE 'kept' END AS state,
    local_time(due_at, $tz) AS due_local,
    CASE WHEN due_at <= least($to, $now) THEN date_diff('second', due_at, least($to, $now)) // 86400 END AS days_overdue,
    CASE WHEN due_at <= least($to, $now) THEN 'medium' WHEN is_short THEN 'info' END AS severity
FROM judged
ORDER BY team_id, class;

-- chart rows
SELECT class, team_id, held_days FROM report WHERE held_days IS NOT NULL ORDER BY 1, 2;
