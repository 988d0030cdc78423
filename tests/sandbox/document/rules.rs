//! The numbered rules, and the request fields of installers and invites. Each case is named after its rule or field.

use super::*;

/// The direct users and groups of the scene's first computer.
async fn direct(scene: &Scene) -> (Value, Value) {
    let seen = scene.get(&format!("/device/{}", scene.devices[0])).await;
    (seen["users"].clone(), seen["groups"].clone())
}

#[tokio::test]
async fn access_to_computers() {
    let scene = Scene::new().await;
    let (one, two, group) = (&scene.users[0], &scene.users[1], &scene.group);
    let members = format!("/device/{}/members", scene.devices[0]);
    row("Access rule 1: PUT replaces the direct users and groups with exactly the lists sent");
    for (sent, expected) in [
        (json!({"users": [one, two], "groups": [group]}), (json!([one, two]), json!([group]))),
        (json!({"users": [two], "groups": [group]}), (json!([two]), json!([group]))),
        (json!({"groups": [group]}), (NONE, json!([group]))),
        (json!({"users": [one], "groups": []}), (json!([one]), NONE)),
        (json!({}), (NONE, NONE)),
    ] {
        scene.send("PUT", &members, sent.clone()).await.with(201);
        assert_eq!(direct(&scene).await, expected, "{sent}");
    }
    row("Access rule 2: POST adds without removing; POST members/delete removes only the listed");
    for (tail, sent, expected) in [
        ("", json!({"users": [one]}), (json!([one]), NONE)),
        ("", json!({"users": [two], "groups": [group]}), (json!([one, two]), json!([group]))),
        ("/delete", json!({"users": [one]}), (json!([two]), json!([group]))),
        ("/delete", json!({}), (json!([two]), json!([group]))),
        ("/delete", json!({"groups": [group]}), (json!([two]), NONE)),
    ] {
        scene.send("POST", &format!("{members}{tail}"), sent.clone()).await.with(201);
        assert_eq!(direct(&scene).await, expected, "{tail} {sent}");
    }
    row("Access rule 3: bulk requests return 200 even when some computers fail; errors is omitted when none failed");
    for path in ["/device/members", "/device/members/delete"] {
        let sent = json!({"devices": [scene.devices[0], "none", "nor this"], "users": [one]});
        let seen = scene.send("PATCH", path, sent).await.with(200);
        let failed = seen["errors"].as_array().unwrap().iter().map(|held| held["deviceID"].clone()).collect::<Vec<_>>();
        assert_eq!((failed, &seen["devices"]), (vec![json!("none"), json!("nor this")], &json!([scene.devices[0]])));
        let seen = scene.send("PATCH", path, json!({"devices": scene.devices, "users": [one]})).await.with(200);
        assert_eq!(seen, json!({"devices": scene.devices, "users": [one]}));
    }
    row("Access rule 4: adding a group that has an agent configuration clears any assigned directly to the computer");
    scene.own("POST", "/config", json!({"name": "group's", "groups": [group]})).await.with(201);
    let bulk = json!({"devices": [scene.devices[0]], "groups": [group]});
    for (method, path, sent) in [
        ("PUT", members.clone(), json!({"groups": [group]})),
        ("POST", members.clone(), json!({"groups": [group]})),
        ("PATCH", "/device/members".to_owned(), bulk.clone()),
        ("POST", format!("/group/{group}/members"), json!({"devices": [scene.devices[0]]})),
        ("PATCH", "/group/members".to_owned(), json!({"groups": [group], "devices": [scene.devices[0]]})),
    ] {
        scene.send("PATCH", "/device/members/delete", bulk.clone()).await.with(200);
        let own = scene.own("POST", "/config", json!({"name": "own", "devices": [scene.devices[0]]})).await.with(201);
        assert!(scene.send(method, &path, sent).await.status < 300);
        let configs = scene.get("").await["deviceConfigs"].clone();
        let held = configs.as_array().unwrap().iter().find(|held| held["id"] == own["id"]).unwrap().clone();
        assert_eq!(held.get("devices"), None, "{method} {path}");
    }
}

