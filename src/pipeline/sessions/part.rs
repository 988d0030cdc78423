//! Sessions catch up with the events: after a backfill, whose commits put them off, where an earlier program made none or made
//! them by other rules, and where any of this was interrupted. They are made from the archive alone, part of time by part
//! of time, each part a commit of its own that says how far it came.
//!
//! The events of a part are read whole, and of each session that they touch also those of before the part: what the
//! archive's session says was made of them. So it does no harm when an event is met in two parts, or comes again.
//!
//! While a backfill goes on, a part is [made](crate::pipeline::sessions::making) beside its commits, and goes with one of them.

use std::collections::HashMap;
use std::time::Duration;

use rayon::prelude::*;

use crate::archive::{
    ArchiveError, Committed, ConnectionColumns, Dataset, Draft, FileEntry, SessionsDraft, SessionsMark, SessionsReader,
    TeamState, TeamWriter, WindowState,
};
use crate::correlate::{SESSION_RULES, is_at_rest, is_connection, session_from};
use crate::model::{Instant, KeptConnectionEvent, Range, SessionRow, Stream};

use crate::pipeline::sessions::update::{
    COMPLETE, DAY, Remembered, changed, connection_times, held, known_events, no_connection_id,
};

/// Events that one commit makes sessions of, about. They and their sessions take half a kilobyte of memory each; each part reads
/// and writes the open sessions again: of a million events over ninety days the whole backfill took 4.37 s with parts of 40,000,
/// 4.25 with 60,000 and 4.12 with 90,000, which take the more memory.
pub const EVENTS_TARGET: u64 = 50_000;
/// Fewer sessions are not worth a thread.
const SESSIONS_A_THREAD_MIN: usize = 1_000;

const HOUR: Duration = Duration::from_secs(3_600);

/// Makes the sessions of the next part of about so many events, in one commit.
///
/// # Errors
/// When the archive cannot be read or written.
pub fn catch_up_by(
    writer: &mut TeamWriter,
    remembered: &mut Remembered,
    events: u64,
    service_now: Instant,
    now: Instant,
) -> Result<Committed, ArchiveError> {
    let draft = Part::next(writer.state(), events).make(&mut writer.sessions(), remembered, service_now)?;
    writer.commit(draft, now)
}

/// The next part of the sessions that a backfill put off, where it has left that part of time behind.
pub fn left_behind(state: &TeamState) -> Option<Part> {
    let Some(SessionsMark { rules: SESSION_RULES, through: Some(through), until: Some(_) }) = state.sessions else {
        return None;
    };
    let part = Part::next(state, EVENTS_TARGET);
    part.to.is_some_and(|to| is_left_behind(state, Range::new(through, to))).then_some(part)
}

/// Whether all windows of a range are read whole.
fn is_left_behind(state: &TeamState, range: Range) -> bool {
    let before =
        state.windows.range((Stream::Connections, Instant::from_nanos(i64::MIN))..=(Stream::Connections, range.start));
    let Some(mut edge) = before.last().map(|((_, start), _)| *start) else { return false };
    while edge < range.end {
        match state.windows.get(&(Stream::Connections, edge)) {
            Some(window) if window.state != WindowState::Provisional => edge = window.range.end,
            _ => return false,
        }
    }
    true
}

/// A part of event time whose events are made sessions of.
pub struct Part {
    from: Instant,
    /// None where it reaches to the last event that sessions are behind with.
    to: Option<Instant>,
    until: Option<Instant>,
    is_anew: bool,
}

impl Part {
    pub fn next(state: &TeamState, events: u64) -> Self {
        let mark = state.sessions.filter(|mark| mark.rules == SESSION_RULES);
        let through = mark.and_then(|mark| mark.through);
        let until = through.and(mark).and_then(|mark| mark.until);
        let from = through.unwrap_or(Instant::from_nanos(i64::MIN));
        let to = part_end(state, from, events).filter(|to| until.is_none_or(|until| *to < until));
        Self { from, to, until, is_anew: through.is_none() }
    }

    /// Makes its sessions, in one commit. Whether there were any.
    ///
    /// # Errors
    /// When the archive cannot be read or written.
    pub fn commit(
        &self,
        writer: &mut TeamWriter,
        remembered: &mut Remembered,
        service_now: Instant,
        now: Instant,
    ) -> Result<bool, ArchiveError> {
        let draft = self.make(&mut writer.sessions(), remembered, service_now)?;
        Ok(matches!(writer.commit(draft, now)?, Committed::Committed { .. }))
    }

