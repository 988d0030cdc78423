//! The whole pipeline on the sandbox, in one process: every event is archived once, and a second round adds nothing.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::api::{EventSource, HttpOptions, HttpSource, RetryPolicy, Retrying, TokenSource};
use annals::archive::{Archive, FindingKind, VerifyOptions, WindowState, verify};
use annals::clock::Clock;
use annals::config::Partition;
use annals::model::path::SealUnit;
use annals::model::{Dataset, EventRow, FileRole, Instant, Range, Stream, TeamId};
use annals::pipeline::{Edges, FleetRound, NoProgress, Settings, Workers};
use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use annals::store::{MemoryStore, Store};
use common::quick_clock::QuickClock;

struct World {
    sandbox: RunningSandbox,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    source: Arc<dyn EventSource>,
}

impl World {
    async fn start(config: SandboxConfig) -> Self {
        // The machine and the service have the same date, because a round with different dates requests the date again.
        let clock: Arc<dyn Clock> = Arc::new(QuickClock::at(config.now.expect("a date")));
        let sandbox = Sandbox::start(config).await.expect("a sandbox");
        let token = TokenSource::Fixed(sandbox.read_only_token.clone().into());
        let http =
            HttpSource::new(HttpOptions { requests_per_second: None, ..HttpOptions::new(&sandbox.base_url, token) });
        let http: Arc<dyn EventSource> = Arc::new(http.expect("a client"));
        let source = Arc::new(Retrying::new(http, clock.clone(), RetryPolicy::default()));
        Self { sandbox, store: Arc::new(MemoryStore::new()), clock, source }
    }

    fn archive(&self) -> Archive {
        Archive::open_or_create(self.store.clone(), || "test".to_owned()).expect("an archive")
    }

    async fn round(&self, settings: Settings) -> FleetRound {
        let edges = Edges {
            source: self.source.clone(),
            archive: Arc::new(self.archive()),
            clock: self.clock.clone(),
            settings: Arc::new(settings),
            workers: Workers::Threads,
            progress: Arc::new(NoProgress),
        };
        let round = edges.read_once().await.expect("teams");
        for (team, team_round) in &round.teams {
            let failures = &team_round.as_ref().expect("a round").failures;
            assert!(failures.is_empty(), "{team}: {failures:?}");
        }
        round
    }

    fn assert_equals_truth(&self) {
        for team in &self.sandbox.teams {
            for stream in [Stream::Activity, Stream::Connections] {
                let truth = multiset(self.truth(team, stream));
                let held = multiset(self.held(team, stream));
                assert_eq!(held.len(), truth.len(), "{team} {stream}");
                assert!(held == truth, "{team} {stream}: the archive differs from the truth");
            }
        }
    }

    fn truth(&self, team: &TeamId, stream: Stream) -> Vec<Vec<u8>> {
        let now = self.sandbox.handle.now();
        let visible = self.sandbox.handle.truth(team, stream).filter(|event| event.visible_from <= now);
        visible.map(|event| redacted(&event.raw)).collect()
    }

    fn held(&self, team: &TeamId, stream: Stream) -> Vec<Vec<u8>> {
        let reader = self.archive().read(team).expect("a reader");
        let mut raw = Vec::new();
        let all = Range::new(Instant::EARLIEST, Instant::LATEST);
        let mut take = |row: EventRow| {
            raw.push(row.raw.to_vec());
            Ok(())
        };
        reader.rows().rows_in(stream, all, &mut take).expect("rows");
        raw
    }
}

