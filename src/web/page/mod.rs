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
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

use super::AppState;
use super::problem::Problem;
use super::sign_ins::machine;
use page_request::Frame;

/// A document, or a refusal.
type Page = Result<Response, Refused>;

/// The browser loads nothing from other sites, runs no inline script, and shows the page in no other page.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub fn routes() -> Router<Arc<AppState>> {
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
}

/// The routes that need no token: the sign-in form and its style.
pub fn open_routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/sign-in", get(sign_in::form).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/assets/{name}", get(assets::asset))
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
pub async fn not_found(State(state): State<Arc<AppState>>, headers: HeaderMap, uri: Uri) -> Response {
    let problem = Problem::missing(format!("no page exists at {}", crate::report::printable(uri.path())));
    Refused::here(&state, &headers, &uri, problem).into_response()
}

fn shown_page(page: &impl Template) -> Page {
    let text = page.render().map_err(|error| Problem::failed(error.to_string()))?;
    Ok(Html(text).into_response())
}

/// The answer, or the message of a mistake of the user, which the page shows beside its form. Also returns the page's status.
fn or_mistake<T>(
    found: Result<T, Problem>,
    refused: impl FnOnce(Problem) -> Refused,
) -> Result<(Option<T>, Option<String>, StatusCode), Refused> {
    match found {
        Ok(found) => Ok((Some(found), None, StatusCode::OK)),
        Err(problem) if problem.status.is_client_error() => Ok((None, Some(problem.message), problem.status)),
        Err(problem) => Err(refused(problem)),
    }
}

/// A page that shows a problem beside its form, with the problem's status.
fn shown_as(status: StatusCode, page: &impl Template) -> Page {
    Ok((status, shown_page(page)?).into_response())
}

/// A refusal, as a page.
struct Refused {
    problem: Problem,
    frame: Option<Box<Frame>>,
}

impl Refused {
    fn here(state: &AppState, headers: &HeaderMap, uri: &Uri, problem: Problem) -> Self {
        Self { problem, frame: Some(Box::new(Frame::bare(state, headers, uri))) }
    }
}

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Self {
        Self { problem: problem.into(), frame: None }
    }
}

#[derive(Template)]
#[template(path = "web/problem.html")]
struct ProblemPage {
    frame: Frame,
    title: &'static str,
    message: String,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self { problem, frame } = self;
        let title = match problem.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::BAD_REQUEST => "The request is not valid",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::TOO_MANY_REQUESTS => "Busy",
            StatusCode::UNPROCESSABLE_ENTITY => "The answer is too large",
            StatusCode::SERVICE_UNAVAILABLE => "The answer took too long",
            _ => "The request failed",
        };
        let page = ProblemPage {
            frame: frame.map_or_else(Frame::none, |frame| *frame),
            title,
            message: problem.message.clone(),
        };
        match page.render() {
            Ok(text) => (problem.status, Html(text)).into_response(),
            Err(_) => (problem.status, problem.message).into_response(),
        }
    }
}
