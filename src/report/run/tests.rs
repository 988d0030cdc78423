//! The engine features that a run needs: bound values skip files, rows keep their order, and a report reads only the archive.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};

use crate::model::Dataset;

use super::*;
use crate::report::tests::small;
use crate::report::{Flow, LiveFile, Origin, ViewData};

const OCTOBER: &str = "-- id: M1\n-- title: T\n-- question: Q?\n-- param: kind text = 'requested' | of events\n\
    SELECT event_id FROM connections WHERE event_time >= $from AND event_time < $to\n\
    AND ($team IS NULL OR team_id = $team) AND event_type = $kind";

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn report(text: &str) -> Report {
    Report::parse(Path::new("m1.sql"), text, Origin::Embedded).unwrap()
}

fn asked(report: &Report) -> ReportInput {
    let now = at("2026-11-20T00:00:00Z");
    let zone: Zone = "UTC".parse().unwrap();
    let values = report.values(&[], now, zone.rules()).unwrap();
    let period = Range { start: at("2026-10-01T00:00:00Z"), end: at("2026-11-01T00:00:00Z") };
    ReportInput { period, team: None, zone, as_of: period.end, now, values }
}

/// One event a month from 2020 to 2026, one file each, in a directory whose name looks like a pattern to the engine.
fn seven_years(directory: &Path) -> ViewData {
    let writer = Engine::open(ViewData::default(), &small()).unwrap();
    let mut data = ViewData::default();
    let place = directory.join("it's [a] *odd? place");
    std::fs::create_dir(&place).unwrap();
    for month in 0..84 {
        let time = at("2020-01-15T00:00:00Z").plus(Duration::from_secs(month * 30 * 86_400 + month * 10 * 3_600));
        let path = place.join(format!("{month}.parquet")).to_str().unwrap().to_owned();
        let row = format!(
            "SELECT 't' AS team_id, 'e{month}' AS event_id, make_timestamp({}) AS event_time, {} AS event_time_ns, \
             'requested' AS event_type, 1 AS revision, make_timestamp({0}) AS first_seen_at, false AS redacted, '{{}}' AS raw, \
             NULL AS connection_id, NULL AS device_id, NULL AS computer_host_name, NULL AS tunnel_id, NULL AS source_type, \
             NULL AS peer_email, NULL AS peer_ip, NULL AS direct_ip, NULL AS local_user_name, NULL AS failure_reason, NULL AS erased",
            time.micros(),
            time.nanos()
        );
        let copy = format!("COPY ({row}) TO '{}' (FORMAT parquet)", path.replace('\'', "''"));
        writer.connection().execute_batch(&copy).unwrap();
        data.files.entry(Dataset::Connections).or_default().push(LiveFile { path, span: Some((time, time)) });
    }
    data
}

struct CountingSink(Vec<i64>, u64);

impl Sink for CountingSink {
    fn begin(&mut self, _: SchemaRef) -> Result<(), ReportError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        self.1 += batch.num_rows() as u64;
        if let Some(numbers) = batch.column(0).as_primitive_opt::<Int64Type>() {
            self.0.extend(numbers.values());
        }
        Ok(Flow::More)
    }
}

#[test]
fn a_month_of_seven_years_opens_only_its_own_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Engine::open(seven_years(directory.path()), &small()).and_then(Engine::confined).unwrap();
    let report = report(OCTOBER);
    let asked = asked(&report);
    assert_eq!(engine.run(&report, &asked).unwrap().about().rows, 1);
    let explain = format!("EXPLAIN ANALYZE {}", report.rows.sql);
    let mut statement = engine.connection().prepare(&explain).unwrap();
    bind(&mut statement, &report, &report.rows, &asked).unwrap();
    statement.raw_execute().unwrap();
    let mut rows = statement.raw_query();
    let plan: String = rows.next().unwrap().expect("a plan").get(1).unwrap();
    let files: u64 = plan
        .lines()
        .filter_map(|line| line.split_once("Total Files Read: "))
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap())
        .sum();
    assert!((1..=12).contains(&files), "{files} of 84 files are read: {plan}");
}

#[test]
fn rows_keep_the_query_s_order_beyond_the_memory_of_one_batch() {
    let mut engine = Engine::open(ViewData::default(), &small()).and_then(Engine::confined).unwrap();
    let report =
        report("-- id: M1\n-- title: T\n-- question: Q?\nSELECT i FROM range(300000) t(i) ORDER BY hash(i), i");
    let asked = asked(&report);
    let expected = {
        let mut sink = CountingSink(Vec::new(), 0);
        engine.query(&report.rows.sql, &mut sink).unwrap();
        sink.0
    };
    let run = engine.run(&report, &asked).unwrap();
    let mut sink = CountingSink(Vec::new(), 0);
    run.rows(&mut sink).unwrap();
    assert_eq!((run.about().rows, sink.0 == expected), (300_000, true));
}

#[test]
fn a_run_leaves_nothing_for_the_next_run() {
    let mut engine = Engine::open(ViewData::default(), &small()).and_then(Engine::confined).unwrap();
    let head = "-- id: M1\n-- title: T\n-- question: Q?\n";
    let first = report(&format!("{head}SELECT 1 AS a; SELECT a + 1 AS b FROM report"));
    let second = report(&format!("{head}SELECT * FROM report"));
    let asked = asked(&first);
    let run = engine.run(&first, &asked).unwrap();
    let mut chart = CountingSink(Vec::new(), 0);
    run.chart_rows(&mut chart).unwrap();
    assert_eq!(chart.1, 1);
    drop(run);
    let error = engine.run(&second, &asked).err().expect("there is no relation report before the report is made");
    assert!(error.is_wrong_use() && error.to_string().contains("report does not exist"), "{error}");
}

#[test]
fn a_failing_archive_is_not_wrong_use() {
    let store = Arc::new(crate::store::MemoryStore::new());
    let archive = crate::archive::Archive::open_or_create(store, || "a".into()).unwrap();
    let team_id = TeamId::from("t");
    let team = TeamSnapshot {
        team_id: team_id.clone(),
        seq: crate::model::LedgerSeq(1),
        head: crate::model::Digest([0; 32]),
        begins: BTreeMap::new(),
        read_to: BTreeMap::new(),
        sessions_lack: None,
    };
    let _ = archive.writer(&team_id).unwrap();
    let damaged = "ledger/team=t/2026-11-20.jsonl";
    let mut file = archive.store().create().unwrap();
    std::io::Write::write_all(&mut file, b"no ledger line\n").unwrap();
    file.finish(damaged).unwrap();
    let data = ViewData { archive: Some(archive), teams: vec![team], ..ViewData::default() };
    let engine = Engine::open(data, &small()).and_then(Engine::confined).unwrap();
    let error = engine.query("SELECT * FROM ledger", &mut CountingSink(Vec::new(), 0)).unwrap_err();
    assert!(!error.is_wrong_use() && error.to_string().contains(damaged), "{error}");
}