#[tokio::test]
async fn access_groups() {
    let scene = Scene::new().await;
    let (user, device, managed) = (&scene.users[0], &scene.devices[0], &scene.managed);
    let held = async |group: &str| scene.get("").await["groups"][group].clone();
    row("Group rule 1: groups are listed through the team endpoint");
    let made = id_of(&scene.send("POST", "/group", json!({"name": "made"})).await.with(201));
    assert_eq!(held(&made).await["name"], "made");
    row("Group rule 2: creating fails with team-too-many-groups when the plan's group count is reached");
    let count = scene.get("").await["groups"].as_object().unwrap().len();
    scene.own("PATCH", "/plan", json!({"groups": count})).await.with(200);
    assert_eq!(scene.refused("POST", "/group", json!({"name": "x"})).await, error(400, "team-too-many-groups"));
    row("Group rule 3: deleting a group removes the access it granted; its users and computers stay on the team");
    let person = scene.send("PATCH", &format!("/user/{user}"), json!({"remoteAccess": "enabled"})).await;
    assert_eq!(person.status, 201);
    scene.send("PUT", &format!("/device/{device}/members"), json!({})).await.with(201);
    let both = json!({"users": [user], "devices": [device]});
    scene.send("POST", &format!("/group/{made}/members"), both).await.with(201);
    let connect = format!("/device/{device}/connect");
    assert_eq!(scene.own("POST", &connect, json!({"userID": user})).await.status, 201);
    scene.send("DELETE", &format!("/group/{made}"), NONE).await.with(200);
    assert_eq!(scene.own("POST", &connect, json!({"userID": user})).await.status, 403);
    scene.get(&format!("/device/{device}")).await;
    assert!(scene.get("").await["users"].get(user).is_some());
    row("Group rule 4: either list may be omitted; members not listed are unchanged");
    let made = id_of(&scene.send("POST", "/group", json!({"name": "four"})).await.with(201));
    let path = format!("/group/{made}/members");
    for (tail, sent, users, devices) in [
        ("", json!({"users": scene.users}), json!(scene.users), NONE),
        ("", json!({"devices": scene.devices}), json!(scene.users), json!(scene.devices)),
        ("/delete", json!({"users": [user]}), json!([scene.users[1]]), json!(scene.devices)),
        ("/delete", json!({"devices": [device]}), json!([scene.users[1]]), json!([scene.devices[1]])),
        ("/delete", json!({}), json!([scene.users[1]]), json!([scene.devices[1]])),
    ] {
        assert_eq!(scene.send("POST", &format!("{path}{tail}"), sent.clone()).await.with(201), json!({}));
        let seen = held(&made).await;
        assert_eq!((&seen["users"], &seen["devices"]), (&users, &devices), "{tail} {sent}");
    }
    row("Group rule 5: bulk requests apply to every listed group, return 200 even when some fail, and report each");
    let sent = json!({"groups": [made, "none", scene.group], "users": [user], "devices": [device]});
    for (path, is_in) in [("/group/members", true), ("/group/members/remove", false)] {
        let seen = scene.send("PATCH", path, sent.clone()).await.with(200);
        let errors = seen["errors"].as_array().unwrap();
        assert_eq!((errors.len(), &errors[0]["groupID"]), (1, &json!("none")));
        for group in [&made, &scene.group] {
            let seen = held(group).await;
            let has = |list: &str, id: &String| seen[list].as_array().is_some_and(|held| held.contains(&json!(id)));
            assert_eq!((has("users", user), has("devices", device)), (is_in, is_in), "{path}");
        }
        let none = scene.send("PATCH", path, json!({"groups": [made], "devices": [device]})).await.with(200);
        assert_eq!(none.get("errors"), None);
    }
    managed_groups(&scene, user, device, managed).await;
    row("Group rule 7: writing more annotations than allowed fails with team-too-many-annotations");
    scene.own("PATCH", "/plan", json!({"annotations": 1})).await.with(200);
    let two = json!({"annotations": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]});
    let refused = scene.refused("POST", &format!("/group/{}/annotations", scene.group), two).await;
    assert_eq!(refused, error(400, "team-too-many-annotations"));
}

