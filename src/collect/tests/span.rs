//! Reading a span: its cost, its proof, and its result for a list that keeps changing.

use std::sync::Arc;

use super::*;
use crate::model::{Digest, Multiset};

const PAGE: u32 = 4;

struct Reading {
    segments: Vec<Segment>,
    stats: ReadStats,
}

impl Reading {
    fn counts_by_text(&self) -> BTreeMap<String, u32> {
        let mut all = BTreeMap::new();
        for (text, count) in self.segments.iter().flat_map(|segment| counts_by_text(&segment.events)) {
            *all.entry(text).or_default() += count;
        }
        all
    }

    fn outcomes(&self, outcome: RangeOutcome) -> usize {
        self.segments.iter().filter(|segment| segment.outcome == outcome).count()
    }
}

/// The whole span. Its parts must cover it, in order.
fn read_with(
    service: &Service,
    (span, pad): (Range, i64),
    devices: &[Option<DeviceId>],
    (walk_events_max, prior): (u64, Option<Multiset<Digest>>),
) -> Reading {
    let limit = PageLimit::fixed(PAGE);
    let asked = PaddedRange { range: span, pad };
    let mut reader = SpanReader::new(lists(service, devices, &limit), asked, walk_events_max, prior);
    let mut reading = Reading { segments: Vec::new(), stats: ReadStats::default() };
    let mut end = span.start;
    while let Some(segment) = now(reader.next()).unwrap() {
        assert_eq!(segment.range.start, end);
        end = segment.range.end;
        reading.stats.add(segment.stats);
        reading.segments.push(segment);
    }
    assert_eq!(end, span.end);
    reading
}

fn read(service: &Service, seconds: (i64, i64)) -> Reading {
    read_with(service, (range(seconds.0, seconds.1), 1), &[None], (u64::MAX, None))
}

fn cost(stats: &ReadStats) -> (u64, u32, u32, u64) {
    (stats.requests, stats.walks, stats.restarts, stats.events)
}

#[test]
fn a_quiet_span_costs_two_walks_with_and_without_known_pages() {
    for has_bodies in [false, true] {
        let service = Service::of(events(0..10));
        (service.state().has_bodies, service.state().claim) = (has_bodies, Some(false));
        let reading = read(&service, (0, 100));
        assert_eq!(
            (reading.counts_by_text(), reading.outcomes(RangeOutcome::Confirmed)),
            (counts_in_list(&events(0..10)), 1)
        );
        assert_eq!(reading.stats.anomalies, Anomalies { has_more: 3, ..Anomalies::default() });
        assert_eq!(cost(&reading.stats), (10, 2, 0, 36), "{has_bodies}");
        assert_eq!((reading.segments[0].began_at, reading.segments[0].ended_at), (Some(clock(0)), Some(clock(9))));
    }
}

#[test]
fn a_changed_list_is_walked_again_until_two_walks_agree() {
    // One event disappears in the middle of the first walk. One appears at the end of the second walk.
    let service = Service::of(events(0..10)).changing(|request, list| {
        if request == 2 {
            list.remove(1);
        }
    });
    let reading = read(&service, (0, 100));
    assert_eq!((reading.stats.restarts, reading.stats.walks), (1, 2));
    assert_eq!(
        reading.counts_by_text(),
        counts_in_list(&events(0..10)),
        "an event that was seen is kept after it disappears"
    );

    for has_bodies in [false, true] {
        let service = Service::of(events(0..10)).changing(|request, list| {
            if request == 9 {
                list.push(event("late", 9));
            }
        });
        service.state().has_bodies = has_bodies;
        let reading = read(&service, (0, 100));
        assert_eq!((reading.stats.restarts, reading.stats.walks), (0, 3), "{has_bodies}");
        assert_eq!(reading.counts_by_text(), counts_in_list(&service.state().lists[&None]));
    }
}

#[test]
fn twins_over_several_pages_get_the_count_of_two_equal_walks() {
    for has_bodies in [false, true] {
        let mut list: Vec<RawEvent> = (0..11).map(|_| event_without_id("same", 5)).collect();
        list.push(event_without_id("other", 6));
        let service = Service::of(list.clone());
        service.state().has_bodies = has_bodies;
        assert_eq!(read(&service, (0, 100)).counts_by_text(), counts_in_list(&list), "{has_bodies}");
    }
}

