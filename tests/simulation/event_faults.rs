//! The faults of the events themselves.

use annals::model::{Digest, Stream};

use super::WINDOWED;
use super::computers;
use super::faults::Fault;
use super::plan::{DAY, HOUR, MINUTE};
use super::random::Draw;
use super::texts;
use super::world::{Draft, Event, LossReason, NANO};

pub fn spoil(draft: &mut Draft<'_>, fault: Fault, draw: &mut Draw) {
    match fault {
        Fault::LateWithinLag => late(draft, fault, draw, (20, 13 * MINUTE)),
        Fault::LateBeyondLag => late(draft, fault, draw, (20 * MINUTE, 68 * HOUR)),
        Fault::DeletedBetween => deleted(draft, draw),
        Fault::InsertedBetween => inserted(draft, draw),
        Fault::ComputerRemoved => removed(draft, draw),
        Fault::Vanished => vanished(draft, draw),
        Fault::Duplicates => some(draft, draw, Stream::Connections, 5).into_iter().for_each(|n| {
            (draft.events[n].shown, draft.events[n].fault) = (2, Some(fault));
        }),
        Fault::DenseSecond => dense(draft, draw),
        Fault::Twins => twins(draft, draw),
        Fault::Edited => edited(draft, draw),
        Fault::UnknownFields => unknown(draft, draw),
        Fault::OddNumbers => odd_numbers(draft, draw),
        Fault::Future => future(draft, fault, draw, 3, 2 * DAY),
        Fault::ManyDays => future(draft, fault, draw, 25, 300 * DAY),
        Fault::Flapping => flapping(draft, draw),
        Fault::BillingBurst => burst(draft, draw),
        Fault::OddSessions => odd_sessions(draft, draw),
        Fault::LargeEvents => large(draft, draw),
        Fault::ShortLived => computers::short_lived(draft, draw),
        Fault::InFirstReading => computers::in_first_reading(draft, draw),
        Fault::LateOfRemoved => computers::late(draft, draw),
        Fault::RemovedBefore => computers::before(draft, draw),
        _ => {}
    }
}

/// Some events from the time with faults.
fn some(draft: &Draft<'_>, draw: &mut Draw, stream: Stream, most: usize) -> Vec<usize> {
    let (from, to) = ((draft.plan.start + HOUR) * NANO, (draft.plan.calm_from - 75 * HOUR) * NANO);
    let fits = |event: &Event| event.stream == stream && (from..to).contains(&event.at) && event.fault.is_none();
    let all: Vec<usize> = (0..draft.events.len()).filter(|n| fits(&draft.events[*n])).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let mut picked: Vec<usize> = (0..draw.count(1, most + 1)).map(|_| draw.pick(&all)).collect();
    picked.sort_unstable();
    picked.dedup();
    picked
}

/// A moment from the time with faults, in nanoseconds.
pub fn moment(draft: &Draft<'_>, draw: &mut Draw) -> i64 {
    draw.between(draft.plan.start + 2 * HOUR, draft.plan.calm_from - 76 * HOUR) * NANO
}

fn late(draft: &mut Draft<'_>, fault: Fault, draw: &mut Draw, (from, to): (i64, i64)) {
    for stream in WINDOWED {
        for n in some(draft, draw, stream, 6) {
            let event = &mut draft.events[n];
            event.from = event.at + draw.between(from, to) * NANO;
            event.fault = Some(fault);
        }
    }
}

fn deleted(draft: &mut Draft<'_>, draw: &mut Draw) {
    for n in some(draft, draw, Stream::Connections, 8) {
        let event = &mut draft.events[n];
        (event.gone, event.fault, event.is_doomed) =
            (Some(LossReason::Deleted), Some(Fault::DeletedBetween), draw.is(60));
        event.until = event.from + draw.between(1, 40 * HOUR) * NANO;
    }
}

fn inserted(draft: &mut Draft<'_>, draw: &mut Draw) {
    for stream in WINDOWED {
        for n in some(draft, draw, stream, 8) {
            let event = &mut draft.events[n];
            (event.fault, event.is_waiting) = (Some(Fault::InsertedBetween), true);
            event.from = event.at + draw.between(HOUR, 40 * HOUR) * NANO;
        }
    }
}

