use proptest::prelude::*;

use super::*;
use crate::report::tests::{ask, csv, small, write_connections};
use crate::report::{Engine, Format};

fn times(sql: &str) -> Option<(Option<String>, Option<String>)> {
    let question = Question::read(sql)?;
    Some((question.from.map(|at| at.to_string()), question.to.map(|at| at.to_string())))
}

fn at(text: &str) -> Option<String> {
    Some(format!("2026-{text}Z"))
}

#[test]
fn top_level_conditions_limit_the_time() {
    let whole = |conditions: &str| times(&format!("SELECT count(*) FROM connections WHERE {conditions}"));
    for (conditions, from, to) in [
        ("event_time >= '2026-03-01' AND event_time < '2026-04-01'", at("03-01T00:00:00"), at("04-01T00:00:00")),
        ("event_time BETWEEN '2026-03-01' AND '2026-04-01' AND x = 1", at("03-01T00:00:00"), at("04-01T00:00:00")),
        ("x BETWEEN 1 AND 2 AND event_time > '2026-03-01'", at("03-01T00:00:00"), None),
        ("x BETWEEN 1 AND event_time AND event_time > '2026-03-01'", at("03-01T00:00:00"), None),
        ("TIMESTAMP '2026-03-01 10:00:00.5' <= event_time", at("03-01T10:00:00.5"), None),
        ("\"EVENT_TIME\" = DATE '2026-03-01'", at("03-01T00:00:00"), at("03-01T00:00:00")),
        ("(a OR b) AND event_time > '2026-03-01T10:00:00' GROUP BY ALL", at("03-01T10:00:00"), None),
        ("event_time > '2026-03-01' AND event_time > '2026-03-02' -- AND", at("03-02T00:00:00"), None),
    ] {
        assert_eq!(whole(conditions), Some((from, to)), "{conditions}");
    }
    let aliased = "select c.event_id from connections as c where c.event_time < '2026-03-01' order by 1 limit 5;";
    assert_eq!(times(aliased), Some((None, at("03-01T00:00:00"))));
    let sessions = "SELECT * FROM sessions s WHERE s.first_event_at >= '2026-03-01' AND last_event_at < '2026-04-01'";
    assert_eq!(times(sessions), Some((at("03-01T00:00:00"), None)));
}

#[test]
fn complex_queries_stay_unchanged() {
    for sql in [
        "SELECT * FROM connections WHERE {bound} OR true",
        "SELECT * FROM connections WHERE NOT {bound}",
        "SELECT * FROM connections WHERE NOT ({bound})",
        "SELECT * FROM connections WHERE CASE WHEN a AND {bound} AND b THEN true END",
        "SELECT * FROM connections WHERE ({bound})",
        "SELECT * FROM connections WHERE {bound} || ''",
        "SELECT * FROM connections WHERE {bound} = false",
        "SELECT * FROM connections WHERE event_time::DATE > '2026-03-01'",
        "SELECT * FROM connections WHERE event_time > now()",
        "SELECT * FROM connections WHERE event_time > '2026-03'",
        "SELECT * FROM connections WHERE event_time > '2026-03-01 10:00:00+01'",
        "SELECT * FROM connections WHERE event_time > $1",
        "SELECT * FROM connections WHERE event_time <> '2026-03-01'",
        "SELECT * FROM connections WHERE other.event_time > '2026-03-01'",
        "SELECT * FROM connections WHERE first_event_at > '2026-03-01'",
        "SELECT * FROM sessions WHERE {bound}",
        "SELECT * FROM connections, activity WHERE {bound}",
        "SELECT * FROM connections JOIN activity USING (event_id) WHERE {bound}",
        "SELECT (SELECT count(*) FROM connections) FROM connections WHERE {bound}",
        "SELECT * FROM main.connections WHERE {bound}",
        "SELECT * FROM (SELECT * FROM connections) WHERE {bound}",
        "SELECT * FROM connections WHERE {bound} UNION ALL SELECT * FROM connections",
        "WITH c AS (SELECT 1) SELECT * FROM connections WHERE {bound}",
        "CREATE TABLE t AS SELECT * FROM connections WHERE {bound}",
        "SELECT 1; SELECT * FROM connections WHERE {bound}",
        "FROM connections WHERE {bound}",
        "SELECT * FROM quarantine WHERE {bound}",
        "SELECT * FROM connections HAVING {bound}",
        "SELECT 'FROM connections WHERE {bound}",
        "SELECT * FROM connections",
        "SELECT * FROM connections WHERE 'open",
    ] {
        let sql = sql.replace("{bound}", "event_time > '2026-03-01'");
        assert_eq!(times(&sql), None, "{sql}");
    }
}

