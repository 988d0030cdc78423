//! Makes one commit of a batch: joins it with the archived events, and adds the findings about it.

use std::collections::BTreeMap;

use crate::archive::{
    ArchiveError, Committed, Draft, Finding, FindingKind, StoredEvent, TeamWriter, WindowRecord, WindowRows,
};
use crate::model::{EventRow, Instant, RawPolicy, Stream};
use crate::planted::{self, Bug};

use crate::pipeline::commit::batch::{StreamWindow, is_duplicate};
use crate::pipeline::commit::computer_events::{CommitContext, ComputerEvents};
use crate::pipeline::commit::join::{ArchivedEvents, NewRows};
use crate::pipeline::commit::notices::Notices;
use crate::pipeline::commit::seal::{busy_days, seal_final_month};
use crate::pipeline::commit::{Batch, CommitCounts, WindowChange};
use crate::pipeline::sessions::{Chunk, correlate};
use crate::pipeline::team::TeamEdges;
use crate::threads::both;

mod window;

/// Fewer events do not justify a thread.
const EVENTS_A_THREAD_MIN: usize = 4_000;

/// Makes one commit of the batch. In a backfill, the commit includes sessions of earlier events, and the month that is
/// final follows it. `seen_at` is the service's clock, `now` the machine's clock.
///
/// # Errors
/// When the archive cannot be read or written. Then the whole batch stays uncommitted, unless only the sessions of the chunk
/// cannot be made: their error is returned after the commit.
pub fn flush(
    edges: &TeamEdges,
    writer: &mut TeamWriter,
    batch: Batch,
    (seen_at, now): (Instant, Instant),
) -> Result<CommitCounts, ArchiveError> {
    let uncommitted = edges.memory.points(Stream::Connections);
    // Without a chunk, another team may make sessions.
    let permit = edges.budget.try_session_permit();
    let chunk = permit.and_then(|permit| Some((Chunk::settled(writer.state())?, permit)));
    let ctx = CommitContext { writer, settings: &edges.settings, uncommitted: &uncommitted, seen_at };
    let is_large = batch.size() >= EVENTS_A_THREAD_MIN;
    let sessions = || chunk.as_ref().map(|(chunk, _)| chunk.make(ctx.writer.rows(), seen_at)).transpose();
    let (prepared, sessions) = both(is_large, || prepare(batch, &ctx), sessions);
    let (mut draft, flushed) = prepared?;
    let (sessions, failure) = match sessions {
        Ok(sessions) => (sessions, None),
        Err(error) => (None, Some(error)),
    };
    draft.sessions = sessions.map(|(sessions, _)| sessions);
    draft.body.sealed_days = busy_days(writer.state(), &draft);
    correlate(&mut draft, writer, seen_at)?;
    let committed = writer.commit(draft, now)?;
    failure.map_or(Ok(()), Err)?;
    drop(chunk);
    seal_final_month(writer, edges.settings.partition, now)?;
    Ok(CommitCounts { commits: u64::from(committed != Committed::Nothing), ..flushed })
}

/// The commit of the batch, without its sessions.
fn prepare(mut batch: Batch, ctx: &CommitContext<'_>) -> Result<(Draft, CommitCounts), ArchiveError> {
    let mut flush = Flush::new(ctx);
    flush.draft.body.devices = batch.devices.clone();
    flush.findings(&batch);
    flush.windows(&mut batch)?;
    flush.finish(&batch)?;
    let Flush { draft, mut flushed, .. } = flush;
    flushed.gaps = draft.body.findings.iter().filter(|finding| finding.kind == FindingKind::Gap).count() as u64;
    Ok((draft, flushed))
}

/// A commit under construction.
pub struct Flush<'a> {
    pub ctx: &'a CommitContext<'a>,
    pub draft: Draft,
    notices: Notices,
    computer_events: ComputerEvents,
    flushed: CommitCounts,
    /// The quarantined events, by stream.
    rejects: BTreeMap<Stream, ArchivedEvents>,
    /// All archived entries of billing: they are few, and the service may move an entry into another window.
    billing: Option<Vec<StoredEvent>>,
}

impl<'a> Flush<'a> {
    pub fn new(ctx: &'a CommitContext<'a>) -> Self {
        let (draft, notices, computer_events) = (Draft::default(), Notices::default(), ComputerEvents::default());
        let (flushed, rejects) = (CommitCounts::default(), BTreeMap::new());
        Self { ctx, draft, notices, computer_events, flushed, rejects, billing: None }
    }

