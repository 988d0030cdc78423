//! The time to open a long ledger for writing: from its snapshot, and without one by a replay of every line.
//!
//! `--lines N` sets another length. Prints seconds; asserts nothing about time.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Body, Draft, ReadPoint, WindowRecord, WindowState};
use annals::clock::SystemClock;
use annals::model::{Instant, Stream, TeamId, WindowGrid};
use annals::store::{LocalStore, MemoryStore, Store};
use support::{Began, Failure, Took, median, number, print_ratio};

const LINES: u32 = 100_000;
const ROUNDS: usize = 5;
/// A daemon's polls.
const MINUTE: Duration = Duration::from_secs(60);
const FIRST: &str = "2026-01-01T00:00:00Z";

fn main() -> Result<(), Failure> {
    let lines = number("--lines", LINES)?;
    let made = make_ledger(lines)?;
    let directory = tempfile::tempdir()?;
    let on_disk = LocalStore::new(directory.path());
    let mut bytes = 0;
    for entry in made.list("")? {
        let mut file = on_disk.create()?;
        file.write_all(&made.read(&entry.path)?.to_bytes()?)?;
        file.finish(&entry.path)?;
        bytes += entry.bytes;
    }
    println!("{lines} lines, {:.1} MB with their snapshots", bytes as f64 / 1e6);
    let with_snapshot = opening(&on_disk)?;
    for entry in on_disk.list("snapshots")? {
        on_disk.remove(&[&entry.path])?;
    }
    let without = opening(&on_disk)?;
    print_ratio("a writer opens the ledger, seconds", with_snapshot.wall, 0.5, 0.3);
    print_ratio("the same, of the processor", with_snapshot.processor, "-", "-");
    print_ratio("without a snapshot, seconds", without.wall, "-", "-");
    print_ratio("the same, of the processor", without.processor, "-", "-");
    Ok(())
}

fn opening(store: &LocalStore) -> Result<Took, Failure> {
    let clock = Arc::new(SystemClock::new());
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Began::now(&clock);
        drop(Archive::open(Arc::new(store.clone()))?.writer(&team())?);
        times.push(began.took());
    }
    Ok(median(times))
}

fn team() -> TeamId {
    TeamId::from("acme")
}

/// Adds one line a minute, like polls of the day's window.
fn make_ledger(lines: u32) -> Result<MemoryStore, Failure> {
    let store = MemoryStore::new();
    let archive = Archive::open_or_create(Arc::new(store.clone()), || "bench".to_owned())?;
    let mut writer = archive.writer(&team())?;
    let grid = WindowGrid::new(Duration::from_secs(86_400));
    let mut now: Instant = FIRST.parse()?;
    for number in 0..lines {
        let window = WindowRecord {
            state: WindowState::Provisional,
            reads: number,
            requests: u64::from(number),
            events: u64::from(number),
            ..WindowRecord::new(Stream::Connections, grid.window_of(now))
        };
        let read_points = vec![(Stream::Connections, ReadPoint { at: now, read_to: now, listed_at: None })];
        let _ = writer.commit(Draft::from(Body { windows: vec![window], read_points, ..Body::default() }), now)?;
        now = now.plus(MINUTE);
    }
    Ok(store)
}
