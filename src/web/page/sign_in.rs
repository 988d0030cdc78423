//! The sign-in form, and the choice of the time zone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};

use crate::report::Zone;

use super::super::AppState;
use super::super::format::span;
use super::super::guard::{SESSION_COOKIE, SESSION_SECONDS, check_own_form, cookie};
use super::super::input::Input;
use super::super::problem::Problem;
use super::page_request::{Frame, ZONE_COOKIE};
use super::{Page, shown_as};

/// The delay of the answer to a wrong token.
const REFUSAL_DELAY: Duration = Duration::from_millis(500);
/// The browser keeps the chosen time zone for a year.
const ZONE_SECONDS: u64 = 365 * 86_400;

#[derive(Template)]
#[template(path = "web/sign_in.html")]
struct SignIn {
    frame: Frame,
    back: String,
    is_wrong: bool,
}

fn page(state: &AppState, headers: &HeaderMap, uri: &Uri, back: &str, is_wrong: bool) -> Page {
    let mut frame = Frame::bare(state, headers, uri);
    (frame.places, frame.can_sign_out) = (Vec::new(), false);
    let status = if is_wrong { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    shown_as(status, &SignIn { frame, back: local_path(back), is_wrong })
}

pub async fn form(State(state): State<Arc<AppState>>, input: Input, headers: HeaderMap, uri: Uri) -> Page {
    input.only(&["back"])?;
    let back = input.get("back").unwrap_or("/");
    if state.admits(&headers) {
        return Ok(Redirect::to(&local_path(back)).into_response());
    }
    page(&state, &headers, &uri, back, false)
}

pub async fn sign_in(
    State(state): State<Arc<AppState>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    uri: Uri,
    body: String,
) -> Page {
    let input = own_form(&headers, &uri, &body, &["token", "back"])?;
    let back = input.get("back").unwrap_or("/");
    if let Err(wait) = state.sign_ins.try_once(peer, state.clock.monotonic()) {
        return Ok(too_often(wait));
    }
    let guard = state.guard();
    let token = guard.token().filter(|_| input.get("token").is_some_and(|token| guard.is_token(token)));
    let Some(token) = token else {
        state.clock.sleep(REFUSAL_DELAY).await;
        return page(&state, &headers, &uri, back, true);
    };
    state.sign_ins.succeed(peer);
    let until = state.clock.now().plus(Duration::from_secs(SESSION_SECONDS));
    let session = state.sign_ins.open(token, until);
    let session = session.map_err(|_| Problem::failed("cannot sign in: the system's random source failed"))?;
    Ok(with_cookie(&headers, SESSION_COOKIE, &session, SESSION_SECONDS, &local_path(back)))
}

fn too_often(wait: Duration) -> Response {
    let seconds = wait.as_secs().max(1);
    let problem = Problem::busy(format!("too many wrong tokens: try again in {}", span(seconds)));
    ([(header::RETRY_AFTER, seconds.to_string())], problem).into_response()
}

pub async fn sign_out(State(state): State<Arc<AppState>>, headers: HeaderMap, uri: Uri, body: String) -> Page {
    own_form(&headers, &uri, &body, &[])?;
    if let Some(session) = cookie(&headers, SESSION_COOKIE) {
        state.sign_ins.close(session);
    }
    Ok(with_cookie(&headers, SESSION_COOKIE, "", 0, "/sign-in"))
}

pub async fn set_zone(headers: HeaderMap, uri: Uri, body: String) -> Page {
    let input = own_form(&headers, &uri, &body, &["tz", "back"])?;
    let zone = input.parsed::<Zone>("tz")?;
    let zone = zone.map(|zone| zone.name().replace('/', "%2F")).unwrap_or_default();
    Ok(with_cookie(&headers, ZONE_COOKIE, &zone, ZONE_SECONDS, &local_path(input.get("back").unwrap_or("/"))))
}

/// The fields of our own form, whose address has no parameters.
fn own_form(headers: &HeaderMap, uri: &Uri, body: &str, fields: &[&str]) -> Result<Input, Problem> {
    check_own_form(headers)?;
    Input::of(uri.query())?.only(&[])?;
    let input = Input::of(Some(body))?;
    input.only(fields)?;
    Ok(input)
}

/// Redirects to `target` with a cookie that no script and no other site can read.
fn with_cookie(headers: &HeaderMap, name: &str, value: &str, seconds: u64, target: &str) -> Response {
    // Behind a TLS proxy, the browser must send the cookie over TLS only.
    let is_tls = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    ([(header::SET_COOKIE, cookie)], Redirect::to(target)).into_response()
}

/// A local path, whatever the address contains.
fn local_path(back: &str) -> String {
    let is_local = back.starts_with('/')
        && !back.starts_with("//")
        && back.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>".contains(&byte));
    if is_local { back.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_this_site() {
        for (back, path) in [
            ("/sessions?user=a%20b", "/sessions?user=a%20b"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("/a\r\nSet-Cookie: x=y", "/"),
            ("", "/"),
        ] {
            assert_eq!(local_path(back), path, "{back}");
        }
    }
}
