//! "Limits", "Errors", "Query parameter semantics" and "Versioning": each row at its limit and one past it.

use super::*;

/// A text of this many characters, each of several bytes.
fn letters(count: usize) -> String {
    "é".repeat(count)
}

#[tokio::test]
async fn names_keys_and_values_have_their_lengths() {
    let scene = Scene::new().await;
    let device = format!("/device/{}", scene.devices[0]);
    let group = format!("/group/{}", scene.group);
    row("Limit: computer name, installer name, invite name, group name: up to 64 characters");
    for (method, path, done) in [
        ("PATCH", device.as_str(), 200),
        ("POST", "/invite/device", 201),
        ("POST", "/invite/user", 201),
        ("PATCH", group.as_str(), 200),
        ("POST", "/group", 201),
    ] {
        for name in [letters(1), letters(64), "👩‍👧".chars().cycle().take(64).collect()] {
            let seen = scene.send(method, path, json!({"name": name})).await.with(done);
            assert_eq!(seen["name"], name, "{method} {path}");
        }
        let refused = scene.refused(method, path, json!({"name": letters(65)})).await;
        assert_eq!(refused, error(400, "invalid-parameter"), "{method} {path}");
    }
    row("Limit: group name on create: 1 to 64");
    assert_eq!(scene.refused("POST", "/group", json!({"name": ""})).await, error(400, "invalid-parameter"));
    assert_eq!(scene.refused("POST", "/group", json!({})).await, error(400, "invalid-parameter"), "required");
    let user = format!("/user/{}", scene.users[0]);
    for path in [&device, &group, &user] {
        let path = format!("{path}/annotations");
        let write = async |key: String, value: String| {
            let sent = json!({"annotations": [{"key": key, "value": value}]});
            scene.send("POST", &path, sent).await.status
        };
        row("Limit: annotation key: 1 to 64 characters");
        for (count, status) in [(0, 400), (1, 201), (64, 201), (65, 400)] {
            assert_eq!(write(letters(count), String::new()).await, status, "{path}");
        }
        row("Limit: annotation value: up to 2,048 characters");
        for (count, status) in [(0, 201), (2_048, 201), (2_049, 400)] {
            assert_eq!(write("k".to_owned(), letters(count)).await, status, "{path}");
        }
    }
}

#[tokio::test]
async fn plans_and_pages_have_their_limits() {
    let scene = Scene::new().await;
    row("Limit: history limit, team endpoints: up to 1001");
    for path in ["/history", "/history/devices"] {
        assert_eq!(scene.send("GET", &format!("{path}?limit=1001"), NONE).await.status, 200);
        assert_eq!(scene.refused("GET", &format!("{path}?limit=1002"), NONE).await.0, 400);
    }
    row("Limit: history limit, per-computer deprecated endpoint: up to 100");
    let path = format!("/device/{}/history", scene.devices[0]);
    assert!(scene.get(&format!("{path}?limit=100")).await["events"].as_array().unwrap().len() <= 100);
    assert_eq!(scene.refused("GET", &format!("{path}?limit=101"), NONE).await.0, 400);
    row("Limit: billing ledger: 10 most recent events");
    for seats in 90..102 {
        scene.own("PATCH", "/plan", json!({"licensedUsers": seats})).await.with(200);
    }
    let ledger = scene.get("/billing/events").await;
    let seats = ledger["events"].as_array().unwrap().iter().map(|held| &held["event"]["subscriptionUpdatedEvent"]);
    let expected: Vec<Value> = (92..102).rev().map(|seats| json!({"licensedUsers": seats})).collect();
    assert_eq!(seats.cloned().collect::<Vec<_>>(), expected, "newest first");
    let team = scene.get("").await;
    row("Limit: installers per team: a limit exists (invite-limit-reached)");
    let installers = team["deviceInvites"].as_array().unwrap().len();
    let groups = team["groups"].as_object().unwrap().len();
    let plan = json!({"installers": installers + 1, "groups": groups + 1, "annotations": 2});
    scene.own("PATCH", "/plan", plan).await.with(200);
    scene.send("POST", "/invite/device", json!({})).await.with(201);
    assert_eq!(scene.refused("POST", "/invite/device", json!({})).await, error(400, "invite-limit-reached"));
    row("Limit: Access Groups per team: depends on plan (team-too-many-groups)");
    scene.send("POST", "/group", json!({"name": "last"})).await.with(201);
    assert_eq!(scene.refused("POST", "/group", json!({"name": "x"})).await, error(400, "team-too-many-groups"));
    row("Limit: annotations per object: a limit exists (team-too-many-annotations)");
    for object in [
        format!("/device/{}", scene.devices[0]),
        format!("/user/{}", scene.users[0]),
        format!("/group/{}", scene.group),
    ] {
        let path = format!("{object}/annotations");
        let held = scene.get(&path).await["annotations"].as_array().unwrap().len();
        scene.own("PATCH", "/plan", json!({"annotations": held + 1})).await.with(200);
        scene.send("POST", &path, json!({"annotations": [{"key": "a", "value": "1"}]})).await.with(201);
        let over = json!({"annotations": [{"key": "a", "value": "2"}, {"key": "b", "value": "2"}]});
        assert_eq!(scene.refused("POST", &path, over).await, error(400, "team-too-many-annotations"));
        assert!(!scene.get(&path).await.to_string().contains('2'), "refused whole: {path}");
        scene.send("POST", &path, json!({"annotations": [{"key": "a", "value": "3"}]})).await.with(201);
    }
    row("Limit: connection history span: planFeatures.deviceEventsMaxRetrievalDuration seconds");
    assert_eq!(team["planFeatures"]["deviceEventsMaxRetrievalDuration"], 90 * 86_400);
    scene.client.own("PATCH", "/choices", &json!({"enforce_plan_span": true})).await.with(200);
    scene.client.own("POST", "/clock", &json!({"advanceSeconds": 200 * 86_400})).await.with(200);
    assert_eq!(scene.get("/history/devices").await["deviceEvents"], json!([]));
}

