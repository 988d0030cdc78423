//! The read-only JSON API. `docs/api.md` describes it; names and shapes are stable.

mod queries;
mod state;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;

use super::AppState;
use super::problem::Problem;

/// A value, or a refusal.
pub type Answer = Result<Response, Refused>;

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
        .layer(middleware::from_fn(wrong_method))
}

pub use state::index;

/// A refusal, as JSON.
pub struct Refused(Problem);

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Self {
        Self(problem.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.0.as_json()
    }
}

fn answered(value: &impl Serialize) -> Answer {
    Ok(Json(value).into_response())
}

async fn unknown(State(_): State<Arc<AppState>>) -> Refused {
    Refused(Problem::missing("no such endpoint: /api/ lists all endpoints"))
}

/// Refuses a wrong method as JSON, too.
async fn wrong_method(request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    if answer.status() == axum::http::StatusCode::METHOD_NOT_ALLOWED {
        let allow = answer.headers().get(axum::http::header::ALLOW).cloned();
        let mut refused = Problem::method("this endpoint does not support that method").as_json();
        if let Some(allow) = allow {
            refused.headers_mut().insert(axum::http::header::ALLOW, allow);
        }
        return refused;
    }
    answer
}
