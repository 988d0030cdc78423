//! The sandbox over HTTP: its endpoints and their rules.

use crate::common;

use std::collections::HashSet;

use annals::model::Stream;
use annals::sandbox::{SECRET_PREFIX, SandboxConfig};
use serde_json::Value;

use common::sandbox_client::{SandboxClient, small};

fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_teams_of_a_token_are_an_array_of_ids() {
    let client = SandboxClient::of(SandboxConfig { teams: 3, ..small() }).await;
    for token in [&client.sandbox.admin_token, &client.sandbox.read_only_token] {
        let teams = client.get_as(token, "/v1/user/teams").await.json();
        let expected: Vec<&str> = client.sandbox.teams.iter().map(annals::model::TeamId::as_str).collect();
        assert_eq!(teams, serde_json::json!(expected));
    }
    assert_eq!(client.sandbox.teams.iter().collect::<HashSet<_>>().len(), 3);
}

#[tokio::test]
async fn a_team_shows_its_plan_people_computers_and_secrets_to_admins_alone() {
    let client = SandboxClient::of(small()).await;
    let path = format!("/v1/team/{}", client.team());
    for token in [&client.sandbox.admin_token, &client.sandbox.read_only_token] {
        let team = client.get_as(token, &path).await.json();
        assert_eq!(team["id"], client.team().as_str());
        assert_eq!(team["planFeatures"]["deviceEventsMaxRetrievalDuration"], 90 * 86_400);
        assert_eq!(team["devices"].as_object().unwrap().len(), 40);
        assert!((25..=28).contains(&team["users"].as_object().unwrap().len()), "three come and go");
        let groups = team["groups"].as_object().unwrap();
        assert!(groups.values().any(|group| group["scimManaged"] == true && group["users"].is_array()));
        for list in ["userInvites", "deviceInvites"] {
            for invite in team[list].as_array().unwrap() {
                assert!(invite["secret"].as_str().unwrap().starts_with(SECRET_PREFIX), "{list}");
            }
        }
    }
    let limited = client.get_as(&client.sandbox.member_token, &path).await.json();
    let fields: HashSet<&str> = limited.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, HashSet::from(["id", "name", "avatarURL"]));
}

