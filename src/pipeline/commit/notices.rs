//! Findings about the rows of a commit: late, changed and vanished events, rejects, and new event types.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::{Finding, FindingKind, StoredEvent, StreamRecord, WindowRecord};
use crate::collect::CountedEvent;
use crate::correlate::connection_of;
use crate::model::ranges::missing;
use crate::model::{EventId, Instant, Range, Stream};
use crate::pipeline::commit::UNSTABLE;
use crate::pipeline::commit::batch::StreamWindow;
use crate::pipeline::commit::computer_events::CommitContext;
use crate::pipeline::commit::join::{NewRows, no_longer_served};
use crate::pipeline::sessions::NO_CONNECTION_ID;
use crate::pipeline::settings::LAG_SECONDS_MAX;

/// The number of event types that a stream remembers. Annals archives events of further types without a finding.
const EVENT_TYPES_MAX: usize = 1_000;
/// Characters of an event type's name that a record keeps.
const EVENT_TYPE_CHARS_MAX: usize = 120;

/// Facts about a stream that its new rows show.
#[derive(Default)]
struct StreamFacts {
    /// The longest delay of an event, in seconds.
    lag: u64,
    types: BTreeSet<String>,
}

/// Counts of new rows by kind, and the facts that they show.
#[derive(Default)]
pub struct Notices {
    counts: BTreeMap<(Stream, FindingKind, String), u64>,
    learned: BTreeMap<Stream, StreamFacts>,
}

impl Notices {
    pub fn count(&mut self, stream: Stream, added: &NewRows) {
        let mut count = |kind, subject: &str, rows: u64| {
            if rows > 0 {
                *self.counts.entry((stream, kind, subject.to_owned())).or_default() += rows;
            }
        };
        added.rejects.iter().for_each(|reject| count(FindingKind::Quarantined, &reject.reason, 1));
        count(FindingKind::Redacted, "secret", added.redacted);
        count(FindingKind::QuarantineExpired, "quarantine", added.expired);
        if stream == Stream::Connections {
            let without_connection = added.rows.iter().filter(|row| connection_of(row).is_none());
            without_connection.for_each(|row| count(FindingKind::NoConnectionId, &shorten(&row.event_type), 1));
        }
        let types: BTreeSet<&str> = added.rows.iter().map(|row| row.event_type.as_str()).collect();
        self.learned.entry(stream).or_default().types.extend(types.into_iter().map(shorten));
    }

    /// Events that first appeared after the reading that settled their window.
    pub fn late(&mut self, ctx: &CommitContext<'_>, before: &WindowRecord, added: &NewRows) -> Option<Finding> {
        let (first, last) = added.first_seen().min().zip(added.first_seen().max())?;
        let by = before.settled_at.unwrap_or(before.range.end).since(first).as_secs();
        let learned = &mut self.learned.entry(before.stream).or_default().lag;
        *learned = (*learned).max(by.min(LAG_SECONDS_MAX));
        let (subject, delay) = (before.range.to_string(), ctx.seen_at.since(first).as_secs());
        let reason = format!("first seen on a re-scan, up to {delay} s after their time");
        let finding = Finding::new(Some(before.stream), FindingKind::Late, &subject, &reason, ctx.seen_at);
        Some(Finding { from: Some(first), to: Some(last), count: added.counts().first_seen, ..finding })
    }

    /// Writes the facts of new rows into the stream's record. Returns a finding for each new event type.
    pub fn learn(&mut self, stream: Stream, record: &mut StreamRecord, seen_at: Instant) -> Vec<Finding> {
        let StreamFacts { lag, types } = self.learned.remove(&stream).unwrap_or_default();
        record.learned_lag_seconds = record.learned_lag_seconds.max(lag);
        let mut findings = Vec::new();
        for name in types {
            if record.event_types.len() < EVENT_TYPES_MAX && record.event_types.insert(name.clone()) {
                let reason = "a new event type";
                findings.push(Finding::new(Some(stream), FindingKind::NewEventType, &name, reason, seen_at));
            }
        }
        findings
    }

    /// The findings of all counts.
    pub fn take_counts(&mut self, seen_at: Instant) -> Vec<Finding> {
        let counts = std::mem::take(&mut self.counts).into_iter();
        let finding = |((stream, kind, subject), count): ((Stream, FindingKind, String), u64)| {
            let reason = match kind {
                FindingKind::NoConnectionId => NO_CONNECTION_ID,
                FindingKind::Redacted => "Annals replaced a string under a key named secret",
                FindingKind::QuarantineExpired => {
                    "the service still shows these events, but their month of quarantine expired: Annals does not keep them again"
                }
                _ => "Annals keeps these events in quarantine",
            };
            Finding { count, ..Finding::new(Some(stream), kind, &subject, reason, seen_at) }
        };
        counts.map(finding).collect()
    }
}

