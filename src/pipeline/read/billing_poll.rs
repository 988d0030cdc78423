//! One poll of the billing history. The answer has the ten newest entries, without a range or paging.

use std::time::Duration;

use crate::archive::{Finding, FindingKind, ReadPoint, SnapshotEntry, WindowState};
use crate::collect::CountedEvent;
use crate::model::{EventIdentity, Instant, Multiset, RawEvent, Stream};

use crate::pipeline::commit::{Batch, StreamChange, WindowChange};
use crate::pipeline::error::RoundError;
use crate::pipeline::loss::DATE_ERROR_MAX;
use crate::pipeline::plan::{StreamWindows, lag, read_to};
use crate::pipeline::read::billing_snapshot::{
    Overlap, SNAPSHOT_ENTRIES_MAX, compare, duplicates_at_the_end, next_snapshot,
};
use crate::pipeline::settings::COMMIT_WINDOWS_MAX;
use crate::pipeline::team::TeamContext;

/// Polls billing once.
pub async fn poll_billing(ctx: &TeamContext) -> Result<(), RoundError> {
    let served = ctx.source.billing(&ctx.team).await?;
    ctx.service().observe(served.at);
    let now = ctx.service().now();
    let windows = ctx.with_state(|state| StreamWindows::of(state, Stream::Billing, ctx.settings.grid)).await;
    let record = windows.record.clone();
    let events = served.body.events;
    let key = ctx.writer().await.salts().event_key()?;
    let entry = |identity: EventIdentity| SnapshotEntry::new(&identity, key.digest(&identity.digest));
    let entries: Vec<SnapshotEntry> = events.iter().map(|event| entry(event.identity())).collect();
    let overlap = compare(&record.snapshot, &entries, record.begins.is_none());
    let snapshot = next_snapshot(&record.snapshot, &entries);
    ctx.memory.note_billing(events.iter().filter_map(RawEvent::at).collect());
    let read_to = read_to(&record, ctx.memory.last_point(Stream::Billing));
    let mut poll = Poll { ctx, now, read_to, windows, events: &events };
    let begins = record.begins.unwrap_or_else(|| poll.first_window());
    let (proved, open): (Vec<_>, Vec<_>) =
        poll.windows_from(begins).into_iter().partition(|change| change.confirmed.is_some());
    let hidden = poll.hidden(duplicates_at_the_end(&record.snapshot, &entries));
    let change = StreamChange {
        begins: record.begins.is_none().then_some(begins),
        snapshot: (snapshot != record.snapshot).then_some(snapshot),
        ..StreamChange::default()
    };
    let point = ReadPoint { at: now, read_to: now, listed_at: None };
    ctx.add(|batch| {
        batch.findings.extend(poll.findings(overlap));
        batch.findings.extend(hidden);
        if change != StreamChange::default() {
            batch.streams.push((Stream::Billing, change));
            batch.is_due = true;
            poll.add_events(batch);
            batch.changes.extend(open);
        }
    })
    .await?;
    // An entry can be years old, and have very many windows after it.
    for windows in proved.chunks(COMMIT_WINDOWS_MAX) {
        ctx.add(|batch| batch.changes.extend_from_slice(windows)).await?;
    }
    Ok(ctx.note_point(Stream::Billing, point, StreamChange::default()).await?)
}

struct Poll<'a> {
    ctx: &'a TeamContext,
    now: Instant,
    /// The last read point, committed or not.
    read_to: Option<Instant>,
    windows: StreamWindows,
    /// Newest first, as documented.
    events: &'a [RawEvent],
}

