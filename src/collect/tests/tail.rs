//! Reading an open window: the requests, the returned events, and the start of the next poll.

use super::*;

/// Events passed, and the prefixes of the digests of the last ones.
type Point = (u64, Vec<[u8; 16]>);

const PAGE: u32 = 4;
const WINDOW: (i64, i64) = (0, 1_000);

/// All chunks of one poll.
fn follow(
    service: &Service,
    devices: &[Option<DeviceId>],
    limit: &PageLimit,
    (resume, chunk_events): (Option<Point>, usize),
) -> Vec<TailChunk> {
    let asked = PaddedRange { range: range(WINDOW.0, WINDOW.1), pad: 1 };
    let start = TailStart::of(resume, 0);
    let mut reader = TailReader::new(lists(service, devices, limit), asked, start, chunk_events);
    let mut chunks = Vec::new();
    while let Some(chunk) = now(reader.next()).unwrap() {
        chunks.push(chunk);
    }
    chunks
}

/// One poll in one chunk.
fn poll(service: &Service, resume: Option<Point>) -> TailChunk {
    let mut chunks = follow(service, &[None], &PageLimit::fixed(PAGE), (resume, usize::MAX));
    assert_eq!(chunks.len(), 1);
    chunks.remove(0)
}

fn cost(stats: &ReadStats) -> (u64, u32, u32, u64) {
    (stats.requests, stats.walks, stats.restarts, stats.events)
}

/// The names of the events whose digests begin with the anchors of a point.
fn point_of(list: &[RawEvent], anchors: usize) -> Option<Point> {
    let last = &list[list.len() - anchors..];
    Some((list.len() as u64, last.iter().map(|event| event.digest.0[..16].try_into().unwrap()).collect()))
}

#[test]
fn a_window_is_walked_twice_from_its_start_and_then_from_its_checkpoint() {
    let service = Service::of(events(0..10));
    service.state().claim = Some(false);
    let first = poll(&service, None);
    assert_eq!(counts_by_text(&first.events), counts_in_list(&events(0..10)));
    // Two walks. Each reads offsets 0, 2, 4 and 6 in pages of four events with two anchors, and then a page with only
    // the anchors.
    assert_eq!(cost(&first.stats), (10, 2, 0, 36));
    let offsets: Vec<u64> = service.state().asked.iter().map(|query| query.offset).collect();
    assert_eq!(offsets, [0, 2, 4, 6, 8, 0, 2, 4, 6, 8]);
    assert_eq!(
        first.stats.anomalies.has_more, 3,
        "in both walks three pages followed a page that claimed to be the last"
    );
    assert_eq!((first.point.clone(), first.began_at), (point_of(&events(0..10), 2), Some(clock(0))));
    assert_eq!(first.ended_at, Some(clock(9)));

    service.state().lists.insert(None, events(0..13));
    let second = poll(&service, first.point);
    assert_eq!(counts_by_text(&second.events), counts_in_list(&events(10..13)));
    assert_eq!(cost(&second.stats), (3, 1, 0, 9));
    assert_eq!((second.point.clone(), second.began_at), (point_of(&events(0..13), 2), Some(clock(10))));
    assert_eq!(second.ended_at, Some(clock(12)));

    let third = poll(&service, second.point.clone());
    assert_eq!((third.events.len(), cost(&third.stats)), (0, (1, 1, 0, 2)));
    assert_eq!(third.point, second.point, "an empty page leaves the walk at its place");
}

