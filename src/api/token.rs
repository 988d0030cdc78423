//! The token. It is given once, or Annals reads it from a file, and reads the file again when the service refuses the token or the
//! file changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use crate::files::{self, Links};
use crate::model::Digest;

use super::known_tokens::KnownTokens;
use super::setup_error::SetupError;

const SCHEME: &str = "Bearer ";

/// The maximum size of a token's file.
const TOKEN_BYTES_MAX: u64 = 64 << 10;

/// The source of the token.
#[derive(Debug, Clone)]
pub enum TokenSource {
    Fixed(SecretString),
    /// A file that holds only the token, and perhaps white space around it.
    File(PathBuf),
}

impl TokenSource {
    /// A digest of the current token, for noticing a change; `None` if the token cannot be read.
    pub fn fingerprint(&self) -> Option<Digest> {
        let text = match self {
            TokenSource::Fixed(token) => token.clone(),
            TokenSource::File(path) => read_file(path).ok()?,
        };
        Some(Digest::with_domain("annals token\n", &[text.expose_secret().trim().as_bytes()]))
    }
}

/// The token of a running source. Notices that the file holds another token, and uses that one.
#[derive(Clone)]
pub struct CurrentToken(pub(super) Arc<Credential>);

impl CurrentToken {
    /// See [`TokenSource::fingerprint`].
    pub fn fingerprint(&self) -> Option<Digest> {
        self.0.source.fingerprint()
    }

    /// No message may repeat a token that this source used earlier, either.
    pub fn follow(&self, former: &CurrentToken) {
        self.0.follow(&former.0);
    }

    /// Uses the token that the file holds now. If the file cannot be read, the old token remains in use.
    pub fn renew(&self) {
        self.0.read_again();
    }
}

/// The current `Authorization` header.
pub(super) struct Credential {
    source: TokenSource,
    state: Mutex<TokenState>,
}

struct TokenState {
    header: HeaderValue,
    /// This token, and the one before it.
    known: Arc<KnownTokens>,
}

impl TokenState {
    fn new(header: HeaderValue, before: Option<&HeaderValue>) -> Self {
        let texts = [Some(&header), before].into_iter().flatten().filter_map(|header| header.to_str().ok());
        let known = Arc::new(KnownTokens::of(texts.map(|text| text.trim_start_matches(SCHEME))));
        Self { header, known }
    }
}

impl Credential {
    pub fn new(source: TokenSource) -> Result<Self, SetupError> {
        let header = read(&source)?;
        Ok(Self { source, state: Mutex::new(TokenState::new(header, None)) })
    }

    /// `Bearer <token>`, marked sensitive.
    pub fn header(&self) -> HeaderValue {
        self.state.lock().header.clone()
    }

    /// The tokens that no text may hold.
    pub fn known(&self) -> Arc<KnownTokens> {
        self.state.lock().known.clone()
    }

    /// Reads the file again after the service refused `refused`. Returns the new header if the token changed. If the file cannot
    /// be read, the old token remains in use.
    pub fn renewed(&self, refused: &HeaderValue) -> Option<HeaderValue> {
        self.read_again();
        let header = self.header();
        (header != *refused).then_some(header)
    }

    /// Notes that the token of `former` came before this one, if it differs.
    pub fn follow(&self, former: &Credential) {
        let before = former.header();
        let mut state = self.state.lock();
        if state.header != before {
            *state = TokenState::new(state.header.clone(), Some(&before));
        }
    }

    fn read_again(&self) {
        if matches!(self.source, TokenSource::File(_))
            && let Ok(header) = read(&self.source)
        {
            let mut state = self.state.lock();
            if state.header != header {
                *state = TokenState::new(header, Some(&state.header));
            }
        }
    }
}

fn read(source: &TokenSource) -> Result<HeaderValue, SetupError> {
    match source {
        TokenSource::Fixed(token) => bearer(token, "the token"),
        TokenSource::File(path) => bearer(&read_file(path)?, &format!("the token in {}", path.display())),
    }
}

fn read_file(path: &Path) -> Result<SecretString, SetupError> {
    let text = files::read_text(path, Links::Follow, TOKEN_BYTES_MAX)
        .map_err(|error| SetupError::TokenFile { path: path.to_owned(), reason: error.to_string() })?;
    Ok(SecretString::from(text))
}

fn bearer(token: &SecretString, what: &str) -> Result<HeaderValue, SetupError> {
    let token = token.expose_secret().trim();
    let fault = |reason: &'static str| SetupError::Token { what: what.to_owned(), reason };
    if token.is_empty() {
        return Err(fault("is empty"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(fault("holds a space, a line break or another character that a token cannot have"));
    }
    let mut header = HeaderValue::try_from(format!("{SCHEME}{token}")).map_err(|_| fault("does not fit a header"))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_token_is_trimmed_and_inside_is_refused() {
        let header = bearer(&SecretString::from(" abc.D-1_\r\n"), "the token").unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer abc.D-1_");
        assert!(header.is_sensitive());
        for text in ["", " \n", "two words", "two\nlines", "\u{fc}", "nul\0"] {
            let error = bearer(&SecretString::from(text), "the token").unwrap_err().to_string();
            assert!(text.trim().is_empty() || !error.contains(text.trim()), "{error}");
        }
    }
}
