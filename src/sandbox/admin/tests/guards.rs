//! Limits: who must stay on a team, how many people may connect, how long texts may be.

use super::*;

#[test]
fn changes_of_users_obey_the_last_admin_the_last_active_user_and_the_licence() {
    let admin_only = |state: &mut TeamState| state.users[1].remote_access = false;
    let full = |state: &mut TeamState| state.plan.licensed_users = 2;
    let nothing = |_: &mut TeamState| {};
    type Set = fn(&mut TeamState);
    let cases: [(&str, Set, &str, Value, &str); 12] = [
        ("the last admin is not demoted", nothing, "ann", json!({"role": "user"}), "team-requires-admin"),
        ("nor made read-only", nothing, "ann", json!({"role": "admin-read-only"}), "team-requires-admin"),
        (
            "the last admin's access stays on while others connect",
            nothing,
            "ann",
            json!({"remoteAccess": "disabled"}),
            "team-requires-admin",
        ),
        (
            "the last active user stays on",
            admin_only,
            "ann",
            json!({"remoteAccess": "disabled"}),
            "team-requires-active-user",
        ),
        (
            "both at once is the admin's guard",
            admin_only,
            "ann",
            json!({"role": "user", "remoteAccess": "disabled"}),
            "team-requires-admin",
        ),
        ("another is switched off", nothing, "bob", json!({"remoteAccess": "disabled"}), ""),
        ("another becomes an admin", nothing, "bob", json!({"role": "admin"}), ""),
        ("a licence is left", nothing, "cyd", json!({"remoteAccess": "enabled"}), ""),
        ("no licence is left", full, "cyd", json!({"remoteAccess": "enabled"}), "active-users-exceed-licensed-quanity"),
        (
            "a user with remote access keeps it without a free licence",
            full,
            "bob",
            json!({"remoteAccess": "enabled"}),
            "",
        ),
        ("an unknown role is no role", nothing, "bob", json!({"role": "owner"}), "invalid-parameter"),
        ("an unknown user is refused", nothing, "zed", json!({}), "user-not-found"),
    ];
    for (case, set, id, change, expected) in cases {
        let mut state = team();
        set(&mut state);
        match ask(&mut state, Op::ChangeUser, &[id], change) {
            Ok(outcome) => assert_eq!(("", 201), (expected, outcome.status), "{case}"),
            Err(refusal) => assert_eq!(refusal.code, expected, "{case}"),
        }
    }
}

#[test]
fn a_switch_decides_whether_an_admin_needs_remote_access() {
    use AdminAccess::{Always, Never, WhenChanged};
    let off = || json!({"remoteAccess": "disabled"});
    let beside_cyd = |state: &mut TeamState| state.users[2].role = MemberRole::Admin;
    let beside_bob = |state: &mut TeamState| state.users[1].role = MemberRole::Admin;
    let alone = |_: &mut TeamState| {};
    type Set = fn(&mut TeamState);
    let cases: [(&str, Set, Op, Value, [&str; 3]); 5] = [
        (
            "the last admin's access ends",
            alone,
            Op::ChangeUser,
            off(),
            ["", "team-requires-admin", "team-requires-admin"],
        ),
        (
            "an admin without is left",
            beside_cyd,
            Op::ChangeUser,
            off(),
            ["", "team-requires-admin", "team-requires-admin"],
        ),
        ("an admin with is left", beside_bob, Op::ChangeUser, off(), ["", "", ""]),
        (
            "a role, and one without is left",
            beside_cyd,
            Op::ChangeUser,
            json!({"role": "user"}),
            ["", "", "team-requires-admin"],
        ),
        ("a removal, and one without is left", beside_cyd, Op::RemoveUser, json!({}), ["", "", "team-requires-admin"]),
    ];
    for (case, set, op, sent, expected) in cases {
        for (admin_needs_access, expected) in [Never, WhenChanged, Always].into_iter().zip(expected) {
            let mut state = team();
            set(&mut state);
            let choices = Choices { admin_needs_access, ..Choices::default() };
            let answer = ask_with(&mut state, op, &["ann"], sent.clone(), &ann(), choices, NOW);
            assert_eq!(answer.err().map_or("", |refusal| refusal.code), expected, "{case}: {admin_needs_access:?}");
        }
    }
}

