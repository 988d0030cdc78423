//! Access to the port: everybody on a loopback address; elsewhere, everybody who knows the token.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use thiserror::Error;

use crate::config::Http;
use crate::files::{self, Links};
use crate::model::Digest;

use super::AppState;
use super::iceberg;
use super::input::{VALUE_CHARS_MAX, link};
use super::problem::Problem;

/// A shorter token can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// The sign-in form takes no longer value.
const TOKEN_CHARS_MAX: usize = VALUE_CHARS_MAX;
/// The maximum size of the token's file.
const TOKEN_BYTES_MAX: u64 = 64 << 10;
/// The cookie that holds the secret of a browser's sign-in.
pub const SESSION_COOKIE: &str = "annals_session";
/// A browser must sign in again after this time.
pub const SESSION_SECONDS: u64 = 12 * 3_600;

/// Why the port cannot open.
#[derive(Debug, Error)]
pub enum GuardError {
    #[error(
        "other machines can reach http.listen {address}: set http.token_file to a file that holds a token, or listen on 127.0.0.1"
    )]
    Open { address: SocketAddr },
    #[error("http.token_file {}: cannot read the token: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("http.token_file {}: the token must have {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} characters, and no spaces", path.display())]
    Weak { path: PathBuf },
}

/// The token that requests must show.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// A digest, so that each comparison takes the same time, and no message can show the token.
    token: Option<Digest>,
}

impl Guard {
    /// # Errors
    /// When other machines can reach the address and no token guards it; when the token is invalid.
    pub fn new(http: &Http) -> Result<Self, GuardError> {
        match &http.token_file {
            Some(path) => Ok(Self { token: Some(read(path)?) }),
            None if http.listen.ip().is_loopback() => Ok(Self::default()),
            None => Err(GuardError::Open { address: http.listen }),
        }
    }

    /// Whether requests must show the token.
    pub fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// The token's digest.
    pub fn token(&self) -> Option<Digest> {
        self.token
    }

    /// Whether the headers show the token. Without a token: whether they address this machine by one of its local names. Another
    /// site whose name resolves to this machine uses its own name.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        if !self.needs_token() {
            return is_local(headers);
        }
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
        shown.is_some_and(|(scheme, shown)| scheme.eq_ignore_ascii_case("bearer") && self.is_token(shown))
    }

    pub fn is_token(&self, shown: &str) -> bool {
        self.token.is_some_and(|token| digest(shown.trim()) == token)
    }
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let texts = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Some(name) = host.to_str().ok().and_then(host_name) else { return false };
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The name in a `Host` header: `name`, `name:port`, `[address]` or `[address]:port`; `None` for anything else.
fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (address, port)
        }
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            (Some(name).filter(|name| is_name && !name.is_empty())?, port)
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// Whether a request names exactly one host. Only HTTP/1.0 may omit it.
fn has_one_host(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).into_iter();
    let (host, second) = (hosts.next(), hosts.next());
    let Some(host) = host else { return request.version() == Version::HTTP_10 && request.uri().authority().is_none() };
    let is_same = request.uri().authority().is_none_or(|named| named.as_str().as_bytes() == host.as_bytes());
    second.is_none() && is_same && host.to_str().is_ok_and(|host| host_name(host).is_some())
}

/// Refuses a request that could be for more than one host.
pub async fn check_host(request: Request, next: Next) -> Response {
    if has_one_host(&request) {
        return next.run(request).await;
    }
    refusal(request.uri(), Problem::bad("the request must have one Host header, of the form name or name:port"))
}