#[tokio::test]
async fn licensed_users_bound_users_with_remote_access_on() {
    let scene = Scene::new().await;
    let id = id_of(&scene.own("POST", "/sso", json!({"email": "more@x.example"})).await.with(201));
    let invite = scene.send("POST", "/invite/user", json!({})).await.with(201);
    let active = async || {
        let users = scene.get("/users").await["users"].as_array().unwrap().clone();
        users.iter().filter(|user| user["remoteAccess"] == "enabled").count()
    };
    let full = json!({"licensedUsers": active().await});
    scene.own("PATCH", "/plan", full.clone()).await.with(200);
    row("Limit: licensed users: a licensed-user quantity bounds users with remote access on");
    let over = error(400, "active-users-exceed-licensed-quanity");
    assert_eq!(scene.refused("POST", &format!("/users/{id}"), NONE).await, over);
    let join = json!({"secret": invite["secret"], "email": "joins@x.example"});
    assert_eq!(scene.own("POST", "/join", join).await.refusal(), over);
    let path = format!("/user/{}", scene.users[0]);
    scene.send("PATCH", &path, json!({"remoteAccess": "disabled"})).await.with(201);
    scene.send("POST", &format!("/users/{id}"), NONE).await.with(200);
    assert_eq!(scene.refused("PATCH", &path, json!({"remoteAccess": "enabled"})).await, over);
    scene.send("PATCH", &path, json!({"role": "admin"})).await.with(201);
    assert_eq!(json!({"licensedUsers": active().await}), full);
}

#[tokio::test]
async fn every_code_of_the_errors_table_is_given() {
    let scene = Scene::new().await;
    let users = scene.get("/users").await["users"].clone();
    let admin = id_of(&users[0]);
    let user = |id: &str| format!("/user/{id}");
    for held in users.as_array().unwrap().iter().filter(|held| id_of(held) != admin && id_of(held) != scene.users[0]) {
        scene.send("DELETE", &user(&id_of(held)), NONE).await.with(200);
    }
    scene.send("PATCH", &user(&scene.users[0]), json!({"remoteAccess": "disabled"})).await.with(201);
    let annotate = format!("/group/{}/annotations", scene.group);
    let plan = json!({"installers": 0, "groups": 0, "annotations": 0, "licensedUsers": 1});
    scene.own("PATCH", "/plan", plan).await.with(200);
    let bulk = json!({"groups": [scene.managed], "users": [admin]});
    for (code, status, method, path, body) in [
        ("invite-limit-reached", 400, "POST", "/invite/device".to_owned(), json!({})),
        ("invite-not-found", 404, "DELETE", "/invite/device/none".to_owned(), NONE),
        ("team-requires-admin", 400, "PATCH", user(&admin), json!({"role": "user"})),
        ("team-requires-active-user", 400, "PATCH", user(&admin), json!({"remoteAccess": "disabled"})),
        (
            "active-users-exceed-licensed-quanity",
            400,
            "PATCH",
            user(&scene.users[0]),
            json!({"remoteAccess": "enabled"}),
        ),
        ("team-too-many-groups", 400, "POST", "/group".to_owned(), json!({"name": "x"})),
        ("team-too-many-annotations", 400, "POST", annotate, json!({"annotations": [{"key": "k", "value": "v"}]})),
        ("totp-not-enabled", 400, "POST", format!("{}/removetotp", user(&admin)), NONE),
    ] {
        row(code);
        assert_eq!(scene.refused(method, &path, body).await, error(status, code));
    }
    row("group-scim-managed");
    let seen = scene.send("PATCH", "/group/members", bulk).await.with(200);
    assert_eq!(seen["errors"][0]["code"], "group-scim-managed");
    row("Other rules: any non-2xx response carries a body");
    for (method, path, status) in [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/team/none", 404),
        ("PUT", "/v1/user/teams", 405),
        ("GET", "/v1/team/%FF", 400),
    ] {
        let token = &scene.client.sandbox.admin_token;
        assert_eq!(scene.client.send_as(token, method, path, &NONE).await.refusal().0, status, "{path}");
    }
}

