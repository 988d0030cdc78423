//! A small archive for questions, and the program over it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Draft, Finding, FindingKind, WindowRecord, WindowRows, WindowState};
use annals::model::{ConnectionDetail, Detail, EventRow, Instant, RejectRow, Stream, TeamId, WindowGrid};
use annals::store::LocalStore;
use bytes::Bytes;

const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> Instant {
    text.parse().expect("a time")
}

fn event(team: &TeamId, id: &str, time: Instant, host: &str) -> EventRow {
    EventRow {
        team_id: team.clone(),
        event_id: id.into(),
        time,
        event_type: "incomingConnectionRequestedEvent".into(),
        revision: 1,
        first_seen_at: at("2026-11-20T12:00:00Z"),
        redacted: false,
        raw: format!("{{\"id\":\"{id}\"}}").into(),
        detail: Detail::Connections(
            ConnectionDetail { computer_host_name: Some(host.into()), ..ConnectionDetail::default() }.into(),
        ),
        served_digest: None,
    }
}

/// Two teams of two days each, three events a day; the first team has a reject and a gap.
pub fn make_archive(root: &Path) {
    let archive = Archive::open_or_create(Arc::new(LocalStore::new(root)), || "test".into()).expect("an archive");
    let now = at("2026-11-20T12:00:00Z");
    for (nth, team) in ["acme", "O'Brien & söhne"].into_iter().map(TeamId::from).enumerate() {
        let mut writer = archive.writer(&team).expect("a writer");
        let mut draft = Draft::default();
        add_day(&mut draft, &team, "2026-11-18T00:00:00Z");
        add_day(&mut draft, &team, "2026-11-19T00:00:00Z");
        if nth == 0 {
            draft.rejects.push(reject(&team, now));
            draft.body.findings.push(gap(now));
        }
        let _ = writer.commit(draft, now).expect("a commit");
    }
}

fn add_day(draft: &mut Draft, team: &TeamId, day: &str) {
    let window = WindowGrid::new(DAY).window_of(at(day));
    let one = |n: u64| {
        let time = window.start.plus(Duration::from_secs(n * 3_600));
        event(team, &format!("{day}-{n}"), time, "=cmd|' /C calc'!A0")
    };
    draft.rows.push(WindowRows::new(Stream::Connections, window, (0..3).map(one).collect(), true));
    draft.body.windows.push(WindowRecord {
        state: WindowState::Settled,
        reads: 2,
        requests: 4,
        events: 3,
        settled_at: Some(window.end.plus(Duration::from_secs(900))),
        ..WindowRecord::new(Stream::Connections, window)
    });
}

fn reject(team: &TeamId, now: Instant) -> RejectRow {
    RejectRow {
        team_id: team.clone(),
        stream: Stream::Activity,
        event_id: "odd".into(),
        time: None,
        reason: "time_out_of_range".into(),
        detail: "time 1 in Millis lies outside 2000 to 2100".into(),
        first_seen_at: now,
        redacted: false,
        raw: Bytes::from_static(b"{\"id\":\"odd\"\xff}"),
        erased: None,
    }
}

fn gap(now: Instant) -> Finding {
    Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::Gap,
        subject: "device-1".into(),
        from: Some(at("2026-11-18T10:00:00Z")),
        to: Some(at("2026-11-18T11:00:00Z")),
        reason: "computer removed".into(),
        count: 0,
        found_at: now,
    }
}

/// An archive in a directory whose name is hard to quote, and the program over it.
pub struct Place {
    pub directory: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        make_archive(&place.archive());
        place
    }

    pub fn archive(&self) -> std::path::PathBuf {
        self.directory.path().join("it's [an] archive")
    }

    /// Adds three events to the first team.
    pub fn commit_another_day(&self) {
        let archive = Archive::open(Arc::new(LocalStore::new(self.archive()))).expect("an archive");
        let (team, now) = (TeamId::from("acme"), at("2026-11-21T12:00:00Z"));
        let mut draft = Draft::default();
        add_day(&mut draft, &team, "2026-11-20T00:00:00Z");
        let _ = archive.writer(&team).expect("a writer").commit(draft, now).expect("a commit");
    }

    pub fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("annals"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.directory.path()).env("ANNALS_ARCHIVE", "it's [an] archive");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).stdin(Stdio::null()).output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code().expect("not killed"), text(output.stdout), text(output.stderr))
    }

    /// The answers to several statements, each row as one line of JSON.
    pub fn answer_script(&self, statements: &[String]) -> String {
        let path = self.directory.path().join("statements.sql");
        let text = statements.iter().map(|sql| format!("{sql};\n")).collect::<String>();
        std::io::Write::write_all(&mut std::fs::File::create(&path).expect("a file"), text.as_bytes())
            .expect("written");
        let input = std::fs::File::open(&path).expect("the statements");
        let output = self.command(&["sql", "--format", "ndjson"]).stdin(input).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    pub fn answer(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(arguments);
        assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}");
        stdout
    }
}
