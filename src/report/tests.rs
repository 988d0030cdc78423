//! The engine, the views and the formats together, over files made here.

use std::collections::BTreeMap;
use std::path::Path;

use crate::archive::{Finding, FindingKind, InventoryRead, WindowRecord, WindowState};
use crate::model::Dataset;
use crate::model::{Instant, InventoryPart, LedgerSeq, Range, Stream, TeamId};

use serde_json::json;

use super::*;
use crate::report::views::data::RetainedRow;

pub fn small() -> Limits {
    Limits { memory_mib: 256, threads: 2, ..Limits::default() }
}

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

pub fn ask(engine: &Engine, sql: &str, format: Format) -> Result<String, ReportError> {
    let mut out = Vec::new();
    let mut sink = sink_for(format, &mut out, Medium::default());
    engine.query(sql, sink.as_mut())?;
    drop(sink);
    Ok(String::from_utf8(out).expect("text formats are UTF-8"))
}

pub fn csv(engine: &Engine, sql: &str) -> String {
    ask(engine, sql, Format::Csv).unwrap()
}

fn empty_engine() -> Engine {
    Engine::open(ViewData::default(), &small()).unwrap()
}

/// One connection event at each of `times`, as a file of the archive.
pub fn write_connections(engine: &Engine, path: &Path, times: &[&str]) -> LiveFile {
    let rows = times.iter().enumerate().map(|(nth, time)| {
        format!(
            "SELECT 't1' AS team_id, '{time}-{nth}' AS event_id, TIMESTAMP '{time}' AS event_time, \
             epoch_us(TIMESTAMP '{time}') * 1000 AS event_time_ns, 'requested' AS event_type, 1::INTEGER AS revision, \
             TIMESTAMP '{time}' AS first_seen_at, false AS redacted, 'c' AS connection_id, 'd' AS device_id, \
             'h' AS computer_host_name, NULL::VARCHAR AS tunnel_id, NULL::VARCHAR AS source_type, \
             NULL::VARCHAR AS peer_email, NULL::VARCHAR AS peer_ip, NULL::VARCHAR AS direct_ip, \
             NULL::VARCHAR AS local_user_name, NULL::VARCHAR AS failure_reason, NULL::VARCHAR AS erased, '{{}}' AS raw"
        )
    });
    let select = rows.collect::<Vec<_>>().join(" UNION ALL ");
    let target = path.to_str().unwrap().replace('\'', "''");
    csv(engine, &format!("COPY ({select}) TO '{target}' (FORMAT parquet)"));
    let instants = times.iter().map(|time| at(&format!("{}Z", time.replace(' ', "T"))));
    let span = (instants.clone().min().unwrap(), instants.max().unwrap());
    LiveFile { path: path.to_str().unwrap().to_owned(), span: Some(span) }
}

fn window(stream: Stream, start: &str, end: &str) -> WindowRecord {
    WindowRecord {
        state: WindowState::Settled,
        reads: 2,
        requests: 7,
        events: 12,
        late: 2,
        settled_at: Some(at("2026-11-21T00:15:00.123456789Z")),
        ..WindowRecord::new(stream, Range::new(at(start), at(end)))
    }
}

fn finding(kind: FindingKind, subject: &str) -> Finding {
    Finding {
        stream: Some(Stream::Connections),
        kind,
        subject: subject.into(),
        from: Some(at("2026-11-20T10:00:00Z")),
        to: Some(at("2026-11-20T11:00:00Z")),
        reason: "it's \"gone\"\nand {odd}".into(),
        count: 3,
        found_at: at("2026-11-20T12:00:00Z"),
    }
}

#[test]
fn an_empty_archive_has_every_view_with_its_columns_and_types() {
    let engine = empty_engine();
    for view in View::ALL {
        assert_eq!(csv(&engine, &format!("SELECT count(*) AS n FROM {}", view.as_str())), "n\n0\n");
        let described = csv(&engine, &format!("SELECT column_name, column_type FROM (DESCRIBE {})", view.as_str()));
        let expected = view.columns().iter().map(|c| format!("{},{}\n", c.name, c.sql_type)).collect::<String>();
        assert_eq!(described, format!("column_name,column_type\n{expected}"));
    }
}

