//! The reader of an open window under the same interleavings: several polls, and then the settled reading.
//!
//! The polls and the settled reading together lose nothing and double nothing. A poll alone is provisional, but the
//! read point depends on it: a poll returns every event with an id that was in the list all the time. It may miss late
//! events, which the service inserts before the end of the list.

use super::*;

/// Polls of the open window before the settled reading. A resume point without an anchor shows only at the third.
const POLLS: u32 = 3;
/// Short lists: one page or no page holds them.
const SHORT: [&[Event]; 3] = [&[], &[(1, 1)], &[(1, 1), (7, 2)]];

/// The content of the archive in one run.
#[derive(Default)]
struct Follow {
    got: BTreeMap<Digest, u32>,
    point: Option<(u64, Vec<[u8; 16]>)>,
    accused: bool,
    /// A poll missed an event that it had to return.
    missed: bool,
    requests: Vec<u64>,
}

impl Follow {
    /// One poll of the open window, from the end of the last poll.
    fn poll(&mut self, lists: &Lists, asked: PaddedRange) {
        let start = TailStart::of(self.point.take(), self.got.values().map(|count| u64::from(*count)).sum());
        let mut reader = TailReader::new(lists.clone(), asked, start, usize::MAX);
        let mut requests = 0;
        while let Some(chunk) = reader.next().now_or_never().expect("always ready").expect("no request fails") {
            self.accused |= reports_untrue_claim(chunk.stats);
            requests += chunk.stats.requests;
            self.keep(chunk.events);
            self.point = chunk.point.filter(|(offset, _)| *offset > 0);
        }
        self.requests.push(requests);
    }

    /// The settled reading. With `is_known`, the polls count as its first walk.
    fn settle(&mut self, lists: &Lists, asked: PaddedRange, walk_max: u64, is_known: bool) {
        let known = || self.got.iter().flat_map(|(digest, count)| (0..*count).map(|_| *digest)).collect();
        let mut reader = SpanReader::new(lists.clone(), asked, walk_max, is_known.then(known));
        while let Some(segment) = reader.next().now_or_never().expect("always ready").expect("no request fails") {
            assert_eq!(segment.outcome, RangeOutcome::Confirmed);
            self.accused |= reports_untrue_claim(segment.stats);
            self.keep(segment.events);
        }
    }

    fn keep(&mut self, events: Vec<CountedEvent>) {
        for held in events {
            let count = self.got.entry(held.event.digest).or_default();
            *count = (*count).max(held.count);
        }
    }

    fn lacks<'a>(&self, case: Case, events: impl Iterator<Item = &'a Event>) -> bool {
        let got = |digest| self.got.get(digest).copied().unwrap_or(0);
        contents(events, case.ids).iter().any(|(digest, count)| got(digest) < *count)
    }
}

fn follow_and_settle(case: Case, changes: u32, prefix: Vec<usize>, tally: &mut Tally, is_known: bool) -> Trace {
    let mut run = Follow::default();
    let ((), service) = on(Service::new(case, changes, prefix), |lists, asked, service| {
        for _ in 0..POLLS {
            let before = service.lock().events.clone();
            run.poll(&lists, asked);
            let service = service.lock();
            let stayed = service.events.iter().filter(|event| owned(event) && !service.late.contains(event));
            run.missed |= case.ids && run.lacks(case, stayed.filter(|event| before.contains(event)));
        }
        run.settle(&lists, asked, case.walk_max, is_known);
    });
    let kept = case.history.iter().filter(|event| owned(event) && !service.deleted.contains(event));
    let doubled = run.got.iter().any(|(digest, count)| service.peak.get(digest).copied().unwrap_or(0) < *count);
    let lost = run.missed || run.lacks(case, kept);
    tally.add(Tally { runs: 1, lost: lost.into(), doubled: doubled.into(), accused: run.accused.into() });
    service.trace
}

