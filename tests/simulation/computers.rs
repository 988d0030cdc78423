//! The faults of computers that are added and removed.

use super::event_faults::moment;
use super::faults::Fault;
use super::plan::{DAY, HOUR, MINUTE};
use super::random::Draw;
use super::texts::{self, Shape};
use super::world::{Device, Draft, NANO, NEVER};
use annals::model::Stream;

const MILLI: i64 = 1_000_000;

/// A computer is added, used and removed, usually between two lists. Activity may show neither.
pub fn short_lived(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(1, 5) {
        let start = draft.plan.start * NANO;
        let added = if draw.is(25) { start + draw.between(0, 4 * NANO) } else { moment(draft, draw) };
        let lives = draw.pick(&[1, 5, 40, 400, 4_000]) * NANO + draw.between(0, NANO);
        let n = come(draft, added, added + lives);
        for kind in 0..draw.count(1, 5) {
            let connection = format!("{}-short-{n}", draft.name);
            draft.step(&connection, kind, (added + draw.between(0, lives)) / MILLI * MILLI, n);
        }
        if draw.is(70) {
            let text = texts::addition(added, &draft.devices[n].id.clone());
            draft.add(Stream::Activity, added, None, text, false);
        }
        if draw.is(60) {
            add_activity(draft, draw, Fault::ShortLived, n);
        }
    }
}

/// A computer is removed during the backfill.
pub fn in_first_reading(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(1, 3) {
        let at = draft.plan.start * NANO + draw.between(0, 8 * NANO);
        let n = come(draft, i64::MIN, at);
        use_until(draft, n, at);
        add_activity(draft, draw, Fault::InFirstReading, n);
    }
}

/// Events of a computer appear late, and the computer is removed before the re-scan.
pub fn late(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(1, 4) {
        let removed = moment(draft, draw);
        let n = come(draft, i64::MIN, removed);
        for kind in 0..draw.count(1, 5) {
            let at = (removed - draw.between(MINUTE, 14 * MINUTE) * NANO) / MILLI * MILLI;
            let connection = format!("{}-late-{n}", draft.name);
            let event = draft.step(&connection, kind, at, n);
            draft.events[event].from = at + draw.between(20, (removed - at) / NANO) * NANO;
        }
        add_activity(draft, draw, Fault::LateOfRemoved, n);
    }
}

/// A computer is removed before the backfill.
pub fn before(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(1, 3) {
        let at = draft.plan.start * NANO - draw.between(HOUR, 3 * DAY) * NANO;
        let n = come(draft, i64::MIN, at);
        use_until(draft, n, at);
        add_activity(draft, draw, Fault::RemovedBefore, n);
    }
}

fn come(draft: &mut Draft<'_>, added: i64, removed: i64) -> usize {
    let n = draft.devices.len();
    draft.devices.push(Device { id: format!("{}-d{n}", draft.name), added, removed, is_shown: false, is_named: false });
    n
}

fn use_until(draft: &mut Draft<'_>, n: usize, at: i64) {
    for (kind, minutes) in [(0, 30 * 60), (0, 44), (1, 21), (2, 4), (4, 1)] {
        let connection = format!("{}-until-{n}", draft.name);
        draft.step(&connection, kind, (at / NANO - minutes * MINUTE) * NANO, n);
    }
}

/// Activity shows the removal, in one of several payload shapes.
fn add_activity(draft: &mut Draft<'_>, draw: &mut Draw, fault: Fault, n: usize) {
    let device = &mut draft.devices[n];
    assert!(device.removed < NEVER);
    let shape = draw.pick(&Shape::ALL);
    device.is_shown = true;
    device.is_named = matches!(shape, Shape::Inside | Shape::Beside | Shape::List);
    let (id, at) = (device.id.clone(), device.removed);
    let text = texts::removal_as(at, &id, shape);
    let record = draft.add(Stream::Activity, at, None, text, false);
    draft.events[record].from = at + draw.pick(&[0, 1, 40, 400]) * NANO;
    draft.events[record].fault = Some(fault);
}
