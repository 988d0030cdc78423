//! A sandbox saved and taken up again, its clock, and faults by rule.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::io::BufRead as _;

use annals::model::Stream;
use annals::sandbox::{Sandbox, SandboxConfig, SandboxError, Saved, SavedError};
use common::sandbox_client::{Visitor, small};
use serde_json::{Value, json};

/// All that is served of the first team, and the truth about it.
async fn seen(visitor: &Visitor) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "",
        "/devices",
        "/users",
        "/saml/users",
        "/billing/events",
        "/history?limit=1001",
        "/history/devices?limit=1001",
    ] {
        all.push(visitor.get(path).await.json());
    }
    let truth = |stream| visitor.sandbox.handle.truth(visitor.team(), stream).map(|event| format!("{event:?}"));
    all.push(json!(Stream::ALL.map(|stream| truth(stream).collect::<Vec<_>>())));
    all
}

/// Changes of every kind that a file must hold.
async fn change(visitor: &Visitor) {
    let devices = visitor.sandbox.handle.devices(visitor.team());
    let users = visitor.get("/users").await.json()["users"].clone();
    let user = users[0]["id"].as_str().unwrap();
    visitor.send("DELETE", &format!("/device/{}", devices[0]), &Value::Null).await.with(200);
    visitor.send("PUT", &format!("/device/{}/members", devices[1]), &json!({"users": [user]})).await.with(201);
    visitor.send("POST", "/group", &json!({"name": "saved"})).await.with(201);
    let team = visitor.team();
    let path = format!("/team/{team}/device/{}/connect", devices[1]);
    visitor.own("POST", &path, &json!({"userID": user, "open": true})).await.with(201);
    visitor.own("PATCH", "/choices", &json!({"default_limit": 7, "error_shape": "nested"})).await.with(200);
    let rules = json!({"rules": [
        {"path": "/nothing", "fault": "reset"},
        {"path": "/urls", "times": 1, "fault": {"status": {"status": 503}}},
    ]});
    visitor.own("PUT", "/faults", &rules).await.with(200);
    assert_eq!(visitor.get(&format!("/device/{}/urls", devices[1])).await.status, 503);
    visitor.own("PUT", &format!("/team/{team}/deletion"), &json!({"inSeconds": 60})).await.with(200);
    let migration = format!("/team/{team}/user/{user}/migration");
    visitor.own("PUT", &migration, &json!({"devices": ["old"]})).await.with(200);
    let (from, end) =
        (visitor.sandbox.handle.end().minus(std::time::Duration::from_secs(90_000)), visitor.sandbox.handle.end());
    assert!(visitor.sandbox.handle.withdraw(team, Stream::Activity, from, end) > 0);
}

#[tokio::test]
async fn a_saved_sandbox_goes_on_where_it_was() {
    let visitor = Visitor::of(small()).await;
    change(&visitor).await;
    let text = visitor.get_as(&visitor.sandbox.admin_token, "/sandbox/state").await.body;
    let before = seen(&visitor).await;
    let saved = Saved::parse(&text).unwrap();
    assert_eq!(serde_json::to_value(visitor.sandbox.handle.saved()).unwrap(), serde_json::to_value(&saved).unwrap());
    let other = Visitor::of(saved.config()).await;
    assert_eq!(seen(&other).await, before);
    let choices = visitor.own("GET", "/choices", &Value::Null).await.json();
    assert_eq!(other.own("GET", "/choices", &Value::Null).await.json(), choices);
    assert_eq!(other.own("GET", "/faults", &Value::Null).await.json()["rules"].as_array().unwrap().len(), 2);
    let device = other.sandbox.handle.devices(other.team())[0].clone();
    assert_eq!(other.get(&format!("/device/{device}/urls")).await.status, 200, "a fault that came true once stays so");

    // Back to it, over HTTP, after more has happened.
    visitor.send("POST", "/group", &json!({"name": "after"})).await.with(201);
    visitor.sandbox.handle.advance(std::time::Duration::from_secs(3_600));
    assert_ne!(seen(&visitor).await, before);
    let state: Value = serde_json::from_slice(&text).unwrap();
    visitor.own("PUT", "/state", &state).await.with(200);
    assert_eq!(seen(&visitor).await, before);
}

