//! Sessions follow the events: those that new events touch are made again, in the commit that brings the events.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::archive::{
    ArchiveError, Committed, Dataset, Draft, Finding, FindingKind, HeldSession, SessionsDraft, SessionsMark, TeamState,
    TeamWriter,
};
use crate::correlate::{SESSION_RULES, connection_of, is_at_rest, session_of};
use crate::model::{ConnectionId, EventRow, Instant, Range, SessionRow, Stream};

use super::context::TeamContext;

/// Events of open sessions that are remembered from one commit to the next; what is forgotten is read again.
const REMEMBERED_EVENTS_MAX: usize = 20_000;
/// A session without an event for so long is not remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(3 * 86_400);
/// Events that one commit of a rebuild makes sessions of, about.
const REBUILD_EVENTS_TARGET: u64 = 50_000;
/// Why such events are a finding.
pub const NO_CONNECTION_ID: &str = "without a connectionID: of no session";
const DAY: Duration = Duration::from_secs(86_400);
const COMPLETE: SessionsMark = SessionsMark { rules: SESSION_RULES, through: None };

/// The events of sessions that more are waited for, without their text. Nothing rests on it but speed.
#[derive(Debug, Default)]
pub struct Remembered {
    events: HashMap<ConnectionId, Vec<EventRow>>,
    count: usize,
}

impl Remembered {
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What had no event since `since` is forgotten.
    fn forget_before(&mut self, since: Instant) {
        self.events.retain(|_, events| events.iter().any(|row| row.time >= since));
        self.count = self.events.values().map(Vec::len).sum();
    }

    fn keep(&mut self, id: ConnectionId, events: Vec<EventRow>) {
        if self.count + events.len() > REMEMBERED_EVENTS_MAX {
            self.forget();
        }
        self.count += events.len();
        self.count -= self.events.insert(id, events).map_or(0, |before| before.len());
    }

