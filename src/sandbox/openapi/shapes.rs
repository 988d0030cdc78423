//! The building blocks of schemas.

use serde_json::{Value, json};

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn int() -> Value {
    json!({"type": "integer"})
}

pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub(super) fn of(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// An object with these fields, some of them required.
pub(super) fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The same, without additional fields.
pub(super) fn closed(required: &[&str], properties: Value) -> Value {
    let mut schema = object(required, properties);
    schema["additionalProperties"] = json!(false);
    schema
}
