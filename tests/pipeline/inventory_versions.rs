//! The program against a sandbox whose members join and leave: the views of a day equal the service's answers on that
//! day.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use annals::model::Instant;
use annals::sandbox::SandboxConfig;
use common::sandbox_client::{SandboxClient, small};
use serde_json::{Value, json};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);

fn config() -> SandboxConfig {
    SandboxConfig {
        teams: 1,
        days: 2,
        days_ahead: 50,
        sessions_per_day: 10,
        people_per_team: 6,
        computers_per_team: 5,
        dense_every_days: 0,
        ..small()
    }
}

/// The program with its own archive, and the runtime of its sandbox.
async fn annals(client: &SandboxClient, home: &Path, token: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command
        .args(arguments)
        .current_dir(home)
        .env("ANNALS_TOKEN", token)
        .env("ANNALS_BASE_URL", &client.sandbox.base_url)
        .env("ANNALS_ARCHIVE", home.join("archive"))
        .env("ANNALS_REQUESTS_PER_SECOND", "0")
        .env_remove("ANNALS_CONFIG")
        .env_remove("ANNALS_TOKEN_FILE");
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

async fn sync(client: &SandboxClient, home: &Path, token: &str) {
    let run = annals(client, home, token, &["sync"]).await;
    // After days without a reading, more than ten billing entries may have come. This gap is not part of the test.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&run.stderr));
}

async fn sql(client: &SandboxClient, home: &Path, query: &str) -> Value {
    let run = annals(client, home, "x", &["sql", query, "--format", "json"]).await;
    assert_eq!(run.status.code(), Some(0), "{query}: {}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

fn sorted(mut rows: Vec<Value>) -> Value {
    rows.sort_by_key(ToString::to_string);
    Value::from(rows)
}

fn texts<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    of[name].as_array().into_iter().flatten().map(|text| text.as_str().unwrap())
}

/// The service's current users, memberships and grants.
async fn served(client: &SandboxClient) -> [Value; 3] {
    let users = client.get("/users").await.json();
    let users = users["users"].as_array().unwrap().iter();
    let users = users.map(|user| json!({"user_id": user["id"], "email": user["email"], "role": user["role"]}));
    let team = client.get("").await.json();
    let mut memberships = Vec::new();
    for (id, group) in team["groups"].as_object().unwrap() {
        for (kind, name) in [("user", "users"), ("computer", "devices")] {
            memberships.extend(
                texts(group, name).map(|member| json!({"group_id": id, "member_kind": kind, "member_id": member})),
            );
        }
    }
    let computers = client.get("/devices").await.json();
    let mut grants = Vec::new();
    for computer in computers["devices"].as_array().unwrap() {
        for (kind, name) in [("user", "users"), ("group", "groups")] {
            let grant = |id| json!({"device_id": computer["id"], "grantee_kind": kind, "grantee_id": id});
            grants.extend(texts(computer, name).map(grant));
        }
    }
    [sorted(users.collect()), sorted(memberships), sorted(grants)]
}

const VIEWS: [(&str, &str); 3] = [
    ("inventory_users", "user_id, email, role"),
    ("inventory_memberships", "group_id, member_kind, member_id"),
    ("inventory_grants", "device_id, grantee_kind, grantee_id"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_views_of_a_day_equal_the_service_s_answers() {
    let client = SandboxClient::of(config()).await;
    let home = TempDir::new().unwrap();
    let mut days = Vec::new();
    for _ in 0..7 {
        sync(&client, home.path(), &client.sandbox.read_only_token).await;
        days.push((client.sandbox.handle.now(), served(&client).await));
        client.sandbox.handle.advance(DAY * 6);
    }
    assert!(days.windows(2).any(|pair| pair[0].1[0] != pair[1].1[0]), "no member joined or left");
    // The inventory is read after the streams, so within minutes of the day's moment.
    let moment = |(now, _): &(Instant, _)| {
        let at = now.plus(Duration::from_secs(600)).to_string();
        format!("(timestamp '{}')", at.trim_end_matches('Z').replace('T', " "))
    };
    let moments: Vec<String> = days.iter().map(moment).collect();
    for (place, (view, columns)) in VIEWS.iter().enumerate() {
        let query = format!(
            "select moment::varchar as moment, {columns} from (values {}) days(moment) join {view} \
             on valid_from <= moment and (valid_to is null or moment < valid_to)",
            moments.join(", ")
        );
        let Value::Array(rows) = sql(&client, home.path(), &query).await else { panic!("no list of rows") };
        for (moment, (_, served)) in moments.iter().zip(&days) {
            let of_day = rows.iter().filter(|row| moment.contains(row["moment"].as_str().unwrap())).cloned();
            let without_day = of_day.map(|mut row| {
                row.as_object_mut().unwrap().remove("moment");
                row
            });
            assert_eq!(sorted(without_day.collect()), served[place], "{view} as of {moment}");
        }
    }
    let scans =
        sql(&client, home.path(), "select part, count(*)::int as n from inventory_reads where visible group by 1")
            .await;
    assert!(scans.as_array().unwrap().iter().all(|row| row["n"].as_i64().unwrap() >= 7), "{scans}");
    // Activity shows everyone who joined, about the time of a reading.
    let question = "select count(*)::int as n from inventory_users u semi join activity a on a.event_type = 'teamUserAddedEvent' \
                and json_extract_string(a.payload, '$.userID') = u.user_id and a.event_time <= u.valid_from";
    let came = sql(&client, home.path(), question).await;
    assert!(came[0]["n"].as_i64().unwrap() > 0, "{came}");
    assert_eq!(annals(&client, home.path(), "x", &["verify"]).await.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_that_a_member_s_token_sees_less() {
    let client = SandboxClient::of(config()).await;
    let home = TempDir::new().unwrap();
    sync(&client, home.path(), &client.sandbox.read_only_token).await;
    client.sandbox.handle.advance(DAY);
    sync(&client, home.path(), &client.sandbox.member_token).await;
    let groups =
        sql(&client, home.path(), "select count(*)::int as n from inventory_groups where valid_to is null").await;
    assert!(groups[0]["n"].as_i64().unwrap() > 0, "groups that are not shown are not gone");
    let limited = sql(&client, home.path(), "select limited_view from inventory_team where valid_to is null").await;
    assert_eq!(limited, json!([{"limited_view": true}]));
    let status = annals(&client, home.path(), "x", &["status"]).await;
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(text.contains("the token may not see sso_users, groups, memberships"), "{text}");
    assert!(text.contains("inventory") && text.contains(" computers, "), "{text}");
}
