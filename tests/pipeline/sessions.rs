//! The law of sessions, through the command line: after any syncs, `annals sql "select * from sessions"` equals the sessions that
//! a naive program computes from the truth.

use crate::common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::model::{Instant, Stream, TeamId};
use annals::sandbox::{Fault, InsertedEvent, RunningSandbox, Sandbox, SandboxConfig};
use annals::store::LocalStore;
use common::naive_sessions;
use common::wait::{PATIENCE, wait_for};
use serde_json::Value;

const TIMES: [&str; 6] =
    ["requested_at", "established_at", "authenticated_at", "closed_at", "first_event_at", "last_event_at"];

struct World {
    sandbox: RunningSandbox,
    home: tempfile::TempDir,
}

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3600)
}

impl World {
    async fn start(seed: u64, days_ahead: u32) -> Self {
        Self::of(seed, 40, days_ahead).await
    }

    async fn of(seed: u64, sessions_per_day: u32, days_ahead: u32) -> Self {
        let now = Some(at("2026-11-02T09:30:00Z"));
        let config = SandboxConfig { seed, teams: 1, days: 40, sessions_per_day, days_ahead, ..Default::default() };
        let sandbox = Sandbox::start(SandboxConfig { now, end: now, ..config }).await.unwrap();
        Self { sandbox, home: tempfile::tempdir().unwrap() }
    }

    fn team(&self) -> &TeamId {
        &self.sandbox.teams[0]
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("ANNALS_ARCHIVE", self.home.path().join("archive"))
            .env("ANNALS_BASE_URL", &self.sandbox.base_url)
            .env("ANNALS_TOKEN", &self.sandbox.read_only_token)
            .env("ANNALS_REQUESTS_PER_SECOND", "0");
        command
    }

