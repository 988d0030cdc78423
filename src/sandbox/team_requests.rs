//! The teams of a token, and the truth of their events.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::model::Stream;

use super::answer::{Refusal, json_value};
use super::tokens::Bearer;
use super::truth::Truth;
use super::world::World;

const TRUTH_CHUNK_EVENTS: usize = 2_000;

type Answer = Result<Response, Refusal>;

pub(super) async fn teams(State(world): State<Arc<World>>, Extension(bearer): Extension<Bearer>) -> Answer {
    let is_its = |id: &str| bearer.person.as_ref().is_none_or(|holder| holder.is_on(id));
    let ids = world.teams.iter().map(|team| team.roster.id.as_str()).filter(|id| is_its(id));
    Ok(json_value(&ids.map(|id| json!(id)).collect::<Value>()))
}

/// Streams every event that ever existed, one JSON object a line.
pub(super) async fn truth(State(world): State<Arc<World>>, Path((team, stream)): Path<(String, String)>) -> Answer {
    let team = Arc::clone(world.team(&team).ok_or_else(|| Refusal::not_found("team"))?);
    let stream: Stream = stream.parse().map_err(|_| Refusal::not_found("stream"))?;
    let mut events = Truth::new(team, stream, world.clock.now());
    let chunks = std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        events.by_ref().take(TRUTH_CHUNK_EVENTS).for_each(|event| event.push_line(&mut chunk));
        (!chunk.is_empty()).then(|| Ok::<_, std::convert::Infallible>(Bytes::from(chunk)))
    });
    let mut response = Response::new(Body::from_stream(futures::stream::iter(chunks)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(response)
}
