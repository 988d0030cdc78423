//! The coverage of a period: which parts are read and settled, and the gaps in it.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::archive::{ExpiredRecord, Finding, FindingKind, WindowState};
use crate::model::path::month_of;
use crate::model::{Dataset, Instant, LedgerSeq, Range, Stream, TeamId};

use crate::report::views::data::{Recorded, TeamSnapshot, ViewData, open_gaps_of};

/// A half-open interval of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    pub from: Instant,
    pub to: Instant,
}

/// A recorded gap that touches the period, with its own bounds; `None` for an unknown bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GapInside {
    pub from: Option<Instant>,
    pub to: Option<Instant>,
    pub reason: String,
    /// The subject of the gap: a computer's id, a window or a stream.
    pub subject: String,
}

/// One stream of one team in a period.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamCoverage {
    pub team: String,
    /// `None` for gaps without a stream, and for expired months of people and computers.
    pub stream: Option<Stream>,
    /// True if the whole period is settled, has no gap, and no computer was removed before its connections were read.
    pub complete: bool,
    /// The start of the archive; `None` before the backfill.
    pub begins: Option<Instant>,
    /// Number of settled or sealed windows in the period.
    pub settled: u64,
    /// Number of windows that were read in part, or before their lag had passed.
    pub provisional: u64,
    /// The part of the period before the archive begins.
    pub before_archive: Option<Span>,
    /// Parts between windows that were never read.
    pub missing: Vec<Span>,
    /// The part after the last window, which is not read yet.
    pub not_yet_read: Option<Span>,
    /// Expired months in the period. They are neither gaps nor missing.
    pub expired: Vec<GapInside>,
    pub gaps: Vec<GapInside>,
    /// Computers that were removed before Annals first read this part: their connections are missing.
    pub removed_before: Vec<GapInside>,
}

/// The coverage of `period` for each stream, of one team or of all.
pub fn coverage(data: &ViewData, period: Range, team: Option<&TeamId>) -> Vec<StreamCoverage> {
    let is_asked = |of: &TeamId| team.is_none_or(|team| team == of);
    // Group the rows once: a search through all rows for each team would take quadratic time.
    let mut windows: HashMap<(&TeamId, Stream), Vec<(Range, WindowState)>> = HashMap::new();
    for row in data.coverage.iter().filter(|row| is_asked(&row.team_id)) {
        windows.entry((&row.team_id, row.window.stream)).or_default().push((row.window.range, row.window.state));
    }
    let mut findings: HashMap<&TeamId, Vec<&Finding>> = HashMap::new();
    for row in data.findings.iter().filter(|row| is_asked(&row.team_id)) {
        findings.entry(&row.team_id).or_default().push(&row.record);
    }
    let mut found = Vec::new();
    for snapshot in data.teams.iter().filter(|snapshot| is_asked(&snapshot.team_id)) {
        let findings = findings.remove(&snapshot.team_id).unwrap_or_default();
        let mut gaps = inside(open_gaps_of(&findings).into_iter(), period);
        let removed = findings.iter().copied().filter(|finding| finding.kind == FindingKind::RemovedBefore);
        let mut removed = inside(removed, period);
        for stream in Stream::ALL {
            let of = |of: &mut BTreeMap<_, Vec<GapInside>>| of.remove(&Some(stream)).unwrap_or_default();
            let mut windows = windows.remove(&(&snapshot.team_id, stream)).unwrap_or_default();
            windows.sort_unstable();
            let covered = of_stream(&windows, snapshot, stream, period, (of(&mut gaps), of(&mut removed)));
            found.push(expiring(covered, (data, &windows), snapshot, stream, period));
        }
        let gaps = gaps.remove(&None).unwrap_or_default();
        let expired = expired_inventory(data, snapshot, period);
        if !gaps.is_empty() || !expired.is_empty() {
            let team = snapshot.team_id.to_string();
            found.push(StreamCoverage { team, gaps, expired, ..StreamCoverage::default() });
        }
    }
    found
}

/// The findings that touch the period, by stream, sorted by time.
fn inside<'a>(findings: impl Iterator<Item = &'a Finding>, period: Range) -> BTreeMap<Option<Stream>, Vec<GapInside>> {
    let mut found: BTreeMap<Option<Stream>, Vec<GapInside>> = BTreeMap::new();
    for gap in findings {
        let overlaps = gap.from.is_none_or(|from| from < period.end) && gap.to.is_none_or(|to| period.start < to);
        // A gap of zero length is inside if the period contains its moment.
        let is_moment = gap.from == gap.to && gap.from.is_some_and(|at| period.owns(at));
        if overlaps || is_moment {
            found.entry(gap.stream).or_default().push(GapInside {
                from: gap.from,
                to: gap.to,
                reason: gap.reason.clone(),
                subject: gap.subject.clone(),
            });
        }
    }
    for gaps in found.values_mut() {
        gaps.sort_by(|a, b| (a.from, a.to, &a.subject).cmp(&(b.from, b.to, &b.subject)));
    }
    found
}

