-- id: R23
-- title: Collection health
-- question: What could we have missed?
-- controls: PCI DSS 10.7.2, 10.2.1.6; NIST 800-53 AU-5; NIS2 3.2.3(k), 3.2.6
-- chart: heatmap x=day y=stream value=events | Events a day
-- severity: column
-- note: the dates and reasons of gaps stand in the statement below the rows
SELECT
    team_id,
    stream,
    window_start,
    window_end,
    state,
    reads,
    requests,
    events,
    late,
    gaps,
    CASE WHEN gaps > 0 THEN 'high' END AS severity
FROM coverage
WHERE window_start < $to AND window_end > $from AND ($team IS NULL OR team_id = $team)
ORDER BY team_id, stream, window_start;
-- chart rows
SELECT date_trunc('day', window_start) AS day, stream, sum(events)::BIGINT AS events FROM report GROUP BY ALL ORDER BY ALL;
