//! The reader of an open window under the same interleavings: looks one after another, and then the settled reading.
//!
//! The looks and the settled reading together lose nothing and double nothing. A look alone is provisional, but a read
//! point stands on it: of events that have ids it loses none that stood in the list throughout, unless the event came
//! late, which is to a place before the list's end.

use super::*;

/// Looks at the open window before it is settled.
const LOOKS: u32 = 3;
/// Lists so short that one page, or none, holds them.
const SHORT: [&[Event]; 3] = [&[], &[(1, 1)], &[(1, 1), (7, 2)]];

/// What the archive and the law know of one run.
#[derive(Default)]
struct Follow {
    got: BTreeMap<Digest, u32>,
    point: Option<(u64, Vec<[u8; 16]>)>,
    accused: bool,
    /// Events that a look should have brought and did not.
    missed: bool,
    requests: Vec<u64>,
}

impl Follow {
    /// One look at the open window, from where the last one stood.
    fn look(&mut self, lists: Lists<'_>, asked: Asked) {
        let start = TailStart::of(self.point.take(), self.got.values().map(|count| u64::from(*count)).sum());
        let mut reader = TailReader::new(lists, asked, start, usize::MAX);
        let mut requests = 0;
        while let Some(chunk) = reader.next().now_or_never().expect("always ready").expect("no request fails") {
            self.accused |= is_accused(chunk.stats);
            requests += chunk.stats.requests;
            self.keep(chunk.events);
            self.point = chunk.point.filter(|(offset, _)| *offset > 0);
        }
        self.requests.push(requests);
    }

    /// The settled reading. With `is_known`, the looks count as its first walk.
    fn settle(&mut self, lists: Lists<'_>, asked: Asked, walk_max: u64, is_known: bool) {
        let known = || self.got.iter().flat_map(|(digest, count)| (0..*count).map(|_| *digest)).collect();
        let mut reader = SpanReader::new(lists, asked, walk_max, is_known.then(known));
        while let Some(segment) = reader.next().now_or_never().expect("always ready").expect("no request fails") {
            assert_eq!(segment.outcome, Outcome::Confirmed);
            self.accused |= is_accused(segment.stats);
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
    let source = Source(Mutex::new(Service::new(case, changes, prefix)));
    let mut run = Follow::default();
    on(&source, |lists, asked| {
        for _ in 0..LOOKS {
            let before = source.0.lock().unwrap().events.clone();
            run.look(lists, asked);
            let service = source.0.lock().unwrap();
            let stayed = service.events.iter().filter(|event| owned(event) && !service.late.contains(event));
            run.missed |= case.ids && run.lacks(case, stayed.filter(|event| before.contains(event)));
        }
        run.settle(lists, asked, case.walk_max, is_known);
    });
    let service = source.0.into_inner().unwrap();
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

/// The cases over lists so short that a look at them is one request, and over the others.
fn of_every_length(change: impl Fn(&mut Case)) -> Vec<Case> {
    let mut cases = Case::every();
    let shapes: Vec<Case> = cases.iter().filter(|case| case.history == HISTORIES[0]).copied().collect();
    cases.extend(SHORT.iter().flat_map(|history| shapes.iter().map(|case| Case { history, ..*case })));
    cases.iter_mut().for_each(change);
    cases
}

#[test]
fn looks_at_an_open_window_and_its_settled_reading_lose_nothing_and_double_nothing() {
    let mut runs = 0;
    for (ids, claim, changes) in [(false, None, 2), (true, None, 2), (true, Some(false), 1), (false, Some(true), 1)] {
        let tally = explore_all(follow, &of_every_length(|case| (case.ids, case.claim) = (ids, claim)), changes, None);
        println!(
            "{LOOKS} looks and a settled reading, {changes} changes, ids {ids}, hasMoreEvents {claim:?}: {tally:?}"
        );
        assert_eq!((tally.lost, tally.doubled), (0, 0), "ids {ids}, {claim:?}");
        assert_eq!(tally.accused > 0, claim.is_some(), "a claim that was true when it was made is no lie");
        runs += tally.runs;
    }
    assert!(runs >= 1_000_000, "only {runs} interleavings");
}

/// What a look costs where nothing changes, by the events that the list holds.
#[test]
fn a_look_at_a_list_that_holds_still_is_one_request_once_it_is_known() {
    for (history, first) in [(SHORT[0], 1), (SHORT[1], 4), (SHORT[2], 4), (HISTORIES[0], 6)] {
        let case = Case { history, ids: true, ..Case::every()[12 + 16 + 32] };
        let source = Source(Mutex::new(Service::new(case, 0, Vec::new())));
        let mut run = Follow::default();
        on(&source, |lists, asked| (0..LOOKS).for_each(|_| run.look(lists, asked)));
        assert_eq!(run.requests, [first, 1, 1], "{history:?}");
    }
}

/// The settled reading is two walks of its own: what the looks brought says nothing of an event that came late.
#[test]
fn a_look_that_began_before_the_lag_is_no_first_walk_of_the_settled_reading() {
    let caught = first_loss(follow_trusting, &of_every_length(|case| case.ids = false), 2, None);
    println!("the looks taken for the first walk: {caught:?}");
    assert!(caught.is_some(), "not caught");
}

/// The first case in which something is lost.
fn first_loss(run: Run, cases: &[Case], changes: u32, bug: Option<Bug>) -> Option<Tally> {
    let tallies = cases.iter().map(|case| explore_all(run, std::slice::from_ref(case), changes, bug));
    tallies.into_iter().find(|tally| tally.lost > 0)
}

#[test]
fn every_bug_planted_in_the_looks_is_caught() {
    for (bug, changes) in [(Bug::ShortPageEnds, 0), (Bug::PointUnanchored, 2)] {
        let caught = first_loss(follow, &of_every_length(|case| case.ids = true), changes, Some(bug));
        println!("planted {bug:?}: {caught:?}");
        assert!(caught.is_some(), "planted {bug:?} was not caught");
    }
}
