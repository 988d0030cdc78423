//! Billing entries: bought and returned seats, successful and failed payments.

use crate::model::Instant;

use super::cast::{Cast, opaque_id};
use super::json::{push_int, push_string};
use super::overlay::Extra;
use super::seed::{Dice, mix2};

const DAY_SECONDS: i64 = 86_400;
const SEATS_AT_FIRST: i64 = 20;

/// The entries of the days `first..=last`, oldest first, none at or after `horizon`.
pub(super) fn plan(cast: &Cast, first: i64, last: i64, horizon: Instant) -> Vec<Extra> {
    let mut entries = Vec::new();
    for day in first..=last {
        let mut dice = Dice::new(mix2(mix2(cast.seed, 0xb111), day.unsigned_abs()));
        for number in 0..dice.below(4).saturating_sub(1) {
            let at = day * DAY_SECONDS + dice.span(0, DAY_SECONDS);
            let name = day.unsigned_abs() << 8 | number;
            entries.push((at, name, ledger_event(&mut dice, day)));
        }
    }
    entries.sort_unstable();
    entries
        .into_iter()
        .map(|(at, name, event)| (Instant::from_seconds(at), render(cast, at, name, &event)))
        .filter(|(at, _)| *at < horizon)
        .map(|(at, raw)| Extra::new(raw, at, None, at))
        .collect()
}

fn ledger_event(dice: &mut Dice, day: i64) -> String {
    let seats = SEATS_AT_FIRST + day.rem_euclid(17) + dice.span(0, 4);
    match dice.below(100) {
        0..30 => format!("\"paymentSucceededEvent\":{{\"amount\":{},\"currency\":\"USD\"}}", seats * 990),
        30..42 => format!("\"paymentFailedEvent\":{{\"amount\":{},\"reason\":\"card_declined\"}}", seats * 990),
        42..62 => format!("\"userCountUpdatedEvent\":{{\"from\":{seats},\"to\":{}}}", seats + 1),
        62..80 => format!("\"usersAddedEvent\":{{\"count\":{}}}", dice.between(1, 6)),
        80..92 => format!("\"usersRemovedEvent\":{{\"count\":{}}}", dice.between(1, 4)),
        92..98 => "\"subscriptionUpdatedEvent\":{\"plan\":\"Enterprise & more\"}".to_owned(),
        _ => "\"subscriptionCanceledEvent\":{}".to_owned(),
    }
}

fn render(cast: &Cast, at_seconds: i64, name: u64, event: &str) -> Vec<u8> {
    let mut out = b"{\"id\":".to_vec();
    push_string(&mut out, &opaque_id(cast.seed ^ 0xb111, name));
    out.extend_from_slice(b",\"teamid\":");
    push_string(&mut out, cast.id.as_str());
    out.extend_from_slice(b",\"timestamp\":");
    push_int(&mut out, at_seconds);
    out.extend_from_slice(b",\"event\":{");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"}}");
    out
}
