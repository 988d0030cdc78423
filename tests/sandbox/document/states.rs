//! "States and transitions": makes each transition once, and checks its guard, its effects, and the activity and
//! billing events.

use super::*;

#[tokio::test]
async fn changes_of_remote_access_make_events() {
    let scene = Scene::new().await;
    let path = format!("/user/{}", scene.users[0]);
    scene.send("PATCH", &path, json!({"remoteAccess": "enabled"})).await;
    let device = &scene.devices[0];
    scene.send("PUT", &format!("/device/{device}/members"), json!({"users": [scene.users[0]]})).await.with(201);
    let connect = format!("/device/{device}/connect");
    scene.own("POST", &connect, json!({"userID": scene.users[0], "open": true})).await.with(201);
    row("State: User remoteAccess enabled -> disabled; the user's active sessions are disconnected");
    let seen = scene.send("PATCH", &path, json!({"remoteAccess": "disabled"})).await.with(201);
    assert_eq!(seen["remoteAccess"], "disabled");
    let page = scene.get(&format!("/history/devices?desc=true&limit=1&ids={device}")).await;
    assert!(page["deviceEvents"][0].get("connectionClosedEvent").is_some(), "{page}");
    assert_eq!(scene.newest_events(1).await, ["teamUserRemoteAccessChangedEvent"]);
    let ledger = scene.get("/billing/events").await;
    assert!(ledger["events"][0]["event"].get("userCountUpdatedEvent").is_some());
    assert_eq!(scene.own("POST", &connect, json!({"userID": scene.users[0]})).await.status, 403);
    row("State: User remoteAccess disabled -> enabled; must not exceed licensed users");
    scene.own("PATCH", "/plan", json!({"licensedUsers": 1})).await.with(200);
    let refused = scene.refused("PATCH", &path, json!({"remoteAccess": "enabled"})).await;
    assert_eq!(refused, error(400, "active-users-exceed-licensed-quanity"));
    scene.own("PATCH", "/plan", json!({"licensedUsers": 99})).await.with(200);
    let seen = scene.send("PATCH", &path, json!({"remoteAccess": "enabled"})).await.with(201);
    assert_eq!(seen["remoteAccess"], "enabled");
    row("State: User role any -> the sent role");
    for role in ["admin", "admin-read-only", "user"] {
        assert_eq!(scene.send("PATCH", &path, json!({"role": role})).await.with(201)["role"], role);
        assert_eq!(scene.newest_events(1).await, ["teamUserRoleChangedEvent"]);
    }
}

#[tokio::test]
async fn the_last_admin_and_the_last_active_user_stay() {
    let scene = Scene::new().await;
    let users = scene.get("/users").await["users"].clone();
    let mut left: Vec<&Value> = users.as_array().unwrap().iter().collect();
    let admin = left.remove(0);
    for user in left {
        scene.send("DELETE", &format!("/user/{}", id_of(user)), NONE).await.with(200);
    }
    let path = format!("/user/{}", id_of(admin));
    row("State: guards of role, remoteAccess and removal: team-requires-admin, team-requires-active-user");
    for (method, body, code) in [
        ("DELETE", NONE, "team-requires-admin"),
        ("PATCH", json!({"role": "user"}), "team-requires-admin"),
        ("PATCH", json!({"remoteAccess": "disabled"}), "team-requires-active-user"),
    ] {
        assert_eq!(scene.refused(method, &path, body).await, error(400, code));
    }
    assert_eq!(scene.get("/users").await["users"].as_array().unwrap().len(), 1);
    let invite = scene.send("POST", "/invite/user", json!({})).await.with(201);
    let join = json!({"secret": invite["secret"], "email": "other@x.example"});
    let other = format!("/user/{}", id_of(&scene.own("POST", "/join", join).await.with(201)));
    let off = json!({"remoteAccess": "disabled"});
    assert_eq!(scene.refused("PATCH", &path, off.clone()).await, error(400, "team-requires-admin"), "others connect");
    scene.send("PATCH", &other, off).await.with(201);
    scene.send("PATCH", &other, json!({"role": "admin"})).await.with(201);
    assert_eq!(scene.refused("DELETE", &path, NONE).await, error(400, "team-requires-active-user"));
}

