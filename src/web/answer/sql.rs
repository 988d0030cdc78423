//! A visitor's SQL: one SELECT at a time, over the views alone, within limits.

use axum::http::HeaderMap;

use crate::model::TeamId;
use crate::report::{FirstRows, JsonRows, VisitorAnswer, VisitorQuestion, VisitorRows, printable};

use super::super::AppState;
use super::super::guard::check_own_form;
use super::super::problem::Problem;
use super::super::query_service::check_together;

/// Maximum number of rows on a page.
pub const PAGE_ROWS_MAX: usize = 1_000;
pub const JSON_ROWS_MAX: usize = 10_000;
/// Maximum size of a JSON answer.
const JSON_BYTES_MAX: usize = 16 << 20;
/// Maximum size of a query.
const QUERY_BYTES_MAX: usize = 64 << 10;
/// Address space of a query's process beyond the engine's limit: the program and its libraries, memory that the engine does not
/// count, and for each thread a stack and allocator caches.
const PROCESS_MIB: u32 = 512;
const THREAD_MIB: u32 = 64;

/// Whether this visitor may use SQL.
///
/// # Errors
/// When the configuration forbids SQL, or another site's page sends the request.
pub fn check_allowed(state: &AppState, headers: &HeaderMap) -> Result<(), Problem> {
    if !state.settings().sql {
        return Err(Problem::forbidden("SQL is turned off: set `sql = true` under [http] in annals.toml to allow it"));
    }
    check_own_form(headers)
}

/// The first rows of the answer for a page; more than [`PAGE_ROWS_MAX`] if there are more.
pub async fn page(state: &AppState, teams: Vec<TeamId>, sql: String, visitor: String) -> Result<FirstRows, Problem> {
    match ask(state, teams, sql, visitor, VisitorRows::Page { rows_max: PAGE_ROWS_MAX }).await? {
        VisitorAnswer::Page(rows) => Ok(rows),
        _ => Err(other_shape()),
    }
}

/// The answer's rows as JSON.
pub async fn json(state: &AppState, teams: Vec<TeamId>, sql: String, visitor: String) -> Result<JsonRows, Problem> {
    let shape = VisitorRows::Json { rows_max: JSON_ROWS_MAX, bytes_max: JSON_BYTES_MAX };
    match ask(state, teams, sql, visitor, shape).await? {
        VisitorAnswer::Json(rows) => Ok(rows),
        _ => Err(other_shape()),
    }
}

async fn ask(
    state: &AppState,
    teams: Vec<TeamId>,
    sql: String,
    visitor: String,
    shape: VisitorRows,
) -> Result<VisitorAnswer, Problem> {
    check_together(&teams)?;
    if sql.len() > QUERY_BYTES_MAX {
        return Err(Problem::bad(format!("the query has more than {QUERY_BYTES_MAX} bytes")));
    }
    let time = state.settings().sql_time;
    let mut engine = state.queries.limits();
    // The process has another working directory.
    if let Ok(absolute) = std::path::absolute(&engine.spill_parent) {
        engine.spill_parent = absolute;
    }
    let (grace, keys) = state.queries.checks();
    let question = VisitorQuestion {
        root: state.queries.directory(),
        grace,
        keys,
        sql,
        shape,
        process_mib: engine.memory_mib.saturating_add(PROCESS_MIB + THREAD_MIB * engine.threads),
        cpu_seconds: time.as_secs() * u64::from(engine.threads + 1),
        engine,
    };
    let (clock, begun) = (state.clock.clone(), state.clock.monotonic());
    let snapshot = state.queries.pinned(teams, &question.sql).await?;
    let spent = clock.monotonic().saturating_sub(begun);
    match state.visitors.ask(visitor, question, snapshot.data.clone(), (time, spent), clock).await? {
        VisitorAnswer::Failed(message) => {
            let message = printable(&message);
            tracing::warn!(error = message, "cannot answer a visitor's query");
            Err(Problem::failed(message))
        }
        answer => Ok(answer),
    }
}

fn other_shape() -> Problem {
    Problem::failed("BUG: the answer to a query has a wrong form")
}
