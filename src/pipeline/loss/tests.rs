use super::*;
use crate::archive::WindowState;

const LAG: Duration = Duration::from_secs(900);
const DAY: u64 = 86_400;

fn at(seconds: i64) -> Instant {
    Instant::from_seconds(1_700_006_400 + seconds)
}

fn begins(from: i64, since: i64) -> Finding {
    let finding = Finding::new(Some(Stream::Connections), FindingKind::ArchiveBegins, "", "", at(since));
    Finding { from: Some(at(from)), ..finding }
}

/// The archive begins a day before its backfill, which began at 0.
fn history(points: &[i64]) -> ReadHistory {
    let mut history = ReadHistory { lag: LAG, ..ReadHistory::default() };
    history.note_findings([begins(-86_400, 0)].iter());
    history.points.push(ReadPoint { at: at(0), read_to: at(-86_400), listed_at: None });
    history.points.extend(points.iter().map(|p| ReadPoint { at: at(*p), read_to: at(*p), listed_at: None }));
    history
}

fn removal(seconds: i64) -> Removal {
    let seen_until = Some(at(seconds - 1));
    Removal { subject: "d".to_owned(), at: at(seconds), seen_until, added_at: None }
}

fn confirmed(range: (i64, i64), ended: i64, state: WindowState) -> WindowRecord {
    let mut window = WindowRecord::new(Stream::Connections, Range { start: at(range.0), end: at(range.1) });
    (window.state, window.confirmed_at) = (state, Some(at(ended)));
    if state == WindowState::Provisional {
        window.confirmed = vec![window.range];
    }
    window
}

fn spans(found: &[Finding], kind: FindingKind) -> Vec<(i64, i64)> {
    let seconds = |time: Option<Instant>| time.unwrap().seconds() - at(0).seconds();
    found.iter().filter(|f| f.kind == kind).map(|f| (seconds(f.from), seconds(f.to))).collect()
}

fn gaps(history: &ReadHistory, removal: &Removal) -> Vec<(i64, i64)> {
    let found = history.losses(removal, at(9_999));
    assert!(found.iter().all(|finding| finding.kind == FindingKind::Gap), "{found:?}");
    spans(&found, FindingKind::Gap)
}

#[test]
fn a_gap_begins_at_the_first_time_at_which_events_could_still_appear() {
    let history = history(&[3_600, 7_200]);
    let removal = removal(7_800);
    assert_eq!(gaps(&history, &removal), [(6_300, 7_800)]);
    let reason = &history.losses(&removal, at(9_999))[0].reason;
    assert!(reason.contains(&format!("from {} on were not read", at(7_200))), "{reason}");
}

/// A computer that was added after the last reading has no events from before that reading.
#[test]
fn a_gap_begins_no_earlier_than_the_read_point_before_the_computer_was_added() {
    let history = history(&[3_600, 7_000, 7_200]);
    for (added, expected) in [(7_300, 7_200), (7_100, 7_000), (6_000, 6_300)] {
        let removal = Removal { added_at: Some(at(added)), ..removal(7_800) };
        assert_eq!(gaps(&history, &removal), [(expected, 7_800)], "added at {added}");
    }
}

#[test]
fn a_reading_in_the_same_second_as_the_removal_may_have_missed_the_computer() {
    let history = history(&[3_600, 7_200]);
    assert_eq!(gaps(&history, &Removal { at: at(7_201), ..removal(7_200) }), [(2_700, 7_201)]);
}

/// The service's clock seems to go back between the start and the end of the backfill.
#[test]
fn a_first_reading_counts_even_if_the_clock_seems_to_go_back_during_it() {
    let mut first = history(&[]);
    first.points.push(ReadPoint::ended(at(-1), at(0)));
    assert_eq!(gaps(&first, &removal(300)), [(-900, 300)]);
}

#[test]
fn during_the_first_reading_the_gap_is_everything_unconfirmed() {
    let mut history = history(&[]);
    assert_eq!(gaps(&history, &removal(60)), [(-86_400, 60)]);
    history.note_window(&confirmed((-86_400, -60_000), 30, WindowState::Settled));
    history.note_window(&confirmed((-50_000, -40_000), 31, WindowState::Provisional));
    history.note_window(&confirmed((-40_000, -30_000), 61, WindowState::Settled));
    assert_eq!(gaps(&history, &removal(60)), [(-60_000, -50_000), (-40_000, 60)]);
    let reasons = history.losses(&removal(60), at(9_999));
    assert!(reasons.iter().all(|gap| gap.reason.ends_with("of this time were not read")), "{reasons:?}");
}