#[test]
fn rows_of_every_file_are_seen_for_any_file_name_and_order() {
    let directory = tempfile::tempdir().unwrap();
    let odd = directory.path().join("it's [a] *odd? place");
    std::fs::create_dir(&odd).unwrap();
    let writer = empty_engine();
    let mut files = Vec::new();
    for month in (1..=12).rev() {
        for day in [1, 28] {
            let times =
                [format!("2025-{month:02}-{day:02} 00:00:00"), format!("2025-{month:02}-{day:02} 23:59:59.999999")];
            let name = odd.join(format!("{month}-{day}.parquet"));
            files.push(write_connections(&writer, &name, &times.each_ref().map(String::as_str)));
        }
    }
    files[3].span = None;
    let data = ViewData { files: BTreeMap::from([(Dataset::Connections, files)]), ..ViewData::default() };
    assert!(views_sql(&data).matches("read_parquet").count() >= 3);
    let engine = Engine::open(data, &small()).unwrap();
    assert_eq!(
        csv(&engine, "SELECT count(*) AS n, count(DISTINCT event_id) AS ids FROM connections"),
        "n,ids\n48,48\n"
    );
    for (condition, expected) in [
        ("event_time >= '2025-03-01' AND event_time < '2025-04-01'", 4),
        ("event_time = '2025-03-28 23:59:59.999999'", 1),
        ("event_time < '2025-01-01'", 0),
        ("strftime(event_time, '%m') = '12'", 4),
    ] {
        let answer = csv(&engine, &format!("SELECT count(*) AS n FROM connections WHERE {condition}"));
        assert_eq!(answer, format!("n\n{expected}\n"), "{condition}");
    }
}

