//! The document's rules about people on several teams: accounts, and shared SSO connections.

use super::*;

/// Requests about the second team.
struct SecondTeam<'a>(&'a Scene);

impl SecondTeam<'_> {
    fn team(&self) -> &str {
        self.0.client.sandbox.teams[1].as_str()
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Reply {
        let path = format!("/v1/team/{}{path}", self.team());
        self.0.client.send_as(&self.0.client.sandbox.admin_token, method, &path, &body).await
    }

    async fn own(&self, method: &str, path: &str, body: Value) -> Reply {
        self.0.client.own(method, &format!("/team/{}{path}", self.team()), &body).await
    }

    /// Invites a person, who joins.
    async fn welcome(&self, email: &str) -> Value {
        let invite = self.send("POST", "/invite/user", json!({"sendTo": email})).await.with(201);
        self.own("POST", "/join", json!({"secret": invite["secret"]})).await.with(201)
    }
}

async fn welcome(scene: &Scene, join: Value) -> Value {
    let invite = scene.send("POST", "/invite/user", json!({"sendTo": join["email"]})).await.with(201);
    let mut join = join;
    join["secret"] = invite["secret"].clone();
    scene.own("POST", "/join", join).await.with(201)
}

#[tokio::test]
async fn two_factor_is_off_for_the_users_whole_account() {
    let scene = Scene::new().await;
    let elsewhere = SecondTeam(&scene);
    let user = welcome(&scene, json!({"email": "two@x.example", "totpEnabled": true})).await;
    let there = elsewhere.welcome("TWO@x.example").await;
    assert_eq!((&there["id"], &there["totpEnabled"]), (&user["id"], &json!(true)), "one address is one account");
    let path = format!("/user/{}", id_of(&user));
    scene.send("POST", &format!("{path}/removetotp"), NONE).await.with(200);
    let mail = scene.own("GET", "/mail", NONE).await.with(200)["mail"].clone();
    row("User 2-factor auth: after confirmation 2FA is off for the user's whole account");
    scene.own("POST", "/confirm", json!({"secret": mail[1]["secret"]})).await.with(200);
    assert_eq!(scene.get(&format!("{path}/info")).await["totp"]["enabled"], false);
    assert_eq!(elsewhere.send("GET", &format!("{path}/info"), NONE).await.with(200)["totp"]["enabled"], false);
    let event = elsewhere.send("GET", "/history?desc=true&limit=1", NONE).await.with(200)["events"][0].clone();
    assert_eq!(event["teamUserTotpRemovedEvent"]["userID"], user["id"]);
    assert_eq!(event["header"]["tokenInfo"]["userID"], user["id"], "it was the person who followed the link");
}

#[tokio::test]
async fn a_removed_users_account_and_other_teams_are_unaffected() {
    let scene = Scene::new().await;
    let elsewhere = SecondTeam(&scene);
    let user = welcome(&scene, json!({"email": "both@x.example", "firstName": "Both"})).await;
    elsewhere.welcome("both@x.example").await;
    row("User member: DELETE -> the user's account and other teams are unaffected");
    scene.send("DELETE", &format!("/user/{}", id_of(&user)), NONE).await.with(200);
    let there = elsewhere.send("GET", "/users?email=both@x.example", NONE).await.with(200);
    assert_eq!(there["users"][0]["id"], user["id"]);
    let back = welcome(&scene, json!({"email": "both@x.example", "firstName": "Someone"})).await;
    assert_eq!((&back["id"], &back["firstName"]), (&user["id"], &json!("Both")), "the same account comes back");
    let alone = welcome(&scene, json!({"email": "alone@x.example"})).await;
    scene.send("DELETE", &format!("/user/{}", id_of(&alone)), NONE).await.with(200);
    assert_eq!(welcome(&scene, json!({"email": "alone@x.example"})).await["id"], alone["id"], "on no team meanwhile");
}

