//! What every request passes: the fault hook, the token, the `Date` of the sandbox's own clock.

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
use super::config::{Fault, RequestInfo};
use super::listener::Cutter;
use super::world::{Role, World};

const BODY_BYTES_MAX: usize = 1 << 30;
const HTML: &str = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>upstream</body></html>";

/// Answers one request, well or as the fault hook says.
pub(super) async fn pass(
    State(world): State<Arc<World>>,
    ConnectInfo(connection): ConnectInfo<Cutter>,
    request: Request,
    next: Next,
) -> Response {
    let info = RequestInfo {
        serial: world.next_serial(),
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        now: world.clock.now(),
    };
    let fault = world.faults().and_then(|hook| hook(&info));
    let mut dated = None;
    let mut response = match fault {
        None => admit(&world, request, next).await,
        Some(Fault::Delay(span)) => {
            world.clock.sleep(span).await;
            admit(&world, request, next).await
        }
        Some(Fault::Dated(at)) => {
            dated = Some(at);
            admit(&world, request, next).await
        }
        Some(Fault::Truncate) => cut(admit(&world, request, next).await, false).await,
        Some(Fault::CutShort) => cut(admit(&world, request, next).await, true).await,
        Some(Fault::Reset) => {
            connection.cut();
            StatusCode::OK.into_response()
        }
        Some(Fault::Status { status, retry_after }) => failed(status, retry_after.as_deref()),
        Some(Fault::Html) => served("text/html", HTML),
        Some(Fault::Body { content_type, body }) => served(content_type, body),
        Some(Fault::Redirect(to)) => redirected(&to),
    };
    if let Some(value) = http_date(dated.unwrap_or_else(|| world.clock.now())) {
        response.headers_mut().insert(header::DATE, value);
    }
    response
}

/// Lets a request with a good token through; read-only tokens may only read.
async fn admit(world: &World, mut request: Request, next: Next) -> Response {
    let Some(role) = bearer(request.headers()).and_then(|token| world.role_of(token)) else {
        return Refusal::unauthorized().into_response();
    };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if role != Role::Admin && !reads {
        return Refusal::forbidden("this token may make only GET requests").into_response();
    }
    request.extensions_mut().insert(role);
    told(next.run(request).await)
}

/// Gives a refusal that the web framework worded by itself, for example of a path that is not UTF-8, the shape of all
/// others.
fn told(response: Response) -> Response {
    let status = response.status();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if status.is_success() || is_json {
        return response;
    }
    error_body(status, "invalid-request", "the request cannot be read")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn failed(status: u16, retry_after: Option<&str>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = error_body(status, "injected-fault", "the fault hook asked for this status");
    if let Some(value) = retry_after.and_then(|text| HeaderValue::from_str(text).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn served(content_type: &'static str, body: &'static str) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

fn redirected(to: &str) -> Response {
    let mut response = error_body(StatusCode::TEMPORARY_REDIRECT, "injected-fault", "the fault hook redirects");
    if let Ok(value) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// Half of a response; `promised`: under the length of the whole.
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
        // Lets the server put the half on the wire before it learns of the break.
        tokio::task::yield_now().await;
        Err(std::io::ErrorKind::ConnectionReset.into())
    });
    Response::from_parts(parts, Body::from_stream(sent.chain(broken)))
}

fn http_date(at: Instant) -> Option<HeaderValue> {
    let since = Duration::from_secs(u64::try_from(at.seconds()).ok()?);
    HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::UNIX_EPOCH.checked_add(since)?)).ok()
}
