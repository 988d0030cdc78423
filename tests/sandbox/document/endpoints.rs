//! "Endpoints": requests each row of each table once, and checks the row's request, status and body.

use std::collections::BTreeSet;

use super::*;

/// The document's rows in its spelling.
const ROWS: [&str; 43] = [
    "GET /v1/user/teams",
    "GET /v1/team/{teamID}",
    "GET /v1/team/{teamID}/devices",
    "GET /v1/team/{teamID}/device/{deviceID}",
    "PATCH /v1/team/{teamID}/device/{deviceID}",
    "DELETE /v1/team/{teamID}/device/{deviceID}",
    "GET /v1/team/{teamID}/device/{deviceID}/urls",
    "GET /v1/team/{teamID}/device/{deviceID}/annotations",
    "POST /v1/team/{teamID}/device/{deviceID}/annotations",
    "POST /v1/team/{teamID}/device/{deviceID}/annotations/delete",
    "PUT /v1/team/{teamID}/device/{deviceID}/members",
    "POST /v1/team/{teamID}/device/{deviceID}/members",
    "POST /v1/team/{teamID}/device/{deviceID}/members/delete",
    "PATCH /v1/team/{teamID}/device/members",
    "PATCH /v1/team/{teamID}/device/members/delete",
    "POST /v1/team/{teamID}/invite/device",
    "DELETE /v1/team/{teamID}/invite/device/{inviteID}",
    "GET /v1/team/{teamID}/users",
    "POST /v1/team/{teamID}/invite/user",
    "DELETE /v1/team/{teamID}/invite/user/{secret}",
    "PATCH /v1/team/{teamID}/user/{userID}",
    "DELETE /v1/team/{teamID}/user/{userID}",
    "GET /v1/team/{teamID}/user/{userID}/info",
    "POST /v1/team/{teamID}/user/{userID}/removetotp",
    "GET /v1/team/{teamID}/saml/users",
    "POST /v1/team/{teamID}/users/{userID}",
    "GET /v1/team/{teamID}/user/{userID}/annotations",
    "POST /v1/team/{teamID}/user/{userID}/annotations",
    "POST /v1/team/{teamID}/user/{userID}/annotations/delete",
    "POST /v1/team/{teamID}/group",
    "PATCH /v1/team/{teamID}/group/{groupID}",
    "DELETE /v1/team/{teamID}/group/{groupID}",
    "POST /v1/team/{teamID}/group/{groupID}/members",
    "POST /v1/team/{teamID}/group/{groupID}/members/delete",
    "PATCH /v1/team/{teamID}/group/members",
    "PATCH /v1/team/{teamID}/group/members/remove",
    "GET /v1/team/{teamID}/group/{groupID}/annotations",
    "POST /v1/team/{teamID}/group/{groupID}/annotations",
    "POST /v1/team/{teamID}/group/{groupID}/annotations/delete",
    "GET /v1/team/{teamID}/history",
    "GET /v1/team/{teamID}/history/devices",
    "GET /v1/team/{teamID}/device/{deviceID}/history",
    "GET /v1/team/{teamID}/billing/events",
];

