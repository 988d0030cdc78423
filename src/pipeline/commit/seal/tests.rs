use super::*;
use crate::archive::{Body, SessionsMark, StreamRecord, WindowRecord, WindowRows};
use crate::model::{Detail, Digest, EventRow, TeamId, WindowGrid};
use crate::pipeline::sessions::update::COMPLETE;
use std::time::Duration;

const STREAM: Stream = Stream::Connections;

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

/// This number of sealed windows from the first of October on, each with this number of hours and with `events`.
fn state(count: u64, hours: u64, events: u64) -> TeamState {
    let mut state = TeamState::genesis("a", TeamId::from("t"));
    let (begins, length) = (at("2026-10-01T00:00:00Z"), Duration::from_secs(hours * 3_600));
    state.streams.insert(STREAM, StreamRecord { begins: Some(begins), ..StreamRecord::default() });
    for n in 0..count {
        let range = WindowGrid::new(length).window_of(begins.plus(length * u32::try_from(n).unwrap()));
        let mut window = WindowRecord::new(STREAM, range);
        (window.state, window.events) = (WindowState::Sealed, events);
        state.windows.insert((STREAM, range.start), window);
    }
    state
}

fn sizes(state: &TeamState) -> Vec<usize> {
    days(state, STREAM).iter().map(Vec::len).collect()
}

#[test]
fn a_backfill_seals_a_finished_month_when_its_sessions_are_made() {
    let mut state = state(40, 24, 10);
    let mark = |through, until| SessionsMark { rules: SESSION_RULES, through, until };
    let (made_to, until) = (|text: &str| Some(at(text)), Some(at("2026-11-10T00:00:00Z")));
    let other_rules = SessionsMark { rules: SESSION_RULES + 1, ..mark(made_to("2026-11-05T00:00:00Z"), until) };
    for (what, sessions, partition, is_sealed) in [
        ("no sessions", None, Partition::Month, false),
        ("nothing is behind", Some(COMPLETE), Partition::Month, false),
        ("within the month", Some(mark(made_to("2026-10-31T00:00:00Z"), until)), Partition::Month, false),
        ("to its end", Some(mark(made_to("2026-11-01T00:00:00Z"), until)), Partition::Month, true),
        ("beyond it", Some(mark(made_to("2026-11-05T00:00:00Z"), until)), Partition::Month, true),
        ("day by day", Some(mark(made_to("2026-11-05T00:00:00Z"), until)), Partition::Day, false),
        ("made anew", Some(mark(made_to("2026-11-05T00:00:00Z"), None)), Partition::Month, false),
        ("by other rules", Some(other_rules), Partition::Month, false),
    ] {
        state.sessions = sessions;
        let october = SealUnit::Month.of(at("2026-10-01T00:00:00Z"));
        assert_eq!(final_month(&state, partition), is_sealed.then_some((STREAM, october)), "{what}");
    }
    state.sessions = Some(mark(made_to("2026-11-05T00:00:00Z"), until));
    state.sealed_months.insert((STREAM, at("2026-10-01T00:00:00Z")));
    assert_eq!(final_month(&state, Partition::Month), None, "it is sealed, and November is not over");
}

#[test]
fn quiet_days_are_sealed_by_month_and_busy_days_one_by_one() {
    assert_eq!(sizes(&state(100, 24, 500)), [31, 31, 31, 7]);
    assert_eq!(sizes(&state(5, 24, 300_000)), [3, 2]);
    assert_eq!(sizes(&state(3, 24, 10_000_000)), [1, 1, 1]);
    assert_eq!(sizes(&state(3, 24, u64::MAX)), [1, 1, 1]);
    assert_eq!(sizes(&state(0, 24, 0)), [] as [usize; 0]);
}

#[test]
fn a_day_is_final_when_its_windows_and_all_earlier_windows_are_final() {
    let mut of_hours = state(24 * 5 - 1, 1, 10);
    assert_eq!(sizes(&of_hours), [4], "the last hour of the fifth day is not read");
    let third = at("2026-10-03T07:00:00Z");
    of_hours.windows.get_mut(&(STREAM, third)).unwrap().state = WindowState::Settled;
    assert_eq!(sizes(&of_hours), [2]);
    of_hours.windows.remove(&(STREAM, third)).unwrap();
    assert_eq!(sizes(&of_hours), [2], "a hole is not final");
}

#[test]
fn a_sealed_month_is_not_sealed_again() {
    let mut state = state(40, 24, 10);
    state.sealed_days.insert((STREAM, at("2026-11-01T00:00:00Z")));
    state.sealed_days.insert((Stream::Activity, at("2026-11-02T00:00:00Z")));
    assert_eq!(sizes(&state), [31, 8]);
    assert_eq!(final_units(&state, STREAM, SealUnit::Month).len(), 1, "November is not over");
    state.sealed_months.insert((STREAM, at("2026-10-01T00:00:00Z")));
    assert_eq!(sizes(&state), [8]);
    assert!(final_units(&state, STREAM, SealUnit::Month).is_empty());
    assert!(final_units(&state, Stream::Activity, SealUnit::Day).is_empty());
}

