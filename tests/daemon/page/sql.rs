//! Visitors' SQL: the permitted and the refused queries.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::http::{Answer, ask};
use super::world::Lonely;
use crate::program::{put, wait_for};

pub fn sql(world: &Lonely, query: &str) -> Answer {
    ask(&world.daemon.address, "POST", "/api/sql", &[], &json!({"query": query}).to_string())
}

/// The longest time limit of a query, which is longer than a test waits.
pub const SLOW: &str = "sql_time = \"10m\"\n";

/// A query that counts for hours.
pub const ENDLESS: &str =
    "SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE hash(i, j) % 1000003 = 7";

/// Sends a query without waiting for the answer.
pub fn begin(world: &Lonely, query: &str) -> TcpStream {
    let (address, body) = (&world.daemon.address, json!({"query": query}).to_string());
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "POST /api/sql HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream
}

#[track_caller]
fn rows(world: &Lonely, query: &str) -> Value {
    let answer = sql(world, query);
    assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    answer.json()
}

#[test]
fn sql_is_off_by_default() {
    let world = Lonely::new("");
    assert_eq!(sql(&world, "SELECT 1").status, 403);
    assert_eq!(world.get("/sql").status, 403);
    assert_eq!(world.post("/sql", &[("query", "SELECT 1")]).status, 403);
    assert!(!world.page("/").contains("href=\"/sql"));
    // A reload turns it on without a restart.
    let path = world.place.path().join("annals.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    put(&path, text.replace("[http]\n", "[http]\nsql = true\n"));
    world.daemon.signal(Signal::HUP);
    wait_for("SQL", || (sql(&world, "SELECT 1 AS one").status == 200).then_some(()));
    assert!(world.page("/").contains("href=\"/sql"));
    world.daemon.stop();
}

#[test]
fn a_reload_changes_what_queries_know_of_the_configuration() {
    let world = Lonely::new("sql = true\n");
    let due = || rows(&world, "SELECT count(*) AS n FROM retention")["rows"][0]["n"].as_u64().unwrap();
    assert_eq!(due(), 0);
    let path = world.place.path().join("annals.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    put(&path, format!("{text}[retention]\nconnections = \"7y\"\n"));
    world.daemon.signal(Signal::HUP);
    wait_for("months with a retention class", || (due() > 0).then_some(()));
    world.daemon.stop();
}

#[test]
fn sql_answers_over_the_views() {
    let world = Lonely::new("sql = true\n");
    let answer = rows(&world, "SELECT count(*) AS n, max(peer_ip) AS ip FROM sessions");
    assert_eq!((&answer["columns"], &answer["truncated"]), (&json!(["n", "ip"]), &json!(false)));
    assert_eq!(answer["rows"][0]["ip"], "203.0.113.9");
    assert_eq!(rows(&world, "SELECT seq FROM ledger")["rows"], json!([{"seq": 1}]));
    assert_eq!(rows(&world, "WITH a AS (FROM findings) SELECT kind FROM a;")["rows"], json!([{"kind": "gap"}]));
    let cut = rows(&world, "SELECT i FROM range(1000000) t(i)");
    assert_eq!((cut["rows"].as_array().unwrap().len(), &cut["truncated"]), (10_000, &json!(true)));
    let page = world.post("/sql", &[("query", "SELECT '<b>' AS html, i FROM range(5000) t(i)")]);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("&#60;b&#62;") && !page.body.contains("<td><b>"), "{}", page.body);
    assert!(page.body.contains("The first 1,000 rows; the result has more."), "{}", page.body);
    let wrong = world.post("/sql", &[("query", "SELECT nothing FROM sessions")]);
    assert!(
        wrong.status == 400 && wrong.body.contains("nothing") && wrong.body.contains("SELECT nothing FROM"),
        "{}",
        wrong.body
    );
    world.daemon.stop();
}

#[test]
fn a_query_reads_no_ledger_of_its_own() {
    let world = Lonely::new("sql = true\n");
    let asked = "SELECT count(*) AS n FROM coverage JOIN sessions ON true";
    let before = rows(&world, asked);
    let ledger = world.place.archive().join("ledger");
    std::fs::rename(&ledger, world.place.path().join("aside")).unwrap();
    assert_eq!(rows(&world, asked), before, "the daemon answers from its memory");
    std::fs::rename(world.place.path().join("aside"), &ledger).unwrap();
    world.daemon.stop();
}

