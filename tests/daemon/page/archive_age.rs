//! The cost of reading an archive for the page, and the length of its pages: both are bounded for archives of any age.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::archive::{Archive, Body, Cache, Draft, Finding, FindingKind, WindowRecord, WindowState};
use annals::clock::Clock;
use annals::daemon::Live;
use annals::model::{Instant, Location, Range, Stream, TeamId};
use annals::report::{Limits, SnapshotSource};
use annals::store::MemoryStore;
use annals::web::QueryService;
use futures::future::BoxFuture;

use super::world::Lonely;
use crate::common::faulty_store::{Fault, FaultyStore};
use crate::program::wait_for;
use crate::reporting::{self, DAY, HOUR};

const NOW: &str = "2026-11-20T12:00:00Z";

/// A place where no engine ever reads a file.
fn nowhere(archive: &Archive) -> SnapshotSource {
    SnapshotSource::new(archive.clone(), Location::Local("/nowhere".into()), Cache::new("/nowhere", 1)).unwrap()
}

/// A clock that stands still until it is set.
#[derive(Default)]
struct Still(AtomicU64);

impl Still {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Still {
    fn now(&self) -> Instant {
        reporting::at(NOW).plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn random(&self) -> u64 {
        7
    }
}

fn window(day: u32) -> WindowRecord {
    let start = reporting::at("2019-11-20").plus(DAY * day);
    WindowRecord {
        state: WindowState::Sealed,
        reads: 2,
        requests: 4,
        events: 0,
        settled_at: Some(start.plus(DAY + HOUR)),
        rescans: 3,
        ..WindowRecord::new(Stream::Connections, Range { start, end: start.plus(DAY) })
    }
}

fn gap(day: u32) -> Finding {
    let start = reporting::at("2019-11-20").plus(DAY * day);
    Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::Gap,
        subject: format!("computer-{day}"),
        from: Some(start),
        to: Some(start.plus(HOUR)),
        reason: "computer removed".into(),
        count: 0,
        found_at: start.plus(HOUR),
    }
}

/// Each day's commits have their own ledger file.
fn commit(archive: &Archive, day: u32, draft: Draft) {
    let now = reporting::at("2019-11-21").plus(DAY * day);
    let _ = archive.writer(&TeamId::from("t")).unwrap().commit(draft, now).unwrap();
}

fn limits() -> Limits {
    Limits { memory_mib: 64, threads: 1, spill_parent: PathBuf::from("/nowhere") }
}

/// The store's requests at the first reading, at one soon afterwards, at a later one, and at the first one after a
/// commit.
fn counted(days: u32) -> [u64; 4] {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), u64::MAX, false, Fault::Failed);
    let archive = Archive::open_or_create(Arc::new(store.clone()), || "test".to_owned()).unwrap();
    let mut writer = archive.writer(&TeamId::from("t")).unwrap();
    for day in 0..days {
        let draft = Draft::from(Body { windows: vec![window(day)], ..Body::default() });
        let _ = writer.commit(draft, reporting::at("2019-11-21").plus(DAY * day)).unwrap();
    }
    drop(writer);
    let clock = Arc::new(Still::default());
    let place = nowhere(&archive);
    let asking = QueryService::new(place, limits(), Arc::new(Live::default()), clock.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let measure = |windows: u32| {
        let before = store.verbs();
        let teams = runtime.block_on(asking.teams()).unwrap();
        let data = runtime.block_on(asking.snapshot(teams)).unwrap();
        assert_eq!(data.coverage.len(), windows as usize);
        store.verbs() - before
    };
    let first = measure(days);
    let again = measure(days);
    clock.pass(3_600);
    let later = measure(days);
    commit(&archive, days, Draft::from(Body { windows: vec![window(days)], ..Body::default() }));
    clock.pass(3_600);
    [first, again, later, measure(days + 1)]
}

#[test]
fn the_reading_of_an_archive_is_cached_until_the_next_commit() {
    for days in [3, 500] {
        let [first, again, later, after] = counted(days);
        assert!(first <= u64::from(days) + 8, "each file of the ledger once: {first} for {days} days");
        assert_eq!(again, 0, "a recent reading is not repeated");
        assert_eq!(later, 1, "an hour later the list of the ledger's files says that nothing was committed");
        assert!(after <= u64::from(days) + 8, "{after} for {days} days");
    }
}

#[test]
fn a_shard_s_daemon_sees_another_shard_s_new_team_within_half_a_minute() {
    for (shard, is_seen) in [("2/8", true), ("1/1", false)] {
        let archive = Archive::open_or_create(Arc::new(MemoryStore::new()), || "test".to_owned()).unwrap();
        let clock = Arc::new(Still::default());
        let place = nowhere(&archive);
        let live = Live::new(Arc::default(), shard.parse().unwrap());
        let asking = QueryService::new(place, limits(), Arc::new(live), clock.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let teams = || runtime.block_on(asking.teams()).unwrap().len();
        assert_eq!(teams(), 0);
        commit(&archive, 1, Draft::from(Body { windows: vec![window(1)], ..Body::default() }));
        clock.pass(29);
        assert_eq!(teams(), 0);
        clock.pass(1);
        assert_eq!(teams(), usize::from(is_seen), "{shard}: one daemon reads all teams of an undivided fleet");
    }
}

#[test]
fn a_page_about_a_team_that_the_daemon_has_open_reads_no_ledger() {
    let world = Lonely::new("");
    wait_for("an open team", || (world.daemon.metric("annals_teams_open") == Some(1.0)).then_some(()));
    wait_for("the first visit", || world.page("/").contains("Ledger line 1").then_some(()));
    // SIGHUP drops the cached reading of the archive.
    world.daemon.reload(|line| line["message"] == "the daemon uses the new configuration");
    let ledger = world.place.archive().join("ledger");
    std::fs::rename(&ledger, world.place.path().join("aside")).unwrap();
    assert!(world.page("/coverage?stream=connections").contains("1 day with a gap"));
    std::fs::rename(world.place.path().join("aside"), &ledger).unwrap();
    world.daemon.stop();
}

#[test]
fn a_calendar_of_ten_years_with_thousands_of_gaps_is_a_page_of_bounded_length() {
    let place = reporting::Place::empty();
    let days = 2_557;
    let draft = Draft::from(Body {
        windows: (0..days).map(window).collect(),
        findings: (0..days).step_by(2).map(gap).chain((0..days).map(gap)).collect(),
        ..Body::default()
    });
    commit(&place.opened(), 2_557, draft);
    let world = Lonely::over(place, "");
    let page = world.page("/coverage?stream=connections&until=2026");
    let count = |what: &str| page.matches(what).count();
    assert_eq!(count("<section class=\"year\">"), 8, "a block a year");
    assert!(
        count("<a ") < 2_557 + 300,
        "{}: one link for each day with a gap, and the number of named gaps",
        count("<a ")
    );
    assert!(page.contains("2019") && page.contains("2026") && page.len() < 2_000_000, "{}", page.len());
    world.daemon.stop();
}
