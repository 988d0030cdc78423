//! Sessions catch up with the events after a backfill, after a change of the rules, and after an interruption. They are
//! made from the archive alone, in chunks of event time. The commit that includes a chunk records the progress. In a backfill
//! that is a commit of newer events; at the end of a round, and elsewhere, each chunk has a commit of its own.
//!
//! A chunk reads all events of its time, and the earlier events of each session that they belong to. So two chunks may
//! read the same event without harm.

use std::time::Duration;

use crate::archive::{
    ArchiveError, Body, Committed, Draft, Finding, FindingKind, SessionsDraft, SessionsMark, TeamRows, TeamState,
    TeamWriter,
};
use crate::correlate::SESSION_RULES;
use crate::model::{Dataset, FileRole, Instant, Range, Stream, saturating_sum};

use super::update::{COMPLETE, DAY, NO_CONNECTION_ID, NewEvents, are_stale};
use crate::pipeline::plan::settled_edge;
use crate::pipeline::team::TeamEdges;

/// The approximate number of events in a chunk. They and their sessions take half a kilobyte of memory each.
const CHUNK_EVENTS_MIN: u64 = 50_000;
const CHUNK_EVENTS_MAX: u64 = 150_000;

const HOUR: Duration = Duration::from_secs(3_600);

/// A span of event time. One commit makes its sessions.
pub struct Chunk {
    /// `None`: all sessions are made again, by the rules of this program.
    from: Option<Instant>,
    /// `None`: up to the last event that has no session yet.
    to: Option<Instant>,
    until: Option<Instant>,
}

impl Chunk {
    /// The next chunk. It has about as many events as there are open sessions, because it writes all of those again.
    pub fn next(state: &TeamState) -> Self {
        let open = state.files_of(Dataset::Sessions).filter(|file| file.role == FileRole::Open);
        Self::of_events(state, saturating_sum(open.map(|file| file.rows)).clamp(CHUNK_EVENTS_MIN, CHUNK_EVENTS_MAX))
    }

    /// The next chunk, with about this number of events.
    pub fn of_events(state: &TeamState, events: u64) -> Self {
        let mark = state.sessions.filter(|mark| mark.rules == SESSION_RULES);
        let from = mark.and_then(|mark| mark.through);
        let until = from.and(mark).and_then(|mark| mark.until);
        let end = chunk_end(state, from.unwrap_or(Instant::from_nanos(i64::MIN)), events);
        Self { from, to: end.filter(|to| until.is_none_or(|until| *to < until)), until }
    }

    /// The next chunk of deferred sessions, once all its windows are settled.
    pub fn settled(state: &TeamState) -> Option<Self> {
        let SessionsMark { rules: SESSION_RULES, through: Some(through), until: Some(_) } = state.sessions? else {
            return None;
        };
        let chunk = Self::next(state);
        chunk.to.is_some_and(|to| are_settled(state, Range::new(through, to))).then_some(chunk)
    }

    /// Makes the sessions of the chunk, in one commit. `service_now` is the service's clock, `now` the machine's.
    ///
    /// # Errors
    /// When the archive cannot be read or written.
    pub fn commit(
        &self,
        writer: &mut TeamWriter,
        service_now: Instant,
        now: Instant,
    ) -> Result<Committed, ArchiveError> {
        let (sessions, without_connection) = self.make(writer.rows(), service_now)?;
        let mut body = Body::default();
        // The commits of a backfill have counted them.
        if without_connection > 0 && self.until.is_none() {
            let (stream, kind) = (Some(Stream::Connections), FindingKind::NoConnectionId);
            let finding = Finding::new(stream, kind, "", NO_CONNECTION_ID, service_now);
            body.findings.push(Finding { count: without_connection, ..finding });
        }
        writer.commit(Draft { body, sessions: Some(sessions), ..Draft::default() }, now)
    }

    /// The sessions of the chunk, and the number of its events without a connection.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn make(&self, rows: TeamRows<'_>, service_now: Instant) -> Result<(SessionsDraft, u64), ArchiveError> {
        let end = self.to.or(self.until).unwrap_or(Instant::from_nanos(i64::MAX));
        let start = self.from.unwrap_or(Instant::from_nanos(i64::MIN));
        let columns = rows.connection_columns(Range::new(start, end))?;
        let mut events = NewEvents::default();
        columns.iter().flat_map(|some| (0..some.len()).map(|at| some.get(at))).for_each(|event| events.add(event));
        let mark = match self.to {
            Some(_) => SessionsMark { rules: SESSION_RULES, through: self.to, until: self.until },
            None => COMPLETE,
        };
        let without_connection = events.without_connection;
        let sessions = match self.from {
            None => events.all_sessions(mark, service_now),
            Some(_) => events.sessions(rows, mark, service_now)?,
        };
        Ok((sessions, without_connection))
    }
}

