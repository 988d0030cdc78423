//! "Authentication", "Errors" and "Limits": who may do what, and how refusals look.

use annals::sandbox::{Choices, CreatedBody, ErrorShape};

use super::*;

async fn token(scene: &Scene, user: &str, read_only: bool) -> String {
    let path = format!("/user/{user}/token");
    let answer = scene.own("POST", &path, json!({"readOnly": read_only})).await.with(201);
    answer["token"].as_str().unwrap().to_owned()
}

async fn refusal(scene: &Scene, token: &str, method: &str, path: &str) -> (u16, String) {
    let path = format!("/v1/team/{}{path}", scene.client.team());
    scene.client.send_as(token, method, &path, &json!({"name": "x"})).await.refusal()
}

#[tokio::test]
async fn read_only_tokens_and_admin_read_only_users_make_only_get_requests() {
    let scene = Scene::new().await;
    let users = scene.get("/users").await["users"].clone();
    let of = |role: &str| id_of(users.as_array().unwrap().iter().find(|user| user["role"] == role).unwrap());
    let auditor = token(&scene, &of("admin-read-only"), false).await;
    let reading_admin = token(&scene, &of("admin"), true).await;
    for held in [&auditor, &reading_admin, &scene.client.sandbox.read_only_token] {
        for path in ["", "/history", "/history/devices", "/billing/events", "/users"] {
            let path = format!("/v1/team/{}{path}", scene.client.team());
            scene.client.get_as(held, &path).await.with(200);
        }
        for (method, path) in
            [("POST", "/group"), ("PUT", "/device/x/members"), ("PATCH", "/device/x"), ("DELETE", "/user/x")]
        {
            assert_eq!(refusal(&scene, held, method, path).await, error(403, "forbidden"), "{method}");
        }
    }
    assert_eq!(refusal(&scene, &auditor, "GET", "/saml/users").await, error(403, "forbidden"));
}

#[tokio::test]
async fn a_persons_token_has_the_persons_current_rights() {
    let scene = Scene::new().await;
    let held = token(&scene, &scene.users[0], false).await;
    let path = format!("/v1/team/{}", scene.client.team());
    let team = scene.client.get_as(&held, &path).await.with(200);
    assert_eq!(names(&team), ["avatarURL", "id", "name"], "the limited view");
    let user = format!("/user/{}", scene.users[0]);
    scene.send("PATCH", &user, json!({"role": "admin"})).await.with(201);
    assert!(names(&scene.client.get_as(&held, &path).await.with(200)).len() > 5);
    scene.client.send_as(&held, "POST", &format!("{path}/group"), &json!({"name": "mine"})).await.with(201);
    let newest = scene.get("/history?desc=true&limit=1").await["events"][0].clone();
    assert_eq!(newest["header"]["tokenInfo"]["userID"], scene.users[0].as_str(), "who made the change");
    let teams = scene.client.get_as(&held, "/v1/user/teams").await.with(200);
    assert_eq!(teams, json!([scene.client.team().as_str()]));
    let elsewhere = format!("/v1/team/{}", scene.client.sandbox.teams[1]);
    assert_eq!(scene.client.get_as(&held, &elsewhere).await.refusal(), error(403, "forbidden"));
    assert_eq!(scene.client.send_as(&held, "GET", "/sandbox/clock", &NONE).await.refusal(), error(403, "forbidden"));
    scene.send("DELETE", &user, NONE).await.with(200);
    assert_eq!(scene.client.get_as(&held, &path).await.refusal(), error(401, "unauthorized"));
}

#[tokio::test]
async fn sso_requests_need_an_admin_with_sso_of_the_connections_team_too() {
    let scene = Scene::new().await;
    scene.own("PATCH", "/plan", json!({"ssoOwner": scene.client.sandbox.teams[1].as_str()})).await.with(200);
    let users = scene.get("/users").await["users"].clone();
    let admin = id_of(&users[0]);
    let held = token(&scene, &admin, false).await;
    assert_eq!(refusal(&scene, &held, "GET", "/saml/users").await, error(403, "forbidden"));
    assert_eq!(refusal(&scene, &held, "POST", "/users/x").await, error(403, "forbidden"));
    scene.own("PATCH", "/plan", json!({"ssoOwner": ""})).await.with(200);
    assert_eq!(refusal(&scene, &held, "POST", "/users/x").await, error(404, "user-not-found"));
}

#[tokio::test]
async fn a_body_comes_as_json_and_has_the_fields_of_its_endpoint() {
    let scene = Scene::new().await;
    let path = format!("/device/{}", scene.devices[0]);
    for body in [json!({}), json!({"name": 5}), json!({"name": "x".repeat(65)}), json!({"name": null})] {
        assert_eq!(scene.refused("PATCH", &path, body).await, error(400, "invalid-parameter"));
    }
    assert_eq!(scene.refused("PATCH", &path, json!(["name"])).await, error(400, "invalid-request"));
    let members = format!("{path}/members");
    assert_eq!(scene.refused("POST", &members, json!({"users": "x"})).await, error(400, "invalid-parameter"));
    assert_eq!(scene.refused("POST", "/nothing", NONE).await, error(404, "not-found"));
    assert_eq!(scene.refused("POST", "/devices", NONE).await, error(405, "method-not-allowed"));
}

