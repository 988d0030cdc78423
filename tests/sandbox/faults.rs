//! Every fault that a hook can cause, from the view of a client.

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::sandbox::{Fault, RequestInfo, SandboxConfig};

use common::sandbox_client::{Reply, SandboxClient, small};

const PATH: &str = "/history?limit=50";

/// The answer to a request with the fault, and the next answer.
async fn befallen(fault: Fault) -> (Result<Reply, reqwest::Error>, Reply) {
    let client = SandboxClient::of(small()).await;
    let waiting = Mutex::new(Some(fault));
    client.sandbox.handle.set_faults(Some(Arc::new(move |_: &RequestInfo| waiting.lock().unwrap().take())));
    let path = format!("/v1/team/{}{PATH}", client.team());
    let first = client.try_send("GET", &client.sandbox.admin_token, &path).await;
    (first, client.get(PATH).await)
}

#[tokio::test]
async fn a_status_comes_with_its_retry_after_and_a_body_with_a_code() {
    for (status, retry_after) in [(429, Some("7")), (503, Some("Fri, 20 Nov 2026 13:00:09 GMT")), (500, None)] {
        let retry_after = retry_after.map(ToOwned::to_owned);
        let (first, second) = befallen(Fault::Status { status, retry_after: retry_after.clone() }).await;
        let first = first.unwrap();
        assert_eq!(first.refusal(), (status, "injected-fault".to_owned()));
        assert_eq!(first.header("retry-after"), retry_after.as_deref());
        assert_eq!(second.status, 200);
    }
}

#[tokio::test]
async fn a_body_is_truncated_or_cut_short() {
    let (first, second) = befallen(Fault::Truncate).await;
    let first = first.unwrap();
    assert_eq!(first.status, 200);
    assert_eq!(first.body, second.body[..second.body.len() / 2]);
    assert!(serde_json::from_slice::<serde_json::Value>(&first.body).is_err());

    let (first, second) = befallen(Fault::CutShort).await;
    let failure = first.err().unwrap();
    assert!(failure.is_body() || failure.is_decode(), "{failure:?}");
    assert_eq!(second.page().events.len(), 50);
}

#[tokio::test]
async fn a_reset_connection_gives_no_answer() {
    let (first, second) = befallen(Fault::Reset).await;
    let failure = first.err().unwrap();
    assert!(failure.is_request() && failure.status().is_none(), "{failure:?}");
    assert_eq!(second.page().events.len(), 50);
}

#[tokio::test]
async fn other_bodies_come_with_status_200() {
    let first = befallen(Fault::Html).await.0.unwrap();
    assert_eq!((first.status, first.header("content-type")), (200, Some("text/html")));
    assert!(first.body.starts_with(b"<!doctype html>"));
    let first = befallen(Fault::Body { content_type: "application/json", body: "null" }).await.0.unwrap();
    assert_eq!((first.status, first.header("content-type")), (200, Some("application/json")));
    assert_eq!(first.body, b"null");
}

#[tokio::test]
async fn a_delayed_answer_is_correct_otherwise() {
    let (first, second) = befallen(Fault::Delay(Duration::from_millis(30))).await;
    assert_eq!(first.unwrap().body, second.body);
}

#[tokio::test]
async fn a_hook_sees_each_request_and_may_change_the_data_between_pages() {
    let seen: Arc<Mutex<Vec<RequestInfo>>> = Arc::default();
    let log = Arc::clone(&seen);
    let hook = move |request: &RequestInfo| {
        log.lock().unwrap().push(request.clone());
        None
    };
    let client = SandboxClient::of(SandboxConfig { faults: Some(Arc::new(hook)), ..small() }).await;
    client.get("/history?limit=3&offset=6").await;
    client.get_as("", "/v1/user/teams").await;
    let requests = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].path, format!("/v1/team/{}/history", client.team()));
    assert_eq!((requests[0].method.as_str(), requests[0].query.as_str()), ("GET", "limit=3&offset=6"));
    assert_eq!(client.sandbox.handle.requests(), 2);

    let (handle, team) = (client.sandbox.handle.clone(), client.team().clone());
    let device = handle.devices(&team)[0].clone();
    let remove = device.clone();
    client.sandbox.handle.set_faults(Some(Arc::new(move |request: &RequestInfo| {
        if request.query.contains("offset=100") {
            handle.remove_device(&team, &remove);
        }
        None
    })));
    let path = "/history/devices?desc=false&limit=100";
    let first = client.get(&format!("{path}&offset=0")).await.page();
    let second = client.get(&format!("{path}&offset=100")).await.page();
    assert!(first.events.iter().any(|text| text.contains(device.as_str())));
    assert!(!second.events.iter().any(|text| text.contains(device.as_str())));
}

#[tokio::test]
async fn the_plans_span_can_hide_older_connections() {
    let span = Duration::from_secs(2 * 86_400);
    let client = SandboxClient::of(SandboxConfig { plan_span: Some(span), ..small() }).await;
    client.own("PATCH", "/choices", &serde_json::json!({"enforce_plan_span": true})).await.with(200);
    let earliest = client.sandbox.handle.now().minus(span);
    let all = SandboxClient::of(small()).await.walk("/history/devices?desc=false", 1001).await;
    let left = client.walk("/history/devices?desc=false", 1001).await;
    assert!(!left.is_empty() && left.len() < all.len() && all.ends_with(&left));
    let oldest: serde_json::Value = serde_json::from_str(&left[0]).unwrap();
    assert!(oldest["timestamp"].as_i64().unwrap() * 1_000_000 >= earliest.nanos());
    assert_eq!(client.get("").await.json()["planFeatures"]["deviceEventsMaxRetrievalDuration"], 2 * 86_400);
}
