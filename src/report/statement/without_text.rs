//! Says which events of a period have no text, because the archive did not keep it.

use std::collections::BTreeMap;

use crate::model::Dataset;
use crate::model::{Range, Stream, TeamId};

use crate::report::catalog::Report;
use crate::report::views::data::ViewData;

/// The columns that are null where the archive did not keep the text.
const TEXT_COLUMNS: [&str; 2] = ["raw", "payload"];

/// A sentence for each team and stream of the period that a report needs for its `raw` or `payload`, and lacks them.
pub fn without_text(data: &ViewData, report: &Report, period: Range, team: Option<&TeamId>) -> Vec<String> {
    let mut counts: BTreeMap<(&TeamId, Stream), (u64, u64)> = BTreeMap::new();
    for row in data.coverage.iter().filter(|row| !row.has_expired && row.window.range.overlaps(&period)) {
        if team.is_none_or(|team| *team == row.team_id) {
            let count = counts.entry((&row.team_id, row.window.stream)).or_default();
            *count = (count.0 + row.window.without_text, count.1 + row.window.events);
        }
    }
    counts.retain(|(_, stream), (without, _)| *without > 0 && shows_text(report, *stream));
    let sentence = |((team, stream), (without, events)): ((&TeamId, Stream), (u64, u64))| {
        let place = format!("{} {stream}", data.names.label(team.as_str()));
        format!(
            "payloads were not kept: {place}: {without} of the {events} events in the windows of this period have no raw and no payload"
        )
    };
    counts.into_iter().map(sentence).collect()
}

/// Whether a query can show the text of a stream's events: by the column's name, or by a star.
fn shows_text(report: &Report, stream: Stream) -> bool {
    let view = Dataset::from(stream).as_str();
    let statements = [&report.rows].into_iter().chain(&report.chart_rows);
    statements.into_iter().any(|statement| {
        let text = statement.sql.to_ascii_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let has_star = text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&format!("* from {view}"));
        words.contains(&view) && (has_star || TEXT_COLUMNS.iter().any(|column| words.contains(column)))
    })
}