#[tokio::test]
async fn the_team_that_owns_the_sso_connection_shares_its_people() {
    let scene = Scene::new().await;
    let elsewhere = SecondTeam(&scene);
    let far = elsewhere.own("POST", "/sso", json!({"email": "far@x.example"})).await.with(201);
    let listed = elsewhere.send("GET", "/saml/users", NONE).await.with(200);
    let member = listed.as_array().unwrap().iter().find(|user| user["id"] != far["id"]).unwrap().clone();
    let add = async |user: &Value| scene.send("POST", &format!("/users/{}", id_of(user)), NONE).await;
    assert_eq!(add(&far).await.refusal(), error(404, "user-not-found"));
    let refused = scene.own("PATCH", "/plan", json!({"ssoOwner": "nowhere"})).await;
    assert_eq!(refused.refusal(), error(404, "team-not-found"));
    scene.own("PATCH", "/plan", json!({"ssoOwner": elsewhere.team()})).await.with(200);
    row("POST users/{userID}: caller and user share the SSO -> member with role user, remoteAccess enabled");
    let shared = scene.get("/saml/users").await;
    assert!([&far, &member].iter().all(|user| shared.as_array().unwrap().contains(user)));
    for user in [&far, &member] {
        assert_eq!(&add(user).await.with(200), user);
        assert_eq!(add(user).await.refusal(), error(409, "user-already-on-team"));
    }
    let seen = scene.get("").await["users"][id_of(&member)].clone();
    assert_eq!((&seen["role"], &seen["remoteAccess"]), (&json!("user"), &json!("enabled")));
    let ids: Vec<String> = scene.get("/saml/users").await.as_array().unwrap().iter().map(id_of).collect();
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len(), "each once");
    let there = elsewhere.send("GET", "", NONE).await.with(200);
    assert!(there["users"].get(id_of(&member)).is_some(), "and still on the other team");
    let back = elsewhere.send("GET", "/saml/users", NONE).await.with(200);
    assert!(
        ids.iter().all(|id| back.to_string().contains(id.as_str())),
        "the connection's people are the same from there"
    );
}

#[tokio::test]
async fn a_persons_token_has_the_persons_rights_on_each_team() {
    let scene = Scene::new().await;
    let elsewhere = SecondTeam(&scene);
    scene.own("PATCH", "/plan", json!({"ssoOwner": elsewhere.team()})).await.with(200);
    let admin = scene.get("/users").await["users"][0].clone();
    let answer = scene.own("POST", &format!("/user/{}/token", id_of(&admin)), json!({})).await.with(201);
    let token = answer["token"].as_str().unwrap();
    let get = async |team: &str, path: &str| scene.client.get_as(token, &format!("/v1/team/{team}{path}")).await;
    let here = scene.client.team().as_str();
    row("the token belongs to an admin of both this team and the team owning the SSO connection");
    assert_eq!(get(here, "/saml/users").await.status, 403);
    assert_eq!(get(elsewhere.team(), "").await.refusal(), error(403, "forbidden"));
    let there = elsewhere.welcome(admin["email"].as_str().unwrap()).await;
    assert_eq!((&there["id"], &there["role"]), (&admin["id"], &json!("user")));
    assert_eq!(names(&get(elsewhere.team(), "").await.with(200)), ["avatarURL", "id", "name"], "a member there");
    assert_eq!(get(here, "/saml/users").await.status, 403);
    let path = format!("/user/{}", id_of(&admin));
    elsewhere.send("PATCH", &path, json!({"role": "admin"})).await.with(201);
    assert_eq!(get(here, "/saml/users").await.status, 200);
    let teams = scene.client.get_as(token, "/v1/user/teams").await.with(200);
    assert_eq!(teams, json!([here, elsewhere.team()]));
}

#[tokio::test]
async fn actions_outside_the_api_name_their_person() {
    let scene = Scene::new().await;
    let actor = async || {
        let newest = scene.get("/history?desc=true&limit=1").await["events"][0].clone();
        newest["header"].get("tokenInfo").map(|held| held["userID"].clone())
    };
    let user = welcome(&scene, json!({"email": "own@x.example"})).await;
    assert_eq!(actor().await, Some(user["id"].clone()), "who accepts an invite");
    let installer = scene.send("POST", "/invite/device", json!({})).await.with(201);
    let run = |more: Value| {
        let mut run = json!({"secret": installer["secret"], "name": "added"});
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        run
    };
    scene.own("POST", "/install", run(json!({"userID": user["id"]}))).await.with(201);
    assert_eq!(actor().await, Some(user["id"].clone()), "who signs in to add a computer");
    scene.own("POST", "/install", run(json!({}))).await.with(201);
    assert_eq!(actor().await, None, "an installer that runs unattended");
}
