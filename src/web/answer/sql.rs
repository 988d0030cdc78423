//! SQL of a visitor: one SELECT at a time, over the views alone, within bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use axum::http::HeaderMap;

use crate::model::TeamId;
use crate::report::{Engine, FirstRows, Flow, JsonRows, Needs, ReportError, Sink};

use super::super::Shown;
use super::super::guard::is_own_form;
use super::super::problem::Problem;

/// An answer takes at most this,
pub const SQL_TIME_MAX: Duration = Duration::from_secs(30);
/// has at most so many rows on a page, and as JSON,
pub const PAGE_ROWS_MAX: usize = 1_000;
pub const JSON_ROWS_MAX: usize = 10_000;
/// and as JSON so many bytes.
const JSON_BYTES_MAX: usize = 16 << 20;
pub const QUERY_BYTES_MAX: usize = 64 << 10;

/// Whether this visitor may ask in SQL at all.
///
/// # Errors
/// When it is not configured, or a page of a stranger asks.
pub fn check_allowed(shown: &Shown, headers: &HeaderMap) -> Result<(), Problem> {
    if !shown.settings().sql {
        return Err(Problem::forbidden("SQL is off here: `sql = true` under [http] in annals.toml allows it"));
    }
    if !is_own_form(headers) {
        return Err(Problem::forbidden("this form was not sent by a page of this port"));
    }
    Ok(())
}

/// Who has a query running.
#[derive(Clone, Default)]
pub struct Visitors(Arc<Mutex<BTreeSet<String>>>);

/// Ends with the query.
pub struct Visit {
    visitors: Visitors,
    name: String,
}

impl Visitors {
    /// # Errors
    /// While another query of the same visitor runs.
    pub fn enter(&self, name: String) -> Result<Visit, Problem> {
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
            return Err(Problem::busy("another query of yours is running: wait for its answer, or close its page"));
        }
        Ok(Visit { visitors: self.clone(), name })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.visitors.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// The first rows of the answer, for a page; more are there when it has more than [`PAGE_ROWS_MAX`].
///
/// # Errors
/// When the text is not one SELECT, and those of asking.
pub async fn page(shown: &Shown, teams: Vec<TeamId>, sql: String, visit: Visit) -> Result<FirstRows, Problem> {
    let needs = Needs::of_sql([sql.as_str()]);
    let ask = move |engine: &mut Engine| {
        // The visitor's turn ends with the query, also when the visitor does not wait for it.
        let _ = &visit;
        engine.check_query(&sql)?;
        let mut rows = Until { inner: FirstRows::new(PAGE_ROWS_MAX) };
        engine.ask(&sql, &BTreeMap::new(), &mut rows)?;
        Ok(rows.inner)
    };
    shown.asking.ask(teams, needs, SQL_TIME_MAX, ask).await
}

/// The answer's rows as JSON.
///
/// # Errors
/// As [`page`].
pub async fn json(shown: &Shown, teams: Vec<TeamId>, sql: String, visit: Visit) -> Result<JsonRows, Problem> {
    let needs = Needs::of_sql([sql.as_str()]);
    let ask = move |engine: &mut Engine| {
        let _ = &visit;
        engine.check_query(&sql)?;
        let mut rows = JsonRows::new(JSON_ROWS_MAX, JSON_BYTES_MAX);
        engine.ask(&sql, &BTreeMap::new(), &mut rows)?;
        Ok(rows)
    };
    shown.asking.ask(teams, needs, SQL_TIME_MAX, ask).await
}

/// The first rows, and whether there are more; no more than that is computed.
struct Until {
    inner: FirstRows,
}

impl Sink for Until {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.inner.begin(schema)
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let _ = self.inner.batch(batch)?;
        Ok(if self.inner.total > PAGE_ROWS_MAX as u64 { Flow::Enough } else { Flow::More })
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.inner.finish()
    }
}
