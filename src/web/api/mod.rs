//! The read-only JSON API. `docs/api.md` describes it; names and shapes are stable.

mod queries;
mod state;

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use url::form_urlencoded;

use crate::report::printable;

use super::AppState;
use super::problem::Problem;

/// A value, or a refusal.
pub type Answer = Result<Response, Problem>;

/// The default and the maximum number of rows in a list.
const ROWS: usize = 100;
const ROWS_MAX: usize = 1_000;

pub fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/status", get(state::status))
        .route("/coverage", get(state::coverage))
        .route("/ledger", get(state::ledger))
        .route("/sessions", get(queries::sessions))
        .route("/session", get(queries::session))
        .route("/findings", get(queries::findings))
        .route("/quarantine", get(queries::quarantine))
        .route("/reports", get(queries::reports))
        .route("/reports/{name}", get(queries::report))
        .route("/sql", post(queries::sql))
        .fallback(unknown)
        .layer(middleware::from_fn(documented))
}

pub use state::index;

fn answered(value: &impl Serialize) -> Answer {
    Ok(Json(value).into_response())
}

async fn unknown() -> Problem {
    Problem::missing("no such endpoint: /api/ lists all endpoints")
}

/// Gives every refusal the documented form, also those of the router, and refuses an empty value.
pub async fn documented(request: Request, next: Next) -> Response {
    if let Some(name) = without_value(request.uri().query()) {
        let name = printable(&name);
        return Problem::bad(format!("{name}: the value is empty: give one, or leave the parameter out")).as_json();
    }
    let mut answer = next.run(request).await;
    if let Some(problem) = answer.extensions_mut().remove::<Problem>() {
        return problem.as_json();
    }
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !answer.status().is_client_error() || is_json {
        return answer;
    }
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        let mut refused = Problem::method("this endpoint does not support that method").as_json();
        if let Some(allow) = answer.headers().get(header::ALLOW) {
            refused.headers_mut().insert(header::ALLOW, allow.clone());
        }
        return refused;
    }
    Problem::bad("the request is not valid: its path and its body must be UTF-8").as_json()
}

/// The first parameter without a value. A program that forgets the value of a filter must not get all rows.
fn without_value(query: Option<&str>) -> Option<Cow<'_, str>> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(_, value)| value.trim().is_empty()).map(|(name, _)| name)
}
