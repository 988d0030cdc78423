//! "Resources and their fields": a resource with a value in every field has exactly the rows of its table, with their
//! types.

use super::*;

/// The types of the tables, and the rows' additional conditions.
fn is(kind: &str, value: &Value) -> bool {
    let all = |is_right: fn(&Value) -> bool| value.as_array().is_some_and(|items| items.iter().all(is_right));
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "ids" => all(Value::is_string),
        "objects" => all(Value::is_object),
        words => words.split('|').any(|word| value == word),
    }
}

/// `resource.field` for each row. The resource has exactly these fields.
fn fields(seen: &Value, table: &[(&str, &str)]) {
    for (name, kind) in table {
        row(name);
        let field = name.rsplit('.').next().unwrap();
        assert!(seen.get(field).is_some_and(|value| is(kind, value)), "{name} is no {kind}: {seen}");
    }
    let mut rows: Vec<&str> = table.iter().map(|(name, _)| name.rsplit('.').next().unwrap()).collect();
    rows.sort_unstable();
    assert_eq!(names(seen), rows, "fields that are no row: {seen}");
}

/// A user with a value in every field.
async fn somebody(scene: &Scene) -> String {
    let account = json!({"email": "full@x.example", "firstName": "Full", "lastName": "Fields", "scim": true,
        "avatarURL": "https://pictures.example/full"});
    let id = id_of(&scene.own("POST", "/sso", account).await.with(201));
    scene.send("POST", &format!("/users/{id}"), NONE).await.with(200);
    scene.send("POST", &format!("/user/{id}/annotations"), note()).await.with(201);
    scene.own("PUT", &format!("/user/{id}/migration"), json!({"devices": ["old-1"]})).await.with(200);
    let device = &scene.devices[0];
    let members = json!({"users": [id], "groups": [scene.group]});
    scene.send("PUT", &format!("/device/{device}/members"), members).await.with(201);
    scene.own("POST", &format!("/device/{device}/connect"), json!({"userID": id})).await.with(201);
    id
}

fn note() -> Value {
    json!({"annotations": [{"key": "owner", "value": "me"}]})
}

#[tokio::test]
async fn the_fields_of_the_team() {
    let scene = Scene::new().await;
    somebody(&scene).await;
    scene.own("PUT", "/deletion", json!({"inSeconds": 60})).await.with(200);
    scene.own("POST", "/config", json!({"name": "kiosk", "devices": [scene.devices[0]]})).await.with(201);
    let team = scene.get("").await;
    fields(
        &team,
        &[
            ("Team.id", "string"),
            ("Team.name", "string"),
            ("Team.avatarURL", "string"),
            ("Team.createdAt", "object"),
            ("Team.billing", "object"),
            ("Team.deleteSchedule", "object"),
            ("Team.deviceConfigs", "objects"),
            ("Team.deviceInvites", "objects"),
            ("Team.devices", "object"),
            ("Team.groups", "object"),
            ("Team.planFeatures", "object"),
            ("Team.saml", "object"),
            ("Team.security", "object"),
            ("Team.userDeviceMigrate", "objects"),
            ("Team.userInvites", "objects"),
            ("Team.users", "object"),
        ],
    );
    let millis = team["createdAt"]["unixMilli"].as_i64().unwrap();
    assert!((1_000_000_000_000..10_000_000_000_000).contains(&millis), "milliseconds");
    assert!(team["planFeatures"]["deviceEventsMaxRetrievalDuration"].as_i64().unwrap() % 86_400 == 0, "seconds");
    for (map, listed) in [("devices", "/devices"), ("users", "/users")] {
        let held = team[map].as_object().unwrap();
        let all = scene.get(listed).await[map].as_array().unwrap().clone();
        assert_eq!(held.len(), all.len(), "all of them, with information on each");
        assert!(all.iter().all(|one| held[&id_of(one)] == *one), "{map}: by id, and the same as by itself");
    }
    assert_eq!(scene.own("PATCH", "/plan", json!({"sso": false})).await.with(200)["sso"], false);
    assert_eq!(scene.get("").await.get("saml"), None, "SSO information when SSO is enabled");
}