/// Each of these queries would escape the limits. `{token}`, `{ledger}` and `{archive}` are existing paths.
const REFUSED: &[&str] = &[
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd', header = false)",
    "SELECT * FROM '/etc/passwd'",
    "FROM '/etc/hosts'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_ndjson_objects('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM read_text('{token}')",
    "SELECT * FROM read_text('{ledger}')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_text('{archive}/**')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
    "SELECT * FROM 'https://127.0.0.1:1/x.parquet'",
    "SELECT * FROM query('COPY sessions TO ''/tmp/annals-out''')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "SELECT getenv('HOME')",
    "SELECT current_setting('temp_directory')",
    "SELECT list_transform(['temp_directory'], lambda x: current_setting(x))",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_extensions()",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT sql FROM duckdb_views",
    "SELECT (SELECT any_value(sql) FROM duckdb_views())",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM information_schema.tables",
    "SELECT pg_get_viewdef(1)",
    "SELECT json_serialize_plan('FROM sessions')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM duckdb_settings()'))",
    "SELECT filename FROM sessions",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {'path': '/tmp/annals-out'})",
    "SELECT * FROM truncate_duckdb_logs()",
    "SELECT * FROM enable_profiling()",
    "SELECT * FROM checkpoint()",
    "SELECT write_log('x')",
    "CALL enable_logging()",
    "SHOW ALL TABLES",
    "SHOW DATABASES",
    "COPY sessions TO '/tmp/annals-out.csv'",
    "COPY (SELECT 'x') TO '{ledger}'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPORT DATABASE '/tmp/annals-out'",
    "ATTACH '/tmp/annals.db' AS a",
    "DETACH memory",
    "USE memory",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET GLOBAL memory_limit = '64GB'",
    "RESET memory_limit",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/evil.duckdb_extension'",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW sessions AS SELECT 1",
    "CREATE MACRO local_time(a, b) AS 1",
    "DROP VIEW ledger",
    "DELETE FROM ledger",
    "UPDATE ledger SET seq = 0",
    "INSERT INTO ledger SELECT * FROM ledger",
    "ALTER VIEW ledger RENAME TO l",
    "CALL pragma_version()",
    "PREPARE p AS SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN TRANSACTION",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW sessions",
    "SELECT 1 /* ; */ ; COPY sessions TO '/tmp/annals-out.csv'",
    "",
    "   ",
    "-- nothing",
];

/// The bytes of every file of a folder, without locks.
fn listed(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found.retain(|(path, _)| !path.components().any(|part| part.as_os_str() == "locks"));
    found.sort();
    found
}

#[test]
fn sql_can_read_write_or_reach_nothing_but_the_views() {
    let world = Lonely::new("sql = true\n");
    let archive = world.place.archive();
    let before = listed(&archive);
    let ledger = before.iter().find(|(path, _)| path.extension().is_some_and(|ending| ending == "jsonl")).unwrap();
    let ledger = ledger.0.to_str().unwrap().replace('\'', "''");
    let folder = archive.to_str().unwrap().replace('\'', "''");
    let token = world.place.path().join("token").to_str().unwrap().replace('\'', "''");
    let place =
        |query: &str| query.replace("{token}", &token).replace("{ledger}", &ledger).replace("{archive}", &folder);
    for query in REFUSED {
        let answer = sql(&world, &place(query));
        assert_eq!((answer.status, answer.refusal().as_str()), (400, "bad_request"), "{query}: {}", answer.body);
        assert!(!answer.body.contains("root:"), "{query}: {}", answer.body);
    }
    for query in ["SELECT 1", "SELECT count(*) FROM ledger", "SELECT count(*) FROM sessions"] {
        assert_eq!(sql(&world, query).status, 200, "{query}: it still answers");
    }
    assert!(!Path::new("/tmp/annals-out.csv").try_exists().unwrap());
    assert_eq!(listed(&archive), before, "nothing of the archive has changed");
    let verified = world.place.run(&["verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    world.daemon.stop();
}

#[test]
fn a_visitor_has_one_query_at_a_time_and_an_endless_one_is_stopped() {
    let world = Lonely::new(&format!("sql = true\n{SLOW}"));
    let mut stream = begin(&world, ENDLESS);
    // This check itself may take the visitor's turn.
    wait_for("its turn", || {
        if stream.peek(&mut [0]).is_ok() {
            stream = begin(&world, ENDLESS);
        }
        (sql(&world, "SELECT 1").status == 429).then_some(())
    });
    assert_eq!(sql(&world, "SELECT 1").refusal(), "busy");
    // Nor under another name.
    for header in
        [("Authorization", "Bearer another"), ("Cookie", "annals_session=another"), ("X-Forwarded-For", "::7")]
    {
        let answer = ask(&world.daemon.address, "POST", "/api/sql", &[header], "{\"query\": \"SELECT 1\"}");
        assert_eq!((answer.status, answer.refusal().as_str()), (429, "busy"), "{header:?}");
    }
    // Other visitors get answers meanwhile.
    assert_eq!(world.get("/api/sessions?from=2026-10-01&to=2026-11-01").status, 200);
    // The daemon stops the query of a visitor who disconnects.
    drop(stream);
    wait_for("the end of the query", || (sql(&world, "SELECT 1").status == 200).then_some(()));
    world.daemon.stop();
}
