//! Each bug that the simulation is to catch, with the law that catches it first, the faults of worlds in which it shows, and the
//! place of the first one's seed among the seeds.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Bug, CURRENT};
use crate::simulation::faults::Fault;
use crate::simulation::run::run_with;

const DAYS: i64 = 14;
/// Worlds of few teams and few polls. A change of the program changes what happens in a world, so a bug may need the next ones.
const SEEDS: [u64; 20] = [1, 10, 28, 29, 24, 6, 34, 13, 17, 19, 20, 4, 21, 18, 3, 0, 5, 2, 12, 33];

/// `verify` stands for its own check at the end of a world.
const CAUGHT: [(Bug, &str, &[Fault], usize); 37] = [
    (Bug::NoLag, "I9", &[Fault::LateWithinLag], 0),
    (Bug::NoRescans, "I1", &[Fault::LateBeyondLag], 0),
    (Bug::RescanUnread, "I2", &[Fault::LateBeyondLag], 0),
    (Bug::FutureUnread, "I1", &[Fault::ManyDays], 0),
    (Bug::NoRemovalGap, "I1", &[Fault::ComputerRemoved], 2),
    (Bug::UnlistedComputersIgnored, "I1", &[Fault::ShortLived], 0),
    (Bug::UsedComputersForgotten, "I1", &[Fault::ShortLived], 15),
    (Bug::FirstReadingForgotten, "I1", &[Fault::InFirstReading], 3),
    (Bug::NoLagInRemovalGap, "I1", &[Fault::LateOfRemoved], 0),
    (Bug::RemovedBeforeForgotten, "I1", &[Fault::RemovedBefore], 0),
    (Bug::GapFromBeginning, "I5", &[Fault::ComputerRemoved], 2),
    (Bug::NoSpanGap, "I1", &[Fault::ShortRetention], 0),
    (Bug::SpanGapLostOnFailure, "I1", &[Fault::ShortRetention], 2),
    (Bug::NoBillingGap, "I1", &[Fault::BillingBurst], 0),
    (Bug::RetryAfterIgnored, "I11", &[Fault::Throttled], 0),
    (Bug::RetriesWithoutDelay, "I11", &[Fault::Unavailable, Fault::NotFound], 2),
    (Bug::RevisionsDropped, "I2", &[Fault::Edited], 0),
    (Bug::SecretsKept, "I12", &[], 4),
    (Bug::RejectsDropped, "I2", &[Fault::OddNumbers], 0),
    (Bug::QuarantineRepeated, "I4", &[Fault::OddNumbers], 0),
    (Bug::SessionsForgotten, "I13", &[], 0),
    (Bug::NoReadBack, "S1", &[Fault::BitFlip], 0),
    (Bug::LineBeforeFiles, "S1", &[], 0),
    (Bug::TornLineKept, "verify", &[Fault::PowerLoss], 7),
    (Bug::AppendUnfenced, "S2", &[Fault::SecondPoller], 0),
    (Bug::ReplacedFilesDeletedAtOnce, "S4", &[], 0),
    (Bug::VacuumWithoutGrace, "S4", &[], 2),
    (Bug::YoungFilesRemoved, "S3", &[Fault::Stalled], 1),
    (Bug::SnapshotAhead, "I6", &[], 0),
    (Bug::SnapshotUnchecked, "I6", &[Fault::BitFlip], 0),
    (Bug::HoldsForgotten, "S7", &[], 1),
    (Bug::ExpiresEarly, "S6", &[], 5),
    (Bug::ExpiredComesBack, "S6", &[], 5),
    (Bug::ErasedFilesKept, "S8", &[], 1),
    (Bug::ErasedEventsReadAgain, "I3", &[], 1),
    (Bug::QuarantineNotErased, "S8", &[Fault::OddNumbers], 1),
    (Bug::TextsKept, "S9", &[], 8),
];

/// The laws that a bug breaks first, and in which world.
fn caught(bug: Option<Bug>, faults: &[Fault], seeds: &[u64]) -> Option<(u64, String)> {
    CURRENT.set(bug);
    let broken = seeds.iter().find_map(|seed| run_with(*seed, DAYS, false, Some(faults)).err());
    CURRENT.set(None);
    broken.map(|broken| (broken.seed, broken.laws[0].clone()))
}

/// A planted bug with its law, or none, then the faults and the seeds.
type World = (Option<(Bug, &'static str)>, &'static [Fault], &'static [u64]);

/// Every planted bug breaks its law first, and a world with the same faults and without the bug breaks none. Two threads share the
/// worlds.
#[test]
#[expect(clippy::print_stdout, reason = "a reader wants to see which law caught which bug")]
fn the_simulation_catches_every_planted_bug() {
    let mut worlds = Vec::<World>::new();
    for (bug, law, faults, first) in CAUGHT {
        worlds.push((Some((bug, law)), faults, &SEEDS[first..]));
        if !worlds.contains(&(None, faults, &SEEDS[..1])) {
            worlds.push((None, faults, &SEEDS[..1]));
        }
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let check = || {
        while let Some((planted, faults, seeds)) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let fault = match (planted, caught(planted.map(|(bug, _)| bug), faults, seeds)) {
                (Some((bug, law)), Some((seed, broken))) => {
                    println!("planted {bug:?}, seed {seed}: {}", broken.chars().take(160).collect::<String>());
                    if broken.starts_with(&format!("{law}: ")) {
                        continue;
                    }
                    format!("planted {bug:?}, seed {seed}: not {law}, but {broken}")
                }
                (Some((bug, _)), None) => format!("planted {bug:?}: not caught"),
                (None, Some((seed, broken))) => format!("without any bug, {faults:?} seed {seed}: {broken}"),
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

/// S4 is also broken for the reader itself, which does not finish within the grace.
#[test]
fn a_reader_that_loses_its_files_within_the_grace_breaks_s4() {
    CURRENT.set(Some(Bug::ReplacedFilesDeletedAtOnce));
    let mut broken = SEEDS.iter().filter_map(|seed| run_with(*seed, DAYS, false, Some(&[Fault::SlowReader])).err());
    let is_caught = broken.any(|broken| broken.laws.iter().any(|law| law.starts_with("S4: a reader of")));
    CURRENT.set(None);
    assert!(is_caught, "no reader of any world lost a file within the grace");
}
