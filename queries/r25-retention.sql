-- id: R25
-- title: Retention
-- question: Is everything kept as long as it must be, and no longer than it may?
-- controls: PCI DSS 10.5.1; NIST 800-53 AU-11; GDPR 5(1)(e), 17, 30(1)(f); SOC 2 CC C1.2, P4.2, P4.3
-- param: keep_at_least_days integer from 0 to 36500 = 365 | days that the archive must hold (PCI DSS: twelve months)
-- param: keep_at_most_days integer from 0 to 36500 = null | days after which rows must expire; without a value: the policy of [retention]
-- chart: dots x=held_days y=class series=team_id | Days held, by class of data
-- severity: column
-- note: classes are the archive's datasets; oldest is the oldest event in a live file, by its ledger line
-- note: policy is the class's policy in [retention]; due is the first time at which the policy lets a month go that nothing keeps; with keep_at_most_days, due counts from the oldest row
-- note: sessions have no policy of their own: a session expires with its first connection event
-- note: held: months are older than their policy, and kept_by names the reason that keeps them; expired: a month that `annals retention apply` or the daemon removed in the period, with its ledger line; hold: a legal hold that was active in the period
-- note: kept_by also names a hold of the whole archive that only another team's ledger records; on the daemon's page, a report of one team among more than sixteen teams does not see such a hold
-- note: erased: the rows of a class that an order of `annals erase` changed in the period, with the times of the oldest and newest; ledger_seq and line_sha256 name the ledger line of the order, which proves that nothing else changed
-- note: unfinished: an order of `annals erase` began and is not done, so it certifies nothing yet: give it again with the same subject; a row of the class order names each team that it covers, and its other rows show what it changed so far
-- note: salts_replaced: the order was given with --unlinkable, so only hashes and signatures attest what earlier lines say of the months that it changed; `annals verify` names these months as SALT_REPLACED
-- note: short: the archive of this stream is younger than keep_at_least_days; begins is the time from which Annals could read the service, or the end of the last expired month; R24 shows months that somebody removed by other means as faults
WITH file AS (
    SELECT team_id, dataset, count(*) AS files, sum("rows")::BIGINT AS row_count, sum(bytes)::BIGINT AS byte_count,
        min(first_event_at) AS oldest_at, max(last_event_at) AS newest_at
    FROM archive_files WHERE ($team IS NULL OR team_id = $team) GROUP BY ALL
), begin AS (
    SELECT team_id, stream, greatest(min(window_start), max(window_end) FILTER (state = 'expired')) AS begins_at FROM coverage
    WHERE $team IS NULL OR team_id = $team GROUP BY ALL
), due AS (
    SELECT team_id, dataset, any_value(policy) AS policy, min(due_at) FILTER (WHERE kept_by IS NULL) AS policy_due_at,
        string_agg(DISTINCT kept_by, '; ') FILTER (WHERE kept_by IS NOT NULL AND due_at <= least($to, $now)) AS kept_by
    FROM retention WHERE $team IS NULL OR team_id = $team GROUP BY ALL
), held AS (
    SELECT f.*, b.begins_at, d.policy, d.kept_by, d.policy_due_at,
        greatest(0, date_sub('day', coalesce(b.begins_at, f.oldest_at), least($to, $now))) AS held_days
    FROM file f LEFT JOIN begin b ON b.team_id = f.team_id AND b.stream = f.dataset
    LEFT JOIN due d ON d.team_id = f.team_id AND d.dataset = f.dataset
), judged AS (
    SELECT *, begins_at IS NOT NULL AND held_days < $keep_at_least_days AS is_short,
        CASE WHEN $keep_at_most_days IS NULL THEN policy_due_at ELSE oldest_at + to_days($keep_at_most_days::INTEGER) END AS due_at
    FROM held
), class_row AS (
    SELECT team_id, dataset AS class, files, row_count AS "rows", byte_count AS bytes, local_time(oldest_at, $tz) AS oldest_local,
        local_time(newest_at, $tz) AS newest_local, local_time(begins_at, $tz) AS begins_local, held_days,
        CASE WHEN due_at <= least($to, $now) THEN 'overdue' WHEN kept_by IS NOT NULL THEN 'held' WHEN is_short THEN 'short'
            ELSE 'kept' END AS state,
        local_time(due_at, $tz) AS due_local,
        CASE WHEN due_at <= least($to, $now) THEN date_sub('day', due_at, least($to, $now)) END AS days_overdue,
        CASE WHEN due_at <= least($to, $now) THEN 'medium' WHEN is_short OR kept_by IS NOT NULL THEN 'info' END AS severity,
        policy, kept_by, NULL::TIMESTAMP AS done_local, NULL::BIGINT AS ledger_seq, NULL::VARCHAR AS order_id, NULL::VARCHAR AS line_sha256,
        NULL::BOOLEAN AS salts_replaced
    FROM judged
), expired_row AS (
    SELECT team_id, dataset AS class, files, "rows", local_time(month_start, $tz) AS oldest_local,
        local_time(month_start + INTERVAL 1 MONTH, $tz) AS newest_local, 'expired' AS state, policy,
        local_time(expired_at, $tz) AS done_local, ledger_seq
    FROM expired WHERE expired_at >= $from AND expired_at < $to AND ($team IS NULL OR team_id = $team)
), hold_row AS (
    SELECT team_id, 'hold' AS class, local_time(held_from, $tz) AS oldest_local, local_time(held_to, $tz) AS newest_local,
        CASE WHEN released_at < $to THEN 'released' ELSE 'hold' END AS state,
        hold_id || ': ' || reason AS kept_by, local_time(CASE WHEN released_at < $to THEN released_at ELSE added_at END, $tz) AS done_local,
        ledger_seq
    FROM holds WHERE added_at < $to AND (released_at IS NULL OR released_at >= $from) AND ($team IS NULL OR team_id = $team)
), erased_row AS (
    SELECT e.team_id, e.dataset AS class, e.files, e."rows", local_time(e.first_event_at, $tz) AS oldest_local,
        local_time(e.last_event_at, $tz) AS newest_local, CASE WHEN u.order_id IS NULL THEN 'erased' ELSE 'unfinished' END AS state,
        CASE WHEN u.order_id IS NOT NULL THEN 'high' END AS severity, local_time(e.erased_at, $tz) AS done_local, e.ledger_seq,
        e.order_id, l.sha256 AS line_sha256, e.salts_replaced
    FROM erasures e LEFT JOIN ledger l ON l.team_id = e.team_id AND l.seq = e.ledger_seq
    LEFT JOIN (SELECT DISTINCT order_id FROM unfinished_erasures) u ON u.order_id = e.order_id
    WHERE e.erased_at >= $from AND e.erased_at < $to AND ($team IS NULL OR e.team_id = $team)
), unfinished_row AS (
    SELECT team_id, 'order' AS class, 'unfinished' AS state, 'high' AS severity, order_id
    FROM unfinished_erasures WHERE $team IS NULL OR team_id = $team
)
SELECT * FROM class_row UNION ALL BY NAME SELECT * FROM expired_row UNION ALL BY NAME SELECT * FROM hold_row UNION ALL BY NAME SELECT * FROM erased_row
UNION ALL BY NAME SELECT * FROM unfinished_row
ORDER BY team_id, class, done_local NULLS FIRST, oldest_local, ledger_seq;

-- chart rows
SELECT class, team_id, held_days FROM report WHERE held_days IS NOT NULL ORDER BY 1, 2;
