//! A rehearsal over HTTP: people and computers are added and connect, and a request removes a computer. The
//! service then has no history of the computer. The archive still has it, and shows when and by whom the computer was
//! removed.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use annals::sandbox::SandboxConfig;
use common::sandbox_client::{SandboxClient, small};
use serde_json::{Value, json};

struct Reader<'a> {
    client: &'a SandboxClient,
    home: &'a Path,
}

impl Reader<'_> {
    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.args(arguments).current_dir(self.home).env_clear();
        command.env("ANNALS_BASE_URL", &self.client.sandbox.base_url).env("ANNALS_ARCHIVE", "archive");
        command.env("ANNALS_TOKEN", &self.client.sandbox.read_only_token).env("ANNALS_REQUESTS_PER_SECOND", "0");
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    async fn sync(&self) -> Option<i32> {
        let output = self.run(&["sync"]).await;
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 3)), "{code:?}: {}", String::from_utf8_lossy(&output.stderr));
        code
    }

    /// The output, one JSON object a line; exit code 3 means that the period has a gap.
    async fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(&[arguments, &["--format", "ndjson"]].concat()).await;
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A person joins, a computer is added, and the person connects to it.
async fn arrive_and_connect(client: &SandboxClient) -> (String, String) {
    let own = async |path: &str, body: Value| {
        client.own("POST", &format!("/team/{}{path}", client.team()), &body).await.with(201)
    };
    let group = client.send("POST", "/group", &json!({"name": "story"})).await.with(201);
    let invite = json!({"sendTo": "mara@story.example", "groups": [group["id"]]});
    let invite = client.send("POST", "/invite/user", &invite).await.with(201);
    let person = own("/join", json!({"secret": invite["secret"], "firstName": "Mara"})).await;
    let installer = client.send("POST", "/invite/device", &json!({"groups": [group["id"]]})).await.with(201);
    let computer = own("/install", json!({"secret": installer["secret"], "name": "story-1"})).await;
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    let connect = json!({"userID": person["id"], "seconds": 30});
    own(&format!("/device/{}/connect", id(&computer)), connect).await;
    (id(&computer), "mara@story.example".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_archive_keeps_the_history_of_a_removed_computer() {
    let client = SandboxClient::of(SandboxConfig { teams: 1, days: 2, dense_every_days: 0, ..small() }).await;
    let home = tempfile::tempdir().unwrap();
    let reader = Reader { client: &client, home: home.path() };
    let (device, email) = arrive_and_connect(&client).await;
    assert_eq!(reader.sync().await, Some(0));

    client.sandbox.handle.advance(Duration::from_secs(1_200));
    let admin = client.get("/users").await.json()["users"][0]["email"].clone();
    client.send("DELETE", &format!("/device/{device}"), &Value::Null).await.with(200);
    let upstream = client.get(&format!("/history/devices?ids={device}")).await.json();
    assert_eq!(upstream["deviceEvents"], json!([]), "upstream history is gone");
    client.sandbox.handle.advance(Duration::from_secs(300));
    reader.sync().await;

    let query =
        format!("select event_type, peer_email from connections where device_id = '{device}' order by event_time");
    let kept = reader.rows(&["sql", &query]).await;
    assert_eq!(kept.len(), 5, "the archive still answers: {kept:?}");
    assert!(kept.iter().all(|row| row["peer_email"] == email.as_str()));
    let query = format!("select outcome from sessions where device_id = '{device}'");
    assert_eq!(reader.rows(&["sql", &query]).await, [json!({"outcome": "ended"})]);
    let period = ["--from", "2026-11-20", "--to", "2026-11-21", "--tz", "UTC"];
    let changes = reader.rows(&[&["report", "run", "R20"][..], &period[..]].concat()).await;
    let find = |kind: &str| changes.iter().find(|row| row["event_type"] == kind).unwrap_or_else(|| panic!("{kind}"));
    let removed = changes
        .iter()
        .find(|row| row["target_ids"] == device.as_str() && row["event_type"] == "teamDeviceRemovedEvent");
    let removed = removed.unwrap_or_else(|| panic!("{changes:?}"));
    assert_eq!(removed["actor"], admin, "by whom");
    assert!(removed["event_local"].as_str().unwrap().contains("13:20:00"), "when: {removed}");
    assert_eq!(removed["target"], "computer story-1");
    for kind in ["teamUserInvitedEvent", "teamUserAddedEvent", "teamDeviceAddedEvent", "teamGroupCreatedEvent"] {
        find(kind);
    }
    let ledger = client.get("/billing/events").await.json();
    assert!(ledger["events"][0]["event"].get("usersAddedEvent").is_some());
    assert!(reader.run(&["verify"]).await.status.success());
}
