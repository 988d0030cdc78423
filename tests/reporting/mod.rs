//! Shared parts of the tests of reports: small archives, and the program over them.
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod outputs;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{
    Archive, Body, Draft, Finding, FindingKind, SessionsDraft, SessionsMark, WindowRecord, WindowRows, WindowState,
};
use annals::correlate::{SESSION_RULES, connection_of, session_of};
use annals::model::{ConnectionDetail, Detail, EventRow, Instant, Range, Stream, TeamId, WindowGrid};
use annals::report::{Catalog, ParamDefault, ParamKind, Report, ViewData};
use annals::store::LocalStore;

pub const DAY: Duration = Duration::from_secs(86_400);
pub const HOUR: Duration = Duration::from_secs(3_600);
/// Untrusted texts. Every output must show them in a harmless form.
pub const HOSTILE: &str = "=HYPERLINK(\"http://x\")|<script>\u{1b}[2J\u{202e}`*";

pub fn at(text: &str) -> Instant {
    let text = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    text.parse().unwrap()
}

/// An archive in a directory whose name is hard to quote, and the program over it.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// An archive without a team.
    pub fn empty() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        let _ = place.open();
        place
    }

    /// One connection event on 2026-10-10 at noon.
    pub fn one_event() -> Self {
        let place = Self::empty();
        place.commit_whole("acme", vec![Day::new(Stream::Connections, "2026-10-10").with(1, 12 * HOUR)], Vec::new());
        place
    }

    /// October 2026 in all streams, with some events each day: the 14th has a gap in the connections, the 20th was
    /// never read, and the 31st is not settled.
    pub fn month_with_a_gap() -> Self {
        let place = Self::empty();
        let mut days = Vec::new();
        for stream in Stream::ALL {
            for day in (1..=31).filter(|day| *day != 20) {
                let state = if day == 31 { WindowState::Provisional } else { WindowState::Settled };
                days.push(Day { state, ..Day::new(stream, &format!("2026-10-{day:02}")).with(day % 4, 5 * HOUR) });
            }
        }
        place.commit_whole("O'Brien & söhne", days, vec![gap("2026-10-14T10:00:00Z", "2026-10-14T12:30:00Z")]);
        place
    }

    /// One event an hour around both clock changes of 2026.
    pub fn summer_time() -> Self {
        let place = Self::empty();
        let mut days = Vec::new();
        for (first, last) in [("2026-03-27", "2026-04-07"), ("2026-10-01", "2026-10-28"), ("2026-10-30", "2026-11-03")]
        {
            let mut day = at(first);
            while day <= at(last) {
                days.push(Day::new(Stream::Connections, &day.day()).with(24, Duration::ZERO));
                day = day.plus(DAY);
            }
        }
        place.commit_whole("acme", days, Vec::new());
        place
    }

    /// The demo's archive: two teams of the sandbox over 90 days, with untrusted texts.
    pub fn demo() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        let archive = place.archive();
        let outcome = place.run(&["demo", "--archive", archive.to_str().unwrap()]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        place
    }

    fn open(&self) -> Archive {
        Archive::open_or_create(Arc::new(LocalStore::new(self.archive())), || "test".into()).unwrap()
    }

    pub fn opened(&self) -> Archive {
        self.open()
    }

    /// One reading of the archive, for engines in this process.
    pub fn data(&self) -> ViewData {
        let archive = self.open();
        let mut data = ViewData { archive: Some(archive.clone()), ..ViewData::default() };
        for team in archive.teams().unwrap() {
            data.add_state(self.archive().to_str().unwrap(), archive.read(&team).unwrap().state());
        }
        data
    }

    /// Commits events without their sessions.
    pub fn commit(&self, team: &str, days: Vec<Day>, findings: Vec<Finding>) {
        self.write(team, days, findings, |_| None);
    }

    /// Commits events and their sessions.
    pub fn commit_whole(&self, team: &str, days: Vec<Day>, findings: Vec<Finding>) {
        self.write(team, days, findings, |rows| Some(sessions(rows)));
    }

    fn write(
        &self,
        team: &str,
        days: Vec<Day>,
        findings: Vec<Finding>,
        sessions: impl Fn(&[WindowRows]) -> Option<SessionsDraft>,
    ) {
        let (team, now) = (TeamId::from(team), at("2026-11-20T12:00:00Z"));
        let mut draft = Draft::from(Body { findings, ..Body::default() });
        for day in days {
            let (rows, window) = day.make(&team);
            draft.rows.push(rows);
            draft.body.windows.push(window);
        }
        draft.sessions = sessions(&draft.rows);
        let mut writer = self.open().writer(&team).unwrap();
        let _ = writer.commit(draft, now).unwrap();
    }

    pub fn archive(&self) -> PathBuf {
        self.directory.path().join("it's [an] archive")
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The head of a team's ledger.
    pub fn head(&self, team: &str) -> String {
        self.open().read(&TeamId::from(team)).unwrap().state().head.to_string()
    }

    /// Writes a file into the folder `own`, which [`Place::run`] does not use by itself.
    pub fn own_report(&self, name: &str, text: &str) {
        let folder = self.directory.path().join("own");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::File::create(folder.join(name)).unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("annals"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.directory.path()).env("ANNALS_ARCHIVE", "it's [an] archive");
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let output = self.command(arguments).output().unwrap();
        Outcome {
            code: output.status.code().expect("not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a report of the folder `own`.
    pub fn run_own(&self, name: &str, more: &[&str]) -> Outcome {
        self.run(&[&["report", "run", name, "--queries", "own"], more].concat())
    }
}

/// The outcome of a run of the program.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts wrong use: code 2, one message that contains `expected`, and no output.
    pub fn is_wrong_use(&self, expected: &str) {
        assert_eq!((self.code, self.stdout.as_slice()), (2, &b""[..]), "{self:?}");
        let message = self.stderr.strip_suffix("\n\nFor more information, try '--help'.\n").unwrap_or(&self.stderr);
        assert_eq!(message.trim_end().lines().count(), 1, "{self:?}");
        assert!(message.contains(expected), "{expected:?} is not in {message:?}");
    }
}

/// Each connection has one event here.
fn sessions(rows: &[WindowRows]) -> SessionsDraft {
    let events = rows.iter().flat_map(|window| &window.rows).filter(|row| connection_of(row).is_some());
    let open = events.filter_map(|event| session_of(&[event])).collect();
    let mark = SessionsMark { rules: SESSION_RULES, through: None, until: None };
    SessionsDraft { mark, is_anew: false, open, finished: Vec::new(), replaced: BTreeMap::new() }
}

/// A window of a day, and its events.
pub struct Day {
    stream: Stream,
    window: Range,
    pub state: WindowState,
    /// The number of events, and the hour of the first one; the others follow each hour.
    events: (u64, Duration),
}

impl Day {
    pub fn new(stream: Stream, day: &str) -> Self {
        let window = WindowGrid::new(DAY).window_of(at(day));
        Self { stream, window, state: WindowState::Settled, events: (0, Duration::ZERO) }
    }

    pub fn sealed(self) -> Self {
        Self { state: WindowState::Sealed, ..self }
    }

    pub fn with(self, events: u64, first: Duration) -> Self {
        Self { events: (events, first), ..self }
    }

    fn make(self, team: &TeamId) -> (WindowRows, WindowRecord) {
        let Self { stream, window, state, events: (events, first) } = self;
        let rows =
            (0..events).map(|nth| event(team, stream, window.start.plus(first + HOUR * u32::try_from(nth).unwrap())));
        let rows = WindowRows::new(stream, window, rows.collect(), state != WindowState::Provisional);
        let record = WindowRecord {
            state,
            reads: 2,
            requests: 4,
            events,
            settled_at: (state != WindowState::Provisional).then(|| window.end.plus(HOUR)),
            ..WindowRecord::new(stream, window)
        };
        (rows, record)
    }
}

fn event(team: &TeamId, stream: Stream, time: Instant) -> EventRow {
    let (event_type, detail) = match stream {
        Stream::Connections => {
            ("incomingConnectionAuthenticationFailedEvent", Detail::Connections(connection(time).into()))
        }
        Stream::Activity => {
            let payload = serde_json::json!({"deviceID": "d1", "name": HOSTILE}).to_string();
            ("deviceRemovedEvent", Detail::Activity { token_info: Some("not json".into()), payload: Some(payload) })
        }
        Stream::Billing => ("seatCountChangedEvent", Detail::Billing { payload: Some("{\"seatCount\":5}".into()) }),
    };
    EventRow {
        team_id: team.clone(),
        event_id: format!("{stream}-{time}").as_str().into(),
        time,
        event_type: event_type.into(),
        revision: 1,
        first_seen_at: time.plus(HOUR),
        redacted: false,
        raw: format!("{{\"id\":\"{stream}-{time}\"}}").into(),
        detail,
        served_digest: None,
    }
}

fn connection(time: Instant) -> ConnectionDetail {
    ConnectionDetail {
        connection_id: Some(format!("c-{time}").as_str().into()),
        device_id: Some("d1".into()),
        computer_host_name: Some(HOSTILE.into()),
        tunnel_id: Some("fluid".into()),
        source_type: Some("client".into()),
        peer_email: Some("mallory@elsewhere.example".into()),
        peer_ip: Some("203.0.113.9".into()),
        failure_reason: Some(HOSTILE.into()),
        ..ConnectionDetail::default()
    }
}

pub fn gap(from: &str, to: &str) -> Finding {
    Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::Gap,
        subject: "device-1".into(),
        from: Some(at(from)),
        to: Some(at(to)),
        reason: "computer removed".into(),
        count: 0,
        found_at: at("2026-11-20T12:00:00Z"),
    }
}

/// The built-in reports.
pub fn reports() -> Vec<Report> {
    Catalog::embedded().reports().to_vec()
}

/// Values for a report's required parameters.
pub fn required(report: &Report) -> Vec<String> {
    let needed = report.params.iter().filter(|param| param.default == ParamDefault::Required);
    let each = needed.map(|param| {
        let value = match param.kind {
            ParamKind::Integer | ParamKind::Number => "3",
            ParamKind::Text | ParamKind::List => "d1",
            ParamKind::Boolean => "true",
            ParamKind::Duration => "1h",
            ParamKind::Date => "2026-10-05",
            ParamKind::Time => "07:00",
        };
        format!("--param={}={value}", param.name)
    });
    each.collect()
}
