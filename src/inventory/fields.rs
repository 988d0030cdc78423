//! Reads fields of an object by an allow-list; counts other fields without keeping them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use thiserror::Error;

use crate::api::json::{self, Object};
use crate::api::roster::is_usable_id;
use crate::model::InventoryValue;

use super::time;

/// A longer text is cut: the longest documented text is an annotation's value of 2,048 characters.
const TEXT_CHARS_MAX: usize = 4_096;
/// Maximum number of entries in a list or object of one thing.
const ENTRIES_MAX: usize = 1_000;
/// Maximum number of separately counted fields; further ones are counted together.
const UNKNOWN_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 64;

/// The answer differs from the documented interface. The text contains none of its data.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the response differs from the documented interface: {0}")]
pub struct Malformed(pub(super) String);

/// Undocumented fields, or fields of another type than documented: their number by path and type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown(BTreeMap<(String, &'static str), u64>);

impl Unknown {
    /// Path, type of the value, and number.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        self.0.iter().map(|((path, kind), count)| (path.as_str(), *kind, *count))
    }

    #[must_use]
    pub(super) fn with(mut self, other: &Unknown) -> Self {
        for (key, count) in &other.0 {
            *self.0.entry(key.clone()).or_default() += count;
        }
        self
    }

    pub(super) fn count(&mut self, place: &str, name: &str, text: &str) {
        let path = if is_plain(name) { format!("{place}.{name}") } else { format!("{place}.(odd name)") };
        let key = (path, kind(text));
        let is_full = self.0.len() >= UNKNOWN_MAX && !self.0.contains_key(&key);
        let key = if is_full { ("(more)".to_owned(), "any") } else { key };
        *self.0.entry(key).or_default() += 1;
    }
}

/// Whether a name looks like a field name. Other names can be untrusted keys, or secrets.
pub fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && name.len() <= NAME_BYTES_MAX
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn kind(text: &str) -> &'static str {
    match json::kind(text) {
        "a string" => "string",
        "an object" => "object",
        "a list" => "list",
        "a boolean" => "boolean",
        "null" => "null",
        _ => "number",
    }
}

/// An object that is being read.
pub struct Fields<'a, 'u> {
    object: Object<'a>,
    place: &'static str,
    unknown: &'u mut Unknown,
}

impl<'a, 'u> Fields<'a, 'u> {
    /// Counts the object's fields that are not `documented`.
    pub fn new(object: Object<'a>, place: &'static str, documented: &[&str], unknown: &'u mut Unknown) -> Self {
        for (name, text) in object.fields().filter(|(name, _)| !documented.contains(name)) {
            unknown.count(place, name, text);
        }
        Self { object, place, unknown }
    }

