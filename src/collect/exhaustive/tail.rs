//! The reader of an open window under the same interleavings: it accuses no honest service.

use super::*;

/// One run of the reader of an open window: what it brings is provisional, and only what it says of the service counts.
fn follow(case: Case, changes: u32, prefix: Vec<usize>, tally: &mut Tally) -> Vec<(usize, usize)> {
    let (accused, service) = read(case, changes, prefix, |lists, asked| {
        let mut reader = TailReader::new(lists, asked, None, usize::MAX);
        let mut accused = false;
        while let Some(chunk) = reader.next().now_or_never().expect("always ready").expect("no request fails") {
            accused |= is_accused(chunk.stats);
        }
        accused
    });
    tally.add(Tally { runs: 1, accused: accused.into(), ..Tally::default() });
    service.trace
}

#[test]
fn a_list_that_changes_while_its_tail_is_read_makes_no_liar_of_the_service() {
    for claim in [None, Some(false), Some(true)] {
        let tally = explore_all(follow, &with(|case| (case.ids, case.claim) = (true, claim)), 2, None);
        println!("the tail, up to two changes, hasMoreEvents {claim:?}: {tally:?}");
        assert_eq!(tally.accused > 0, claim.is_some(), "{claim:?}");
    }
}