fn literal() -> impl Strategy<Value = String> {
    let day = (1..=12_u32, 1..=28_u32, 0..24_u32);
    (day, 0..5_u8).prop_map(|((month, day, hour), form)| match form {
        0 => format!("'2026-{month:02}-{day:02}'"),
        1 => format!("'2026-{month:02}-{day:02} {hour:02}:00:00'"),
        2 => format!("TIMESTAMP '2026-{month:02}-{day:02}T{hour:02}:30:00.25'"),
        3 => format!("DATE '2026-{month:02}-{day:02}'"),
        _ => format!("('2026-{month:02}-{day:02}'::TIMESTAMP)"),
    })
}

fn condition() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["<", "<=", ">", ">=", "=", "<>"]);
    let leaf = prop_oneof![
        4 => (operator.clone(), literal()).prop_map(|(sign, time)| format!("event_time {sign} {time}")),
        2 => (operator, literal()).prop_map(|(sign, time)| format!("{time} {sign} c.event_time")),
        2 => (literal(), literal()).prop_map(|(from, to)| format!("event_time BETWEEN {from} AND {to}")),
        1 => (literal(), literal()).prop_map(|(from, to)| format!("event_time NOT BETWEEN {from} AND {to}")),
        1 => Just("device_id = 'd'".to_owned()),
        1 => Just("event_time IS NOT NULL".to_owned()),
        1 => Just("length(device_id) BETWEEN 1 AND 3".to_owned()),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => two.clone().prop_map(|(a, b)| format!("{a} AND {b}")),
            1 => two.clone().prop_map(|(a, b)| format!("{a} OR {b}")),
            1 => two.prop_map(|(a, b)| format!("CASE WHEN {a} AND {b} AND true THEN false ELSE true END")),
            1 => inner.clone().prop_map(|a| format!("NOT {a}")),
            1 => inner.prop_map(|a| format!("({a})")),
        ]
    })
}

/// Rows at both ends of a day, on two days a month: files, and the engine over them.
fn year() -> (tempfile::TempDir, Engine) {
    let directory = tempfile::tempdir().unwrap();
    let writer = Engine::open(ViewData::default(), &small()).unwrap();
    let mut files = Vec::new();
    for month in 1..=12 {
        let times = [1, 10, 28].map(|day| format!("2026-{month:02}-{day:02} {:02}:30:00.25", (day + month) % 24));
        let name = directory.path().join(format!("{month}.parquet"));
        files.push(write_connections(&writer, &name, &times.each_ref().map(String::as_str)));
    }
    let data = ViewData { files: [(Dataset::Connections, files)].into(), ..ViewData::default() };
    (directory, Engine::open(data, &small()).unwrap())
}

/// Random conditions: the omitted files hold no matching row.
#[test]
fn a_pruned_question_has_the_same_answer() {
    let (_directory, engine) = year();
    let pruned_ones = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 500, ..ProptestConfig::default() });
    runner
        .run(&condition(), |condition| {
            let sql = format!("SELECT event_id FROM connections c WHERE {condition} ORDER BY event_id");
            let whole =
                csv(&engine, &format!("SELECT event_id FROM (FROM connections) c WHERE {condition} ORDER BY event_id"));
            pruned_ones.set(pruned_ones.get() + u32::from(pruned(&sql, engine.data()).is_some()));
            prop_assert_eq!(csv(&engine, &sql), whole, "{}", sql);
            Ok(())
        })
        .unwrap();
    assert!(pruned_ones.get() > 100, "only {} questions were pruned", pruned_ones.get());
}

