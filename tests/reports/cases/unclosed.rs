//! Sessions without an end.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::model::Stream;

use crate::golden::answers::Question;
use crate::reporting::{Place, at};

use super::{ESTABLISHED, commit_events, connection, rows};

/// Three sessions around the last twelve hours of October have no end.
#[test]
fn an_unclosed_session_of_the_period_before_is_judged_once() {
    let place = Place::empty();
    let times = ["2026-10-31T11:59:59Z", "2026-10-31T12:00:00Z", "2026-10-31T23:00:00Z"];
    let names = ["c1", "c2", "c3"];
    let events = names.iter().zip(times).map(|(name, time)| connection(name, ESTABLISHED, at(time), |_| ())).collect();
    commit_events(&place, Stream::Connections, events);
    let states = |period| {
        let question = Question { period, zone: "UTC", ..Question::usual("R18") };
        let pairs =
            rows(&place, &question).into_iter().map(|row| format!("{}: {}", row["connection_id"], row["state"]));
        let mut pairs: Vec<String> = pairs.map(|pair| pair.replace('"', "")).collect();
        pairs.sort();
        pairs
    };
    let october = states(("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"));
    assert_eq!(october, ["c1: never closed", "c2: not closed yet", "c3: not closed yet"]);
    let november = states(("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"));
    assert_eq!(november, ["c2: never closed", "c3: never closed"]);
}
