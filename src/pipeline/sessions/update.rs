//! Sessions follow the events: those that new events touch are made again, in the commit that brings the events. Where a
//! commit brings many, as those of a backfill do, it says instead from when to when the sessions are behind, and they
//! [catch up](crate::pipeline::sessions::part) with many commits at once: each would write the same files again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::archive::{
    ArchiveError, Dataset, Draft, Finding, FindingKind, HeldSession, SessionsDraft, SessionsMark, SessionsReader,
    TeamState, TeamWriter, WindowRows,
};
use crate::correlate::{SESSION_RULES, connection_of, is_at_rest, session_from};
use crate::model::{ConnectionEvent, ConnectionId, EventRow, Instant, KeptConnectionEvent, Range, SessionRow, Stream};
use crate::planted::{self, Bug};

/// Events of open sessions that are remembered from one commit to the next, some 400 bytes each; what is not is read again.
const REMEMBERED_EVENTS_MAX: usize = 20_000;
/// A commit that brings so many connection events leaves their sessions for later.
const DEFER_EVENTS_MIN: usize = 5_000;
/// Why such events are a finding.
pub const NO_CONNECTION_ID: &str = "without a connectionID: of no session";
pub const DAY: Duration = Duration::from_secs(86_400);
/// Of sessions that say what all archived events say.
pub const COMPLETE: SessionsMark = SessionsMark { rules: SESSION_RULES, through: None, until: None };

/// The events of sessions that more are waited for, without their text. Nothing rests on it but speed.
#[derive(Debug, Default)]
pub struct Remembered {
    events: Known,
    count: usize,
}

/// Events by their connections.
type Known = HashMap<ConnectionId, Vec<KeptConnectionEvent>, ahash::RandomState>;

impl Remembered {
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// To those that rest no more is added.
    pub fn forget_resting(&mut self, change: &SessionsDraft) {
        for session in &change.resting {
            self.take(&session.connection_id);
        }
    }

    /// Keeps a session's events, all of them, where there is room.
    pub fn keep(&mut self, id: ConnectionId, events: Vec<KeptConnectionEvent>) {
        self.take(&id);
        if self.count + events.len() <= REMEMBERED_EVENTS_MAX {
            self.count += events.len();
            self.events.insert(id, events);
        }
    }

    fn take(&mut self, id: &ConnectionId) -> Option<Vec<KeptConnectionEvent>> {
        let events = self.events.remove(id)?;
        self.count -= events.len();
        Some(events)
    }
}

/// Whether the archive's sessions do not say what its events say: an earlier program did not make them, or made them by
/// other rules, or a rebuild was interrupted.
pub fn are_behind(state: &TeamState) -> bool {
    match state.sessions {
        Some(mark) => mark != COMPLETE,
        None => state.files_of(Dataset::Connections).next().is_some(),
    }
}

/// Makes the sessions of the draft's connection events again, as they are with these, or puts that off. `now` is the
/// service's clock.
///
/// # Errors
/// When the archive cannot be read.
pub fn correlate(
    draft: &mut Draft,
    writer: &mut TeamWriter,
    remembered: &mut Remembered,
    now: Instant,
) -> Result<(), ArchiveError> {
    if planted::is(Bug::SessionsForgotten) {
        return Ok(());
    }
    let is_deferred = writer.state().sessions.is_some_and(|mark| mark.through.is_some());
    let count = connections(draft).map(WindowRows::count).sum::<usize>();
    if is_deferred || count >= DEFER_EVENTS_MIN {
        defer_sessions(draft, writer);
    } else if !are_behind(writer.state()) && count > 0 {
        draft.rows.iter_mut().filter(|new| new.stream == Stream::Connections).for_each(WindowRows::spread);
        let rows = connections(draft).flat_map(|new| &new.rows);
        draft.sessions = Some(touched(rows, &mut writer.sessions(), remembered, now)?);
    }
    Ok(())
}

