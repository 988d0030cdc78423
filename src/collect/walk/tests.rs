//! The meaning of each page for a walk.

use super::*;
use crate::model::{RejectReason, ServedTime};

fn event(name: &str) -> RawEvent {
    RawEvent::new(name.to_owned().into(), false, None, ServedTime::At(Instant::from_seconds(1_700_000_000)))
}

fn page(names: &[&str]) -> Page {
    Page { events: names.iter().map(|n| event(n)).collect(), ..Page::default() }
}

#[test]
fn a_walk_ends_at_a_page_with_only_the_anchors() {
    let mut walk = Walk::from_start();
    assert_eq!(walk.take(&page(&["a", "b", "c", "d"])), Step::More { new: 4 });
    assert_eq!((walk.next_offset(), walk.anchors()), (2, 2));
    assert_eq!(walk.take(&page(&["c", "d", "e"])), Step::More { new: 1 });
    assert_eq!(walk.take(&page(&["d", "e"])), Step::Whole);
}

#[test]
fn a_walk_over_an_empty_list_ends_at_once() {
    assert_eq!(Walk::from_start().take(&page(&[])), Step::Whole);
}

#[test]
fn anchors_out_of_place_mean_that_the_list_changed() {
    for moved in [&["b", "c", "d", "e"][..], &["d"], &[], &["d", "c", "e"]] {
        let mut walk = Walk::from_start();
        let _ = walk.take(&page(&["a", "b", "c", "d"]));
        assert_eq!(walk.take(&page(moved)), Step::Moved, "{moved:?}");
    }
}

#[test]
fn pages_capped_to_the_anchors_do_not_end_the_walk() {
    for short in [&["c", "d"][..], &["c"]] {
        let mut walk = Walk::from_start();
        let more = |names: &[&str]| Page { has_more: Some(true), ..page(names) };
        assert_eq!(walk.take(&more(&["a", "b", "c", "d"])), Step::More { new: 4 });
        assert_eq!(walk.take(&more(short)), Step::More { new: 0 }, "{short:?}");
        assert_eq!((walk.next_offset(), walk.anchors()), (3, 1));
        assert_eq!(walk.take(&more(&["d", "e"])), Step::More { new: 1 });
        assert_eq!(walk.take(&more(&["e"])), Step::Whole, "claimed for ever, believed once");
    }
}

/// Pages with this number of events. Each page after the first has one new event.
fn steps(names: &[String], size: usize, pages: usize) -> Vec<Step> {
    let mut walk = Walk::from_start();
    let served = |at: usize| {
        let named: Vec<&str> = names.iter().skip(at).take(size).map(String::as_str).collect();
        page(&named)
    };
    (0..pages).map(|_| walk.take(&served(usize::try_from(walk.next_offset()).unwrap()))).collect()
}

#[test]
fn a_walk_ends_if_the_service_ignores_offsets() {
    for names in [&["a"][..], &["a", "b", "c"]] {
        let mut walk = Walk::from_start();
        walk.anchors = 0;
        let step_of = |walk: &mut Walk| {
            let step = walk.take(&page(names));
            walk.anchors = 0;
            step
        };
        let steps: Vec<Step> = (0..20).map(|_| step_of(&mut walk)).collect();
        let first = steps.iter().position(|step| *step == Step::Moved);
        assert_eq!(first, Some(REPEATS_MAX as usize), "{names:?}");
    }
}

#[test]
fn a_long_list_of_similar_pages_is_walked_to_its_end() {
    let names = |of: &dyn Fn(usize) -> String| (0..400).map(of).collect::<Vec<_>>();
    for (case, names) in [
        ("all different", names(&|n| format!("e{n}"))),
        ("twins, but for every tenth", names(&|n| if n % 10 == 0 { format!("e{n}") } else { "twin".to_owned() })),
    ] {
        for size in [2, 4, 20] {
            let steps = steps(&names, size, 500);
            let end = steps.iter().position(|step| *step == Step::Whole).unwrap_or(steps.len());
            let is_more = |step: &Step| matches!(step, Step::More { .. });
            assert!(end < 500 && steps[..end].iter().all(is_more), "{case} {size} {steps:?}");
        }
    }
}