fn removed(draft: &mut Draft<'_>, draw: &mut Draw) {
    let n = draw.count(0, draft.devices.len());
    // In the middle of the backfill, or later.
    let start = draft.plan.start * NANO;
    let at = if draw.is(30) { start + draw.between(0, 5 * NANO) } else { moment(draft, draw) };
    draft.devices[n].removed = at;
    // The computer was in use until its removal, so no reader could read its last events.
    for (kind, minutes) in [(0, 44), (1, 21), (2, 4), (4, 1)] {
        let connection = format!("{}-removed", draft.name);
        let event = draft.step(&connection, kind, (at / NANO - minutes * MINUTE) * NANO, n);
        draft.events[event].fault = Some(Fault::ComputerRemoved);
    }
    if draw.is(75) {
        let text = texts::removal(at, &draft.devices[n].id.clone());
        let record = draft.add(Stream::Activity, at, None, text, false);
        draft.events[record].from = at + draw.pick(&[0, 1, 40, 400]) * NANO;
        (draft.devices[n].is_shown, draft.devices[n].is_named) = (true, true);
    }
}

fn vanished(draft: &mut Draft<'_>, draw: &mut Draw) {
    for n in some(draft, draw, Stream::Connections, 5) {
        let event = &mut draft.events[n];
        (event.gone, event.fault) = (Some(LossReason::Deleted), Some(Fault::Vanished));
        event.until = event.at + draw.between(DAY, 6 * DAY) * NANO;
    }
}

fn dense(draft: &mut Draft<'_>, draw: &mut Draw) {
    let at = moment(draft, draw);
    let device = draw.count(0, draft.devices.len());
    for n in 0..draw.between(1_010, 1_300) {
        let connection = format!("{}-dense-{}", draft.name, n / 5);
        let event = draft.step(&connection, usize::try_from(n % 5).unwrap(), at + n % 900 * 1_000_000, device);
        draft.events[event].fault = Some(Fault::DenseSecond);
        draft.events[event].from = at + 2 * NANO;
    }
}

fn twins(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(1, 4) {
        let at = moment(draft, draw) + draw.between(0, NANO);
        let text = texts::twin(at);
        for _ in 0..draw.count(2, 5) {
            let n = draft.add(Stream::Activity, at, None, text.clone(), false);
            draft.events[n].fault = Some(Fault::Twins);
            draft.events[n].from = at + draw.between(0, 3 * HOUR) * NANO;
        }
    }
}

/// Gives an event another body. Returns the number of the new one.
fn another_body(draft: &mut Draft<'_>, n: usize, fault: Fault) -> usize {
    let (host, text) = (format!("other-{n}"), draft.events[n].text.clone());
    let text = text.replacen("\"host\"", &format!("\"{host}\""), 1).replacen("Succeeded", "Failed", 1);
    draft.events[n].gone = Some(LossReason::Edited);
    let other = Event {
        number: draft.next(),
        digest: Digest::of(text.as_bytes()),
        text,
        gone: None,
        fault: Some(fault),
        ..draft.events[n].clone()
    };
    draft.events.push(other);
    draft.events.len() - 1
}

fn edited(draft: &mut Draft<'_>, draw: &mut Draw) {
    for n in some(draft, draw, Stream::Connections, 4) {
        let at = draft.events[n].from + draw.between(1, 70 * HOUR) * NANO;
        let other = another_body(draft, n, Fault::Edited);
        (draft.events[n].until, draft.events[other].from) = (at, at);
    }
}

fn flapping(draft: &mut Draft<'_>, draw: &mut Draw) {
    for n in some(draft, draw, Stream::Connections, 2) {
        let from = draft.events[n].from + draw.between(0, 20 * HOUR) * NANO;
        let until = from + draw.between(HOUR, 9 * HOUR) * NANO;
        let other = another_body(draft, n, Fault::Flapping);
        for (event, is_second) in [(n, false), (other, true)] {
            draft.events[event].flaps = Some((from, until, is_second));
        }
    }
}

fn unknown(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(2, 8) {
        let at = moment(draft, draw);
        let device = draw.count(0, draft.devices.len());
        let number = draft.next();
        let text = texts::unusual_connection(number, at / 1_000_000, &draft.devices[device].id.clone());
        let n = draft.add(Stream::Connections, at, Some(device), text, number % 4 != 1);
        draft.events[n].fault = Some(Fault::UnknownFields);
        let name = format!("teamUnheardOf{}Event", number % 3);
        let text = texts::activity(&name, &at.to_string(), number);
        draft.add(Stream::Activity, at, None, text, false);
    }
}

