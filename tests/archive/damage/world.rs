//! A signed archive of two teams, made by the library. The program verifies it as a separate process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{
    Archive, Body, Draft, Finding, FindingKind, SecretKey, Signer, WindowRecord, WindowRows, WindowState,
};
use annals::model::path::month_of;
use annals::model::{ConnectionTexts, Detail, EventRow, Instant, Range, Stream, TeamId, WindowGrid};
use annals::store::LocalStore;
use serde_json::Value;

use super::tampering::{declare_less, files, put};

const DAY: Duration = Duration::from_secs(86_400);
pub const TEAM: &str = "acme";

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

/// A difference from the usual archive.
#[derive(Clone, Copy)]
pub struct ArchiveVariant {
    pub id: &'static str,
    /// The seed of the signing key.
    pub key: Option<u8>,
    /// One event is different.
    pub is_edited: bool,
    pub commits: usize,
    /// When the last line was written.
    pub last_at: &'static str,
    pub has_gap: bool,
    /// Days are sealed instead of the month.
    pub is_by_days: bool,
}

pub const HONEST: ArchiveVariant = ArchiveVariant {
    id: "archive-1",
    key: Some(1),
    is_edited: false,
    commits: 6,
    last_at: "2026-11-03T00:05:00Z",
    has_gap: false,
    is_by_days: false,
};

pub fn key(seed: u8) -> SecretKey {
    SecretKey::of_seed(Some(&format!("annals-test-{seed}")), [seed; 32]).unwrap()
}

fn rows(team: &TeamId, date: &str, count: u64, is_edited: bool) -> (WindowRows, WindowRecord) {
    let window = WindowGrid::new(DAY).window_of(at(&format!("{date}T00:00:00Z")));
    let one = |n: u64| EventRow {
        team_id: team.clone(),
        event_id: format!("{date}-{n}").as_str().into(),
        time: window.start.plus(Duration::from_secs(n * 600)),
        event_type: "incomingConnectionRequestedEvent".into(),
        revision: 1,
        first_seen_at: window.end,
        redacted: false,
        raw: format!("{{\"id\":\"{date}-{n}\",\"who\":\"{}\"}}", if is_edited && n == 1 { "nobody" } else { "x" })
            .into(),
        detail: Detail::Connections(ConnectionTexts::default()),
        served_digest: None,
    };
    let rows = WindowRows::new(Stream::Connections, window, (0..count).map(one).collect(), true);
    let record = WindowRecord {
        state: WindowState::Sealed,
        reads: 2,
        requests: 4,
        events: count,
        settled_at: Some(window.end),
        rescans: 3,
        ..WindowRecord::new(Stream::Connections, window)
    };
    (rows, record)
}

fn draft(team: &TeamId, date: &str, life: &ArchiveVariant) -> Draft {
    let (rows, record) = rows(team, date, 40, life.is_edited);
    Draft { body: Body { windows: vec![record], ..Body::default() }, rows: vec![rows], ..Draft::default() }
}