impl Poll<'_> {
    fn oldest(&self) -> Option<Instant> {
        self.events.iter().filter_map(RawEvent::at).min()
    }

    fn first_window(&self) -> Instant {
        let first = self.oldest().map_or(self.now, |oldest| oldest.min(self.now));
        self.ctx.settings.grid.window_of(first).start
    }

    fn add_events(&self, batch: &mut Batch) {
        let mut counts: Multiset<_> = Multiset::default();
        for event in self.events.iter().rev() {
            let count = if event.id.is_some() { 1 } else { counts.add(event.digest) };
            let window = event.at().map(|at| self.windows.of_event(at));
            batch.add_event(Stream::Billing, window, CountedEvent { event: event.clone(), count });
        }
    }

    /// A poll proves every window before it: its entries are or were among the ten, or a gap records the loss. The records of
    /// open windows count their entries.
    fn windows_from(&mut self, begins: Instant) -> Vec<WindowChange> {
        let settings = &self.ctx.settings;
        let mut changes = Vec::new();
        for window in self.windows.extend(begins, self.now) {
            let held = self.windows.held.get(&window.start);
            let settled = held.filter(|held| held.state != WindowState::Provisional);
            let is_due = match settled {
                Some(held) => settings.is_rescan_due(held, self.now),
                None => window.end.plus(lag(&self.windows.record, settings)) <= self.now,
            };
            let is_shown = || self.events.iter().filter_map(RawEvent::at).any(|at| window.owns(at));
            if is_due || (settled.is_none() && is_shown()) {
                let read = WindowChange::new(Stream::Billing, window, self.now);
                changes.push(WindowChange { walks: 1, requests: 1, confirmed: is_due.then_some(window), ..read });
            }
        }
        changes
    }

    fn findings(&self, overlap: Overlap) -> Option<Finding> {
        let (kind, from, to, reason) = match overlap {
            Overlap::First => {
                let why = if self.events.len() < SNAPSHOT_ENTRIES_MAX {
                    "the service shows fewer than ten entries: the archive holds the whole billing history"
                } else {
                    "the service shows only the ten newest entries: older entries of the same second may be missing"
                };
                (FindingKind::ArchiveBegins, self.oldest(), None, why)
            }
            Overlap::Overrun => {
                // Entries have whole seconds: lost ones may have the second of the last reading, or of the oldest entry.
                let read_to = self.read_to.map(|read_to| read_to.minus(DATE_ERROR_MAX)).or(self.windows.record.begins);
                let oldest = self.oldest().filter(|oldest| read_to.is_none_or(|read_to| read_to <= *oldest));
                let from = read_to.into_iter().chain(self.oldest()).min().map(Instant::floor_second);
                let to = oldest.map_or(self.now, |oldest| oldest.plus(Duration::from_secs(1)));
                let why = "the oldest of the ten shown entries is new: entries before it may be lost";
                (FindingKind::Gap, from, Some(to), why)
            }
            Overlap::Ambiguous => {
                let why = "equal entries allow several overlaps with the previous snapshot";
                (FindingKind::AmbiguousOverlap, None, None, why)
            }
            Overlap::Joined => return None,
        };
        Some(self.finding(kind, (from, to), reason))
    }

    /// The gap of equal entries that the service may hide behind the last `equal` entries, at their time. Entries that
    /// appear after the last re-scan are not considered.
    fn hidden(&self, equal: usize) -> Option<Finding> {
        let times = || self.events[self.events.len() - equal..].iter().filter_map(RawEvent::at);
        let (from, to) = (times().min()?, times().max()?.plus(Duration::from_secs(1)));
        let waited = self.ctx.settings.rescan.last().copied().unwrap_or_default();
        if self.read_to.unwrap_or(self.now) >= self.windows.of_event(from).end.plus(waited) {
            return None;
        }
        let why = "equal entries without ids reach to the end of the answer: more of them may have been lost";
        Some(self.finding(FindingKind::Gap, (Some(from), Some(to)), why))
    }

    fn finding(&self, kind: FindingKind, (from, to): (Option<Instant>, Option<Instant>), reason: &str) -> Finding {
        let finding = Finding::new(Some(Stream::Billing), kind, Stream::Billing.as_str(), reason, self.now);
        Finding { from, to, ..finding }
    }
}
