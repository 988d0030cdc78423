//! Replaces the credential in texts of the service, before any other code sees them: a hostile service can echo it.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use bytes::Bytes;

use super::contract::ApiError;
use super::json;
use super::redact::{self, Edit};

/// A shorter token is not searched for: it would occur in ordinary words.
pub const TOKEN_BYTES_MIN: usize = 8;
/// The replacement of a token inside a longer text.
const REDACTED: &str = "[redacted]";

/// The current and the previous credential in all known spellings: plain, percent-encoded, hexadecimal and base64, also as a
/// part of a longer encoded text.
#[derive(Default)]
pub struct KnownTokens {
    spellings: Option<AhoCorasick>,
    /// The same, without regard to case: hosts are in lower case.
    any_case: Option<AhoCorasick>,
}

impl KnownTokens {
    pub fn of<'a>(tokens: impl IntoIterator<Item = &'a str>) -> Self {
        let tokens = tokens.into_iter().filter(|token| token.len() >= TOKEN_BYTES_MIN);
        let mut spellings: Vec<String> = tokens.flat_map(spellings).collect();
        spellings.sort_unstable();
        spellings.dedup();
        if spellings.is_empty() {
            return Self::default();
        }
        let built = |any_case| {
            let mut builder = AhoCorasickBuilder::new();
            builder.match_kind(MatchKind::LeftmostLongest).ascii_case_insensitive(any_case);
            Some(builder.build(&spellings).expect("BUG: a few short texts can be searched for"))
        };
        Self { spellings: built(false), any_case: built(true) }
    }

    /// Whether a JSON text can contain a token. Only an escape can hide one.
    pub fn may_be_in(&self, text: &[u8]) -> bool {
        self.spellings.as_ref().is_some_and(|tokens| tokens.is_match(text) || memchr::memchr(b'\\', text).is_some())
    }

    /// The replacements for `text`, which is valid JSON: tokens inside strings, strings that hide a token behind escapes, and
    /// numbers that equal a token.
    pub fn edits(&self, text: &str) -> Vec<Edit> {
        let mut found = Vec::new();
        let Some(tokens) = &self.spellings else { return found };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = memchr::memchr(b'"', &bytes[at..]).map_or(bytes.len(), |step| at + step);
            let number = |place: Range<usize>| Edit { place, by: redact::REDACTED };
            found.extend(tokens.find_iter(&text[at..start]).map(|found| number(scalar(text, at + found.start()))));
            at = json::string_end(bytes, start).min(bytes.len());
            string_edits(tokens, text, start..at, &mut found);
        }
        found.dedup_by(|later, earlier| later.place == earlier.place);
        found
    }

    /// An answer without its tokens, for answers that Annals does not keep byte for byte.
    pub fn cleaned(&self, body: &Bytes) -> Bytes {
        let text = std::str::from_utf8(body).ok().filter(|_| self.may_be_in(body));
        match text.map(|text| self.edits(text)) {
            Some(edits) if !edits.is_empty() => redact::replace(body, &edits).into(),
            _ => body.clone(),
        }
    }

    /// The text of a message, without its tokens.
    pub fn scrubbed(&self, text: String) -> String {
        match &self.any_case {
            Some(tokens) if tokens.is_match(&text) => {
                let replacements = vec![REDACTED; tokens.patterns_len()];
                tokens.replace_all(&text, &replacements)
            }
            _ => text,
        }
    }

    /// An error, without its tokens.
    pub fn scrubbed_error(&self, error: ApiError) -> ApiError {
        let clean = |text| self.scrubbed(text);
        match error {
            ApiError::Refused { what, status } => ApiError::Refused { what: clean(what), status },
            ApiError::NotFound { what, status } => ApiError::NotFound { what: clean(what), status },
            ApiError::Rejected { what, status, code } => {
                ApiError::Rejected { what: clean(what), status, code: code.map(clean) }
            }
            ApiError::UnusableId { what } => ApiError::UnusableId { what: clean(what) },
            ApiError::Throttled { what, retry_after } => ApiError::Throttled { what: clean(what), retry_after },
            ApiError::Unreachable { what, detail } => {
                ApiError::Unreachable { what: clean(what), detail: clean(detail) }
            }
            ApiError::Unavailable { what, detail, retry_after } => {
                ApiError::Unavailable { what: clean(what), detail: clean(detail), retry_after }
            }
            ApiError::Unexpected { what, detail } => ApiError::Unexpected { what: clean(what), detail: clean(detail) },
            ApiError::TooLong { what, bytes_max } => ApiError::TooLong { what: clean(what), bytes_max },
        }
    }
}

/// Whether this text contains a replaced token.
pub fn is_redacted(text: &str) -> bool {
    text.contains(REDACTED)
}

/// `place` is a string with its quotes.
fn string_edits(tokens: &AhoCorasick, text: &str, place: Range<usize>, found: &mut Vec<Edit>) {
    let string = &text[place.clone()];
    if string.contains('\\') {
        let decoded = json::string(string).unwrap_or(Cow::Borrowed(string));
        if tokens.is_match(decoded.as_ref()) || tokens.is_match(string) {
            found.push(Edit { place, by: redact::REDACTED });
        }
        return;
    }
    let places = tokens.find_iter(string).map(|held| place.start + held.start()..place.start + held.end());
    found.extend(places.map(|place| Edit { place, by: REDACTED.as_bytes() }));
}