#[test]
fn a_change_before_the_checkpoint_makes_the_reader_walk_the_window_again() {
    type Case = (&'static str, fn(&mut Vec<RawEvent>), &'static [&'static str]);
    let cases: [Case; 2] =
        [("gone", |list| drop(list.remove(3)), &[]), ("late", |list| list.insert(3, event("late", 2)), &["late@2"])];
    for (case, change, new) in cases {
        let service = Service::of(events(0..10));
        let point = poll(&service, None).point;
        change(service.state().lists.get_mut(&None).unwrap());
        let chunk = poll(&service, point);
        let list = service.state().lists[&None].clone();
        assert_eq!(counts_by_text(&chunk.events), counts_in_list(&list), "{case}");
        assert!(new.iter().all(|name| counts_by_text(&chunk.events).contains_key(*name)), "{case}");
        assert_eq!((chunk.stats.walks, chunk.stats.restarts), (2, 1), "{case}");
        assert_eq!(chunk.point, point_of(&list, 2), "{case}");
    }
}

#[test]
fn a_large_event_counts_as_several_in_a_chunk() {
    let mut list = events(0..12);
    list[1] = event(&"x".repeat(3 << 10), 1);
    let chunks = follow(&Service::of(list), &[None], &PageLimit::fixed(PAGE), (None, 6));
    let sizes: Vec<usize> = chunks.iter().map(|chunk| chunk.events.len()).collect();
    assert_eq!(sizes, [4, 6, 2], "the first four have the size of seven");
}

#[test]
fn full_chunks_are_returned_at_once_and_only_the_first_walk_sets_the_checkpoint() {
    let service = Service::of(events(0..20));
    let chunks = follow(&service, &[None], &PageLimit::fixed(PAGE), (None, 6));
    let sizes: Vec<usize> = chunks.iter().map(|chunk| chunk.events.len()).collect();
    assert_eq!(sizes, [6, 6, 6, 2], "the second walk returns no event a second time");
    let points: Vec<Option<u64>> = chunks.iter().map(|chunk| chunk.point.as_ref().map(|point| point.0)).collect();
    assert_eq!(points, [Some(6), Some(12), Some(18), Some(20)]);
    let all: Vec<CountedEvent> = chunks.into_iter().flat_map(|chunk| chunk.events).collect();
    assert_eq!(counts_by_text(&all), counts_in_list(&events(0..20)));

    // The second walk is behind the first, so its place is no checkpoint.
    let service = Service::of(events(0..20)).changing(|request, list| {
        if request == 12 {
            list.extend(["x", "y", "z"].map(|name| event(name, 19)));
        }
    });
    let chunks = follow(&service, &[None], &PageLimit::fixed(PAGE), (None, 22));
    let points: Vec<Option<u64>> = chunks.iter().map(|chunk| chunk.point.as_ref().map(|point| point.0)).collect();
    assert_eq!(points, [None, Some(23)]);
    assert_eq!(chunks.iter().map(|chunk| chunk.events.len()).sum::<usize>(), 23);
}

#[test]
fn twins_get_the_count_of_one_page_or_of_two_equal_walks() {
    let twins: Vec<RawEvent> = (0..7).map(|_| event_without_id("same", 5)).collect();
    let chunk = poll(&Service::of(twins.clone()), None);
    assert!((4..=7).contains(&counts_by_text(&chunk.events)["same@5"]), "{:?}", counts_by_text(&chunk.events));
    // A new event together with two known ones: the known ones are not returned again.
    let pair =
        vec![event_without_id("a", 1), event_without_id("b", 2), event_without_id("c", 3), event_without_id("d", 4)];
    let service = Service::of(pair);
    let point = poll(&service, None).point;
    service.state().lists.get_mut(&None).unwrap().push(event_without_id("e", 5));
    let chunk = poll(&service, point);
    assert_eq!(counts_by_text(&chunk.events), counts_in_list(&[event_without_id("e", 5)]));
}

#[test]
fn two_different_walks_are_followed_by_a_third() {
    // The list grows during the second walk.
    let service = Service::of(events(0..6)).changing(|request, list| {
        if request == 4 {
            list.push(event("new", 6));
        }
    });
    let chunk = poll(&service, None);
    assert_eq!(counts_by_text(&chunk.events), counts_in_list(&service.state().lists[&None]));
    assert_eq!((chunk.stats.walks, chunk.stats.restarts), (3, 0));
    assert_eq!(chunk.point, point_of(&service.state().lists[&None], 2));
}

#[test]
fn a_list_that_always_changes_is_given_up_and_its_events_are_kept() {
    // Before each request, one more event appears at the front: no anchor keeps its place.
    let service = Service::of(events(1..40)).changing(|request, list| list.insert(0, event(&format!("n{request}"), 0)));
    let chunk = poll(&service, None);
    assert_eq!((chunk.stats.restarts, chunk.stats.walks), (RESTARTS_MAX + 1, 0));
    assert_eq!(chunk.point, Some((0, Vec::new())), "the next poll begins at the start");
    assert!(chunk.events.len() > 4 && chunk.stats.requests == 2 * u64::from(RESTARTS_MAX + 1), "{:?}", chunk.stats);

    // Each walk is whole, and returns one more event than the walk before it.
    let service = Service::of(events(0..6)).changing(|request, list| {
        if request % 2 == 0 {
            list.push(event(&format!("n{request}"), 6));
        }
    });
    let chunks = follow(&service, &[None], &PageLimit::fixed(100), (None, usize::MAX));
    assert_eq!(cost(&chunks[0].stats).1, RESTARTS_MAX + 2, "{:?}", chunks[0].stats);
    assert_eq!(counts_by_text(&chunks[0].events), counts_in_list(&service.state().lists[&None]));
}

#[test]
fn the_end_of_a_reading_tells_whether_everything_was_read() {
    let moving =
        || Service::of(events(1..40)).changing(|request, list| list.insert(0, event(&format!("n{request}"), 0)));
    let growing = Service::of(events(0..3)).changing(|request, list| {
        if request < 4 {
            list.push(event(&format!("n{request}"), 6));
        }
    });
    let checkpoint = || TailStart::of(point_of(&events(0..10), 2), 10);
    let one = || vec![None];
    for (case, service, devices, start, expected) in [
        ("nothing new", Service::of(events(0..10)), one(), checkpoint(), TailEnd::Whole),
        ("an event before the checkpoint is gone", Service::of(events(1..10)), one(), checkpoint(), TailEnd::Whole),
        ("new events at the end of each page", growing, one(), TailStart::Empty, TailEnd::Whole),
        ("the list always moves", moving(), one(), checkpoint(), TailEnd::Moved),
        ("one of two lists moves", moving(), vec![None, None], TailStart::FromStart, TailEnd::Moved),
        ("empty, without archived events", Service::default(), one(), TailStart::Empty, TailEnd::Whole),
        ("empty, with archived events", Service::default(), one(), TailStart::FromStart, TailEnd::Silent),
        ("empty, after a checkpoint", Service::default(), one(), checkpoint(), TailEnd::Silent),
        ("empty lists, with archived events", Service::default(), vec![None, None], checkpoint(), TailEnd::Silent),
    ] {
        let limit = PageLimit::fixed(PAGE);
        let asked = PaddedRange { range: range(WINDOW.0, WINDOW.1), pad: 1 };
        let mut reader = TailReader::new(lists(&service, &devices, &limit), asked, start, usize::MAX);
        while reader.end().is_none() {
            now(reader.next()).unwrap();
        }
        assert_eq!(reader.end(), Some(expected), "{case}");
    }
}

#[test]
fn a_refused_page_size_costs_only_one_request() {
    for devices in [vec![None], computers(&["a", "b"])] {
        let service = Service::of(events(0..10));
        service.state().lists.extend(devices.iter().map(|device| (device.clone(), events(0..10))));
        service.state().limit_max = Some(if devices.len() == 1 { 500 } else { 100 });
        let limit = PageLimit::documented();
        let chunks = follow(&service, &devices, &limit, (None, usize::MAX));
        assert_eq!(counts_by_text(&chunks[0].events).len(), 10);
        let refused = service.state().asked.iter().filter(|query| query.limit > 500).count();
        assert_eq!((refused, chunks[0].stats.restarts), (if devices.len() == 1 { 2 } else { 0 }, 0));
    }
}

#[test]
fn many_lists_are_read_one_after_another_without_a_checkpoint() {
    let service = Service::default();
    for (name, seconds) in [("a", 0..10), ("b", 100..103), ("c", 200..200)] {
        let list = seconds.map(|at| event(&format!("{name}{at}"), at)).collect();
        service.state().lists.insert(Some(DeviceId::from(name)), list);
    }
    let devices = computers(&["a", "b", "c"]);
    let resume = Some((3, vec![[0; 16]]));
    let chunks = follow(&service, &devices, &PageLimit::fixed(PAGE), (resume, 1_000));
    assert_eq!(chunks.len(), 1);
    assert_eq!((chunks[0].events.len(), chunks[0].point.is_none()), (13, true));
    assert_eq!(chunks[0].began_at, Some(clock(0)));
    // Five requests for ten events, two for three, one for none.
    assert_eq!(cost(&chunks[0].stats), (8, 1, 0, 18 + 4));
    let asked: Vec<_> = service.state().asked.iter().map(|query| query.device.clone().unwrap()).collect();
    assert_eq!(asked.iter().filter(|device| device.as_str() == "b").count(), 2);
}

#[test]
fn a_window_with_too_many_events_is_walked_only_once() {
    // More than a hundred thousand events with few different times, which are quick to make.
    let many: Vec<RawEvent> = (0..101_000).map(|n| event(&format!("n{n}"), n / 1_000)).collect();
    let service = Service::of(many);
    let chunks = follow(&service, &[None], &PageLimit::fixed(20_000), (None, 50_000));
    assert_eq!(chunks.iter().map(|chunk| chunk.events.len()).sum::<usize>(), 101_000);
    assert_eq!(chunks.iter().map(|chunk| chunk.stats.walks).sum::<u32>(), 1);
    assert_eq!(chunks.last().unwrap().point.as_ref().unwrap().0, 101_000);
}