async fn managed_groups(scene: &Scene, user: &str, device: &str, managed: &str) {
    row("Group rule 6: SCIM-managed groups");
    let path = format!("/group/{managed}");
    let held = async || scene.get("").await["groups"][managed].clone();
    let before = held().await;
    let both = json!({"users": [user], "devices": [device]});
    for (case, method, tail, sent) in [
        ("renaming", "PATCH", "", json!({"name": "x"})),
        ("deleting", "DELETE", "", NONE),
        ("adding users", "POST", "/members", json!({"users": [user]})),
        ("removing users", "POST", "/members/delete", json!({"users": [user]})),
        ("any users: entirely, including its computers", "POST", "/members", both.clone()),
        ("any users: entirely, also out", "POST", "/members/delete", both.clone()),
    ] {
        let refused = scene.refused(method, &format!("{path}{tail}"), sent).await;
        assert_eq!(refused, error(400, "group-scim-managed"), "{case}");
        assert_eq!(held().await, before, "{case}");
    }
    let has = |seen: &Value| seen["devices"].as_array().is_some_and(|held| held.contains(&json!(device)));
    for (tail, is_in) in [("/members", true), ("/members/delete", false)] {
        scene.send("POST", &format!("{path}{tail}"), json!({"devices": [device]})).await.with(201);
        assert_eq!(has(&held().await), is_in, "a request that lists no users is allowed");
    }
    for (path, is_in) in [("/group/members", true), ("/group/members/remove", false)] {
        let mut sent = both.clone();
        sent["groups"] = json!([managed]);
        let seen = scene.send("PATCH", path, sent).await.with(200);
        let error = &seen["errors"][0];
        assert_eq!((&error["groupID"], &error["code"]), (&json!(managed), &json!("group-scim-managed")), "{path}");
        assert_eq!(
            (has(&held().await), &held().await["users"]),
            (is_in, &before["users"]),
            "users are skipped: {path}"
        );
    }
}

#[tokio::test]
async fn names_are_filtered_and_annotations_written_by_key() {
    let scene = Scene::new().await;
    let device = &scene.devices[0];
    scene.send("PATCH", &format!("/device/{device}"), json!({"name": "Écran 7 – Büro"})).await.with(200);
    let is_found = async |filter: &str| {
        let query: String = url::form_urlencoded::byte_serialize(filter.as_bytes()).collect();
        let found = scene.get(&format!("/devices?name={query}")).await;
        found["devices"].as_array().unwrap().iter().any(|seen| id_of(seen) == *device)
    };
    for (case, filter, expected) in [
        ("Name filter: a value without asterisks matches exactly", "écran 7 – büro", true),
        ("Name filter: a value without asterisks matches exactly", "Écran 7", false),
        ("Name filter: a trailing asterisk matches names starting with the text", "ÉCRAN*", true),
        ("Name filter: a trailing asterisk matches names starting with the text", "7 –*", false),
        ("Name filter: asterisks at both ends match names containing the text", "*7 – B*", true),
        ("Name filter: asterisks at both ends match names containing the text", "*8*", false),
    ] {
        row(case);
        assert_eq!(is_found(filter).await, expected, "{case}: {filter}");
    }
    let users = scene.get("/users").await["users"].clone();
    for path in [format!("/device/{device}"), format!("/user/{}", scene.users[0]), format!("/group/{}", scene.group)] {
        let path = format!("{path}/annotations");
        let note = |key: &str, value: &str| json!({"key": key, "value": value});
        let write = async |notes: Value| scene.send("POST", &path, json!({"annotations": notes})).await.with(201);
        row(
            "Annotation rule: adding or updating changes only the keys sent and overwrites the value of an existing key",
        );
        write(json!([note("tag", "a,b,c"), note("owner", "me")])).await;
        let seen = write(json!([note("owner", "you"), note("new", "1")])).await;
        for held in [note("owner", "you"), note("new", "1"), note("tag", "a,b,c")] {
            assert!(seen["annotations"].as_array().unwrap().contains(&held), "{seen}");
        }
        row("Annotation rule: writing key tag replaces all tags");
        let seen = write(json!([note("tag", "d")])).await;
        assert!(
            seen["annotations"].as_array().unwrap().contains(&note("tag", "d")) && !seen.to_string().contains("a,b")
        );
    }
    row("GET users: query email matches the whole address, not part; empty array when none match");
    let email = users[0]["email"].as_str().unwrap();
    assert_eq!(id_of(&scene.get(&format!("/users?email={email}")).await["users"][0]), id_of(&users[0]));
    for part in [&email[1..], &email[..5], "nobody@x.example"] {
        assert_eq!(scene.get(&format!("/users?email={part}")).await, json!({"users": []}));
    }
    row("removetotp is a Teams Enterprise feature");
    scene.own("PATCH", "/plan", json!({"enterprise": false})).await.with(200);
    let refused = scene.refused("POST", &format!("/user/{}/removetotp", scene.users[0]), NONE).await;
    assert_eq!(refused, error(403, "forbidden"));
}