fn odd_numbers(draft: &mut Draft<'_>, draw: &mut Draw) {
    for _ in 0..draw.count(2, 7) {
        let at = moment(draft, draw);
        let time = match draw.below(7) {
            0 => "9007199254740993".to_owned(),
            1 => format!("{at}.0"),
            2 => format!("\"{at}\""),
            3 => "-1".to_owned(),
            4 => "253402300799000000000".to_owned(),
            5 => "null".to_owned(),
            _ => "1e999".to_owned(),
        };
        let text = texts::activity("teamUserAddedEvent", &time, draft.next());
        let n = draft.add(Stream::Activity, at, None, text, false);
        draft.events[n].fault = Some(Fault::OddNumbers);
    }
}

/// Together larger than the 6 MiB that a reading may hold.
fn large(draft: &mut Draft<'_>, draw: &mut Draw) {
    let from = moment(draft, draw);
    for _ in 0..draw.between(16, 40) {
        let at = from + draw.between(0, HOUR) * NANO;
        let text = texts::large(at, draft.next(), draw.count(300, 700) << 10);
        let n = draft.add(Stream::Activity, at, None, text, false);
        draft.events[n].fault = Some(Fault::LargeEvents);
    }
}

fn future(draft: &mut Draft<'_>, fault: Fault, draw: &mut Draw, most: usize, ahead: i64) {
    for _ in 0..draw.count(1, most + 1) {
        let from = moment(draft, draw);
        let at = from + draw.between(ahead / 2, ahead) * NANO;
        let text = texts::activity("teamSettingsChangedEvent", &at.to_string(), draft.next());
        let n = draft.add(Stream::Activity, at, None, text, false);
        let event = &mut draft.events[n];
        (event.from, event.until, event.fault) = (from, super::world::NEVER, Some(fault));
    }
}

fn burst(draft: &mut Draft<'_>, draw: &mut Draw) {
    let at = moment(draft, draw);
    for n in 0..draw.between(11, 16) {
        let event = draft.billing(at + n * 4 * NANO, "usersAdded");
        draft.events[event].fault = Some(Fault::BillingBurst);
    }
    // Equal entries at a later time.
    let at = at + 30 * HOUR * NANO;
    for n in 0..draw.between(2, 12) {
        let text = texts::billing(None, at / NANO, "paymentFailed");
        let event = draft.add(Stream::Billing, at, None, text, false);
        draft.events[event].fault = Some(Fault::BillingBurst);
        draft.events[event].from = at + n * 3 * HOUR * NANO;
    }
    if let Some(n) = some(draft, draw, Stream::Billing, 1).first().copied() {
        let at = draft.events[n].from + draw.between(1, 20 * HOUR) * NANO;
        let other = another_body(draft, n, Fault::BillingBurst);
        if draft.events[other].digest == draft.events[n].digest {
            draft.events.pop();
            draft.events[n].gone = None;
        } else {
            (draft.events[n].until, draft.events[other].from) = (at, at);
        }
    }
}

fn odd_sessions(draft: &mut Draft<'_>, draw: &mut Draw) {
    let step = NANO / 1_000;
    for shape in 0..4 {
        let at = moment(draft, draw) / step * step;
        let device = draw.count(0, draft.devices.len());
        let connection = format!("{}-odd-{shape}", draft.name);
        let steps: &[(usize, i64)] = match shape {
            0 => &[(0, 0), (1, 1)],                                  // no end
            1 => &[(4, 0), (1, HOUR), (2, 2 * HOUR)],                // the end before the beginning
            2 => &[(1, -12 * DAY), (4, 3 * DAY)],                    // over weeks
            _ => &[(0, 0), (1, 5), (4, 60), (1, DAY), (4, DAY + 9)], // used again
        };
        for (kind, after) in steps {
            let at = (at + after * NANO).min((draft.plan.calm_from - HOUR) * NANO);
            let n = draft.step(&connection, *kind, at / step * step, device);
            draft.events[n].fault = Some(Fault::OddSessions);
        }
    }
}