/// The lists of these ranges changed at each read, or the ranges were read empty. Read points do not wait for them.
#[test]
fn a_range_that_was_not_read_whole_lies_in_the_gap_of_a_later_removal() {
    for kind in [FindingKind::UnstableWindow, FindingKind::Silence] {
        let doubt = |range: (i64, i64), found: i64| {
            let range = Range { start: at(range.0), end: at(range.1) };
            Finding::new(Some(Stream::Connections), kind, "a range", "", at(found)).over(range)
        };
        let backfill = (-50_000, -40_000);
        let mut open = history(&[3_600, 7_200]);
        open.note_findings([doubt(backfill, 0)].iter());
        assert_eq!(gaps(&open, &removal(7_800)), [backfill, (6_300, 7_800)]);
        let reason = &open.losses(&removal(7_800), at(9_999))[0].reason;
        assert!(reason.ends_with("of this time were not read"), "{reason}");
        open.note_window(&confirmed(backfill, 7_900, WindowState::Settled));
        assert_eq!(gaps(&open, &removal(7_800)), [backfill, (6_300, 7_800)], "it was read after the removal");
        assert_eq!(gaps(&open, &removal(8_000)), [(6_300, 8_000)], "it was read before the removal");

        // The points of the open window had read its events before the reading that failed.
        let mut late = history(&[3_600, 7_200, 20_000]);
        late.note_findings([doubt((3_000, 8_000), 20_000)].iter());
        assert_eq!(gaps(&late, &removal(20_500)), [(6_300, 8_000), (19_100, 20_500)]);
        // An open window was read empty, and later read whole.
        let mut recovered = history(&[3_600, 7_200]);
        recovered.note_findings([doubt((0, 86_400), 3_600)].iter());
        assert_eq!(gaps(&recovered, &removal(7_800)), [(6_300, 7_800)]);
    }
}

#[test]
fn a_recorded_loss_is_not_recorded_again() {
    let mut history = history(&[3_600]);
    let first = history.losses(&removal(4_000), at(9_999));
    history.note_findings(first.iter());
    assert!(history.losses(&removal(4_000), at(9_999)).is_empty());
    assert!(history.losses(&removal(3_900), at(9_999)).is_empty(), "activity reports it later, with an earlier date");
    assert_eq!(gaps(&history, &removal(5_000)), [(4_000, 5_000)], "it was added and removed again");
    assert_eq!(gaps(&history, &Removal { subject: "e".to_owned(), ..removal(4_000) }), [(2_700, 4_000)]);
}

/// Activity shows the earlier of two removals after the later one.
#[test]
fn an_earlier_removal_of_the_same_subject_has_its_own_gap() {
    let mut history = history(&[36_000, 39_600]);
    let later = history.losses(&removal(41_400), at(99_999));
    assert_eq!(spans(&later, FindingKind::Gap), [(38_700, 41_400)]);
    history.note_findings(later.iter());
    let earlier = history.losses(&removal(39_000), at(99_999));
    assert_eq!(spans(&earlier, FindingKind::Gap), [(35_100, 39_000)]);
    history.note_findings(earlier.iter());
    assert!([39_000, 41_400].iter().all(|at| gaps(&history, &removal(*at)).is_empty()));
    // Later on, the archive no longer holds the read points of that time.
    history.points = vec![ReadPoint { at: at(90_000), read_to: at(90_000), listed_at: None }];
    assert!([38_900, 39_000, 41_400].iter().all(|at| gaps(&history, &removal(*at)).is_empty()));
}

