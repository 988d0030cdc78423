//! The fields of request bodies. The table of routes declares them, this file checks them, and the OpenAPI
//! description shows them.

use serde_json::{Map, Value, json};

use crate::sandbox::answer::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The smallest and largest number of characters.
    Text(usize, usize),
    OneOf(&'static [&'static str]),
    Ids,
    Flag,
    /// A whole number from zero to this one.
    Count(i64),
    /// A list of objects with `key` and `value`.
    Annotations,
    /// A list of annotation keys.
    Keys,
}

pub const KEY_CHARS_MAX: usize = 64;
pub const VALUE_CHARS_MAX: usize = 2_048;

impl Field {
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, required: false }
    }

    pub const fn required(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, required: true }
    }

    /// The field's JSON schema. An optional field may also be null, which means the same as a missing field.
    pub fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text(least, most) => json!({"type": "string", "minLength": least, "maxLength": most}),
            Kind::OneOf(names) => json!({"type": "string", "enum": names}),
            Kind::Ids => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Count(most) => json!({"type": "integer", "minimum": 0, "maximum": most}),
            Kind::Annotations => json!({"type": "array", "items": {"$ref": "#/components/schemas/TeamAnnotation"}}),
            Kind::Keys => json!({"type": "array", "items": {"type": "string"}}),
        };
        if !self.required {
            let named = schema["type"].take();
            schema["type"] = json!([named, "null"]);
            if let Some(names) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                names.push(Value::Null);
            }
        }
        schema
    }

    fn check(&self, value: &Value) -> Result<(), Refusal> {
        let name = self.name;
        let strings = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        let (is_right, takes) = match self.kind {
            Kind::Text(least, most) => {
                let text = value.as_str().ok_or_else(|| Refusal::invalid(format!("{name} takes a string")))?;
                return check_length(name, text, least, most);
            }
            Kind::OneOf(names) => {
                let is_named = value.as_str().is_some_and(|value| names.contains(&value));
                return if is_named {
                    Ok(())
                } else {
                    Err(Refusal::invalid(format!("{name} takes one of {}", names.join(", "))))
                };
            }
            Kind::Ids | Kind::Keys => (strings(value), "a list of strings"),
            Kind::Flag => (value.is_boolean(), "true or false"),
            Kind::Count(most) => {
                let is_right = value.as_i64().is_some_and(|count| (0..=most).contains(&count));
                let wrong = || Refusal::invalid(format!("{name} takes a whole number from 0 to {most}"));
                return if is_right { Ok(()) } else { Err(wrong()) };
            }
            Kind::Annotations => return check_annotations(name, value),
        };
        if is_right { Ok(()) } else { Err(Refusal::invalid(format!("{name} takes {takes}"))) }
    }
}

/// Counts characters, like the document's limits.
fn check_length(name: &str, text: &str, least: usize, most: usize) -> Result<(), Refusal> {
    let length = text.chars().count();
    if (least..=most).contains(&length) {
        return Ok(());
    }
    Err(Refusal::invalid(format!("{name} has {length} characters: {least} to {most} are allowed")))
}

fn check_annotations(name: &str, value: &Value) -> Result<(), Refusal> {
    let wrong = || Refusal::invalid(format!("{name} takes a list of objects with key and value"));
    for item in value.as_array().ok_or_else(wrong)? {
        let item = item.as_object().ok_or_else(wrong)?;
        let key = item.get("key").and_then(Value::as_str).ok_or_else(wrong)?;
        check_length("an annotation's key", key, 1, KEY_CHARS_MAX)?;
        match item.get("value") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => check_length("an annotation's value", text, 0, VALUE_CHARS_MAX)?,
            Some(_) => return Err(wrong()),
        }
    }
    Ok(())
}

/// Checks that a body has the shape of its row in the table of routes.
pub fn check(fields: &[Field], body: &Map<String, Value>, refuse_unknown: bool) -> Result<(), Refusal> {
    for field in fields {
        match body.get(field.name) {
            None | Some(Value::Null) if field.required => {
                return Err(Refusal::invalid(format!("{} is missing", field.name)));
            }
            None | Some(Value::Null) => {}
            Some(value) => field.check(value)?,
        }
    }
    if let Some(name) = body.keys().find(|name| refuse_unknown && !fields.iter().any(|field| field.name == *name)) {
        return Err(Refusal::invalid(format!("{name:?} is not a field of this request")));
    }
    Ok(())
}
