//! Saving and loading of a sandbox, its clock, and fault rules.

use crate::common;

use std::io::BufRead as _;

use annals::model::Stream;
use annals::sandbox::{Sandbox, SandboxConfig, SandboxError, Saved, SavedError};
use common::sandbox_client::{SandboxClient, small};
use serde_json::{Value, json};

/// All answers about the first team, and its truth.
async fn seen(client: &SandboxClient) -> Vec<Value> {
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
        all.push(client.get(path).await.json());
    }
    let truth = |stream| client.sandbox.handle.truth(client.team(), stream).map(|event| format!("{event:?}"));
    all.push(json!(Stream::ALL.map(|stream| truth(stream).collect::<Vec<_>>())));
    all
}

/// Makes every kind of change that a file must hold.
async fn change(client: &SandboxClient) {
    let devices = client.sandbox.handle.devices(client.team());
    let users = client.get("/users").await.json()["users"].clone();
    let user = users[0]["id"].as_str().unwrap();
    client.send("DELETE", &format!("/device/{}", devices[0]), &Value::Null).await.with(200);
    client.send("PUT", &format!("/device/{}/members", devices[1]), &json!({"users": [user]})).await.with(201);
    client.send("POST", "/group", &json!({"name": "saved"})).await.with(201);
    let team = client.team();
    let path = format!("/team/{team}/device/{}/connect", devices[1]);
    client.own("POST", &path, &json!({"userID": user, "open": true})).await.with(201);
    client.own("PATCH", "/choices", &json!({"default_limit": 7, "error_shape": "nested"})).await.with(200);
    let rules = json!({"rules": [
        {"path": "/nothing", "fault": "reset"},
        {"path": "/urls", "times": 1, "fault": {"status": {"status": 503}}},
    ]});
    client.own("PUT", "/faults", &rules).await.with(200);
    assert_eq!(client.get(&format!("/device/{}/urls", devices[1])).await.status, 503);
    client.own("PUT", &format!("/team/{team}/deletion"), &json!({"inSeconds": 60})).await.with(200);
    let migration = format!("/team/{team}/user/{user}/migration");
    client.own("PUT", &migration, &json!({"devices": ["old"]})).await.with(200);
    let (from, end) =
        (client.sandbox.handle.end().minus(std::time::Duration::from_secs(90_000)), client.sandbox.handle.end());
    assert!(client.sandbox.handle.withdraw(team, Stream::Activity, from, end) > 0);
}

#[tokio::test]
async fn a_loaded_sandbox_continues_where_it_was_saved() {
    let client = SandboxClient::of(small()).await;
    change(&client).await;
    let text = client.get_as(&client.sandbox.admin_token, "/sandbox/state").await.body;
    let before = seen(&client).await;
    let saved = Saved::parse(&text).unwrap();
    assert_eq!(serde_json::to_value(client.sandbox.handle.saved()).unwrap(), serde_json::to_value(&saved).unwrap());
    let other = SandboxClient::of(saved.config()).await;
    assert_eq!(seen(&other).await, before);
    let choices = client.own("GET", "/choices", &Value::Null).await.json();
    assert_eq!(other.own("GET", "/choices", &Value::Null).await.json(), choices);
    assert_eq!(other.own("GET", "/faults", &Value::Null).await.json()["rules"].as_array().unwrap().len(), 2);
    let device = other.sandbox.handle.devices(other.team())[0].clone();
    assert_eq!(other.get(&format!("/device/{device}/urls")).await.status, 200, "a saved fault rule keeps its counter");

    // Restore the state over HTTP after more changes.
    client.send("POST", "/group", &json!({"name": "after"})).await.with(201);
    client.sandbox.handle.advance(std::time::Duration::from_secs(3_600));
    assert_ne!(seen(&client).await, before);
    let state: Value = serde_json::from_slice(&text).unwrap();
    client.own("PUT", "/state", &state).await.with(200);
    assert_eq!(seen(&client).await, before);
}

#[tokio::test]
async fn a_loaded_sandbox_keeps_the_counters_of_the_rate_limit() {
    let client = SandboxClient::of(small()).await;
    client.own("PATCH", "/choices", &json!({"requests_per_minute": 3})).await.with(200);
    let ask = async |client: &SandboxClient| client.get("/devices?name=x").await;
    assert_eq!((ask(&client).await.status, ask(&client).await.status), (200, 200));
    let state = client.own("GET", "/state", &Value::Null).await.with(200);
    let saved = Saved::parse(state.to_string().as_bytes()).unwrap();
    let other = SandboxClient::of(saved.config()).await;
    client.own("PATCH", "/choices", &json!({"requests_per_minute": null})).await.with(200);
    ask(&client).await.with(200);
    client.own("PUT", "/state", &state).await.with(200);
    for client in [&client, &other] {
        assert_eq!(ask(client).await.status, 200, "the third of the minute");
        let refused = ask(client).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")));
        client.sandbox.handle.advance(std::time::Duration::from_secs(60));
        assert_eq!(ask(client).await.status, 200, "another minute");
    }
}

