-- id: R24
-- title: Integrity attestation
-- question: Does the archive still hold exactly what was written?
-- controls: PCI DSS 10.3.2, 10.3.4; NIST 800-53 AU-9(3), AU-10; ISO 27001 A.5.33, A.8.15
-- needs: verify
-- chart: strip x=committed_local series=team_id | Times of commits in the ledger
-- severity: column
-- note: one row for the archive as a whole, one for each team, and one for each fault that the check found; the period of the report does not limit it
-- note: the check reads and hashes every data file, and hashes every ledger line and compares it with the line before; keep head_sha256 elsewhere (annals anchor), and compare it at the next check
-- note: with a signing key, the archive also holds signatures, but no column shows the key or the last signed line: annals verify prints both and checks them with --key; heads and public keys are kept elsewhere, and only this machine vouches for the lines after the last such head
WITH line AS (
    SELECT *, lag(sha256) OVER (PARTITION BY team_id ORDER BY seq) AS expected_prev,
        lag(seq) OVER (PARTITION BY team_id ORDER BY seq) AS expected_seq
    FROM ledger WHERE $team IS NULL OR team_id = $team
), chain AS (
    SELECT team_id, min(seq) AS first_seq, max(seq) AS last_seq, count(*) AS lines, min("at") AS first_at, max("at") AS last_at,
        arg_max(sha256, seq) AS head_sha256,
        count(*) FILTER (WHERE expected_prev IS NOT NULL AND (prev IS DISTINCT FROM expected_prev OR seq <> expected_seq + 1)) AS breaks
    FROM line GROUP BY team_id
), file AS (
    SELECT team_id, count(*) AS files, sum("rows")::BIGINT AS row_count, sum(bytes)::BIGINT AS byte_count FROM archive_files
    WHERE $team IS NULL OR team_id = $team GROUP BY team_id
), fault AS (
    SELECT team_id, code, subject, detail FROM verification WHERE $team IS NULL OR team_id = $team OR team_id IS NULL
), summary AS (
    SELECT c.team_id, 'team' AS what, CASE WHEN coalesce(f.faults, 0) + c.breaks = 0 THEN 'ok' ELSE 'faulty' END AS result,
        NULL::VARCHAR AS code, NULL::VARCHAR AS subject, NULL::VARCHAR AS detail,
        c.first_seq, c.last_seq, c.lines, c.breaks, coalesce(a.files, 0) AS files, coalesce(a.row_count, 0) AS row_count,
        coalesce(a.byte_count, 0) AS byte_count, coalesce(f.faults, 0) AS faults, c.head_sha256, c.first_at, c.last_at
    FROM chain c LEFT JOIN file a USING (team_id)
        LEFT JOIN (SELECT team_id, count(*) AS faults FROM fault GROUP BY team_id) f USING (team_id)
), row_of AS (
    SELECT * FROM summary
    UNION ALL BY NAME
    SELECT NULL AS team_id, 'archive' AS what, CASE WHEN clean THEN 'ok' ELSE 'faulty' END AS result, verdict AS detail,
        lines, files, "rows" AS row_count, faults, lines - lines_good AS bad_lines, files - files_good AS bad_files
    FROM verification_verdict WHERE $team IS NULL
    UNION ALL BY NAME SELECT team_id, 'fault' AS what, 'faulty' AS result, code, subject, detail FROM fault
)
SELECT team_id, what, result, code, subject, detail, first_seq, last_seq, lines, bad_lines, breaks, files, bad_files, row_count AS "rows",
    byte_count AS bytes, faults, head_sha256, local_time(first_at, $tz) AS first_commit_local, local_time(last_at, $tz) AS last_commit_local,
    CASE WHEN what = 'fault' OR result = 'faulty' THEN 'critical' END AS severity
FROM row_of
ORDER BY what = 'archive' DESC, team_id, what DESC, code, subject, detail;

-- chart rows
WITH line AS (
    SELECT team_id, "at", (epoch_us("at") - epoch_us(min("at") OVER ())) / greatest(1, epoch_us(max("at") OVER ()) - epoch_us(min("at") OVER ())) AS share
    FROM ledger WHERE $team IS NULL OR team_id = $team
)
-- A ledger can have more lines than a chart reads, so one mark stands for all commits of a team in a short time.
SELECT local_time(min("at"), $tz) AS committed_local, team_id FROM line
GROUP BY team_id, floor(share * least(800, 9000 // (SELECT count(DISTINCT team_id) FROM line))) ORDER BY 1, 2;