    async fn annals(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// The ledger's last line, and the time from which the sessions are behind.
    fn ledger_state(&self) -> (u64, Option<Instant>) {
        let archive = Archive::open(Arc::new(LocalStore::new(self.home.path().join("archive"))));
        let Ok(team) = archive.and_then(|archive| archive.read(self.team())) else { return (0, None) };
        (team.state().seq.0, team.state().sessions.and_then(|mark| mark.through))
    }

    async fn sync(&self, more: &[&str]) {
        let done = self.annals(&[&["sync", "--since", "2026-09-20T00:00:00Z"], more].concat()).await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    async fn sql(&self, query: &str) -> Vec<Value> {
        let answer = self.annals(&["sql", "--format", "ndjson", query]).await;
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        let text = String::from_utf8(answer.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The archive's sessions, with times as milliseconds.
    async fn sessions(&self) -> BTreeMap<String, Value> {
        let times = TIMES.map(|name| format!("epoch_ms({name}) AS {name}")).join(", ");
        let rows = self.sql(&format!("SELECT * EXCLUDE (team_id) REPLACE ({times}) FROM sessions")).await;
        let count = rows.len();
        let by_id = |row: Value| (row["connection_id"].as_str().unwrap().to_owned(), row);
        let sessions: BTreeMap<String, Value> = rows.into_iter().map(by_id).collect();
        assert_eq!(sessions.len(), count, "a session occurs twice");
        sessions
    }

    async fn assert_law(&self, when: &str) -> BTreeMap<String, Value> {
        let now = self.sandbox.handle.now();
        let truth = self.sandbox.handle.truth(self.team(), Stream::Connections);
        let truth = truth.filter(|event| event.visible_from <= now).map(|event| event.raw.to_vec());
        let (naive, held) = (naive_sessions::sessions(truth), self.sessions().await);
        for (id, session) in &naive {
            assert_eq!(held.get(id), Some(session), "{when}: {id}");
        }
        assert_eq!(held.len(), naive.len(), "{when}");
        held
    }

    async fn assert_verifies(&self) {
        let verdict = self.annals(&["verify"]).await;
        assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stdout));
    }

    fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        let mut places = vec![self.home.path().join("archive")];
        while let Some(place) = places.pop() {
            for entry in std::fs::read_dir(place).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => places.push(entry.path()),
                    false => found.push((entry.path(), entry.metadata().unwrap().len())),
                }
            }
        }
        found.sort();
        found
    }

    /// Adds a late event to a connection.
    fn insert(&self, kind: &str, id: &str, connection: &str, host: &str, when: Instant) {
        let device = &self.sandbox.handle.devices(self.team())[0];
        let raw = format!(
            r#"{{"id":"{id}","timestamp":{},"deviceID":"{device}","computerHostName":"{host}","{kind}":{{"connectionID":"{connection}"}}}}"#,
            when.nanos() / 1_000_000
        );
        let event = InsertedEvent { raw: raw.into(), at: when, device: None, visible_from: None };
        assert!(self.sandbox.handle.insert(self.team(), Stream::Connections, event));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_every_seed_sessions_match_the_truth() {
    for seed in 1..=4 {
        let world = World::start(seed, 0).await;
        world.sync(&[]).await;
        let sessions = world.assert_law(&format!("seed {seed}")).await;
        let outcomes: std::collections::BTreeSet<&str> =
            sessions.values().map(|session| session["outcome"].as_str().unwrap()).collect();
        assert!(outcomes.len() >= 4, "seed {seed} has all kinds of sessions: {outcomes:?}");
        let files = world.files();
        world.sync(&[]).await;
        assert_eq!(world.files(), files, "seed {seed}: a sync without new events writes nothing");
        world.assert_verifies().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_continue_over_the_commits_of_a_backfill() {
    let world = World::of(5, 600, 0).await;
    world.sync(&["--stream", "connections"]).await;
    let commits =
        world.sql("SELECT count(DISTINCT added_seq) AS n FROM archive_files WHERE dataset = 'connections'").await;
    assert!(commits[0]["n"].as_u64() > Some(1), "{commits:?}");
    world.assert_law("a long backfill").await;
    world.assert_verifies().await;
}

/// A backfill defers its sessions: after a kill, the next sync makes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_backfill_ends_with_the_same_sessions() {
    // Enough events for several commits in each sync.
    let world = Arc::new(World::of(6, 2_000, 0).await);
    for _ in 0..3 {
        let (before, _) = world.ledger_state();
        // The first line makes the sessions that the sync before deferred. After the second, the service answers no more.
        let theirs = Arc::downgrade(&world);
        world.sandbox.handle.set_faults(Some(Arc::new(move |_| {
            let state = theirs.upgrade()?.ledger_state();
            matches!(state, (seq, Some(_)) if seq > before + 1).then_some(Fault::Delay(PATIENCE))
        })));
        let mut sync = world.command(&["sync", "--since", "2026-09-20T00:00:00Z", "--stream", "connections"]);
        let mut sync = sync.env("ANNALS_REQUESTS_PER_SECOND", "100").stderr(Stdio::null()).spawn().unwrap();
        wait_for("a commit that defers sessions", || {
            assert!(sync.try_wait().unwrap().is_none(), "it ended before it was killed");
            matches!(world.ledger_state(), (seq, Some(_)) if seq > before + 1).then_some(())
        });
        sync.kill().unwrap();
        sync.wait().unwrap();
        assert!(world.ledger_state().1.is_some(), "the sessions are still deferred");
    }
    world.sandbox.handle.set_faults(None);
    world.sync(&["--stream", "connections"]).await;
    world.assert_law("killed three times").await;
    world.assert_verifies().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_follow_the_events_over_time() {
    let world = World::start(7, 40).await;
    for (step, pause) in [0, 5, 1, 30, 100, 200, 400].into_iter().enumerate() {
        world.sandbox.handle.advance(hours(pause));
        world.sync(&[]).await;
        world.assert_law(&format!("step {step}")).await;
    }
    let months =
        world.sql("SELECT count(*) AS n FROM coverage WHERE stream = 'connections' AND state = 'sealed'").await;
    assert!(months[0]["n"].as_u64() > Some(30), "{months:?}");
    let files = world.annals(&["files", "sessions"]).await;
    let files = String::from_utf8(files.stdout).unwrap();
    assert!(files.contains("/tables/sessions/") && files.contains("month=2026-10"), "{files}");
    world.assert_verifies().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_events_reopen_close_and_contradict_sessions_across_months() {
    let world = World::start(9, 20).await;
    let (october, november) = (at("2026-10-05T10:00:00Z"), at("2026-11-01T10:00:00Z"));
    world.insert("incomingConnectionEvent", "e1", "c1", "host", october);
    world.sandbox.handle.advance(hours(24 * 10));
    world.sync(&[]).await;
    let outcome = |sessions: &BTreeMap<String, Value>| sessions["c1"]["outcome"].as_str().unwrap().to_owned();
    assert_eq!(outcome(&world.assert_law("established in October").await), "open");
    // October is sealed; the close event comes in November, and the program reads October's events again.
    world.insert("connectionClosedEvent", "e2", "c1", "host", november);
    world.sync(&["--rescan"]).await;
    let held = world.assert_law("closed in November").await;
    assert_eq!((outcome(&held).as_str(), &held["c1"]["conflicts"]), ("ended", &Value::Null));
    // A new first event moves the session to September, and has another computer name.
    world.insert("incomingConnectionRequest", "e0", "c1", "other", at("2026-09-29T10:00:00Z"));
    world.insert("incomingConnectionRequest", "e3", "c2", "host", at("2026-09-29T11:00:00Z"));
    world.sync(&["--rescan"]).await;
    let held = world.assert_law("requested in September").await;
    assert_eq!(held["c1"]["conflicts"], r#"{"computer_host_name":["host","other"]}"#);
    // An event without a connection makes no session, but is counted.
    world.insert("incomingConnectionRequest", "e4", "", "host", october);
    world.sync(&["--rescan"]).await;
    let counted = world.sql("SELECT sum(count)::BIGINT AS n FROM findings WHERE kind = 'no_connection_id'").await;
    assert_eq!(counted[0]["n"], 1);
    assert_eq!(world.sessions().await.len(), held.len());
    world.assert_verifies().await;
}
