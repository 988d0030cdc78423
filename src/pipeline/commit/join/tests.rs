use super::*;
use crate::model::{RawEvent, RejectReason, ServedTime, TeamId};

fn at() -> Instant {
    Instant::from_seconds(1_700_000_000)
}

fn connection(id: &str, host: &str) -> CountedEvent {
    let text = format!(
        r#"{{"id":"{id}","timestamp":1700000000000,"computerHostName":"{host}","connectionClosedEvent":{{}}}}"#
    );
    let event = RawEvent::new(text.into(), false, Some(EventId::from(id)), ServedTime::At(at()));
    CountedEvent { event, count: 1 }
}

fn activity(name: &str, count: u32) -> CountedEvent {
    let text = format!(r#"{{"header":{{"eventTimestampUnixNano":1700000000000000000}},"{name}":{{}}}}"#);
    CountedEvent { event: RawEvent::new(text.into(), false, None, ServedTime::At(at())), count }
}

fn joined(
    stream: Stream,
    events: &[CountedEvent],
    archived: &mut ArchivedEvents,
    rejects: &mut ArchivedEvents,
) -> NewRows {
    let mut added = NewRows::default();
    join((&TeamState::genesis("a", TeamId::from("t")), stream, at()), events, archived, rejects, &mut added);
    added
}

fn add(stream: Stream, events: &[CountedEvent], archived: &mut ArchivedEvents) -> NewRows {
    joined(stream, events, archived, &mut ArchivedEvents::default())
}

#[test]
fn twins_get_occurrence_numbers_and_a_second_reading_adds_nothing() {
    let mut archived = ArchivedEvents::default();
    let first = add(Stream::Activity, &[activity("aEvent", 2)], &mut archived);
    let ids: Vec<_> = first.rows.iter().map(|row| row.event_id.as_str().rsplit('-').next().unwrap()).collect();
    assert_eq!(ids, ["1", "2"]);
    assert!(add(Stream::Activity, &[activity("aEvent", 2)], &mut archived).rows.is_empty());
    assert_eq!(add(Stream::Activity, &[activity("aEvent", 3)], &mut archived).rows.len(), 1);
}

#[test]
fn the_same_id_with_other_content_is_a_new_revision() {
    let mut archived = ArchivedEvents::default();
    assert_eq!(add(Stream::Connections, &[connection("e1", "a")], &mut archived).rows[0].revision, 1);
    assert!(add(Stream::Connections, &[connection("e1", "a")], &mut archived).rows.is_empty());
    let changed = add(Stream::Connections, &[connection("e1", "b")], &mut archived);
    assert_eq!((changed.rows[0].revision, changed.rows.len()), (2, 1));
}

#[test]
fn an_event_that_cannot_become_a_row_is_kept_once() {
    let bad = CountedEvent {
        event: RawEvent::new(
            "{}".to_owned().into(),
            false,
            None,
            ServedTime::unusable(RejectReason::TimeMissing, "none"),
        ),
        count: 1,
    };
    let (mut archived, mut rejects) = (ArchivedEvents::default(), ArchivedEvents::default());
    for expected in [1, 0] {
        let added = joined(Stream::Activity, std::slice::from_ref(&bad), &mut archived, &mut rejects);
        assert_eq!((added.rows.len(), added.rejects.len()), (0, expected));
    }
}

#[test]
fn a_quarantined_twin_stays_in_quarantine_and_the_other_twins_are_rows() {
    let twins = [activity("aEvent", 3)];
    let stored = StoredReject {
        event_id: "old".into(),
        digest: twins[0].event.digest,
        time: None,
        reason: String::new(),
        first_seen_at: at(),
        original: None,
    };
    let (mut archived, mut rejects) = (ArchivedEvents::default(), ArchivedEvents::of_rejects(&[stored]));
    for expected in [2, 0, 0] {
        let added = joined(Stream::Activity, &twins, &mut archived, &mut rejects);
        assert_eq!((added.rows.len(), added.rejects.len()), (expected, 0));
    }
}

/// The archive can hold several events of a window without their text. The join finds each by its own digest, in any
/// order.
#[test]
fn events_without_text_are_found_one_by_one() {
    let salts = Salts::of_test(TeamId::from("t"));
    let known_as = salts.originals().unwrap();
    let served = [connection("e1", "a"), connection("e2", "b")];
    let stored = served.each_ref().map(|CountedEvent { event, .. }| StoredEvent {
        event_id: event.id.clone().unwrap(),
        digest: known_as(&event.digest),
        has_text: false,
        time: at(),
        revision: 1,
        original: Some(known_as(&event.digest)),
    });
    let mut archived = ArchivedEvents::new(&stored);
    for CountedEvent { event, .. } in &served {
        assert_eq!(archived.occurrences(&event.digest), 0);
    }
    for event in served.iter().rev() {
        archived.recognise(std::slice::from_ref(event), &salts).unwrap();
        assert_eq!(archived.occurrences(&event.event.digest), 1);
    }
    assert!(add(Stream::Connections, &served, &mut archived).rows.is_empty());
}
