//! Adds empty lists to answers for `empty_lists=true`: each list that the description has and the answer omits.

use serde_json::{Map, Value, json};

use crate::sandbox::choices::Choices;

use super::schemas;

/// The field of bulk answers that the document shows only after a failure.
const ERRORS: &str = "errors";

/// `schema` is the name of the answer's schema.
pub(in crate::sandbox) fn with_empty_lists(answer: &mut Value, schema: &str, choices: &Choices) {
    let all = schemas::all(choices);
    if let Some(schema) = all.get(schema) {
        fill(answer, schema, &all);
    }
}

fn fill(value: &mut Value, schema: &Value, all: &Map<String, Value>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return all.get(name).into_iter().for_each(|schema| fill(value, schema, all));
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, &schema["items"], all)),
        Value::Object(fields) => {
            let described = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in described.into_iter().flatten() {
                match fields.get_mut(name) {
                    Some(held) => fill(held, schema, all),
                    None if schema["type"] == "array" && name != ERRORS => {
                        fields.insert(name.clone(), json!([]));
                    }
                    None => {}
                }
            }
            if let Some(schema) = schema.get("additionalProperties").filter(|schema| schema.is_object()) {
                fields.values_mut().for_each(|held| fill(held, schema, all));
            }
        }
        _ => {}
    }
}
