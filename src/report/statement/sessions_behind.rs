//! Says which teams' sessions lack archived events: after a backfill that was interrupted, a period without rows looks like a quiet one.

use crate::model::{Instant, TeamId};

use crate::report::views::columns::View;
use crate::report::views::data::ViewData;
use crate::report::views::needs::Needs;

/// A sentence for each such team, if a query needs sessions. A session outside of its period can lack its later events, so the period
/// does not matter.
pub fn sessions_behind(data: &ViewData, needs: &Needs, team: Option<&TeamId>) -> Vec<String> {
    if !needs.needed_views().contains(&View::Sessions) {
        return Vec::new();
    }
    let teams = data.teams.iter().filter(|snapshot| team.is_none_or(|team| *team == snapshot.team_id));
    let behind = teams.filter_map(|snapshot| Some((&snapshot.team_id, snapshot.sessions_lack?)));
    behind.map(|(team, from)| behind_sentence(&data.names.label(team.as_str()), from)).collect()
}

/// Says that a team's sessions lack the events from `from` on.
pub fn behind_sentence(label: &str, from: Instant) -> String {
    format!(
        "sessions are not complete: {label}: Annals has archived events from {from} on, and has not made their sessions yet: rows are \
         missing, or lack an end, until `annals sync` or the daemon makes them"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::archive::{Archive, Draft, SessionsDraft, SessionsMark, TeamState};
    use crate::model::Instant;
    use crate::report::Origin;
    use crate::report::catalog::Report;
    use crate::store::MemoryStore;

    fn report(sql: &str) -> Report {
        let text = format!("-- id: M1\n-- title: T\n-- question: Q?\n{sql}");
        Report::parse(Path::new("m1.sql"), &text, Origin::Embedded).unwrap()
    }

    /// The state after a commit that makes the sessions of events up to `through`.
    fn committed(archive: &Archive, team: &str, through: Option<Instant>) -> TeamState {
        let mut writer = archive.writer(&team.into()).unwrap();
        let mark = SessionsMark { rules: 1, through, until: through };
        let (open, finished, replaced) = (Vec::new(), Vec::new(), BTreeMap::new());
        let sessions = Some(SessionsDraft { mark, is_anew: false, open, finished, replaced });
        let _ = writer.commit(Draft { sessions, ..Draft::default() }, "2026-11-20T00:00:00Z".parse().unwrap()).unwrap();
        writer.state().clone()
    }

    #[test]
    fn a_report_on_sessions_names_the_teams_whose_sessions_lack_events() {
        let archive = Archive::open_or_create(Arc::new(MemoryStore::new()), || "a".into()).unwrap();
        let mut data = ViewData::default();
        for (team, through) in [("behind", Some("2026-09-12T00:00:00Z".parse().unwrap())), ("done", None)] {
            data.add_state("", &committed(&archive, team, through));
        }
        let said = |sql: &str, team: Option<&str>| {
            sessions_behind(&data, &Needs::of_report(&report(sql)), team.map(TeamId::from).as_ref())
        };
        let found = said("SELECT * FROM sessions", None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("behind") && found[0].contains("2026-09-12T00:00:00Z"), "{found:?}");
        assert!(said("SELECT * FROM sessions", Some("done")).is_empty());
        assert!(said("SELECT * FROM connections", None).is_empty());
    }
}