#[tokio::test]
async fn what_is_no_saved_sandbox_of_this_one_is_refused_and_changes_nothing() {
    let visitor = Visitor::of(small()).await;
    let state = serde_json::to_value(visitor.sandbox.handle.saved()).unwrap();
    let before = seen(&visitor).await;
    for (place, value) in [
        ("/format", json!(2)),
        ("/made_of/seed", json!(8)),
        ("/teams", json!([])),
        ("/teams/0/state/id", json!("other")),
        ("/teams/0/state/users", Value::Null),
        ("/teams/0/billing/0/raw", Value::Null),
        ("/clock", json!("now")),
    ] {
        let mut wrong = state.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        let refused = visitor.own("PUT", "/state", &wrong).await;
        assert_eq!(refused.refusal(), (400, "invalid-request".to_owned()), "{place}");
    }
    assert_eq!(seen(&visitor).await, before);
    assert!(matches!(Saved::parse(b"{}"), Err(SavedError::Unreadable(_))));
    let mut newer = state.clone();
    newer["format"] = json!(2);
    assert_eq!(Saved::parse(newer.to_string().as_bytes()), Err(SavedError::Format(2)));
    let saved = Saved::parse(state.to_string().as_bytes()).unwrap();
    let other = SandboxConfig { seed: 8, ..saved.config() };
    assert!(matches!(Sandbox::start(other).await, Err(SandboxError::Saved(SavedError::OtherData))));
}

#[tokio::test]
async fn the_clock_is_moved_and_sped_up_by_requests() {
    let visitor = Visitor::of(small()).await;
    let clock = async |change: Value| visitor.own("POST", "/clock", &change).await.with(200);
    assert_eq!(visitor.own("GET", "/clock", &Value::Null).await.with(200)["now"], "2026-11-20T13:00:00Z");
    assert_eq!(clock(json!({"advanceSeconds": 90})).await["now"], "2026-11-20T13:01:30Z");
    assert_eq!(clock(json!({"now": "2027-01-01T00:00:00Z"})).await["unixNano"], 1_798_761_600_000_000_000_i64);
    assert_eq!(visitor.own("POST", "/clock", &json!({"now": "noon"})).await.refusal().0, 400);
    assert_eq!(visitor.own("POST", "/clock", &json!({"later": 1})).await.refusal().0, 400);
    assert_eq!(clock(json!({"speed": 1_000_000})).await["speed"], 1_000_000);
    let first = clock(json!({})).await["unixNano"].as_i64().unwrap();
    assert!(clock(json!({})).await["unixNano"].as_i64().unwrap() > first);
}

#[tokio::test]
async fn faults_by_rule_befall_documented_paths_alone() {
    let visitor = Visitor::of(small()).await;
    let rules = json!({"rules": [
        {"path": "/history", "times": 1, "fault": {"status": {"status": 503, "retry_after": "1"}}},
        {"path": "/devices", "every": 2, "fault": "html"},
    ]});
    assert_eq!(visitor.own("PUT", "/faults", &rules).await.with(200)["rules"].as_array().unwrap().len(), 2);
    let first = visitor.get("/history").await;
    assert_eq!((first.status, first.header("retry-after")), (503, Some("1")));
    assert_eq!(visitor.get("/history").await.status, 200);
    for kind in ["application/json", "text/html", "application/json"] {
        assert_eq!(visitor.get("/devices").await.header("content-type"), Some(kind));
    }
    visitor.own("PUT", "/faults", &json!({"rules": []})).await.with(200);
    assert_eq!(visitor.get("/devices").await.header("content-type"), Some("application/json"));
    assert_eq!(visitor.own("PUT", "/faults", &json!({"rules": [{"fault": "flood"}]})).await.refusal().0, 400);
}

#[test]
fn a_sandbox_is_saved_however_it_is_told_to_stop() {
    let place = tempfile::tempdir().unwrap();
    for signal in ["INT", "TERM"] {
        let file = place.path().join(signal);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_annals"));
        command
            .args(["sandbox", "--json", "--teams", "1", "--days", "1", "--sessions-per-day", "5", "--save"])
            .arg(&file);
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert!(child.wait().unwrap().success(), "{signal}");
        assert!(Saved::parse(&std::fs::read(&file).unwrap()).is_ok(), "{signal}");
    }
}
