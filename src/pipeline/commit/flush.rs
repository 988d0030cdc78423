//! A batch becomes one commit: joined with what the archive holds, and with what is worth noticing.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::{
    ArchiveError, Draft, EncodedTable, EventColumns, Finding, FindingKind, StoredEvent, StreamRecord, TeamWriter,
    WindowRecord, WindowRows, WindowState,
};
use crate::correlate::{connection_of, is_connection};
use crate::model::{Instant, Range, Stream};
use crate::planted::{self, Bug};

use crate::pipeline::commit::batch::{Batch, Place, UNSTABLE, is_same_matter};
use crate::pipeline::commit::change::{WindowChange, apply_but_points, says_more};
use crate::pipeline::commit::computer_events::{Commit, Told};
use crate::pipeline::commit::counts::Flushed;
use crate::pipeline::commit::join::{Added, Held, Joining, no_longer_served};
use crate::pipeline::commit::piece::Piece;
use crate::pipeline::plan::ranges::missing;
use crate::pipeline::sessions::update::{NO_CONNECTION_ID, Remembered, correlate};
use crate::pipeline::settings::{LAG_SECONDS_MAX, Settings};

/// Event types remembered of one stream; a service that invents more has them kept but no longer announced.
const EVENT_TYPES_MAX: usize = 1_000;
/// Characters of an event type's name that a record keeps.
const EVENT_TYPE_CHARS_MAX: usize = 120;

/// Makes the batch one commit. `seen_at` is the service's clock, `now` the machine's.
///
/// # Errors
/// When the archive cannot be read or written; nothing of the batch is then committed.
pub fn flush(
    batch: Batch,
    writer: &mut TeamWriter,
    remembered: &mut Remembered,
    settings: &Settings,
    seen_at: Instant,
    now: Instant,
) -> Result<Flushed, ArchiveError> {
    let (mut draft, flushed) = prepare(batch, writer, settings, seen_at)?;
    correlate(&mut draft, writer, remembered, seen_at)?;
    Ok(flushed.with(writer.commit(draft, now)?))
}

/// The commit that the batch becomes, but for its sessions.
///
/// # Errors
/// When the archive cannot be read.
pub fn prepare(
    mut batch: Batch,
    writer: &TeamWriter,
    settings: &Settings,
    seen_at: Instant,
) -> Result<(Draft, Flushed), ArchiveError> {
    let mut flush = Flush::new(writer, settings, seen_at);
    flush.draft.devices = batch.devices.clone();
    flush.draft.findings.clone_from(&batch.findings);
    flush.windows(&mut batch)?;
    flush.noted(&batch);
    flush.flushed.removals = flush.computers(&batch)?;
    flush.count_kinds();
    flush.streams(&batch);
    let Flush { draft, mut flushed, .. } = flush;
    flushed.gaps = draft.findings.iter().filter(|finding| finding.kind == FindingKind::Gap).count() as u64;
    Ok((draft, flushed))
}

/// A commit in the making, and what is worth noticing about it.
pub struct Flush<'a> {
    pub writer: &'a TeamWriter,
    pub settings: &'a Settings,
    pub seen_at: Instant,
    pub draft: Draft,
    /// Lateness measured, and event types met, by stream.
    learned: BTreeMap<Stream, (u64, BTreeSet<String>)>,
    kinds: Kinds,
    told: Told,
    flushed: Flushed,
}

/// Rows of a commit that are worth counting: quarantined ones by reason, redacted ones.
#[derive(Default)]
struct Kinds(BTreeMap<(Stream, FindingKind, String), u64>);

impl Kinds {
    fn count(&mut self, stream: Stream, kind: FindingKind, subject: &str, count: u64) {
        if count > 0 {
            *self.0.entry((stream, kind, subject.to_owned())).or_default() += count;
        }
    }
}

impl<'a> Flush<'a> {
    pub fn new(writer: &'a TeamWriter, settings: &'a Settings, seen_at: Instant) -> Self {
        let (learned, kinds, told, flushed) = Default::default();
        Self { writer, settings, seen_at, draft: Draft::default(), learned, kinds, told, flushed }
    }