#[tokio::test]
async fn the_fields_of_a_computer_an_annotation_and_launch_urls() {
    let scene = Scene::new().await;
    somebody(&scene).await;
    let path = format!("/device/{}", scene.devices[0]);
    scene.send("POST", &format!("{path}/annotations"), note()).await.with(201);
    scene.own("POST", &format!("{path}/online"), NONE).await.with(200);
    let seen = scene.get(&path).await;
    fields(
        &seen,
        &[
            ("Computer.id", "string"),
            ("Computer.name", "string"),
            ("Computer.lastOnlineAt", "integer"),
            ("Computer.users", "ids"),
            ("Computer.groups", "ids"),
            ("Computer.annotations", "objects"),
            ("Computer.clientInfo", "object"),
        ],
    );
    fields(&seen["annotations"][0], &[("Annotation.key", "string"), ("Annotation.value", "string")]);
    let member = scene.users[1].clone();
    let joins = json!({"users": [member]});
    scene.send("POST", &format!("/group/{}/members", scene.group), joins).await.with(201);
    let held = scene.get(&path).await["users"].clone();
    assert!(!held.as_array().unwrap().contains(&json!(member)), "access through a group is not listed here");
    scene.send("PATCH", &path, json!({"name": "Studio 7 & Co"})).await.with(200);
    let urls = scene.get(&format!("{path}/urls")).await;
    fields(
        &urls,
        &[
            ("Launch URLs.connect", "string"),
            ("Launch URLs.askScreenShare", "string"),
            ("Launch URLs.dashboard", "string"),
        ],
    );
    for link in ["connect", "askScreenShare"] {
        let link = urls[link].as_str().unwrap();
        assert!(link.contains("Studio%207%20%26%20Co"), "the current name, as links spell it: {link}");
        assert!(!link.starts_with("http"), "a custom scheme: {link}");
    }
    assert!(urls["dashboard"].as_str().unwrap().starts_with("https://"));
}

#[tokio::test]
async fn the_fields_of_a_user_an_sso_user_and_authentication_info() {
    let scene = Scene::new().await;
    let id = somebody(&scene).await;
    let user = scene.get("").await["users"][&id].clone();
    fields(
        &user,
        &[
            ("User.id", "string"),
            ("User.email", "string"),
            ("User.firstName", "string"),
            ("User.lastName", "string"),
            ("User.avatarURL", "string"),
            ("User.role", "admin|admin-read-only|user"),
            ("User.remoteAccess", "enabled|disabled"),
            ("User.totpEnabled", "boolean"),
            ("User.authProviders", "ids"),
            ("User.annotations", "objects"),
            ("User.joinedOn", "object"),
            ("User.lastUsedAt", "integer"),
            ("User.scimUserInfo", "object"),
            ("User.userDeviceMigrate", "object"),
        ],
    );
    let listed = scene.get("/saml/users").await;
    let seen = listed.as_array().unwrap().iter().find(|seen| seen["id"] == id.as_str()).unwrap();
    fields(
        seen,
        &[
            ("SSO user.id", "string"),
            ("SSO user.email", "string"),
            ("SSO user.firstName", "string"),
            ("SSO user.lastName", "string"),
            ("SSO user.avatarURL", "string"),
            ("SSO user.scimUserInfo", "object"),
            ("SSO user.userDeviceMigrate", "object"),
        ],
    );
    let admin = id_of(&scene.get("/users").await["users"][0]);
    let info = scene.get(&format!("/user/{admin}/info")).await;
    let table = [
        ("User authentication info.totp", "object"),
        ("User authentication info.authProviders", "objects"),
        ("User authentication info.tokenLog", "objects"),
    ];
    fields(&info, &table);
    row("User authentication info.totp.enabled");
    assert!(info["totp"]["enabled"].is_boolean());
    assert!(info["authProviders"][0]["provider"].is_string());
    fields(
        &info["tokenLog"][0],
        &[
            ("tokenLog.title", "string"),
            ("tokenLog.scopes", "ids"),
            ("tokenLog.lastUsed", "integer"),
            ("tokenLog.lastUsedIPAddress", "string"),
            ("tokenLog.expiresAt", "integer"),
        ],
    );
    row("No profile details are returned by this resource");
    let profile = scene.get("").await["users"][&admin].clone();
    for field in ["email", "firstName", "lastName", "id"] {
        assert!(!info.to_string().contains(profile[field].as_str().unwrap()), "{field}: {info}");
    }
}

