//! What is final becomes one file: a month, or before that each of its days.

use std::collections::BTreeMap;

use crate::archive::{
    ArchiveError, DataPath, Draft, FileEntry, FileRole, SealUnit, TeamState, TeamWriter, WindowState, month_of,
};
use crate::config::Partition;
use crate::correlate::SESSION_RULES;
use crate::model::{Instant, Range, Stream};

use crate::pipeline::plan::coverage::windows_in_a_row;

/// Months that one commit seals: written side by side.
pub const MONTHS_SEALED_AT_ONCE: usize = 4;
/// Days that one commit seals: of a backfill a month's, written side by side.
const DAYS_SEALED_AT_ONCE: usize = 31;
/// Events of the days that one commit seals, unless one day alone has more: what it replaces is taken away when all of it
/// is written, so that the disk holds both meanwhile.
const DAYS_EVENTS_MAX: u64 = 1_000_000;
/// Files of final windows that are worth a commit that makes them one: of windows of a day, a week's.
const JOINED_FILES_MIN: usize = 7;
/// Larger files stay what they are until their month is sealed: a question takes longer to read one than to open it.
const SMALL_FILE_ROWS: u64 = 20_000;

/// Seals a month that a backfill has left behind, beside the reading. What keeps it from being sealed is told when all is read:
/// it must keep no event from the archive.
///
/// # Errors
/// When the writer is of no more use.
pub fn seal_passed(writer: &mut TeamWriter, partition: Partition, now: Instant) -> Result<(), ArchiveError> {
    let Some(month) = passed(writer.state(), partition) else { return Ok(()) };
    let team = writer.state().team_id.clone();
    match writer.commit(Draft { seal_months: vec![month], ..Draft::default() }, now) {
        Ok(done) => tracing::debug!(%team, ?month, ?done, "sealed"),
        Err(error) if error.needs_reopen() => return Err(error),
        Err(error) => tracing::warn!(%team, ?month, %error, "not sealed; tried again when all is read"),
    }
    Ok(())
}

/// The first month that is final, and whose sessions are made, of those that a backfill has left behind. Days are sealed when
/// all is read.
fn passed(state: &TeamState, partition: Partition) -> Option<(Stream, Range)> {
    let through = state.sessions.filter(|mark| mark.rules == SESSION_RULES && mark.until.is_some())?.through?;
    let months = || final_units(state, Stream::Connections, SealUnit::Month);
    let passed = (partition == Partition::Month).then(months)?.into_iter().find(|month| month.end <= through)?;
    Some((Stream::Connections, passed))
}

/// The days to be sealed, by commits.
pub fn days(state: &TeamState, stream: Stream) -> Vec<Vec<Range>> {
    let mut commits: Vec<Vec<Range>> = Vec::new();
    let mut events = 0;
    for day in final_units(state, stream, SealUnit::Day) {
        let windows = state.windows.range((stream, day.start)..(stream, day.end));
        let of_day = windows.fold(0, |sum: u64, (_, window)| sum.saturating_add(window.events));
        events = of_day.saturating_add(events);
        match commits.last_mut() {
            Some(days) if days.len() < DAYS_SEALED_AT_ONCE && events <= DAYS_EVENTS_MAX => days.push(day),
            _ => {
                commits.push(vec![day]);
                events = of_day;
            }
        }
    }
    commits
}

/// Small files of final windows, by month: of months that have several. The month is sealed later, and has few files until
/// then.
pub fn small_files(state: &TeamState, stream: Stream) -> Vec<Vec<String>> {
    let is_small = |file: &&FileEntry| file.role == FileRole::Window && file.rows <= SMALL_FILE_ROWS;
    let files: Vec<&FileEntry> = state.files_of(stream.into()).filter(is_small).collect();
    if files.len() < JOINED_FILES_MIN {
        return Vec::new();
    }
    let Some(edge) = final_edge(state, stream) else { return Vec::new() };
    let mut months: BTreeMap<Instant, Vec<String>> = BTreeMap::new();
    for file in files {
        let start = DataPath::parse(&file.path).map(|data| data.start);
        if let Some(start) = start.filter(|start| *start < edge) {
            months.entry(month_of(start).start).or_default().push(file.path.clone());
        }
    }
    months.into_values().filter(|paths| paths.len() >= JOINED_FILES_MIN).collect()
}

/// Where the windows end that are sealed, from the first one on.
fn final_edge(state: &TeamState, stream: Stream) -> Option<Instant> {
    let begins = state.streams.get(&stream)?.begins?;
    let windows = windows_in_a_row(state, stream, begins).take_while(|window| window.state == WindowState::Sealed);
    Some(windows.last().map_or(begins, |window| window.range.end))
}

