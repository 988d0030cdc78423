//! "Resources and their fields": fields that occur only in some cases, and fields that never occur.

use super::*;

#[tokio::test]
async fn a_teams_deletion_schedule_and_computer_migrations_are_there_while_they_last() {
    let scene = Scene::new().await;
    row("Team.deleteSchedule: object, deletion schedule of the team");
    assert_eq!(scene.get("").await.get("deleteSchedule"), None, "fields with no value are omitted");
    let schedule = scene.own("PUT", "/deletion", json!({"inSeconds": 86_400})).await.with(200);
    assert_eq!(schedule["deleteAt"].as_i64().unwrap() - schedule["scheduledAt"].as_i64().unwrap(), 86_400);
    assert_eq!(scene.get("").await["deleteSchedule"], schedule);
    assert_eq!(scene.newest_events(1).await, ["teamSettingsChangedEvent"]);
    assert_eq!(scene.own("PUT", "/deletion", json!({})).await.with(200), json!({}));
    assert_eq!(scene.get("").await.get("deleteSchedule"), None);

    row("Team, User and SSO user: userDeviceMigrate");
    let account = json!({"email": "moving@x.example"});
    let user = id_of(&scene.own("POST", "/sso", account).await.with(201));
    scene.send("POST", &format!("/users/{user}"), NONE).await.with(200);
    let path = format!("/user/{user}/migration");
    let migration = scene.own("PUT", &path, json!({"devices": ["laptop"]})).await.with(200);
    assert_eq!((&migration["userID"], &migration["devices"]), (&json!(user), &json!(["laptop"])));
    let team = scene.get("").await;
    assert_eq!(team["userDeviceMigrate"], json!([migration]));
    assert_eq!(team["users"][&user]["userDeviceMigrate"], migration);
    let listed = scene.get("/saml/users").await;
    let seen = listed.as_array().unwrap().iter().find(|seen| seen["id"] == user.as_str()).unwrap();
    assert_eq!(seen["userDeviceMigrate"], migration);
    scene.own("PUT", &path, json!({"devices": []})).await.with(200);
    assert!(!scene.get("").await.to_string().contains("userDeviceMigrate"));
    assert_eq!(scene.own("PUT", "/user/nobody/migration", json!({})).await.refusal(), error(404, "user-not-found"));
}

#[tokio::test]
async fn avatars_are_masked_in_authentication_info() {
    let scene = Scene::new().await;
    row("User.avatarURL");
    let users = scene.get("/users").await["users"].as_array().unwrap().clone();
    let (with, without): (Vec<&Value>, Vec<&Value>) = users.iter().partition(|user| user.get("avatarURL").is_some());
    assert!(!with.is_empty() && !without.is_empty());
    row("SSO user.avatarURL");
    let account = json!({"email": "seen@x.example", "avatarURL": "https://pictures.example/me"});
    let seen = scene.own("POST", "/sso", account).await.with(201);
    assert_eq!(seen["avatarURL"], "https://pictures.example/me");
    row("ApiUserAuthInfo: provider email addresses and avatars are masked");
    for (user, has_avatar) in [(with[0], true), (without[0], false)] {
        let info = scene.get(&format!("/user/{}/info", id_of(user))).await;
        assert_eq!(info["authProviders"][0].get("avatarURL").is_some(), has_avatar);
        assert!(!info.to_string().contains("avatars.example") && info.to_string().contains("***"));
    }
}

#[tokio::test]
async fn teams_and_installers_show_agent_configurations_and_computers_do_not() {
    let scene = Scene::new().await;
    let device = &scene.devices[0];
    let installer = scene.send("POST", "/invite/device", json!({})).await.with(201);
    let sent = json!({"name": "kiosk", "devices": [device], "installers": [installer["id"]]});
    let config = scene.own("POST", "/config", sent).await.with(201);
    row("Computer installer.deviceConfigID: applied to computers added with it");
    let team = scene.get("").await;
    let shown = team["deviceInvites"].as_array().unwrap().iter().find(|held| held["id"] == installer["id"]).unwrap();
    assert_eq!(shown["deviceConfigID"], json!({"id": config["id"]}));
    let run = json!({"secret": installer["secret"], "name": "kiosk-1"});
    let added = id_of(&scene.own("POST", "/install", run).await.with(201));
    row("Team.deviceConfigs: all agent configurations of the team");
    let configs = async || scene.get("").await["deviceConfigs"].clone();
    assert_eq!(configs().await[0]["devices"], json!([device, added]));
    let seen = scene.get(&format!("/device/{device}")).await;
    assert!(names(&seen).iter().all(|name| !name.contains("onfig")), "no field of a computer: {seen}");
    row("adding a group that has an agent configuration clears any assigned directly to the computer");
    scene.own("POST", "/config", json!({"name": "group's", "groups": [scene.group]})).await.with(201);
    scene.send("POST", &format!("/device/{device}/members"), json!({"groups": [scene.group]})).await.with(201);
    assert_eq!(configs().await[0]["devices"], json!([added]));
    let unknown = json!({"name": "x", "installers": ["unknown"]});
    assert_eq!(scene.own("POST", "/config", unknown).await.refusal(), error(404, "invite-not-found"));
}

#[tokio::test]
async fn a_computer_was_last_online_when_it_connected_to_the_cloud_itself() {
    let scene = Scene::new().await;
    let device = format!("/device/{}", scene.devices[0]);
    let seen_at = async || scene.get(&device).await["lastOnlineAt"].clone();
    let before = seen_at().await;
    row("Computer.lastOnlineAt: updated only when the computer connects or reconnects to the cloud");
    scene.send("PATCH", &format!("/user/{}", scene.users[0]), json!({"remoteAccess": "enabled"})).await;
    scene.send("PUT", &format!("{device}/members"), json!({"users": [scene.users[0]]})).await.with(201);
    scene.own("POST", &format!("{device}/connect"), json!({})).await.with(201);
    assert_eq!(seen_at().await, before, "a person's connection is not the computer's");
    let seen = scene.own("POST", &format!("{device}/online"), NONE).await.with(200);
    assert_eq!(seen["lastOnlineAt"], scene.client.sandbox.handle.now().seconds());
    assert_eq!(seen_at().await, seen["lastOnlineAt"]);
}

#[tokio::test]
async fn the_token_log_tells_when_and_from_where_a_token_was_last_used() {
    let scene = Scene::new().await;
    let user = &scene.users[0];
    let answer = scene.own("POST", &format!("/user/{user}/token"), json!({"readOnly": true})).await.with(201);
    let log =
        async || scene.get(&format!("/user/{user}/info")).await["tokenLog"].as_array().unwrap().last().unwrap().clone();
    row("tokenLog: title, scopes, lastUsed, lastUsedIPAddress, expiresAt");
    assert_eq!(names(&log().await), ["scopes", "title"], "not used yet");
    let path = format!("/v1/team/{}", scene.client.team());
    scene.client.get_as(answer["token"].as_str().unwrap(), &path).await.with(200);
    let used = log().await;
    assert_eq!(used["lastUsed"], scene.client.sandbox.handle.now().seconds());
    assert_eq!(used["lastUsedIPAddress"], "127.0.0.1");
}