    fn windows(&mut self, batch: &mut Batch) -> Result<(), ArchiveError> {
        let mut places: BTreeSet<Place> = batch.events.keys().copied().collect();
        places.extend(batch.changes.iter().map(|change| (change.stream, change.window)));
        let mut rejects: BTreeMap<Stream, Held> = BTreeMap::new();
        for place in places {
            // Once their rows are made, they need not take memory for the time that the commit takes.
            let mut events = batch.events.remove(&place).unwrap_or_default();
            let encoded = batch.encoded.remove(&place);
            let changes: Vec<_> = batch.changes.iter().filter(|some| (some.stream, some.window) == place).collect();
            self.window(place, &mut events, encoded, &changes, &mut rejects)?;
        }
        for (stream, events) in std::mem::take(&mut batch.untimed) {
            self.rows_of(stream, &mut [events.into()], &mut Held::default(), &mut rejects)?;
        }
        Ok(())
    }

    fn window(
        &mut self,
        (stream, window): Place,
        events: &mut [Piece],
        encoded: Option<EncodedTable>,
        changes: &[&WindowChange],
        rejects: &mut BTreeMap<Stream, Held>,
    ) -> Result<(), ArchiveError> {
        let stored = self.stored(stream, events, changes)?;
        let added = self.rows_of(stream, events, &mut Held::new(&stored), rejects)?;
        let rows = added.count() as u64;
        let before = self.writer.state().windows.get(&(stream, window.start)).cloned();
        if stream != Stream::Billing {
            // Billing shows ten entries alone: what it shows no longer is not gone.
            self.notice_gone(stream, window, &stored, events, changes);
        }
        self.notice_changed(stream, &added);
        if let Some(before) = before.as_ref().filter(|before| before.state != WindowState::Provisional && rows > 0) {
            self.notice_late(before, &added);
        }
        let mut record = before.clone();
        for (n, change) in changes.iter().enumerate() {
            record = Some(change.apply(record.as_ref(), if n == 0 { rows } else { 0 }, self.settings));
        }
        match (&before, &mut record) {
            // Events dated into the future, or served unasked, may have come before the window was read.
            (None, Some(record)) => record.events += self.writer.events_in(stream, window)?.len() as u64,
            (Some(_), Some(record)) if changes.is_empty() => {
                record.events += rows;
                record.late += if record.state == WindowState::Provisional { 0 } else { rows };
            }
            _ => {}
        }
        if let Some(record) = record.as_ref().filter(|_| changes.iter().any(|change| change.confirmed.is_some())) {
            self.close_gaps(record);
        }
        let settles = self.settles(stream, window, record.as_ref());
        if rows > 0 || settles {
            let Added { rows, columns, .. } = added;
            self.draft.rows.push(WindowRows { stream, window, rows, columns, encoded, compact: settles });
        }
        let is_proof = changes.iter().any(|change| change.confirmed.is_some() || change.rescanned);
        self.draft.windows.extend(record.filter(|record| is_proof || rows > 0 || says_more(record, before.as_ref())));
        Ok(())
    }

