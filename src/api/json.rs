//! Scans served JSON leniently: duplicate keys, lone surrogates, deep nesting and huge numbers are no errors. No function
//! here recurses, so no nesting can overflow the stack.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object's fields as JSON texts, in served order. The last of equal keys counts, as in most parsers.
#[derive(Debug, Default)]
pub struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Object<'a> {
    /// The fields of the object in `text`; `None` if `text` is no object.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The JSON text of a field; `None` if it is missing or null.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let text = self.fields.iter().rev().find(|(k, _)| k == key)?.1;
        (text != "null").then_some(text)
    }

    /// The field's value, if it is a string.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        string(self.get(key)?)
    }

    /// The field's value, if it is an object.
    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        Object::parse(self.get(key)?)
    }

    /// All fields, the last one first, so the first of equal keys counts.
    pub fn backwards(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.fields.iter().rev().map(|(key, text)| (key.as_ref(), *text))
    }

    /// The fields that are not null; each key once.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.fields.iter().enumerate().filter_map(|(n, (key, text))| {
            let last = !self.fields[n + 1..].iter().any(|(later, _)| later == key);
            (last && *text != "null").then_some((key.as_ref(), *text))
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            fields.push((string(key.get()).unwrap_or_default(), value.get()));
        }
        Ok(Object { fields })
    }
}

/// The value of a JSON string, with U+FFFD for lone surrogates; `None` if `text` is no string.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    // A parse to bytes accepts a lone surrogate. The bytes are then not UTF-8, so it is replaced.
    let bytes = serde_json::Deserializer::from_str(text).deserialize_bytes(Lossy).ok()?;
    Some(Cow::Owned(bytes))
}

struct Lossy;

impl Visitor<'_> for Lossy {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

pub(super) fn space_end(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The index after the value that starts at `at`.
pub(super) fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

/// The index after the value that starts at `at`, and whether the value is a string without escapes.
pub(super) fn value_and_kind(bytes: &[u8], at: usize) -> (usize, bool) {
    match bytes.get(at) {
        Some(b'"') => string_and_kind(bytes, at),
        _ => (value_end(bytes, at), false),
    }
}

/// The index after the closing quote of the string that starts at `start`.
pub fn string_end(bytes: &[u8], start: usize) -> usize {
    string_and_kind(bytes, start).0
}

fn string_and_kind(bytes: &[u8], start: usize) -> (usize, bool) {
    let mut at = start + 1;
    let mut is_plain = true;
    while let Some(step) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step;
        if bytes[at] == b'"' {
            return (at + 1, is_plain);
        }
        is_plain = false;
        at += 2;
    }
    (bytes.len(), false)
}

/// The offset of `part`, a slice of `whole`.
pub fn range_in(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// The kind of the value in `text`, in words.
pub fn kind(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_counts_and_null_is_absent() {
        let object = Object::parse(r#"{"a":1,"b":null,"a":2,"\u0063":"x"}"#).unwrap();
        assert_eq!((object.get("a"), object.get("b"), object.get("d")), (Some("2"), None, None));
        assert_eq!(object.string("c").unwrap(), "x");
        assert_eq!(object.fields().collect::<Vec<_>>(), [("a", "2"), ("c", "\"x\"")]);
    }

    #[test]
    fn strings_are_read_leniently() {
        for (text, value) in [
            (r#""plain""#, Some("plain")),
            (r#""""#, Some("")),
            (r#""a\"\\\/\n\u00e9""#, Some("a\"\\/\n\u{e9}")),
            (r#""\ud83d\ude00""#, Some("\u{1F600}")),
            (r#""\u0000""#, Some("\0")),
            ("5", None),
            ("null", None),
            (r#"["a"]"#, None),
        ] {
            assert_eq!(string(text).as_deref(), value, "{text}");
        }
        assert!(string(r#""x\ud800y""#).unwrap().contains('\u{fffd}'));
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let text = format!(r#"{{"deep":{}1{},"id":"x"}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Object::parse(&text).unwrap().string("id").unwrap(), "x");
    }
}
