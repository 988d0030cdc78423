//! The cost of archived events: bytes in files, and time on one core. Run it by hand on a quiet machine:
//! `cargo test --release --test archive -- --ignored --nocapture`

#![allow(clippy::print_stdout, reason = "a measurement prints its result")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Body, Committed, Draft, TeamWriter, WindowRows};
use annals::clock::{Clock, SystemClock};
use annals::model::path::month_of;
use annals::model::{EventRow, Instant, Range, RawEvent, ServedTime, Stream, TeamId, WindowGrid};
use annals::normalize::{normalize, parse};
use annals::sandbox::{Sandbox, SandboxConfig};
use annals::store::{LocalStore, Store};

const DAY: Duration = Duration::from_secs(86_400);

/// A month of connection events by day, in the form of the pipeline.
async fn month() -> (TeamId, BTreeMap<Instant, Vec<EventRow>>) {
    let end: Instant = "2026-11-01T00:00:00Z".parse().unwrap();
    let config = SandboxConfig {
        teams: 1,
        days: 31,
        sessions_per_day: 2_000,
        end: Some(end),
        now: Some(end),
        ..SandboxConfig::default()
    };
    let sandbox = Sandbox::start(config).await.unwrap();
    let team = sandbox.teams[0].clone();
    let mut days: BTreeMap<Instant, Vec<EventRow>> = BTreeMap::new();
    for event in sandbox.handle.truth(&team, Stream::Connections) {
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(&event.raw) else { continue };
        let id = json["id"].as_str().map(Into::into);
        let raw = RawEvent::new(event.raw, false, id, ServedTime::At(event.at));
        if let Ok(row) = normalize(&team, Stream::Connections, (&raw, parse(Stream::Connections, &raw)), 1, 1, end) {
            days.entry(event.at.floor_to(DAY)).or_default().push(row);
        }
    }
    (team, days)
}

/// Commits, and returns the duration.
fn timed(clock: &SystemClock, writer: &mut TeamWriter, what: &str, events: u64, draft: Draft) {
    let start = clock.monotonic();
    let outcome = writer.commit(draft, clock.now()).unwrap();
    let seconds = (clock.monotonic() - start).as_secs_f64();
    let Committed::Committed { files, rows, bytes, .. } = outcome else { panic!("{outcome:?}") };
    let each = |n: u64, of: u64| f64::from(u32::try_from(n).unwrap()) / f64::from(u32::try_from(of).unwrap());
    println!(
        "{what}: {files} files, {rows} rows, {:.1} bytes an event, {:.0} events a second",
        each(bytes, rows),
        each(events, 1) / seconds
    );
}

#[tokio::test]
#[ignore = "a measurement, not a check"]
async fn a_month_of_connections() {
    let (team, days) = month().await;
    let clock = SystemClock::new();
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(directory.path()));
    let archive = Archive::open_or_create(store, || "measured".to_owned()).unwrap();
    let mut writer = archive.writer(&team).unwrap();
    let total: u64 = days.values().map(|rows| rows.len() as u64).sum();
    let text: u64 = days.values().flatten().map(|row| row.raw.len() as u64).sum();
    println!("{total} events of {} bytes", text / total);
    let grid = WindowGrid::new(DAY);
    let of = |compact: bool, keep: fn(usize) -> bool| {
        let window = |(start, rows): (&Instant, &Vec<EventRow>)| {
            let rows: Vec<EventRow> =
                rows.iter().enumerate().filter(|(at, _)| keep(*at)).map(|(_, row)| row.clone()).collect();
            WindowRows::new(Stream::Connections, grid.window_of(*start), rows, compact)
        };
        days.iter().map(window).collect::<Vec<_>>()
    };
    let (parts, rest) = (of(false, |at| at % 2 == 0), of(true, |at| at % 2 == 1));
    let count = |rows: &[WindowRows]| rows.iter().map(|window| window.rows.len() as u64).sum::<u64>();
    timed(&clock, &mut writer, "parts", count(&parts), Draft { rows: parts, ..Draft::default() });
    timed(&clock, &mut writer, "windows", total, Draft { rows: rest, ..Draft::default() });
    let month = month_of(*days.keys().next().unwrap());
    let sealing = Draft::from(Body { sealed_months: vec![(Stream::Connections, month)], ..Body::default() });
    timed(&clock, &mut writer, "month", total, sealing);
    let start = clock.monotonic();
    let range = Range::new(Instant::EARLIEST, Instant::LATEST);
    let found = writer.rows().events_in(Stream::Connections, range).unwrap().len();
    println!("identities: {found} in {:?}", clock.monotonic() - start);
    let start = clock.monotonic();
    let report = annals::archive::verify(archive.store().as_ref(), &Default::default()).unwrap();
    println!("verify: {} rows {} in {:?}", report.verdict, report.rows, clock.monotonic() - start);
    assert_eq!(u64::try_from(found).unwrap(), total);
}