    /// Adds to the commit what its rows tell of computers; how many removals they tell of.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn computers(&mut self, batch: &Batch) -> Result<u64, ArchiveError> {
        let told = std::mem::take(&mut self.told);
        let removals = told.removals_told();
        let commit = Commit { writer: self.writer, settings: self.settings, seen_at: self.seen_at };
        told.record(&commit, batch, &mut self.draft)?;
        Ok(removals)
    }

    fn settles(&self, stream: Stream, window: Range, record: Option<&WindowRecord>) -> bool {
        let is_settled = |record: &WindowRecord| record.state != WindowState::Provisional;
        let was = self.writer.state().windows.get(&(stream, window.start)).is_some_and(is_settled);
        !was && record.is_some_and(is_settled)
    }

    /// The archived events that the batch could repeat, or that a whole reading should have met again.
    fn stored(
        &self,
        stream: Stream,
        events: &[Piece],
        changes: &[&WindowChange],
    ) -> Result<Vec<StoredEvent>, ArchiveError> {
        let times = || events.iter().flat_map(Piece::events).filter_map(|held| held.event.at());
        let starts = times().chain(changes.iter().filter_map(|change| Some(change.confirmed?.start)));
        let after = |at: Instant| Instant::from_nanos(at.nanos() + 1);
        let ends = times().map(after).chain(changes.iter().filter_map(|change| Some(change.confirmed?.end)));
        match (starts.min(), ends.max()) {
            (Some(start), Some(end)) => self.writer.events_in(stream, Range::new(start, end)),
            _ => Ok(Vec::new()),
        }
    }

    fn rows_of(
        &mut self,
        stream: Stream,
        events: &mut [Piece],
        held: &mut Held,
        rejects: &mut BTreeMap<Stream, Held>,
    ) -> Result<Added, ArchiveError> {
        if events.is_empty() {
            return Ok(Added::default());
        }
        let rejects = match rejects.entry(stream) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let known =
                    if planted::is(Bug::RejectsForgotten) { Vec::new() } else { self.writer.rejects(stream)? };
                entry.insert(Held::of_rejects(&known))
            }
        };
        let joining = Joining::of(self.writer.state(), stream, self.seen_at);
        let mut added = joining.pieces(events, held, rejects, self.writer.salts());
        self.flushed.rows += added.count() as u64;
        self.flushed.rejects += added.rejects.len() as u64;
        let served: u64 = events.iter().flat_map(Piece::events).map(|event| u64::from(event.count)).sum();
        self.flushed.repeated += served.saturating_sub((added.count() + added.rejects.len()) as u64);
        self.notice_kinds(stream, &added);
        if !planted::is(Bug::RejectsDropped) {
            self.draft.rejects.append(&mut added.rejects);
        }
        Ok(added)
    }

    pub fn notice_kinds(&mut self, stream: Stream, added: &Added) {
        for reject in &added.rejects {
            self.kinds.count(stream, FindingKind::Quarantined, &reject.reason, 1);
        }
        self.kinds.count(stream, FindingKind::Redacted, "secret", added.redacted);
        self.learned.entry(stream).or_default().1.extend(added.types.iter().map(|name| shorten(name)));
        if stream == Stream::Connections {
            let of_rows = added.rows.iter().map(|row| (connection_of(row), row.event_type.as_str()));
            for (_, event_type) in of_rows.chain(in_columns(added)).filter(|(connection, _)| connection.is_none()) {
                self.kinds.count(stream, FindingKind::NoConnectionId, &shorten(event_type), 1);
            }
        }
        self.told.hear(self.writer.state(), stream, added);
    }

    pub fn notice_changed(&mut self, stream: Stream, added: &Added) {
        for (id, time) in &added.changed {
            let why = "the same id came with other content: kept as a new revision";
            let mut finding = self.finding(stream, FindingKind::ChangedUpstream, id.as_str(), 1, why);
            (finding.from, finding.to) = (Some(*time), Some(*time));
            self.draft.findings.push(finding);
        }
    }

    /// Late: first seen after the reading that settled the window.
    fn notice_late(&mut self, before: &WindowRecord, added: &Added) {
        let Some((first, last)) = added.times() else { return };
        let by = before.settled_at.unwrap_or(before.range.end).since(first).as_secs();
        let learned = &mut self.learned.entry(before.stream).or_default().0;
        *learned = (*learned).max(by.min(LAG_SECONDS_MAX));
        let count = added.count() as u64;
        self.flushed.late += count;
        let seen = self.seen_at.since(first).as_secs();
        let why = format!("first seen on a re-scan, up to {seen} s after their time");
        let mut finding = self.finding(before.stream, FindingKind::Late, &before.range.to_string(), count, &why);
        (finding.from, finding.to) = (Some(first), Some(last));
        self.draft.findings.push(finding);
    }

    /// Counts archived events that a confirmed reading did not meet again, beyond those counted before of the same
    /// times: another re-scan may cut the window elsewhere.
    fn notice_gone(
        &mut self,
        stream: Stream,
        window: Range,
        stored: &[StoredEvent],
        events: &[Piece],
        changes: &[&WindowChange],
    ) {
        for range in changes.iter().filter_map(|change| change.confirmed) {
            let inside: Vec<StoredEvent> = stored.iter().filter(|event| range.owns(event.time)).cloned().collect();
            let gone = no_longer_served(&inside, events.iter().flat_map(Piece::events));
            let known: u64 = (self.writer.state().findings.iter())
                .filter(|(_, f)| f.kind == FindingKind::NoLongerServed && f.stream == Some(stream))
                .filter(|(_, f)| f.from.is_some_and(|from| from < range.end) && f.to.is_some_and(|to| range.start < to))
                .map(|(_, f)| f.count)
                .sum();
            if gone > known {
                let why = "archived, and no longer served upstream";
                let subject = window.to_string();
                let mut finding = self.finding(stream, FindingKind::NoLongerServed, &subject, gone - known, why);
                (finding.from, finding.to) = (Some(range.start), Some(range.end));
                self.draft.findings.push(finding);
            }
        }
    }

    /// A second that held still after all lost nothing.
    fn close_gaps(&mut self, record: &WindowRecord) {
        let whole = [record.range];
        let read = if record.state == WindowState::Provisional { &record.confirmed[..] } else { &whole };
        let is_read = |from: Instant, to: Instant| {
            record.range.start <= from
                && to <= record.range.end
                && missing(Range { start: from, end: to }, read).is_empty()
        };
        let closed: Vec<Finding> = (self.writer.state().gaps())
            .filter(|gap| gap.stream == Some(record.stream) && gap.subject == UNSTABLE)
            .filter(|gap| gap.from.zip(gap.to).is_some_and(|(from, to)| is_read(from, to)))
            .map(|gap| Finding {
                kind: FindingKind::GapClosed,
                reason: "read whole later".to_owned(),
                found_at: self.seen_at,
                ..gap.clone()
            })
            .collect();
        self.draft.findings.extend(closed);
    }

    pub fn streams(&mut self, batch: &Batch) {
        let mut records = Vec::new();
        let mut points = Vec::new();
        for stream in Stream::ALL {
            let before = self.writer.state().streams.get(&stream).cloned().unwrap_or_default();
            let mut record = before.clone();
            if let Some(change) = batch.streams.get(&stream) {
                points.extend(apply_but_points(stream, change, &mut record));
            }
            self.learn(stream, &mut record);
            records.push((stream, before, record));
        }
        // Notes go with what is worth a commit, and are no reason for one.
        let is_worth = !self.draft.is_empty() || !points.is_empty() || records.iter().any(|(_, old, new)| old != new);
        for (stream, before, mut record) in records {
            if let Some(note) = batch.notes.get(&stream).filter(|_| is_worth) {
                points.extend(apply_but_points(stream, note, &mut record));
            }
            if record != before {
                self.draft.streams.push((stream, record));
            }
        }
        // The service's clock is told in whole seconds: what was read is the better order.
        points.sort_by_key(|(stream, point)| (*stream, point.read_to));
        self.draft.read_points = points;
    }

    fn noted(&mut self, batch: &Batch) {
        let known =
            |finding: &&Finding| self.writer.state().findings.iter().any(|(_, known)| is_same_matter(known, finding));
        let fresh: Vec<Finding> = batch.noted.iter().filter(|finding| !known(finding)).cloned().collect();
        self.draft.findings.extend(fresh);
    }

    pub fn count_kinds(&mut self) {
        for ((stream, kind, subject), count) in std::mem::take(&mut self.kinds).0 {
            let why = match kind {
                FindingKind::NoConnectionId => NO_CONNECTION_ID,
                FindingKind::Redacted => "a string under a key named secret was replaced",
                _ => "kept in quarantine",
            };
            self.draft.findings.push(self.finding(stream, kind, &subject, count, why));
        }
    }

    fn learn(&mut self, stream: Stream, record: &mut StreamRecord) {
        let Some((late, types)) = self.learned.get(&stream).cloned() else { return };
        record.learned_lag_seconds = record.learned_lag_seconds.max(late);
        for name in types {
            if record.event_types.len() < EVENT_TYPES_MAX && record.event_types.insert(name.clone()) {
                let why = "an event type met for the first time";
                self.draft.findings.push(self.finding(stream, FindingKind::NewEventType, &name, 1, why));
            }
        }
    }

    pub fn finding(&self, stream: Stream, kind: FindingKind, subject: &str, count: u64, reason: &str) -> Finding {
        Finding {
            stream: Some(stream),
            kind,
            subject: subject.to_owned(),
            from: None,
            to: None,
            reason: reason.to_owned(),
            count,
            found_at: self.seen_at,
        }
    }
}

/// The connection and the type of each row in columns.
fn in_columns(added: &Added) -> impl Iterator<Item = (Option<&str>, &str)> {
    let rows = added.columns.iter().flat_map(EventColumns::rows);
    rows.map(|row| (row.connection_id.filter(|id| is_connection(id)), row.event_type))
}

fn shorten(name: &str) -> String {
    name.chars().take(EVENT_TYPE_CHARS_MAX).collect()
}
