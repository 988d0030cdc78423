//! The archive's content, as the views show it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::symlink_metadata;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::archive::{
    Archive, ErasedPart, ExpiredRecord, Finding, FindingKind, Hold, HoldScope, InventoryRead, ReviewRecord,
    StreamRecord, TeamState, WindowRecord, covering,
};
use crate::files::Irregular;
use crate::model::path::month_of;
use crate::model::{Dataset, Digest, Instant, LedgerSeq, Range, Retention, Stream, TeamId};

use super::remote::Remote;
use super::team_names::TeamNames;
use crate::report::ReportError;

/// A live file of the ledger's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveFile {
    /// Absolute, UTF-8.
    pub path: String,
    /// Event times of the first and the last row, from the commit; `None` if no row has a time.
    pub span: Option<(Instant, Instant)>,
}

/// The current state of one window of one team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageRow {
    pub team_id: TeamId,
    pub window: WindowRecord,
    /// Number of the stream's gaps that touch the window and that no later line withdrew.
    pub gaps: u64,
    /// The window's month has expired.
    #[serde(default)]
    pub has_expired: bool,
}

/// A record of a team's ledger, and the line that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded<Record> {
    pub team_id: TeamId,
    pub record: Record,
    pub ledger_seq: LedgerSeq,
}

impl<Record: Clone> Recorded<Record> {
    fn of(team_id: &TeamId, (ledger_seq, record): &(LedgerSeq, Record)) -> Self {
        Self { team_id: team_id.clone(), record: record.clone(), ledger_seq: *ledger_seq }
    }
}

/// The changes of one erasure order in one dataset, and the commit that carried it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureRow {
    pub team_id: TeamId,
    pub order_id: String,
    pub erased_at: Instant,
    pub part: ErasedPart,
    pub ledger_seq: LedgerSeq,
    /// The order replaced the salts of the months that it changed.
    pub salts_replaced: bool,
}

/// A month of a dataset with a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetainedRow {
    pub team_id: TeamId,
    pub dataset: Dataset,
    pub month: Instant,
    /// The period of the month's rows.
    pub period: Range,
    /// `connections = 7y`
    pub policy: String,
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
    pub due_at: Instant,
    /// What the team's own ledger says.
    pub kept_by: Option<String>,
}

/// One team's ledger at the time of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSnapshot {
    pub team_id: TeamId,
    /// The last line, and its hash.
    pub seq: LedgerSeq,
    pub head: Digest,
    /// The start of the archive for each stream.
    pub begins: BTreeMap<Stream, Instant>,
    /// The last recorded moment up to which each stream was read.
    pub read_to: BTreeMap<Stream, Instant>,
    /// The time from which sessions lack archived events; `None`: they lack none.
    pub sessions_lack: Option<Instant>,
}

/// The input of all views: one consistent snapshot of the archive. The daemon passes it as text to the process that answers a
/// visitor; that process opens the archive itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ViewData {
    /// The source of rows that are read only when a query uses them; without it, those views are empty.
    #[serde(skip)]
    pub archive: Option<Archive>,
    /// The archive's absolute directory or its address. Links are followed up to this directory, but not below it.
    pub root: String,
    /// For an archive in a bucket: the cache that pins its files for the engine.
    #[serde(skip)]
    pub remote: Option<Arc<Remote>>,
    /// The live files come from a cache. A process without the archive then cannot reach the bucket.
    pub is_pinned: bool,
    /// The ledger lies elsewhere than the data. A process without the archive then cannot reach it.
    pub has_ledger_elsewhere: bool,
    pub teams: Vec<TeamSnapshot>,
    pub files: BTreeMap<Dataset, Vec<LiveFile>>,
    pub coverage: Vec<CoverageRow>,
    pub findings: Vec<Recorded<Finding>>,
    pub inventory_reads: Vec<(TeamId, InventoryRead)>,
    pub reviews: Vec<Recorded<ReviewRecord>>,
    pub holds: Vec<(TeamId, Hold)>,
    pub expired: Vec<Recorded<ExpiredRecord>>,
    pub retention: Vec<RetainedRow>,
    pub erasures: Vec<ErasureRow>,
    /// The names of the teams, if the caller asked for them.
    pub names: TeamNames,
}