    /// Whether the archive still holds what it held `before`, as far as the sessions of the part were made of it.
    pub fn is_of(&self, before: &TeamState, now: &TeamState) -> bool {
        let is_read = |file: &&FileEntry| match file.dataset {
            Dataset::Sessions => true,
            Dataset::Connections => file.first.zip(self.to).is_none_or(|(first, to)| first < to),
            _ => false,
        };
        let mark = |state: &TeamState| state.sessions.map(|mark| (mark.rules, mark.through));
        // A file's path holds its hash.
        let paths = before.files.values().filter(is_read).map(|file| &file.path);
        mark(before) == mark(now) && paths.eq(now.files.values().filter(is_read).map(|file| &file.path))
    }

    /// Whether a draft brings events of the part's time, or before it.
    pub fn is_met_by(&self, draft: &Draft) -> bool {
        connection_times(draft).is_some_and(|(first, _)| self.to.is_none_or(|to| first < to))
    }

    /// The commit that makes it.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn make(
        &self,
        reader: &mut SessionsReader<'_>,
        remembered: &mut Remembered,
        now: Instant,
    ) -> Result<Draft, ArchiveError> {
        let end = self.to.or(self.until).unwrap_or(Instant::from_nanos(i64::MAX));
        let columns = reader.events_in(Range::new(self.from, end))?;
        let mut events = Events::default();
        for some in &columns {
            events.add(some);
        }
        let mark = match self.to {
            Some(_) => SessionsMark { rules: SESSION_RULES, through: self.to, until: self.until },
            None => COMPLETE,
        };
        let mut draft = Draft::default();
        // The commits of a backfill have counted them.
        let is_uncounted = events.strays > 0 && self.until.is_none();
        draft.findings.extend(is_uncounted.then(|| no_connection_id("", events.strays, now)));
        let (open, resting) = match self.is_anew {
            true => Default::default(),
            false => held(reader, events.of.iter().map(|(id, _)| *id))?,
        };
        if self.is_anew {
            remembered.forget();
        }
        let newest = open.iter().map(|held| held.row.last_event_at).fold(events.newest, Instant::max);
        // Whole days: sessions whose time has come leave together, and a date in the future makes none leave.
        let newest = newest.min(now).floor_to(DAY);
        let touched =
            open.iter().chain(&resting).filter(|held| events.places.contains_key(held.row.connection_id.as_str()));
        let known = known_events(reader, remembered, touched)?;
        let make = |(id, fresh): &(&str, Vec<(&ConnectionColumns, usize)>)| {
            let before = if known.is_empty() { None } else { known.get(*id) };
            let before = before.map_or(&[][..], Vec::as_slice);
            let fresh = || fresh.iter().map(|(some, at)| some.get(*at));
            let session = session_from(before.iter().map(KeptConnectionEvent::as_event).chain(fresh()).collect());
            let session = session.expect("BUG: events of one connection make a session");
            let events = || before.iter().cloned().chain(fresh().map(KeptConnectionEvent::from)).collect();
            let waiting: Option<Vec<KeptConnectionEvent>> = (!is_at_rest(&session, newest)).then(events);
            (session, waiting)
        };
        let made: Vec<_> = match events.of.len() < 2 * SESSIONS_A_THREAD_MIN {
            true => events.of.iter().map(make).collect(),
            false => events.of.par_iter().with_min_len(SESSIONS_A_THREAD_MIN).map(make).collect(),
        };
        let keep = |(session, waiting): (SessionRow, Option<Vec<KeptConnectionEvent>>)| {
            waiting.into_iter().for_each(|events| remembered.keep(session.connection_id.clone(), events));
            session
        };
        let made = made.into_iter().map(keep).collect();
        let change = SessionsDraft { is_anew: self.is_anew, ..changed(mark, made, open, resting, newest) };
        remembered.forget_resting(&change);
        draft.sessions = Some(change);
        Ok(draft)
    }
}

/// Events by their connections.
struct Events<'c> {
    /// In the order in which they were met: events that follow one another in the columns are looked at together.
    of: Vec<(&'c str, Vec<(&'c ConnectionColumns, usize)>)>,
    places: HashMap<&'c str, usize, ahash::RandomState>,
    newest: Instant,
    /// Events of no connection.
    strays: u64,
}

impl Default for Events<'_> {
    fn default() -> Self {
        Self { of: Vec::new(), places: HashMap::default(), newest: Instant::EARLIEST, strays: 0 }
    }
}

