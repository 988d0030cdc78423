//! The schemas of the sandbox's own answers: actions of people, clock, switches, faults, and the whole state.

use serde_json::{Map, Value, json};

use crate::sandbox::choices::{ErrorShape, NULLABLE, NUMBERS};
use crate::sandbox::fault_rules::{FAILURES, LATENCY_MS_MAX};

use super::shapes::{closed, flag, int, list, object, of, text};

/// A schema that also allows null.
fn or_null(mut schema: Value) -> Value {
    let named = schema["type"].take();
    schema["type"] = json!([named, "null"]);
    schema
}

fn at_least(least: u64) -> Value {
    json!({"type": "integer", "minimum": least})
}

fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn one_of(names: &[&str]) -> Value {
    json!({"type": "string", "enum": names})
}

/// An object in which all these fields are required.
fn full(properties: Value) -> Value {
    let names: Vec<String> = properties.as_object().map(|held| held.keys().cloned().collect()).unwrap_or_default();
    closed(&names.iter().map(String::as_str).collect::<Vec<_>>(), properties)
}

/// Every switch by name, with its valid values.
fn switches() -> Value {
    let mut all = Map::new();
    for (name, least, most) in NUMBERS {
        let number = json!({"type": "integer", "minimum": least, "maximum": most});
        all.insert(name.to_owned(), if NULLABLE.contains(&name) { or_null(number) } else { number });
    }
    for name in [
        "default_desc",
        "refuse_unknown_fields",
        "require_content_type",
        "members_read",
        "list_expired",
        "enforce_plan_span",
        "empty_lists",
    ] {
        all.insert(name.to_owned(), flag());
    }
    for (name, values) in [
        ("admin_needs_access", &["never", "when_changed", "always"][..]),
        ("has_more", &["honest", "always_true", "always_false", "missing"]),
        ("next_offset", &["honest", "missing", "zero", "stuck", "backwards"]),
        ("order", &["by_time", "neighbours_swapped"]),
        ("error_shape", &["detail", "message", "nested", "code", "errors", "problem"]),
        ("created_body", &["empty", "text", "object"]),
    ] {
        all.insert(name.to_owned(), one_of(values));
    }
    let rounding = one_of(&["exact", "down", "up", "nearest"]);
    let bounds = full(json!({"rounding": rounding, "start_open": flag(), "stop_open": flag()}));
    all.insert("bounds".to_owned(), bounds);
    Value::Object(all)
}

pub(super) fn error(shape: ErrorShape) -> Value {
    match shape {
        ErrorShape::Detail => full(json!({"code": text(), "detail": text()})),
        ErrorShape::Message => full(json!({"code": text(), "message": text()})),
        ErrorShape::Nested => full(json!({"error": full(json!({"code": text(), "message": text()}))})),
        ErrorShape::Code => full(json!({"code": text()})),
        ErrorShape::Errors => {
            full(json!({"errors": list(full(json!({"code": text(), "detail": text(), "status": int()})))}))
        }
        ErrorShape::Problem => object(&["code"], json!({"code": text()})),
    }
}

/// The answers of the sandbox's own requests.
pub(super) fn own() -> Value {
    json!({
        "Connection": full(json!({"connectionID": text(), "userID": text(), "deviceID": text()})),
        "Mail": full(json!({"mail": list(closed(&["to", "kind", "secret", "sentAt"], json!({
            "to": text(), "kind": one_of(&["invite", "totp-removal"]), "secret": text(), "sentAt": int(),
            "expiresAt": int(),
        })))})),
        "Plan": closed(&["licensedUsers", "installers", "groups", "annotations", "enterprise", "sso"], json!({
            "licensedUsers": int(), "installers": int(), "groups": int(), "annotations": int(),
            "enterprise": flag(), "sso": flag(), "ssoOwner": text(),
        })),
        "Clock": full(json!({"now": moment(), "unixNano": int(), "speed": at_least(0)})),
        "Choices": full(switches()),
        "ChoicesChange": closed(&[], switches()),
        "FaultRule": rule(),
        "Faults": full(json!({"rules": list(of("FaultRule"))})),
        "Token": full(json!({"token": text()})),
        "Description": object(&["openapi", "info", "paths", "components"], json!({"openapi": text()})),
    })
}

fn rule() -> Value {
    let status = json!({"type": "integer", "minimum": FAILURES.start(), "maximum": FAILURES.end()});
    let failure = closed(&["status"], json!({"status": status, "retry_after": or_null(text())}));
    let latency = json!({"type": "integer", "minimum": 0, "maximum": LATENCY_MS_MAX});
    let fault = json!({"oneOf": [
        one_of(&["reset", "truncate", "cut_short", "html"]),
        full(json!({"latency_ms": latency})),
        full(json!({"status": failure})),
    ]});
    closed(
        &["fault"],
        json!({
            "path": or_null(text()), "method": or_null(text()), "every": at_least(1), "times": or_null(at_least(0)),
            "fault": fault,
        }),
    )
}