#[test]
fn an_earlier_proof_replaces_the_first_walk_if_it_is_still_true() {
    let held: Multiset<Digest> = events(0..10).iter().map(|event| event.digest).collect();
    for (list, prior, walks) in [
        (events(0..10), Some(held.clone()), 1),
        (events(0..11), Some(held.clone()), 2),
        (events(0..9), Some(held), 2),
        (events(0..10), None, 2),
    ] {
        let reading = read_with(&Service::of(list.clone()), (range(0, 100), 1), &[None], (u64::MAX, prior));
        assert_eq!(
            (reading.counts_by_text(), reading.stats.walks, reading.stats.restarts),
            (counts_in_list(&list), walks, 0)
        );
    }
}

#[test]
fn only_the_unstable_second_stays_open_and_the_rest_is_proved() {
    // In second 21, an event is replaced before each request.
    let mut list = events(0..64);
    list.splice(21..22, (0..9).map(|n| event(&format!("busy{n}"), 21)));
    let service = Service::of(list).changing(|request, list| {
        let busy = list.iter().position(|event| event.at() == Some(second(21))).unwrap();
        list.remove(busy);
        list.insert(busy + 8, event(&format!("new{request}"), 21));
    });
    let reading = read_with(&service, (range(0, 64), 3_600), &[None], (u64::MAX, None));
    let open: Vec<Range> = reading
        .segments
        .iter()
        .filter(|segment| segment.outcome == RangeOutcome::Unstable)
        .map(|segment| segment.range)
        .collect();
    let counts = reading.counts_by_text();
    assert!(events(0..64).iter().all(|e| e.at() == Some(second(21))
        || counts.contains_key(&counts_in_list(std::slice::from_ref(e)).into_keys().next().unwrap())));
    assert!(counts.keys().any(|text| text.starts_with("new")), "the reader keeps the events that it saw");
    // The padding of a second is one second, and the request includes both ends.
    assert_eq!(open, [19, 20, 21, 22].map(|at| range(at, at + 1)));
    let asked = &service.state().asked;
    assert_eq!((asked[0].start, asked[0].stop), (EPOCH_SECONDS - 3_600, EPOCH_SECONDS + 64 + 3_600));
    let widths: Vec<i64> = asked.iter().map(|query| query.stop - query.start).collect();
    assert!(
        widths.iter().all(|width| *width == 64 + 7_200 || *width <= 3 * 32),
        "only the whole span has wide padding"
    );
    assert!(widths.contains(&3));
}