/// Ids with changed content: each has a new revision.
pub fn changed(ctx: &CommitContext<'_>, stream: Stream, added: &NewRows) -> Vec<Finding> {
    let reason = "the service changed the content of this id: Annals keeps a new revision";
    let revisions = added.rows.iter().filter(|row| row.revision > 1);
    let changed = revisions.map(|row| Finding {
        from: Some(row.time),
        to: Some(row.time),
        ..Finding::new(Some(stream), FindingKind::ChangedUpstream, row.event_id.as_str(), reason, ctx.seen_at)
    });
    changed.collect()
}

/// Finds corrections that the service takes back: it shows an earlier revision of an id again. Each pair of revisions is found
/// once. The archive adds no row, because two servers that alternate would add rows for ever.
pub fn taken_back(
    ctx: &CommitContext<'_>,
    stream: Stream,
    stored: &[StoredEvent],
    served: &[CountedEvent],
) -> Vec<Finding> {
    let mut latest: BTreeMap<&EventId, &StoredEvent> = BTreeMap::new();
    for event in stored.iter().filter(|event| event.revision > 1) {
        let held = latest.entry(&event.event_id).or_insert(event);
        *held = if held.revision < event.revision { event } else { *held };
    }
    let is_served = |event: &StoredEvent| served.iter().any(|held| held.event.digest == event.digest);
    let shown = |event: &StoredEvent| {
        let newest = latest.get(&event.event_id)?;
        if event.revision >= newest.revision || !is_served(event) || is_served(newest) {
            return None;
        }
        let (old, new) = (event.revision, newest.revision);
        let reason = format!("the service shows revision {old} of this id again, and no longer revision {new}");
        let subject = event.event_id.as_str();
        let finding = Finding::new(Some(stream), FindingKind::ChangedUpstream, subject, &reason, ctx.seen_at);
        let is_same = |known: &Finding| (&known.subject, &known.reason) == (&finding.subject, &finding.reason);
        let is_new = !ctx.writer.state().findings.iter().any(|(_, known)| is_same(known));
        is_new.then_some(Finding { from: Some(event.time), to: Some(event.time), ..finding })
    };
    stored.iter().filter_map(shown).collect()
}

/// Counts archived events of `range` that a confirmed reading did not find. Subtracts the events of the same times that
/// were counted before, because re-scans may cut a window at different places.
pub fn vanished(
    ctx: &CommitContext<'_>,
    (stream, window): StreamWindow,
    range: Range,
    stored: &[StoredEvent],
    served: &[CountedEvent],
) -> Option<Finding> {
    let inside: Vec<StoredEvent> = stored.iter().filter(|event| range.owns(event.time)).cloned().collect();
    let gone = no_longer_served(&inside, served);
    let known: u64 = (ctx.writer.state().findings.iter())
        .filter(|(_, f)| f.kind == FindingKind::NoLongerServed && f.stream == Some(stream))
        .filter(|(_, f)| f.from.is_some_and(|from| from < range.end) && f.to.is_some_and(|to| range.start < to))
        .map(|(_, f)| f.count)
        .sum();
    let more = gone.checked_sub(known).filter(|more| *more > 0)?;
    let reason = "the service no longer shows these archived events";
    let finding = Finding::new(Some(stream), FindingKind::NoLongerServed, &window.to_string(), reason, ctx.seen_at);
    Some(Finding { count: more, ..finding.over(range) })
}

/// Gaps of seconds that became stable later, and that the plan's span still shows: none of their events is lost.
pub fn closed_gaps(ctx: &CommitContext<'_>, record: &WindowRecord) -> Vec<Finding> {
    let gaps = ctx.writer.state().gaps();
    let span = ctx.writer.state().streams.get(&record.stream).and_then(StreamRecord::plan_span);
    let shown = span.map(|span| ctx.seen_at.minus(span));
    let gaps = gaps.filter(|gap| gap.stream == Some(record.stream) && gap.subject == UNSTABLE && gap.from >= shown);
    let closed = gaps.filter(|gap| gap.range().is_some_and(|range| missing(range, record.proved()).is_empty()));
    let finding = |gap: &Finding| Finding {
        kind: FindingKind::GapClosed,
        reason: "a later read covered this range completely".to_owned(),
        found_at: ctx.seen_at,
        ..gap.clone()
    };
    closed.map(finding).collect()
}

fn shorten(name: &str) -> String {
    name.chars().take(EVENT_TYPE_CHARS_MAX).collect()
}