#[test]
fn a_page_repeats_at_most_eight_anchors_and_at_most_half_a_page() {
    for (size, anchors) in [(1, 0), (2, 1), (3, 1), (15, 7), (16, 8), (40, 8)] {
        let mut walk = Walk::from_start();
        let names: Vec<String> = (0..size).map(|n| format!("e{n}")).collect();
        let _ = walk.take(&page(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!((walk.anchors(), walk.passed(), walk.next_offset()), (anchors, size, size - anchors as u64));
        let (offset, point) = walk.point();
        let last =
            names[names.len() - anchors.max(1)..].iter().map(|name| prefix(&event(name).digest)).collect::<Vec<_>>();
        assert_eq!((offset, point), (size, last));
    }
}

#[test]
fn events_out_of_order_are_counted() {
    let timed = |seconds: &[Option<i64>]| {
        let at = |at: &Option<i64>| {
            at.map_or_else(
                || ServedTime::unusable(RejectReason::TimeMissing, "none"),
                |at| ServedTime::At(Instant::from_seconds(at)),
            )
        };
        let event =
            |(n, time): (usize, &Option<i64>)| RawEvent::new(format!("{n} {time:?}").into(), false, None, at(time));
        Page { events: seconds.iter().enumerate().map(event).collect(), ..Page::default() }
    };
    for (seconds, order) in [
        (&[Some(1), Some(2), Some(2), Some(3)][..], 0),
        (&[Some(2), Some(1), Some(3), Some(2)], 2),
        (&[Some(2), None, Some(1)], 1),
    ] {
        let mut walk = Walk::from_start();
        let _ = walk.take(&timed(seconds));
        assert_eq!(walk.anomalies, Anomalies { order, ..Anomalies::default() }, "{seconds:?}");
    }
}

#[test]
fn claims_are_compared_with_the_next_page() {
    let claims = |has_more, next_offset, names: &[&str]| Page { has_more, next_offset, ..page(names) };
    for (case, first, second, has_more, next_offset) in [
        ("true", claims(Some(true), Some(4), &["a", "b", "c", "d"]), claims(Some(false), None, &["c", "d", "e"]), 0, 0),
        ("ended", claims(Some(false), None, &["a", "b", "c", "d"]), claims(Some(false), Some(0), &["c", "d"]), 0, 0),
        (
            "more after all",
            claims(Some(false), Some(9), &["a", "b", "c", "d"]),
            claims(None, None, &["c", "d", "e"]),
            1,
            0,
        ),
        ("no more after all", claims(Some(true), None, &["a", "b", "c", "d"]), claims(None, None, &["c", "d"]), 1, 0),
        (
            "a wrong offset",
            claims(Some(true), Some(3), &["a", "b", "c", "d"]),
            claims(None, None, &["c", "d", "e"]),
            0,
            1,
        ),
        (
            "a negative one",
            claims(Some(true), Some(-1), &["a", "b", "c", "d"]),
            claims(None, None, &["c", "d", "e"]),
            0,
            1,
        ),
        (
            "one of a later page",
            claims(Some(true), Some(4), &["a", "b", "c", "d"]),
            claims(Some(true), Some(5), &["c", "d", "e"]),
            0,
            0,
        ),
        ("an empty list passes no event", claims(Some(true), Some(0), &[]), page(&[]), 1, 0),
        ("nothing claimed", page(&["a", "b", "c", "d"]), page(&["c", "d", "e"]), 0, 0),
    ] {
        let mut walk = Walk::from_start();
        let (_, _) = (walk.take(&first), walk.take(&second));
        let found = (walk.anomalies.has_more, walk.anomalies.next_offset);
        assert_eq!(found, (has_more, next_offset), "{case}");
    }
}

/// An empty page that claims more events at `next`.
fn hidden(next: i64) -> Page {
    Page { has_more: Some(true), next_offset: Some(next), ..page(&[]) }
}

#[test]
fn an_empty_page_that_claims_more_at_a_later_offset_does_not_end_the_walk() {
    let mut walk = Walk::from_start();
    assert_eq!(walk.take(&hidden(1001)), Step::More { new: 0 });
    assert_eq!(walk.next_offset(), 1001);
    assert_eq!(walk.take(&hidden(2002)), Step::More { new: 0 });
    assert_eq!((walk.next_offset(), walk.passed()), (2002, 0));
    assert_eq!(walk.clone().take(&page(&["a"])), Step::Moved, "offsets count events that no page has");
    assert_eq!(walk.take(&page(&[])), Step::Whole, "nothing follows");
}

#[test]
fn a_false_claim_of_later_events_ends_the_walk() {
    for next in [-1, 0, 1002, i64::MAX] {
        assert_eq!(Walk::from_start().take(&hidden(next)), Step::Whole, "{next}");
    }
    let mut walk = Walk::from_start();
    let probes = (1..100).find(|n| walk.take(&hidden(n * 1001)) == Step::Whole);
    assert_eq!(probes, Some(i64::from(PROBES_MAX) + 1));
}

#[test]
fn a_resumed_walk_requests_its_anchors_first() {
    let mut walk = Walk::from_start();
    let _ = walk.take(&page(&["a", "b", "c", "d"]));
    let (offset, anchors) = walk.point();
    let mut resumed = Walk::resumed(offset, anchors);
    assert_eq!(resumed.next_offset(), 2);
    assert_eq!(resumed.take(&page(&["c", "d", "e"])), Step::More { new: 1 });
}

#[test]
fn a_walk_over_one_event_resumes_at_that_event() {
    let mut walk = Walk::from_start();
    let _ = walk.take(&page(&["a"]));
    let resumed = || {
        let (offset, anchors) = walk.point();
        Walk::resumed(offset, anchors)
    };
    assert_eq!((resumed().next_offset(), resumed().anchors()), (0, 1));
    assert_eq!(resumed().take(&page(&["a"])), Step::Whole);
    assert_eq!(resumed().take(&page(&["b"])), Step::Moved, "one went and one came");
    assert_eq!(resumed().take(&page(&["a", "b"])), Step::More { new: 1 });
    // A service whose pages hold one event.
    let mut capped = resumed();
    let more = |names: &[&str]| Page { has_more: Some(true), ..page(names) };
    assert_eq!(capped.take(&more(&["a"])), Step::More { new: 0 });
    assert_eq!((capped.next_offset(), capped.anchors()), (1, 0));
    assert_eq!(capped.take(&more(&["b"])), Step::More { new: 1 });
}

#[test]
fn false_claims_are_counted_and_change_no_result() {
    let mut walk = Walk::from_start();
    let lie = Page { has_more: Some(false), next_offset: Some(0), ..page(&["a", "b"]) };
    assert_eq!(walk.take(&lie), Step::More { new: 2 });
    let stuck = Page { has_more: Some(true), next_offset: Some(0), ..page(&["b", "c"]) };
    assert_eq!(walk.take(&stuck), Step::More { new: 1 });
    assert_eq!(walk.take(&page(&["c"])), Step::Whole);
    assert_eq!(walk.anomalies, Anomalies { has_more: 2, next_offset: 1, order: 0, outside: 0 });
}
