//! Access to computers, and Access Groups.

use super::*;

fn members(state: &TeamState, id: &str) -> (Vec<String>, Vec<String>) {
    let device = state.device(id).unwrap();
    (device.users.clone(), device.groups.clone())
}

fn pair(users: &[&str], groups: &[&str]) -> (Vec<String>, Vec<String>) {
    let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
    (owned(users), owned(groups))
}

#[test]
fn put_replaces_post_adds_and_delete_removes() {
    for (case, op, sent, expected) in [
        (
            "PUT is exactly the lists",
            Op::ReplaceAccess,
            json!({"users": ["cyd"], "groups": ["managed"]}),
            pair(&["cyd"], &["managed"]),
        ),
        ("PUT without users removes all users", Op::ReplaceAccess, json!({"groups": ["plain"]}), pair(&[], &["plain"])),
        ("PUT of empty lists removes everyone", Op::ReplaceAccess, json!({"users": [], "groups": []}), pair(&[], &[])),
        ("PUT of nothing removes everyone", Op::ReplaceAccess, json!({}), pair(&[], &[])),
        (
            "POST adds, each once",
            Op::AddAccess,
            json!({"users": ["bob", "ann", "ann"]}),
            pair(&["bob", "ann"], &["plain"]),
        ),
        ("POST of nothing changes nothing", Op::AddAccess, json!({"users": null}), pair(&["bob"], &["plain"])),
        ("delete takes the listed", Op::RemoveAccess, json!({"users": ["bob", "ann"]}), pair(&[], &["plain"])),
        ("delete takes groups", Op::RemoveAccess, json!({"groups": ["plain"]}), pair(&["bob"], &[])),
    ] {
        let mut state = team();
        assert_eq!(ask(&mut state, op, &["d1"], sent).unwrap().status, 201, "{case}");
        assert_eq!(members(&state, "d1"), expected, "{case}");
    }
    for op in [Op::ReplaceAccess, Op::AddAccess, Op::RemoveAccess] {
        assert_eq!(code(ask(&mut team(), op, &["zed"], json!({}))), "device-not-found");
        assert_eq!(code(ask(&mut team(), op, &["d1"], json!({"users": ["ann", "zed"]}))), "user-not-found");
        assert_eq!(code(ask(&mut team(), op, &["d1"], json!({"groups": ["zed"]}))), "group-not-found");
    }
}

#[test]
fn bulk_requests_report_each_failed_computer_and_omit_errors_when_none_failed() {
    let mut state = team();
    let sent = json!({"devices": ["d1", "zed", "d2"], "users": ["ann"]});
    let seen = body(ask(&mut state, Op::AddAccessBulk, &[], sent));
    assert_eq!((&seen["devices"], &seen["users"]), (&json!(["d1", "d2"]), &json!(["ann"])));
    assert_eq!(seen["errors"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&seen["errors"][0]["deviceID"], &seen["errors"][0]["code"]),
        (&json!("zed"), &json!("device-not-found"))
    );
    assert_eq!(members(&state, "d2"), pair(&["ann"], &[]));
    let seen = body(ask(&mut state, Op::RemoveAccessBulk, &[], json!({"devices": ["d1", "d2"], "users": ["ann"]})));
    assert_eq!(seen, json!({"devices": ["d1", "d2"], "users": ["ann"]}));
    assert_eq!(members(&state, "d2"), pair(&[], &[]));
    let seen = body(ask(&mut state, Op::AddAccessBulk, &[], json!({"devices": ["d1"], "users": ["zed"]})));
    assert_eq!((seen.get("devices"), &seen["errors"][0]["code"]), (None, &json!("user-not-found")));
}

#[test]
fn a_group_with_an_agent_configuration_clears_the_computers_own() {
    let own = |state: &TeamState| state.device("d1").unwrap().config.clone();
    for (op, ids, sent, clears) in [
        (Op::AddAccess, vec!["d1"], json!({"groups": ["configured"]}), true),
        (Op::ReplaceAccess, vec!["d1"], json!({"groups": ["configured"]}), true),
        (Op::AddAccessBulk, vec![], json!({"devices": ["d1"], "groups": ["configured"]}), true),
        (Op::AddMembers, vec!["configured"], json!({"devices": ["d1"]}), true),
        (Op::AddMembersBulk, vec![], json!({"groups": ["configured"], "devices": ["d1"]}), true),
        (Op::AddAccess, vec!["d1"], json!({"groups": ["managed"]}), false),
    ] {
        let mut state = team();
        state.devices[0].config = Some("own".to_owned());
        ask(&mut state, op, &ids, sent).unwrap();
        assert_eq!(own(&state).is_none(), clears, "{op:?}");
    }
    let mut state = team();
    state.devices[0].groups.push("configured".to_owned());
    state.devices[0].config = Some("own".to_owned());
    ask(&mut state, Op::ReplaceAccess, &["d1"], json!({"groups": ["configured"]})).unwrap();
    assert!(own(&state).is_some(), "the group was there before: it was not added");
}