#[tokio::test]
async fn every_form_of_a_refusal_can_be_chosen() {
    let scene = Scene::new().await;
    let set = async |change: Value| scene.client.own("PATCH", "/choices", &change).await.with(200);
    let path = format!("/group/{}", scene.managed);
    for (shape, expected) in [
        (ErrorShape::Detail, vec!["code", "detail"]),
        (ErrorShape::Message, vec!["code", "message"]),
        (ErrorShape::Code, vec!["code"]),
        (ErrorShape::Nested, vec!["error"]),
        (ErrorShape::Errors, vec!["errors"]),
        (ErrorShape::Problem, vec!["code", "detail", "status", "title", "type"]),
    ] {
        set(json!({"error_shape": shape})).await;
        let answer = scene.send("DELETE", &path, NONE).await;
        assert_eq!((answer.status, names(&answer.json())), (400, expected));
    }
    set(json!({"error_shape": "detail", "rule_status": 422, "invalid_status": 422, "forbidden_status": 404})).await;
    assert_eq!(scene.refused("DELETE", &path, NONE).await, error(422, "group-scim-managed"));
    assert_eq!(scene.refused("POST", "/group", json!({})).await.0, 422);
    let read_only = &scene.client.sandbox.read_only_token;
    assert_eq!(refusal(&scene, read_only, "POST", "/group").await, error(404, "forbidden"));
    for (body, expected) in [(CreatedBody::Text, "Created"), (CreatedBody::Object, "{}"), (CreatedBody::Empty, "")] {
        set(json!({"created_body": body})).await;
        let answer = scene.send("POST", &format!("/device/{}/members", scene.devices[0]), json!({})).await;
        assert_eq!((answer.status, String::from_utf8(answer.body).unwrap().as_str()), (201, expected));
    }
    set(json!({"refuse_unknown_fields": true})).await;
    assert_eq!(scene.refused("POST", "/group", json!({"name": "x", "more": 1})).await.0, 422);
    for wrong in [
        json!({"nothing": 1}),
        json!({"error_shape": "loud"}),
        json!({"rule_status": 200}),
        json!({"limit_max": 0}),
        json!({"default_limit": 1_000_000_000_000_u64}),
    ] {
        let refused = scene.client.own("PATCH", "/choices", &wrong).await;
        assert_eq!(refused.refusal().0, 422, "{wrong}");
    }
}

#[tokio::test]
async fn lists_without_items_are_left_out_or_served() {
    let scene = Scene::new().await;
    let held = token(&scene, &scene.users[0], false).await;
    let path = format!("/device/{}", scene.devices[0]);
    scene.send("PUT", &format!("{path}/members"), json!({})).await.with(201);
    let bulk = json!({"devices": [], "users": scene.users});
    let read = async || {
        let team = scene.get("").await;
        let limited = scene.client.get_as(&held, &format!("/v1/team/{}", scene.client.team())).await.with(200);
        let made = scene.send("POST", "/group", json!({"name": "empty"})).await.with(201);
        let none = scene.send("PATCH", "/device/members", bulk.clone()).await.with(200);
        let mut lists =
            vec![team["devices"][&scene.devices[0]]["users"].clone(), scene.get(&path).await["groups"].clone()];
        lists.extend([team["groups"][&scene.group]["annotations"].clone(), team["deviceConfigs"].clone()]);
        lists.extend([made["devices"].clone(), none["devices"].clone()]);
        assert_eq!((none.get("errors"), names(&limited)), (None, vec!["avatarURL", "id", "name"]));
        lists
    };
    assert_eq!(read().await, [NONE; 6], "fields with no value are omitted");
    scene.client.own("PATCH", "/choices", &json!({"empty_lists": true})).await.with(200);
    assert_eq!(read().await, vec![json!([]); 6]);
}

#[tokio::test]
async fn rate_limits_and_late_events_can_be_chosen() {
    let scene = Scene::new().await;
    let handle = &scene.client.sandbox.handle;
    handle.set_choices(Choices { event_delay_ms: 60_000, ..Choices::default() });
    scene.send("POST", "/group", json!({"name": "late"})).await.with(201);
    assert_ne!(scene.newest_events(1).await, ["teamGroupCreatedEvent"]);
    handle.advance(std::time::Duration::from_secs(60));
    assert_eq!(scene.newest_events(1).await, ["teamGroupCreatedEvent"]);
    handle.set_choices(Choices { requests_per_minute: Some(2), ..Choices::default() });
    for status in [200, 200, 429] {
        let answer = scene.send("GET", "/devices?name=x", NONE).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("retry-after").is_some(), status == 429);
    }
    let lifted = scene.client.own("PATCH", "/choices", &json!({"requests_per_minute": null})).await;
    assert_eq!(lifted.status, 200, "the request that sets the limit still works");
    handle.set_choices(Choices { requests_per_minute: Some(2), ..Choices::default() });
    handle.advance(std::time::Duration::from_secs(60));
    scene.get("/devices?name=x").await;
}

#[tokio::test]
async fn members_read_everything_or_only_the_limited_view() {
    let scene = Scene::new().await;
    let held = token(&scene, &scene.users[0], false).await;
    let read = async || {
        let mut statuses = Vec::new();
        for path in ["", "/devices", "/history", "/billing/events"] {
            let path = format!("/v1/team/{}{path}", scene.client.team());
            statuses.push(scene.client.get_as(&held, &path).await.status);
        }
        statuses
    };
    assert_eq!(read().await, [200; 4]);
    scene.client.own("PATCH", "/choices", &json!({"members_read": false})).await.with(200);
    assert_eq!(read().await, [200, 403, 403, 403]);
}