#[tokio::test]
async fn query_parameters_mean_the_same_for_all_three_histories() {
    let scene = Scene::new().await;
    let busiest = scene.client.get("/history/devices?limit=1").await.json()["deviceEvents"][0]["deviceID"].clone();
    for (path, list, field, unit) in [
        ("/history".to_owned(), "events", "/header/eventTimestampUnixNano", 1_000_000_000),
        ("/history/devices".to_owned(), "deviceEvents", "/timestamp", 1_000),
        (format!("/device/{}/history", busiest.as_str().unwrap()), "events", "/timestamp", 1_000),
    ] {
        let read = async |query: &str| {
            let page = scene.get(&format!("{path}?{query}")).await;
            page[list].as_array().unwrap().clone()
        };
        let second = |event: &Value| event.pointer(field).unwrap().as_i64().unwrap() / unit;
        let oldest = read("desc=false&limit=100").await;
        row("startTime");
        let from = second(&oldest[oldest.len() / 2]);
        let expected: Vec<Value> = oldest.iter().filter(|event| second(event) >= from).cloned().collect();
        assert!(read(&format!("desc=false&limit=100&startTime={from}")).await.starts_with(&expected), "inclusive");
        row("stopTime");
        let expected: Vec<Value> = oldest.iter().filter(|event| second(event) <= from).cloned().collect();
        assert_eq!(read(&format!("desc=false&limit=100&stopTime={from}")).await, expected, "inclusive");
        assert!(read(&format!("startTime={}&stopTime={}", from, from - 1)).await.is_empty());
        row("desc");
        let both = format!("limit=100&startTime={}&stopTime={from}", second(&oldest[0]));
        let mut reversed = read(&format!("desc=true&{both}")).await;
        reversed.reverse();
        assert_eq!(reversed, expected, "newest first");
        assert_eq!(read(&format!("desc=True&{both}")).await, read(&format!("desc=1&{both}")).await);
        row("limit");
        assert_eq!(read("desc=false&limit=3").await, oldest[..3]);
        row("offset");
        assert_eq!(read("desc=false&limit=3&offset=4").await, oldest[4..7]);
        row("An empty result is returned when nothing is found or no events remain");
        assert!(read("offset=99999999").await.is_empty() && read("stopTime=9").await.is_empty());
    }
}

#[tokio::test]
async fn the_version_is_in_the_path_and_undocumented_paths_are_not_served() {
    let scene = Scene::new().await;
    let team = scene.client.team();
    let status = async |path: &str| scene.client.get_as(&scene.client.sandbox.admin_token, path).await.status;
    row("Versioning: the version is the path prefix /v1");
    assert_eq!((status(&format!("/v1/team/{team}")).await, status(&format!("/team/{team}")).await), (200, 404));
    row("Versioning: device/{deviceID}/history is deprecated in favor of history/devices with ids");
    let described = scene.client.get_as("", "/openapi.json").await.json();
    assert_eq!(described["paths"]["/v1/team/{teamID}/device/{deviceID}/history"]["get"]["deprecated"], true);
    row("Versioning: the service returns and accepts admin-read-only");
    let change = json!({"role": "admin-read-only"});
    let seen = scene.send("PATCH", &format!("/user/{}", scene.users[0]), change).await.with(201);
    assert_eq!(seen["role"], "admin-read-only");
    row("Versioning: the service uses /v1/team/{teamid}/billing/events and returns an object with an events array");
    assert!(scene.get("/billing/events").await["events"].is_array());
    assert_eq!(status(&format!("/teams/{team}/billing/events")).await, 404);
}