/// Whether one of our pages sent a form, as far as the browser tells; other programs tell nothing.
fn is_own_form(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match (text("sec-fetch-site"), text("origin"), text("host")) {
        (Some(site), _, _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        (None, Some(_), None) => false,
        (None, None, _) => true,
    }
}

/// # Errors
/// When a page of another site sent the form.
pub fn check_own_form(headers: &HeaderMap) -> Result<(), Problem> {
    match is_own_form(headers) {
        true => Ok(()),
        false => Err(Problem::forbidden("another site sent this form: use the form on this page")),
    }
}

fn read(path: &Path) -> Result<Digest, GuardError> {
    let text = files::read_text(path, Links::Follow, TOKEN_BYTES_MAX)
        .map_err(|source| GuardError::Unreadable { path: path.to_owned(), source })?;
    let token = text.trim();
    let is_fit =
        (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_fit.then(|| digest(token)).ok_or_else(|| GuardError::Weak { path: path.to_owned() })
}

fn digest(token: &str) -> Digest {
    Digest::with_domain("annals port token\n", &[token.as_bytes()])
}

/// Lets a request through, or names the missing token.
pub async fn require_token(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    if state.admits(request.headers()) {
        return next.run(request).await;
    }
    if !state.needs_token() {
        return refusal(request.uri(), Problem::forbidden(WRONG_HOST));
    }
    let accepts = request.headers().get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok());
    let is_browser = request.method() == Method::GET && accepts.is_some_and(|accepts| accepts.contains("text/html"));
    if is_browser && ![iceberg::PREFIX, "/api/"].iter().any(|programs| request.uri().path().starts_with(programs)) {
        let back = request.uri().path_and_query().map_or("/", |back| back.as_str());
        return Redirect::to(&link("/sign-in", [("back", back)])).into_response();
    }
    let problem = Problem::unauthorized("this port needs a bearer token: send it in the Authorization header");
    ([(header::WWW_AUTHENTICATE, "Bearer realm=\"annals\"")], refusal(request.uri(), problem)).into_response()
}

const WRONG_HOST: &str = "this port has no token, so it answers only this machine's own names: use 127.0.0.1 or localhost, \
    or set http.token_file";

/// A refusal: JSON for API requests, else a line of text.
pub fn refusal(uri: &Uri, problem: Problem) -> Response {
    match uri.path() {
        path if path == "/api" || path.starts_with("/api/") => problem.as_json(),
        path if path.starts_with(iceberg::PREFIX) => iceberg::refused(&problem),
        _ => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TeamMetrics;
    use std::io::Write;
    use std::time::Duration;

    fn http(listen: &str, token: Option<&str>) -> (Http, Option<tempfile::NamedTempFile>) {
        let file = token.map(|text| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        });
        let token_file = file.as_ref().map(|file| file.path().to_owned());
        let http = Http {
            listen: listen.parse().unwrap(),
            token_file,
            sql: false,
            sql_time: Duration::from_secs(30),
            team_metrics: TeamMetrics::Auto,
        };
        (http, file)
    }

    #[test]
    fn an_address_other_than_loopback_needs_a_token() {
        let (longest, longer) = ("x".repeat(1_000), "x".repeat(1_001));
        for (listen, token, is_fine) in [
            ("127.0.0.1:9464", None, true),
            ("127.9.9.9:9464", None, true),
            ("[::1]:9464", None, true),
            ("0.0.0.0:9464", None, false),
            ("[::]:9464", None, false),
            ("192.0.2.1:9464", None, false),
            ("0.0.0.0:9464", Some(" a-token-of-some-length\n"), true),
            ("0.0.0.0:9464", Some("short"), false),
            ("0.0.0.0:9464", Some("a token with many spaces"), false),
            ("127.0.0.1:9464", Some(""), false),
            ("127.0.0.1:9464", Some(longest.as_str()), true),
            // The sign-in form would refuse it.
            ("127.0.0.1:9464", Some(longer.as_str()), false),
        ] {
            let (http, _file) = http(listen, token);
            assert_eq!(Guard::new(&http).is_ok(), is_fine, "{listen} {token:?}");
        }
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let (http, _file) = http("0.0.0.0:1", Some("a-token-of-some-length\n"));
        let guard = Guard::new(&http).unwrap();
        for (shown, is_admitted) in [
            (None, false),
            (Some("Bearer a-token-of-some-length"), true),
            (Some("bearer  a-token-of-some-length "), true),
            (Some("Bearer a-token-of-some-lengt"), false),
            (Some("Basic a-token-of-some-length"), false),
            (Some("a-token-of-some-length"), false),
        ] {
            let mut headers = HeaderMap::new();
            shown.map(|shown: &str| headers.insert(header::AUTHORIZATION, shown.parse().unwrap()));
            assert_eq!(guard.admits(&headers), is_admitted, "{shown:?}");
        }
    }

    #[test]
    fn without_a_token_only_local_names_are_accepted() {
        let guard = Guard::default();
        for (host, is_admitted) in [
            ("127.0.0.1:9464", true),
            ("127.3.2.1", true),
            ("localhost:9464", true),
            ("LOCALHOST", true),
            ("annals.localhost:1", true),
            ("[::1]:9464", true),
            ("[::1]", true),
            ("evil.example", false),
            ("evil.example:9464", false),
            ("127.0.0.1.evil.example:9464", false),
            ("192.0.2.1:9464", false),
            ("127.0.0.1:1@evil", false),
            ("127.0.0.1:1@evil.example:80", false),
            ("evil@127.0.0.1", false),
            ("127.0.0.1:", false),
            ("127.0.0.1:65536", false),
            ("127.0.0.1:+1", false),
            ("[::1]evil", false),
            ("[::1", false),
            ("::1", false),
            ("localhost/", false),
            ("local host", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(guard.admits(&headers), is_admitted, "{host}");
        }
    }

    #[test]
    fn a_request_needs_exactly_one_host() {
        for (version, target, hosts, is_fine) in [
            (Version::HTTP_11, "/", &["127.0.0.1:9464"][..], true),
            (Version::HTTP_11, "/", &["annals.example"], true),
            (Version::HTTP_11, "/", &["127.0.0.1", "evil.example"], false),
            (Version::HTTP_11, "/", &["127.0.0.1", "127.0.0.1"], false),
            (Version::HTTP_11, "/", &["127.0.0.1:1@evil"], false),
            (Version::HTTP_11, "/", &[], false),
            (Version::HTTP_10, "/", &[], true),
            (Version::HTTP_11, "http://127.0.0.1:9464/", &["127.0.0.1:9464"], true),
            (Version::HTTP_11, "http://evil.example/", &["127.0.0.1:9464"], false),
            (Version::HTTP_10, "http://evil.example/", &[], false),
        ] {
            let mut request = Request::builder().version(version).uri(target);
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            let request = request.body(axum::body::Body::empty()).unwrap();
            assert_eq!(has_one_host(&request), is_fine, "{version:?} {target} {hosts:?}");
        }
    }

    #[test]
    fn a_form_of_another_site_is_detected() {
        for (site, origin, is_own) in [
            (Some("same-origin"), None, true),
            (Some("none"), None, true),
            (Some("cross-site"), Some("http://127.0.0.1:1"), false),
            (Some("same-site"), None, false),
            (None, Some("http://127.0.0.1:1"), true),
            (None, Some("https://127.0.0.1:1"), true),
            (None, Some("http://127.0.0.1:2"), false),
            (None, Some("null"), false),
            (None, None, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:1".parse().unwrap());
            site.map(|site: &str| headers.insert("sec-fetch-site", site.parse().unwrap()));
            origin.map(|origin: &str| headers.insert(header::ORIGIN, origin.parse().unwrap()));
            assert_eq!(is_own_form(&headers), is_own, "{site:?} {origin:?}");
        }
    }
}
