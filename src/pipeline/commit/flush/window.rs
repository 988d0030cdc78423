//! One window's part of a commit: its new rows, its record, and the findings about both.

use std::collections::btree_map::Entry;

use crate::archive::{ArchiveError, StoredEvent, WindowRecord, WindowState};
use crate::collect::CountedEvent;
use crate::model::{Instant, Range, RawPolicy, RejectRow, Stream};
use crate::planted::{self, Bug};

use super::Flush;
use crate::pipeline::commit::WindowChange;
use crate::pipeline::commit::batch::StreamWindow;
use crate::pipeline::commit::change::{RowCounts, has_news};
use crate::pipeline::commit::join::{ArchivedEvents, NewRows, join, recognise};
use crate::pipeline::commit::notices;

impl Flush<'_> {
    /// Adds the rows, the record and the findings of one window.
    pub(super) fn window(
        &mut self,
        (stream, window): StreamWindow,
        events: Vec<CountedEvent>,
        changes: &[&WindowChange],
    ) -> Result<(), ArchiveError> {
        // Billing shows only the ten newest entries: older entries are missing from the answer, but not deleted.
        let proved = changes.iter().filter_map(|change| change.confirmed).filter(|_| stream != Stream::Billing);
        let proved: Vec<Range> = proved.collect();
        let mut stored = self.stored(stream, &events, &proved)?;
        recognise(&mut stored, &events, self.ctx.writer.salts())?;
        let added = self.rows_of(stream, &events, &mut ArchivedEvents::new(&stored))?;
        let state = self.ctx.writer.state();
        for range in proved {
            self.draft.body.findings.extend(notices::vanished(self.ctx, (stream, window), range, &stored, &events));
        }
        self.draft.body.findings.extend(notices::taken_back(self.ctx, stream, &stored, &events));
        // The rows replace the events: free their memory before the commit writes.
        drop(events);
        self.draft.body.findings.extend(notices::changed(self.ctx, stream, &added));
        let rows = added.counts();
        let before = state.windows.get(&(stream, window.start));
        if let Some(before) = before.filter(|before| before.state != WindowState::Provisional) {
            self.draft.body.findings.extend(self.notices.late(self.ctx, before, &added));
            self.flushed.late += rows.first_seen;
        }
        let record = self.record((stream, window), before, changes, rows)?;
        if let Some(record) = record.as_ref().filter(|_| changes.iter().any(|change| change.confirmed.is_some())) {
            self.draft.body.findings.extend(notices::closed_gaps(self.ctx, record));
        }
        let is_settled = |record: &WindowRecord| record.state != WindowState::Provisional;
        let settles = !before.is_some_and(is_settled) && record.as_ref().is_some_and(is_settled);
        if rows.all > 0 || settles {
            self.push_rows((stream, window), added.rows, settles)?;
        }
        let is_proof = changes.iter().any(|change| change.confirmed.is_some());
        self.draft.body.windows.extend(record.filter(|record| is_proof || rows.all > 0 || has_news(record, before)));
        Ok(())
    }

    /// The window's record after the changes and with the new rows.
    fn record(
        &self,
        (stream, window): StreamWindow,
        before: Option<&WindowRecord>,
        changes: &[&WindowChange],
        rows: RowCounts,
    ) -> Result<Option<WindowRecord>, ArchiveError> {
        let is_without_text = self.ctx.settings.privacy.of(stream) == RawPolicy::ColumnsOnly;
        let mut record = before.cloned();
        for (n, change) in changes.iter().enumerate() {
            let rows = if n == 0 { rows } else { RowCounts::default() };
            record = Some(change.apply(record.as_ref(), rows, self.ctx.settings));
        }
        match (before, &mut record) {
            // Future events, and events outside the requested range, may have arrived before the window was read.
            (None, Some(record)) => {
                let held = self.ctx.writer.rows().events_in(stream, window)?;
                record.events += held.len() as u64;
                record.without_text += held.iter().filter(|event| !event.has_text).count() as u64;
            }
            (Some(_), Some(record)) if changes.is_empty() => rows.add_to(record, self.ctx.settings),
            _ => {}
        }
        if let Some(record) = record.as_mut().filter(|_| is_without_text) {
            record.without_text += rows.all;
        }
        Ok(record)
    }

    /// The archived events that the batch may repeat, or that a complete reading must contain.
    fn stored(
        &mut self,
        stream: Stream,
        events: &[CountedEvent],
        proved: &[Range],
    ) -> Result<Vec<StoredEvent>, ArchiveError> {
        let rows = self.ctx.writer.rows();
        if stream == Stream::Billing && !events.is_empty() {
            if self.billing.is_none() {
                self.billing = Some(rows.events_in(stream, Range::new(Instant::EARLIEST, Instant::LATEST))?);
            }
            return Ok(self.billing.clone().unwrap_or_default());
        }
        let times = || events.iter().filter_map(|held| held.event.at());
        let starts = times().chain(proved.iter().map(|range| range.start));
        let after = |at: Instant| Instant::from_nanos(at.nanos() + 1);
        let ends = times().map(after).chain(proved.iter().map(|range| range.end));
        match (starts.min(), ends.max()) {
            (Some(start), Some(end)) => rows.events_in(stream, Range::new(start, end)),
            _ => Ok(Vec::new()),
        }
    }

    /// Makes rows of the events that neither `held` nor the quarantine holds.
    pub(super) fn rows_of(
        &mut self,
        stream: Stream,
        events: &[CountedEvent],
        held: &mut ArchivedEvents,
    ) -> Result<NewRows, ArchiveError> {
        let mut added = NewRows::default();
        if events.is_empty() {
            return Ok(added);
        }
        let writer = self.ctx.writer;
        let rejects = match self.rejects.entry(stream) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let known =
                    if planted::is(Bug::QuarantineRepeated) { Vec::new() } else { writer.rows().rejects(stream)? };
                entry.insert(ArchivedEvents::of_rejects(&known))
            }
        };
        rejects.recognise(events, writer.salts())?;
        join((writer.state(), stream, self.ctx.seen_at), events, held, rejects, &mut added);
        let has_expired = |reject: &mut RejectRow| writer.state().has_expired_in_quarantine(stream, reject.time);
        added.expired = added.rejects.extract_if(.., has_expired).count() as u64;
        let (rows, rejected) = (added.rows.len() as u64, added.rejects.len() as u64);
        self.flushed.rows += rows;
        self.flushed.rejects += rejected;
        let served: u64 = events.iter().map(|event| u64::from(event.count)).sum();
        self.flushed.repeated += served.saturating_sub(rows + rejected);
        self.notice(stream, &added);
        if !planted::is(Bug::RejectsDropped) {
            self.draft.rejects.append(&mut added.rejects);
        }
        Ok(added)
    }
}
