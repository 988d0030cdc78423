//! Checks the running sandbox against the interface's document, table by table. Each case is named after its row or
//! rule. The rules' own module has more cases without a server.

#![allow(clippy::print_stdout, reason = "a failed test shows the row")]

use crate::common;

mod endpoints;
mod fields;
mod limits;
mod people;
mod records;
mod resources;
mod rights;
mod rules;
mod states;

use annals::sandbox::SandboxConfig;
use common::sandbox_client::{Reply, SandboxClient, small};
use serde_json::{Value, json};

/// An empty body, of a request or of an answer.
const NONE: Value = Value::Null;

fn row(name: &str) {
    println!("row: {name}");
}

fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// The fields of an answer.
fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

struct Scene {
    client: SandboxClient,
    /// A group without and a group with an identity provider, two computers, and the first two ordinary users.
    group: String,
    managed: String,
    devices: Vec<String>,
    users: Vec<String>,
}

impl Scene {
    async fn new() -> Self {
        // The command has the same setting.
        let client = SandboxClient::of(SandboxConfig { odd_events: false, ..small() }).await;
        let team = client.get("").await.json();
        let groups = team["groups"].as_object().unwrap();
        let of = |scim: bool| groups.iter().find(|(_, held)| held["scimManaged"] == scim).unwrap().0.clone();
        let (group, managed) = (of(false), of(true));
        let listed = client.get("/devices").await.json();
        let devices = listed["devices"].as_array().unwrap()[2..4].iter().map(id_of).collect();
        let listed = client.get("/users").await.json();
        let plain = listed["users"].as_array().unwrap().iter().filter(|user| user["role"] == "user");
        let users = plain.take(2).map(id_of).collect();
        Self { client, group, managed, devices, users }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Reply {
        self.client.send(method, path, &body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, NONE).await.with(200)
    }

    /// One of the sandbox's own requests about the team.
    async fn own(&self, method: &str, path: &str, body: Value) -> Reply {
        self.client.own(method, &format!("/team/{}{path}", self.client.team()), &body).await
    }

    async fn refused(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        self.send(method, path, body).await.refusal()
    }

    /// The types of the newest activity events, newest first.
    async fn newest_events(&self, limit: usize) -> Vec<String> {
        let page = self.get(&format!("/history?desc=true&limit={limit}")).await;
        let name = |event: &Value| names(event).into_iter().find(|name| *name != "header").unwrap().to_owned();
        page["events"].as_array().unwrap().iter().map(name).collect()
    }
}

/// Every row of every table of the document, and every numbered rule, one a line, in the document's order.
const DOCUMENT: &str = include_str!("document/rows.txt");

#[test]
fn every_row_of_the_document_has_a_case_named_after_it() {
    let cases = [
        include_str!("document/endpoints.rs"),
        include_str!("document/limits.rs"),
        include_str!("document/records.rs"),
        include_str!("document/resources.rs"),
        include_str!("document/rules.rs"),
        include_str!("document/states.rs"),
    ];
    let has_case = |row: &str| cases.iter().any(|text| text.contains(&format!("\"{row}\"")));
    let without: Vec<&str> = DOCUMENT.lines().filter(|row| !has_case(row)).collect();
    assert_eq!(without, [""; 0]);
    assert!(DOCUMENT.lines().count() > 180);
}

fn error(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}
