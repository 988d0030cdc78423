//! Says when the people, computers and groups that a report shows were last read: an old roster looks like a current one.

use std::collections::BTreeMap;

use crate::model::{Instant, InventoryPart, TeamId};

use crate::report::catalog::Report;
use crate::report::views::data::ViewData;

const ROSTER: &str = "inventory_";
const READS: &str = "inventory_reads";
const PARTS: [(InventoryPart, &str); 3] =
    [(InventoryPart::Users, "people"), (InventoryPart::Computers, "computers"), (InventoryPart::Groups, "groups")];

/// A sentence for each team of a report that uses the roster: the last visible read of each part up to `as_of`.
pub fn roster_reads(data: &ViewData, report: &Report, as_of: Instant, team: Option<&TeamId>) -> Vec<String> {
    let statements = [&report.rows].into_iter().chain(&report.chart_rows);
    let uses_roster = statements.into_iter().any(|statement| names_roster(&statement.sql));
    let mut last: BTreeMap<(&TeamId, InventoryPart), Instant> = BTreeMap::new();
    for (team, read) in data.inventory_reads.iter().filter(|(_, read)| read.visible && read.read_at <= as_of) {
        let at = last.entry((team, read.part)).or_insert(read.read_at);
        *at = read.read_at.max(*at);
    }
    let is_asked = |of: &TeamId| uses_roster && team.is_none_or(|team| team == of);
    let sentence = |team: &TeamId| {
        let of = |(part, name): (InventoryPart, &str)| match last.get(&(team, part)) {
            Some(at) => format!("{name} last read at {at}"),
            None => format!("{name} never read"),
        };
        format!("roster: {}: {}", data.names.label(team.as_str()), PARTS.map(of).join(", "))
    };
    data.teams.iter().map(|snapshot| &snapshot.team_id).filter(|team| is_asked(team)).map(sentence).collect()
}

/// Whether a query names a view of the roster, other than the view of the reads.
fn names_roster(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    sql.matches(ROSTER).count() > sql.matches(READS).count()
}