#[test]
fn groups_can_be_created_renamed_and_deleted_with_their_access() {
    let mut state = team();
    let made = body(ask(&mut state, Op::CreateGroup, &[], json!({"name": "new"})));
    assert_eq!((&made["name"], &made["scimManaged"]), (&json!("new"), &json!(false)));
    assert_eq!(code(ask(&mut state, Op::CreateGroup, &[], json!({"name": "one more"}))), "team-too-many-groups");
    let id = made["id"].as_str().unwrap().to_owned();
    let renamed = body(ask(&mut state, Op::RenameGroup, &[&id], json!({"name": "newer"})));
    assert_eq!(renamed, json!({"id": id, "name": "newer"}));
    let bob = state.user("bob").unwrap().clone();
    ask(&mut state, Op::ReplaceAccess, &["d1"], json!({"groups": ["plain"]})).unwrap();
    assert!(state.may_connect(&bob, state.device("d1").unwrap()), "through the group");
    ask(&mut state, Op::RemoveGroup, &["plain"], json!({})).unwrap();
    assert!(!state.may_connect(&bob, state.device("d1").unwrap()));
    assert!(state.user("bob").is_ok() && state.device("d1").is_ok());
    assert_eq!(code(ask(&mut state, Op::RemoveGroup, &["plain"], json!({}))), "group-not-found");
}

#[test]
fn members_are_added_and_removed_without_effect_on_others() {
    let mut state = team();
    ask(&mut state, Op::AddMembers, &["plain"], json!({"users": ["cyd"]})).unwrap();
    ask(&mut state, Op::AddMembers, &["plain"], json!({"devices": ["d2"]})).unwrap();
    assert_eq!(state.group("plain").unwrap().users, ["ann", "bob", "cyd"]);
    assert_eq!(members(&state, "d2"), pair(&[], &["plain"]));
    let outcome = ask(&mut state, Op::RemoveMembers, &["plain"], json!({"users": ["ann"], "devices": ["d1"]})).unwrap();
    assert_eq!((outcome.status, activity_events(&outcome)), (201, vec!["teamGroupMembersRemovedEvent"]));
    assert_eq!(state.group("plain").unwrap().users, ["bob", "cyd"]);
    assert_eq!((members(&state, "d1"), members(&state, "d2")), (pair(&["bob"], &[]), pair(&[], &["plain"])));
    assert_eq!(code(ask(&mut state, Op::AddMembers, &["zed"], json!({}))), "group-not-found");
    assert_eq!(code(ask(&mut state, Op::AddMembers, &["plain"], json!({"devices": ["zed"]}))), "device-not-found");
}

#[test]
fn a_managed_group_refuses_users_and_accepts_computers() {
    for (case, op, ids, sent) in [
        ("no rename", Op::RenameGroup, vec!["managed"], json!({"name": "x"})),
        ("no deletion", Op::RemoveGroup, vec!["managed"], json!({})),
        ("no users in", Op::AddMembers, vec!["managed"], json!({"users": ["ann"]})),
        ("no users out", Op::RemoveMembers, vec!["managed"], json!({"users": ["bob"]})),
        (
            "computers neither beside users",
            Op::AddMembers,
            vec!["managed"],
            json!({"users": ["ann"], "devices": ["d1"]}),
        ),
        ("nor out", Op::RemoveMembers, vec!["managed"], json!({"users": ["bob"], "devices": ["d1"]})),
    ] {
        assert_eq!(code(ask(&mut team(), op, &ids, sent)), "group-scim-managed", "{case}");
    }
    let mut state = team();
    ask(&mut state, Op::AddMembers, &["managed"], json!({"users": [], "devices": ["d2"]})).unwrap();
    assert_eq!(members(&state, "d2"), pair(&[], &["managed"]));
    ask(&mut state, Op::RemoveMembers, &["managed"], json!({"devices": ["d2"]})).unwrap();
    assert_eq!(members(&state, "d2"), pair(&[], &[]));
}

#[test]
fn bulk_requests_on_a_managed_group_skip_users_and_accept_computers() {
    let mut state = team();
    let sent = json!({"groups": ["managed", "plain", "zed"], "users": ["cyd"], "devices": ["d2"]});
    let seen = body(ask(&mut state, Op::AddMembersBulk, &[], sent));
    let errors: Vec<(&str, &str)> = seen["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["groupID"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(errors, [("managed", "group-scim-managed"), ("zed", "group-not-found")]);
    assert!(seen["errors"][0]["detail"].is_string());
    assert_eq!((&seen["devices"], &seen["users"]), (&json!(["d2"]), &json!(["cyd"])));
    assert_eq!(members(&state, "d2"), pair(&[], &["managed", "plain"]));
    assert_eq!((state.groups[0].users.len(), state.groups[1].users.len()), (3, 1));
    let seen = body(ask(&mut state, Op::RemoveMembersBulk, &[], json!({"groups": ["managed"], "users": ["bob"]})));
    assert_eq!((seen.get("users"), &seen["errors"][0]["code"]), (None, &json!("group-scim-managed")));
    let sent = json!({"groups": ["managed", "plain"], "devices": ["d2"]});
    let seen = body(ask(&mut state, Op::RemoveMembersBulk, &[], sent));
    assert_eq!(seen, json!({"devices": ["d2"]}), "no users listed, no error");
    assert_eq!(members(&state, "d2"), pair(&[], &[]));
}