#[test]
fn a_span_that_always_changes_stays_open_and_its_visible_events_are_kept() {
    // After many confirmed pages, a round may split ranges until too many seconds have failed.
    for (confirmed_pages, given_up) in [(0, RangeOutcome::Deferred), (1_000, RangeOutcome::Unstable)] {
        // Before each request, an event is replaced somewhere.
        let list: Vec<RawEvent> = (0..40 * 6).map(|n| event(&format!("e{n}"), n / 6)).collect();
        let service = Service::of(list).changing(|request, list| {
            for second in (0..list.len()).step_by(6) {
                list[second] = event(&format!("r{request}"), i64::try_from(second / 6).unwrap());
            }
        });
        let (limit, devices) = (PageLimit::fixed(PAGE), [None]);
        let budget = Arc::new(SplitBudget::default());
        budget.note_confirmed(confirmed_pages);
        let asked = PaddedRange { range: range(0, 40), pad: 1 };
        let mut reader =
            SpanReader::new(lists(&service, &devices, &limit), asked, u64::MAX, None).within(budget.clone());
        let mut reading = Reading { segments: Vec::new(), stats: ReadStats::default() };
        while let Some(segment) = now(reader.next()).unwrap() {
            reading.segments.push(segment);
        }
        assert_eq!(reading.outcomes(RangeOutcome::Confirmed), 0);
        let seconds = reading.segments.iter().filter(|segment| segment.range.length().as_secs() == 1).count();
        assert_eq!(seconds >= UNSTABLE_SECONDS_MAX as usize, given_up == RangeOutcome::Unstable);
        assert_eq!(reading.outcomes(RangeOutcome::Deferred) > 0, given_up == RangeOutcome::Deferred);
        assert_eq!(budget.is_spent(), given_up == RangeOutcome::Deferred);
        assert!(reading.segments.len() < 30, "{} parts of 40 seconds", reading.segments.len());
        let counts = reading.counts_by_text();
        let missing: Vec<i64> =
            (0..40 * 6).filter(|n| n % 6 != 0 && !counts.contains_key(&format!("e{n}@{}", n / 6))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn a_span_whose_walks_never_agree_stays_open() {
    // Each walk is one page and its end. The next walk finds one more event.
    let service = Service::of(events(0..1)).changing(|request, list| {
        if request % 2 == 0 {
            list.push(event(&format!("n{request}"), 0));
        }
    });
    let (limit, devices) = (PageLimit::fixed(1_000), [None]);
    let asked = PaddedRange { range: range(0, 1), pad: 1 };
    let mut reader = SpanReader::new(lists(&service, &devices, &limit), asked, u64::MAX, None);
    let segment = now(reader.next()).unwrap().unwrap();
    assert_eq!((segment.outcome, segment.stats.walks), (RangeOutcome::Unstable, RESTARTS_MAX + 2));
    assert_eq!(counts_by_text(&segment.events), counts_in_list(&service.state().lists[&None]));
}

#[test]
fn a_walk_holds_its_limit_and_events_in_a_wide_padding_are_kept() {
    let reading = read_with(&Service::of(events(0..10)), (range(0, 100), 1), &[None], (10, None));
    assert_eq!((reading.segments.len(), cost(&reading.stats)), (1, (10, 2, 0, 36)));
    // The service includes both bounds: one second beyond the end.
    for (pad, kept) in [(1, 4), (2, 4 + 2 + 3), (3_600, 30)] {
        let reading = read_with(&Service::of(events(0..30)), (range(10, 14), pad), &[None], (u64::MAX, None));
        assert_eq!(reading.counts_by_text().len(), kept, "{pad}");
    }
}

#[test]
fn the_last_reading_ends_if_a_list_ignores_offsets() {
    let list: Vec<RawEvent> = (0..9).map(|n| event(&format!("e{n}"), 0)).collect();
    let service = Service::of(list);
    service.state().ignores_offsets = true;
    let reading = read(&service, (0, 1));
    assert_eq!((reading.outcomes(RangeOutcome::Unstable), reading.segments.len()), (1, 1));
    assert_eq!(reading.counts_by_text().len(), PAGE as usize, "every event that it showed");
    assert!(reading.stats.requests < 200, "{:?}", reading.stats);
}

#[test]
fn many_lists_are_proved_together_and_halved_if_they_are_too_long() {
    for (walk_events_max, parts) in [(u64::MAX, 1), (15, 2)] {
        let service = Service::default();
        let devices = computers(&["a", "b"]);
        let mut all = Vec::new();
        for (name, device) in ["a", "b"].iter().zip(&devices) {
            let list: Vec<RawEvent> = (0..10).map(|at| event(&format!("{name}{at}"), at)).collect();
            all.extend(list.clone());
            service.state().lists.insert(device.clone(), list);
        }
        let reading = read_with(&service, (range(0, 10), 1), &devices, (walk_events_max, None));
        assert_eq!(
            (reading.counts_by_text(), reading.outcomes(RangeOutcome::Confirmed)),
            (counts_in_list(&all), parts)
        );
        assert!(parts > 1 || cost(&reading.stats) == (20, 2, 0, 72), "{:?}", reading.stats);
    }
}

#[test]
fn events_from_before_an_error_can_be_taken_out() {
    let service = Service::of(events(0..10));
    service.state().fails_from = Some(2);
    let (limit, devices) = (PageLimit::fixed(PAGE), [None]);
    let asked = PaddedRange { range: range(0, 100), pad: 1 };
    let mut reader = SpanReader::new(lists(&service, &devices, &limit), asked, u64::MAX, None);
    assert!(matches!(now(reader.next()), Err(ApiError::NotFound { .. })));
    let (partial, stats) = reader.into_partial();
    assert_eq!((counts_by_text(&partial), cost(&stats)), (counts_in_list(&events(0..6)), (3, 0, 0, 8)));
}

#[test]
fn a_refused_or_too_long_page_begins_the_walk_again_and_counts_no_restart() {
    for is_too_long in [false, true] {
        let service = Service::of(events(0..10));
        (service.state().limit_max, service.state().is_too_long) = (Some(500), is_too_long);
        let (limit, devices) = (PageLimit::documented(), [None]);
        let asked = PaddedRange { range: range(0, 100), pad: 1 };
        let mut reader = SpanReader::new(lists(&service, &devices, &limit), asked, u64::MAX, None);
        let segment = now(reader.next()).unwrap().unwrap();
        assert_eq!(
            (counts_by_text(&segment.events), cost(&segment.stats)),
            (counts_in_list(&events(0..10)), (2 + 4, 2, 0, 30)),
            "{is_too_long}"
        );
    }
}
