//! What the archive holds, as the views show it.

use std::collections::BTreeMap;

use crate::archive::{Archive, Dataset, Finding, FindingKind, InventoryRead, ReviewRecord, TeamState, WindowRecord};
use crate::model::{Digest, Instant, LedgerSeq, Stream, TeamId};

use super::views::plain_pattern;

/// A live file of the ledger's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFile {
    /// Absolute, UTF-8.
    pub path: String,
    /// Event times of the first and the last row, as the commit recorded them; none where no row has one.
    pub span: Option<(Instant, Instant)>,
}

/// One window of one team, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageRow {
    pub team_id: TeamId,
    pub window: WindowRecord,
    /// Standing gaps of the stream that touch the window.
    pub gaps: u64,
}

/// One finding, and the commit that recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingRow {
    pub team_id: TeamId,
    pub finding: Finding,
    pub ledger_seq: LedgerSeq,
}

/// One review of a pack, and the commit that recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRow {
    pub team_id: TeamId,
    pub review: ReviewRecord,
    pub ledger_seq: LedgerSeq,
}

/// One team's ledger, as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamLook {
    pub team_id: TeamId,
    /// The last line that was seen, and its hash.
    pub seq: LedgerSeq,
    pub head: Digest,
    /// Where the archive of each stream begins.
    pub begins: BTreeMap<Stream, Instant>,
}

/// Everything that the views are made of: one consistent look at the archive.
#[derive(Debug, Clone, Default)]
pub struct ViewData {
    /// Where what is not kept here is read from, when a query asks for it; without it those views are empty.
    pub archive: Option<Archive>,
    pub teams: Vec<TeamLook>,
    pub files: BTreeMap<Dataset, Vec<LiveFile>>,
    pub coverage: Vec<CoverageRow>,
    pub findings: Vec<FindingRow>,
    pub inventory_reads: Vec<(TeamId, InventoryRead)>,
    pub reviews: Vec<ReviewRow>,
}

impl ViewData {
    /// Adds what one team's archive holds. `root` is the archive's directory, absolute.
    pub fn add_state(&mut self, root: &str, state: &TeamState) {
        for dataset in Dataset::ALL {
            let live = self.files.entry(dataset).or_default();
            live.extend(state.files_of(dataset).map(|entry| LiveFile {
                path: format!("{}/{}", root.trim_end_matches('/'), entry.path),
                span: entry.first.zip(entry.last),
            }));
        }
        let begins = state.streams.iter().filter_map(|(stream, record)| Some((*stream, record.begins?)));
        self.teams.push(TeamLook {
            team_id: state.team_id.clone(),
            seq: state.seq,
            head: state.head,
            begins: begins.collect(),
        });
        let looks = state.inventory.values().flatten().map(|look| (state.team_id.clone(), *look));
        self.inventory_reads.extend(looks);
        self.reviews.extend(state.reviews.iter().map(|(ledger_seq, review)| ReviewRow {
            team_id: state.team_id.clone(),
            review: review.clone(),
            ledger_seq: *ledger_seq,
        }));
        self.add_team(&state.team_id, state.windows.values().cloned(), state.findings.iter().cloned());
    }

    /// Adds one team's windows and findings, and counts the standing gaps of each window.
    pub fn add_team(
        &mut self,
        team_id: &TeamId,
        windows: impl IntoIterator<Item = WindowRecord>,
        findings: impl IntoIterator<Item = (LedgerSeq, Finding)>,
    ) {
        let findings: Vec<_> = findings.into_iter().collect();
        let standing: Vec<&Finding> = findings
            .iter()
            .map(|(_, finding)| finding)
            .filter(|gap| gap.kind == FindingKind::Gap && !findings.iter().any(|(_, other)| other.closes(gap)))
            .collect();
        for window in windows {
            let touches = |gap: &&&Finding| {
                gap.stream == Some(window.stream)
                    && gap.from.is_none_or(|from| from < window.range.end)
                    && gap.to.is_none_or(|to| window.range.start < to)
            };
            let gaps = standing.iter().filter(touches).count() as u64;
            self.coverage.push(CoverageRow { team_id: team_id.clone(), window, gaps });
        }
        self.findings.extend(findings.into_iter().map(|(ledger_seq, finding)| FindingRow {
            team_id: team_id.clone(),
            finding,
            ledger_seq,
        }));
    }

    /// Whether `text` names a live file.
    pub fn names_a_file(&self, text: &str) -> bool {
        // As it is, or as the views name it.
        let is_named = |path: &str| text.contains(path) || text.contains(&plain_pattern(path));
        text.contains(".parquet") && self.files.values().flatten().any(|file| is_named(&file.path))
    }
}
