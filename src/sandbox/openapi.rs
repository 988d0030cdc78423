//! `GET /openapi.json`: describes the interface that this sandbox serves now, from the same table as the router.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::choices::{Choices, CreatedBody, ErrorShape};
use super::routes::{Method, Op, Parameter, ParameterKind, ROUTES, Route};

mod lists;
mod own;
mod schemas;
mod shapes;

pub(super) use lists::with_empty_lists;

/// The description in OpenAPI 3.1, with the statuses and shapes that the switches select.
pub(super) fn description(choices: &Choices) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        paths.entry(route.path).or_default().insert(verb(route.method).to_owned(), operation(route, choices));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Team Remote-Access Administration REST API (sandbox)",
            "version": "v1",
            "description": "The documented service over synthetic teams. Paths under /sandbox are the sandbox's own.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas::all(choices),
        },
    })
}

fn verb(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}

fn operation(route: &Route, choices: &Choices) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}),
    );
    let parameters: Vec<Value> = in_path.chain(route.query.iter().map(|held| parameter(*held, choices))).collect();
    let mut operation = json!({
        "operationId": format!("{:?}", route.op),
        "summary": route.summary,
        "tags": [if route.is_documented() { "documented" } else { "sandbox" }],
        "parameters": parameters,
        "responses": responses(route, choices),
    });
    if route.op == Op::DeviceHistory {
        operation["deprecated"] = json!(true);
    }
    if route.op == Op::OpenApi {
        operation["security"] = json!([]);
    }
    if let Some(schema) = body(route, choices) {
        let is_whole = matches!(route.op, Op::SetFaults | Op::Load);
        let is_required = is_whole || route.body.iter().any(|field| field.required);
        operation["requestBody"] =
            json!({"required": is_required, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn body(route: &Route, choices: &Choices) -> Option<Value> {
    match route.op {
        Op::ChangeChoices => return Some(json!({"$ref": "#/components/schemas/ChoicesChange"})),
        Op::SetFaults => return Some(json!({"$ref": "#/components/schemas/Faults"})),
        Op::Load => return Some(json!({"$ref": "#/components/schemas/Saved"})),
        _ => {}
    }
    if route.body.is_empty() {
        return None;
    }
    let properties: Map<String, Value> =
        route.body.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<&str> = route.body.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if choices.refuse_unknown_fields || !route.is_documented() {
        schema["additionalProperties"] = json!(false);
    }
    Some(schema)
}

fn parameter(parameter: Parameter, choices: &Choices) -> Value {
    let schema = match parameter.kind {
        ParameterKind::Text => json!({"type": "string"}),
        ParameterKind::Flag => json!({"type": "boolean"}),
        ParameterKind::Integer => json!({"type": "integer", "format": "int64"}),
        ParameterKind::Limit(true) => json!({"type": "integer", "minimum": 1, "maximum": choices.limit_max}),
        ParameterKind::Limit(false) => json!({"type": "integer", "minimum": 1, "maximum": choices.device_limit_max}),
        ParameterKind::Offset => json!({"type": "integer", "format": "int64", "minimum": 0}),
        ParameterKind::Ids => json!({"type": "array", "items": {"type": "string"}}),
    };
    let mut described = json!({"name": parameter.name, "in": "query", "required": false, "schema": schema});
    if parameter.kind == ParameterKind::Ids {
        described["style"] = json!("form");
        described["explode"] = json!(true);
    }
    described
}

fn responses(route: &Route, choices: &Choices) -> Value {
    let mut all = Map::new();
    all.insert(route.status.to_string(), success(route, choices));
    for status in failures(route, choices) {
        let kind = match choices.error_shape {
            ErrorShape::Problem => "application/problem+json",
            _ => "application/json",
        };
        let content = json!({kind: {"schema": {"$ref": "#/components/schemas/Error"}}});
        all.insert(status.to_string(), json!({"description": "refused", "content": content}));
    }
    Value::Object(all)
}

fn success(route: &Route, choices: &Choices) -> Value {
    let content = match (route.op, route.answer, choices.created_body) {
        (Op::Truth, _, _) => json!({"application/x-ndjson": {"schema": {"type": "string"}}}),
        (_, Some(name), _) => {
            let schema = format!("#/components/schemas/{name}");
            json!({"application/json": {"schema": {"$ref": schema}}})
        }
        (_, None, CreatedBody::Object) => json!({"application/json": {"schema": {"type": "object"}}}),
        (_, None, CreatedBody::Text) => json!({"text/plain": {"schema": {"type": "string"}}}),
        (_, None, CreatedBody::Empty) => return json!({"description": "done"}),
    };
    json!({"description": "done", "content": content})
}

/// The statuses of every refusal that the operation knows.
fn failures(route: &Route, choices: &Choices) -> BTreeSet<u16> {
    // 400 is also the status for a path that cannot be read.
    let mut statuses = BTreeSet::from([400, choices.invalid_status, choices.unauthorized_status]);
    if route.op == Op::OpenApi {
        return statuses;
    }
    statuses.insert(choices.forbidden_status);
    if route.path.contains('{') {
        statuses.insert(404);
    }
    if !matches!(route.method, Method::Get) {
        statuses.extend([413, choices.rule_status]);
    }
    if body(route, choices).is_some() {
        statuses.insert(415);
    }
    if matches!(route.op, Op::AddSsoUser | Op::Join) {
        statuses.insert(409);
    }
    if choices.requests_per_minute.is_some() {
        statuses.insert(429);
    }
    statuses
}
