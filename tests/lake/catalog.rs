//! The read-only catalog of the daemon's port, as Iceberg's clients see it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::faulty_service::Program;
use super::faulty_service::program::{Running, files_below, put};
use super::readers::Readers;
use super::tables::{DATASETS, job, json_of, newest, publish, read_on, read_once};
use crate::common::free_port::free_port;
use crate::common::wait::{note, wait_for};

pub const TOKEN: &str = "a-token-for-the-port";

/// A daemon, and the address of its port.
pub struct Daemon<'a> {
    running: Running<'a>,
    pub address: String,
}

impl<'a> Daemon<'a> {
    /// Starts the daemon with a token on its port, and `more` configuration.
    pub fn start(program: &'a Program, more: &str) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        put(&program.home().join("port-token"), TOKEN.as_bytes());
        program.configure(&format!("[http]\nlisten = \"{address}\"\ntoken_file = \"port-token\"\n{more}"));
        let daemon = Self { running: program.start(&["run"]), address };
        wait_for("the port", || {
            assert!(!daemon.running.has_ended(), "the daemon ended before its port was open");
            (daemon.ask("GET", "/healthz", None).0 == 200).then_some(())
        });
        daemon
    }

    /// Status and body of a request.
    pub fn ask(&self, method: &str, path: &str, token: Option<&str>) -> (u16, String) {
        let Ok(mut stream) = TcpStream::connect(&self.address) else {
            note(path, "no connection");
            return (0, String::new());
        };
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let body = if matches!(method, "GET" | "HEAD") {
            ""
        } else {
            "Content-Type: application/json\r\nContent-Length: 2\r\n"
        };
        let end = if body.is_empty() { "" } else { "{}" };
        let address = &self.address;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{token}{body}Connection: close\r\n\r\n{end}")
            .unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        note(path, &answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body.to_owned())
    }

    /// The answer of the catalog to a GET with the token.
    #[track_caller]
    pub fn catalog(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", &format!("/iceberg/v1/{path}"), Some(TOKEN));
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The value of a metric without labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = self.ask("GET", "/metrics", Some(TOKEN)).1;
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        note(name, line.unwrap_or("no such metric"));
        line?.rsplit(' ').next().unwrap().parse().ok()
    }

    /// Kills the daemon; returns its log.
    pub fn end(self) -> String {
        self.running.kill_after(Duration::ZERO).stderr
    }
}

#[test]
fn the_catalog_shows_the_tables_to_holders_of_the_token() {
    let (_service, program) = read_once();
    publish(&program, &[]);
    let daemon = Daemon::start(&program, "");
    let config = daemon.catalog("config");
    assert!(
        config["endpoints"].as_array().unwrap().iter().all(|it| !it.as_str().unwrap().starts_with("POST")),
        "{config}"
    );
    assert_eq!(daemon.catalog("namespaces"), json!({"namespaces": [["annals"]]}));
    assert_eq!(daemon.catalog("namespaces?parent=annals"), json!({"namespaces": []}));
    assert_eq!(daemon.catalog("namespaces/annals")["namespace"], json!(["annals"]));
    let listed = daemon.catalog("namespaces/annals/tables");
    let names: Vec<&str> =
        listed["identifiers"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap()).collect();
    for table in annals::lake::TableId::all() {
        assert!(names.contains(&table.as_str()), "{table:?}: {names:?}");
        let loaded = daemon.catalog(&format!("namespaces/annals/tables/{}", table.as_str()));
        let path = newest(&program, table.as_str());
        assert_eq!(loaded["metadata-location"], format!("file://{}", path.display()));
        assert_eq!(loaded["metadata"], json_of(&path), "{table:?}");
    }
    for (method, path, token, status, kind) in [
        ("GET", "config", None, 401, "NotAuthorizedException"),
        ("GET", "config", Some("another"), 401, "NotAuthorizedException"),
        ("GET", "namespaces/annals/tables/sessions", None, 401, "NotAuthorizedException"),
        ("POST", "namespaces/annals/tables", None, 401, "NotAuthorizedException"),
        ("GET", "namespaces/other", Some(TOKEN), 404, "NoSuchNamespaceException"),
        ("GET", "namespaces/other/tables/sessions", Some(TOKEN), 404, "NoSuchNamespaceException"),
        ("GET", "namespaces/annals/tables/other", Some(TOKEN), 404, "NoSuchTableException"),
        ("GET", "elsewhere", Some(TOKEN), 404, "NoSuchEndpointException"),
    ] {
        let (found, body) = daemon.ask(method, &format!("/iceberg/v1/{path}"), token);
        let error: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{method} {path}: {found} {body:?}"));
        assert_eq!((found, &error["error"]["type"]), (status, &kind.into()), "{method} {path}: {error}");
    }
    assert_eq!(daemon.ask("HEAD", "/iceberg/v1/namespaces/annals/tables/sessions", Some(TOKEN)).0, 200);
    assert_eq!(daemon.ask("HEAD", "/iceberg/v1/namespaces/annals/tables/other", Some(TOKEN)).0, 404);
    daemon.end();
}