/// Makes an archive: settled days, a sealed month (or its days) with an amendment, and a later day.
pub fn make(root: &Path, life: &ArchiveVariant) {
    let signer = life.key.map(|seed| Arc::new(Signer { key: key(seed), previous: None, signs_all: false }));
    let archive = Archive::open_or_create(Arc::new(LocalStore::new(root)), || life.id.to_owned()).unwrap();
    let archive = archive.with_signer(signer);
    for team in [TEAM, "other"].map(TeamId::from) {
        let amendment = {
            let (mut late, mut record) = rows(&team, "2026-10-02", 41, life.is_edited);
            late.rows.drain(..40);
            record.late = 1;
            record.events = 41;
            Draft { body: Body { windows: vec![record], ..Body::default() }, rows: vec![late], ..Draft::default() }
        };
        let of = |range: Range| (Stream::Connections, range);
        let october = month_of(at("2026-10-01T00:00:00Z"));
        let days = WindowGrid::new(DAY);
        let mut seal = draft(&team, "2026-10-04", life);
        match life.is_by_days {
            true => seal.body.sealed_days.extend((0..4).map(|day| of(days.window_of(october.start.plus(DAY * day))))),
            false => seal.body.sealed_months.push(of(october)),
        }
        let mut last = draft(&team, "2026-11-01", life);
        if life.has_gap {
            last.body.findings.push(gap());
        }
        let drafts = ["2026-10-01", "2026-10-02", "2026-10-03"].map(|date| draft(&team, date, life));
        let drafts: Vec<Draft> = drafts.into_iter().chain([seal, amendment, last]).collect();
        let mut now = at("2026-11-02T00:05:00Z");
        // One lock for all tests: a process that another test starts may inherit a lock for a moment.
        let mut writer = archive.writer(&team).unwrap();
        for (number, draft) in drafts.into_iter().enumerate().take(life.commits) {
            let at = if number == 5 { at(life.last_at) } else { now };
            let _ = writer.commit(draft, at).unwrap();
            now = now.plus(Duration::from_secs(60));
        }
    }
    super::age::age(root);
    for team in archive.teams().unwrap() {
        archive.writer(&team).unwrap().vacuum(at(life.last_at)).unwrap();
    }
}

fn gap() -> Finding {
    Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::Gap,
        subject: "device-1".into(),
        from: Some(at("2026-10-20T00:00:00Z")),
        to: Some(at("2026-10-27T00:00:00Z")),
        reason: "nothing was read for a week".into(),
        count: 0,
        found_at: at("2026-11-03T00:00:00Z"),
    }
}

/// A directory with an archive, and beside it the key and a head of the intact archive.
pub struct World {
    pub directory: tempfile::TempDir,
}

/// The program's output.
#[derive(Debug, PartialEq)]
pub struct ProgramOutput {
    pub exit: i32,
    pub verdict: String,
    pub faults: Vec<(String, String, String)>,
    pub notices: Vec<String>,
    pub report: Value,
}

impl World {
    pub fn new(life: &ArchiveVariant) -> Self {
        let world = Self { directory: tempfile::tempdir().unwrap() };
        make(&world.archive(), life);
        world
    }

    pub fn archive(&self) -> PathBuf {
        self.directory.path().join("archive")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Stores the heads outside the archive, like an operator.
    pub fn take_head(&self) {
        put(&self.path("annals.toml"), b"archive = \"archive\"\n[signing]\nkey_file = \"signing.key\"\n");
        let (exit, stdout, stderr) = self.run(&["anchor", "-o", "head"]);
        assert_eq!((exit, stdout.as_str()), (0, ""), "{stderr}");
    }

    /// The bytes of every file of the archive.
    pub fn contents(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        files(&self.archive()).into_iter().map(|path| (path.clone(), std::fs::read(path).ok())).collect()
    }

    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
            command.env_remove(name);
        }
        let output = command.args(arguments).current_dir(self.directory.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Erases with the key, and declares fewer rows than the erasure changed.
    pub fn take_more(&self) {
        let erase = ["erase", "--subject", "2026-10-01-5", "--order", "DPO-1", "--team", TEAM];
        let (exit, _, stderr) = self.run(&erase);
        assert_eq!(exit, 0, "{stderr}");
        declare_less(&self.archive());
    }

    pub fn verify(&self, arguments: &[&str]) -> ProgramOutput {
        let (exit, stdout, stderr) = self.run(&[&["verify", "--json"], arguments].concat());
        assert_eq!(stderr, "", "{stdout}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
        let fault = |fault: &Value| (text(&fault["code"]), text(&fault["object"]), text(&fault["detail"]));
        ProgramOutput {
            exit,
            verdict: text(&report["verdict"]),
            faults: list("faults").iter().map(fault).collect(),
            notices: list("notices").iter().map(|notice| text(&notice["code"])).collect(),
            report,
        }
    }
}
