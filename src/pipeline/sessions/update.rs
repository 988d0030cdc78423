//! Sessions follow the events. A commit makes the sessions of its events again. A commit with many events, as in a
//! backfill, defers them: it records the time range of the lag, and [`Chunk`](super::catch_up::Chunk) makes them later.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use rayon::prelude::*;

use crate::archive::{
    ArchiveError, Draft, HeldSession, SessionsDraft, SessionsMark, TeamRows, TeamState, TeamWriter, WindowRows,
};
use crate::correlate::{SESSION_RULES, connection_of, is_connection, is_finished, session_from};
use crate::model::{ConnectionEvent, ConnectionId, Dataset, EventRow, Instant, Range, SessionRow, Stream};
use crate::planted::{self, Bug};

/// A commit with this number of connection events defers their sessions.
const DEFER_EVENTS_MIN: usize = 5_000;
/// Fewer sessions do not justify a thread.
const SESSIONS_A_THREAD_MIN: usize = 1_000;
/// The reason of the finding about events without a connection.
pub const NO_CONNECTION_ID: &str = "an event without a connectionID belongs to no session";
pub const DAY: Duration = Duration::from_secs(86_400);
/// The mark of sessions that include all archived events.
pub const COMPLETE: SessionsMark = SessionsMark { rules: SESSION_RULES, through: None, until: None };

/// Whether the sessions lag behind the events: they were deferred, never made, or made by other rules.
pub fn are_stale(state: &TeamState) -> bool {
    match state.sessions {
        Some(mark) => mark != COMPLETE,
        None => state.files_of(Dataset::Connections).next().is_some(),
    }
}

/// Makes the sessions of the draft's connection events again, or defers them. The draft may hold the sessions of a chunk of
/// earlier events. `now` is the service's clock.
///
/// # Errors
/// When the archive cannot be read.
pub fn correlate(draft: &mut Draft, writer: &mut TeamWriter, now: Instant) -> Result<(), ArchiveError> {
    let is_deferred = draft.sessions.is_some() || writer.state().sessions.is_some_and(|mark| mark.through.is_some());
    let count = connections(draft).map(|new| new.rows.len()).sum::<usize>();
    if is_deferred || count >= DEFER_EVENTS_MIN {
        defer_sessions(draft, writer);
    } else if !are_stale(writer.state()) && count > 0 {
        let mut events = NewEvents::default();
        connections(draft).flat_map(|new| &new.rows).for_each(|row| events.add(row.into()));
        draft.sessions = Some(events.sessions(writer.rows(), COMPLETE, now)?);
    }
    Ok(())
}

/// Makes no sessions of the draft's connection events, and records their lag in the commit.
pub fn defer_sessions(draft: &mut Draft, writer: &TeamWriter) {
    let times = connections(draft).filter_map(WindowRows::times);
    let Some((first, last)) = times.reduce(|all, some| (all.0.min(some.0), all.1.max(some.1))) else { return };
    let after = Instant::from_nanos(last.nanos().saturating_add(1));
    let mark_before = draft.sessions.as_ref().map(|sessions| sessions.mark).or(writer.state().sessions);
    let (through, until) = match mark_before {
        Some(mark) if mark.rules != SESSION_RULES => return,
        // A rebuild reaches the last event anyway.
        Some(SessionsMark { through: Some(through), until: None, .. }) => (through.min(first), None),
        Some(SessionsMark { through: Some(through), until: Some(until), .. }) => {
            (through.min(first), Some(until.max(after)))
        }
        None if are_stale(writer.state()) => return,
        Some(SessionsMark { through: None, .. }) | None => (first, Some(after)),
    };
    let mark = SessionsMark { rules: SESSION_RULES, through: Some(through), until };
    draft.sessions.get_or_insert_with(|| no_change(mark)).mark = mark;
}

fn no_change(mark: SessionsMark) -> SessionsDraft {
    SessionsDraft { mark, is_anew: false, open: Vec::new(), finished: Vec::new(), replaced: BTreeMap::new() }
}

fn connections(draft: &Draft) -> impl Iterator<Item = &WindowRows> {
    draft.rows.iter().filter(|new| new.stream == Stream::Connections)
}

/// Events by their connections.
pub struct NewEvents<'e> {
    by_connection: HashMap<&'e str, Vec<ConnectionEvent<'e>>, ahash::RandomState>,
    newest: Instant,
    /// Events without a connection.
    pub without_connection: u64,
}

impl Default for NewEvents<'_> {
    fn default() -> Self {
        Self { by_connection: HashMap::default(), newest: Instant::EARLIEST, without_connection: 0 }
    }
}

impl<'e> NewEvents<'e> {
    pub fn add(&mut self, event: ConnectionEvent<'e>) {
        self.newest = self.newest.max(event.time);
        match event.connection_id.filter(|id| is_connection(id)) {
            Some(id) => self.by_connection.entry(id).or_default().push(event),
            None => self.without_connection += 1,
        }
    }

