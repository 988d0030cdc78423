//! Finds the fields of an event, and of the objects in it, in one pass over its text.

use std::borrow::Cow;

use super::json;

/// Deeper objects are not searched: no documented detail of an event lies so deep.
const LEVELS_MAX: usize = 8;
/// The approximate number of fields of one event: about a kilobyte.
const FIELDS: usize = 16;
const NONE: usize = usize::MAX;

/// The fields of an object and of the objects inside it, in served order.
#[derive(Debug)]
pub struct Outline<'a> {
    fields: Vec<Field<'a>>,
    /// The last field of the object itself.
    last: usize,
}

#[derive(Debug)]
struct Field<'a> {
    key: Cow<'a, str>,
    text: &'a str,
    /// The value is a string without escapes.
    is_plain: bool,
    /// The previous field of the same object, and the last field of the object that is the value.
    before: usize,
    last: usize,
}

/// An object whose end the scan has not reached.
#[derive(Clone, Copy)]
struct Open {
    /// The field with this object as its value, and the start of the value.
    field: usize,
    start: usize,
    last: usize,
}

/// One object of an [`Outline`].
#[derive(Debug, Clone, Copy)]
pub struct ObjectView<'o, 'a> {
    fields: &'o [Field<'a>],
    last: usize,
}

impl<'a> Outline<'a> {
    /// The fields of the object in `text`, which must be valid JSON; `None` if `text` is no object. For any other text, the
    /// result is arbitrary, but the function does not panic.
    pub fn of(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut at = json::space_end(bytes, 0);
        if bytes.get(at) != Some(&b'{') {
            return None;
        }
        at += 1;
        let mut fields: Vec<Field<'a>> = Vec::with_capacity(FIELDS);
        let mut open = Open { field: NONE, start: 0, last: NONE };
        let mut above = [const { Open { field: NONE, start: 0, last: NONE } }; LEVELS_MAX];
        let mut level = 0;
        loop {
            at = json::space_end(bytes, at);
            match *bytes.get(at)? {
                b',' => at += 1,
                b'}' => {
                    at += 1;
                    if level == 0 {
                        return Some(Self { fields, last: open.last });
                    }
                    level -= 1;
                    let field = &mut fields[open.field];
                    (field.text, field.last) = (text.get(open.start..at)?, open.last);
                    open = above[level];
                }
                _ => {
                    let (key_end, is_plain) = json::value_and_kind(bytes, at);
                    let start = json::space_end(bytes, json::space_end(bytes, key_end) + 1);
                    let key = match is_plain {
                        true => Cow::Borrowed(text.get(at + 1..key_end - 1)?),
                        false => json::string(text.get(at..key_end)?).unwrap_or_default(),
                    };
                    let place = fields.len();
                    let before = std::mem::replace(&mut open.last, place);
                    let mut field = Field { key, text: "", is_plain: false, before, last: NONE };
                    if bytes.get(start) == Some(&b'{') && level < LEVELS_MAX {
                        above[level] = std::mem::replace(&mut open, Open { field: place, start, last: NONE });
                        level += 1;
                        at = start + 1;
                    } else {
                        (at, field.is_plain) = json::value_and_kind(bytes, start);
                        field.text = text.get(start..at)?;
                    }
                    fields.push(field);
                }
            }
        }
    }

    pub fn top(&self) -> ObjectView<'_, 'a> {
        ObjectView { fields: &self.fields, last: self.last }
    }
}

impl<'o, 'a> ObjectView<'o, 'a> {
    fn back(self) -> impl Iterator<Item = &'o Field<'a>> {
        let mut next = self.last;
        std::iter::from_fn(move || {
            let field = self.fields.get(next)?;
            next = field.before;
            Some(field)
        })
    }

    fn find(self, key: &str) -> Option<&'o Field<'a>> {
        self.back().find(|field| field.key == key).filter(|field| field.text != "null")
    }

