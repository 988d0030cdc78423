//! The shapes of what is answered, one a resource of the document.

use serde_json::{Map, Value, json};

use crate::sandbox::choices::{Choices, ErrorShape, HasMore};

fn text() -> Value {
    json!({"type": "string"})
}

fn whole() -> Value {
    json!({"type": "integer"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn of(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn map_of(name: &str) -> Value {
    json!({"type": "object", "additionalProperties": of(name)})
}

/// An object with these fields, some of them always there.
fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The same, with no field beside.
fn closed(required: &[&str], properties: Value) -> Value {
    let mut schema = object(required, properties);
    schema["additionalProperties"] = json!(false);
    schema
}

pub(super) fn all(choices: &Choices) -> Map<String, Value> {
    let mut all = Map::new();
    for part in [people(), computers(), groups_and_invites(), histories(choices), own(choices)] {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    all
}

fn people() -> Value {
    let role = json!({"type": "string", "enum": ["admin", "admin-read-only", "user"]});
    let access = json!({"type": "string", "enum": ["enabled", "disabled"]});
    let anything = json!({"type": "object"});
    let provider = closed(&["provider"], json!({"provider": text(), "email": text(), "avatarURL": text()}));
    let token = closed(
        &["title"],
        json!({"title": text(), "scopes": list(text()), "lastUsed": whole(), "lastUsedIPAddress": text(), "expiresAt": whole()}),
    );
    json!({
        "TeamIDs": list(text()),
        "TeamInfo": closed(&["id"], json!({
            "id": text(), "name": text(), "avatarURL": text(), "createdAt": anything, "billing": anything,
            "deleteSchedule": anything, "deviceConfigs": list(anything.clone()), "deviceInvites": list(of("TeamDeviceInstallerInfo")),
            "devices": map_of("TeamDeviceInfo"), "groups": map_of("TeamGroup"), "planFeatures": object(&[],
                json!({"deviceEventsMaxRetrievalDuration": whole()})), "saml": anything, "security": anything,
            "userDeviceMigrate": list(anything.clone()), "userInvites": list(of("TeamUserInvite")), "users": map_of("TeamUserInfo"),
        })),
        "TeamUserInfo": closed(&["id", "email", "role", "remoteAccess"], json!({
            "id": text(), "email": text(), "firstName": text(), "lastName": text(), "avatarURL": text(), "role": role,
            "remoteAccess": access, "totpEnabled": flag(), "authProviders": list(text()),
            "annotations": list(of("TeamAnnotation")), "joinedOn": anything, "lastUsedAt": whole(),
            "scimUserInfo": anything, "userDeviceMigrate": anything,
        })),
        "APIUserInfo": closed(&["id", "email"], json!({
            "id": text(), "email": text(), "firstName": text(), "lastName": text(), "avatarURL": text(),
            "scimUserInfo": anything, "userDeviceMigrate": anything,
        })),
        "ApiUserAuthInfo": closed(&["totp", "authProviders", "tokenLog"], json!({
            "totp": closed(&["enabled"], json!({"enabled": flag()})), "authProviders": list(provider),
            "tokenLog": list(token),
        })),
        "Users": closed(&["users"], json!({"users": list(of("TeamUserInfo"))})),
        "SsoUsers": list(of("APIUserInfo")),
    })
}

fn computers() -> Value {
    let anything = json!({"type": "object"});
    let errors =
        |id: &str| list(closed(&[id, "code", "detail"], json!({id: text(), "code": text(), "detail": text()})));
    let url = json!({"type": "string", "format": "uri"});
    json!({
        "TeamDeviceInfo": closed(&["id"], json!({
            "id": text(), "name": text(), "lastOnlineAt": whole(), "users": list(text()), "groups": list(text()),
            "annotations": list(of("TeamAnnotation")), "clientInfo": anything, "deviceConfigID": anything,
        })),
        "Devices": closed(&["devices"], json!({"devices": list(of("TeamDeviceInfo"))})),
        "IdAndName": closed(&["id"], json!({"id": text(), "name": text()})),
        "TeamDeviceURLs": closed(&["connect", "askScreenShare", "dashboard"],
            json!({"connect": url, "askScreenShare": url, "dashboard": url})),
        "TeamAnnotation": closed(&["key"], json!({
            "key": {"type": "string", "minLength": 1, "maxLength": 64},
            "value": {"type": ["string", "null"], "maxLength": 2048},
        })),
        "Annotations": closed(&["annotations"], json!({"annotations": list(of("TeamAnnotation"))})),
        "DeviceBulk": closed(&[], json!({"devices": list(text()), "users": list(text()), "errors": errors("deviceID")})),
        "GroupBulk": closed(&[], json!({"devices": list(text()), "users": list(text()), "errors": errors("groupID")})),
    })
}

fn groups_and_invites() -> Value {
    let group = json!({
        "name": text(), "users": list(text()), "devices": list(text()),
        "annotations": list(of("TeamAnnotation")), "scimManaged": flag(),
    });
    let mut whole_group = group.clone();
    whole_group["id"] = text();
    json!({
        "TeamGroup": closed(&[], group),
        "TeamGroupInfo": closed(&["id"], whole_group),
        "TeamDeviceInstallerInfo": closed(&["id", "secret", "connectDownloads"], json!({
            "id": text(), "name": text(), "secret": text(), "users": list(text()), "groups": list(text()),
            "connectDownloads": closed(&[], json!({"winexe": text(), "winmsi": text(), "macpkg": text()})),
            "requireAuthentication": flag(), "deviceConfigID": {"type": "object"}, "createdAt": whole(),
            "expiresAt": whole(),
        })),
        "TeamUserInvite": closed(&["secret", "singleUse"], json!({
            "secret": text(), "name": text(), "sentTo": text(), "singleUse": flag(), "groups": list(text()),
            "devices": list(text()), "createdAt": whole(), "expiresAt": whole(),
        })),
    })
}

fn histories(choices: &Choices) -> Value {
    let event = |required: &[&str]| object(required, json!({"id": text(), "timestamp": whole()}));
    let activity = object(
        &["header"],
        json!({
            "header": object(&["eventTimestampUnixNano"], json!({"eventTimestampUnixNano": whole()})),
        }),
    );
    let required: &[&str] = if choices.has_more == HasMore::Missing { &[] } else { &["hasMoreEvents"] };
    let page = |name: &str, items: Value| {
        let names: Vec<&str> = required.iter().copied().chain([name]).collect();
        closed(&names, json!({name: list(items), "hasMoreEvents": flag(), "nextOffset": whole()}))
    };
    json!({
        "ActivityPage": page("events", activity),
        "ConnectionPage": page("deviceEvents", event(&["id", "timestamp", "deviceID"])),
        "DeviceHistoryPage": closed(&["events"], json!({"events": list(event(&["id", "timestamp"]))})),
        "BillingEvents": closed(&["events"], json!({"events": {
            "type": "array", "maxItems": 10, "items": closed(&["id", "teamid", "timestamp", "event"], json!({
                "id": text(), "teamid": text(), "timestamp": whole(),
                "event": {"type": "object", "minProperties": 1, "maxProperties": 1},
            })),
        }})),
    })
}

/// The sandbox's own, and errors.
fn own(choices: &Choices) -> Value {
    let error = match choices.error_shape {
        ErrorShape::Detail => closed(&["code", "detail"], json!({"code": text(), "detail": text()})),
        ErrorShape::Message => closed(&["code", "message"], json!({"code": text(), "message": text()})),
        ErrorShape::Nested => closed(
            &["error"],
            json!({
                "error": closed(&["code", "message"], json!({"code": text(), "message": text()})),
            }),
        ),
        ErrorShape::Code => closed(&["code"], json!({"code": text()})),
        ErrorShape::Problem => object(&["code"], json!({"code": text()})),
    };
    json!({
        "Error": error,
        "Connection": closed(&["connectionID", "userID", "deviceID"],
            json!({"connectionID": text(), "userID": text(), "deviceID": text()})),
        "Mail": closed(&["mail"], json!({"mail": list(closed(&["to", "kind", "secret", "sentAt"], json!({
            "to": text(), "kind": text(), "secret": text(), "sentAt": whole(), "expiresAt": whole(),
        })))})),
        "Plan": closed(&["licensedUsers"], json!({
            "licensedUsers": whole(), "installers": whole(), "groups": whole(), "annotations": whole(),
            "enterprise": flag(), "sso": flag(), "ssoOwner": text(),
        })),
        "Clock": closed(&["now", "unixNano", "speed"], json!({"now": text(), "unixNano": whole(), "speed": whole()})),
        "Choices": json!({"type": "object", "example": choices}),
        "Faults": closed(&["rules"], json!({"rules": list(json!({"type": "object"}))})),
        "Token": closed(&["token"], json!({"token": text()})),
        "Saved": json!({"type": "object"}),
        "Description": json!({"type": "object"}),
    })
}
