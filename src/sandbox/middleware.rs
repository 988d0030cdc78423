//! Middleware of every request: fault hook and rules, token check, and the `Date` of the sandbox's clock.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, stream};

use crate::model::Instant;

use super::answer::{Refusal, error_body};
use super::choices::Choices;
use super::fault::{Fault, RequestInfo};
use super::listener::Cutter;
use super::routes::OPENAPI_PATH;
use super::tokens::{Bearer, Role};
use super::world::World;

const BODY_BYTES_MAX: usize = 1 << 30;
const HTML: &str = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>upstream</body></html>";

/// Answers one request, correctly or with the fault that the hook or a rule selects.
pub(super) async fn handle(
    State(world): State<Arc<World>>,
    ConnectInfo(connection): ConnectInfo<Cutter>,
    request: Request,
    next: Next,
) -> Response {
    world.count_request();
    let info = RequestInfo {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
    };
    let hooked = world.faults().and_then(|hook| hook(&info));
    let fault = hooked.or_else(|| world.fault_rules.fault_of(&info));
    let mut response = match fault {
        None => admit(&world, &connection, request, next).await,
        Some(Fault::Delay(span)) => {
            world.clock.sleep(span).await;
            admit(&world, &connection, request, next).await
        }
        Some(Fault::Truncate) => cut(admit(&world, &connection, request, next).await, false).await,
        Some(Fault::CutShort) => cut(admit(&world, &connection, request, next).await, true).await,
        Some(Fault::Reset) => {
            connection.cut();
            StatusCode::OK.into_response()
        }
        Some(Fault::Status { status, retry_after }) => failed(status, retry_after.as_deref(), &world.choices()),
        Some(Fault::Html) => served("text/html", HTML),
        Some(Fault::Body { content_type, body }) => served(content_type, body),
    };
    if let Some(value) = http_date(world.clock.now()) {
        response.headers_mut().insert(header::DATE, value);
    }
    response
}

/// Lets a request through if its token allows it. Gives refusals the shape that the switches select.
async fn admit(world: &World, connection: &Cutter, mut request: Request, next: Next) -> Response {
    let choices = world.choices();
    if request.uri().path() == OPENAPI_PATH {
        return in_shape(next.run(request).await, &choices);
    }
    let response = match allow(world, &choices, &request) {
        Ok(bearer) => {
            if let Some(holder) = &bearer.person {
                world.note_use(holder, Some(connection.peer));
            }
            request.extensions_mut().insert(bearer);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    in_shape(response, &choices)
}

fn allow(world: &World, choices: &Choices, request: &Request) -> Result<Bearer, Refusal> {
    let path = request.uri().path();
    let token = bearer(request.headers()).unwrap_or_default();
    let team = path.strip_prefix("/v1/team/").and_then(|rest| rest.split('/').next());
    let Some(bearer) = world.bearer_of(token, team) else {
        return Err(Refusal::unauthorized());
    };
    // Only documented paths have the limit, so a test can always reset it.
    if let Some(most) = choices.requests_per_minute.filter(|_| path.starts_with("/v1/")) {
        let now = world.clock.now().seconds();
        if !world.tokens.count(token, now, most) {
            return Err(Refusal::too_many_requests(60 - now.rem_euclid(60)));
        }
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if bearer.role != Role::Admin && !reads {
        return Err(Refusal::forbidden("this token may make only GET requests"));
    }
    if path.starts_with("/sandbox/") && (bearer.role != Role::Admin || bearer.person.is_some()) {
        return Err(Refusal::forbidden("the sandbox's own requests are for the admin token"));
    }
    if let (Some(holder), Some(team)) = (&bearer.person, team)
        && !holder.is_on(team)
    {
        return Err(Refusal::forbidden("this token's person is not on that team"));
    }
    let is_team_view = team.is_some_and(|team| path.len() == "/v1/team/".len() + team.len());
    if bearer.role == Role::Member && !choices.members_read && team.is_some() && !is_team_view {
        return Err(Refusal::forbidden("this is for the team's admins"));
    }
    Ok(bearer)
}

/// Gives every refusal the shape that the switches select, also refusals of the web framework, for example of a path
/// that is not UTF-8.
fn in_shape(mut response: Response, choices: &Choices) -> Response {
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        return refusal.answer(choices);
    }
    let status = response.status();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if status.is_success() || is_json {
        return response;
    }
    error_body(choices.error_shape, status, "invalid-request", "the request cannot be read")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn failed(status: u16, retry_after: Option<&str>, choices: &Choices) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response =
        error_body(choices.error_shape, status, "injected-fault", "the fault hook asked for this status");
    if let Some(value) = retry_after.and_then(|text| HeaderValue::from_str(text).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn served(content_type: &'static str, body: &'static str) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

/// Half of a response. With `promised`, its header announces the whole length.
async fn cut(response: Response, promised: bool) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(whole) = to_bytes(body, BODY_BYTES_MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let half = whole.slice(..whole.len() / 2);
    if !promised {
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::from(half));
    }
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let sent = stream::once(async { Ok::<Bytes, std::io::Error>(half) });
    let broken = stream::once(async {
        // Lets the server send the half before the body fails.
        tokio::task::yield_now().await;
        Err(std::io::ErrorKind::ConnectionReset.into())
    });
    Response::from_parts(parts, Body::from_stream(sent.chain(broken)))
}

fn http_date(at: Instant) -> Option<HeaderValue> {
    let since = Duration::from_secs(u64::try_from(at.seconds()).ok()?);
    HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::UNIX_EPOCH.checked_add(since)?)).ok()
}