#[test]
fn missing_fields_of_a_user_change_keep_their_value() {
    let mut state = team();
    let seen = body(ask(&mut state, Op::ChangeUser, &["bob"], json!({"role": "admin-read-only"})));
    assert_eq!((&seen["role"], &seen["remoteAccess"]), (&json!("admin-read-only"), &json!("enabled")));
    let seen = body(ask(&mut state, Op::ChangeUser, &["bob"], json!({"remoteAccess": "disabled", "role": null})));
    assert_eq!((&seen["role"], &seen["remoteAccess"]), (&json!("admin-read-only"), &json!("disabled")));
    let outcome = ask(&mut state, Op::ChangeUser, &["bob"], json!({})).unwrap();
    assert_eq!((outcome.status, outcome.effects.len()), (201, 0), "no change makes no event");
}

#[test]
fn a_removed_user_is_in_no_list_and_the_guards_apply() {
    let mut state = team();
    assert_eq!(code(ask(&mut state, Op::RemoveUser, &["ann"], json!({}))), "team-requires-admin");
    state.users[2].role = MemberRole::Admin;
    state.users[1].remote_access = false;
    assert_eq!(code(ask(&mut state, Op::RemoveUser, &["ann"], json!({}))), "team-requires-active-user");
    state.users[1].remote_access = true;
    let outcome = ask(&mut state, Op::RemoveUser, &["bob"], json!({})).unwrap();
    assert_eq!(
        (activity_events(&outcome), billing_events(&outcome)),
        (vec!["teamUserRemovedEvent"], vec![json!({"usersRemovedEvent": {"count": 1}})])
    );
    assert!(state.devices.iter().all(|device| !device.users.contains(&"bob".to_owned())));
    assert!(state.groups.iter().all(|group| !group.users.contains(&"bob".to_owned())));
    let outcome = ask(&mut state, Op::RemoveUser, &["cyd"], json!({})).unwrap();
    assert_eq!(billing_events(&outcome), [] as [Value; 0], "without remote access nothing was paid");
}

#[test]
fn sessions_end_with_access() {
    for (op, change) in [(Op::ChangeUser, json!({"remoteAccess": "disabled"})), (Op::RemoveUser, json!({}))] {
        let mut state = team();
        let open = body(ask(&mut state, Op::Connect, &["d1"], json!({"userID": "bob", "open": true})));
        assert_eq!(state.sessions.len(), 1);
        let outcome = ask(&mut state, op, &["bob"], change).unwrap();
        let closed = outcome.effects.iter().any(|effect| {
            matches!(effect, Effect::Connection { kind: "connectionClosedEvent", event, .. }
                if event["associatedIncomingConnectionEvent"]["connectionID"] == open["connectionID"])
        });
        assert!(closed && state.sessions.is_empty(), "{op:?}");
        assert_eq!(code(ask(&mut state, Op::Connect, &["d2"], json!({}))), "forbidden");
    }
}

#[test]
fn an_admin_of_both_teams_can_add_an_sso_user_if_a_licence_is_free() {
    let mut state = team();
    let add = |state: &mut TeamState, id, caller: &Caller| {
        ask_with(state, Op::AddSsoUser, &[id], json!({}), caller, Choices::default(), NOW)
    };
    let by_password = Caller { signs_in_with_sso: false, ..ann() };
    let no_admin = Caller { admin_of: Some(Vec::new()), ..ann() };
    for caller in [by_password, no_admin] {
        assert_eq!(code(add(&mut state, "eve", &caller)), "forbidden");
        let listed = ask_with(&mut state, Op::SsoUsers, &[], json!({}), &caller, Choices::default(), NOW);
        assert_eq!(code(listed), "forbidden");
    }
    state.plan.sso_owner = Some("other".to_owned());
    assert_eq!(code(add(&mut state, "eve", &ann())), "forbidden");
    let of_both = Caller { admin_of: Some(vec!["team".to_owned(), "other".to_owned()]), ..ann() };
    state.plan.licensed_users = 2;
    assert_eq!(code(add(&mut state, "eve", &of_both)), "active-users-exceed-licensed-quanity");
    state.plan.licensed_users = 3;
    assert_eq!(add(&mut state, "bob", &of_both).unwrap_err().kind, crate::sandbox::answer::Kind::Given(409));
    assert_eq!(code(add(&mut state, "zed", &of_both)), "user-not-found");
    let outcome = add(&mut state, "eve", &of_both).unwrap();
    assert_eq!((outcome.status, activity_events(&outcome)), (200, vec!["teamUserAddedEvent"]));
    let eve = state.user("eve").unwrap();
    assert_eq!((eve.role, eve.remote_access, state.mail.len()), (MemberRole::User, true, 0));
    assert_eq!(code(add(&mut state, "eve", &of_both)), "user-already-on-team");
    state.users[1].role = MemberRole::Admin;
    ask(&mut state, Op::RemoveUser, &["eve"], json!({})).unwrap();
    assert!(add(&mut state, "eve", &of_both).is_ok(), "the account itself lives on");
}