#[test]
fn coverage_and_findings_come_from_the_ledger() {
    let mut data = ViewData::default();
    let windows = [
        window(Stream::Connections, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        window(Stream::Connections, "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"),
        window(Stream::Activity, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
    ];
    let findings = [
        (LedgerSeq(4), finding(FindingKind::Gap, "closed later")),
        (LedgerSeq(5), finding(FindingKind::Gap, "stands")),
        (LedgerSeq(6), finding(FindingKind::GapClosed, "closed later")),
        (LedgerSeq(7), finding(FindingKind::Late, "no gap")),
    ];
    data.add_team(&TeamId::from("t'1"), windows, findings);
    let engine = Engine::open(data, &small()).unwrap();
    assert_eq!(
        csv(&engine, "SELECT * FROM coverage ORDER BY stream DESC, window_start"),
        "team_id,stream,window_start,window_end,state,reads,requests,events,new,late,gaps,settled_at\n\
         t'1,connections,2026-11-20T00:00:00,2026-11-21T00:00:00,settled,2,7,12,10,2,1,2026-11-21T00:15:00.123456\n\
         t'1,connections,2026-11-21T00:00:00,2026-11-22T00:00:00,settled,2,7,12,10,2,0,2026-11-21T00:15:00.123456\n\
         t'1,activity,2026-11-20T00:00:00,2026-11-21T00:00:00,settled,2,7,12,10,2,0,2026-11-21T00:15:00.123456\n"
    );
    assert_eq!(
        ask(&engine, "SELECT * FROM findings WHERE ledger_seq = 5", Format::Ndjson).unwrap(),
        "{\"team_id\":\"t'1\",\"stream\":\"connections\",\"kind\":\"gap\",\"subject\":\"stands\",\
         \"from_time\":\"2026-11-20T10:00:00\",\"to_time\":\"2026-11-20T11:00:00\",\
         \"reason\":\"it's \\\"gone\\\"\\nand {odd}\",\"count\":3,\"found_at\":\"2026-11-20T12:00:00\",\"ledger_seq\":5}\n"
    );
}

#[test]
fn no_query_uses_icu() {
    let mut data = ViewData::default();
    let day = window(Stream::Connections, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
    data.add_team(&TeamId::from("t1"), [day], [(LedgerSeq(1), finding(FindingKind::Gap, "x"))]);
    let sql = views_sql(&data).to_lowercase();
    for banned in ["time zone", "timestamptz", "timezone(", "icu", "now()", "current_", "date_trunc", "strftime"] {
        assert!(!sql.contains(banned), "{banned} in {sql}");
    }
    let engine = Engine::open(data, &small()).unwrap();
    let types = csv(&engine, "SELECT DISTINCT data_type FROM duckdb_columns() WHERE NOT internal ORDER BY 1");
    assert_eq!(types, "data_type\nBIGINT\nBLOB\nBOOLEAN\nINTEGER\nTIMESTAMP\nVARCHAR\n");
}

#[test]
fn local_time_follows_the_zone() {
    let engine = empty_engine();
    for (utc, zone, local) in [
        ("2026-01-15 12:00:00", "Europe/Berlin", "2026-01-15T13:00:00"),
        ("2026-07-15 12:00:00.000001", "Europe/Berlin", "2026-07-15T14:00:00.000001"),
        ("2026-10-25 00:30:00", "Europe/Berlin", "2026-10-25T02:30:00"),
        ("2026-10-25 01:30:00", "Europe/Berlin", "2026-10-25T02:30:00"),
        ("2026-07-15 12:00:00", "Asia/Kathmandu", "2026-07-15T17:45:00"),
        ("2026-07-15 12:00:00", "UTC", "2026-07-15T12:00:00"),
    ] {
        let answer = csv(&engine, &format!("SELECT local_time(TIMESTAMP '{utc}', '{zone}') AS t"));
        assert_eq!(answer, format!("t\n{local}\n"), "{utc} {zone}");
    }
    assert_eq!(
        csv(&engine, "SELECT local_time(NULL, 'UTC') AS t, local_time(TIMESTAMP '2026-01-01', NULL) AS u"),
        "t,u\n,\n"
    );
    let error = ask(&engine, "SELECT local_time(TIMESTAMP '2026-01-01', 'Mars/Base')", Format::Csv).unwrap_err();
    assert!(error.is_wrong_use() && error.to_string().contains("Mars/Base"), "{error}");
}

#[test]
fn no_extension_is_loaded_from_the_network() {
    let engine = empty_engine();
    let settings = csv(
        &engine,
        "SELECT name, value FROM duckdb_settings() WHERE name IN ('autoinstall_known_extensions', \
         'autoload_known_extensions', 'allow_community_extensions') ORDER BY name",
    );
    assert_eq!(
        settings,
        "name,value\nallow_community_extensions,false\nautoinstall_known_extensions,false\n\
         autoload_known_extensions,false\n"
    );
}

#[test]
fn a_wrong_query_and_a_broken_file_are_distinguished() {
    let engine = empty_engine();
    for sql in
        ["", " \n", "SELEKT 1", "SELECT nothing FROM connections", "SELECT * FROM nowhere", "SELECT 'x'::INTEGER"]
    {
        let error = ask(&engine, sql, Format::Csv).unwrap_err();
        assert!(error.is_wrong_use(), "{sql}: {error}");
        assert!(!error.to_string().contains('\n') && !error.to_string().contains("LINE 1"), "{sql}: {error}");
    }
    for sql in ["", ";", " ;\n; ", "-- SELECT 1", "; -- nothing"] {
        let error = ask(&engine, sql, Format::Csv).unwrap_err().to_string();
        assert!(error.ends_with("the query is empty"), "{sql}: {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let file = write_connections(&engine, &path, &["2026-01-01 00:00:00"]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::remove_file(&path).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), &bytes).unwrap();
    let data = ViewData { files: BTreeMap::from([(Dataset::Connections, vec![file])]), ..ViewData::default() };
    for (is_pinned, advice) in [(false, "`annals verify`"), (true, "`annals cache clear`")] {
        let data = ViewData { is_pinned, ..data.clone() };
        let error = Engine::open(data, &small()).err().expect("half a file cannot be read").to_string();
        assert!(error.contains("a.parquet") && error.contains(advice), "{error}");
        assert!(error.starts_with("the SQL engine failed"), "{error}");
    }
}

#[test]
fn a_file_removed_by_a_commit_is_not_reported_as_a_wrong_query() {
    let directory = tempfile::tempdir().unwrap();
    let odd = directory.path().join("it's [a] *odd? place");
    std::fs::create_dir(&odd).unwrap();
    let path = odd.join("a.parquet");
    let file = write_connections(&empty_engine(), &path, &["2026-01-01 00:00:00"]);
    let data = ViewData { files: BTreeMap::from([(Dataset::Connections, vec![file])]), ..ViewData::default() };
    let engine = Engine::open(data, &small()).and_then(Engine::confined).unwrap();
    assert_eq!(csv(&engine, "SELECT count(*) AS n FROM connections"), "n\n1\n");
    std::fs::remove_file(&path).unwrap();
    let gone = ask(&engine, "SELECT count(DISTINCT raw) FROM connections", Format::Csv).unwrap_err();
    assert!(matches!(gone, ReportError::Engine(_)), "the caller takes a new snapshot: {gone:?}");
    assert!(gone.to_string().ends_with("`annals verify` names every such file"), "{gone}");
    let elsewhere = ask(&engine, "SELECT * FROM read_text('/etc/passwd')", Format::Csv).unwrap_err();
    assert!(elsewhere.is_wrong_use() && elsewhere.to_string().contains("no files"), "{elsewhere:?}");
}

#[test]
fn an_error_in_the_middle_of_a_result_is_an_error() {
    let sql =
        "SELECT CASE WHEN i = 900000 THEN error('stopped here') ELSE i::VARCHAR END AS v FROM range(1000000) t(i)";
    let engine = empty_engine();
    // The engine gives the cause, unless the interruption of another thread is reported first.
    let errors = (0..20).map(|_| ask(&engine, sql, Format::Ndjson).unwrap_err());
    let errors: Vec<ReportError> = errors.take_while(|error| !error.to_string().contains("stopped here")).collect();
    assert!(
        errors.len() < 20 && errors.iter().all(|error| error.to_string().contains("run the query again")),
        "{errors:?}"
    );
}

#[test]
fn the_views_for_other_clients_are_the_same_and_define_the_zone_function() {
    let data = ViewData::default();
    let sql = client_sql(&data).unwrap();
    assert!(sql.contains(&views_sql(&data)) && sql.contains("VIEW ledger") && sql.contains("VIEW archive_files"));
    assert!(sql.contains("MACRO local_time(utc_time, zone)") && sql.contains("MACRO json_strings(json_text)"));
}

#[test]
fn the_strings_of_a_json_text_have_no_escapes() {
    let engine = empty_engine();
    for (text, strings) in [
        (r#"{"a":"x"}"#, "[a, x]"),
        (r#"{"a":"r\u0026d"}"#, "[a, r&d]"),
        (r#"["m\u00fcller", 1, "\q"]"#, r"[müller, \q]"),
        (r#"{"a":"{\"b\":\"r\\u0026d\"}"}"#, r#"[a, {"b":"r\u0026d"}, b, r&d]"#),
        (r#"["[\"[\\\"c\\\"]\"]"]"#, r#"[["[\"c\"]"], ["c"], c]"#),
        ("no JSON", "[]"),
    ] {
        let sql = format!("SELECT array_to_string(json_strings('{text}'), ', ') AS found");
        let found = ask(&engine, &sql, Format::Ndjson).unwrap();
        let row: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(format!("[{}]", row["found"].as_str().unwrap()), strings, "{text}");
    }
    assert_eq!(csv(&engine, "SELECT json_strings(NULL) IS NULL AS n"), "n\ntrue\n");
}

#[test]
fn changes_of_the_inventory_are_shown_as_dated_versions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups.parquet");
    let rows = [
        ("g1", "2026-11-01 03:00:00", true, false, "Lab"),
        ("g2", "2026-11-01 03:00:00", true, false, "Ops"),
        ("g1", "2026-11-02 03:00:00", true, true, "Lab"),
        ("g1", "2026-11-03 03:00:00", true, false, "Laboratory"),
        ("g2", "2026-11-04 03:00:00", false, false, "Ops"),
        ("g2", "2026-11-06 03:00:00", true, false, "Ops"),
    ];
    let select = rows.map(|(id, at, present, repeats, name)| {
        format!(
            "SELECT 't1' AS team_id, '{id}' AS group_id, TIMESTAMP '{at}' AS seen_at, {present} AS present, \
             {repeats} AS repeats, '{name}' AS name, NULL::BOOLEAN AS scim_managed, NULL::VARCHAR AS annotations"
        )
    });
    let target = path.to_str().unwrap();
    csv(&empty_engine(), &format!("COPY ({}) TO '{target}' (FORMAT parquet)", select.join(" UNION ALL ")));
    let file = LiveFile { path: target.to_owned(), span: None };
    let read =
        InventoryRead { part: InventoryPart::Groups, read_at: at("2026-11-06T03:00:00Z"), visible: true, entities: 2 };
    let data = ViewData {
        files: BTreeMap::from([(Dataset::Inventory(InventoryPart::Groups), vec![file])]),
        inventory_reads: vec![(TeamId::from("t1"), read)],
        ..ViewData::default()
    };
    let engine = Engine::open(data, &small()).unwrap();
    assert_eq!(
        csv(&engine, "SELECT * FROM inventory_groups ORDER BY group_id, valid_from"),
        "team_id,group_id,valid_from,valid_to,name,scim_managed,annotations\n\
         t1,g1,2026-11-01T03:00:00,2026-11-03T03:00:00,Lab,,\n\
         t1,g1,2026-11-03T03:00:00,,Laboratory,,\n\
         t1,g2,2026-11-01T03:00:00,2026-11-04T03:00:00,Ops,,\n\
         t1,g2,2026-11-06T03:00:00,,Ops,,\n"
    );
    assert_eq!(
        csv(&engine, "SELECT * FROM inventory_reads"),
        "team_id,part,read_at,visible,entities\nt1,groups,2026-11-06T03:00:00,true,2\n"
    );
}

#[test]
fn an_archive_is_verified_only_if_a_query_needs_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(crate::store::LocalStore::new(directory.path()));
    let archive = crate::archive::Archive::open_or_create(store, || "a".to_owned()).unwrap();
    let engine = Engine::open(ViewData { archive: Some(archive), ..ViewData::default() }, &small()).unwrap();
    assert_eq!(csv(&engine, "SELECT count(*) AS n FROM ledger, archive_files"), "n\n0\n");
    assert!(!engine.has_verified());
    assert_eq!(csv(&engine, "SELECT clean FROM verification_verdict"), "clean\ntrue\n");
    assert!(engine.has_verified());
}

/// A page's process has no archive whose ledger lies elsewhere: it must not show an empty ledger.
#[test]
fn a_ledger_out_of_reach_is_no_empty_ledger() {
    let data = ViewData { has_ledger_elsewhere: true, ..ViewData::default() };
    for view in ["ledger", "archive_files", "verification", "verification_verdict", "unfinished_erasures"] {
        let engine = Engine::open(data.clone(), &small()).unwrap();
        let error = ask(&engine, &format!("SELECT * FROM {view}"), Format::Csv).unwrap_err();
        assert!(error.is_wrong_use(), "{view}: the query is at fault: {error}");
        let error = error.to_string();
        assert!(error.contains("from the place of the ledger: use `annals sql`"), "{view}: {error}");
    }
}

/// A hold on the whole archive stands in the ledgers of the teams of its time. It keeps the months of later teams, too.
#[test]
fn a_hold_on_the_whole_archive_keeps_the_months_of_a_team_without_it() {
    let hold = |id: &str, scope, from| {
        let added =
            json!({"id": id, "reason": "r", "at": at("2026-11-01T00:00:00Z"), "from": at(from), "scope": scope});
        let hold = json!({"added": added, "seq": 1, "released": null});
        (TeamId::from("t1"), serde_json::from_value(hold).unwrap())
    };
    let month = |month: &str, kept_by: Option<&str>| RetainedRow {
        team_id: "t2".into(),
        dataset: Dataset::Activity,
        month: at(month),
        period: crate::model::path::month_of(at(month)),
        policy: "activity = 30d".into(),
        files: 1,
        rows: 1,
        bytes: 1,
        due_at: at("2026-11-02T00:00:00Z"),
        kept_by: kept_by.map(str::to_owned),
    };
    let (july, august) = ("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z");
    let data = ViewData {
        holds: vec![hold("B", "all", august), hold("A", "all", august), hold("C", "team", july)],
        retention: vec![month(july, None), month(august, None), month(august, Some("held by D"))],
        ..ViewData::default()
    };
    let sql = "SELECT kept_by FROM retention";
    let engine = Engine::open(data.narrowed(&Needs::of_sql([sql])), &small()).unwrap();
    assert_eq!(csv(&engine, sql), "kept_by\n\n\"held by A, B\"\nheld by D\n");
}
