//! Requests of a team's administration: turns HTTP into rule calls and outcomes into HTTP.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::RawPathParams;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value};

use super::admin::{AdminRequest, Outcome};
use super::answer::{Refusal, done, json_value};
use super::openapi::with_empty_lists;
use super::routes::{Op, Route};
use super::tokens::Bearer;
use super::world::World;

/// Serves one row of the table of routes.
pub(super) fn administer(
    world: &Arc<World>,
    route: &'static Route,
    bearer: &Bearer,
    path: &RawPathParams,
    query: Option<String>,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Refusal> {
    let mut ids = path.iter().map(|(_, value)| value.to_owned());
    let team = ids.next().unwrap_or_default();
    let team = world.team(&team).ok_or_else(|| Refusal::not_found("team"))?;
    let ids: Vec<String> = ids.collect();
    let query = query.unwrap_or_default();
    let query: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let choices = world.choices();
    let body = if route.body.is_empty() { Map::new() } else { read_body(headers, body, choices.require_content_type)? };
    let request = AdminRequest { op: route.op, ids: &ids, query: &query, body: &body };
    let caller = world.caller(team, bearer)?;
    let mut outcome = world.administer(team, &caller, &request)?;
    // The limited view never gets empty lists.
    let is_limited = route.op == Op::Team && !caller.is_admin;
    if let (true, Some(schema), Some(body)) = (choices.empty_lists && !is_limited, route.answer, &mut outcome.body) {
        with_empty_lists(body, schema, &choices);
    }
    Ok(answer(outcome, choices.created_body))
}

fn answer(outcome: Outcome, created: super::choices::CreatedBody) -> Response {
    let status = StatusCode::from_u16(outcome.status).unwrap_or(StatusCode::OK);
    match outcome.body {
        None => done(status, created),
        Some(body) => {
            let mut response = json_value(&body);
            *response.status_mut() = status;
            response
        }
    }
}

/// Reads an empty body as an object without fields.
pub(super) fn read_body(headers: &HeaderMap, body: &Bytes, needs_type: bool) -> Result<Map<String, Value>, Refusal> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if needs_type && !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::media_type());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Refusal::unreadable("the body must be a JSON object")),
        Err(error) => Err(Refusal::unreadable(format!("the body is not JSON: {error}"))),
    }
}