    /// The object under `name`. Its fields are undocumented, so unread ones are not counted.
    pub fn undocumented(&mut self, name: &str, place: &'static str) -> Fields<'a, '_> {
        let object = self.object.object(name);
        if object.is_none() {
            self.read(name, |_| None);
        }
        Fields { object: object.unwrap_or_default(), place, unknown: self.unknown }
    }

    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some()
    }

    pub fn text_of(&self, name: &str) -> Option<&'a str> {
        self.object.get(name)
    }

    /// A value that `read` refuses has another type than documented.
    fn read(&mut self, name: &str, read: impl FnOnce(&'a str) -> Option<InventoryValue>) -> InventoryValue {
        let Some(text) = self.object.get(name) else { return InventoryValue::Unknown };
        read(text).unwrap_or_else(|| {
            self.unknown.count(self.place, name, text);
            InventoryValue::Unknown
        })
    }

    pub fn text(&mut self, name: &str) -> InventoryValue {
        self.read(name, |text| Some(InventoryValue::Text(cut(&json::string(text)?))))
    }

    pub fn flag(&mut self, name: &str) -> InventoryValue {
        self.read(name, |text| text.parse().ok().map(InventoryValue::Flag))
    }

    pub fn time(&mut self, name: &str) -> InventoryValue {
        self.read(name, |text| Some(time::read(text)).filter(|time| *time != InventoryValue::Unknown))
    }

    /// True if the field exists, else false.
    pub fn presence(&self, name: &str) -> InventoryValue {
        InventoryValue::Flag(self.has(name))
    }

    /// A list of strings as sorted JSON; for a list of objects, their strings under `inner`.
    pub fn list(&mut self, name: &str, inner: Option<&str>) -> InventoryValue {
        self.read(name, |text| {
            let mut found = BTreeSet::new();
            for item in list(text)?.into_iter().take(ENTRIES_MAX) {
                let within = || Object::parse(item).zip(inner).and_then(|(object, inner)| object.string(inner));
                found.extend(json::string(item).or_else(within).map(|text| cut(&text)));
            }
            Some(InventoryValue::Text(Value::from_iter(found).to_string()))
        })
    }

    /// The ids in a list; empty if the field is missing.
    ///
    /// # Errors
    /// When the field is no list, or contains something else than ids.
    pub fn ids(&self, name: &str) -> Result<BTreeSet<String>, Malformed> {
        let Some(text) = self.object.get(name) else { return Ok(BTreeSet::new()) };
        let wrong = || Malformed(format!("`{}.{name}` is not a list of ids", self.place));
        let ids = list(text).ok_or_else(wrong)?.into_iter().map(|item| Some(json::string(item)?.into_owned()));
        let ids: Option<BTreeSet<String>> = ids.map(|id| id.filter(|id| is_usable_id(id))).collect();
        ids.ok_or_else(wrong)
    }

    /// Annotations by key, without `but`.
    pub fn annotations(&mut self, but: Option<&str>) -> InventoryValue {
        self.read("annotations", |text| {
            let pairs = pairs(text)?.into_iter().filter(|(key, _)| Some(key.as_str()) != but);
            let object: serde_json::Map<String, Value> = pairs.map(|(key, value)| (key, Value::from(value))).collect();
            Some(if object.is_empty() {
                InventoryValue::Unknown
            } else {
                InventoryValue::Text(Value::Object(object).to_string())
            })
        })
    }

    /// The comma-separated values of one annotation, as a sorted JSON list.
    pub fn tags(&self, key: &str) -> InventoryValue {
        let value = self.object.get("annotations").and_then(pairs).and_then(|mut pairs| pairs.remove(key));
        let Some(value) = value else { return InventoryValue::Unknown };
        let tags: BTreeSet<&str> = value.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
        InventoryValue::Text(Value::from_iter(tags).to_string())
    }

    /// The numbers and booleans of an object, as a JSON object; other values are counted.
    pub fn scalars(&mut self, name: &str, place: &'static str) -> InventoryValue {
        let Some(object) = self.object.object(name) else { return self.read(name, |_| None) };
        let mut kept = serde_json::Map::new();
        for (name, text) in object.fields() {
            match serde_json::from_str(text) {
                Ok(value @ (Value::Number(_) | Value::Bool(_))) if is_plain(name) && kept.len() < ENTRIES_MAX => {
                    kept.insert(name.to_owned(), value);
                }
                _ => self.unknown.count(place, name, text),
            }
        }
        InventoryValue::Text(Value::Object(kept).to_string())
    }
}

/// The texts of a list's items; `None` if it is no list.
pub fn list(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(serde_json::value::RawValue::get).collect())
}

/// Annotations as documented: a list of objects with `key` and `value`. For equal keys, the last one counts.
fn pairs(text: &str) -> Option<BTreeMap<String, String>> {
    let mut pairs = BTreeMap::new();
    for item in list(text)?.into_iter().take(ENTRIES_MAX) {
        let object = Object::parse(item)?;
        pairs.insert(cut(&object.string("key")?), cut(&object.string("value").unwrap_or_default()));
    }
    Some(pairs)
}

pub fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
