//! Each rule of a session, and that the order of events does not matter.

use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{connection_of, is_finished, session_of};
use crate::model::{ConnectionDetail, Detail, EventRow, Instant, SessionOutcome, SessionRow};

fn second(second: i64) -> Instant {
    Instant::from_seconds(1_700_000_000 + second)
}

/// An event by its letter: (r)equested, (e)stablished, (a)uthenticated, (f)ailed, (c)losed, anything else unknown.
fn event(letter: char, at: i64) -> EventRow {
    let event_type = match letter {
        'r' => "incomingConnectionRequest",
        'e' => "incomingConnectionEvent",
        'a' => "authSucceededEvent",
        'f' => "authFailedEvent",
        'c' => "connectionClosedEvent",
        _ => "connectionRenamedEvent",
    };
    let detail = ConnectionDetail {
        connection_id: Some("c1".into()),
        failure_reason: (letter == 'f').then(|| "wrong password".into()),
        ..ConnectionDetail::default()
    };
    EventRow {
        team_id: "t".into(),
        event_id: format!("{letter}{at}").as_str().into(),
        time: second(at),
        event_type: event_type.into(),
        revision: 1,
        first_seen_at: second(100_000),
        redacted: false,
        raw: Bytes::new().into(),
        detail: Detail::Connections(detail.into()),
        served_digest: None,
    }
}

fn with(mut row: EventRow, change: impl FnOnce(&mut ConnectionDetail)) -> EventRow {
    if let Detail::Connections(texts) = &mut row.detail {
        let mut detail = texts.detail();
        change(&mut detail);
        *texts = detail.into();
    }
    row
}

/// `r0 e2 c10`: letters and seconds.
fn history(text: &str) -> Vec<EventRow> {
    text.split_whitespace().map(|word| event(word.chars().next().unwrap(), word[1..].parse().unwrap())).collect()
}

fn session(rows: &[EventRow]) -> SessionRow {
    session_of(&rows.iter().collect::<Vec<_>>()).unwrap()
}

#[test]
fn the_outcome_is_the_first_matching_rule() {
    for (events, outcome, duration_ms) in [
        ("r0", SessionOutcome::RequestedOnly, None),
        ("x0", SessionOutcome::RequestedOnly, None),
        ("r0 e2", SessionOutcome::Open, None),
        ("a3", SessionOutcome::Open, None),
        ("r0 e2 c10", SessionOutcome::Ended, Some(8_000)),
        ("e2 a5 c10", SessionOutcome::Ended, Some(8_000)),
        ("a5 c10", SessionOutcome::Ended, Some(5_000)),
        ("r0 c10", SessionOutcome::ClosedOnly, None),
        ("c10", SessionOutcome::ClosedOnly, None),
        ("f3", SessionOutcome::AuthFailed, None),
        ("r0 e1 f3 f4 c10", SessionOutcome::AuthFailed, Some(9_000)),
        ("r0 e1 f3 a4", SessionOutcome::Open, None),
        ("r0 e1 f3 a4 c10", SessionOutcome::Ended, Some(9_000)),
        ("e20 c10", SessionOutcome::Ended, None),
        ("e20 a5 c10", SessionOutcome::Ended, None),
        ("e10 c10", SessionOutcome::Ended, Some(0)),
    ] {
        let session = session(&history(events));
        assert_eq!((session.outcome, session.duration_ms), (outcome, duration_ms), "{events}");
    }
}

#[test]
fn the_first_event_of_each_kind_and_the_last_close_count() {
    let session = session(&history("r5 r3 e9 e7 a12 a11 f1 f2 c20 c30 x40"));
    let times = [session.requested_at, session.established_at, session.authenticated_at, session.closed_at];
    assert_eq!(times, [3, 7, 11, 30].map(|at| Some(second(at))));
    assert_eq!((session.first_event_at, session.last_event_at), (second(1), second(40)));
    assert_eq!((session.failed_attempts, session.event_count, session.duration_ms), (2, 11, Some(23_000)));
}

