//! Retries quarantined events by the rules of this program. Events that can now become rows leave quarantine in the
//! commit that adds the rows. The others stay. A retry uses only the archive.

use std::collections::BTreeMap;

use crate::api::wire;
use crate::archive::{ArchiveError, Committed, Draft, Finding, FindingKind, Release, TeamWriter};
use crate::collect::CountedEvent;
use crate::model::{Dataset, Instant, RawEvent, RawPolicy, RejectRow, Stream};

use crate::pipeline::commit::Batch;
use crate::pipeline::commit::batch::StreamWindow;
use crate::pipeline::commit::computer_events::CommitContext;
use crate::pipeline::commit::flush::Flush;
use crate::pipeline::commit::join::{ArchivedEvents, NewRows, join};
use crate::pipeline::commit::notices;
use crate::pipeline::plan::StreamWindows;
use crate::pipeline::sessions::{Chunk, correlate};
use crate::pipeline::settings::Settings;

/// The result for quarantined events of one stream and reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retried {
    /// Events that became rows.
    pub released: u64,
    /// Events that still cannot become rows.
    pub kept: u64,
}

/// The results by stream and reason.
pub type RetriedByReason = BTreeMap<(Stream, String), Retried>;

/// Retries a team's quarantined events, file by file, with a commit for each file that loses events.
///
/// # Errors
/// When the archive cannot be read or written. Earlier commits of the retry remain.
pub fn retry_quarantine(
    writer: &mut TeamWriter,
    settings: &Settings,
    now: Instant,
) -> Result<RetriedByReason, ArchiveError> {
    let mut retried = RetriedByReason::new();
    let paths: Vec<String> = writer.state().files_of(Dataset::Quarantine).map(|file| file.path.clone()).collect();
    for path in paths {
        let ctx = CommitContext { writer, settings, uncommitted: &[], seen_at: now };
        let mut retry = FileRetry::new(path, &ctx);
        for row in writer.rows().rejects_of(&retry.release.path)? {
            let retried = retried.entry((row.stream, row.reason.clone())).or_default();
            let count = if retry.take(row)? { &mut retried.released } else { &mut retried.kept };
            *count += 1;
        }
        let Some(mut draft) = retry.into_draft()? else { continue };
        correlate(&mut draft, writer, now)?;
        let _ = writer.commit(draft, now)?;
        while let Some(chunk) = Chunk::settled(writer.state())
            && let Committed::Committed { .. } = chunk.commit(writer, now, now)?
        {}
    }
    Ok(retried)
}

/// The retry of one file of quarantine.
struct FileRetry<'a> {
    flush: Flush<'a>,
    release: Release,
    /// The windows that gain rows.
    places: BTreeMap<StreamWindow, RetriedWindow>,
    windows: BTreeMap<Stream, StreamWindows>,
}

struct RetriedWindow {
    held: ArchivedEvents,
    added: NewRows,
}

impl<'a> FileRetry<'a> {
    fn new(path: String, ctx: &'a CommitContext<'a>) -> Self {
        let release = Release { path, released: Vec::new(), kept: Vec::new() };
        Self { flush: Flush::new(ctx), release, places: BTreeMap::new(), windows: BTreeMap::new() }
    }

    /// Whether the event can become a row now.
    fn take(&mut self, row: RejectRow) -> Result<bool, ArchiveError> {
        let is_row = self.join(&row)?;
        if is_row { &mut self.release.released } else { &mut self.release.kept }.push(row);
        Ok(is_row)
    }

    /// Adds the row of the event, if it can become one.
    fn join(&mut self, row: &RejectRow) -> Result<bool, ArchiveError> {
        // An erased event stays: only its row in quarantine tells a re-scan that the served text is archived already.
        let event = event_of(row).filter(|_| row.erased.is_none());
        let Some((at, event)) = event.and_then(|event| Some((event.at()?, event))) else { return Ok(false) };
        let (state, grid) = (self.flush.ctx.writer.state(), self.flush.ctx.settings.grid);
        let windows = || StreamWindows::of(state, row.stream, grid);
        let window = self.windows.entry(row.stream).or_insert_with(windows).of_event(at);
        if state.has_expired(row.stream, window.start) {
            return Ok(false);
        }
        let place = match self.places.entry((row.stream, window)) {
            std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let held = ArchivedEvents::new(&self.flush.ctx.writer.rows().events_in(row.stream, window)?);
                place.insert(RetriedWindow { held, added: NewRows::default() })
            }
        };
        let mut events = [CountedEvent { event, count: 1 }];
        place.held.recognise(&events, self.flush.ctx.writer.salts())?;
        let [CountedEvent { event, count }] = &mut events;
        // This event is one more occurrence, because an event is either a row or in quarantine.
        *count += place.held.occurrences(&event.digest);
        if event.id.is_some() && *count > 1 {
            return Ok(false);
        }
        let before = place.added.rows.len();
        let of = (state, row.stream, row.first_seen_at);
        join(of, &events, &mut place.held, &mut ArchivedEvents::default(), &mut place.added);
        Ok(place.added.rows.len() > before)
    }

    /// The commit of the released events. `None` if no event is released.
    fn into_draft(self) -> Result<Option<Draft>, ArchiveError> {
        let Self { mut flush, release, places, .. } = self;
        if release.released.is_empty() {
            return Ok(None);
        }
        for ((stream, window), RetriedWindow { mut added, .. }) in places {
            // Its event stays in quarantine.
            if added.rows.is_empty() {
                continue;
            }
            // These were counted when they were first read.
            (added.rejects, added.redacted) = (Vec::new(), 0);
            flush.notice(stream, &added);
            flush.draft.body.findings.extend(notices::changed(flush.ctx, stream, &added));
            if let Some(held) = flush.ctx.writer.state().windows.get(&(stream, window.start)) {
                let mut record = held.clone();
                let rows = added.rows.len() as u64;
                record.events += rows;
                if flush.ctx.settings.privacy.of(stream) == RawPolicy::ColumnsOnly {
                    record.without_text += rows;
                }
                flush.draft.body.windows.push(record);
            }
            flush.push_rows((stream, window), added.rows, false)?;
        }
        let mut counts: BTreeMap<(Stream, &str), u64> = BTreeMap::new();
        for row in &release.released {
            *counts.entry((row.stream, &row.reason)).or_default() += 1;
        }
        for ((stream, reason), count) in counts {
            let why = concat!("annals ", env!("CARGO_PKG_VERSION"), " made rows of these events");
            let finding = Finding::new(Some(stream), FindingKind::Released, reason, why, flush.ctx.seen_at);
            flush.draft.body.findings.push(Finding { count, ..finding });
        }
        flush.finish(&Batch::default())?;
        flush.draft.releases.push(release);
        Ok(Some(flush.draft))
    }
}

/// The event, read by the current rules.
fn event_of(row: &RejectRow) -> Option<RawEvent> {
    let mut events = wire::single_event(row.stream, &row.raw).ok()?;
    // A foreign writer may have stored no event here, or several.
    let event = events.pop().filter(|event| events.is_empty() && event.text == row.raw)?;
    Some(RawEvent { redacted: event.redacted || row.redacted, ..event })
}