impl ViewData {
    /// Adds one team. `root` is the archive's absolute directory.
    pub fn add_state(&mut self, root: &str, state: &TeamState) {
        self.root = root.trim_end_matches('/').to_owned();
        if let Some(remote) = &mut self.remote {
            Arc::make_mut(remote).add(&self.root, state);
        }
        for dataset in Dataset::ALL {
            let live = self.files.entry(dataset).or_default();
            live.extend(state.files_of(dataset).map(|entry| LiveFile {
                path: format!("{}/{}", self.root, entry.path),
                span: entry.first.zip(entry.last),
            }));
        }
        let begins = Stream::ALL.into_iter().filter_map(|stream| Some((stream, state.begins(stream)?)));
        let last_point = |record: &StreamRecord| record.read_points.iter().map(|point| point.read_to).max();
        let read_to = state.streams.iter().filter_map(|(stream, record)| Some((*stream, last_point(record)?)));
        self.teams.push(TeamSnapshot {
            team_id: state.team_id.clone(),
            seq: state.seq,
            head: state.head,
            begins: begins.collect(),
            read_to: read_to.collect(),
            sessions_lack: state.sessions_lack(),
        });
        // The months are sorted, so the last one of a dataset stays.
        let ends = state.expired.keys().map(|(dataset, month)| (*dataset, month_of(*month).end));
        let held_from: BTreeMap<Dataset, Instant> = ends.collect();
        // An earlier reading has no rows any more. A report would compare the first reading that stays with it, and show every entry as new.
        let is_held = |read: &&InventoryRead| {
            held_from.get(&Dataset::Inventory(read.part)).is_none_or(|from| read.read_at >= *from)
        };
        let reads = state.inventory.values().flatten().filter(is_held);
        self.inventory_reads.extend(reads.map(|read| (state.team_id.clone(), *read)));
        self.reviews.extend(state.reviews.iter().map(|review| Recorded::of(&state.team_id, review)));
        self.holds.extend(state.holds.values().map(|hold| (state.team_id.clone(), hold.clone())));
        self.expired.extend(state.expired.values().map(|month| Recorded::of(&state.team_id, month)));
        for (ledger_seq, record) in &state.erased {
            let row = |part: &ErasedPart| ErasureRow {
                team_id: state.team_id.clone(),
                order_id: record.order.clone(),
                erased_at: record.at,
                part: *part,
                ledger_seq: *ledger_seq,
                salts_replaced: record.replaced_salts(),
            };
            self.erasures.extend(record.parts.iter().map(row));
        }
        self.add_team(&state.team_id, state.windows.values().cloned(), state.findings.iter().cloned());
    }

    /// Adds the due times of one team's months.
    pub fn add_retention(&mut self, state: &TeamState, retention: &Retention) {
        let holds: Vec<Hold> = state.holds.values().cloned().collect();
        self.retention.extend(state.retained_months(retention, &holds).into_iter().map(|month| RetainedRow {
            team_id: state.team_id.clone(),
            dataset: month.dataset,
            month: month.month,
            period: month.period,
            policy: month.policy.to_string(),
            files: month.files,
            rows: month.rows,
            bytes: month.bytes,
            due_at: month.due_at,
            kept_by: month.kept_text(),
        }));
    }

    /// The reason that keeps a month. A hold on the whole archive also applies to teams whose ledgers do not record it.
    pub(in crate::report) fn kept_by(&self, row: &RetainedRow) -> Option<String> {
        let holds = self.holds.iter().map(|(_, hold)| hold).filter(|hold| hold.added.scope == HoldScope::All);
        let holds = covering(holds, row.dataset, row.period, None);
        let ids: BTreeSet<&str> = holds.into_iter().map(|hold| hold.added.id.as_str()).collect();
        let held = || format!("held by {}", ids.iter().copied().collect::<Vec<_>>().join(", "));
        row.kept_by.clone().or_else(|| (!ids.is_empty()).then(held))
    }

    /// Adds one team's windows and findings, and counts the gaps of each window.
    pub fn add_team(
        &mut self,
        team_id: &TeamId,
        windows: impl IntoIterator<Item = WindowRecord>,
        findings: impl IntoIterator<Item = (LedgerSeq, Finding)>,
    ) {
        let findings: Vec<_> = findings.into_iter().collect();
        let open_gaps_of = open_gaps_of(&findings.iter().map(|(_, finding)| finding).collect::<Vec<_>>());
        let mut edges: BTreeMap<Stream, GapEdges> = BTreeMap::new();
        for gap in open_gaps_of {
            if let Some(stream) = gap.stream {
                edges.entry(stream).or_default().push(gap);
            }
        }
        edges.values_mut().for_each(GapEdges::sort);
        let of_team = self.expired.iter().filter(|row| row.team_id == *team_id);
        let of = |row: &Recorded<ExpiredRecord>| {
            let stream = Stream::ALL.into_iter().find(|stream| Dataset::from(*stream) == row.record.dataset);
            stream.map(|stream| (stream, row.record.month))
        };
        let expired: HashSet<(Stream, Instant)> = of_team.filter_map(of).collect();
        for window in windows {
            let gaps = edges.get(&window.stream).map_or(0, |edges| edges.touching(window.range));
            let month = month_of(window.range.start).start;
            let has_expired = expired.contains(&(window.stream, month));
            self.coverage.push(CoverageRow { team_id: team_id.clone(), window, gaps, has_expired });
        }
        self.findings.extend(findings.iter().map(|finding| Recorded::of(team_id, finding)));
    }

    /// The gaps of a team that no later finding withdraws.
    pub fn open_gaps(&self, team: &TeamId) -> impl Iterator<Item = &Recorded<Finding>> {
        let of_team = self.findings.iter().filter(move |row| row.team_id == *team);
        let closing = closing(of_team.clone().map(|row| &row.record));
        of_team.filter(move |row| is_open_gap(&row.record, &closing))
    }

