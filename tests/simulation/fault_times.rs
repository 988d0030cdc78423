//! The times of lasting faults, and of the ends of processes.

use annals::model::Stream;

use super::faults::Fault;
use super::plan::{DAY, Deadly, End, HOUR, MINUTE, Plan, ProcessPlan, Spell};
use super::random::Draw;

/// A fault's frequency, its shortest and longest duration, and how many in a hundred operations fail.
fn lasting(fault: Fault) -> Option<(usize, i64, i64, &'static [u64])> {
    Some(match fault {
        Fault::EmptyAnswer => (3, HOUR, 8 * HOUR, &[100]),
        Fault::Garbage => (3, 20 * MINUTE, 6 * HOUR, &[30, 100]),
        Fault::Throttled => (3, 20 * MINUTE, 3 * HOUR, &[30, 100]),
        Fault::Unavailable => (3, MINUTE, 6 * HOUR, &[20, 60, 100]),
        Fault::Refused | Fault::TokenRotated => (2, HOUR, 20 * HOUR, &[100]),
        Fault::NotFound => (2, 20 * MINUTE, 5 * HOUR, &[100, 40]),
        Fault::ViewFails => (3, HOUR, 2 * DAY, &[100, 60]),
        Fault::Redirect => (2, 20 * MINUTE, 2 * HOUR, &[100, 40]),
        Fault::AnswerLost => (4, HOUR, 10 * HOUR, &[30]),
        Fault::StaleCache => (3, HOUR, 6 * HOUR, &[30, 100]),
        Fault::OutOfOrder => (3, 10 * HOUR, 3 * DAY, &[50]),
        Fault::Panic => (2, HOUR, 3 * HOUR, &[10]),
        Fault::DiskFull => (2, HOUR, 6 * HOUR, &[100]),
        Fault::DiskErrors => (3, 2 * HOUR, DAY, &[5]),
        Fault::AppendButDone => (2, 2 * HOUR, DAY, &[30]),
        Fault::WriteFails => (2, 2 * HOUR, DAY, &[10]),
        Fault::BitFlip => (3, 2 * HOUR, DAY, &[20]),
        _ => return None,
    })
}

pub fn draw(plan: &mut Plan, fault: Fault) {
    let mut draw = Draw::of(plan.seed, &format!("spells of {}", fault.id()));
    if let Some((times, shortest, longest, percents)) = lasting(fault) {
        for _ in 0..draw.count(1, times + 1) {
            let (mut from, until) = plan.stretch(&mut draw, shortest, longest);
            if fault == Fault::NotFound {
                // Before the backfill, the program takes a missing history for one that never existed.
                from = from.max(plan.start + 2 * DAY).min(until);
            }
            if fault == Fault::OutOfOrder {
                // Only a backfill sends parallel requests.
                from = plan.start;
            }
            if fault == Fault::TokenRotated {
                plan.rotations.push(until + 1);
            }
            let team = if draw.is(50) { Some(draw.count(0, plan.teams)) } else { None };
            let stream = if draw.is(40) { Some(draw.pick(&Stream::ALL)) } else { None };
            let stream = stream.filter(|_| fault != Fault::ViewFails);
            let is_of_all = matches!(fault, Fault::Unavailable | Fault::Refused | Fault::TokenRotated);
            let (team, stream) = if is_of_all { (None, None) } else { (team, stream) };
            plan.spells.push(Spell { fault, team, stream, from, until, percent: draw.pick(percents) });
        }
    }
    match fault {
        Fault::ShortRetention => {
            plan.plan_span = Some(2 * DAY);
            let (from, until) = plan.stretch(&mut draw, 3 * DAY, 4 * DAY);
            plan.spells.push(Spell { fault, team: None, stream: None, from, until, percent: 100 });
        }
        Fault::ClockStep => clock_steps(plan, &mut draw),
        Fault::SecondPoller => {
            let times = draw.count(2, 6);
            plan.pollers = (0..times).map(|_| plan.stretch(&mut draw, 0, HOUR).0).collect();
            plan.pollers.sort_unstable();
        }
        Fault::Stalled => {
            let stall = |draw: &mut Draw| (plan.stretch(draw, 0, HOUR).0, draw.between(10 * MINUTE, 12 * HOUR));
            plan.stalls = (0..draw.count(2, 6)).map(|_| stall(&mut draw)).collect();
            plan.stalls.sort_unstable();
        }
        Fault::SlowReader => {
            let longest = 3 * i64::try_from(plan.grace.as_secs()).unwrap();
            let reader = |draw: &mut Draw| (plan.stretch(draw, 0, HOUR).0, draw.between(10 * MINUTE, longest));
            plan.readers = (0..draw.count(4, 12)).map(|_| reader(&mut draw)).collect();
            plan.readers.sort_unstable();
        }
        _ => lives(plan, fault, &mut draw),
    }
    if plan.seed % 11 == 3 && !plan.is_calm() {
        plan.is_old = true;
    }
}

fn clock_steps(plan: &mut Plan, draw: &mut Draw) {
    let offsets = [HOUR, -HOUR, HOUR / 2, -plan.start, 2_145_916_800 - plan.start, 400 * DAY];
    let (from, until) = plan.stretch(draw, 20 * MINUTE, 2 * DAY);
    plan.clock_steps = vec![(from, draw.pick(&offsets)), (until, 0)];
}

fn lives(plan: &mut Plan, fault: Fault, draw: &mut Draw) {
    let power = |verb, after, is_torn| End::PowerLost { verb, after, is_torn };
    for _ in 0..draw.count(1, 5) {
        let until = plan.stretch(draw, 0, HOUR).0;
        let down = draw.pick(&[0, 1, 30, HOUR, 6 * HOUR]);
        let end = match fault {
            Fault::Crash => End::Killed,
            Fault::PowerLoss => power(Deadly::Any, draw.below(60), true),
            Fault::KilledInRecovery => power(Deadly::Any, draw.below(30), draw.is(50)),
            Fault::CrashBeforeLine => power(Deadly::Append, draw.below(3), false),
            Fault::VacuumCrash => power(Deadly::Remove, draw.below(3), false),
            // A restart is normal and no fault.
            Fault::LateWithinLag | Fault::Bounds | Fault::OddSessions => End::Stopped,
            _ => return,
        };
        let fault = (end != End::Stopped).then_some(fault);
        plan.lives.push(ProcessPlan { until, end, fault, down });
        if fault == Some(Fault::KilledInRecovery) {
            let again = End::PowerLost { verb: Deadly::Any, after: 2 + draw.below(12), is_torn: false };
            plan.lives.push(ProcessPlan { until: until + 1, end: again, fault, down: 0 });
        }
    }
    if fault == Fault::PowerLoss {
        let mut draw = Draw::of(plan.seed, "power is lost around a snapshot");
        for _ in 0..draw.count(1, 4) {
            let until = plan.stretch(&mut draw, 0, HOUR).0;
            let end = power(Deadly::Snapshot, draw.below(5), true);
            plan.lives.push(ProcessPlan { until, end, fault: Some(fault), down: draw.pick(&[0, 30, HOUR]) });
        }
    }
}