#[test]
fn details_come_from_the_earliest_event_with_a_value_and_conflicts_are_named() {
    let peer = |row: EventRow, email: &str| with(row, |detail| detail.peer_email = Some(email.into()));
    let rows = [
        with(peer(event('c', 9), "eve@x"), |detail| detail.device_id = Some("d1".into())),
        peer(event('e', 2), "bob@x"),
        peer(event('f', 2), "bob@x"),
        peer(event('a', 1), "zoë@x"),
        event('r', 0),
    ];
    let session = session(&rows);
    assert_eq!(session.details.get(0), Some("d1"));
    assert_eq!(session.details.get(4), Some("zoë@x"));
    assert_eq!(session.details.get(5), None);
    assert_eq!(session.conflicts.as_deref(), Some(r#"{"peer_email":["bob@x","eve@x","zoë@x"]}"#));
    // No conflict if all events with a value agree.
    let agreed = session_of(&[&rows[1], &rows[2], &rows[4]]).unwrap();
    assert_eq!((agreed.details.get(4), agreed.conflicts), (Some("bob@x"), None));
    // At the same time, the event with the lower id comes first.
    let twins = [peer(event('f', 2), "later@x"), peer(event('e', 2), "earlier@x")];
    assert_eq!(session_of(&[&twins[0], &twins[1]]).unwrap().details.get(4), Some("earlier@x"));
}

#[test]
fn reasons_are_distinct_and_sorted() {
    let reason = |row: EventRow, text: &str| with(row, |detail| detail.failure_reason = Some(text.into()));
    let rows = [
        reason(event('f', 1), "wrong \"password\""),
        reason(event('f', 2), "locked"),
        reason(event('f', 3), "locked"),
        with(event('f', 4), |detail| detail.failure_reason = None),
    ];
    let found = session(&rows);
    assert_eq!(
        (found.failed_attempts, found.failure_reasons.as_deref()),
        (4, Some(r#"["locked","wrong \"password\""]"#))
    );
    assert_eq!(session(&history("r0")).failure_reasons, None);
}

#[test]
fn only_the_latest_revision_of_a_changed_event_counts() {
    let edited = |at: i64, revision: u32, seen: i64| EventRow {
        event_id: "edited".into(),
        revision,
        first_seen_at: second(seen),
        ..event('c', at)
    };
    for (scenario, rows, closed) in [
        ("a later revision", [edited(10, 1, 0), edited(20, 2, 0)], 20),
        ("one that is earlier in time", [edited(10, 2, 0), edited(20, 1, 9)], 10),
        ("the same revision in another window: what was seen later", [edited(10, 1, 5), edited(20, 1, 4)], 10),
    ] {
        for rows in [[&rows[0], &rows[1]], [&rows[1], &rows[0]]] {
            let session = session_of(&rows).unwrap();
            assert_eq!((session.closed_at, session.event_count), (Some(second(closed)), 1), "{scenario}");
        }
    }
}

#[test]
fn an_event_without_a_connection_makes_no_session() {
    assert_eq!(session_of(&[]), None);
    let none = with(event('r', 0), |detail| detail.connection_id = None);
    let empty = with(event('r', 0), |detail| detail.connection_id = Some("".into()));
    assert_eq!((connection_of(&none), connection_of(&empty)), (None, None));
    assert_eq!(connection_of(&event('r', 0)), Some("c1"));
    assert_eq!((session_of(&[&none]), session_of(&[&empty])), (None, None));
}

#[test]
fn a_session_is_finished_when_it_is_closed_or_timed_out() {
    for (events, days, is_over) in [
        ("r0 e1 c2", 0, true),
        ("r0", 0, false),
        ("r0", 2, true),
        ("f0", 2, true),
        ("r0 e1", 2, false),
        ("r0 e1", 31, true),
    ] {
        let newest = second(0).plus(Duration::from_secs(days * 86_400));
        assert_eq!(is_finished(&session(&history(events)), newest), is_over, "{events} after {days} days");
    }
}

fn any_event() -> impl Strategy<Value = EventRow> {
    let text = || proptest::option::of("[ab]");
    let letter = prop_oneof![Just('r'), Just('e'), Just('a'), Just('f'), Just('c'), Just('x')];
    (letter, 0..6i64, 0..8u8, 1..3u32, 0..3i64, [text(), text(), text(), text()]).prop_map(
        |(letter, at, id, revision, seen, [host, email, device, reason])| {
            let row = with(event(letter, at), |detail| {
                (detail.computer_host_name, detail.peer_email) = (host.map(Into::into), email.map(Into::into));
                detail.device_id = device.map(|id| id.as_str().into());
                detail.failure_reason = reason.map(Into::into);
            });
            EventRow { event_id: id.to_string().as_str().into(), revision, first_seen_at: second(seen), ..row }
        },
    )
}

proptest! {
    #[test]
    fn the_order_of_events_does_not_matter((rows, shuffled) in vec(any_event(), 1..10).prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))) {
        prop_assert_eq!(session(&rows), session(&shuffled));
        // Repeated events do not matter, either.
        let twice = [rows.clone(), shuffled].concat();
        prop_assert_eq!(session(&rows), session(&twice));
    }
}