/// The whole sandbox as one JSON file.
pub(super) fn saved() -> Value {
    let made_of = full(json!({
        "seed": at_least(0), "teams": at_least(0), "days": at_least(0), "sessions_per_day": at_least(0),
        "people_per_team": at_least(0), "computers_per_team": at_least(0), "end": moment(), "days_ahead": at_least(0),
        "late_per_million": at_least(0), "late_up_to_ms": at_least(0), "dense_every_days": at_least(0),
        "plan_span_seconds": or_null(at_least(0)), "odd_events": flag(),
    }));
    let rule = full(json!({"rule": of("FaultRule"), "fitting": at_least(0), "befallen": at_least(0)}));
    let event = closed(
        &["at", "visible_from"],
        json!({
            "raw": text(), "raw_hex": text(), "at": moment(), "device": text(), "visible_from": moment(),
            "visible_until": moment(),
        }),
    );
    let withdrawn = json!({"type": "array", "minItems": 3, "maxItems": 3});
    let changes = full(json!({
        "events": list(of("SavedEvent")), "removed": {"type": "object", "additionalProperties": moment()},
        "withdrawn": list(withdrawn),
    }));
    let issued = full(json!({"team": text(), "user": text(), "read_only": flag()}));
    let counted = json!({"type": "object", "additionalProperties": at_least(0)});
    let minute = full(json!({"number": int(), "requests": counted}));
    json!({
        "Saved": full(json!({
            "format": at_least(1), "saved_by": text(), "made_of": made_of, "choices": of("Choices"), "faults": list(rule),
            "clock": full(json!({"now": moment(), "speed": at_least(0), "is_real": flag()})),
            "tokens": {"type": "object", "additionalProperties": issued}, "minute": minute, "teams": list(of("SavedTeam")),
        })),
        "SavedTeam": full(json!({
            "state": of("SavedState"), "activity": of("SavedChanges"), "connections": of("SavedChanges"),
            "billing": list(of("SavedEvent")),
        })),
        "SavedEvent": event,
        "SavedChanges": changes,
        "SavedState": state(),
        "SavedUser": user(),
    })
}

fn user() -> Value {
    full(json!({
        "id": text(), "email": text(), "first_name": text(), "last_name": text(), "avatar_url": or_null(text()),
        "role": one_of(&["admin", "admin-read-only", "user"]), "remote_access": flag(), "totp": flag(),
        "providers": list(text()), "annotations": list(of("TeamAnnotation")), "joined_on": int(),
        "last_used_at": or_null(int()), "scim": flag(), "token_log": list(json!({"type": "object"})),
    }))
}

/// A team's state.
fn state() -> Value {
    let ids = || list(text());
    let plan = full(json!({
        "licensed_users": at_least(0), "installers": at_least(0), "groups": at_least(0), "annotations": at_least(0),
        "enterprise": flag(), "sso": flag(), "sso_owner": or_null(text()),
    }));
    let device = full(json!({
        "id": text(), "name": text(), "last_online_at": or_null(int()), "users": ids(), "groups": ids(),
        "annotations": list(of("TeamAnnotation")), "client_info": {"type": ["object", "null"]}, "config": or_null(text()),
    }));
    let group = full(json!({
        "id": text(), "name": text(), "users": ids(), "scim": flag(), "annotations": list(of("TeamAnnotation")),
        "config": or_null(text()),
    }));
    let installer = full(json!({
        "id": text(), "name": text(), "secret": text(), "users": ids(), "groups": ids(),
        "requires_authentication": flag(), "single_use": flag(), "created_at": int(),
        "expires_at": or_null(int()), "config": or_null(text()),
    }));
    let invite = full(json!({
        "secret": text(), "name": text(), "sent_to": or_null(text()), "single_use": flag(), "groups": ids(),
        "devices": ids(), "created_at": int(), "expires_at": or_null(int()),
    }));
    let mail = full(json!({
        "to": text(), "kind": text(), "secret": text(), "sent_at": int(), "expires_at": or_null(int()),
        "is_used": flag(),
    }));
    let session = full(json!({
        "connection_id": text(), "device": text(), "user": text(), "host": text(), "details": {"type": "object"},
    }));
    let season = json!({"type": ["array", "null"], "minItems": 2, "maxItems": 2});
    full(json!({
        "id": text(), "name": text(), "created_at": int(), "seed": at_least(0), "plan": plan,
        "users": list(of("SavedUser")), "devices": list(device), "groups": list(group), "installers": list(installer),
        "invites": list(invite), "configs": list(full(json!({"id": text(), "name": text()}))),
        "sso_outsiders": list(of("SavedUser")), "departed": list(of("SavedUser")),
        "delete_schedule": or_null(full(json!({"scheduled_at": int(), "delete_at": int()}))),
        "migrations": list(full(json!({"user": text(), "devices": ids(), "started_at": int()}))),
        "mail": list(mail), "sessions": list(session), "seasons": list(season), "drawn": at_least(0),
    }))
}
