//! "Authentication", rule by rule on every endpoint, and "Events": the three streams.

use std::collections::BTreeSet;

use super::*;

const KINDS: [&str; 5] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
];

/// The method and the path of every documented endpoint, for the scene's first team.
async fn endpoints(scene: &Scene) -> Vec<(String, String)> {
    let described = scene.client.get_as("", "/openapi.json").await.json();
    let mut all = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/v1/")) {
        let path = path
            .replace("{teamID}", scene.client.team().as_str())
            .replace("{deviceID}", &scene.devices[0])
            .replace("{userID}", &scene.users[0])
            .replace("{groupID}", &scene.group)
            .replace("{inviteID}", "none")
            .replace("{secret}", "none");
        all.extend(methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    assert_eq!(all.len(), 43);
    all
}

#[tokio::test]
async fn every_endpoint_demands_a_token_and_readers_only_read() {
    let scene = Scene::new().await;
    let users = scene.get("/users").await["users"].clone();
    let of = |role: &str| id_of(users.as_array().unwrap().iter().find(|user| user["role"] == role).unwrap());
    let issue = async |user: String, read_only: bool| {
        let path = format!("/user/{user}/token");
        let answer = scene.own("POST", &path, json!({"readOnly": read_only})).await.with(201);
        answer["token"].as_str().unwrap().to_owned()
    };
    let auditor = issue(of("admin-read-only"), false).await;
    let reader = issue(of("admin"), true).await;
    let member = issue(scene.users[1].clone(), false).await;
    let before = scene.get("").await;
    for (method, path) in endpoints(&scene).await {
        row("Authentication rule 1: every request carries Authorization: Bearer");
        for token in ["", "wrong"] {
            let refused = match token {
                "" => scene.client.try_send(&method, "", &path).await.unwrap(),
                _ => scene.client.send_as(token, &method, &path, &NONE).await,
            };
            assert_eq!(refused.refusal(), error(401, "unauthorized"), "{method} {path}");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        row("Authentication rule 3: Admin (Read-Only) users and read-only tokens may make only GET requests");
        for (who, token) in
            [("auditor", &auditor), ("reader", &reader), ("standing", &scene.client.sandbox.read_only_token)]
        {
            let answer = scene.client.send_as(token, &method, &path, &NONE).await;
            let is_sso = who == "auditor" && path.ends_with("/saml/users");
            let expected = if method == "GET" && !is_sso { 200 } else { 403 };
            assert_eq!(answer.status, expected, "{who} {method} {path}");
        }
        let answer = scene.client.send_as(&member, &method, &path, &NONE).await;
        assert!(method == "GET" || answer.status == 403, "a member changes nothing: {method} {path}");
    }
    assert_eq!(scene.get("").await["devices"], before["devices"]);
    assert_eq!(scene.get("").await["groups"], before["groups"]);
    row("Authentication rule 2: the token is issued by a team admin");
    let path = format!("/sandbox/team/{}/user/{}/token", scene.client.team(), scene.users[0]);
    for token in [&auditor, &reader, &member] {
        assert_eq!(scene.client.send_as(token, "POST", &path, &json!({})).await.status, 403);
    }
    row("Authentication rule 4: callers that are not team admins receive a limited view");
    let path = format!("/v1/team/{}", scene.client.team());
    assert_eq!(names(&scene.client.get_as(&member, &path).await.with(200)), ["avatarURL", "id", "name"]);
    assert!(
        names(&scene.client.get_as(&auditor, &path).await.with(200)).contains(&"users"),
        "a read-only admin has the full view"
    );
    row("Authentication rule 5: SSO-add and the SSO-user list require an admin who signs in with SSO, of both teams");
    for (method, tail) in [("GET", "/saml/users"), ("POST", "/users/none")] {
        assert_eq!(scene.client.send_as(&member, method, &format!("{path}{tail}"), &NONE).await.status, 403);
    }
}

/// The fault of a connection event by the document; `None` if there is none.
fn deviation(event: &Value, has_device: bool) -> Option<&'static str> {
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| event.get(kind).is_some()).collect();
    let [kind] = kinds[..] else { return Some("exactly one of the five fields") };
    let mut fields = BTreeSet::from(["id", "timestamp", "computerHostName", kind]);
    if has_device {
        fields.insert("deviceID");
    }
    if names(event).into_iter().collect::<BTreeSet<_>>() != fields {
        return Some("id, timestamp, deviceID, computerHostName and the event field");
    }
    if event[kind].get("reason").is_some() != (kind == "authFailedEvent") {
        return Some("authFailedEvent carries reason");
    }
    let nested = event[kind].get("associatedIncomingConnectionEvent");
    if nested.is_some() == kind.starts_with("incoming") {
        return Some("authentication and close events carry the details inside associatedIncomingConnectionEvent");
    }
    let details = nested.unwrap_or(&event[kind]);
    let known = ["connectionID", "directConnectionInfo", "localUserName", "peerInfo", "sourceType", "tunnelID"];
    let has_peer = details.get("peerInfo").is_some_and(|peer| names(peer) == ["email", "ipAddress"]);
    if !has_peer || !names(details).iter().all(|name| known.contains(name)) {
        return Some("connectionID, tunnelID, sourceType, peerInfo, and optionally two more");
    }
    let is_one_of = |field: &str, of: &[&str]| details[field].as_str().is_some_and(|value| of.contains(&value));
    if !is_one_of("tunnelID", &["fluid", "rdp", "vnc", "unknown"]) {
        return Some("tunnelID");
    }
    if !is_one_of("sourceType", &["cloud", "directip", "unknown"]) {
        return Some("sourceType");
    }
    (kind.starts_with("auth") && details["tunnelID"] != "fluid").then_some("authentication is of fluid connections")
}

