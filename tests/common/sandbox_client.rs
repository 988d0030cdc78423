//! A plain HTTP client of the sandbox, independent of the program's own.

use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The time of the tests' sandboxes; a Friday.
pub const NOW: &str = "2026-11-20T13:00:00Z";

pub struct SandboxClient {
    pub sandbox: RunningSandbox,
    client: reqwest::Client,
}

pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body of a success with this status.
    pub fn with(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The status, and the code in the error body.
    pub fn refusal(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap().to_owned())
    }

    /// The texts of the events in a page of any of the four listings, and its paging fields.
    pub fn page(&self) -> PageSeen {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let page: Page = serde_json::from_slice(&self.body).unwrap();
        let events = page.events.or(page.device_events).unwrap();
        PageSeen {
            events: events.iter().map(|raw| raw.get().to_owned()).collect(),
            more: page.has_more_events,
            next: page.next_offset,
        }
    }
}

pub struct PageSeen {
    pub events: Vec<String>,
    pub more: Option<bool>,
    pub next: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Page {
    events: Option<Vec<Box<RawValue>>>,
    device_events: Option<Vec<Box<RawValue>>>,
    has_more_events: Option<bool>,
    next_offset: Option<u64>,
}

/// A small sandbox whose clock shows [`NOW`].
pub fn small() -> SandboxConfig {
    SandboxConfig {
        seed: 7,
        days: 6,
        sessions_per_day: 60,
        now: Some(NOW.parse().unwrap()),
        dense_every_days: 2,
        ..SandboxConfig::default()
    }
}

impl SandboxClient {
    pub async fn of(config: SandboxConfig) -> Self {
        let redirect = reqwest::redirect::Policy::none();
        // The builder needs a TLS provider even for plain http; a second installation changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(redirect).no_proxy().build().unwrap();
        Self { sandbox: Sandbox::start(config).await.unwrap(), client }
    }

    /// The first team.
    pub fn team(&self) -> &annals::model::TeamId {
        &self.sandbox.teams[0]
    }

    /// Requests a path under the first team, as the admin.
    pub async fn get(&self, path: &str) -> Reply {
        self.get_as(&self.sandbox.admin_token, &format!("/v1/team/{}{path}", self.team())).await
    }

    /// Requests a whole path; an empty token sends no `Authorization`.
    pub async fn get_as(&self, token: &str, path: &str) -> Reply {
        self.try_send("GET", token, path).await.unwrap()
    }

    /// Requests a path under the first team with a JSON body, as the admin.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send_as(&self.sandbox.admin_token, method, &format!("/v1/team/{}{path}", self.team()), body).await
    }

    /// Sends one of the sandbox's own requests, as the admin.
    pub async fn own(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send_as(&self.sandbox.admin_token, method, &format!("/sandbox{path}"), body).await
    }

    /// Requests a whole path with a JSON body; null sends no body.
    pub async fn send_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Reply {
        let url = format!("{}{path}", self.sandbox.base_url);
        let mut request = self.client.request(method.parse().unwrap(), url);
        request = request.header("authorization", format!("Bearer {token}"));
        if !body.is_null() {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    pub async fn try_send(&self, method: &str, token: &str, path: &str) -> Result<Reply, reqwest::Error> {
        let url = format!("{}{path}", self.sandbox.base_url);
        let mut request = self.client.request(method.parse().unwrap(), url);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Reply { status, headers, body: response.bytes().await?.to_vec() })
    }

    /// Reads all events of a listing page by page: by the paging fields if there are any, otherwise until an empty
    /// page.
    pub async fn walk(&self, path: &str, limit: usize) -> Vec<String> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut events = Vec::new();
        loop {
            let page = self.get(&format!("{path}{separator}limit={limit}&offset={}", events.len())).await.page();
            let empty = page.events.is_empty();
            events.extend(page.events);
            match page.more {
                Some(true) => assert_eq!(page.next, Some(events.len() as u64)),
                Some(false) => return events,
                None if empty => return events,
                None => {}
            }
        }
    }
}