/// Leaves the sessions as they are, and has the commit say that they are behind. What is remembered lacks these events, and
/// is not asked for before a part that catches up has brought them.
pub fn defer_sessions(draft: &mut Draft, writer: &TeamWriter) {
    let Some((first, last)) = connection_times(draft) else { return };
    let after = Instant::from_nanos(last.nanos().saturating_add(1));
    let (through, until) = match writer.state().sessions {
        Some(mark) if mark.rules != SESSION_RULES => return,
        // Being made anew, they reach the last event.
        Some(SessionsMark { through: Some(through), until: None, .. }) => (through.min(first), None),
        Some(SessionsMark { through: Some(through), until: Some(until), .. }) => {
            (through.min(first), Some(until.max(after)))
        }
        None if are_behind(writer.state()) => return,
        Some(SessionsMark { through: None, .. }) | None => (first, Some(after)),
    };
    draft.sessions = Some(no_change(SessionsMark { rules: SESSION_RULES, through: Some(through), until }));
}

/// A change that says no more than how the sessions stand.
pub fn no_change(mark: SessionsMark) -> SessionsDraft {
    SessionsDraft {
        mark,
        is_anew: false,
        open: Vec::new(),
        resting: Vec::new(),
        columns: Vec::new(),
        replaced: BTreeMap::new(),
    }
}

fn connections(draft: &Draft) -> impl Iterator<Item = &WindowRows> {
    draft.rows.iter().filter(|new| new.stream == Stream::Connections)
}

/// The times of the draft's first connection event and of its last.
pub fn connection_times(draft: &Draft) -> Option<(Instant, Instant)> {
    connections(draft).filter_map(WindowRows::times).reduce(|all, some| (all.0.min(some.0), all.1.max(some.1)))
}

/// The sessions that `rows` touch, as they are with these.
fn touched<'a>(
    rows: impl Iterator<Item = &'a EventRow>,
    reader: &mut SessionsReader<'_>,
    remembered: &mut Remembered,
    now: Instant,
) -> Result<SessionsDraft, ArchiveError> {
    let mut fresh: HashMap<&str, Vec<&EventRow>> = HashMap::new();
    let mut newest = Instant::EARLIEST;
    for row in rows {
        newest = newest.max(row.time);
        if let Some(id) = connection_of(row) {
            fresh.entry(id).or_default().push(row);
        }
    }
    let (open, resting) = held(reader, fresh.keys().copied())?;
    newest = open.iter().map(|held| held.row.last_event_at).fold(newest, Instant::max);
    // Whole days: sessions whose time has come leave together, and a date in the future makes none leave.
    let newest = newest.min(now).floor_to(DAY);
    let touched = open.iter().chain(&resting).filter(|held| fresh.contains_key(held.row.connection_id.as_str()));
    let known = known_events(reader, remembered, touched)?;
    let mut made = Vec::with_capacity(fresh.len());
    for (id, rows) in fresh {
        let before = known.get(id).map_or(&[][..], Vec::as_slice);
        let events = || before.iter().map(KeptConnectionEvent::as_event).chain(rows.iter().map(|row| (*row).into()));
        let session = session_from(events().collect()).expect("BUG: events of one connection make a session");
        if !is_at_rest(&session, newest) {
            remembered.keep(id.into(), events().map(KeptConnectionEvent::from).collect());
        }
        made.push(session);
    }
    let change = changed(COMPLETE, made, open, resting, newest);
    remembered.forget_resting(&change);
    Ok(change)
}

