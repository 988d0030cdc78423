//! Who may look: everybody on a loopback address, and whoever knows the token elsewhere.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use thiserror::Error;

use crate::config::Http;
use crate::model::Digest;

use super::Shown;

/// Shorter tokens can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// Why the port stays closed.
#[derive(Debug, Error)]
pub enum GuardError {
    #[error(
        "http.listen {address} can be reached from other machines: set http.token_file to a file that holds a token, or listen on 127.0.0.1"
    )]
    Open { address: SocketAddr },
    #[error("http.token_file {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("http.token_file {}: the token must have at least {TOKEN_CHARS_MIN} characters, and no spaces", path.display())]
    Weak { path: PathBuf },
}

/// What a request must show.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// A digest, so that comparing takes the same time for every wrong token, and nothing here can be printed.
    token: Option<Digest>,
}

impl Guard {
    /// # Errors
    /// When the address is open to others and no token guards it, or the token cannot be used.
    pub fn new(http: &Http) -> Result<Self, GuardError> {
        match &http.token_file {
            Some(path) => Ok(Self { token: Some(read(path)?) }),
            None if http.listen.ip().is_loopback() => Ok(Self::default()),
            None => Err(GuardError::Open { address: http.listen }),
        }
    }

    pub fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = self.token else { return true };
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
        shown.is_some_and(|(scheme, shown)| scheme.eq_ignore_ascii_case("bearer") && digest(shown.trim()) == token)
    }
}

fn read(path: &Path) -> Result<Digest, GuardError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| GuardError::Unreadable { path: path.to_owned(), source })?;
    let token = text.trim();
    let is_fit = token.len() >= TOKEN_CHARS_MIN && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_fit.then(|| digest(token)).ok_or_else(|| GuardError::Weak { path: path.to_owned() })
}

fn digest(token: &str) -> Digest {
    Digest::with_domain("annals port token\n", &[token.as_bytes()])
}

/// Lets a request through, or says what is missing.
pub async fn demand(State(shown): State<Arc<Shown>>, request: Request, next: Next) -> Response {
    if shown.admits(request.headers()) {
        return next.run(request).await;
    }
    let demanded = [(header::WWW_AUTHENTICATE, "Bearer realm=\"annals\"")];
    (StatusCode::UNAUTHORIZED, demanded, "this port demands a bearer token\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn http(listen: &str, token: Option<&str>) -> (Http, Option<tempfile::NamedTempFile>) {
        let file = token.map(|text| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        });
        let token_file = file.as_ref().map(|file| file.path().to_owned());
        (Http { listen: listen.parse().unwrap(), token_file }, file)
    }

    #[test]
    fn an_address_that_others_reach_needs_a_token() {
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
        ] {
            let (http, _file) = http(listen, token);
            assert_eq!(Guard::new(&http).is_ok(), is_fine, "{listen} {token:?}");
        }
    }

    #[test]
    fn only_the_whole_token_opens() {
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
}