fn follow(case: Case, changes: u32, prefix: Vec<usize>, tally: &mut Tally) -> Trace {
    follow_and_settle(case, changes, prefix, tally, false)
}

fn follow_trusting(case: Case, changes: u32, prefix: Vec<usize>, tally: &mut Tally) -> Trace {
    follow_and_settle(case, changes, prefix, tally, true)
}

/// The cases over lists that one request reads, and the cases over longer lists.
fn of_every_length(change: impl Fn(&mut Case)) -> Vec<Case> {
    let mut cases = Case::every();
    let shapes: Vec<Case> = cases.iter().filter(|case| case.history == HISTORIES[0]).copied().collect();
    cases.extend(SHORT.iter().flat_map(|history| shapes.iter().map(|case| Case { history, ..*case })));
    cases.iter_mut().for_each(change);
    cases
}

#[test]
fn polls_of_an_open_window_and_its_settled_reading_lose_and_double_nothing() {
    let mut runs = 0;
    for (ids, claim, changes) in [(false, None, 2), (true, None, 2), (true, Some(false), 1), (false, Some(true), 1)] {
        let cases = mixed(of_every_length(|case| (case.ids, case.claim) = (ids, claim)));
        let tally = explore_all(follow, &cases, changes, None);
        println!(
            "{POLLS} polls and a settled reading, {changes} changes, ids {ids}, hasMoreEvents {claim:?}: {tally:?}"
        );
        assert_eq!((tally.lost, tally.doubled), (0, 0), "ids {ids}, {claim:?}");
        assert_eq!(tally.accused > 0, claim.is_some(), "a claim that was true when it was made is no lie");
        runs += tally.runs;
    }
    assert!(runs >= 1_000_000, "only {runs} interleavings");
}

/// The cost of a poll without changes, by the number of events in the list.
#[test]
fn a_poll_of_an_unchanged_list_is_one_request() {
    for (history, first) in [(SHORT[0], 1), (SHORT[1], 4), (SHORT[2], 4), (HISTORIES[0], 6)] {
        let exact = |case: &Case| case.reading == (0, 1) && case.cap == LIMIT as usize && case.time_order;
        let case = Case { history, ids: true, ..Case::every().into_iter().find(exact).unwrap() };
        let mut run = Follow::default();
        on(Service::new(case, 0, Vec::new()), |lists, asked, _| (0..3).for_each(|_| run.poll(&lists, asked)));
        assert_eq!(run.requests, [first, 1, 1], "{history:?}");
    }
}

/// The settled reading makes two walks of its own: the earlier polls prove nothing about late events.
#[test]
fn a_poll_from_before_the_lag_does_not_count_as_a_walk_of_the_settled_reading() {
    let caught = first_loss(follow_trusting, of_every_length(|case| case.ids = false), 2, None);
    println!("polls count as the first walk: {caught:?}");
    assert!(caught.is_some(), "not caught");
}

/// The cases in a mixed order: similar cases are neighbours otherwise.
fn mixed(mut cases: Vec<Case>) -> Vec<Case> {
    fastrand::Rng::with_seed(1).shuffle(&mut cases);
    cases
}

/// The first case that loses an event.
fn first_loss(run: Run, cases: Vec<Case>, changes: u32, bug: Option<Bug>) -> Option<Tally> {
    let cases = mixed(cases);
    let tallies = cases.iter().map(|case| explore_all(run, std::slice::from_ref(case), changes, bug));
    tallies.into_iter().find(|tally| tally.lost > 0)
}

#[test]
fn the_check_catches_every_bug_planted_in_the_polls() {
    for (bug, law, changes) in [(Bug::ShortPageEnds, "I1", 0), (Bug::PointUnanchored, "I1", 2)] {
        let caught = first_loss(follow, of_every_length(|case| case.ids = true), changes, Some(bug));
        println!("planted {bug:?}: {caught:?}");
        assert!(caught.is_some_and(|tally| tally.breaks(law)), "planted {bug:?} did not break {law}");
    }
}