/// A file of windows from one day of November to another.
fn add_file(state: &mut TeamState, days: [u32; 2], rows: u64) {
    let hash = format!("{:016x}", state.files.len());
    let date = format!("2026-11-{:02}", days[0]);
    let time = date.replace('-', "");
    let path = format!("tables/connections/team=t/month=2026-11/{time}t000000z-window-{hash}.parquet");
    let file = FileEntry {
        path: path.clone(),
        dataset: STREAM.into(),
        role: FileRole::Window,
        rows,
        bytes: 1,
        sha256: Digest::of(b""),
        rows_digest: Digest::of(b""),
        first: Some(at(&format!("{date}T01:00:00Z"))),
        last: Some(at(&format!("2026-11-{:02}T23:00:00Z", days[1]))),
    };
    state.files.insert(path, file);
}

#[test]
fn small_files_of_final_windows_are_joined_when_a_month_has_several() {
    let joined = |state: &TeamState| small_files(state, STREAM).iter().map(Vec::len).collect::<Vec<_>>();
    // All of October and ten days of November.
    let mut quiet = state(41, 24, 10);
    for day in 1..=6 {
        add_file(&mut quiet, [day, day], 10);
    }
    assert_eq!(joined(&quiet), [] as [usize; 0], "few");
    add_file(&mut quiet, [7, 7], SMALL_FILE_ROWS + 1);
    assert_eq!(joined(&quiet), [] as [usize; 0], "a large file is not counted");
    add_file(&mut quiet, [12, 12], 10);
    assert_eq!(joined(&quiet), [] as [usize; 0], "a file of a window that is read again is not counted");
    add_file(&mut quiet, [8, 8], SMALL_FILE_ROWS);
    assert_eq!(joined(&quiet), [7]);
    quiet.streams.clear();
    assert_eq!(joined(&quiet), [] as [usize; 0], "the stream has no record");
}

#[test]
fn days_that_share_a_file_are_sealed_with_their_month() {
    let mut state = state(41, 24, 10);
    state.sealed_months.insert((STREAM, at("2026-10-01T00:00:00Z")));
    assert_eq!(sizes(&state), [10]);
    add_file(&mut state, [3, 3], 10);
    assert_eq!(sizes(&state), [10]);
    add_file(&mut state, [4, 8], 10);
    assert_eq!(sizes(&state), [5]);
}

#[test]
fn a_busy_day_is_sealed_by_the_commit_that_reads_all_of_it() {
    let day = SealUnit::Day.of(at("2026-10-05T00:00:00Z"));
    let halves: [Range; 2] = day.halves().unwrap().into();
    let row = EventRow {
        team_id: "t".into(),
        event_id: "e".into(),
        time: day.start,
        event_type: "kind".into(),
        revision: 1,
        first_seen_at: day.end,
        redacted: false,
        raw: bytes::Bytes::new().into(),
        served_digest: None,
        detail: Detail::Billing { payload: None },
    };
    let draft = |windows: &[(Range, WindowState)], rows: usize| Draft {
        body: Body {
            windows: windows
                .iter()
                .map(|(range, state)| WindowRecord { state: *state, ..WindowRecord::new(STREAM, *range) })
                .collect(),
            ..Body::default()
        },
        rows: vec![WindowRows::new(STREAM, windows[0].0, vec![row.clone(); rows], true)],
        ..Draft::default()
    };
    let sealed = |ranges: &[Range]| ranges.iter().map(|range| (*range, WindowState::Sealed)).collect::<Vec<_>>();
    let empty = TeamState::genesis("a", TeamId::from("t"));
    let is_busy = |state: &TeamState, windows: &[(Range, WindowState)], rows| {
        let days = busy_days(state, &draft(windows, rows));
        assert!(days.is_empty() || days == [(STREAM, day)]);
        !days.is_empty()
    };
    assert!(is_busy(&empty, &sealed(&[day]), BUSY_DAY_ROWS) && is_busy(&empty, &sealed(&halves), BUSY_DAY_ROWS));
    assert!(!is_busy(&empty, &sealed(&[day]), BUSY_DAY_ROWS - 1), "a quiet day");
    assert!(!is_busy(&empty, &sealed(&halves[..1]), BUSY_DAY_ROWS), "half of the day");
    assert!(!is_busy(&empty, &[(day, WindowState::Settled)], BUSY_DAY_ROWS), "re-scans are due");
    assert!(!is_busy(&state(5, 24, 1), &sealed(&[day]), BUSY_DAY_ROWS), "an earlier commit holds a part of it");
}