#[tokio::test]
async fn a_removed_user_loses_all_access_and_every_group() {
    let scene = Scene::new().await;
    let user = &scene.users[0];
    scene.send("POST", &format!("/group/{}/members", scene.group), json!({"users": [user]})).await.with(201);
    row("State: User member: DELETE -> removed; access to all computers lost; removed from all Access Groups");
    scene.send("DELETE", &format!("/user/{user}"), NONE).await.with(200);
    let team = scene.get("").await;
    assert!(
        !team["groups"].to_string().contains(user.as_str()) && !team["devices"].to_string().contains(user.as_str())
    );
    assert!(scene.newest_events(1).await == ["teamUserRemovedEvent"]);
}

#[tokio::test]
async fn invites_and_installers_work_until_they_are_deleted() {
    let scene = Scene::new().await;
    row("State: User invite pending: DELETE -> deleted; the invite link stops working");
    let invite = scene.send("POST", "/invite/user", json!({"groups": [scene.group]})).await.with(201);
    let join = |email: &str| json!({"secret": invite["secret"], "email": email});
    let user = scene.own("POST", "/join", join("a@x.example")).await.with(201);
    assert_eq!(user["role"], "user", "new members join with role user");
    assert_eq!(scene.newest_events(2).await, ["teamUserAddedEvent", "teamUserInvitedEvent"]);
    let path = format!("/invite/user/{}", invite["secret"].as_str().unwrap());
    scene.send("DELETE", &path, NONE).await.with(201);
    assert_eq!(scene.own("POST", "/join", join("b@x.example")).await.refusal(), error(404, "invite-not-found"));
    row("State: Computer installer active: DELETE -> deleted; computers already added stay");
    let installer = scene.send("POST", "/invite/device", json!({"groups": [scene.group]})).await.with(201);
    let run = json!({"secret": installer["secret"], "name": "added-1"});
    let added = scene.own("POST", "/install", run.clone()).await.with(201);
    scene.send("DELETE", &format!("/invite/device/{}", id_of(&installer)), NONE).await.with(201);
    assert_eq!(scene.own("POST", "/install", run).await.refusal(), error(404, "invite-not-found"));
    assert_eq!(scene.get(&format!("/device/{}", id_of(&added))).await["groups"], json!([scene.group]));
    row("expiry of invites and installers");
    let installer = scene.send("POST", "/invite/device", json!({"expirySecs": 60})).await.with(201);
    let invite = scene.send("POST", "/invite/user", json!({})).await.with(201);
    scene.client.own("POST", "/clock", &json!({"advanceSeconds": 40 * 86_400})).await.with(200);
    let team = scene.get("").await.to_string();
    assert!([&installer, &invite].iter().all(|held| !team.contains(held["secret"].as_str().unwrap())));
}

#[tokio::test]
async fn a_removed_computer_takes_its_history_with_it() {
    let scene = Scene::new().await;
    let installer = scene.send("POST", "/invite/device", json!({"users": [scene.users[0]]})).await.with(201);
    scene.send("PATCH", &format!("/user/{}", scene.users[0]), json!({"remoteAccess": "enabled"})).await;
    let added = scene.own("POST", "/install", json!({"secret": installer["secret"], "name": "new-1"})).await.with(201);
    for device in [&id_of(&added), &scene.devices[0]] {
        row("State: Computer on team: DELETE -> removed; its connection history is deleted");
        scene.send("PUT", &format!("/device/{device}/members"), json!({"users": [scene.users[0]]})).await.with(201);
        scene.own("POST", &format!("/device/{device}/connect"), json!({})).await.with(201);
        let page = scene.get(&format!("/history/devices?desc=true&limit=5&ids={device}")).await;
        let kinds = page["deviceEvents"].as_array().unwrap().iter().rev().map(|event| {
            let plain = ["computerHostName", "deviceID", "id", "timestamp"];
            names(event).into_iter().find(|name| !plain.contains(name)).unwrap().to_owned()
        });
        let five = [
            "incomingConnectionRequest",
            "incomingConnectionEvent",
            "authFailedEvent",
            "authSucceededEvent",
            "connectionClosedEvent",
        ];
        assert_eq!(kinds.collect::<Vec<_>>(), five);
        let old = scene.get(&format!("/device/{device}/history?desc=true&limit=1")).await;
        assert!(old["events"][0].get("connectionClosedEvent").is_some() && old["events"][0].get("deviceID").is_none());
        scene.send("DELETE", &format!("/device/{device}"), NONE).await.with(200);
        let page = scene.get(&format!("/history/devices?ids={device}")).await;
        assert_eq!(page["deviceEvents"], json!([]));
        assert_eq!(scene.newest_events(1).await, ["teamDeviceRemovedEvent"]);
        let truth = scene.client.sandbox.handle.truth(scene.client.team(), annals::model::Stream::Connections);
        let its = truth.filter(|event| event.device.as_ref().is_some_and(|held| held.as_str() == device)).count();
        assert!(its >= 5, "the truth keeps everything");
    }
}

