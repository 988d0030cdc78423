//! The rules of a session.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{ConnectionEvent, Detail, EventRow, Instant, Outcome, SESSION_DETAILS, SessionRow, SessionTexts};

const REQUESTED: &str = "incomingConnectionRequest";
const ESTABLISHED: &str = "incomingConnectionEvent";
const AUTHENTICATED: &str = "authSucceededEvent";
const AUTH_FAILED: &str = "authFailedEvent";
const CLOSED: &str = "connectionClosedEvent";

/// An established connection without a close can still be in use; after this time, its close is not expected any more.
const OPEN_WAIT: Duration = Duration::from_secs(30 * 86_400);
/// A request that was not answered, or only refused, is over after this time.
const UNANSWERED_WAIT: Duration = Duration::from_secs(86_400);

/// Up to this number of events, a session's events are compared one by one.
const FEW_EVENTS: usize = 16;

/// The connection of an event. An event with no id or an empty one has none.
pub fn connection_of(row: &EventRow) -> Option<&str> {
    match &row.detail {
        Detail::Connections(texts) => texts.connection_id().filter(|id| is_connection(id)),
        Detail::Activity { .. } | Detail::Billing { .. } => None,
    }
}

/// Whether a `connectionID` names a connection.
pub fn is_connection(id: &str) -> bool {
    !id.is_empty()
}

/// The session of all events of one connection, in any order; does not read `raw`. `None` without an event of a
/// connection.
pub fn session_of(events: &[&EventRow]) -> Option<SessionRow> {
    session_from(events.iter().map(|row| ConnectionEvent::from(*row)).collect())
}

/// Like [`session_of`].
pub fn session_from(events: Vec<ConnectionEvent<'_>>) -> Option<SessionRow> {
    let events = latest(events);
    let (first, last) = (events.first()?, events.last()?);
    let at = |kind: &'static str| events.iter().filter(move |row| row.event_type == kind).map(|row| row.time);
    let (established_at, authenticated_at) = (at(ESTABLISHED).next(), at(AUTHENTICATED).next());
    let closed_at = at(CLOSED).next_back();
    let failed_attempts = at(AUTH_FAILED).count();
    let begun = established_at.or(authenticated_at);
    let outcome = match (begun, closed_at) {
        _ if failed_attempts > 0 && authenticated_at.is_none() => Outcome::AuthFailed,
        (Some(_), Some(_)) => Outcome::Ended,
        (Some(_), None) => Outcome::Open,
        (None, Some(_)) => Outcome::ClosedOnly,
        (None, None) => Outcome::RequestedOnly,
    };
    let (details, conflicts) = details(&events);
    Some(SessionRow {
        team_id: first.team_id.clone(),
        connection_id: first.connection_id.filter(|id| is_connection(id))?.into(),
        requested_at: at(REQUESTED).next(),
        established_at,
        authenticated_at,
        closed_at,
        first_event_at: first.time,
        last_event_at: last.time,
        duration_ms: begun.zip(closed_at).and_then(|(begun, closed)| milliseconds(begun, closed)),
        outcome,
        failed_attempts: count(failed_attempts),
        failure_reasons: reasons(&events),
        details,
        event_count: count(events.len()),
        conflicts,
    })
}

/// Whether a session expects no more events at `newest`, the latest known event time. A later event still changes the
/// session: this decides only where the session is stored.
pub fn is_finished(session: &SessionRow, newest: Instant) -> bool {
    let wait = match session.outcome {
        _ if session.closed_at.is_some() => return true,
        Outcome::Open => OPEN_WAIT,
        _ => UNANSWERED_WAIT,
    };
    session.last_event_at.plus(wait) <= newest
}

/// The latest revision of each event, sorted by time and event id.
fn latest(mut latest: Vec<ConnectionEvent<'_>>) -> Vec<ConnectionEvent<'_>> {
    // If two revisions have the same number (the event's time changed, so it is in two windows), the event seen later counts. The
    // other keys only make the choice independent of the order. Files keep microseconds of `first_seen_at`.
    fn rank<'e>(event: &ConnectionEvent<'e>) -> impl Ord + use<'e> {
        let ConnectionEvent { revision, first_seen_at, time, event_type, details, failure_reason, .. } = *event;
        (revision, first_seen_at.micros(), time, event_type, details, failure_reason)
    }
    // Almost no session has an event twice, and most have few events.
    let stands_before = |at: usize| latest[..at].iter().any(|other| other.event_id == latest[at].event_id);
    if latest.len() > FEW_EVENTS || (1..latest.len()).any(stands_before) {
        latest.sort_unstable_by(|a, b| a.event_id.cmp(b.event_id).then_with(|| rank(b).cmp(&rank(a))));
        latest.dedup_by(|later, kept| later.event_id == kept.event_id);
    }
    latest.sort_unstable_by(|a, b| (a.time, a.event_id).cmp(&(b.time, b.event_id)));
    latest
}

fn details(events: &[ConnectionEvent<'_>]) -> (SessionTexts, Option<String>) {
    let mut found: [Option<&str>; 8] = [None; 8];
    let mut conflicts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        for (place, value) in event.details.into_iter().enumerate() {
            match (found[place], value) {
                (None, Some(_)) => found[place] = value,
                // Often both are the same value of a column's dictionary.
                (Some(first), Some(other)) if !std::ptr::eq(first, other) && first != other => {
                    conflicts.entry(SESSION_DETAILS[place]).or_default().extend([first, other]);
                }
                _ => {}
            }
        }
    }
    let conflicts = (!conflicts.is_empty()).then(|| json(&conflicts));
    (SessionTexts::new(found), conflicts)
}

fn reasons(events: &[ConnectionEvent<'_>]) -> Option<String> {
    let failed = events.iter().filter(|event| event.event_type == AUTH_FAILED);
    let reasons: BTreeSet<&str> = failed.filter_map(|event| event.failure_reason).collect();
    (!reasons.is_empty()).then(|| json(&reasons))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("BUG: texts in lists and maps are JSON")
}

fn milliseconds(from: Instant, to: Instant) -> Option<i64> {
    (from <= to).then(|| i64::try_from(to.since(from).as_millis()).ok()).flatten()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).expect("BUG: numbers of things in memory fit an i64")
}
