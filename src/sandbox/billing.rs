//! Billing entries: bought and returned seats, successful and failed payments.

use crate::model::Instant;

use super::json::{push_int, push_string};
use super::overlay::TextEvent;
use super::roster::Roster;
use super::seed::{SeededRandom, mix2, opaque_id};

const DAY_SECONDS: i64 = 86_400;
const SEATS_AT_FIRST: i64 = 20;

/// The entries of the days `first..=last`, oldest first, none at or after `horizon`.
pub(super) fn plan(roster: &Roster, first: i64, last: i64, horizon: Instant) -> Vec<TextEvent> {
    let mut entries = Vec::new();
    for day in first..=last {
        let mut random = SeededRandom::new(mix2(mix2(roster.seed, 0xb111), day.unsigned_abs()));
        for number in 0..random.below(4).saturating_sub(1) {
            let at = day * DAY_SECONDS + random.span(0, DAY_SECONDS);
            let name = day.unsigned_abs() << 8 | number;
            entries.push((at, name, ledger_event(&mut random, day)));
        }
    }
    entries.sort_unstable();
    entries
        .into_iter()
        .map(|(at, name, event)| (Instant::from_seconds(at), render(roster, at, name, &event)))
        .filter(|(at, _)| *at < horizon)
        .map(|(at, raw)| TextEvent::new(raw, at, None, at))
        .collect()
}

fn ledger_event(random: &mut SeededRandom, day: i64) -> String {
    let seats = SEATS_AT_FIRST + day.rem_euclid(17) + random.span(0, 4);
    match random.below(100) {
        0..30 => format!("\"paymentSucceededEvent\":{{\"amount\":{},\"currency\":\"USD\"}}", seats * 990),
        30..42 => format!("\"paymentFailedEvent\":{{\"amount\":{},\"reason\":\"card_declined\"}}", seats * 990),
        42..62 => format!("\"userCountUpdatedEvent\":{{\"from\":{seats},\"to\":{}}}", seats + 1),
        62..80 => format!("\"usersAddedEvent\":{{\"count\":{}}}", random.between(1, 6)),
        80..92 => format!("\"usersRemovedEvent\":{{\"count\":{}}}", random.between(1, 4)),
        92..98 => "\"subscriptionUpdatedEvent\":{\"plan\":\"Enterprise & more\"}".to_owned(),
        _ => "\"subscriptionCanceledEvent\":{}".to_owned(),
    }
}

fn render(roster: &Roster, at_seconds: i64, name: u64, event: &str) -> Vec<u8> {
    let mut out = b"{\"id\":".to_vec();
    push_string(&mut out, &opaque_id(roster.seed ^ 0xb111, name));
    out.extend_from_slice(b",\"teamid\":");
    push_string(&mut out, roster.id.as_str());
    out.extend_from_slice(b",\"timestamp\":");
    push_int(&mut out, at_seconds);
    out.extend_from_slice(b",\"event\":{");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"}}");
    out
}
