//! The page for people. The server makes whole documents, which work without a script, by keyboard, in light and dark, and on a
//! phone. The template engine escapes every value.

mod assets;
mod coverage;
mod day;
mod findings;
mod key_figures;
mod other_teams;
mod overview;
mod page_request;
mod quarantine;
mod reports;
mod sessions;
mod sign_in;
mod sql;

use std::net::SocketAddr;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

use super::AppState;
use super::problem::Problem;
use super::sign_ins::machine;
use page_request::Frame;

/// A document, or a problem, which [`show_problem`] makes a document.
type Page = Result<Response, Problem>;

/// The browser loads nothing from other sites, runs no inline script, and shows the page in no other page.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub fn routes(state: &Arc<AppState>) -> Router<Arc<AppState>> {
    Router::new()
        .route("/", get(overview::overview))
        .route("/coverage", get(coverage::coverage))
        .route("/sessions", get(sessions::sessions))
        .route("/session", get(sessions::session))
        .route("/day", get(day::day))
        .route("/reports", get(reports::reports))
        .route("/reports/{name}", get(reports::report))
        .route("/reports/{name}/file", get(reports::file))
        .route("/findings", get(findings::findings))
        .route("/quarantine", get(quarantine::quarantine))
        .route("/sql", get(sql::form).post(sql::answer))
        .route("/zone", post(sign_in::set_zone))
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(state.clone(), show_problem))
}

/// The routes that need no token: the sign-in form and its style.
pub fn open_routes(state: &Arc<AppState>) -> Router<Arc<AppState>> {
    Router::new()
        .route("/sign-in", get(sign_in::form).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/assets/{name}", get(assets::asset))
        .layer(middleware::from_fn_with_state(state.clone(), show_problem))
}

/// The visitor's identity: a signed-in browser, else the machine. A visitor cannot choose it.
pub fn visitor(state: &AppState, headers: &HeaderMap, peer: SocketAddr) -> String {
    match state.signed_in(headers) {
        Some(sign_in) => sign_in.to_string(),
        None => machine(peer).to_string(),
    }
}

/// Sets the security headers on every answer of the port.
pub async fn add_security_headers(request: Request, next: Next) -> Response {
    with_security_headers(next.run(request).await)
}

pub fn with_security_headers(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// The answer for an unknown address.
async fn not_found(uri: Uri) -> Problem {
    Problem::missing(format!("no page exists at {}", crate::report::printable(uri.path())))
}

fn shown_page(page: &impl Template) -> Page {
    shown_as(StatusCode::OK, page)
}

/// The answer, or the message of a mistake of the user, which the page shows beside its form. Also returns the page's status.
fn or_mistake<T>(found: Result<T, Problem>) -> Result<(Option<T>, Option<String>, StatusCode), Problem> {
    match found {
        Ok(found) => Ok((Some(found), None, StatusCode::OK)),
        Err(problem) if problem.status.is_client_error() => Ok((None, Some(problem.message), problem.status)),
        Err(problem) => Err(problem),
    }
}

/// A page that shows a problem beside its form, with the problem's status.
fn shown_as(status: StatusCode, page: &impl Template) -> Page {
    let text = page.render().map_err(|error| Problem::failed(error.to_string()))?;
    Ok((status, Html(text)).into_response())
}

#[derive(Template)]
#[template(path = "web/problem.html")]
struct ProblemPage {
    frame: Frame,
    title: &'static str,
    message: String,
}

/// Makes a document of a problem; the other headers of the answer stay.
async fn show_problem(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let mut answer = next.run(request).await;
    let Some(problem) = answer.extensions_mut().remove::<Problem>() else { return answer };
    let title = match problem.status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::BAD_REQUEST => "The request is not valid",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::TOO_MANY_REQUESTS => "Busy",
        StatusCode::UNPROCESSABLE_ENTITY => "The answer is too large",
        StatusCode::SERVICE_UNAVAILABLE => "The answer took too long",
        _ => "The request failed",
    };
    let page = ProblemPage { frame: Frame::bare(&state, &headers, &uri), title, message: problem.message };
    if let Ok(text) = page.render() {
        *answer.body_mut() = Body::from(text);
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    }
    answer
}