    /// The JSON text of a field; `None` if it is missing or null.
    pub fn get(self, key: &str) -> Option<&'a str> {
        Some(self.find(key)?.text)
    }

    /// The field's value, if it is a string.
    pub fn string(self, key: &str) -> Option<Cow<'a, str>> {
        self.find(key)?.string()
    }

    /// The field's value, if it is an object.
    pub fn object(self, key: &str) -> Option<Self> {
        self.as_object(self.find(key)?)
    }

    fn as_object(self, field: &'o Field<'a>) -> Option<Self> {
        field.text.starts_with('{').then_some(Self { fields: self.fields, last: field.last })
    }

    /// All fields, the last one first, so the first of equal keys counts.
    pub fn backwards(self) -> impl Iterator<Item = Value<'o, 'a>> {
        self.back().map(move |field| Value { field, of: self })
    }

    /// The fields that are not null, each key once, in served order.
    pub fn fields(self) -> Vec<(&'o str, &'a str)> {
        let mut found: Vec<(&'o str, &'a str)> = Vec::new();
        for field in self.back() {
            if !found.iter().any(|(later, _)| *later == field.key) {
                found.push((&field.key, field.text));
            }
        }
        found.retain(|(_, text)| *text != "null");
        found.reverse();
        found
    }
}

/// One field, and its object.
#[derive(Debug, Clone, Copy)]
pub struct Value<'o, 'a> {
    field: &'o Field<'a>,
    of: ObjectView<'o, 'a>,
}

impl<'o, 'a> Value<'o, 'a> {
    pub fn key(self) -> &'o str {
        &self.field.key
    }

    /// The JSON text.
    pub fn text(self) -> &'a str {
        self.field.text
    }

    /// The value of a string.
    pub fn string(self) -> Option<Cow<'a, str>> {
        self.field.string()
    }

    /// The fields of an object.
    pub fn object(self) -> Option<ObjectView<'o, 'a>> {
        self.of.as_object(self.field)
    }
}

impl<'a> Field<'a> {
    fn string(&self) -> Option<Cow<'a, str>> {
        match self.is_plain {
            true => self.text.get(1..self.text.len() - 1).map(Cow::Borrowed),
            false => json::string(self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Object;
    use super::*;

    /// All fields in an outline of an object, and of the objects in it.
    fn all_fields(inside: ObjectView<'_, '_>, depth: usize) -> Vec<String> {
        let mut found = Vec::new();
        for (key, text) in inside.fields() {
            found.push(format!("{depth} {key} {text} {:?} {:?}", inside.get(key), inside.string(key)));
            found.extend(inside.object(key).into_iter().flat_map(|inner| all_fields(inner, depth + 1)));
        }
        found
    }

    fn all_fields_by_parsing(object: &Object<'_>, depth: usize) -> Vec<String> {
        let mut found = Vec::new();
        for (key, text) in object.fields() {
            found.push(format!("{depth} {key} {text} {:?} {:?}", object.get(key), object.string(key)));
            let inner = if text.starts_with('{') { Object::parse(text) } else { None };
            found.extend(inner.into_iter().flat_map(|inner| all_fields_by_parsing(&inner, depth + 1)));
        }
        found
    }

    #[test]
    fn an_outline_equals_the_parse_of_each_object() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            r#"{"a" : -1.5e+3 , "b":[1,{"x":"}]"},[]],"c":{"d":{"e":"\"{"}},"f":true,"a":null,"\u0061":"last"}"#,
            r#"{"a":{"b":1,"b":{"c":"x","c":null},"d":"\u00e9"},"a":{"e":{}},"f":{"g":null},"g":"h"}"#,
            "{\n\t\"a\": \"b\\\\\",\r\n\"\": false , \"o\" : { \"p\" : { } } }",
            r#"{"a":{"a":{"a":{"a":{"a":{"a":{"a":"down"}}}}}}}"#,
        ] {
            let outline = Outline::of(text).unwrap();
            assert_eq!(all_fields(outline.top(), 0), all_fields_by_parsing(&Object::parse(text).unwrap(), 0), "{text}");
        }
        for text in [r#"[{"a":1}]"#, r#""{""#, "17", "", "{", r#"{"a":{"b":1}"#] {
            assert!(Outline::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deeper_objects_are_skipped() {
        let text = format!(r#"{{"deep":{}1{},"id":"x"}}"#, r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        let outline = Outline::of(&text).unwrap();
        assert_eq!(outline.top().string("id").unwrap(), "x");
        assert!(outline.fields.len() < 2 * LEVELS_MAX);
    }

    proptest::proptest! {
        #[test]
        fn an_outline_of_invalid_json_never_panics(text in "[{}\\[\\]:,\"\\\\ a1\u{e9}]{0,40}") {
            if let Some(outline) = Outline::of(&text) {
                all_fields(outline.top(), 0);
            }
        }
    }
}