fn of_stream(
    windows: &[(Range, WindowState)],
    snapshot: &TeamSnapshot,
    stream: Stream,
    period: Range,
    (gaps, removed_before): (Vec<GapInside>, Vec<GapInside>),
) -> StreamCoverage {
    let team = snapshot.team_id.to_string();
    let mut covered = StreamCoverage { team, stream: Some(stream), gaps, removed_before, ..StreamCoverage::default() };
    let first = windows.first().map(|(range, _)| range.start);
    covered.begins = snapshot.begins.get(&stream).copied().or(first);
    let Some(begins) = covered.begins else {
        covered.not_yet_read = span(period.start, period.end);
        return covered;
    };
    covered.before_archive = span(period.start, begins.min(period.end));
    // Everything before `edge` is handled.
    let mut edge = period.start.max(begins);
    for (range, state) in windows.iter().filter(|(range, _)| range.overlaps(&period)) {
        covered.missing.extend(span(edge, range.start.min(period.end)));
        edge = edge.max(range.end);
        match state {
            WindowState::Provisional => covered.provisional += 1,
            WindowState::Settled | WindowState::Sealed => covered.settled += 1,
        }
    }
    if edge < period.end {
        let rest = span(edge, period.end);
        // A later window shows that this part was skipped.
        let was_passed = windows.last().is_some_and(|(last, _)| last.start >= period.end);
        if was_passed { covered.missing.extend(rest) } else { covered.not_yet_read = rest }
    }
    covered.complete = covered.gaps.is_empty()
        && covered.removed_before.is_empty()
        && covered.missing.is_empty()
        && covered.provisional == 0
        && covered.before_archive.is_none()
        && covered.not_yet_read.is_none();
    covered
}

/// Adds the expired months of the period. If Annals never read such a month, its events are not missing. `windows` are sorted.
fn expiring(
    mut covered: StreamCoverage,
    (data, windows): (&ViewData, &[(Range, WindowState)]),
    snapshot: &TeamSnapshot,
    stream: Stream,
    period: Range,
) -> StreamCoverage {
    let of = data.expired.iter().filter(|row| row.team_id == snapshot.team_id && row.record.dataset == stream.into());
    for row in of {
        let month = month_of(row.record.month);
        // A window of several days can end in the next month: all its events expired.
        let last = windows[..windows.partition_point(|(range, _)| range.start < month.end)].last();
        let end = last.map_or(month.end, |(range, _)| range.end.max(month.end));
        let gone = Range { end, ..month };
        if gone.overlaps(&period) {
            covered.expired.push(expiry(row, gone, row.record.rows));
            covered.missing.retain(|span| !(gone.start <= span.from && span.to <= gone.end));
        }
    }
    covered.complete &= covered.expired.is_empty();
    covered
}

/// The expired months of people and computers in the period. All parts that expired in one line are one entry.
fn expired_inventory(data: &ViewData, snapshot: &TeamSnapshot, period: Range) -> Vec<GapInside> {
    let of_team = data.expired.iter().filter(|row| row.team_id == snapshot.team_id);
    let of = of_team.filter(|row| matches!(row.record.dataset, Dataset::Inventory(_)));
    let mut months: BTreeMap<(Instant, LedgerSeq), (&Recorded<ExpiredRecord>, u64)> = BTreeMap::new();
    for row in of.filter(|row| month_of(row.record.month).overlaps(&period)) {
        months.entry((row.record.month, row.ledger_seq)).or_insert((row, 0)).1 += row.record.rows;
    }
    months.into_values().map(|(row, rows)| expiry(row, month_of(row.record.month), rows)).collect()
}

fn expiry(row: &Recorded<ExpiredRecord>, gone: Range, rows: u64) -> GapInside {
    let record = &row.record;
    GapInside {
        from: Some(gone.start),
        to: Some(gone.end),
        reason: format!("expired under {} on {}", record.policy, record.at.day()),
        subject: format!("{rows} rows, line {} of the ledger", row.ledger_seq),
    }
}

fn span(from: Instant, to: Instant) -> Option<Span> {
    (from < to).then_some(Span { from, to })
}

#[cfg(test)]
mod tests;