#[test]
fn every_write_is_refused_and_changes_nothing() {
    let (_service, program) = read_once();
    publish(&program, &[]);
    let daemon = Daemon::start(&program, "");
    // The daemon reads the service, and may add data files meanwhile.
    let metadata = || -> Vec<_> {
        let all = files_below(&program.archive().join("tables")).into_iter();
        all.filter(|path| path.iter().any(|part| part == "metadata")).collect()
    };
    let before = metadata();
    for (method, path) in [
        ("POST", "namespaces"),
        ("DELETE", "namespaces/annals"),
        ("POST", "namespaces/annals/properties"),
        ("POST", "namespaces/annals/tables"),
        ("POST", "namespaces/annals/register"),
        ("POST", "namespaces/annals/tables/sessions"),
        ("DELETE", "namespaces/annals/tables/sessions?purgeRequested=true"),
        ("POST", "namespaces/annals/tables/sessions/metrics"),
        ("POST", "namespaces/annals/views"),
        ("POST", "tables/rename"),
        ("POST", "transactions/commit"),
        ("POST", "oauth/tokens"),
        ("PUT", "namespaces/annals/tables/sessions"),
        ("PATCH", "namespaces/annals/tables/sessions"),
    ] {
        let (status, body) = daemon.ask(method, &format!("/iceberg/v1/{path}"), Some(TOKEN));
        let error: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{method} {path}: {status} {body:?}"));
        assert_eq!(
            (status, &error["error"]["type"]),
            (406, &"UnsupportedOperationException".into()),
            "{method} {path}"
        );
        assert!(error["error"]["message"].as_str().unwrap().contains("read-only"), "{error}");
    }
    daemon.end();
    assert_eq!(metadata(), before);
    program.run(&["publish", "--check"]).ended(0);
}

#[test]
fn engines_attached_to_the_catalog_read_exactly_the_rows_of_the_ledgers() {
    let what = "other engines on the catalog";
    let Some(mut readers) = Readers::start(what) else { return };
    let (service, program) = read_once();
    publish(&program, &[]);
    read_on(&service, &program, 30);
    publish(&program, &[]);
    let daemon = Daemon::start(&program, "");
    for dataset in DATASETS {
        let mut job = job(&program, dataset, &["pyiceberg", "duckdb", "clickhouse"]);
        job["catalog"] = json!({"uri": format!("http://{}/iceberg", daemon.address), "token": TOKEN});
        readers.agree(&job, "through the catalog");
    }
    // Without the token, no engine sees a table.
    let mut refused = job(&program, DATASETS[0], &["pyiceberg", "duckdb", "clickhouse"]);
    refused["catalog"] = json!({"uri": format!("http://{}/iceberg", daemon.address), "token": "another"});
    let found = readers.ask(&refused);
    for reader in ["pyiceberg", "duckdb", "clickhouse"] {
        assert!(found[reader]["error"].is_string(), "{reader}: {}", found[reader]);
    }
    daemon.end();
}