#[tokio::test]
async fn computers_are_listed_and_filtered_by_name_in_three_forms() {
    let client = SandboxClient::of(small()).await;
    let all = client.get("/devices").await.json();
    let computers = all["devices"].as_array().unwrap();
    assert_eq!(computers.len(), 40);
    let name = computers[0]["name"].as_str().unwrap();
    let (beginning, middle) = (&name[..name.len() - 1], &name[1..name.len() - 1]);
    let found = async |filter: &str| {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("name", filter).finish();
        ids(&client.get(&format!("/devices?{query}")).await.json()["devices"])
    };
    let first = computers[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(found(name).await, [first.as_str()]);
    assert_eq!(found(&name.to_lowercase()).await, [first.as_str()]);
    assert_eq!(found(beginning).await, [] as [&str; 0]);
    assert!(found(&format!("{beginning}*")).await.contains(&first));
    assert_eq!(found(&format!("{middle}*")).await.contains(&first), name.starts_with(middle));
    assert!(found(&format!("*{middle}*")).await.contains(&first));
    assert_eq!(found("nothing is called this").await, [] as [&str; 0]);
    let one = client.get(&format!("/device/{first}")).await.json();
    assert_eq!(one, computers[0]);
}

#[tokio::test]
async fn fields_without_a_value_are_left_out() {
    let client = SandboxClient::of(small()).await;
    fn check(value: &Value, path: &str) {
        match value {
            Value::Null => panic!("{path} is null"),
            Value::Array(items) => items.iter().for_each(|item| check(item, path)),
            Value::Object(fields) => fields.iter().for_each(|(key, item)| check(item, &format!("{path}.{key}"))),
            _ => {}
        }
    }
    for path in ["", "/devices", "/users", "/saml/users", "/billing/events", "/history/devices?limit=1001"] {
        check(&client.get(path).await.json(), path);
    }
    let computers = client.get("/devices").await.json();
    let without_groups = computers["devices"].as_array().unwrap().iter().filter(|seen| seen.get("groups").is_none());
    assert!(without_groups.count() > 0);
}

#[tokio::test]
async fn people_are_listed_and_found_by_their_whole_address() {
    let client = SandboxClient::of(small()).await;
    let all = client.get("/users").await.json();
    let people = all["users"].as_array().unwrap();
    assert!((25..=28).contains(&people.len()), "three come and go");
    let roles: HashSet<&str> = people.iter().map(|person| person["role"].as_str().unwrap()).collect();
    assert_eq!(roles, HashSet::from(["admin", "admin-read-only", "user"]));
    let email = people[3]["email"].as_str().unwrap();
    assert_eq!(client.get(&format!("/users?email={email}")).await.json()["users"], serde_json::json!([people[3]]));
    let part = &email[..email.len() - 1];
    assert_eq!(client.get(&format!("/users?email={part}")).await.json(), serde_json::json!({"users": []}));

    let sso = client.get("/saml/users").await.json();
    let known: HashSet<String> = ids(&all["users"]).into_iter().collect();
    assert!(!sso.as_array().unwrap().is_empty() && ids(&sso).iter().all(|id| known.contains(id)));
    let refused = client.get_as(&client.sandbox.member_token, &format!("/v1/team/{}/saml/users", client.team())).await;
    assert_eq!(refused.refusal(), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn authentication_info_tells_methods_and_tokens_but_no_profile() {
    let client = SandboxClient::of(small()).await;
    let person = client.get("/users").await.json()["users"][2].clone();
    let info = client.get(&format!("/user/{}/info", person["id"].as_str().unwrap())).await.json();
    assert_eq!(info["totp"]["enabled"], person["totpEnabled"]);
    assert!(info["authProviders"][0]["provider"].is_string());
    assert!(info["tokenLog"][0]["lastUsedIPAddress"].is_string());
    assert!(!info.to_string().contains(person["email"].as_str().unwrap()));
    assert_eq!(client.get("/user/nobody/info").await.refusal(), (404, "user-not-found".to_owned()));
}

#[tokio::test]
async fn billing_shows_the_ten_newest_entries_newest_first() {
    let client = SandboxClient::of(SandboxConfig { days: 40, ..small() }).await;
    let page = client.get("/billing/events").await.page();
    let mut truth: Vec<_> = client.sandbox.handle.truth(client.team(), Stream::Billing).collect();
    assert!(truth.len() > 10);
    assert_eq!(client.sandbox.handle.visible(client.team(), Stream::Billing), truth.len() as u64);
    truth.reverse();
    let newest: Vec<String> = truth[..10].iter().map(|event| String::from_utf8(event.raw.to_vec()).unwrap()).collect();
    assert_eq!(page.events, newest);
    assert_eq!((page.more, page.next), (None, None));
    for (text, event) in page.events.iter().zip(&truth) {
        let entry: Value = serde_json::from_str(text).unwrap();
        assert_eq!(entry["timestamp"], event.at.seconds());
        assert_eq!(entry["teamid"], client.team().as_str());
        assert_eq!(entry["event"].as_object().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_shown() {
    let client = SandboxClient::of(small()).await;
    let team = client.team().clone();
    for path in ["/v1/user/teams", "/v1/team/x", "/sandbox/truth/x/activity", "/nowhere", &format!("/v1/team/{team}")] {
        for token in ["", "wrong", &client.sandbox.admin_token[1..]] {
            let reply = client.get_as(token, path).await;
            assert_eq!(reply.refusal(), (401, "unauthorized".to_owned()), "{path} {token:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
}

#[tokio::test]
async fn a_read_only_token_makes_only_get_requests() {
    let client = SandboxClient::of(small()).await;
    let path = format!("/v1/team/{}/history", client.team());
    let send = async |method, token: &str| client.try_send(method, token, &path).await.unwrap();
    assert_eq!(send("GET", &client.sandbox.read_only_token).await.status, 200);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let refused = send(method, &client.sandbox.read_only_token).await;
        assert_eq!(refused.refusal(), (403, "forbidden".to_owned()), "{method}");
        let unknown = send(method, &client.sandbox.admin_token).await;
        assert_eq!(unknown.refusal(), (405, "method-not-allowed".to_owned()), "{method}");
    }
}

#[tokio::test]
async fn missing_things_are_404_and_invalid_requests_are_400() {
    let client = SandboxClient::of(small()).await;
    let device = client.sandbox.handle.devices(client.team())[0].clone();
    for path in
        ["", "/devices", "/users", "/saml/users", "/history", "/history/devices", "/billing/events", "/device/x"]
    {
        let reply = client.get_as(&client.sandbox.admin_token, &format!("/v1/team/unknown{path}")).await;
        assert_eq!(reply.refusal(), (404, "team-not-found".to_owned()), "{path}");
    }
    for path in ["/device/unknown", "/device/unknown/history"] {
        assert_eq!(client.get(path).await.refusal(), (404, "device-not-found".to_owned()), "{path}");
    }
    assert_eq!(client.get("/elsewhere").await.refusal(), (404, "not-found".to_owned()));
    for (path, code) in [
        ("/history?limit=1002".to_owned(), "limit-too-large"),
        ("/history/devices?limit=1002".to_owned(), "limit-too-large"),
        (format!("/device/{device}/history?limit=101"), "limit-too-large"),
        ("/history?limit=0".to_owned(), "invalid-parameter"),
        ("/device/%FF".to_owned(), "invalid-request"),
        ("/history?desc=maybe".to_owned(), "invalid-parameter"),
        ("/history/devices?offset=-1".to_owned(), "invalid-parameter"),
    ] {
        assert_eq!(client.get(&path).await.refusal(), (400, code.to_owned()), "{path}");
    }
    for path in ["/history?limit=1001", "/history/devices?limit=1001", &format!("/device/{device}/history?limit=100")] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn an_answer_has_one_date_of_the_sandbox_s_clock() {
    let client = SandboxClient::of(small()).await;
    for path in ["/history", "/history?limit=0"] {
        let reply = client.get(path).await;
        assert_eq!(reply.headers.get_all("date").iter().count(), 1);
        assert_eq!(reply.header("date"), Some("Fri, 20 Nov 2026 13:00:00 GMT"));
    }
    client.sandbox.handle.advance(std::time::Duration::from_millis(90_500));
    assert_eq!(client.get("").await.header("date"), Some("Fri, 20 Nov 2026 13:01:30 GMT"));
    assert_eq!(client.get_as("", "/").await.header("date"), Some("Fri, 20 Nov 2026 13:01:30 GMT"));
}

#[tokio::test]
async fn a_sandbox_that_is_shut_down_answers_no_more() {
    let client = SandboxClient::of(small()).await;
    assert_eq!(client.get("").await.status, 200);
    let SandboxClient { sandbox, .. } = client;
    let address = sandbox.base_url.trim_start_matches("http://").to_owned();
    sandbox.shutdown().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
