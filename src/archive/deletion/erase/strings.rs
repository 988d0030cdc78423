//! Finds the JSON strings in a text: values and keys at any depth, also in strings that hold JSON text.
//!
//! The search does not parse the text, so it works on damaged JSON, too. Pure.

use std::ops::Range;

use crate::planted::{self, Bug};

/// The maximum depth of JSON texts inside strings. Deeper strings are not searched.
const DEPTH_MAX: usize = 64;

/// The strings of `text` for which `pick` returns a value, in order: the range between the quotes, and that value. `pick` gets
/// each string without its escapes.
pub fn find_strings<T>(text: &[u8], pick: &dyn Fn(&str) -> Option<T>) -> Vec<(Range<usize>, T)> {
    let mut found = Vec::new();
    search(text, pick, DEPTH_MAX, &mut found);
    found
}

fn search<T>(text: &[u8], pick: &dyn Fn(&str) -> Option<T>, depth: usize, found: &mut Vec<(Range<usize>, T)>) {
    let mut at = 0;
    while let Some(content) = next_string(text, at) {
        at = content.end + 1;
        let escaped = &text[content.clone()];
        if memchr::memchr(b'\\', escaped).is_none() {
            if let Some(picked) = std::str::from_utf8(escaped).ok().and_then(pick) {
                found.push((content, picked));
            }
            continue;
        }
        if planted::is(Bug::ErasureUnescaped) {
            continue;
        }
        let plain = Unescaped::of(escaped);
        if let Some(picked) = std::str::from_utf8(&plain.bytes).ok().and_then(pick) {
            found.push((content, picked));
        } else if depth > 1 && plain.bytes.contains(&b'"') {
            let mut within = Vec::new();
            search(&plain.bytes, pick, depth - 1, &mut within);
            let place = |at: usize| content.start + plain.places[at];
            found.extend(within.into_iter().map(|(range, picked)| (place(range.start)..place(range.end), picked)));
        }
    }
}

/// The content of the first string at or after `from`. `None` if no string is closed.
fn next_string(text: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + memchr::memchr(b'"', text.get(from..)?)? + 1;
    let mut at = start;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(start..at),
            _ => at += 2,
        }
    }
}

/// A string's content without its escapes.
struct Unescaped {
    /// UTF-8, except for unpaired surrogates.
    bytes: Vec<u8>,
    /// The place of each byte in the content, and the content's end.
    places: Vec<usize>,
}

impl Unescaped {
    fn of(content: &[u8]) -> Self {
        let mut made = Self { bytes: Vec::with_capacity(content.len()), places: Vec::with_capacity(content.len() + 1) };
        let mut at = 0;
        while at < content.len() {
            let mut buffer = [0; 4];
            let (length, bytes): (usize, &[u8]) = match content[at] {
                b'\\' => match unescape(&content[at..]) {
                    (length, Some(c)) => (length, c.encode_utf8(&mut buffer).as_bytes()),
                    // This byte is invalid UTF-8, so the string equals no value.
                    (length, None) => (length, &[0xff]),
                },
                _ => (1, &content[at..=at]),
            };
            made.bytes.extend_from_slice(bytes);
            made.places.extend(std::iter::repeat_n(at, bytes.len()));
            at += length;
        }
        made.places.push(content.len());
        made
    }
}

/// The escape at the start of `text`: its length, and its meaning unless it is an unpaired surrogate. An escape that JSON does not
/// know means its backslash.
fn unescape(text: &[u8]) -> (usize, Option<char>) {
    match text.get(1) {
        Some(b'n') => (2, Some('\n')),
        Some(b't') => (2, Some('\t')),
        Some(b'r') => (2, Some('\r')),
        Some(b'b') => (2, Some('\u{8}')),
        Some(b'f') => (2, Some('\u{c}')),
        Some(byte @ (b'"' | b'\\' | b'/')) => (2, Some(char::from(*byte))),
        Some(b'u') => match (unit(text), text.get(6..).and_then(unit)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                (12, char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)))
            }
            (Some(code), _) => (6, char::from_u32(code)),
            (None, _) => (1, Some('\\')),
        },
        _ => (1, Some('\\')),
    }
}

/// The number of the `\uXXXX` at the start of `text`.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(text: &'t str, wanted: &str) -> Vec<&'t str> {
        let places = find_strings(text.as_bytes(), &|content| (content == wanted).then_some(()));
        places.into_iter().map(|(range, ())| &text[range]).collect()
    }

    #[test]
    fn a_string_is_found_in_every_spelling_and_at_every_depth() {
        for (text, expected) in [
            (r#"{"a":"bob"}"#, vec!["bob"]),
            (r#"{"bob":1,"x":["bob",{"y":"bob"}]}"#, vec!["bob"; 3]),
            (r#"{"a":"b\u006Fb"}"#, vec![r"b\u006Fb"]),
            (r#"{"a":"\u0062\u006f\u0062"}"#, vec![r"\u0062\u006f\u0062"]),
            (r#"{"a":"{\"b\":\"bob\"}"}"#, vec!["bob"]),
            (r#"{"a":"{\"b\":\"b\\u006fb\"}"}"#, vec![r"b\\u006fb"]),
            (r#"{"a":"{\"b\":\"{\\\"bob\\\":1}\"}"}"#, vec!["bob"]),
            (r#"{"a":"\u007b\u0022b\u0022:\u0022bob\u0022}"}"#, vec!["bob"]),
            (r#"{"a":"bobby","b":"\"bob","c":"bob ","d":bob}"#, vec![]),
            (r#"{"a":"\\"bob"#, vec![]),
            (r#"{"a":"\\","bob"#, vec![]),
            (r#"nonsense "bob" more"#, vec!["bob"]),
        ] {
            assert_eq!(found(text, "bob"), expected, "{text}");
        }
        for (text, wanted, expected) in [
            (r#"["a\/b"]"#, "a/b", vec![r"a\/b"]),
            (r#"["\ud83d\ude00"]"#, "😀", vec![r"\ud83d\ude00"]),
            (r#"["\ud83d","\ude00"]"#, "😀", vec![]),
            (r#"["\u00e9","é"]"#, "é", vec![r"\u00e9", "é"]),
            (r#"["\x"]"#, r"\x", vec![r"\x"]),
            (r#"["\u12"]"#, r"\u12", vec![r"\u12"]),
            ("[\"\\n\\t\\r\\b\\f\"]", "\n\t\r\u{8}\u{c}", vec![r"\n\t\r\b\f"]),
        ] {
            assert_eq!(found(text, wanted), expected, "{text}");
        }
    }

    #[test]
    fn truncated_or_invalid_text_ends_the_search() {
        for text in [&b"\"bob"[..], b"\"bob\\", b"\\", b"\"", b"", b"\xff\"\xfe\"\"\\u"] {
            assert!(find_strings(text, &|content| (content == "bob").then_some(())).is_empty());
        }
    }

    #[test]
    fn json_within_strings_is_searched_up_to_a_limited_depth() {
        let wrap = |inner: String| format!("\\u0022{}\\u0022", inner.replace('\\', "\\u005c"));
        for (depth, expected) in [(0, 1), (1, 1), (DEPTH_MAX - 1, 1), (DEPTH_MAX, 0), (300, 0)] {
            let deep = (0..depth).fold("x".to_owned(), |inner, _| wrap(inner));
            let text = format!("[\"{deep}\"]");
            let places = find_strings(text.as_bytes(), &|content| (content == "x").then_some(()));
            assert_eq!(places.len(), expected, "{depth}");
        }
    }
}
