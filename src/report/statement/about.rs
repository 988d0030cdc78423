//! The statement of every report about itself, so that others can reproduce its numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Digest, Instant, Stream};

use super::coverage::{GapInside, Span, StreamCoverage};
use crate::report::catalog::Severity;
use crate::report::views::team_names::TeamNames;

/// The last ledger line of a team that the report includes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerHead {
    pub team: String,
    pub seq: u64,
    pub sha256: Digest,
}

/// The statement in every output of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// The id: `R02`.
    pub report: String,
    pub name: String,
    pub title: String,
    pub question: String,
    /// Half-open.
    pub period: Span,
    /// The time zone of the report's days and hours.
    pub zone: String,
    /// `None` for all teams.
    pub team: Option<String>,
    /// The names of the teams, by id.
    pub team_names: BTreeMap<String, String>,
    #[serde(skip)]
    pub names: TeamNames,
    /// The time whose people and computers the report shows.
    pub as_of: Instant,
    /// The report's own parameters; durations in seconds.
    pub params: BTreeMap<String, Value>,
    pub rows: u64,
    /// The number of detections by severity; `None` if the report detects nothing.
    pub detections: Option<BTreeMap<Severity, u64>>,
    pub coverage: Vec<StreamCoverage>,
    /// Which events of the period have no text, if the report shows texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_text: Vec<String>,
    /// Which teams' sessions lack archived events, if the report uses sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions_behind: Vec<String>,
    /// When the people, computers and groups of each team were last read, if the report uses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<String>,
    pub ledger: Vec<LedgerHead>,
    /// The SHA-256 of the report's file.
    pub query_sha256: Digest,
    pub controls: Vec<String>,
    pub notes: Vec<String>,
    pub annals_version: String,
    pub made_at: Instant,
}

impl About {
    /// The number of gaps inside the period.
    pub fn gaps(&self) -> usize {
        self.coverage.iter().map(|stream| stream.gaps.len()).sum()
    }

    /// The number of detections of `severity` or higher.
    pub fn detected(&self, severity: Severity) -> u64 {
        self.detections.iter().flat_map(|found| found.range(severity..)).map(|(_, rows)| rows).sum()
    }

    /// The statement as `key: value` lines. Untrusted text is included unchanged.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("report: {} {}: {}", self.report, self.title, self.question),
            format!("period: from {} to {} (not included), zone {}", self.period.from, self.period.to, self.zone),
            format!("team: {}", self.team.as_ref().map_or_else(|| "all".to_owned(), |team| self.names.with_id(team))),
        ];
        if self.as_of != self.period.to {
            lines.push(format!("as of: {}", self.as_of));
        }
        // At the top, because the rows below lack the expired months.
        for stream in &self.coverage {
            let place =
                format!("{} {}", self.names.label(&stream.team), stream.stream.map_or("inventory", Stream::as_str));
            lines.extend(stream.expired.iter().map(|month| format!("expired: {place}: {}", month.sentence())));
        }
        lines.extend(self.without_text.iter().chain(&self.sessions_behind).cloned());
        let params = self.params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        lines.push(format!("parameters: {}", or_none(&params)));
        lines.push(format!("rows: {}", self.rows));
        if let Some(detections) = &self.detections {
            let found = detections.iter().map(|(severity, rows)| format!("{rows} {severity}")).collect::<Vec<_>>();
            lines.push(format!("detections: {}", or_none(&found)));
        }
        self.coverage.iter().for_each(|stream| stream.push_lines(&self.names.label(&stream.team), &mut lines));
        if self.coverage.is_empty() {
            lines.push("coverage: nothing was read yet".to_owned());
        }
        lines.extend(self.roster.iter().cloned());
        if self.ledger.is_empty() {
            lines.push("ledger: nothing was read yet".to_owned());
        }
        for head in &self.ledger {
            lines.push(format!("ledger: {} line {} {}", self.names.with_id(&head.team), head.seq, head.sha256));
        }
        lines.push(format!("query: sha256 {}", self.query_sha256));
        if !self.controls.is_empty() {
            lines.push(format!("supports: {}", self.controls.join("; ")));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.push(format!("made: by annals {} at {}", self.annals_version, self.made_at));
        lines
    }
}

impl StreamCoverage {
    fn push_lines(&self, team: &str, lines: &mut Vec<String>) {
        let place = match self.stream {
            Some(stream) => format!("{team} {stream}"),
            None => team.to_owned(),
        };
        if self.stream.is_some() {
            lines.push(format!("coverage: {place}: {}", self.sentence()));
        }
        lines.extend(self.gaps.iter().map(|gap| format!("gap: {place}: {}", gap.sentence())));
        let removed = self.removed_before.iter();
        lines.extend(removed.map(|computer| format!("removed before: {place}: {}", computer.sentence())));
    }

    /// `complete, 30 windows settled`, or the missing parts.
    pub fn sentence(&self) -> String {
        let mut parts = vec![if self.complete { "complete" } else { "not complete" }.to_owned()];
        match self.begins {
            None => parts.push("never read".to_owned()),
            Some(_) => parts.push(format!("{} windows settled", self.settled)),
        }
        if self.provisional > 0 {
            parts.push(format!("{} provisional", self.provisional));
        }
        parts.extend(self.missing.iter().map(|span| format!("never read {}", span.sentence())));
        parts.extend(self.before_archive.map(|span| format!("before the archive begins {}", span.sentence())));
        if self.begins.is_some() {
            parts.extend(self.not_yet_read.map(|span| format!("not yet read {}", span.sentence())));
        }
        parts.extend(self.expired.iter().map(GapInside::expiry));
        if !self.gaps.is_empty() {
            parts.push(format!("{} gaps", self.gaps.len()));
        }
        if !self.removed_before.is_empty() {
            parts
                .push(format!("without {} computers that were removed before the backfill", self.removed_before.len()));
        }
        parts.join(", ")
    }
}

impl Span {
    /// `[2026-11-20T00:00:00Z..2026-11-21T00:00:00Z)`
    pub fn sentence(&self) -> String {
        format!("[{}..{})", self.from, self.to)
    }
}

impl GapInside {
    /// `2019-03 expired under connections = 7y on 2026-04-01`
    fn expiry(&self) -> String {
        format!("{} {}", self.from.map_or_else(String::new, Instant::month), self.reason)
    }

    /// The time, reason and subject of the gap.
    pub fn sentence(&self) -> String {
        let bound = |at: Option<Instant>| at.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
        format!("from {} to {}: {} ({})", bound(self.from), bound(self.to), self.reason, self.subject)
    }
}

fn or_none(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// `1 gap is recorded inside the period`
pub fn gaps_recorded(gaps: u64) -> String {
    let are = if gaps == 1 { "gap is" } else { "gaps are" };
    format!("{gaps} {are} recorded inside the period")
}
