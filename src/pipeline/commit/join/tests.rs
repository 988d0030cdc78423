use super::*;
use crate::model::{RawEvent, ServedTime};

fn at() -> Instant {
    Instant::from_seconds(1_700_000_000)
}

fn connection(id: &str, host: &str) -> Counted {
    let text = format!(
        r#"{{"id":"{id}","timestamp":1700000000000,"computerHostName":"{host}","connectionClosedEvent":{{}}}}"#
    );
    let event = RawEvent::new(text.into(), false, Some(EventId::from(id)), ServedTime::At(at()));
    Counted { event, count: 1 }
}

fn activity(name: &str, count: u32) -> Counted {
    let text = format!(r#"{{"header":{{"eventTimestampUnixNano":1700000000000000000}},"{name}":{{}}}}"#);
    Counted { event: RawEvent::new(text.into(), false, None, ServedTime::At(at())), count }
}

fn salts() -> Salts {
    Salts::of_test(TeamId::from("t"))
}

fn joined(stream: Stream, pieces: &mut [Piece], held: &mut Held, rejects: &mut Held) -> Added {
    Joining { team: &TeamId::from("t"), stream, seen_at: at() }.pieces(pieces, held, rejects, &salts())
}

fn add(stream: Stream, events: &[Counted], held: &mut Held) -> Added {
    joined(stream, &mut [events.to_vec().into()], held, &mut Held::default())
}

#[test]
fn twins_get_occurrence_numbers_and_a_second_reading_adds_nothing() {
    let mut held = Held::default();
    let first = add(Stream::Activity, &[activity("aEvent", 2)], &mut held);
    let ids: Vec<_> = first.rows.iter().map(|row| row.event_id.as_str().rsplit('-').next().unwrap()).collect();
    assert_eq!(ids, ["1", "2"]);
    assert!(add(Stream::Activity, &[activity("aEvent", 2)], &mut held).rows.is_empty());
    assert_eq!(add(Stream::Activity, &[activity("aEvent", 3)], &mut held).rows.len(), 1);
}

#[test]
fn the_same_id_with_other_content_is_a_new_revision() {
    let mut held = Held::default();
    assert_eq!(add(Stream::Connections, &[connection("e1", "a")], &mut held).rows[0].revision, 1);
    assert!(add(Stream::Connections, &[connection("e1", "a")], &mut held).rows.is_empty());
    let changed = add(Stream::Connections, &[connection("e1", "b")], &mut held);
    assert_eq!((changed.rows[0].revision, changed.changed.len()), (2, 1));
}

#[test]
fn what_cannot_be_a_row_is_kept_once() {
    let bad = Counted {
        event: RawEvent::new("{}".to_owned().into(), false, None, ServedTime::Unusable("time_missing: none".into())),
        count: 1,
    };
    let (mut held, mut rejects) = (Held::default(), Held::default());
    for expected in [1, 0] {
        let added = joined(Stream::Activity, &mut [vec![bad.clone()].into()], &mut held, &mut rejects);
        assert_eq!((added.rows.len(), added.rejects.len()), (0, expected));
    }
}

#[test]
fn twins_of_which_an_earlier_program_quarantined_one_are_rows_but_for_that_one() {
    let twins = [activity("aEvent", 3)];
    let stored = StoredReject {
        event_id: "old".into(),
        digest: twins[0].event.digest,
        time: None,
        reason: String::new(),
        first_seen_at: at(),
    };
    let (mut held, mut rejects) = (Held::default(), Held::of_rejects(&[stored]));
    for expected in [2, 0, 0] {
        let added = joined(Stream::Activity, &mut [twins.to_vec().into()], &mut held, &mut rejects);
        assert_eq!((added.rows.len(), added.rejects.len()), (expected, 0));
    }
}

/// Rows in the order of files, with those of columns among them.
fn all_rows(added: &Added) -> Vec<EventRow> {
    let of_columns = added.columns.iter().flat_map(EventColumns::to_rows);
    let mut rows: Vec<EventRow> = added.rows.iter().cloned().chain(of_columns).collect();
    rows.sort_by(|a, b| (a.time, &a.event_id, a.revision).cmp(&(b.time, &b.event_id, b.revision)));
    rows
}

/// Joins the same pieces, with columns made of those that `is_ahead` and without any.
fn both(
    stream: Stream,
    pieces: &[Vec<Counted>],
    held: &[StoredEvent],
    rejects: &[StoredReject],
    is_ahead: impl Fn(usize) -> bool,
) -> [Added; 2] {
    [true, false].map(|may| {
        let piece = |(place, events): (usize, &Vec<Counted>)| {
            let mut piece = Piece::from(events.clone());
            if may && is_ahead(place) {
                piece.make_columns(&salts(), stream, at());
            }
            piece
        };
        let mut pieces: Vec<Piece> = pieces.iter().enumerate().map(piece).collect();
        joined(stream, &mut pieces, &mut Held::new(held), &mut Held::of_rejects(rejects))
    })
}

fn unusable(n: u32) -> Counted {
    let time = ServedTime::Unusable("time_missing: none".into());
    Counted { event: RawEvent::new(format!("{{\"n\":{n}}}").into(), false, None, time), count: 1 }
}

fn stored(event: &Counted) -> StoredEvent {
    let event_id = crate::normalize::event_id(&event.event, 1);
    StoredEvent { event_id, digest: event.event.digest, time: at(), revision: 1 }
}

fn assert_same([with, without]: &[Added; 2], what: &str) {
    assert_eq!(all_rows(with), all_rows(without), "{what}");
    assert_eq!((with.count(), with.times()), (without.count(), without.times()), "{what}");
    assert_eq!((&with.rejects, &with.changed), (&without.rejects, &without.changed), "{what}");
    assert_eq!((with.redacted, &with.types), (without.redacted, &without.types), "{what}");
}

#[test]
fn columns_that_were_made_before_are_the_rows_where_every_event_is_new() {
    let mut secret = connection("s", "x");
    secret.event.redacted = true;
    let first = vec![connection("b", "x"), connection("a", "x"), unusable(1), secret];
    let second = vec![connection("c", "x"), unusable(2)];
    for is_ahead in [|_| true, |at| at == 0] {
        // A piece without columns gets them where another has some.
        let added = both(Stream::Connections, &[first.clone(), second.clone()], &[], &[], is_ahead);
        assert_same(&added, "new");
        assert_eq!((added[0].rows.len(), added[0].columns.len(), added[0].rejects.len()), (0, 2, 2));
        assert_eq!(added[0].redacted, 1);
    }
    let once = |n: u32| activity(&format!("n{n}Event"), 1);
    let added = both(Stream::Activity, &[(0..50).map(once).collect()], &[], &[], |_| true);
    assert_same(&added, "activity");
    assert_eq!((added[0].rows.len(), added[0].columns.len()), (0, 1));
}

#[test]
fn what_is_known_or_stands_there_twice_is_joined_row_by_row() {
    let (a, b, c) = (connection("a", "x"), connection("b", "x"), connection("c", "x"));
    let edited = connection("a", "edited");
    let reject = |event: &Counted| StoredReject {
        event_id: "old".into(),
        digest: event.event.digest,
        time: None,
        reason: String::new(),
        first_seen_at: at(),
    };
    let pair = |one: &Counted, other: &Counted| vec![one.clone(), other.clone()];
    for (what, pieces, held, rejects) in [
        ("the same event again", vec![pair(&a, &b)], vec![stored(&a)], vec![]),
        ("an archived id with other content", vec![pair(&edited, &b)], vec![stored(&a)], vec![]),
        ("an event in quarantine", vec![pair(&a, &b)], vec![], vec![reject(&b)]),
        ("one id twice in a piece", vec![pair(&a, &edited)], vec![], vec![]),
        ("one id in two pieces", vec![pair(&a, &b), pair(&c, &edited)], vec![], vec![]),
        ("the same event in two pieces", vec![pair(&a, &b), pair(&c, &b)], vec![], vec![]),
    ] {
        let added = both(Stream::Connections, &pieces, &held, &rejects, |_| true);
        assert!(added[0].columns.is_empty(), "{what}");
        assert_same(&added, what);
    }
    let twins = vec![activity("aEvent", 2), activity("bEvent", 1)];
    let added = both(Stream::Activity, &[twins], &[], &[], |_| true);
    assert!(added[0].columns.is_empty());
    assert_same(&added, "twins");
}

proptest::proptest! {
    /// Few ids, contents and times, so that all kinds of pairs are met.
    #[test]
    fn columns_change_nothing_about_what_is_added(
        events in proptest::collection::vec((0..200u32, 0..3u32, 0..8i64, 1..3u32), 0..30),
        known in proptest::collection::vec(0..30usize, 0..3),
        cuts in (0..30usize, 0..30usize),
        ahead in 0..8usize,
        has_ids: bool,
    ) {
        let of = |(n, content, seconds, count): (u32, u32, i64, u32)| match n {
            0 => unusable(content),
            n => {
                let time = ServedTime::At(Instant::from_seconds(1_700_000_000 + seconds));
                let text = format!(r#"{{"id":"e{n}","host":{content},"connectionClosedEvent":{{"connectionID":"c"}}}}"#);
                let id = has_ids.then(|| EventId::from(format!("e{n}").as_str()));
                let count = if has_ids || count == 1 { 1 } else { count };
                Counted { event: RawEvent::new(text.into(), content == 1, id, time), count }
            }
        };
        let events: Vec<Counted> = events.into_iter().map(of).collect();
        let held: Vec<StoredEvent> = known.iter().filter_map(|at| events.get(*at)).map(stored).collect();
        let (one, other) = (cuts.0.min(cuts.1).min(events.len()), cuts.0.max(cuts.1).min(events.len()));
        let pieces = [&events[..one], &events[one..other], &events[other..]].map(<[Counted]>::to_vec);
        assert_same(&both(Stream::Connections, &pieces, &held, &[], |at| ahead >> at & 1 == 1), "");
    }
}

#[test]
fn what_vanished_upstream_is_counted_and_an_edit_is_not() {
    let (a, b) = (connection("a", "x"), connection("b", "x"));
    assert_eq!(no_longer_served(&[stored(&a), stored(&b)], std::slice::from_ref(&a)), 1);
    assert_eq!(no_longer_served(&[stored(&a)], &[connection("a", "edited")]), 0);
}