#[tokio::test]
async fn exactly_the_rows_of_the_endpoint_tables_are_served() {
    let scene = Scene::new().await;
    let described = scene.client.get_as("", "/openapi.json").await.json();
    let mut served = BTreeSet::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_documented = operation["tags"] == json!(["documented"]);
            assert_eq!(is_documented, path.starts_with("/v1/"), "{path}");
            if is_documented {
                served.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    assert_eq!(served, ROWS.iter().map(|row| (*row).to_owned()).collect());
}

#[tokio::test]
async fn team_rows() {
    let scene = Scene::new().await;
    row("GET /v1/user/teams: 200 array of team ID strings");
    let teams = scene.client.get_as(&scene.client.sandbox.admin_token, "/v1/user/teams").await.with(200);
    assert!(teams.as_array().unwrap().iter().all(Value::is_string) && teams[0] == scene.client.team().as_str());
    row("GET /v1/team/{teamID}: 200 Team");
    let team = scene.get("").await;
    for (field, is_right) in [
        ("id", team["id"].is_string()),
        ("name", team["name"].is_string()),
        ("avatarURL", team["avatarURL"].is_string()),
        ("createdAt", team["createdAt"].is_object()),
        ("billing", team["billing"].is_object()),
        ("deviceInvites", team["deviceInvites"].is_array()),
        ("devices", team["devices"].is_object()),
        ("groups", team["groups"].is_object()),
        ("planFeatures", team["planFeatures"]["deviceEventsMaxRetrievalDuration"].is_u64()),
        ("saml", team["saml"].is_object()),
        ("security", team["security"].is_object()),
        ("userInvites", team["userInvites"].is_array()),
        ("users", team["users"].is_object()),
    ] {
        assert!(is_right, "{field}: {}", team[field]);
    }
}

#[tokio::test]
async fn computer_rows() {
    let scene = Scene::new().await;
    let path = format!("/device/{}", scene.devices[0]);
    row("GET devices: 200 {devices}; empty array when none match");
    assert!(scene.get("/devices").await["devices"].as_array().unwrap().len() > 10);
    assert_eq!(scene.get("/devices?name=nothing").await, json!({"devices": []}));
    row("PATCH device: 200 {id, name}");
    let renamed = scene.send("PATCH", &path, json!({"name": "Édit-*1"})).await.with(200);
    assert_eq!(renamed, json!({"id": scene.devices[0], "name": "Édit-*1"}));
    for filter in ["%C3%A9dit-*1", "%C3%A9DIT-*", "*DIT*"] {
        let found = scene.get(&format!("/devices?name={filter}")).await;
        assert!(found["devices"].as_array().unwrap().iter().any(|seen| id_of(seen) == scene.devices[0]), "{filter}");
    }
    row("GET device: 200 Computer");
    assert_eq!(scene.get(&path).await["name"], "Édit-*1");
    row("Other rules: GET or PATCH of a computer not on the team returns 404");
    for (method, body) in [("GET", NONE), ("PATCH", json!({"name": "x"})), ("DELETE", NONE)] {
        assert_eq!(scene.refused(method, "/device/unknown", body).await, error(404, "device-not-found"));
    }
    row("GET urls: 200 Launch URLs, with the current name");
    let urls = scene.get(&format!("{path}/urls")).await;
    assert_eq!(names(&urls), ["askScreenShare", "connect", "dashboard"]);
    assert!(urls["connect"].as_str().unwrap().contains("%C3%89dit-*1"), "{urls}");
    annotation_rows(&scene, &path, 200, json!({})).await;
    row("DELETE device: 200 OK");
    assert_eq!(scene.send("DELETE", &path, NONE).await.with(200), json!({}));
    assert_eq!(scene.refused("GET", &path, NONE).await, error(404, "device-not-found"));
}

/// The three rows about annotations; for users the last one answers the remaining annotations.
async fn annotation_rows(scene: &Scene, path: &str, status: u16, left: Value) {
    row("POST annotations: 201 {annotations}");
    let sent = json!({"annotations": [{"key": "tag", "value": "a,b"}, {"key": "owner", "value": "me"}]});
    let written = scene.send("POST", &format!("{path}/annotations"), sent).await.with(201);
    assert!(written["annotations"].as_array().unwrap().contains(&json!({"key": "tag", "value": "a,b"})));
    row("GET annotations: 200 {annotations}");
    assert_eq!(scene.get(&format!("{path}/annotations")).await, written);
    row("POST annotations/delete: its status and body");
    let keys = json!({"annotationKeys": ["tag"]});
    let answer = scene.send("POST", &format!("{path}/annotations/delete"), keys).await.with(status);
    assert_eq!(answer, left);
    assert_eq!(
        scene.get(&format!("{path}/annotations")).await["annotations"],
        json!([{"key": "owner", "value": "me"}])
    );
}

#[tokio::test]
async fn access_rows() {
    let scene = Scene::new().await;
    let (one, two) = (&scene.users[0], &scene.users[1]);
    let path = format!("/device/{}", scene.devices[0]);
    let held = async || {
        let seen = scene.get(&path).await;
        (seen.get("users").cloned(), seen.get("groups").cloned())
    };
    row("State: Computer direct access lists: PUT members -> lists equal exactly the sent lists");
    let sent = json!({"users": [one], "groups": [scene.group]});
    assert_eq!(scene.send("PUT", &format!("{path}/members"), sent).await.with(201), json!({}));
    assert_eq!(held().await, (Some(json!([one])), Some(json!([scene.group]))));
    row("POST members: 201 Created, adds without removing");
    assert_eq!(scene.send("POST", &format!("{path}/members"), json!({"users": [two]})).await.with(201), json!({}));
    assert_eq!(held().await, (Some(json!([one, two])), Some(json!([scene.group]))));
    row("POST members/delete: 201 Created, removes only the listed");
    assert_eq!(
        scene.send("POST", &format!("{path}/members/delete"), json!({"users": [one]})).await.with(201),
        json!({})
    );
    assert_eq!(held().await, (Some(json!([two])), Some(json!([scene.group]))));
    row("PUT members: an omitted or empty list removes everyone of that type");
    scene.send("PUT", &format!("{path}/members"), json!({"users": []})).await.with(201);
    assert_eq!(held().await, (None, None));
    row("Other rules: bulk computer and group member requests return 200 with an errors array for partial failures");
    let sent = json!({"devices": scene.devices, "users": [one], "groups": [scene.group]});
    let seen = scene.send("PATCH", "/device/members", sent).await.with(200);
    assert_eq!(seen, json!({"devices": scene.devices, "users": [one]}));
    assert_eq!(held().await, (Some(json!([one])), Some(json!([scene.group]))));
    row("PATCH device/members/delete: 200 even when some computers fail");
    let sent = json!({"devices": [scene.devices[0], "unknown"], "users": [one], "groups": [scene.group]});
    let seen = scene.send("PATCH", "/device/members/delete", sent).await.with(200);
    assert_eq!((names(&seen), seen["errors"].as_array().unwrap().len()), (vec!["devices", "errors", "users"], 1));
    assert_eq!(held().await, (None, None));
}

#[tokio::test]
async fn installer_rows() {
    let scene = Scene::new().await;
    row("POST invite/device: 201 Computer installer");
    let sent = json!({"name": "studio", "users": [scene.users[0]], "groups": [scene.group], "expirySecs": 600,
        "singleUse": false, "requireAuthentication": true});
    let made = scene.send("POST", "/invite/device", sent).await.with(201);
    assert_eq!((&made["name"], &made["requireAuthentication"]), (&json!("studio"), &json!(true)));
    assert_eq!((&made["users"], &made["groups"]), (&json!([scene.users[0]]), &json!([scene.group])));
    assert_eq!(names(&made["connectDownloads"]), ["macpkg", "winexe", "winmsi"]);
    assert_eq!(made["expiresAt"].as_i64().unwrap() - made["createdAt"].as_i64().unwrap(), 600);
    let listed = scene.get("").await["deviceInvites"].clone();
    assert!(listed.as_array().unwrap().contains(&made), "all installers of the team");
    row("omitted or 0 means no expiry");
    let made_too = scene.send("POST", "/invite/device", json!({"expirySecs": 0})).await.with(201);
    assert_eq!(made_too.get("expiresAt"), None);
    row("DELETE invite/device/{inviteID}: 201 Created");
    let path = format!("/invite/device/{}", id_of(&made));
    assert_eq!(scene.send("DELETE", &path, NONE).await.with(201), json!({}));
    row("an unknown inviteID gives 404 with code invite-not-found");
    assert_eq!(scene.refused("DELETE", &path, NONE).await, error(404, "invite-not-found"));
    row("team at its installer limit gives 400 with code invite-limit-reached");
    scene.own("PATCH", "/plan", json!({"installers": 0})).await.with(200);
    assert_eq!(scene.refused("POST", "/invite/device", json!({})).await, error(400, "invite-limit-reached"));
}

#[tokio::test]
async fn user_and_invite_rows() {
    let scene = Scene::new().await;
    let path = format!("/user/{}", scene.users[0]);
    row("POST invite/user: 201 User invite");
    let sent = json!({"sendTo": "new@x.example", "name": "hello", "groups": [scene.group], "devices": scene.devices});
    let made = scene.send("POST", "/invite/user", sent).await.with(201);
    assert_eq!((&made["sentTo"], &made["singleUse"]), (&json!("new@x.example"), &json!(true)));
    assert!(scene.get("").await["userInvites"].as_array().unwrap().contains(&made), "with their secrets");
    row("singleUse requires sendTo");
    let refused = scene.refused("POST", "/invite/user", json!({"singleUse": true})).await;
    assert_eq!(refused, error(400, "invalid-parameter"));
    row("DELETE invite/user/{secret}: 201 Created");
    let invite = format!("/invite/user/{}", made["secret"].as_str().unwrap());
    assert_eq!(scene.send("DELETE", &invite, NONE).await.with(201), json!({}));
    assert_eq!(scene.refused("DELETE", &invite, NONE).await, error(404, "invite-not-found"));
    row("PATCH user: 201 User (updated)");
    let seen = scene.send("PATCH", &path, json!({"role": "admin-read-only"})).await.with(201);
    assert_eq!((&seen["id"], &seen["role"]), (&json!(scene.users[0]), &json!("admin-read-only")));
    row("GET users: query email matches the whole address");
    let found = scene.get(&format!("/users?email={}", seen["email"].as_str().unwrap())).await;
    assert_eq!(found, json!({"users": [seen]}));
    assert_eq!(scene.get("/users?email=team1.example").await, json!({"users": []}));
    row("GET user info: 200 User authentication info");
    let info = scene.get(&format!("{path}/info")).await;
    assert_eq!(names(&info), ["authProviders", "tokenLog", "totp"]);
    let notes = json!({"annotations": [{"key": "owner", "value": "me"}]});
    annotation_rows(&scene, &path, 201, notes).await;
    row("DELETE user: 200 OK");
    assert_eq!(scene.send("DELETE", &path, NONE).await.with(200), json!({}));
    assert_eq!(scene.refused("GET", &format!("{path}/info"), NONE).await, error(404, "user-not-found"));
}

#[tokio::test]
async fn sso_rows() {
    let scene = Scene::new().await;
    let account = json!({"email": "sso@x.example", "firstName": "S", "lastName": "O", "scim": true});
    let id = id_of(&scene.own("POST", "/sso", account).await.with(201));
    row("GET saml/users: 200 array of SSO user, plus scimUserInfo for SCIM-provisioned users");
    let listed = scene.get("/saml/users").await;
    let seen = listed.as_array().unwrap().iter().find(|seen| seen["id"] == id.as_str()).unwrap();
    assert_eq!(names(seen), ["email", "firstName", "id", "lastName", "scimUserInfo"]);
    row("State: User absent from team: POST users/{userID} -> member with role user, remoteAccess enabled");
    assert_eq!(&scene.send("POST", &format!("/users/{id}"), NONE).await.with(200), seen);
    let user = scene.get("/users?email=sso@x.example").await["users"][0].clone();
    assert_eq!((&user["role"], &user["remoteAccess"]), (&json!("user"), &json!("enabled")));
    assert_eq!(scene.newest_events(1).await, ["teamUserAddedEvent"]);
    row("Other rules: POST users/{userID} returns 409 when the user is already on the team");
    assert_eq!(scene.refused("POST", &format!("/users/{id}"), NONE).await, error(409, "user-already-on-team"));
}

#[tokio::test]
async fn group_rows() {
    let scene = Scene::new().await;
    row("POST group: 201 Access Group (with new id)");
    let made = scene.send("POST", "/group", json!({"name": "editors"})).await.with(201);
    let (id, path) = (id_of(&made), format!("/group/{}", id_of(&made)));
    assert_eq!(scene.get("").await["groups"][&id]["name"], "editors");
    row("PATCH group: 200 {id, name}");
    let renamed = scene.send("PATCH", &path, json!({"name": "cutters"})).await.with(200);
    assert_eq!(renamed, json!({"id": id, "name": "cutters"}));
    row("POST members: 201 Created; either list may be omitted");
    let members = format!("{path}/members");
    assert_eq!(scene.send("POST", &members, json!({"users": scene.users})).await.with(201), json!({}));
    assert_eq!(scene.send("POST", &members, json!({"devices": scene.devices})).await.with(201), json!({}));
    let held = async || scene.get("").await["groups"][&id].clone();
    assert_eq!((&held().await["users"], &held().await["devices"]), (&json!(scene.users), &json!(scene.devices)));
    row("POST members/delete: 201 Created; members not listed are unchanged");
    let sent = json!({"users": [scene.users[0]]});
    assert_eq!(scene.send("POST", &format!("{members}/delete"), sent).await.with(201), json!({}));
    assert_eq!(held().await["users"], json!([scene.users[1]]));
    row("PATCH group/members: 200 {devices, users, errors}");
    let sent = json!({"groups": [id, scene.managed], "users": [scene.users[0]], "devices": [scene.devices[0]]});
    let seen = scene.send("PATCH", "/group/members", sent.clone()).await.with(200);
    assert_eq!((&seen["users"], &seen["devices"]), (&json!([scene.users[0]]), &json!([scene.devices[0]])));
    let errors = seen["errors"].as_array().unwrap();
    assert_eq!((errors.len(), names(&errors[0])), (1, vec!["code", "detail", "groupID"]));
    assert_eq!((&errors[0]["groupID"], &errors[0]["code"]), (&json!(scene.managed), &json!("group-scim-managed")));
    row("PATCH group/members/remove: 200 {devices, users, errors}");
    scene.send("PATCH", "/group/members/remove", sent).await.with(200);
    assert_eq!(held().await["users"], json!([scene.users[1]]));
    annotation_rows(&scene, &path, 200, json!({})).await;
    row("Creating fails with team-too-many-groups when the plan's group count is reached");
    scene.own("PATCH", "/plan", json!({"groups": 1})).await.with(200);
    assert_eq!(scene.refused("POST", "/group", json!({"name": "x"})).await, error(400, "team-too-many-groups"));
    row("DELETE group: 200 OK");
    assert_eq!(scene.send("DELETE", &path, NONE).await.with(200), json!({}));
    row("SCIM-managed groups: renaming or deleting is rejected");
    let managed = format!("/group/{}", scene.managed);
    for (method, body) in [("PATCH", json!({"name": "x"})), ("DELETE", NONE)] {
        assert_eq!(scene.refused(method, &managed, body).await, error(400, "group-scim-managed"));
    }
}

#[tokio::test]
async fn history_and_billing_rows() {
    let scene = Scene::new().await;
    let named = |page: &Value, name: &str| page[name].as_array().unwrap().len();
    row("GET history: 200 {events, hasMoreEvents, nextOffset}");
    let page = scene.get("/history?desc=false&limit=3&offset=2").await;
    assert_eq!((names(&page), &page["nextOffset"]), (vec!["events", "hasMoreEvents", "nextOffset"], &json!(5)));
    row("GET history/devices: 200 {deviceEvents, …}; ids repeated once per computer");
    let (one, two) = (&scene.devices[0], &scene.devices[1]);
    let page = scene.get(&format!("/history/devices?desc=false&limit=1001&ids={one}&ids={two}")).await;
    let devices = page["deviceEvents"].as_array().unwrap().iter().map(|event| event["deviceID"].as_str().unwrap());
    assert_eq!(devices.collect::<BTreeSet<_>>(), BTreeSet::from([one.as_str(), two.as_str()]));
    row("GET device/history (deprecated): 200 {events}, no paging fields, desc defaults to false");
    let page = scene.get(&format!("/device/{one}/history?limit=100")).await;
    let times = page["events"].as_array().unwrap().iter().map(|event| event["timestamp"].as_i64().unwrap());
    assert!(names(&page) == ["events"] && times.is_sorted() && page["events"][0].get("deviceID").is_none());
    row("limits: 1001 and 100");
    for (path, most) in
        [("/history".to_owned(), 1001), ("/history/devices".to_owned(), 1001), (format!("/device/{one}/history"), 100)]
    {
        scene.get(&format!("{path}?limit={most}")).await;
        assert_eq!(scene.refused("GET", &format!("{path}?limit={}", most + 1), NONE).await.0, 400, "{path}");
    }
    row("startTime and stopTime are inclusive, in seconds");
    let page = scene.get("/history?desc=false&limit=1").await;
    let second = page["events"][0]["header"]["eventTimestampUnixNano"].as_i64().unwrap() / 1_000_000_000;
    assert!(named(&scene.get(&format!("/history?startTime={second}&stopTime={second}")).await, "events") > 0);
    assert_eq!(named(&scene.get(&format!("/history?stopTime={}", second - 1)).await, "events"), 0);
    row("GET billing/events: 200 {events}, the 10 most recent, newest first");
    scene.own("PATCH", "/plan", json!({"licensedUsers": 99})).await.with(200);
    let page = scene.get("/billing/events").await;
    let entries = page["events"].as_array().unwrap();
    assert!(entries.len() <= 10 && entries[0]["event"].get("subscriptionUpdatedEvent").is_some());
    assert!(entries.is_sorted_by_key(|entry| -entry["timestamp"].as_i64().unwrap()));
    assert_eq!(names(&entries[0]), ["event", "id", "teamid", "timestamp"]);
}