/// A session is stored in the month of its first event.
#[test]
fn a_query_about_sessions_of_a_month_reads_only_that_month() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Engine::open(ViewData::default(), &small()).unwrap();
    let file = |month: u32| {
        let path = directory.path().join(format!("{month}.parquet")).to_str().unwrap().to_owned();
        let at = |day: u32| format!("2026-{month:02}-{day:02} 00:00:00");
        let row = |day: u32| {
            let columns = View::Sessions.columns().into_iter().map(|column| match column.name {
                "first_event_at" => format!("TIMESTAMP '{}' AS first_event_at", at(day)),
                "connection_id" => format!("'{month}-{day}' AS connection_id"),
                name => format!("NULL::{} AS {name}", column.sql_type),
            });
            format!("SELECT {}", columns.collect::<Vec<_>>().join(", "))
        };
        csv(&writer, &format!("COPY ({} UNION ALL {}) TO '{path}' (FORMAT parquet)", row(1), row(28)));
        let instant = |day| format!("{}Z", at(day).replace(' ', "T")).parse::<Instant>().unwrap();
        LiveFile { path, span: Some((instant(1), instant(28))) }
    };
    let files: Vec<LiveFile> = (1..=6).map(file).collect();
    let data = ViewData { files: [(Dataset::Sessions, files)].into(), ..ViewData::default() };
    let engine = Engine::open(data, &small()).unwrap();
    for (condition, rows) in [
        ("first_event_at >= '2026-03-01' AND first_event_at < '2026-04-01'", "3-1\n3-28\n"),
        ("first_event_at > '2026-05-28'", "6-1\n6-28\n"),
        ("first_event_at BETWEEN '2026-01-28' AND '2026-02-01' AND peer_ip IS NULL", "1-28\n2-1\n"),
    ] {
        let sql = format!("SELECT connection_id FROM sessions WHERE {condition} ORDER BY 1");
        assert!(pruned(&sql, engine.data()).is_some(), "{sql}");
        assert_eq!(csv(&engine, &sql), format!("connection_id\n{rows}"), "{sql}");
    }
}

#[test]
fn a_query_creates_only_its_views_and_finds_the_others() {
    let (_directory, engine) = year();
    let data = engine.data().clone();
    let views = "SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal";
    let open = |sql: &str| Engine::open_for(data.clone(), &small(), sql).unwrap();
    let month = "SELECT count(*) AS n FROM connections WHERE event_time >= '2026-03-01' AND event_time < '2026-04-01'";
    let pruned = open(month);
    assert_eq!((csv(&pruned, month), csv(&pruned, views)), ("n\n3\n".to_owned(), "n\n0\n".to_owned()));
    let whole = open("SELECT count(*) AS n FROM connections");
    assert_eq!(csv(&whole, "SELECT count(*) AS n FROM connections"), "n\n36\n");
    assert_eq!(csv(&whole, views), "n\n1\n");
    assert_eq!(csv(&whole, "SELECT count(*) AS n FROM coverage"), "n\n0\n");
    assert_eq!(csv(&whole, views), format!("n\n{}\n", View::ALL.len()));
    let error = ask(&open("SELECT 1 FROM conections"), "SELECT 1 FROM conections", Format::Csv).unwrap_err();
    assert!(error.to_string().contains("connections"), "{error}");
}

#[test]
fn a_user_s_table_with_a_view_s_name_is_used() {
    let (_directory, engine) = year();
    csv(
        &engine,
        "CREATE SCHEMA mine; CREATE TABLE mine.connections AS SELECT 'own' AS event_id, \
                  TIMESTAMP '2026-03-05' AS event_time; SET schema = 'mine'",
    );
    assert_eq!(csv(&engine, "SELECT event_id FROM connections WHERE event_time > '2026-03-01'"), "event_id\nown\n");
}