fn multiset(texts: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, u32> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

/// The truth with redacted secrets, like the archive.
fn redacted(raw: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(raw.to_vec()).expect("the sandbox speaks UTF-8");
    let Some(start) = text.find(r#""secret":""#) else { return text.into_bytes() };
    let value = start + r#""secret":"#.len();
    let end = value + 1 + text[value + 1..].find('"').expect("a closed string") + 1;
    format!("{}\"[redacted]\"{}", &text[..value], &text[end..]).into_bytes()
}

fn at(text: &str) -> Instant {
    text.parse().expect("a time")
}

fn config() -> SandboxConfig {
    let now = Some(at("2026-11-20T13:30:00Z"));
    SandboxConfig { now, end: now, days: 40, sessions_per_day: 60, ..SandboxConfig::default() }
}

fn settings() -> Settings {
    Settings { since: Some(at("2026-09-01T00:00:00Z")), ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_archives_the_truth_and_a_second_adds_nothing() {
    let world = World::start(config()).await;
    let first = world.round(settings()).await.committed();
    assert!(first.rows > 10_000 && first.gaps == 0, "{first:?}");
    world.assert_equals_truth();
    let seq = world.archive().read(&world.sandbox.teams[0]).unwrap().state().seq;
    let asked = world.sandbox.handle.requests();
    let second = world.round(settings()).await.committed();
    assert_eq!((second.rows, second.commits), (0, 0), "{second:?}");
    // The list of teams; for each team itself, its computers, billing, and the tail and the future of two streams.
    assert_eq!(world.sandbox.handle.requests() - asked, 1 + 2 * (3 + 2 * 2), "the requests of a quiet round");
    assert_eq!(world.archive().read(&world.sandbox.teams[0]).unwrap().state().seq, seq, "a quiet round writes no line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_settle_and_seal_as_the_service_s_clock_advances() {
    let end = at("2026-11-20T13:30:00Z");
    let world = World::start(SandboxConfig { days_ahead: 7, ..config() }).await;
    for hours in [0, 11, 1, 24, 49, 48] {
        world.sandbox.handle.advance(Duration::from_secs(hours * 3600));
        let committed = world.round(settings()).await.committed();
        assert_eq!((committed.gaps, committed.late), (0, 0), "after {hours} more hours: {committed:?}");
    }
    world.assert_equals_truth();
    let reader = world.archive().read(&world.sandbox.teams[0]).unwrap();
    let sealed = |stream| {
        let window = Settings::default().grid.window_of(end);
        reader.state().windows[&(stream, window.start)].state == WindowState::Sealed
    };
    assert!(Stream::ALL.into_iter().all(sealed), "the twentieth is five days old");
    assert!(reader.state().is_month_sealed(Stream::Connections, at("2026-10-15T00:00:00Z")));
    assert!(!reader.state().findings.iter().any(|(_, finding)| finding.kind == FindingKind::NoLongerServed));
}

/// Two months of the sandbox sealed by days, and a third month sealed first by days and then as a month.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn months_that_begin_by_days_end_by_days_or_as_a_month() {
    let (ahead, days) = (15, Settings { partition: Partition::Day, ..settings() });
    let world = World::start(SandboxConfig { days: 75, days_ahead: ahead, sessions_per_day: 10, ..config() }).await;
    let roles = |role: FileRole| -> Vec<(TeamId, String)> {
        let of_team = |team: &TeamId| {
            let reader = world.archive().read(team).unwrap();
            let files = reader.state().files_of(Dataset::Connections).filter(|file| file.role == role);
            files.map(|file| (team.clone(), file.first.unwrap().day())).collect::<Vec<_>>()
        };
        world.sandbox.teams.iter().flat_map(of_team).collect()
    };
    world.round(days).await;
    world.assert_equals_truth();
    let by_days = roles(FileRole::Day);
    assert!(by_days.len() > 100 && by_days.iter().all(|(_, day)| &day[..] < "2026-11-17"), "{by_days:?}");
    assert_eq!(by_days.iter().collect::<std::collections::BTreeSet<_>>().len(), by_days.len(), "a day is one file");
    assert_eq!(roles(FileRole::Month), []);
    let reader = world.archive().read(&world.sandbox.teams[0]).unwrap();
    let is_sealed =
        |unit, day: &str| reader.state().is_sealed(unit, Stream::Connections, at(&format!("{day}T12:00:00Z")));
    assert!(is_sealed(SealUnit::Day, "2026-11-16") && !is_sealed(SealUnit::Day, "2026-11-17"));
    assert!(is_sealed(SealUnit::Month, "2026-10-15") && !is_sealed(SealUnit::Month, "2026-11-16"));
    world.sandbox.handle.advance(Duration::from_secs(u64::from(ahead) * 86_400));
    world.round(settings()).await;
    world.assert_equals_truth();
    assert_eq!(roles(FileRole::Day), by_days, "sealed files stay");
    let rest = roles(FileRole::Month);
    assert!(rest.len() == world.sandbox.teams.len() && rest.iter().all(|(_, day)| day == "2026-11-17"), "{rest:?}");
    assert!(verify(world.store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_computer_leaves_its_events_here_and_a_gap_that_names_it() {
    let world = World::start(config()).await;
    world.round(settings()).await;
    let team = world.sandbox.teams[0].clone();
    let device = world.sandbox.handle.devices(&team)[0].clone();
    world.sandbox.handle.advance(Duration::from_secs(600));
    assert!(world.sandbox.handle.remove_device(&team, &device));
    world.sandbox.handle.advance(Duration::from_secs(60));
    assert_eq!(world.round(settings()).await.committed().gaps, 1);
    world.assert_equals_truth();
    let reader = world.archive().read(&team).unwrap();
    let gaps: Vec<_> = reader.state().gaps().collect();
    assert_eq!((gaps.len(), gaps[0].subject.as_str()), (1, device.as_str()));
    let span = gaps[0].to.unwrap().since(gaps[0].from.unwrap());
    // Ten minutes without a reading, and the lag for late events.
    assert!(span <= Duration::from_secs(660 + 900), "{gaps:?}");
}