#[tokio::test]
async fn the_link_removes_the_second_factor() {
    let scene = Scene::new().await;
    let invite = scene.send("POST", "/invite/user", json!({"sendTo": "two@x.example"})).await.with(201);
    let join = json!({"secret": invite["secret"], "totpEnabled": true});
    let path = format!("/user/{}", id_of(&scene.own("POST", "/join", join).await.with(201)));
    row("State: User 2-factor auth on: POST removetotp -> unchanged until the user confirms within 24 hours");
    assert_eq!(scene.send("POST", &format!("{path}/removetotp"), NONE).await.with(200), json!({}));
    assert_eq!(scene.get(&format!("{path}/info")).await["totp"]["enabled"], true);
    let mail = scene.own("GET", "/mail", NONE).await.with(200)["mail"].clone();
    let link = &mail[1];
    assert_eq!((&link["kind"], &link["to"]), (&json!("totp-removal"), &json!("two@x.example")));
    assert_eq!(link["expiresAt"].as_i64().unwrap() - link["sentAt"].as_i64().unwrap(), 86_400);
    row("Limit: 2FA removal link validity: 24 hours");
    let follow_after = async |link: &Value, seconds: u32| {
        scene.client.own("POST", "/clock", &json!({"advanceSeconds": seconds})).await.with(200);
        scene.own("POST", "/confirm", json!({"secret": link["secret"]})).await
    };
    assert_eq!(follow_after(link, 86_400).await.refusal(), error(404, "not-found"));
    scene.send("POST", &format!("{path}/removetotp"), NONE).await.with(200);
    let mail = scene.own("GET", "/mail", NONE).await.with(200)["mail"].clone();
    follow_after(&mail[2], 86_399).await.with(200);
    assert_eq!(scene.get(&format!("{path}/info")).await["totp"]["enabled"], false);
    assert_eq!(scene.newest_events(2).await, ["teamUserTotpRemovedEvent", "teamUserTotpRemovalRequestedEvent"]);
    row("State: User 2-factor auth: else totp-not-enabled");
    let refused = scene.refused("POST", &format!("{path}/removetotp"), NONE).await;
    assert_eq!(refused, error(400, "totp-not-enabled"));
}

#[tokio::test]
async fn every_change_of_access_and_groups_makes_an_event() {
    let scene = Scene::new().await;
    let (device, group) = (format!("/device/{}", scene.devices[0]), format!("/group/{}", scene.group));
    for (method, path, body, event) in [
        ("PATCH", device.clone(), json!({"name": "n"}), "teamDeviceRenamedEvent"),
        ("PUT", format!("{device}/members"), json!({}), "teamDeviceMembersReplacedEvent"),
        ("POST", format!("{device}/members"), json!({}), "teamDeviceMembersAddedEvent"),
        ("POST", format!("{device}/members/delete"), json!({}), "teamDeviceMembersRemovedEvent"),
        ("POST", format!("{device}/annotations"), json!({"annotations": []}), "teamDeviceAnnotationsChangedEvent"),
        ("POST", format!("{group}/members"), json!({}), "teamGroupMembersAddedEvent"),
        ("POST", format!("{group}/members/delete"), json!({}), "teamGroupMembersRemovedEvent"),
        ("PATCH", group.clone(), json!({"name": "n"}), "teamGroupRenamedEvent"),
        ("DELETE", group.clone(), NONE, "teamGroupRemovedEvent"),
        ("POST", "/group".to_owned(), json!({"name": "n"}), "teamGroupCreatedEvent"),
        ("POST", "/invite/device".to_owned(), json!({}), "teamDeviceInviteCreatedEvent"),
    ] {
        assert!(scene.send(method, &path, body).await.status < 300, "{method} {path}");
        assert_eq!(scene.newest_events(1).await, [event], "{method} {path}");
        let newest = scene.get("/history?desc=true&limit=1").await["events"][0].clone();
        assert!(newest["header"]["tokenInfo"]["email"].is_string());
    }
}