    fn take(&mut self, id: &ConnectionId) -> Option<Vec<EventRow>> {
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

/// Makes the sessions of the draft's connection events again, as they are with these. `now` is the service's clock.
///
/// # Errors
/// When the archive cannot be read.
pub fn correlate(
    draft: &mut Draft,
    writer: &mut TeamWriter,
    remembered: &mut Remembered,
    now: Instant,
) -> Result<(), ArchiveError> {
    let rows = draft.rows.iter().filter(|window| window.stream == Stream::Connections).flat_map(|window| &window.rows);
    let mut rows = rows.peekable();
    // A round begins with making up for what is missing, so sessions that are behind stay so only where that failed.
    if rows.peek().is_some() && !are_behind(writer.state()) {
        draft.sessions = Some(touched(rows, COMPLETE, false, writer, remembered, now)?);
    }
    Ok(())
}

/// Makes sessions of the events of an archive that has none, or has them by other rules: in as many commits as it takes.
///
/// # Errors
/// When the archive cannot be read or written.
pub async fn make_up(ctx: &TeamContext) -> Result<(), ArchiveError> {
    while ctx.with_state(are_behind) {
        let (service_now, now) = (ctx.service().now(), ctx.clock.now());
        let done = ctx.with_writer(move |writer| {
            let draft = rebuild(writer, service_now)?;
            writer.commit(draft, now)
        });
        let Committed::Committed { seq, rows, .. } = done.await? else { break };
        tracing::info!(team = %ctx.team, %seq, rows, "made sessions of archived events");
    }
    Ok(())
}

/// The next part of a rebuild, as a commit.
fn rebuild(writer: &mut TeamWriter, now: Instant) -> Result<Draft, ArchiveError> {
    let state = writer.state();
    let through = state.sessions.filter(|mark| mark.rules == SESSION_RULES).and_then(|mark| mark.through);
    let from = through.unwrap_or(Instant::from_nanos(i64::MIN));
    let to = part_end(state, from);
    let mut rows: Vec<EventRow> = Vec::new();
    let range = Range::new(from, to.unwrap_or(Instant::from_nanos(i64::MAX)));
    writer.rows_in(Stream::Connections, range, &mut |row| {
        rows.push(EventRow { raw: bytes::Bytes::new(), ..row });
        Ok(())
    })?;
    let mark = SessionsMark { rules: SESSION_RULES, through: to };
    let mut draft = Draft::default();
    let strays = rows.iter().filter(|row| connection_of(row).is_none()).count() as u64;
    draft.findings.extend((strays > 0).then(|| no_connection_id("", strays, now)));
    draft.sessions = Some(touched(rows.iter(), mark, through.is_none(), writer, &mut Remembered::default(), now)?);
    Ok(draft)
}

/// Where the part that begins at `from` ends: on a day's border, with about so many events as one commit should take; none
/// where it reaches to the last event.
fn part_end(state: &TeamState, from: Instant) -> Option<Instant> {
    let files = || state.files_of(Dataset::Connections).filter_map(|file| Some((file.first?, file.last?, file.rows)));
    let last = files().map(|(_, last, _)| last).max()?;
    let first = files().filter(|(_, last, _)| from <= *last).map(|(first, ..)| first).min()?;
    let mut end = first.max(from).floor_to(DAY).plus(DAY);
    while end <= last {
        let events: u64 = files().map(|(first, last, rows)| share(Range::new(from, end), first, last, rows)).sum();
        if events >= REBUILD_EVENTS_TARGET {
            return Some(end);
        }
        end = end.plus(DAY);
    }
    None
}

/// How many of a file's rows lie in a range, were they spread evenly.
fn share(range: Range, first: Instant, last: Instant, rows: u64) -> u64 {
    let inside = range.end.min(last).since(range.start.max(first)).as_nanos();
    let whole = last.since(first).as_nanos().max(1);
    let is_apart = range.end <= first || last < range.start;
    if is_apart { 0 } else { u64::try_from(u128::from(rows) * inside / whole).unwrap_or(rows) }
}

/// The sessions that `rows` touch, as they are with these; `is_anew`: and with no others.
fn touched<'a>(
    rows: impl Iterator<Item = &'a EventRow>,
    mark: SessionsMark,
    is_anew: bool,
    writer: &mut TeamWriter,
    remembered: &mut Remembered,
    now: Instant,
) -> Result<SessionsDraft, ArchiveError> {
    let mut fresh: HashMap<&ConnectionId, Vec<&EventRow>> = HashMap::new();
    let mut newest = Instant::EARLIEST;
    for row in rows {
        newest = newest.max(row.time);
        if let Some(id) = connection_of(row) {
            fresh.entry(id).or_default().push(row);
        }
    }
    let (open, resting) = if is_anew { Default::default() } else { held(writer, &fresh)? };
    newest = open.iter().map(|held| held.row.last_event_at).fold(newest, Instant::max);
    // Whole days: sessions whose time has come leave together, and a date in the future makes none leave.
    let newest = newest.min(now).floor_to(DAY);
    let known = known_events(writer, remembered, open.iter().chain(&resting), &fresh)?;
    remembered.forget_before(newest.minus(REMEMBERED_FOR));
    let replaced = BTreeMap::new();
    let mut draft = SessionsDraft { mark, is_anew, open: Vec::new(), resting: Vec::new(), replaced };
    for held in open.into_iter().chain(resting) {
        if fresh.contains_key(&held.row.connection_id) {
            draft.replaced.entry(held.path).or_default().push(held.row);
        } else if is_at_rest(&held.row, newest) {
            draft.resting.push(held.row.clone());
            draft.replaced.entry(held.path).or_default().push(held.row);
        }
    }
    for (id, rows) in fresh {
        let before = known.get(id).map_or(&[][..], Vec::as_slice);
        let events: Vec<&EventRow> = before.iter().chain(rows).collect();
        let session = session_of(&events).expect("BUG: events of one connection make a session");
        if is_at_rest(&session, newest) {
            draft.resting.push(session);
        } else {
            remembered.keep(id.clone(), events.into_iter().map(without_text).collect());
            draft.open.push(session);
        }
    }
    Ok(draft)
}

/// All open sessions, and those of the touched connections among the others.
fn held(
    writer: &mut TeamWriter,
    fresh: &HashMap<&ConnectionId, Vec<&EventRow>>,
) -> Result<(Vec<HeldSession>, Vec<HeldSession>), ArchiveError> {
    let open = writer.open_sessions()?;
    let known: HashSet<&ConnectionId> = open.iter().map(|held| &held.row.connection_id).collect();
    let others: Vec<&ConnectionId> = fresh.keys().filter(|id| !known.contains(**id)).copied().collect();
    let resting = writer.resting_sessions(&others)?;
    Ok((open, resting))
}

/// The archived events of the touched sessions.
fn known_events<'h>(
    writer: &TeamWriter,
    remembered: &mut Remembered,
    held: impl Iterator<Item = &'h HeldSession>,
    fresh: &HashMap<&ConnectionId, Vec<&EventRow>>,
) -> Result<HashMap<ConnectionId, Vec<EventRow>>, ArchiveError> {
    let mut known: HashMap<ConnectionId, Vec<EventRow>> = HashMap::new();
    let mut unknown: HashMap<ConnectionId, Range> = HashMap::new();
    for held in held.filter(|held| fresh.contains_key(&held.row.connection_id)) {
        let id = &held.row.connection_id;
        match remembered.take(id) {
            Some(events) => drop(known.insert(id.clone(), events)),
            None => drop(unknown.insert(id.clone(), range_of(&held.row))),
        }
    }
    if unknown.is_empty() {
        return Ok(known);
    }
    for row in writer.connection_rows(&unknown)? {
        if let Some(id) = connection_of(&row).cloned() {
            known.entry(id).or_default().push(row);
        }
    }
    Ok(known)
}

/// The times of a session's events; files keep microseconds.
fn range_of(session: &SessionRow) -> Range {
    Range::new(session.first_event_at, Instant::from_nanos((session.last_event_at.micros() + 1) * 1_000))
}

fn without_text(row: &EventRow) -> EventRow {
    EventRow { raw: bytes::Bytes::new(), ..row.clone() }
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
