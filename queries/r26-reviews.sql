-- id: R26
-- title: Review record
-- question: Did somebody review the evidence, how often, and with which outcome?
-- controls: PCI DSS 10.4.1, 10.4.3; HIPAA 164.308(a)(1)(ii)(D), 164.316(b)(2)(i); NIST 800-53 AU-6; CIS 8.11
-- param: cadence duration from 1s to 3660d = 24h | how often somebody must review: 24h for PCI DSS, 7d for CIS
-- param: grace duration to 3660d = 12h | how late a review may be before it is overdue
-- chart: dots x=day_local y=what series=team_id | Reviews, and times without one
-- severity: column
-- note: `annals review sign` appends a review to the ledger; R24 shows every later change of a ledger line
-- note: overdue: from the end of the cadence after a review (or the period's beginning, or the first reading of the team if that is later) to the next review, or to the period's end
-- note: a signed review shows that somebody looked at a pack, not how carefully
WITH team AS (
    SELECT team_id FROM coverage WHERE $team IS NULL OR team_id = $team
    UNION SELECT team_id FROM reviews WHERE $team IS NULL OR team_id = $team
), first_reading AS (
    SELECT team_id, min(found_at) AS read_at FROM findings WHERE kind = 'archive_begins' GROUP BY team_id
), review AS (
    SELECT * FROM reviews
    WHERE reviewed_at < $to AND ($team IS NULL OR team_id = $team)
), mark AS (
    -- The period's beginning counts as a review, so a first day without a review is not overdue. So does the first reading: before it,
    -- there was nothing to review.
    SELECT team_id, greatest($from, coalesce(read_at, $from)) AS looked_at FROM team LEFT JOIN first_reading USING (team_id)
    UNION SELECT team_id, reviewed_at FROM review WHERE reviewed_at >= $from
), pause AS (
    SELECT team_id, looked_at,
        coalesce(lead(looked_at) OVER (PARTITION BY team_id ORDER BY looked_at), least($to, $now)) AS next_at
    FROM mark
), row_of AS (
    SELECT team_id, 'review' AS what, reviewed_at AS from_at, NULL::TIMESTAMP AS to_at, reviewer, reports, findings, outcome,
        ticket, period_from, period_to, pack_sha256, ledger_seq
    FROM review WHERE reviewed_at >= $from
    UNION ALL BY NAME
    SELECT team_id, 'overdue' AS what, looked_at + to_seconds($cadence) AS from_at, next_at AS to_at FROM pause
    WHERE next_at > looked_at + to_seconds($cadence) + to_seconds($grace)
)
SELECT team_id, what, local_time(from_at, $tz) AS from_local, local_time(to_at, $tz) AS to_local,
    round(date_diff('second', from_at, to_at) / 3600.0, 1) AS hours_overdue, reviewer,
    coalesce(array_to_string(TRY(from_json(reports, '["VARCHAR"]')), ', '), reports) AS reports, findings, outcome, ticket,
    local_time(period_from, $tz) AS period_from_local, local_time(period_to, $tz) AS period_to_local, pack_sha256, ledger_seq,
    CASE WHEN what = 'overdue' THEN 'medium' END AS severity, from_at
FROM row_of
ORDER BY from_at, team_id, what, ledger_seq;

-- chart rows
WITH largest AS (SELECT team_id FROM report GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 7)
SELECT DISTINCT date_trunc('day', from_local) AS day_local, what,
    CASE WHEN team_id IN (FROM largest) THEN team_id ELSE 'all others' END AS team_id
FROM report ORDER BY 1, 2, 3;