#[tokio::test]
async fn the_fields_of_a_group_an_installer_and_an_invite() {
    let scene = Scene::new().await;
    let made = scene.send("POST", "/group", json!({"name": "editors"})).await.with(201);
    let id = id_of(&made);
    row("Access Group.id");
    assert_eq!(names(&made), ["id", "name", "scimManaged"], "fields with no value are omitted");
    let members = json!({"users": scene.users, "devices": scene.devices});
    scene.send("POST", &format!("/group/{id}/members"), members).await.with(201);
    scene.send("POST", &format!("/group/{id}/annotations"), note()).await.with(201);
    fields(
        &scene.get("").await["groups"][&id],
        &[
            ("Access Group.name", "string"),
            ("Access Group.users", "ids"),
            ("Access Group.devices", "ids"),
            ("Access Group.annotations", "objects"),
            ("Access Group.scimManaged", "boolean"),
        ],
    );
    let sent = json!({"name": "studio", "users": scene.users, "groups": [id], "expirySecs": 60});
    let installer = id_of(&scene.send("POST", "/invite/device", sent).await.with(201));
    scene.own("POST", "/config", json!({"name": "kiosk", "installers": [installer]})).await.with(201);
    let team = scene.get("").await;
    let find = |list: &str, key: &str, value: &str| {
        team[list].as_array().unwrap().iter().find(|held| held[key] == value).unwrap().clone()
    };
    let seen = find("deviceInvites", "id", &installer);
    fields(
        &seen,
        &[
            ("Computer installer.id", "string"),
            ("Computer installer.name", "string"),
            ("Computer installer.secret", "string"),
            ("Computer installer.connectDownloads", "object"),
            ("Computer installer.users", "ids"),
            ("Computer installer.groups", "ids"),
            ("Computer installer.requireAuthentication", "boolean"),
            ("Computer installer.deviceConfigID", "object"),
            ("Computer installer.createdAt", "integer"),
            ("Computer installer.expiresAt", "integer"),
        ],
    );
    let downloads = [("winexe", "string"), ("winmsi", "string"), ("macpkg", "string")];
    fields(&seen["connectDownloads"], &downloads);
    let sent = json!({"name": "hi", "sendTo": "a@x.example", "groups": [id], "devices": scene.devices});
    let secret = scene.send("POST", "/invite/user", sent).await.with(201)["secret"].as_str().unwrap().to_owned();
    let team = scene.get("").await;
    let seen = team["userInvites"].as_array().unwrap().iter().find(|held| held["secret"] == secret.as_str()).unwrap();
    fields(
        seen,
        &[
            ("User invite.secret", "string"),
            ("User invite.name", "string"),
            ("User invite.sentTo", "string"),
            ("User invite.singleUse", "boolean"),
            ("User invite.groups", "ids"),
            ("User invite.devices", "ids"),
            ("User invite.createdAt", "integer"),
            ("User invite.expiresAt", "integer"),
        ],
    );
}

#[tokio::test]
async fn the_fields_of_bulk_errors_and_of_the_three_kinds_of_records() {
    let scene = Scene::new().await;
    somebody(&scene).await;
    let sent = json!({"groups": ["none"], "users": scene.users});
    let seen = scene.send("PATCH", "/group/members", sent).await.with(200);
    let table = [("Bulk error.groupID", "string"), ("Bulk error.code", "string"), ("Bulk error.detail", "string")];
    fields(&seen["errors"][0], &table);
    row("Activity event: header, and exactly one further field names the event type");
    let page = scene.get("/history?limit=1001").await;
    for event in page["events"].as_array().unwrap() {
        assert!(event["header"]["eventTimestampUnixNano"].as_i64().is_some_and(|nanos| nanos > 10_i64.pow(18)));
        assert!(
            names(event).len() == 2 && names(event).iter().all(|name| *name == "header" || name.ends_with("Event"))
        );
    }
    let newest = page["events"][0]["header"]["tokenInfo"].clone();
    assert!(newest["email"].is_string() && newest["userID"].is_string(), "who made the change");
    row("Billing ledger entry: id, teamid, timestamp (seconds), event (an object with one field naming the type)");
    let ledger = scene.get("/billing/events").await;
    for entry in ledger["events"].as_array().unwrap() {
        assert_eq!(names(entry), ["event", "id", "teamid", "timestamp"]);
        assert_eq!((names(&entry["event"]).len(), &entry["teamid"]), (1, &json!(scene.client.team().as_str())));
        assert!(entry["timestamp"].as_i64().unwrap() < 10_i64.pow(10), "seconds");
    }
}