#[test]
fn a_removal_before_the_first_reading_is_no_gap() {
    let mut history = history(&[3_600]);
    let found = history.losses(&removal(-100), at(9_999));
    assert_eq!(spans(&found, FindingKind::RemovedBefore), [(-86_400, -100)]);
    assert_eq!(found.len(), 1);
    assert!(history.losses(&removal(-90_000), at(9_999)).is_empty(), "before the archive's beginning");
    // The archive is extended to earlier times. Of these times, the events of all earlier removals are missing.
    history.note_findings(found.iter());
    history.note_findings([begins(-100_000, 5_000)].iter());
    let found = [removal(-100), removal(4_000), removal(-90_000)].map(|r| history.losses(&r, at(9_999)));
    let before = found.iter().map(|found| spans(found, FindingKind::RemovedBefore)).collect::<Vec<_>>();
    assert_eq!(before, [vec![(-100_000, -86_400)], vec![(-100_000, -86_400)], vec![(-100_000, -90_000)]]);
    assert_eq!(spans(&found[1], FindingKind::Gap), [(2_700, 4_000)]);
}

#[test]
fn connections_that_are_not_read_cause_no_gap() {
    assert!(ReadHistory::default().losses(&removal(60), at(9_999)).is_empty());
}

#[test]
fn a_gap_of_an_unknown_computer_says_that_activity_does_not_name_it() {
    let removal = Removal { subject: UNKNOWN_COMPUTER.to_owned(), ..removal(7_800) };
    let found = history(&[7_200]).losses(&removal, at(9_999));
    assert!(found[0].reason.starts_with("a computer that activity does not name was removed"), "{found:?}");
}

fn behind(history: &ReadHistory, (span, longest): (u64, u64), now: i64) -> Vec<(i64, i64)> {
    let unread = history.unread_behind(Duration::from_secs(span), Duration::from_secs(longest), at(now));
    let seconds = |time: Instant| time.seconds() - at(0).seconds();
    unread.iter().map(|range| (seconds(range.start), seconds(range.end))).collect()
}

/// With a lag as long as the span, a late event can always be unread when its time leaves the span.
#[test]
fn a_lag_as_long_as_the_span_leaves_no_gap_at_each_reading() {
    for lag in [DAY, 7 * DAY] {
        let read = ReadHistory { lag: Duration::from_secs(lag), ..history(&[3_600, 86_400]) };
        assert_eq!(behind(&read, (DAY, DAY), 86_400 + 21_600), [], "{lag}");
        assert_eq!(behind(&read, (DAY, DAY), 2 * 86_400), [(43_200, 86_400)], "an outage: {lag}");
    }
}

#[test]
fn what_no_reading_vouches_for_falls_behind() {
    let mut read = history(&[3_600]);
    assert_eq!(behind(&read, (DAY, DAY), 86_400), []);
    assert_eq!(behind(&read, (1_800, DAY), 3_599), [], "the service's whole second seems earlier than the last point");
    assert_eq!(behind(&read, (DAY, DAY), 86_400 + 3_600), [(2_700, 3_600)], "late events");
    read.note_findings(
        [Finding::new(Some(Stream::Connections), FindingKind::Silence, "", "", at(3_000))
            .over(Range { start: at(0), end: at(1_800) })]
        .iter(),
    );
    assert_eq!(behind(&read, (DAY, DAY), 86_400 + 3_600), [(0, 1_800), (2_700, 3_600)], "a doubtful answer");
    read.note_window(&confirmed((0, 3_600), 5_000, WindowState::Settled));
    assert_eq!(behind(&read, (DAY, DAY), 86_400 + 3_600), []);
    // A backfill is extended, and the extension is not read.
    read.note_findings([begins(-200_000, 4_000)].iter());
    assert_eq!(behind(&read, (DAY, 3 * DAY), 10_000), [(-200_000, -86_400)]);
    assert_eq!(behind(&read, (DAY, DAY), 10_000), [], "no reading reached it");
    let told = Finding::new(Some(Stream::Connections), FindingKind::Gap, PLAN_SPAN, "", at(9_000));
    read.note_findings([told.over(Range { start: at(-200_000), end: at(-86_400) })].iter());
    assert_eq!(behind(&read, (DAY, 3 * DAY), 20_000), [], "each loss is recorded once");
}

#[test]
fn a_first_backfill_may_be_a_little_behind() {
    let begun = history(&[]);
    assert_eq!(behind(&begun, (86_400, 86_400), 3_600), []);
    assert_eq!(behind(&begun, (86_400, 86_400), 3_601), [(-86_400, -82_799)]);
    assert_eq!(behind(&begun, (43_200, 86_400), 0), [(-86_400, -43_200)], "the plan's span became shorter");
}