#[test]
fn the_command_explains_a_file_that_it_cannot_load() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("newer.json");
    let write = |text: &str| std::io::Write::write_all(&mut std::fs::File::create(&file).unwrap(), text.as_bytes());
    for (text, said) in [
        (r#"{"format": 7, "saved_by": "4.0.0"}"#, "format 7, saved by annals 4.0.0"),
        (r#"{"format": 2}"#, "cannot be read as a saved sandbox: missing field"),
        ("[]", "cannot be read as a saved sandbox: it has no format"),
        ("no", "cannot be read as a saved sandbox"),
    ] {
        write(text).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_annals"));
        let outcome = command.args(["sandbox", "--load"]).arg(&file).output().unwrap();
        let errors = String::from_utf8(outcome.stderr).unwrap();
        assert!(!outcome.status.success() && errors.contains(said), "{errors}");
    }
}

#[tokio::test]
async fn a_foreign_saved_sandbox_is_refused_and_changes_nothing() {
    let client = SandboxClient::of(small()).await;
    let state = serde_json::to_value(client.sandbox.handle.saved()).unwrap();
    let before = seen(&client).await;
    for (place, value) in [
        ("/format", json!(3)),
        ("/format", json!(1)),
        ("/format", json!(0)),
        ("/format", Value::Null),
        ("/minute/number", json!("now")),
        ("/made_of/seed", json!(8)),
        ("/teams", json!([])),
        ("/teams/0/state/id", json!("other")),
        ("/teams/0/state/users", Value::Null),
        ("/teams/0/billing/0/raw", Value::Null),
        ("/clock", json!("now")),
    ] {
        let mut wrong = state.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        let refused = client.own("PUT", "/state", &wrong).await;
        assert_eq!(refused.refusal(), (400, "invalid-request".to_owned()), "{place}");
    }
    assert_eq!(seen(&client).await, before);
    assert!(matches!(Saved::parse(b"{}"), Err(SavedError::Unreadable(_))));
    // A file of another format may have any fields; the error still explains what to do.
    let newer = json!({"format": 3, "saved_by": "9.1.0", "all": "else"});
    let refused = Saved::parse(newer.to_string().as_bytes()).unwrap_err();
    assert_eq!(refused, SavedError::Format { format: 3, saved_by: Some("9.1.0".to_owned()) });
    let said = refused.to_string();
    assert!(said.contains("format 3, saved by annals 9.1.0") && said.contains("reads format 2: load it"), "{said}");
    let saved = Saved::parse(state.to_string().as_bytes()).unwrap();
    let other = SandboxConfig { seed: 8, ..saved.config() };
    assert!(matches!(Sandbox::start(other).await, Err(SandboxError::Saved(SavedError::OtherData))));
}

#[tokio::test]
async fn the_clock_is_moved_and_sped_up_by_requests() {
    let client = SandboxClient::of(small()).await;
    let clock = async |change: Value| client.own("POST", "/clock", &change).await.with(200);
    assert_eq!(client.own("GET", "/clock", &Value::Null).await.with(200)["now"], "2026-11-20T13:00:00Z");
    assert_eq!(clock(json!({"advanceSeconds": 90})).await["now"], "2026-11-20T13:01:30Z");
    assert_eq!(clock(json!({"now": "2027-01-01T00:00:00Z"})).await["unixNano"], 1_798_761_600_000_000_000_i64);
    assert_eq!(client.own("POST", "/clock", &json!({"now": "noon"})).await.refusal().0, 400);
    assert_eq!(client.own("POST", "/clock", &json!({"later": 1})).await.refusal().0, 400);
    assert_eq!(clock(json!({"speed": 1_000_000})).await["speed"], 1_000_000);
    let first = clock(json!({})).await["unixNano"].as_i64().unwrap();
    assert!(clock(json!({})).await["unixNano"].as_i64().unwrap() > first);
}

#[tokio::test]
async fn fault_rules_affect_only_documented_paths() {
    let client = SandboxClient::of(small()).await;
    let rules = json!({"rules": [
        {"path": "/history", "times": 1, "fault": {"status": {"status": 503, "retry_after": "1"}}},
        {"path": "/devices", "every": 2, "fault": "html"},
    ]});
    assert_eq!(client.own("PUT", "/faults", &rules).await.with(200)["rules"].as_array().unwrap().len(), 2);
    let first = client.get("/history").await;
    assert_eq!((first.status, first.header("retry-after")), (503, Some("1")));
    assert_eq!(client.get("/history").await.status, 200);
    for kind in ["application/json", "text/html", "application/json"] {
        assert_eq!(client.get("/devices").await.header("content-type"), Some(kind));
    }
    client.own("PUT", "/faults", &json!({"rules": []})).await.with(200);
    assert_eq!(client.get("/devices").await.header("content-type"), Some("application/json"));
    assert_eq!(client.own("PUT", "/faults", &json!({"rules": [{"fault": "flood"}]})).await.refusal().0, 400);
}

#[test]
fn a_sandbox_is_saved_on_every_kind_of_stop() {
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