/// Makes the next lagging sessions, in one commit. [`Committed::Nothing`] if none lag.
///
/// # Errors
/// When the archive cannot be read or written.
pub fn catch_up(writer: &mut TeamWriter, service_now: Instant, now: Instant) -> Result<Committed, ArchiveError> {
    if !are_stale(writer.state()) {
        return Ok(Committed::Nothing);
    }
    Chunk::next(writer.state()).commit(writer, service_now, now)
}

/// Makes all lagging sessions of a team, in as many commits as necessary. Another team may make its sessions in between.
///
/// # Errors
/// When the archive cannot be read or written.
pub async fn catch_up_all(edges: &TeamEdges) -> Result<(), ArchiveError> {
    while edges.with_state(are_stale).await {
        let _permit = edges.budget.session_permit().await;
        let (service_now, now) = (edges.service().now(), edges.clock.now());
        let make = move |writer: &mut TeamWriter| catch_up(writer, service_now, now);
        let Committed::Committed { seq, rows, .. } = edges.with_writer(make).await? else { break };
        tracing::info!(team = %edges.team, %seq, rows, "made sessions of archived events");
    }
    Ok(())
}

/// Whether all windows of a range are settled.
fn are_settled(state: &TeamState, range: Range) -> bool {
    let before = state.windows.range(..=(Stream::Connections, range.start)).next_back();
    let first = before.filter(|((stream, _), _)| *stream == Stream::Connections);
    first.is_some_and(|((stream, first), _)| range.end <= settled_edge(state, *stream, *first))
}

/// The end of the chunk that begins at `from`: at the end of a day, with about this number of events, or within a day
/// that has more. `None`: the chunk reaches to the last event.
fn chunk_end(state: &TeamState, from: Instant, events: u64) -> Option<Instant> {
    let files = || state.files_of(Dataset::Connections).filter_map(|file| Some((file.first?, file.last?, file.rows)));
    let last = files().map(|(_, last, _)| last).max()?;
    let first = files().filter(|(_, last, _)| from <= *last).map(|(first, ..)| first).min()?;
    let rows_before = |end| files().map(move |(first, last, rows)| rows_in(Range::new(from, end), first, last, rows));
    let before = |end| saturating_sum(rows_before(end));
    // A small rest belongs to the last chunk.
    if before(Instant::from_nanos(last.nanos().saturating_add(1))) <= events.saturating_mul(3) / 2 {
        return None;
    }
    let mut end = first.max(from).floor_to(DAY).plus(DAY);
    while end <= last && before(end) < events {
        let next = end.plus(DAY);
        // Choose too few events rather than too many.
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

/// The number of rows of a file that lie in a range, if they are spread evenly.
fn rows_in(range: Range, first: Instant, last: Instant, rows: u64) -> u64 {
    let inside = range.end.min(last).since(range.start.max(first)).as_nanos();
    let whole = last.since(first).as_nanos().max(1);
    let is_apart = range.end <= first || last < range.start;
    if is_apart { 0 } else { u64::try_from(u128::from(rows) * inside / whole).unwrap_or(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::FileEntry;
    use crate::model::{Digest, TeamId};

    fn start() -> Instant {
        "2026-10-01T00:00:00Z".parse().unwrap()
    }

    fn day(number: u32) -> Instant {
        start().plus(DAY * number)
    }

    /// An archive of one file a day, with this number of events each.
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
    fn a_chunk_ends_at_the_end_of_a_day_or_within_a_busy_day() {
        let hours = |hours: u32| start().plus(HOUR * hours);
        for (what, days, end) in [
            ("several quiet days", vec![120; 20], Some(day(9))),
            ("not twice as many events", vec![900; 5], Some(day(1))),
            ("half as many more", vec![600; 5], Some(day(2))),
            ("a day with more", vec![1_900; 5], Some(day(1))),
            ("a quiet day before a busy one", vec![10, 1_800, 10], Some(day(1))),
            ("hours of a day with many more", vec![4_800; 5], Some(hours(5))),
            ("all there is", vec![100; 5], None),
            ("the last day", vec![600], None),
            ("nothing", vec![], None),
        ] {
            assert_eq!(chunk_end(&state(&days), start(), 1_000), end, "{what}");
        }
        assert_eq!(chunk_end(&state(&[120; 22]), day(9), 1_000), Some(day(18)));
        assert_eq!(chunk_end(&state(&[120; 22]), day(18), 1_000), None);
        assert_eq!(chunk_end(&state(&[120; 20]), day(9), 1_000), None, "half as many more are one chunk");
    }
}