impl<'c> Events<'c> {
    fn add(&mut self, some: &'c ConnectionColumns) {
        for at in 0..some.len() {
            self.newest = self.newest.max(some.time(at));
            match some.connection(at).filter(|id| is_connection(id)) {
                Some(id) => {
                    let place = *self.places.entry(id).or_insert(self.of.len());
                    if place == self.of.len() {
                        self.of.push((id, Vec::with_capacity(4)));
                    }
                    self.of[place].1.push((some, at));
                }
                None => self.strays += 1,
            }
        }
    }
}

/// Where the part that begins at `from` ends: on a day's border, with about so many events, or within a day that holds more;
/// none where it reaches to the last event.
fn part_end(state: &TeamState, from: Instant, events: u64) -> Option<Instant> {
    let files = || state.files_of(Dataset::Connections).filter_map(|file| Some((file.first?, file.last?, file.rows)));
    let last = files().map(|(_, last, _)| last).max()?;
    let first = files().filter(|(_, last, _)| from <= *last).map(|(first, ..)| first).min()?;
    let before = |end| files().map(|(first, last, rows)| share(Range::new(from, end), first, last, rows)).sum::<u64>();
    // A small rest goes with the last part.
    if before(Instant::from_nanos(last.nanos().saturating_add(1))) <= events.saturating_mul(3) / 2 {
        return None;
    }
    let mut end = first.max(from).floor_to(DAY).plus(DAY);
    while end <= last && before(end) < events {
        let next = end.plus(DAY);
        // Rather too few events than too many.
        if before(end) > 0 && before(next) > events.saturating_mul(3) / 2 {
            break;
        }
        end = next;
    }
    if before(end) > events.saturating_mul(2) {
        let day = end.minus(DAY);
        let hours = (1..24).map(|hour| day.plus(HOUR * hour)).filter(|hour| from < *hour && *hour <= last);
        return hours.clone().find(|hour| before(*hour) >= events).or((end <= last).then_some(end));
    }
    (end <= last).then_some(end)
}

/// How many of a file's rows lie in a range, were they spread evenly.
fn share(range: Range, first: Instant, last: Instant, rows: u64) -> u64 {
    let inside = range.end.min(last).since(range.start.max(first)).as_nanos();
    let whole = last.since(first).as_nanos().max(1);
    let is_apart = range.end <= first || last < range.start;
    if is_apart { 0 } else { u64::try_from(u128::from(rows) * inside / whole).unwrap_or(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{FileEntry, FileRole};
    use crate::model::{Digest, TeamId};

    fn start() -> Instant {
        "2026-10-01T00:00:00Z".parse().unwrap()
    }

    fn day(number: u32) -> Instant {
        start().plus(DAY * number)
    }

    /// An archive of one file a day, with so many events.
    fn state(days: &[u64]) -> TeamState {
        let mut state = TeamState::genesis("a", TeamId::from("t"));
        for (number, rows) in (0..).zip(days) {
            let path = format!("{number:03}");
            let file = FileEntry {
                path: path.clone(),
                dataset: Dataset::Connections,
                role: FileRole::Window,
                rows: *rows,
                bytes: 0,
                sha256: Digest::of(b""),
                rows_digest: Digest::of(b""),
                first: Some(day(number)),
                last: Some(Instant::from_nanos(day(number + 1).nanos() - 1)),
            };
            state.files.insert(path, file);
        }
        state
    }

    #[test]
    fn a_part_ends_on_a_days_border_with_about_as_many_events_or_within_a_busier_day() {
        let hours = |hours: u32| start().plus(HOUR * hours);
        for (what, days, end) in [
            ("as many days as it takes", vec![120; 20], Some(day(9))),
            ("not twice as many events", vec![900; 5], Some(day(1))),
            ("half as many more", vec![600; 5], Some(day(2))),
            ("a day with more", vec![1_900; 5], Some(day(1))),
            ("a quiet day before a busy one", vec![10, 1_800, 10], Some(day(1))),
            ("hours of a day with many more", vec![4_800; 5], Some(hours(5))),
            ("all there is", vec![100; 5], None),
            ("the last day", vec![600], None),
            ("nothing", vec![], None),
        ] {
            assert_eq!(part_end(&state(&days), start(), 1_000), end, "{what}");
        }
        assert_eq!(part_end(&state(&[120; 22]), day(9), 1_000), Some(day(18)));
        assert_eq!(part_end(&state(&[120; 22]), day(18), 1_000), None);
        assert_eq!(part_end(&state(&[120; 20]), day(9), 1_000), None, "half as many more are one part");
    }
}
