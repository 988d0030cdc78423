//! The pages of a walk: when two walks are equal, and where an unfinished range may be cut.

use super::super::walk_pages::WalkPages;
use super::*;

fn page(events: Vec<RawEvent>, body: &'static str) -> Page {
    Page { events, body: body.into(), ..Page::default() }
}

fn walk_over(pages: Vec<Page>) -> WalkPages {
    let mut seen = WalkPages::default();
    let mut walk = Walk::from_start();
    for page in pages {
        let at = (0, walk.next_offset(), 4);
        let step = walk.take(&page);
        seen.note(at, &page, step, walk.clone());
    }
    seen
}

#[test]
fn a_range_is_cut_before_all_events_that_the_walk_may_have_missed() {
    let timeless = || RawEvent::new("x".into(), false, None, ServedTime::unusable(RejectReason::TimeMissing, "none"));
    for (pad, seen, cut) in [
        (1, vec![event("e", 50)], Some(48)),
        (10, vec![event("e", 50)], Some(39)),
        (1, vec![event("e", 3)], Some(1)),
        (1, vec![event("e", 2)], None),
        (1, vec![event("e", 101)], Some(99)),
        (1, vec![event("e", 102)], None),
        (1, vec![event("e", 50), timeless()], Some(48)),
        (1, vec![timeless()], None),
        (1, vec![], None),
    ] {
        let asked = PaddedRange { range: range(0, 100), pad };
        let parts = cut.map(|cut| (range(0, cut), range(cut, 100)));
        assert_eq!(walk_over(vec![page(seen.clone(), "")]).cut(asked), parts, "{pad} {seen:?}");
    }
}

#[test]
fn a_page_is_recognized_by_its_place_and_size_if_it_has_a_body() {
    let known = walk_over(vec![page(events(0..4), "body"), page(events(2..6), "")]);
    assert!(known.next(0, (0, 0, 4)).is_some());
    for (at, place) in [(0, (1, 0, 4)), (0, (0, 1, 4)), (0, (0, 0, 5)), (1, (0, 0, 4)), (1, (0, 2, 4)), (2, (0, 4, 4))]
    {
        assert!(known.next(at, place).is_none(), "{at} {place:?}");
    }
    assert_eq!(known.pages(), 2);
}

#[test]
fn two_walks_are_equal_if_all_their_pages_are_equal() {
    let first = walk_over(vec![page(events(0..4), "a"), page(events(2..6), "b")]);
    let mut again = WalkPages::default();
    assert!(!again.equals(&first) && !first.equals(&again));
    again.note_again(first.next(0, (0, 0, 4)).unwrap().clone());
    assert!(!again.equals(&first) && !first.equals(&again), "one page of two");
    again.note_again(first.next(1, (0, 2, 4)).unwrap().clone());
    assert!(again.equals(&first) && first.equals(&again));
    assert!(!walk_over(vec![page(events(0..4), "a"), page(events(2..6), "b")]).equals(&first), "seen by itself");
}

#[test]
fn a_tally_counts_the_events_of_each_page_without_anchors() {
    let pages = vec![page(events(0..4), ""), page(events(2..6), ""), page(events(4..6), "")];
    let tally = walk_over(pages).tally(|at| at.is_some_and(|at| at >= second(1)));
    let counts: Vec<u32> = events(0..7).iter().map(|event| tally.count(&event.digest)).collect();
    assert_eq!(counts, [0, 1, 1, 1, 1, 1, 0]);
}
