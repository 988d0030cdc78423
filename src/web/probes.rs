//! Probes: whether the daemon runs, and whether all streams are current.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::AppState;

/// The daemon's loop runs every second; after this time without a run, it is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// 200 while the daemon's loop runs.
pub async fn healthz(State(state): State<Arc<AppState>>) -> Response {
    let beat = state.live.last_beat();
    let is_alive = beat.is_none_or(|beat| state.clock.monotonic().saturating_sub(beat) < STUCK_AFTER);
    match is_alive {
        true => (StatusCode::OK, "alive\n").into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the daemon's loop is stuck\n").into_response(),
    }
}

/// 200 if no stream of any team is late; else 503 with the late streams.
pub async fn readyz(State(state): State<Arc<AppState>>, headers: HeaderMap) -> Response {
    let late = state.live.late(state.clock.now());
    let is_ready = late.as_ref().is_some_and(Vec::is_empty);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if !state.admits(&headers) {
        return (status, if is_ready { "ready\n" } else { "not ready\n" }).into_response();
    }
    let snapshot_error = state.live.listing_error();
    let late: Vec<Value> = late
        .unwrap_or_default()
        .into_iter()
        .map(
            |late| json!({"team": late.team, "stream": late.stream, "last_read_at": late.done_at, "error": late.error}),
        )
        .collect();
    (status, Json(json!({"ready": is_ready, "late": late, "teams_error": snapshot_error}))).into_response()
}