#[tokio::test]
async fn connection_events_of_every_kind_match_the_document() {
    let scene = Scene::new().await;
    let events = scene.client.walk("/history/devices?desc=false", 1001).await;
    let mut kinds = BTreeSet::new();
    for text in &events {
        let event: Value = serde_json::from_str(text).unwrap();
        assert_eq!(deviation(&event, true), None, "{text}");
        assert!((10_i64.pow(12)..10_i64.pow(13)).contains(&event["timestamp"].as_i64().unwrap()), "milliseconds");
        kinds.extend(KINDS.into_iter().filter(|kind| event.get(kind).is_some()));
    }
    for kind in [
        "incomingConnectionRequest",
        "incomingConnectionEvent",
        "authSucceededEvent",
        "authFailedEvent",
        "connectionClosedEvent",
    ] {
        row(kind);
        assert!(kinds.contains(kind), "{kind} among {} events", events.len());
    }
    row("ConnectEventDeprecated: like the above without deviceID");
    let device = serde_json::from_str::<Value>(&events[0]).unwrap()["deviceID"].as_str().unwrap().to_owned();
    let page = scene.get(&format!("/device/{device}/history?limit=100")).await;
    for event in page["events"].as_array().unwrap() {
        assert_eq!(deviation(event, false), None, "{event}");
    }
}

#[tokio::test]
async fn every_way_to_connect_makes_documented_events() {
    let scene = Scene::new().await;
    let (device, user) = (&scene.devices[0], &scene.users[0]);
    scene.send("PATCH", &format!("/user/{user}"), json!({"remoteAccess": "enabled"})).await.with(201);
    scene.send("PUT", &format!("/device/{device}/members"), json!({"users": [user]})).await.with(201);
    for tunnel in ["fluid", "rdp", "vnc", "unknown"] {
        for source in ["cloud", "directip", "unknown"] {
            scene.client.sandbox.handle.advance(std::time::Duration::from_secs(1));
            let sent = json!({"userID": user, "tunnelID": tunnel, "sourceType": source, "failedAttempts": 2});
            let made = scene.own("POST", &format!("/device/{device}/connect"), sent).await.with(201);
            let count = if tunnel == "fluid" { 6 } else { 3 };
            let page = scene.get(&format!("/history/devices?desc=true&limit={count}&ids={device}")).await;
            for event in page["deviceEvents"].as_array().unwrap() {
                assert_eq!(deviation(event, true), None, "{event}");
                assert!(event.to_string().contains(made["connectionID"].as_str().unwrap()), "ties them together");
                assert_eq!(event.to_string().contains("directConnectionInfo"), source == "directip");
            }
        }
    }
}

#[tokio::test]
async fn odd_events_come_only_on_request() {
    let config = SandboxConfig { days: 30, sessions_per_day: 100, ..small() };
    let odd = SandboxClient::of(SandboxConfig { odd_events: true, ..config.clone() }).await;
    let plain = SandboxClient::of(SandboxConfig { odd_events: false, ..config }).await;
    let read = async |client: &SandboxClient| -> Vec<Value> {
        let texts = client.walk("/history/devices?desc=false", 1001).await;
        texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    };
    let (odd, plain) = (read(&odd).await, read(&plain).await);
    assert!(plain.iter().all(|event| deviation(event, true).is_none()));
    let ids = |events: &[Value]| events.iter().map(|event| event["id"].to_string()).collect::<BTreeSet<_>>();
    let (odd_ids, plain_ids) = (ids(&odd), ids(&plain));
    assert!(plain_ids.is_subset(&odd_ids), "the same events, and others between them");
    let unknown = odd.iter().filter(|event| !plain_ids.contains(&event["id"].to_string())).count();
    let unlike = odd.iter().filter(|event| deviation(event, true).is_some()).count();
    assert!(0 < unknown && unknown < unlike && unlike < odd.len() / 5, "{unknown} {unlike} of {}", odd.len());
    let names_peers = |events: &[Value]| events.iter().any(|event| event.to_string().contains("\"peerID\""));
    assert!(names_peers(&odd) && !names_peers(&plain));
}
