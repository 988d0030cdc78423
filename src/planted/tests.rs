//! Each bug that the simulation is to catch, with the faults of worlds in which it shows.

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

#[test]
#[expect(clippy::print_stdout, reason = "which law caught what is worth reading")]
fn the_simulation_catches_every_planted_bug() {
    let (some, others) = CAUGHT.split_at(CAUGHT.len() / 2);
    let missed = |bugs: &[(Bug, &[Fault])]| -> Vec<String> {
        let mut missed = Vec::new();
        for (bug, faults) in bugs {
            match caught(Some(*bug), faults, 0..SEEDS_MAX) {
                Some((seed, law)) => {
                    println!("planted {bug:?}, seed {seed}: {}", law.chars().take(160).collect::<String>());
                }
                None => missed.push(format!("{bug:?}")),
            }
            let calm = caught(None, faults, 0..1);
            missed.extend(calm.map(|(seed, law)| format!("without any bug, {faults:?} seed {seed}: {law}")));
        }
        missed
    };
    let missed = std::thread::scope(|scope| {
        let others = scope.spawn(|| missed(others));
        let some = missed(some);
        [some, others.join().expect("a world broke")].concat()
    });
    assert!(missed.is_empty(), "not caught: {missed:#?}");
}
