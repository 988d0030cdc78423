//! Each bug that the simulation is to catch, with the faults of worlds in which it shows, and the seed of the first one.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Bug, CURRENT};
use crate::simulation::faults::Fault;
use crate::simulation::run::run_with;

const DAYS: i64 = 14;
/// Worlds that may pass before one shows the bug: a change of the program changes what happens in a world.
const SEEDS_MAX: u64 = 12;

const CAUGHT: [(Bug, &[Fault], u64); 34] = [
    (Bug::NoLag, &[Fault::LateWithinLag], 0),
    (Bug::NoRescans, &[Fault::LateBeyondLag], 0),
    (Bug::RescanUnread, &[Fault::LateBeyondLag], 0),
    (Bug::FutureUnread, &[Fault::ManyDays], 0),
    (Bug::NoRemovalGap, &[Fault::ComputerRemoved], 0),
    (Bug::UnlistedComputersIgnored, &[Fault::ShortLived], 0),
    (Bug::FirstReadingForgotten, &[Fault::InFirstReading], 0),
    (Bug::NoLagInRemovalGap, &[Fault::LateOfRemoved], 0),
    (Bug::RemovedBeforeForgotten, &[Fault::RemovedBefore], 0),
    (Bug::GapFromBeginning, &[Fault::ComputerRemoved], 0),
    (Bug::NoSpanGap, &[Fault::ShortRetention], 0),
    (Bug::SpanGapLostOnFailure, &[Fault::ShortRetention], 3),
    (Bug::NoBillingGap, &[Fault::BillingBurst], 0),
    (Bug::RetryAfterIgnored, &[Fault::Throttled], 0),
    (Bug::RetriesWithoutDelay, &[Fault::Unavailable, Fault::NotFound], 0),
    (Bug::RevisionsDropped, &[Fault::Edited], 0),
    (Bug::SecretsKept, &[], 0),
    (Bug::RejectsDropped, &[Fault::OddNumbers], 0),
    (Bug::QuarantineRepeated, &[Fault::OddNumbers], 0),
    (Bug::SessionsForgotten, &[], 0),
    (Bug::NoReadBack, &[Fault::BitFlip], 0),
    (Bug::TornLineKept, &[Fault::PowerLoss], 0),
    (Bug::AppendUnfenced, &[Fault::SecondPoller], 1),
    (Bug::ReplacedFilesDeletedAtOnce, &[], 0),
    (Bug::VacuumWithoutGrace, &[], 0),
    (Bug::SnapshotAhead, &[], 0),
    (Bug::SnapshotUnchecked, &[Fault::BitFlip], 3),
    (Bug::HoldsForgotten, &[], 2),
    (Bug::ExpiresEarly, &[], 2),
    (Bug::ExpiredComesBack, &[], 2),
    (Bug::ErasedFilesKept, &[], 5),
    (Bug::ErasedEventsReadAgain, &[], 5),
    (Bug::QuarantineNotErased, &[Fault::OddNumbers], 5),
    (Bug::TextsKept, &[], 3),
];

/// The laws that a bug breaks first, and in which world.
fn caught(bug: Option<Bug>, faults: &[Fault], mut seeds: Range<u64>) -> Option<(u64, String)> {
    CURRENT.set(bug);
    let broken = seeds.find_map(|seed| run_with(seed, DAYS, false, Some(faults)).err());
    CURRENT.set(None);
    broken.map(|broken| (broken.seed, broken.laws[0].clone()))
}

/// Every planted bug breaks a law, and a world with the same faults and without the bug breaks none. Two threads share the worlds.
#[test]
#[expect(clippy::print_stdout, reason = "a reader wants to see which law caught which bug")]
fn the_simulation_catches_every_planted_bug() {
    let mut worlds: Vec<(Option<Bug>, &[Fault], Range<u64>)> = Vec::new();
    for (bug, faults, seed) in CAUGHT {
        worlds.push((Some(bug), faults, seed..seed + SEEDS_MAX));
        if !worlds.contains(&(None, faults, 0..1)) {
            worlds.push((None, faults, 0..1));
        }
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let check = || {
        while let Some((bug, faults, seeds)) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let fault = match (bug, caught(*bug, faults, seeds.clone())) {
                (Some(bug), Some((seed, law))) => {
                    println!("planted {bug:?}, seed {seed}: {}", law.chars().take(160).collect::<String>());
                    continue;
                }
                (Some(bug), None) => format!("planted {bug:?}: not caught"),
                (None, Some((seed, law))) => format!("without any bug, {faults:?} seed {seed}: {law}"),
                (None, None) => continue,
            };
            wrong.lock().push(fault);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(check);
        check();
    });
    let wrong = wrong.into_inner();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