    /// The sessions of these events, made from them and from all archived events of the same connections.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn sessions(self, rows: TeamRows<'_>, mark: SessionsMark, now: Instant) -> Result<SessionsDraft, ArchiveError> {
        let newest = newest(self.newest.max(rows.latest_connection_event().unwrap_or(self.newest)), mark, now);
        let is_touched = |row: &SessionRow| self.by_connection.contains_key(row.connection_id.as_str());
        // The other open sessions stay in their file.
        let mut held = rows.open_sessions(|row| is_touched(row) || is_finished(row, newest))?;
        let known: HashSet<&str, ahash::RandomState> =
            held.iter().map(|held| held.row.connection_id.as_str()).collect();
        let others = self.by_connection.keys().filter(|id| !known.contains(**id));
        let others: Vec<ConnectionId> = others.map(|id| ConnectionId::from(*id)).collect();
        held.extend(rows.finished_sessions(&others.iter().collect::<Vec<_>>())?);
        let touched = held.iter().filter(|held| is_touched(&held.row));
        let touched = touched.filter(|_| !planted::is(Bug::SessionsForgotten));
        let archived = archived_events(rows, touched)?;
        Ok(self.change(mark, held, &archived, newest))
    }

    /// All sessions, made only from these events. The commit drops the archived sessions.
    pub fn all_sessions(self, mark: SessionsMark, now: Instant) -> SessionsDraft {
        let newest = newest(self.newest, mark, now);
        SessionsDraft { is_anew: true, ..self.change(mark, Vec::new(), &HashMap::new(), newest) }
    }

    /// The changes to the `held` sessions, when these events and the `archived` ones make the sessions of their connections again.
    /// An unchanged session stays in its file.
    fn change(
        self,
        mark: SessionsMark,
        held: Vec<HeldSession>,
        archived: &HashMap<ConnectionId, Vec<EventRow>>,
        newest: Instant,
    ) -> SessionsDraft {
        let make = |(id, mut events): (&str, Vec<ConnectionEvent<'_>>)| {
            events.extend(archived.get(&ConnectionId::from(id)).into_iter().flatten().map(ConnectionEvent::from));
            session_from(events).expect("BUG: events of one connection make a session")
        };
        let events: Vec<_> = self.by_connection.into_iter().collect();
        let made: Vec<SessionRow> = events.into_par_iter().with_min_len(SESSIONS_A_THREAD_MIN).map(make).collect();
        let mut held: HashMap<ConnectionId, HeldSession, ahash::RandomState> =
            held.into_iter().map(|held| (held.row.connection_id.clone(), held)).collect();
        let stays = |session: &SessionRow, is_open: bool| !(is_open && is_finished(session, newest));
        let mut draft = no_change(mark);
        for session in made {
            match held.remove(&session.connection_id) {
                Some(held) if session.equals_archived(&held.row) && stays(&session, held.is_open) => continue,
                Some(held) => draft.replaced.entry(held.path).or_default().push(held.row),
                None => {}
            }
            if is_finished(&session, newest) { &mut draft.finished } else { &mut draft.open }.push(session);
        }
        for held in held.into_values().filter(|held| !stays(&held.row, held.is_open)) {
            draft.finished.push(held.row.clone());
            draft.replaced.entry(held.path).or_default().push(held.row);
        }
        draft
    }
}

/// The time at which sessions are judged final: the latest event, in whole days, so that all sessions of a day become final
/// together. Events with a future date make no session final. Events that a catch-up has not reached yet make none final either.
fn newest(latest: Instant, mark: SessionsMark, now: Instant) -> Instant {
    latest.min(now).min(mark.through.unwrap_or(Instant::LATEST)).floor_to(DAY)
}

/// The archived events of held sessions.
fn archived_events<'h>(
    rows: TeamRows<'_>,
    held: impl Iterator<Item = &'h HeldSession>,
) -> Result<HashMap<ConnectionId, Vec<EventRow>>, ArchiveError> {
    let ranges: HashMap<ConnectionId, Range> =
        held.map(|held| (held.row.connection_id.clone(), range_of(&held.row))).collect();
    let mut events: HashMap<ConnectionId, Vec<EventRow>> = HashMap::new();
    if !ranges.is_empty() {
        for row in rows.connection_rows(&ranges)? {
            if let Some(id) = connection_of(&row).map(ConnectionId::from) {
                events.entry(id).or_default().push(row);
            }
        }
    }
    Ok(events)
}

/// The times of a session's events; files keep microseconds.
fn range_of(session: &SessionRow) -> Range {
    Range::new(session.first_event_at, Instant::from_nanos((session.last_event_at.micros() + 1) * 1_000))
}
