//! The loss by a computer's removal: its events that were not read before the removal. Pure.

use std::time::Duration;

use crate::archive::{Finding, FindingKind, ReadPoint, TeamState, WindowRecord};
use crate::model::ranges::{merge, missing};
use crate::model::{Instant, Range, Stream};
use crate::pipeline::commit::UNSTABLE;
use crate::pipeline::plan::{each_window, lag};
use crate::pipeline::settings::Settings;
use crate::planted::{self, Bug};

/// The subject of a gap of a removed computer without a name.
pub const UNKNOWN_COMPUTER: &str = "unknown_computer";

/// The subject of a gap of connections that the plan's span no longer shows.
pub const PLAN_SPAN: &str = "plan_span";
/// The service's `Date` is correct to a few minutes, so a reading may have been this much earlier than its `Date`.
pub const DATE_ERROR_MAX: Duration = Duration::from_secs(300);
/// A first backfill may be this far behind the plan's span: this is no loss.
const FIRST_READING_SLACK: Duration = Duration::from_secs(3600);

/// The removal of a computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The computer's id, or [`UNKNOWN_COMPUTER`].
    pub subject: String,
    /// The time by activity, or the time at which Annals noticed the removal.
    pub at: Instant,
    /// Readings up to this moment contained the computer's events.
    pub seen_until: Option<Instant>,
    /// When the computer was added, by activity.
    pub added_at: Option<Instant>,
}

/// The ranges of connections that were read, and the times of the readings.
#[derive(Debug, Clone, Default)]
pub struct ReadHistory {
    /// The start of the archive, and the time from which it counts: a backfill, and readings that extended it.
    begins: Vec<(Instant, Instant)>,
    points: Vec<ReadPoint>,
    /// Confirmed ranges, and the times of their confirmation.
    confirmed: Vec<(Range, Instant)>,
    /// Ranges that were not read whole although their lag had passed, and when a round found that. Only a confirmation
    /// vouches for them, because read points do not wait for them.
    doubtful: Vec<(Range, Instant)>,
    /// Events may appear this long after their time by the dates of the readings.
    lag: Duration,
    /// Recorded findings of removals.
    recorded: Vec<Finding>,
}

impl ReadHistory {
    /// The state of the last commit, with the read points that no commit holds yet.
    pub fn of(state: &TeamState, uncommitted: &[ReadPoint], settings: &Settings) -> Self {
        let held = state.streams.get(&Stream::Connections).cloned().unwrap_or_default();
        let mut history = Self { lag: lag(&held, settings).max(DATE_ERROR_MAX), ..Self::default() };
        history.points.extend(held.read_points.iter().chain(uncommitted));
        history.note_findings(state.findings.iter().map(|(_, finding)| finding));
        each_window(state, Stream::Connections).for_each(|window| history.note_window(window));
        history
    }