    /// Refuses live files that are not plain files: the engine opens them by path, and would follow a link or block on a pipe. A
    /// replacement between this check and the engine's own open is not detected.
    ///
    /// # Errors
    /// [`ReportError::Irregular`]. A missing file is left to the engine.
    pub(in crate::report) fn check_files(&self) -> Result<(), ReportError> {
        let mut seen = HashSet::new();
        for file in self.files.values().flatten() {
            let root = if file.path.starts_with(&self.root) { self.root.len() } else { file.path.len() };
            let ends = file.path.match_indices('/').map(|(at, _)| at).filter(|at| !self.root.is_empty() && *at > root);
            for directory in ends.map(|at| &file.path[..at]).filter(|directory| seen.insert(*directory)) {
                if symlink_metadata(directory).is_ok_and(|meta| meta.is_symlink()) {
                    let what = format!("lies below {directory}, which is a symbolic link");
                    return Err(ReportError::Irregular { path: file.path.clone(), what });
                }
            }
            let kind = symlink_metadata(&file.path).ok().and_then(|meta| Irregular::of(meta.file_type()));
            if let Some(irregular) = kind {
                return Err(ReportError::Irregular { path: file.path.clone(), what: irregular.to_string() });
            }
        }
        Ok(())
    }

    /// What to do if an error names a live file.
    pub(in crate::report) fn advice_on(&self, error: &str) -> Option<&'static str> {
        // As a plain path, or as a pattern in the views.
        let is_named = |path: &str| error.contains(path) || error.contains(&plain_pattern(path));
        let is_ours = error.contains(".parquet") && self.files.values().flatten().any(|file| is_named(&file.path));
        is_ours.then_some(match self.is_pinned {
            true => "the query did not run; `annals cache clear` removes damaged files of the cache",
            false => "the query did not run; `annals verify` names every such file",
        })
    }
}

/// The gaps among one team's findings that no later one withdraws.
pub fn open_gaps_of<'a>(findings: &[&'a Finding]) -> Vec<&'a Finding> {
    let closing = closing(findings.iter().copied());
    findings.iter().copied().filter(|finding| is_open_gap(finding, &closing)).collect()
}

/// The findings that withdraw gaps: few, so that gaps are not compared with every finding.
fn closing<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<&'a Finding> {
    findings.filter(|finding| finding.kind == FindingKind::GapClosed).collect()
}

fn is_open_gap(gap: &Finding, closing: &[&Finding]) -> bool {
    gap.kind == FindingKind::Gap && !closing.iter().any(|other| other.closes(gap))
}

/// The start and end times of one stream's gaps, both sorted. They give the number of gaps that touch a window without a comparison
/// of each gap with each window.
#[derive(Default)]
struct GapEdges {
    begins: Vec<Instant>,
    ends: Vec<Instant>,
}

impl GapEdges {
    /// A gap with an unknown start or end has no edge there.
    fn push(&mut self, gap: &Finding) {
        self.begins.push(gap.from.unwrap_or(Instant::from_nanos(i64::MIN)));
        self.ends.push(gap.to.unwrap_or(Instant::from_nanos(i64::MAX)));
    }

    fn sort(&mut self) {
        self.begins.sort_unstable();
        self.ends.sort_unstable();
    }

    /// The gaps that begin before the range's end, minus those that ended by its start.
    fn touching(&self, range: Range) -> u64 {
        let begun = self.begins.partition_point(|from| *from < range.end);
        let ended = self.ends.partition_point(|to| *to <= range.start);
        begun.saturating_sub(ended) as u64
    }
}

/// The pattern that matches only this path.
pub fn plain_pattern(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '*' | '?' | '[' => plain.extend(['[', c, ']']),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_count_of_gaps_equals_a_full_comparison() {
        let at = |seconds: i64| Instant::from_seconds(1_800_000_000 + seconds);
        let edges = [None, Some(0), Some(3), Some(5), Some(9)].map(|edge| edge.map(at));
        let mut gaps: Vec<(Option<Instant>, Option<Instant>)> = Vec::new();
        let mut counted = GapEdges::default();
        for from in edges {
            for to in edges.into_iter().filter(|to| from.zip(*to).is_none_or(|(from, to)| from <= to)) {
                gaps.push((from, to));
                counted.begins.push(from.unwrap_or(Instant::from_nanos(i64::MIN)));
                counted.ends.push(to.unwrap_or(Instant::from_nanos(i64::MAX)));
            }
        }
        counted.sort();
        for (start, end) in (-1..11).flat_map(|start| (start + 1..12).map(move |end| (start, end))) {
            let range = Range { start: at(start), end: at(end) };
            let touches = |(from, to): &&(Option<Instant>, Option<Instant>)| {
                from.is_none_or(|from| from < range.end) && to.is_none_or(|to| range.start < to)
            };
            assert_eq!(counted.touching(range), gaps.iter().filter(touches).count() as u64, "{range:?}");
        }
    }
}