#[tokio::test]
async fn the_request_fields_of_an_installer() {
    let scene = Scene::new().await;
    let make = async |sent: Value| scene.send("POST", "/invite/device", sent).await.with(201);
    let run = async |made: &Value, user: Option<&String>| {
        let mut sent = json!({"secret": made["secret"], "name": "added-1"});
        if let Some(user) = user {
            sent["userID"] = json!(user);
        }
        scene.own("POST", "/install", sent).await
    };
    row("Installer request.name");
    assert_eq!(make(json!({"name": "studio"})).await["name"], "studio");
    row("Installer request.users");
    let made = make(json!({"users": scene.users, "groups": [scene.group]})).await;
    let added = run(&made, None).await.with(201);
    assert_eq!(added["users"], json!(scene.users), "access for each computer added");
    row("Installer request.groups");
    assert_eq!(added["groups"], json!([scene.group]), "groups each computer joins");
    row("Installer request.singleUse");
    assert_eq!(run(&made, None).await.status, 201, "more than one");
    let made = make(json!({"singleUse": true})).await;
    assert_eq!((run(&made, None).await.status, run(&made, None).await.status), (201, 404), "only one computer");
    row("Installer request.requireAuthentication");
    let made = make(json!({"requireAuthentication": true})).await;
    assert_eq!((run(&made, None).await.status, run(&made, Some(&scene.users[0])).await.status), (403, 201));
    row("Installer request.expirySecs");
    let (never, nor) = (make(json!({"expirySecs": 0})).await, make(json!({})).await);
    let made = make(json!({"expirySecs": 60})).await;
    let advance = async |seconds: u32| scene.client.own("POST", "/clock", &json!({"advanceSeconds": seconds})).await;
    advance(59).await.with(200);
    assert_eq!(run(&made, None).await.status, 201, "a second before");
    advance(1).await.with(200);
    assert_eq!(run(&made, None).await.refusal(), error(404, "invite-not-found"));
    advance(3_000_000_000).await.with(200);
    assert_eq!((run(&never, None).await.status, run(&nor, None).await.status), (201, 201), "no expiry");
}

#[tokio::test]
async fn the_request_fields_of_an_invite() {
    let scene = Scene::new().await;
    scene.own("PATCH", "/plan", json!({"licensedUsers": 99})).await.with(200);
    let make = async |sent: Value| scene.send("POST", "/invite/user", sent).await.with(201);
    let join = async |made: &Value, email: &str| {
        scene.own("POST", "/join", json!({"secret": made["secret"], "email": email})).await
    };
    row("Invite request.sendTo");
    let made = make(json!({"sendTo": "to@x.example"})).await;
    assert_eq!((&made["sentTo"], make(json!({})).await.get("sentTo")), (&json!("to@x.example"), None));
    let mail = scene.own("GET", "/mail", NONE).await.with(200)["mail"].clone();
    assert_eq!((mail.as_array().unwrap().len(), &mail[0]["to"]), (1, &json!("to@x.example")));
    row("Invite request.singleUse");
    let sent = json!({"sendTo": "once@x.example", "singleUse": true});
    let once = make(sent).await;
    assert_eq!((join(&once, "a@x.example").await.status, join(&once, "b@x.example").await.status), (201, 404));
    let public = make(json!({})).await;
    assert_eq!((join(&public, "c@x.example").await.status, join(&public, "d@x.example").await.status), (201, 201));
    assert_eq!(scene.refused("POST", "/invite/user", json!({"singleUse": true})).await.0, 400, "requires sendTo");
    row("Invite request.name");
    assert_eq!(make(json!({"name": "welcome"})).await["name"], "welcome");
    row("Invite request.groups");
    let made = make(json!({"groups": [scene.group], "devices": scene.devices})).await;
    let person = id_of(&join(&made, "e@x.example").await.with(201));
    let team = scene.get("").await;
    assert!(team["groups"][&scene.group]["users"].as_array().unwrap().contains(&json!(person)));
    row("Invite request.devices");
    for device in &scene.devices {
        assert!(team["devices"][device]["users"].as_array().unwrap().contains(&json!(person)));
    }
    assert_eq!((public.get("groups"), public.get("devices")), (None, None), "default empty");
    row("New members join with role user");
    assert_eq!(team["users"][&person]["role"], "user");
}
