//! Each bug that the simulation is to catch, with the faults of worlds in which it shows.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Bug, CURRENT};
use crate::simulation::faults::Fault;
use crate::simulation::run::run_with;

const DAYS: i64 = 14;
/// Worlds that may pass before one shows the bug.
const SEEDS_MAX: u64 = 12;

const CAUGHT: [(Bug, &[Fault]); 34] = [
    (Bug::NoLag, &[Fault::LateWithinLag]),
    (Bug::NoRescans, &[Fault::LateBeyondLag]),
    (Bug::RescanUnread, &[Fault::LateBeyondLag]),
    (Bug::FutureUnread, &[Fault::ManyDays]),
    (Bug::NoRemovalGap, &[Fault::ComputerRemoved]),
    (Bug::StrangersForgotten, &[Fault::ShortLived]),
    (Bug::FirstReadingForgotten, &[Fault::InFirstReading]),
    (Bug::NoLateness, &[Fault::LateOfRemoved]),
    (Bug::RemovedBeforeForgotten, &[Fault::RemovedBefore]),
    (Bug::GapFromBeginning, &[Fault::ComputerRemoved]),
    (Bug::NoSpanGap, &[Fault::ShortRetention]),
    (Bug::BehindForgotten, &[Fault::ShortRetention]),
    (Bug::NoBillingGap, &[Fault::BillingBurst]),
    (Bug::RetryAfterIgnored, &[Fault::Throttled]),
    (Bug::HotLoop, &[Fault::Unavailable, Fault::NotFound]),
    (Bug::RevisionsDropped, &[Fault::Edited]),
    (Bug::SecretsKept, &[]),
    (Bug::RejectsDropped, &[Fault::OddNumbers]),
    (Bug::RejectsForgotten, &[Fault::OddNumbers]),
    (Bug::SessionsForgotten, &[]),
    (Bug::NoReadBack, &[Fault::BitFlip]),
    (Bug::TornLineKept, &[Fault::PowerLoss]),
    (Bug::AppendUnfenced, &[Fault::SecondPoller]),
    (Bug::RemovesAtOnce, &[]),
    (Bug::VacuumWithoutGrace, &[]),
    (Bug::SnapshotAhead, &[]),
    (Bug::SnapshotUnchecked, &[Fault::BitFlip]),
    (Bug::HoldsForgotten, &[]),
    (Bug::ExpiresEarly, &[]),
    (Bug::ExpiredComesBack, &[]),
    (Bug::ErasedFilesKept, &[]),
    (Bug::ErasedForgotten, &[]),
    (Bug::QuarantineNotErased, &[Fault::OddNumbers]),
    (Bug::TextsKept, &[]),
];

/// The laws that a bug breaks first, and in which world.
fn caught(bug: Option<Bug>, faults: &[Fault], seeds: std::ops::Range<u64>) -> Option<(u64, String)> {
    CURRENT.set(bug);
    let broken = seeds.clone().find_map(|seed| run_with(seed, DAYS, false, Some(faults)).err());
    CURRENT.set(None);
    broken.map(|broken| (broken.seed, broken.laws[0].clone()))
}

/// Every planted bug breaks a law, and a world with the same faults and without the bug breaks none. Two threads share the worlds.
#[test]
#[expect(clippy::print_stdout, reason = "a reader wants to see which law caught which bug")]
fn the_simulation_catches_every_planted_bug() {
    let mut worlds: Vec<(Option<Bug>, &[Fault])> = CAUGHT.iter().map(|(bug, faults)| (Some(*bug), *faults)).collect();
    for (_, faults) in &CAUGHT {
        if !worlds.contains(&(None, faults)) {
            worlds.push((None, faults));
        }
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let check = || {
        while let Some((bug, faults)) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let fault = match (bug, caught(*bug, faults, 0..if bug.is_some() { SEEDS_MAX } else { 1 })) {
                (Some(bug), Some((seed, law))) => {
                    println!("planted {bug:?}, seed {seed}: {}", law.chars().take(160).collect::<String>());
                    continue;
                }
                (Some(bug), None) => format!("planted {bug:?}: not caught"),
                (None, Some((seed, law))) => format!("without any bug, {faults:?} seed {seed}: {law}"),
                (None, None) => continue,
            };
            wrong.lock().expect("no thread panics").push(fault);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(check);
        check();
    });
    let wrong = wrong.into_inner().expect("no thread panics");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