/// What is to change of the sessions, given those of the touched connections as they were `made` and all that were held of
/// them, and those that are open. A session that says what it said stays where it is: a file that came out as it was would
/// be refused.
pub fn changed(
    mark: SessionsMark,
    made: Vec<SessionRow>,
    open: Vec<HeldSession>,
    resting: Vec<HeldSession>,
    newest: Instant,
) -> SessionsDraft {
    let mut draft = no_change(mark);
    // In the places that they have: a map of them would copy them all.
    let mut open: Vec<Option<HeldSession>> = open.into_iter().map(Some).collect();
    let mut resting: Vec<Option<HeldSession>> = resting.into_iter().map(Some).collect();
    let all = [(&open, true), (&resting, false)];
    let all = all
        .into_iter()
        .flat_map(|(held, is_open)| held.iter().flatten().enumerate().map(move |(at, held)| (held, (is_open, at))));
    let places: HashMap<ConnectionId, (bool, usize), ahash::RandomState> =
        all.map(|(held, place)| (held.row.connection_id.clone(), place)).collect();
    let mut take = |id: &ConnectionId| {
        let (is_open, at) = *places.get(id)?;
        let from = if is_open { &mut open } else { &mut resting };
        Some((from[at].take()?, is_open))
    };
    let stays = |session: &SessionRow, is_open: bool| !(is_open && is_at_rest(session, newest));
    let (replaced, still_open) = (&mut draft.replaced, &mut draft.open);
    // Most of many rest: they stay in the place that they have.
    let rests = |session: SessionRow| {
        match take(&session.connection_id) {
            Some((held, is_open)) if session.is_as_kept(&held.row) && stays(&session, is_open) => return None,
            Some((held, _)) => replaced.entry(held.path).or_default().push(held.row),
            None => {}
        }
        if is_at_rest(&session, newest) {
            return Some(session);
        }
        still_open.push(session);
        None
    };
    draft.resting = made.into_iter().filter_map(rests).collect();
    for held in open.into_iter().flatten().filter(|held| !stays(&held.row, true)) {
        draft.resting.push(held.row.clone());
        draft.replaced.entry(held.path).or_default().push(held.row);
    }
    draft
}

/// All open sessions, and those of the touched connections among the others.
pub fn held<'f>(
    reader: &mut SessionsReader<'_>,
    touched: impl Iterator<Item = &'f str>,
) -> Result<(Vec<HeldSession>, Vec<HeldSession>), ArchiveError> {
    let open = reader.open()?;
    let known: HashSet<&str, ahash::RandomState> = open.iter().map(|held| held.row.connection_id.as_str()).collect();
    let others: Vec<ConnectionId> = touched.filter(|id| !known.contains(id)).map(ConnectionId::from).collect();
    let resting = reader.resting(&others.iter().collect::<Vec<_>>())?;
    Ok((open, resting))
}

/// The archived events of held sessions.
pub fn known_events<'h>(
    reader: &SessionsReader<'_>,
    remembered: &mut Remembered,
    held: impl Iterator<Item = &'h HeldSession>,
) -> Result<Known, ArchiveError> {
    let mut known = Known::default();
    let mut unknown: HashMap<ConnectionId, Range> = HashMap::new();
    for held in held {
        let id = &held.row.connection_id;
        match remembered.take(id) {
            Some(events) => drop(known.insert(id.clone(), events)),
            None => drop(unknown.insert(id.clone(), range_of(&held.row))),
        }
    }
    if unknown.is_empty() {
        return Ok(known);
    }
    for row in reader.events_of(&unknown)? {
        if let Some(id) = connection_of(&row).map(ConnectionId::from) {
            known.entry(id).or_default().push(ConnectionEvent::from(&row).into());
        }
    }
    Ok(known)
}

/// The times of a session's events; files keep microseconds.
fn range_of(session: &SessionRow) -> Range {
    Range::new(session.first_event_at, Instant::from_nanos((session.last_event_at.micros() + 1) * 1_000))
}

/// Events without a connection, by their type; an empty one stands for several.
pub fn no_connection_id(event_type: &str, count: u64, found_at: Instant) -> Finding {
    Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::NoConnectionId,
        subject: event_type.to_owned(),
        from: None,
        to: None,
        reason: NO_CONNECTION_ID.to_owned(),
        count,
        found_at,
    }
}
