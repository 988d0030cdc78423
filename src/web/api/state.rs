//! API endpoints that answer from the daemon's memory or from the ledger.

use std::sync::Arc;

use axum::extract::State;
use serde_json::json;

use crate::config::When;
use crate::model::{Instant, Range, Stream};

use super::super::AppState;
use super::super::answer::coverage::{self, CoverageRanges};
use super::super::answer::health::DaemonHealth;
use super::super::answer::{asked_teams, named};
use super::super::input::{Input, cursor, position};
use super::super::problem::Problem;
use super::{Answer, ROWS, ROWS_MAX, answered};

/// The index of all endpoints.
pub async fn index(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&[])?;
    let places =
        ["status", "coverage", "ledger", "sessions", "session", "findings", "quarantine", "reports", "reports/{name}"];
    let sql = state.settings().sql.then_some("sql");
    let places: Vec<String> = places.into_iter().chain(sql).map(|place| format!("/api/{place}")).collect();
    answered(&json!({"annals_version": env!("CARGO_PKG_VERSION"), "places": places}))
}

/// The state of every stream of every team.
pub async fn status(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&["team", "limit", "after"])?;
    let limit = input.limit(ROWS, ROWS_MAX)?;
    let after: Option<String> = position(&input)?;
    let mut daemon = DaemonHealth::of(&state.live, state.clock.now());
    let totals = daemon.totals();
    // The status works even while the archive cannot be read.
    let names = state.queries.names().await.unwrap_or_default();
    if !daemon.shard.is_whole() {
        daemon.add_others(&state.queries.teams().await.unwrap_or_default());
    }
    daemon.set_names(&names);
    if let Some(asked) = input.get("team") {
        let is_id = daemon.teams.iter().any(|team| team.team == asked);
        let asked = if is_id { asked } else { named(&names, asked)?.as_str() };
        daemon.teams.retain(|team| team.team == asked);
        if daemon.teams.is_empty() {
            return Err(Problem::missing("the daemon does not read this team"));
        }
    }
    daemon.teams.retain(|team| after.as_ref().is_none_or(|after| team.team > *after));
    let has_more = daemon.teams.len() > limit;
    daemon.teams.truncate(limit);
    let next = daemon.teams.last().filter(|_| has_more).map(|team| cursor(&team.team));
    answered(&json!({
        "annals_version": env!("CARGO_PKG_VERSION"),
        "archive_id": state.queries.archive_id(),
        "at": daemon.at,
        "shard": daemon.shard,
        "healthy": totals.late == 0 && totals.waiting == 0 && daemon.teams_error.is_none(),
        "totals": totals,
        "teams_error": daemon.teams_error,
        "verify": daemon.verified,
        "verify_error": daemon.check_error,
        "publish": daemon.published,
        "teams": daemon.teams,
        "next": next,
    }))
}

/// The coverage of a team's streams.
pub async fn coverage(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&coverage::PARAMETERS)?;
    let now = state.clock.now();
    let at = |name: &str| Ok::<_, Problem>(input.parsed::<When>(name)?.map(|when| when.resolve(now)));
    let period = match (at("from")?, at("to")?) {
        (None, None) => None,
        (from, to) => {
            let all = Range { start: from.unwrap_or(Instant::EARLIEST), end: to.unwrap_or(Instant::LATEST) };
            Some(all.filled().map_err(Problem::bad)?)
        }
    };
    let stream = input.parsed::<Stream>("stream")?;
    let (_, teams) = asked_teams(&state, &input).await?;
    let data = state.queries.snapshot(teams.clone()).await?;
    let streams = Stream::ALL.into_iter().filter(|one| stream.is_none_or(|asked| asked == *one));
    let covers = teams.iter().flat_map(|team| streams.clone().map(move |stream| (team, stream)));
    let covers = covers.map(|(team, stream)| {
        let cover = CoverageRanges::of(&data, team, stream, now);
        match period {
            Some(period) => cover.within(period),
            None => cover,
        }
    });
    answered(&json!({"at": now, "streams": covers.collect::<Vec<_>>()}))
}

/// The heads of the ledgers, and the result of the last check of the archive.
pub async fn ledger(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&["team"])?;
    let (_, teams) = asked_teams(&state, &input).await?;
    let data = state.queries.snapshot(teams).await?;
    let heads: Vec<_> = (data.teams.iter())
        .map(|head| {
            let team = head.team_id.as_str();
            json!({"team": team, "team_name": data.names.name(team), "seq": head.seq.0, "sha256": head.head})
        })
        .collect();
    let verified = DaemonHealth::of(&state.live, state.clock.now()).verified;
    answered(&json!({"archive_id": state.queries.archive_id(), "heads": heads, "verify": verified}))
}
