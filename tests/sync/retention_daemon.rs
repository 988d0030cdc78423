//! The daemon expires months by its schedule. Its page and its API show the holds, and the months that a hold keeps.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::wait::{note, wait_for};
use crate::faulty_service::Program;
use crate::faulty_service::laws::{verified, word};
use crate::retention::{POLICY, connections, read};

/// Every second.
const DAEMON: &str = "[schedule]\nretention = \"* * * * * *\"\n[http]\nlisten = \"127.0.0.1:0\"\n";

/// A drop kills it.
struct Daemon {
    process: Child,
    address: String,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Daemon {
    fn start(program: &Program) -> Self {
        let mut process = program.command(&["run"]).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line: Value = serde_json::from_str(&line.ok()?).ok()?;
            (line["message"] == "ready").then(|| word(&line, "listen"))
        });
        // Keep reading, so the daemon can write.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: address.expect("the daemon is ready") }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        note(path, &answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{path}: {answer}");
        body.to_owned()
    }

    /// Waits until the team in `/api/status` satisfies the condition, and returns it.
    fn team_when(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        wait_for("the state of the team", || {
            let status: Value = serde_json::from_str(&self.get("/api/status")).unwrap();
            Some(status["teams"][0].clone()).filter(&is_so)
        })
    }

    fn end(mut self) {
        let id = rustix::process::Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap();
    }
}

fn texts(team: &Value, member: &str) -> String {
    team[member]
        .as_array()
        .map_or_else(String::new, |texts| texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "))
}

#[test]
fn the_daemon_expires_months_and_shows_the_rows_that_a_hold_keeps() {
    let (_service, program) = read();
    let hold = ["--reason", "a claim", "--from", "2025-02-10", "--to", "2025-02-11"];
    program.run(&[&["hold", "add", "--id", "CASE-7"], &hold[..]].concat()).ended(0);
    // The daemon counts from the service's date, which is in March 2025.
    program.configure(&format!("{}{DAEMON}", POLICY.replace("1y", "2w")));

    let daemon = Daemon::start(&program);
    let team = daemon.team_when(|team| !texts(team, "expired").is_empty() && !texts(team, "held_back").is_empty());
    assert_eq!(team["holds"], serde_json::json!(["CASE-7"]));
    assert!(texts(&team, "expired").contains("connections of 2025-01 expired under connections = 2w on 2"), "{team}");
    let waits = texts(&team, "held_back");
    assert!(waits.contains("connections of 2025-02") && waits.contains("held by CASE-7"), "{waits}");
    let page = daemon.get("/");
    for words in [
        "Legal holds: CASE-7",
        "Waiting: connections of 2025-02",
        "held by CASE-7",
        "Last expired: connections of 2025-01",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let coverage = daemon.get("/api/coverage?stream=connections&from=2025-01-01&to=2025-02-01");
    assert!(coverage.contains("\"expired\""), "{coverage}");
    daemon.end();
    verified(&program);
    assert_eq!(connections(&program, "2025-01-01", "2025-02-01"), 0);
    assert!(connections(&program, "2025-02-01", "2025-03-01") > 20);

    // After the release of the hold, the next moment of the schedule expires the month.
    program.run(&["hold", "release", "CASE-7", "--reason", "settled"]).ended(0);
    let daemon = Daemon::start(&program);
    let team = daemon.team_when(|team| texts(team, "expired").contains("2025-02"));
    assert_eq!((&team["holds"], texts(&team, "held_back").contains("CASE-7")), (&serde_json::json!([]), false));
    daemon.end();
    verified(&program);
    assert_eq!(connections(&program, "2025-02-01", "2025-03-01"), 0);
}
