//! Bugs planted in the walk, and the law that catches each.

use super::*;

/// Without anchors, two equal walks lose events when three changes hit twins. With anchors, they lose none.
#[test]
fn without_anchors_three_changes_among_twins_lose_events() {
    let cases: Vec<Case> =
        Case::every().into_iter().filter(|case| case.time_order && case.history[0] == (0, 1)).collect();
    let anchored = explore_all(run, &cases[..2], 3, None);
    let (bug, law) = (Bug::NoAnchors, "I1");
    let planted = explore_all(run, &cases[..2], 3, Some(bug));
    println!("three changes: anchored {anchored:?}, planted {planted:?}");
    assert_eq!(anchored.lost, 0);
    assert!(planted.breaks(law), "planted {bug:?} did not break {law} in {} runs", planted.runs);
}

#[test]
fn every_planted_bug_is_caught() {
    let lying = with(|case| case.claim = Some(false));
    for (bug, law, cases, changes) in [
        (Bug::NoPad, "I1", Case::every(), 0),
        (Bug::TrustHasMore, "I1", lying, 0),
        (Bug::SetDedupe, "I1", Case::every(), 0),
        (Bug::SingleWalk, "I4", Case::every(), 1),
    ] {
        let tally = explore_all(run, &cases, changes, Some(bug));
        println!("planted {bug:?}: {tally:?}");
        assert!(tally.breaks(law), "planted {bug:?} did not break {law} in {} runs", tally.runs);
    }
}
