//! The schemas of answers, one for each resource of the document.

use serde_json::{Map, Value, json};

use crate::sandbox::choices::{Choices, HasMore};

use super::own;
use super::shapes::{closed, flag, int, list, object, of, text};

fn map_of(name: &str) -> Value {
    json!({"type": "object", "additionalProperties": of(name)})
}

pub(super) fn all(choices: &Choices) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("Error".to_owned(), own::error(choices.error_shape));
    for part in [people(), computers(), groups_and_invites(), histories(choices), own::own(), own::saved()] {
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
        json!({"title": text(), "scopes": list(text()), "lastUsed": int(), "lastUsedIPAddress": text(), "expiresAt": int()}),
    );
    json!({
        "TeamIDs": list(text()),
        "TeamInfo": closed(&["id"], json!({
            "id": text(), "name": text(), "avatarURL": text(), "createdAt": anything, "billing": anything,
            "deleteSchedule": of("DeleteSchedule"), "deviceConfigs": list(of("TeamDeviceConfig")),
            "deviceInvites": list(of("TeamDeviceInstallerInfo")),
            "devices": map_of("TeamDeviceInfo"), "groups": map_of("TeamGroup"), "planFeatures": object(&[],
                json!({"deviceEventsMaxRetrievalDuration": int()})), "saml": anything, "security": anything,
            "userDeviceMigrate": list(of("TeamUserDeviceMigrate")), "userInvites": list(of("TeamUserInvite")), "users": map_of("TeamUserInfo"),
        })),
        "TeamUserInfo": closed(&["id", "email", "role", "remoteAccess"], json!({
            "id": text(), "email": text(), "firstName": text(), "lastName": text(), "avatarURL": text(), "role": role,
            "remoteAccess": access, "totpEnabled": flag(), "authProviders": list(text()),
            "annotations": list(of("TeamAnnotation")), "joinedOn": anything, "lastUsedAt": int(),
            "scimUserInfo": anything, "userDeviceMigrate": of("TeamUserDeviceMigrate"),
        })),
        "APIUserInfo": closed(&["id", "email"], json!({
            "id": text(), "email": text(), "firstName": text(), "lastName": text(), "avatarURL": text(),
            "scimUserInfo": anything, "userDeviceMigrate": of("TeamUserDeviceMigrate"),
        })),
        "ApiUserAuthInfo": closed(&["totp", "authProviders", "tokenLog"], json!({
            "totp": closed(&["enabled"], json!({"enabled": flag()})), "authProviders": list(provider),
            "tokenLog": list(token),
        })),
        "TeamUserDeviceMigrate": closed(&[], json!({"userID": text(), "devices": list(text()), "startedAt": int()})),
        "DeleteSchedule": closed(&[], json!({"scheduledAt": int(), "deleteAt": int()})),
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
            "id": text(), "name": text(), "lastOnlineAt": int(), "users": list(text()), "groups": list(text()),
            "annotations": list(of("TeamAnnotation")), "clientInfo": anything,
        })),
        "TeamDeviceConfig": closed(&["id"], json!({
            "id": text(), "name": text(), "devices": list(text()), "groups": list(text()), "installers": list(text()),
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
            "requireAuthentication": flag(), "deviceConfigID": closed(&["id"], json!({"id": text()})), "createdAt": int(),
            "expiresAt": int(),
        })),
        "TeamUserInvite": closed(&["secret", "singleUse"], json!({
            "secret": text(), "name": text(), "sentTo": text(), "singleUse": flag(), "groups": list(text()),
            "devices": list(text()), "createdAt": int(), "expiresAt": int(),
        })),
    })
}

fn histories(choices: &Choices) -> Value {
    let event = |required: &[&str]| object(required, json!({"id": text(), "timestamp": int()}));
    let activity = object(
        &["header"],
        json!({
            "header": object(&["eventTimestampUnixNano"], json!({"eventTimestampUnixNano": int()})),
        }),
    );
    let required: &[&str] = if choices.has_more == HasMore::Missing { &[] } else { &["hasMoreEvents"] };
    let page = |name: &str, items: Value| {
        let names: Vec<&str> = required.iter().copied().chain([name]).collect();
        closed(&names, json!({name: list(items), "hasMoreEvents": flag(), "nextOffset": int()}))
    };
    json!({
        "ActivityPage": page("events", activity),
        "ConnectionPage": page("deviceEvents", event(&["id", "timestamp", "deviceID"])),
        "DeviceHistoryPage": closed(&["events"], json!({"events": list(event(&["id", "timestamp"]))})),
        "BillingEvents": closed(&["events"], json!({"events": {
            "type": "array", "maxItems": 10, "items": closed(&["id", "teamid", "timestamp", "event"], json!({
                "id": text(), "teamid": text(), "timestamp": int(),
                "event": {"type": "object", "minProperties": 1, "maxProperties": 1},
            })),
        }})),
    })
}
