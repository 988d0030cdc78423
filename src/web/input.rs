//! The checked parameters of a request, from its address or its form.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use crate::report::printable;

use super::problem::Problem;

/// Maximum number of parameters, and of characters in each.
const PAIRS_MAX: usize = 64;
pub const VALUE_CHARS_MAX: usize = 1_000;

/// Decoded names and values. An empty value counts as missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input(Vec<(String, String)>);

impl Input {
    /// # Errors
    /// When there are too many parameters, or one is too long or occurs twice.
    pub fn of(text: Option<&str>) -> Result<Self, Problem> {
        let (mut pairs, mut names) = (Vec::new(), BTreeSet::new());
        for (name, value) in form_urlencoded::parse(text.unwrap_or_default().as_bytes()) {
            if names.len() >= PAIRS_MAX {
                return Err(Problem::bad(format!("the request has more than {PAIRS_MAX} parameters")));
            }
            if value.chars().count() > VALUE_CHARS_MAX {
                let name = printable(&name);
                return Err(Problem::bad(format!("parameter {name} has more than {VALUE_CHARS_MAX} characters")));
            }
            if !names.insert(name.to_string()) {
                return Err(Problem::bad(format!("parameter {} occurs twice: give it once", printable(&name))));
            }
            // The service makes ids, so a space at an end is a part of one.
            let value = if name == "id" { &*value } else { value.trim() };
            if !value.is_empty() {
                pairs.push((name.into_owned(), value.to_owned()));
            }
        }
        Ok(Self(pairs))
    }

    /// The value of the name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a field for the form; empty if missing.
    pub fn shown(&self, name: &str) -> String {
        printable(self.get(name).unwrap_or_default())
    }

    /// The value, parsed.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let wrong = |error: T::Err| Problem::bad(printable(&format!("{name}: {error}")));
        self.get(name).map(str::parse).transpose().map_err(wrong)
    }

    /// A whole number that is not negative; larger ones than `u64` become the maximum.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.get(name) else { return Ok(None) };
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Problem::bad(format!("{name}: {:?} is not a whole number such as 12", printable(text))));
        }
        Ok(Some(text.parse().unwrap_or(u64::MAX)))
    }

    /// A whole number from 1 to `max`; `otherwise` if missing.
    pub fn limit(&self, otherwise: usize, max: usize) -> Result<usize, Problem> {
        let Some(text) = self.get("limit") else { return Ok(otherwise) };
        let number = text.parse().ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| Problem::bad(format!("limit: {:?} is not a number from 1 to {max}", printable(text))))
    }

    /// Refuses unknown names, so that a misspelled filter is an error.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let name = printable(name);
                let known = if known.is_empty() {
                    "this page takes none".to_owned()
                } else {
                    format!("expected one of {}", known.join(", "))
                };
                Err(Problem::bad(format!("unknown parameter {name:?}: {known}")))
            }
        }
    }

    /// All parameters whose names begin with `prefix`, without the prefix.
    pub fn under(&self, prefix: &str) -> Vec<(String, String)> {
        let pairs = self.0.iter().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)));
        pairs.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// The same parameters with `changes`. An empty value removes a parameter.
    pub fn with(&self, changes: &[(&str, &str)]) -> Self {
        let kept = self.0.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name)).cloned();
        let added = changes.iter().filter(|(_, value)| !value.is_empty());
        Self(kept.chain(added.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).collect())
    }

    /// A link to `path` with these parameters and `changes`.
    pub fn link(&self, path: &str, changes: &[(&str, &str)]) -> String {
        link(path, self.with(changes).0.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Input {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(parts.uri.query())
    }
}

impl From<Vec<(String, String)>> for Input {
    fn from(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }
}

/// A link to `path` with these parameters, without empty values.
pub fn link<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if text.is_empty() { path.to_owned() } else { format!("{path}?{text}") }
}

/// The position in a list, as opaque text for the client.
pub fn cursor(position: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(position).expect("BUG: a position in a list is plain data"))
}

/// Parses the text of [`cursor`].
pub fn position<T: DeserializeOwned>(input: &Input) -> Result<Option<T>, Problem> {
    let Some(text) = input.get("after") else { return Ok(None) };
    let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    decoded.map(Some).ok_or_else(|| {
        Problem::bad("after: the position is not valid in this list: leave the parameter out to start at the beginning")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked_and_kept_in_links() {
        let input = Input::of(Some("user=a%40b.c&empty=&limit=20&after=x&param.n=3")).unwrap();
        assert_eq!(input.get("user"), Some("a@b.c"));
        assert_eq!(input.get("empty"), None);
        assert_eq!(input.limit(10, 100), Ok(20));
        assert_eq!(input.under("param."), [("n".to_owned(), "3".to_owned())]);
        assert_eq!(
            input.link("/list", &[("after", ""), ("limit", "5"), ("to", "é&")]),
            "/list?user=a%40b.c&param.n=3&limit=5&to=%C3%A9%26"
        );
        assert!(input.only(&["user", "limit"]).unwrap_err().message.contains("after"));
        let spaced = Input::of(Some("id=+lead&user=+ada+")).unwrap();
        assert_eq!((spaced.get("id"), spaced.get("user")), (Some(" lead"), Some("ada")));
        for wrong in ["limit=0", "limit=101", "limit=x"] {
            assert!(Input::of(Some(wrong)).unwrap().limit(10, 100).is_err(), "{wrong}");
        }
        assert!(Input::of(Some(&format!("a={}", "x".repeat(1_001)))).is_err());
        let many: String = (0..65).map(|number| format!("a{number}=1&")).collect();
        assert!(Input::of(Some(&many)).unwrap_err().message.contains("more than 64"));
        for twice in ["team=a&team=b", "team=a&team=", "a=1&te%61m=x&team=x"] {
            assert_eq!(
                Input::of(Some(twice)).unwrap_err().message,
                "parameter team occurs twice: give it once",
                "{twice}"
            );
        }
    }

    #[test]
    fn cursors_round_trip() {
        let after = cursor(&(17_i64, "c'\u{202e}"));
        assert!(after.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        let input = Input::of(Some(&format!("after={after}"))).unwrap();
        assert_eq!(position::<(i64, String)>(&input), Ok(Some((17, "c'\u{202e}".to_owned()))));
        assert!(position::<(i64, String)>(&Input::of(Some("after=nothing")).unwrap()).is_err());
    }
}
