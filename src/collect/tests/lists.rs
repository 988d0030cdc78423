//! Requests, kept events and counts of a reading.

use super::*;
use crate::model::{NANOS_PER_SECOND, RejectReason};

#[test]
fn a_range_is_requested_with_its_padding_and_only_events_far_outside_are_strays() {
    let asked = PaddedRange { range: range(100, 200), pad: 5 };
    assert_eq!((asked.start(), asked.stop()), (EPOCH_SECONDS + 95, EPOCH_SECONDS + 205));
    for (nanos, is_outside, is_kept) in [
        (94 * NANOS_PER_SECOND - 1, true, true),
        (94 * NANOS_PER_SECOND, false, false),
        (100 * NANOS_PER_SECOND - 1, false, false),
        (100 * NANOS_PER_SECOND, false, true),
        (200 * NANOS_PER_SECOND - 1, false, true),
        (200 * NANOS_PER_SECOND, false, false),
        (206 * NANOS_PER_SECOND, false, false),
        (206 * NANOS_PER_SECOND + 1, true, true),
    ] {
        let at = Instant::from_nanos(EPOCH_SECONDS * NANOS_PER_SECOND + nanos);
        let event = RawEvent::new("one".into(), false, None, ServedTime::At(at));
        assert_eq!((asked.is_outside(at), asked.keeps(&event)), (is_outside, is_kept), "{nanos}");
    }
    assert!(asked.keeps_at(None), "a time that cannot be read belongs to no neighbour");
}

#[test]
fn costs_of_readings_are_summed_by_kind() {
    let one = |n: u64| ReadStats {
        requests: n,
        walks: 2,
        restarts: 3,
        events: 10 * n,
        anomalies: Anomalies { has_more: n + 1, next_offset: n + 2, order: n + 3, outside: n + 4 },
    };
    let mut sum = one(7);
    sum.add(one(100));
    let anomalies = Anomalies { has_more: 109, next_offset: 111, order: 113, outside: 115 };
    assert_eq!(sum, ReadStats { requests: 107, walks: 4, restarts: 6, events: 1_070, anomalies });
    let named: Vec<_> = anomalies.named().collect();
    assert_eq!(named, [("hasMoreEvents", 109), ("nextOffset", 111), ("order", 113), ("outside", 115)]);
}

#[test]
fn the_page_size_follows_the_list() {
    let (documented, fixed) = (PageLimit::documented(), PageLimit::fixed(50));
    assert_eq!((documented.events(), documented.device_events()), (1001, 100));
    assert_eq!((fixed.events(), fixed.device_events()), (50, 50));
    let lists = lists(&Service::default(), &[None], &documented);
    assert_eq!((lists.limit_of(&None), lists.limit_of(&computers(&["a"])[0])), (1001, 100));
}

#[test]
fn events_outside_the_range_are_counted_and_kept() {
    for has_bodies in [false, true] {
        let mut list = events(-2..6);
        list.push(RawEvent::new(
            "timeless".into(),
            false,
            None,
            ServedTime::unusable(RejectReason::TimeMissing, "no time"),
        ));
        let service = Service::of(list);
        (service.state().ignores_bounds, service.state().has_bodies) = (true, has_bodies);
        let (limit, devices) = (PageLimit::fixed(100), [None]);
        let asked = PaddedRange { range: range(0, 2), pad: 1 };
        let mut reader = SpanReader::new(lists(&service, &devices, &limit), asked, u64::MAX, None);
        let segment = now(reader.next()).unwrap().unwrap();
        let kept: Vec<_> = counts_by_text(&segment.events).into_keys().collect();
        assert_eq!(kept, ["e0@0", "e1@1", "e5@5", "timeless"]);
        // A walk has two pages. The second page repeats four anchors, and one of them is the stray event.
        assert_eq!(
            (segment.stats.requests, segment.stats.events, segment.stats.anomalies.outside),
            (4, 26, 4),
            "{has_bodies}"
        );
    }
}
