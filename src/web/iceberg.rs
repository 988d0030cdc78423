//! The read-only catalog of open tables, in the form of the Iceberg REST specification. Engines attach to its address.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, middleware};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lake::{Catalog, LakeError};

use super::AppState;
use super::problem::Problem;

/// The path of the catalog.
pub const PREFIX: &str = "/iceberg/";
/// The only namespace; it holds all tables.
const NAMESPACE: &str = "annals";
const ENDPOINTS: [&str; 6] = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
];

pub fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/v1/config", get(config))
        .route("/v1/namespaces", get(namespaces))
        .route("/v1/namespaces/{namespace}", get(namespace))
        .route("/v1/namespaces/{namespace}/tables", get(tables))
        .route("/v1/namespaces/{namespace}/tables/{table}", get(table))
        .fallback(unknown)
        .layer(middleware::from_fn(refuse_writes))
}

/// A refusal in the specification's form.
pub fn refused(problem: &Problem) -> Response {
    let kind = match problem.status {
        StatusCode::UNAUTHORIZED => "NotAuthorizedException",
        StatusCode::FORBIDDEN => "ForbiddenException",
        StatusCode::NOT_ACCEPTABLE => "UnsupportedOperationException",
        StatusCode::NOT_FOUND => "NoSuchTableException",
        status if status.is_client_error() => "BadRequestException",
        _ => "ServiceUnavailableException",
    };
    error(problem.status, kind, &problem.message)
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({"error": {"message": message, "type": kind, "code": status.as_u16()}});
    (status, Json(body)).into_response()
}

async fn config() -> Json<Value> {
    Json(json!({"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS}))
}

#[derive(Deserialize)]
struct Parent {
    parent: Option<String>,
}

async fn namespaces(Query(Parent { parent }): Query<Parent>) -> Response {
    match parent.as_deref() {
        None | Some("") => Json(json!({"namespaces": [[NAMESPACE]]})).into_response(),
        Some(NAMESPACE) => Json(json!({"namespaces": []})).into_response(),
        Some(other) => no_namespace(other),
    }
}

async fn namespace(Path(name): Path<String>) -> Response {
    match name == NAMESPACE {
        true => Json(json!({"namespace": [NAMESPACE], "properties": {}})).into_response(),
        false => no_namespace(&name),
    }
}

async fn tables(State(state): State<Arc<AppState>>, Path(name): Path<String>) -> Response {
    if name != NAMESPACE {
        return no_namespace(&name);
    }
    let now = state.clock.now();
    let identifier = |table: String| json!({"namespace": [NAMESPACE], "name": table});
    match ask(&state, move |catalog| catalog.tables(now)).await {
        Ok(tables) => {
            let identifiers: Vec<Value> = tables.into_iter().map(identifier).collect();
            Json(json!({"identifiers": identifiers})).into_response()
        }
        Err(error) => failed(&error),
    }
}

async fn table(State(state): State<Arc<AppState>>, Path((name, table)): Path<(String, String)>) -> Response {
    if name != NAMESPACE {
        return no_namespace(&name);
    }
    let (now, asked) = (state.clock.now(), table.clone());
    match ask(&state, move |catalog| catalog.load(&asked, now)).await {
        Ok(Some(answer)) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(None) => {
            let message = format!("table {NAMESPACE}.{table} does not exist: `annals publish` creates the open tables");
            error(StatusCode::NOT_FOUND, "NoSuchTableException", &message)
        }
        Err(error) => failed(&error),
    }
}

/// Answers from memory. If the answer needs the store, another thread waits for the store.
async fn ask<T: Send + 'static>(
    state: &Arc<AppState>,
    ask: impl FnOnce(&Catalog) -> Result<T, LakeError> + Send + 'static,
) -> Result<T, LakeError> {
    let catalog = Arc::clone(&state.catalog);
    if catalog.is_current(state.clock.now()) {
        return ask(&catalog);
    }
    tokio::task::spawn_blocking(move || ask(&catalog)).await.expect("BUG: looking at tables does not panic")
}

fn failed(cause: &LakeError) -> Response {
    tracing::warn!(error = %cause, "the catalog cannot read the tables");
    error(
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailableException",
        "the catalog cannot read the tables: the log has the cause",
    )
}

fn no_namespace(name: &str) -> Response {
    let message = format!("namespace {name} does not exist: all tables are in {NAMESPACE}");
    error(StatusCode::NOT_FOUND, "NoSuchNamespaceException", &message)
}

async fn unknown() -> Response {
    error(StatusCode::NOT_FOUND, "NoSuchEndpointException", "this catalog has no such endpoint")
}

async fn refuse_writes(request: Request, next: Next) -> Response {
    match request.method().is_safe() {
        true => next.run(request).await,
        false => error(
            StatusCode::NOT_ACCEPTABLE,
            "UnsupportedOperationException",
            "this catalog is read-only: only `annals publish` changes the tables",
        ),
    }
}