#[test]
fn text_limits_count_characters() {
    let long = |count: usize| "é".repeat(count);
    let notes = |key: &str, value: &str| json!({"annotations": [{"key": key, "value": value}]});
    for (op, ids, fits, too_long) in [
        (Op::RenameDevice, vec!["d1"], json!({"name": long(64)}), json!({"name": long(65)})),
        (Op::RenameGroup, vec!["plain"], json!({"name": long(64)}), json!({"name": long(65)})),
        (Op::CreateGroup, vec![], json!({"name": long(1)}), json!({"name": ""})),
        (Op::CreateGroup, vec![], json!({"name": long(64)}), json!({"name": long(65)})),
        (Op::CreateInstaller, vec![], json!({"name": long(64)}), json!({"name": long(65)})),
        (Op::InviteUser, vec![], json!({"name": long(64)}), json!({"name": long(65)})),
        (Op::AnnotateUser, vec!["bob"], notes(&long(64), ""), notes(&long(65), "")),
        (Op::AnnotateDevice, vec!["d1"], notes("k", ""), notes("", "")),
        (Op::AnnotateGroup, vec!["plain"], notes("k", &long(2048)), notes("k", &long(2049))),
    ] {
        assert!(ask(&mut team(), op, &ids, fits).is_ok(), "{op:?}");
        assert_eq!(code(ask(&mut team(), op, &ids, too_long)), "invalid-parameter", "{op:?}");
    }
    assert_eq!(code(ask(&mut team(), Op::RenameDevice, &["d1"], json!({}))), "invalid-parameter");
    assert_eq!(code(ask(&mut team(), Op::RenameDevice, &["d1"], json!({"name": 5}))), "invalid-parameter");
    let strict = Choices { refuse_unknown_fields: true, ..Choices::default() };
    let more = || json!({"name": "x", "color": "red"});
    assert!(ask(&mut team(), Op::RenameDevice, &["d1"], more()).is_ok());
    let refused = ask_with(&mut team(), Op::RenameDevice, &["d1"], more(), &ann(), strict, NOW);
    assert_eq!(code(refused), "invalid-parameter");
}

#[test]
fn annotations_change_by_key_up_to_their_limit() {
    for (write, read, delete, id) in [
        (Op::AnnotateDevice, Op::DeviceAnnotations, Op::UnannotateDevice, "d1"),
        (Op::AnnotateUser, Op::UserAnnotations, Op::UnannotateUser, "bob"),
        (Op::AnnotateGroup, Op::GroupAnnotations, Op::UnannotateGroup, "plain"),
    ] {
        let mut state = team();
        let tag = |value: &str| json!({"annotations": [{"key": "tag", "value": value}]});
        ask(&mut state, write, &[id], tag("a,b")).unwrap();
        let seen = body(ask(&mut state, write, &[id], tag("c")));
        assert_eq!(seen, tag("c"), "all tags are replaced");
        let seen = body(ask(&mut state, write, &[id], json!({"annotations": [{"key": "owner", "value": "me"}]})));
        assert_eq!(seen["annotations"].as_array().unwrap().len(), 2, "other keys stay");
        let third = json!({"annotations": [{"key": "owner", "value": "you"}, {"key": "third"}]});
        assert_eq!(code(ask(&mut state, write, &[id], third)), "team-too-many-annotations");
        let outcome = ask(&mut state, delete, &[id], json!({"annotationKeys": ["tag", "unknown"]})).unwrap();
        let left = json!({"annotations": [{"key": "owner", "value": "me"}]});
        let is_user = delete == Op::UnannotateUser;
        assert_eq!(outcome.body, is_user.then(|| left.clone()));
        assert_eq!(outcome.status, if is_user { 201 } else { 200 });
        assert_eq!(body(ask(&mut state, read, &[id], json!({}))), left);
        assert!(matches!(
            code(ask(&mut state, write, &["zed"], tag(""))),
            "device-not-found" | "user-not-found" | "group-not-found"
        ));
    }
}