    /// Adds findings that wait for their commit.
    pub fn note_findings<'f>(&mut self, findings: impl Iterator<Item = &'f Finding>) {
        for finding in findings.filter(|finding| finding.stream == Some(Stream::Connections)) {
            if finding.kind == FindingKind::ArchiveBegins {
                self.begins.extend(finding.from.map(|from| (from, finding.found_at)));
            } else if matches!(finding.kind, FindingKind::Gap | FindingKind::RemovedBefore) {
                self.recorded.push(finding.clone());
            } else if matches!(finding.kind, FindingKind::UnstableWindow | FindingKind::Silence) {
                self.doubtful.extend(finding.range().map(|range| (range, finding.found_at)));
            }
        }
    }

    pub fn note_window(&mut self, window: &WindowRecord) {
        let Some(at) = window.confirmed_at.filter(|_| window.stream == Stream::Connections) else { return };
        self.confirmed.extend(window.proved().iter().map(|part| (*part, at)));
    }

    /// The last read point by `at`.
    pub fn point_by(&self, at: Option<Instant>) -> Option<ReadPoint> {
        let taken = self.points.iter().filter(|point| Some(point.at) <= at && at.is_some());
        taken.copied().max_by_key(|point| point.read_to)
    }

    /// The earliest time of events that a removal at that time can delete.
    pub fn open_from(&self, seen_until: Instant) -> Option<Instant> {
        self.point_by(Some(seen_until)).map(|point| point.read_to.minus(self.lag))
    }

    /// The findings of a removal that are not recorded yet.
    pub fn losses(&self, removal: &Removal, found_at: Instant) -> Vec<Finding> {
        let mut losses = if planted::is(Bug::NoRemovalGap) { Vec::new() } else { self.gaps(removal, found_at) };
        if !planted::is(Bug::RemovedBeforeForgotten) {
            losses.extend(self.before(removal, found_at));
        }
        losses
    }

    /// The start of the archive at that time.
    fn begins_at(&self, at: Instant) -> Option<Instant> {
        self.begins.iter().filter(|(_, since)| *since <= at).map(|(from, _)| *from).min()
    }

    /// Whether a reading of connections had begun at that time.
    pub fn has_begun_by(&self, at: Instant) -> bool {
        self.begins_at(at).is_some()
    }

    /// The doubtful ranges that `point` does not prove, without the parts that a read point from before the doubt proves.
    fn doubtful_at(&self, point: ReadPoint) -> Vec<Range> {
        let past_lag = self.doubtful.iter().filter(|(range, _)| range.end.plus(self.lag) <= point.read_to);
        merge(past_lag.flat_map(|(range, found_at)| {
            let before = self.point_by(Some(found_at.minus(Duration::from_nanos(1))));
            let since = before.and_then(|before| self.begins_at(before.at));
            let read = since.zip(before).map(|(start, before)| Range { start, end: before.read_to.minus(self.lag) });
            missing(*range, read.as_slice())
        }))
    }

    /// The ranges for which the readings by `until` vouch. The last of them, `point`, counts up to `end`.
    fn vouched(&self, point: Option<ReadPoint>, end: Instant, until: Option<Instant>) -> Vec<Range> {
        let whole = point
            .and_then(|point| Some(missing(Range { start: self.begins_at(point.at)?, end }, &self.doubtful_at(point))));
        let confirmed = self.confirmed.iter().filter(|(_, at)| Some(*at) <= until).map(|(range, _)| *range);
        merge(whole.into_iter().flatten().chain(confirmed))
    }

    /// The ranges for which no reading vouches, and which the plan's `span` no longer shows. `longest` is the longest span so far:
    /// no reading reached events that were older.
    pub fn unread_behind(&self, span: Duration, longest: Duration, now: Instant) -> Vec<Range> {
        let begins: Vec<Instant> = self.begins.iter().map(|(from, at)| (*from).max(at.minus(longest))).collect();
        let Some(start) = begins.iter().copied().min() else { return Vec::new() };
        // The service gives its time in whole seconds, so the last point may seem to be later than now.
        let point = self.point_by(Some(Instant::LATEST));
        // With a longer lag, each event could still appear after it left the span: each reading would leave a gap.
        let end = point.map_or(start, |point| point.read_to.minus(self.lag.min(span / 2)));
        let read = self.vouched(point, end, Some(Instant::LATEST));
        let recorded = self.recorded.iter().filter(|gap| [PLAN_SPAN, UNSTABLE].contains(&gap.subject.as_str()));
        let known = merge(recorded.filter_map(Finding::range).chain(read));
        let mut unread = missing(Range { start, end: now.minus(span) }, &known);
        unread.retain(|range| !begins.contains(&range.start) || range.start.plus(FIRST_READING_SLACK) < range.end);
        unread
    }

    fn gaps(&self, removal: &Removal, found_at: Instant) -> Vec<Finding> {
        let recorded = || self.recorded.iter().filter(|known| known.subject == removal.subject);
        let Some(begins) = self.begins_at(removal.at).filter(|begins| *begins < removal.at) else { return Vec::new() };
        let is_first = |point: Option<ReadPoint>| point.is_none_or(|point| point.read_to <= begins);
        if planted::is(Bug::FirstReadingForgotten) && is_first(self.point_by(removal.seen_until)) {
            return Vec::new();
        }
        let whole = Range { start: begins, end: removal.at };
        let point = self.point_by(removal.seen_until).filter(|_| !planted::is(Bug::GapFromBeginning));
        let is_around = |known: &Finding| known.from < Some(removal.at) && Some(removal.at) <= known.to;
        // The points of an old removal are forgotten, so only its recorded gap knows where it begins.
        let is_recorded = |known: &Finding| is_around(known) && (point.is_none() || known.to == Some(removal.at));
        if recorded().any(|known| known.kind == FindingKind::Gap && is_recorded(known)) {
            return Vec::new();
        }
        let once = point.map_or(begins, |point| point.read_to);
        let before_added = removal.added_at.and_then(|at| self.point_by(Some(at))).map(|point| point.read_to);
        let lag = if planted::is(Bug::NoLagInRemovalGap) { Duration::ZERO } else { self.lag };
        let surely = before_added.map_or(once.minus(lag), |added| added.max(once.minus(lag))).min(once);
        let until = removal.seen_until.filter(|_| !planted::is(Bug::GapFromBeginning));
        let read_to = |end| self.vouched(point, end, until);
        let unread_by = |latest: Instant| {
            let gaps = recorded().filter(|known| known.to <= Some(latest)).filter_map(Finding::range);
            missing(whole, &merge(gaps.chain(read_to(surely))))
        };
        // A gap that reaches over the removal can be of a later removal, and then it may begin too late.
        let gaps = if unread_by(Instant::LATEST).is_empty() { Vec::new() } else { unread_by(removal.at) };
        let unread = missing(whole, &read_to(once));
        let gap_of = |gap| finding(FindingKind::Gap, removal, gap, &gap_reason(removal, gap, &unread), found_at);
        gaps.into_iter().map(gap_of).collect()
    }

    /// The spans of the computer's events that were first read after its removal.
    fn before(&self, removal: &Removal, found_at: Instant) -> Vec<Finding> {
        let mut begins = self.begins.clone();
        begins.sort_by_key(|(_, since)| *since);
        let (mut end, mut spans) = (removal.at, Vec::new());
        for (from, since) in begins {
            if removal.at < since && from < end {
                spans.push(Range { start: from, end });
            }
            end = end.min(from);
        }
        let is_same = |known: &&Finding| known.kind == FindingKind::RemovedBefore && known.subject == removal.subject;
        let recorded = merge(self.recorded.iter().filter(is_same).filter_map(Finding::range));
        let spans = merge(spans).into_iter().flat_map(|span| missing(span, &recorded));
        let why =
            format!("{} was removed before this span was first read: its connections are missing", subject_of(removal));
        spans.map(|span| finding(FindingKind::RemovedBefore, removal, span, &why, found_at)).collect()
    }
}

fn subject_of(removal: &Removal) -> &'static str {
    if removal.subject == UNKNOWN_COMPUTER { "a computer that activity does not name" } else { "the computer" }
}

/// The reason tells the certain part of a gap from the possible part.
fn gap_reason(removal: &Removal, gap: Range, unread: &[Range]) -> String {
    let who = subject_of(removal);
    let lost = format!("{who} was removed, and the service deleted its history");
    match unread.iter().find(|part| part.overlaps(&gap)).map(|part| part.start.max(gap.start)) {
        Some(start) if start == gap.start => format!("{lost}: its connections of this time were not read"),
        Some(start) => format!(
            "{lost}: its connections from {start} on were not read; earlier ones are missing only if they appeared late"
        ),
        None => format!("{lost}: its connections of this time are missing only if they appeared late"),
    }
}

fn finding(kind: FindingKind, removal: &Removal, range: Range, reason: &str, found_at: Instant) -> Finding {
    Finding::new(Some(Stream::Connections), kind, &removal.subject, reason, found_at).over(range)
}

#[cfg(test)]
mod tests;
