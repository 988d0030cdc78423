//! A lenient look into JSON that was served: duplicate keys, lone surrogates, deep nesting and huge numbers are read
//! past, never an error. Nothing here recurses, so no depth can overflow the stack.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object's fields as JSON texts, in the order served. Of equal keys the last counts, as in most parsers.
#[derive(Debug, Default)]
pub struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Object<'a> {
    /// The fields of the object that `text` is; `None` when it is anything else.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The JSON text of a field, `None` when it is missing or null.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let text = self.fields.iter().rev().find(|(k, _)| k == key)?.1;
        (text != "null").then_some(text)
    }

    /// The field's value where it is a string.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        string(self.get(key)?)
    }

    /// The field's value where it is an object.
    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        Object::parse(self.get(key)?)
    }

    /// The fields that are not null, each key once.
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

/// The value of a JSON string; lone surrogates become U+FFFD. `None` when `text` is not a string.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    // Read as bytes, a lone surrogate is no error; it is then not UTF-8, and replaced.
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

/// Where `part`, a slice of `whole`, stands in it.
pub fn range_in(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// A word for the kind of value that `text` is.
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
    fn of_equal_keys_the_last_counts_and_null_is_absent() {
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
    fn depth_does_not_overflow_the_stack() {
        let text = format!(r#"{{"deep":{}1{},"id":"x"}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Object::parse(&text).unwrap().string("id").unwrap(), "x");
    }
}