/// The number or word around `at`.
fn scalar(text: &str, at: usize) -> Range<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    let (before, after) = text.as_bytes().split_at(at);
    let start = at - before.iter().rev().take_while(|byte| is_part(byte)).count();
    start..at + after.iter().take_while(|byte| is_part(byte)).count().max(1)
}

fn spellings(token: &str) -> Vec<String> {
    let percent = |byte: u8, digits: String| match byte {
        b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        _ => format!("%{digits}"),
    };
    let digits = hex::encode(token);
    let mut all = vec![
        token.to_owned(),
        token.bytes().map(|byte| percent(byte, format!("{byte:02x}"))).collect(),
        token.bytes().map(|byte| percent(byte, format!("{byte:02X}"))).collect(),
        digits.to_uppercase(),
        digits,
    ];
    all.extend([STANDARD, URL_SAFE].iter().flat_map(|alphabet| inside_base64(token, alphabet)));
    all
}

/// The characters that depend on the token alone, at any position in a longer text.
fn inside_base64<'a>(token: &'a str, alphabet: &Alphabet) -> impl Iterator<Item = String> + use<'a> {
    let engine = GeneralPurpose::new(alphabet, NO_PAD);
    (0..3).map(move |before: usize| {
        let text = [&[0; 2][..before], token.as_bytes()].concat();
        let encoded = engine.encode(&text);
        // A character holds six bits: the first and the last character can share bits with the neighbours of the token.
        encoded[(before * 8).div_ceil(6)..text.len() * 8 / 6].to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD as PADDED;
    use url::form_urlencoded;

    const TOKEN: &str = "t0ken/never+Shown~42";
    const BEFORE: &str = "the-token-Before-it";

    fn known() -> KnownTokens {
        KnownTokens::of([TOKEN, BEFORE])
    }

    fn cleaned(text: &str) -> String {
        String::from_utf8(known().cleaned(&Bytes::copy_from_slice(text.as_bytes())).to_vec()).unwrap()
    }

    #[test]
    fn a_token_is_replaced_everywhere_and_other_text_stays() {
        let escaped: String = TOKEN.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        for (text, expected) in [
            (format!(r#"{{"a":"{TOKEN}"}}"#), r#"{"a":"[redacted]"}"#),
            (format!(r#"{{"a":"x {TOKEN} y {BEFORE}{TOKEN}"}}"#), r#"{"a":"x [redacted] y [redacted][redacted]"}"#),
            (format!(r#"{{"{TOKEN}":1,"b":["{BEFORE}"]}}"#), r#"{"[redacted]":1,"b":["[redacted]"]}"#),
            (
                format!(r#"{{"a":"{escaped}","b":"kept \" \\ \u0041"}}"#),
                r#"{"a":"[redacted]","b":"kept \" \\ \u0041"}"#,
            ),
            (format!(r#"{{"a":"{}"}}"#, TOKEN.replace('/', "\\/")), r#"{"a":"[redacted]"}"#),
            (format!(r#"{{"a":"\n{TOKEN}"}}"#), r#"{"a":"[redacted]"}"#),
            (format!(r#""{TOKEN}""#), r#""[redacted]""#),
            (r#"{"a":"t0ken/never+Shown~4","b":12}"#.to_owned(), r#"{"a":"t0ken/never+Shown~4","b":12}"#),
            (r#"{"a":"\u0041"}"#.to_owned(), r#"{"a":"\u0041"}"#),
        ] {
            assert_eq!(cleaned(&text), expected, "{text}");
        }
        let number = KnownTokens::of(["123456789012"]);
        let body = Bytes::from_static(br#"{"a":-51234567890129.5e3,"b":1}"#);
        assert_eq!(number.cleaned(&body), r#"{"a":"[redacted]","b":1}"#);
    }

    #[test]
    fn every_spelling_of_a_token_is_replaced() {
        for before in ["", "a", "ab", "Bearer "] {
            for after in ["", "a", "ab", "abc"] {
                let text = format!("{before}{TOKEN}{after}");
                let percent: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
                for spelled in [PADDED.encode(&text), hex::encode(&text), percent] {
                    let shown = known().scrubbed(format!("the service said {spelled}"));
                    assert!(shown.contains(REDACTED) && shown.len() < 60, "{spelled}: {shown}");
                    assert!(cleaned(&format!(r#"{{"a":"{spelled}"}}"#)).contains(REDACTED), "{spelled}");
                }
            }
        }
        let host = format!("a redirect to https://{}.example", BEFORE.to_lowercase());
        assert_eq!(known().scrubbed(host), "a redirect to https://[redacted].example");
    }

    #[test]
    fn a_short_token_is_not_searched_for() {
        let body = Bytes::from_static(br#"{"events":["events"]}"#);
        assert_eq!(KnownTokens::of(["events"]).cleaned(&body), body);
        assert!(!KnownTokens::default().may_be_in(b"\\"));
    }

    proptest::proptest! {
        #[test]
        fn the_cleaned_json_stays_valid(text in r#"(["\\/{}:, ]|t0ken/never\+Shown~42|\\u0074|[0-9]){0,12}"#) {
            let left = cleaned(&text);
            proptest::prop_assert!(!left.contains(TOKEN) || serde_json::from_str::<serde_json::Value>(&text).is_err());
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                proptest::prop_assert!(serde_json::from_str::<serde_json::Value>(&left).is_ok());
            }
        }
    }
}