    fn windows(&mut self, batch: &mut Batch) -> Result<(), ArchiveError> {
        let mut places: BTreeMap<StreamWindow, Vec<&WindowChange>> =
            batch.events.keys().map(|place| (*place, Vec::new())).collect();
        for change in &batch.changes {
            places.entry((change.stream, change.window)).or_default().push(change);
        }
        // An expired month stays expired, even if the service still shows it.
        places.retain(|(stream, window), _| !self.ctx.writer.state().has_expired(*stream, window.start));
        for (place, changes) in places {
            let events = batch.events.remove(&place).unwrap_or_default();
            self.window(place, events, &changes)?;
        }
        for (stream, events) in std::mem::take(&mut batch.untimed) {
            self.rows_of(stream, &events, &mut ArchivedEvents::default())?;
        }
        Ok(())
    }

    /// Adds new rows to the commit, with or without their text, by the policy of the stream.
    pub fn push_rows(
        &mut self,
        (stream, window): StreamWindow,
        mut rows: Vec<EventRow>,
        compact: bool,
    ) -> Result<(), ArchiveError> {
        if self.ctx.settings.privacy.of(stream) == RawPolicy::ColumnsOnly && !planted::is(Bug::TextsKept) {
            let known_as = self.ctx.writer.salts().originals()?;
            rows = rows.into_iter().map(|row| row.without_text(&known_as)).collect();
        }
        self.draft.rows.push(WindowRows::new(stream, window, rows, compact));
        Ok(())
    }

    /// Notes the new rows.
    pub fn notice(&mut self, stream: Stream, added: &NewRows) {
        self.notices.count(stream, added);
        self.computer_events.observe(self.ctx.writer.state(), stream, added);
    }

    /// Adds everything that follows from the rows that were noted, and the changes of streams.
    pub fn finish(&mut self, batch: &Batch) -> Result<(), ArchiveError> {
        self.computers(batch)?;
        self.draft.body.findings.extend(self.notices.take_counts(self.ctx.seen_at));
        self.streams(batch);
        Ok(())
    }

    /// Adds computers and losses that the rows name.
    fn computers(&mut self, batch: &Batch) -> Result<(), ArchiveError> {
        self.flushed.removals = self.computer_events.removals.len() as u64;
        std::mem::take(&mut self.computer_events).record(self.ctx, batch, &mut self.draft)?;
        if !self.draft.body.devices.removed.is_empty() {
            // A deletion moves the later events of a list forwards. So a late event can stand before the end of the last walk.
            // Without an end, the next reading walks each open window from its start.
            let windows = &mut self.draft.body.windows;
            let is_walked = |held: &&WindowRecord| held.stream == Stream::Connections && held.walk.is_some();
            let is_new =
                |held: &&WindowRecord| windows.iter().all(|new| (new.stream, new.range) != (held.stream, held.range));
            let held = self.ctx.writer.state().windows.values().filter(is_walked).filter(is_new);
            let held: Vec<_> = held.cloned().collect();
            windows.extend(held);
            let of_connections = windows.iter_mut().filter(|window| window.stream == Stream::Connections);
            of_connections.for_each(|window| window.walk = None);
        }
        Ok(())
    }

    /// Adds the records and read points of streams. A change that is not due is written with another one, and never
    /// triggers a commit.
    fn streams(&mut self, batch: &Batch) {
        let state = self.ctx.writer.state();
        let mut records = Vec::new();
        for stream in Stream::ALL {
            let before = state.streams.get(&stream).cloned().unwrap_or_default();
            let mut record = before.clone();
            self.draft.body.findings.extend(self.notices.learn(stream, &mut record, self.ctx.seen_at));
            records.push((stream, before, record));
        }
        let is_worth = batch.is_due || !self.draft.is_empty() || records.iter().any(|(_, old, new)| old != new);
        for (stream, before, mut record) in records {
            for (_, change) in batch.streams.iter().filter(|(of, _)| is_worth && *of == stream) {
                change.apply(&mut record);
            }
            if record != before {
                self.draft.body.streams.push((stream, record));
            }
        }
        if is_worth {
            self.draft.body.read_points.clone_from(&batch.read_points);
        }
        // The service gives its time in whole seconds, so the end of the reading gives the better order.
        self.draft.body.read_points.sort_by_key(|(stream, point)| (*stream, point.read_to));
    }

    /// Adds the batch's findings. Each gap and each deferred finding is recorded once.
    fn findings(&mut self, batch: &Batch) {
        let is_recorded =
            |new: &Finding| self.ctx.writer.state().findings.iter().any(|(_, known)| is_duplicate(known, new));
        let is_new = |finding: &&Finding| finding.kind != FindingKind::Gap || !is_recorded(finding);
        let mut findings: Vec<Finding> = batch.findings.iter().filter(is_new).cloned().collect();
        for deferred in &batch.deferred_findings {
            if !is_recorded(deferred) && !findings.iter().any(|known| is_duplicate(known, deferred)) {
                findings.push(deferred.clone());
            }
        }
        self.draft.body.findings = findings;
    }
}