/// Months, or days, that lie behind the first window that is not sealed, and are not sealed themselves. A day whose windows
/// share a file with others is sealed with its month.
pub fn final_units(state: &TeamState, stream: Stream, unit: SealUnit) -> Vec<Range> {
    let Some(mut edge) = state.streams.get(&stream).and_then(|record| record.begins) else { return Vec::new() };
    let mut units: Vec<Range> = Vec::new();
    for window in windows_in_a_row(state, stream, edge) {
        if window.state != WindowState::Sealed {
            break;
        }
        if units.last().is_none_or(|last| !last.owns(edge)) {
            units.push(unit.of(edge));
        }
        edge = window.range.end;
    }
    let is_open = |range: &Range| range.end <= edge && !state.is_sealed(unit, stream, range.start);
    units.retain(|range| is_open(range) && !(unit == SealUnit::Day && is_shared(state, stream, *range)));
    units
}

/// Whether windows of this day share a file with those of another.
fn is_shared(state: &TeamState, stream: Stream, day: Range) -> bool {
    let windows = state.files_of(stream.into()).filter(|file| file.role == FileRole::Window);
    let mut times = windows.filter_map(|file| Some((SealUnit::Day.of(DataPath::parse(&file.path)?.start), file.last?)));
    times.any(|(first, last)| {
        first.start <= day.start
            && day.start <= last
            && first.end <= last
            && state.windows.range((stream, first.end)..=(stream, last)).next().is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{SessionsMark, StreamRecord};
    use crate::model::{Digest, TeamId, WindowGrid};
    use crate::pipeline::commit::change::fresh;
    use crate::pipeline::sessions::update::COMPLETE;
    use std::time::Duration;

    const STREAM: Stream = Stream::Connections;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    /// So many sealed windows of so many hours from the first of October on, each with `events`.
    fn state(count: u64, hours: u64, events: u64) -> TeamState {
        let mut state = TeamState::genesis("a", TeamId::from("t"));
        let (begins, length) = (at("2026-10-01T00:00:00Z"), Duration::from_secs(hours * 3_600));
        state.streams.insert(STREAM, StreamRecord { begins: Some(begins), ..StreamRecord::default() });
        for n in 0..count {
            let range = WindowGrid::new(length).window_of(begins.plus(length * u32::try_from(n).unwrap()));
            let mut window = fresh(STREAM, range);
            (window.state, window.events) = (WindowState::Sealed, events);
            state.windows.insert((STREAM, range.start), window);
        }
        state
    }

    fn sizes(state: &TeamState) -> Vec<usize> {
        days(state, STREAM).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_backfill_seals_a_month_that_it_has_left_behind_once_its_sessions_are_made() {
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
            assert_eq!(passed(&state, partition), is_sealed.then_some((STREAM, october)), "{what}");
        }
        state.sessions = Some(mark(made_to("2026-11-05T00:00:00Z"), until));
        state.sealed_months.insert((STREAM, at("2026-10-01T00:00:00Z")));
        assert_eq!(passed(&state, Partition::Month), None, "it is sealed, and November is not over");
    }

    #[test]
    fn quiet_days_are_sealed_a_month_at_a_time_and_busy_ones_one_by_one() {
        assert_eq!(sizes(&state(100, 24, 500)), [31, 31, 31, 7]);
        assert_eq!(sizes(&state(5, 24, 300_000)), [3, 2]);
        assert_eq!(sizes(&state(3, 24, 10_000_000)), [1, 1, 1]);
        assert_eq!(sizes(&state(3, 24, u64::MAX)), [1, 1, 1]);
        assert_eq!(sizes(&state(0, 24, 0)), [] as [usize; 0]);
    }

    #[test]
    fn a_day_is_final_when_all_its_windows_are_and_all_before_it() {
        let mut of_hours = state(24 * 5 - 1, 1, 10);
        assert_eq!(sizes(&of_hours), [4], "the last hour of the fifth day is not read");
        let third = at("2026-10-03T07:00:00Z");
        of_hours.windows.get_mut(&(STREAM, third)).unwrap().state = WindowState::Settled;
        assert_eq!(sizes(&of_hours), [2]);
        of_hours.windows.remove(&(STREAM, third)).unwrap();
        assert_eq!(sizes(&of_hours), [2], "a hole is not final");
    }

    #[test]
    fn what_is_sealed_is_not_sealed_again() {
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

    /// A file of windows from one day of November on, to another.
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
        assert_eq!(joined(&quiet), [] as [usize; 0], "a large one is not counted");
        add_file(&mut quiet, [12, 12], 10);
        assert_eq!(joined(&quiet), [] as [usize; 0], "nor is one of a window that is read again");
        add_file(&mut quiet, [8, 8], SMALL_FILE_ROWS);
        assert_eq!(joined(&quiet), [7]);
        quiet.streams.clear();
        assert_eq!(joined(&quiet), [] as [usize; 0], "nothing is known of the stream");
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
}
