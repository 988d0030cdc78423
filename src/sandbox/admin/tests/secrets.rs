//! Installers, invites and links work until they expire, are used or are removed.

use super::*;

const DAY: i64 = 86_400;

fn at(state: &mut TeamState, op: Op, ids: &[&str], sent: Value, now: i64) -> Result<Outcome, Refusal> {
    ask_with(state, op, ids, sent, &ann(), Choices::default(), now)
}

#[test]
fn an_installer_adds_computers_until_it_expires_is_used_up_or_deleted() {
    let mut state = team();
    let sent = json!({"name": "studio", "users": ["bob"], "groups": ["configured"], "expirySecs": 60});
    let made = body(ask(&mut state, Op::CreateInstaller, &[], sent));
    assert_eq!((&made["createdAt"], &made["expiresAt"]), (&json!(NOW), &json!(NOW + 60)));
    assert!(["winexe", "winmsi", "macpkg"].iter().all(|kind| made["connectDownloads"][kind].is_string()));
    let (id, secret) = (made["id"].as_str().unwrap().to_owned(), made["secret"].clone());
    assert_eq!(code(ask(&mut state, Op::CreateInstaller, &[], json!({}))), "invite-limit-reached");
    let run = json!({"secret": secret, "name": "new-1"});
    let added = body(at(&mut state, Op::Install, &[], run.clone(), NOW + 59));
    assert_eq!((&added["users"], &added["groups"]), (&json!(["bob"]), &json!(["configured"])));
    assert_eq!(code(at(&mut state, Op::Install, &[], run.clone(), NOW + 60)), "invite-not-found");
    assert!(at(&mut state, Op::CreateInstaller, &[], json!({}), NOW + 60).is_ok(), "an expired one does not count");
    assert_eq!(code(at(&mut state, Op::RemoveInstaller, &[&id], json!({}), NOW + 60)), "invite-not-found");
    assert_eq!(at(&mut state, Op::RemoveInstaller, &[&id], json!({}), NOW).unwrap().status, 201);
    assert_eq!(code(ask(&mut state, Op::Install, &[], run)), "invite-not-found");
    assert!(state.device(added["id"].as_str().unwrap()).is_ok(), "computers already added stay");
    assert_eq!(code(ask(&mut state, Op::RemoveInstaller, &["zed"], json!({}))), "invite-not-found");
}

#[test]
fn an_installer_may_be_for_one_computer_or_for_people_who_sign_in() {
    let mut state = team();
    let sent = json!({"singleUse": true, "requireAuthentication": true, "expirySecs": 0});
    let made = body(ask(&mut state, Op::CreateInstaller, &[], sent));
    assert_eq!((made.get("expiresAt"), &made["requireAuthentication"]), (None, &json!(true)));
    let run = |more: Value| {
        let mut run = json!({"secret": made["secret"], "name": "new-1"});
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        run
    };
    assert_eq!(code(ask(&mut state, Op::Install, &[], run(json!({})))), "forbidden");
    assert_eq!(code(ask(&mut state, Op::Install, &[], run(json!({"userID": "zed"})))), "user-not-found");
    let outcome = at(&mut state, Op::Install, &[], run(json!({"userID": "bob"})), NOW + 900 * DAY).unwrap();
    assert_eq!(activity_events(&outcome), ["teamDeviceAddedEvent"]);
    assert_eq!(code(ask(&mut state, Op::Install, &[], run(json!({"userID": "bob"})))), "invite-not-found");
}

#[test]
fn an_invite_is_accepted_by_its_secret_until_it_expires_is_used_or_deleted() {
    let mut state = team();
    let sent = json!({"sendTo": "new@elsewhere.example", "groups": ["plain"], "devices": ["d2"], "name": "welcome"});
    let made = body(ask(&mut state, Op::InviteUser, &[], sent));
    assert_eq!((&made["sentTo"], &made["singleUse"]), (&json!("new@elsewhere.example"), &json!(true)));
    assert_eq!((&made["createdAt"], &made["expiresAt"]), (&json!(NOW), &json!(NOW + 30 * DAY)));
    assert_eq!((state.mail.len(), state.mail[0].secret == made["secret"]), (1, true));
    let join = json!({"secret": made["secret"]});
    assert_eq!(code(at(&mut state, Op::Join, &[], join.clone(), NOW + 30 * DAY)), "invite-not-found");
    let outcome = at(&mut state, Op::Join, &[], join.clone(), NOW + 30 * DAY - 1).unwrap();
    assert_eq!((activity_events(&outcome), billing_events(&outcome).len()), (vec!["teamUserAddedEvent"], 1));
    let user = outcome.body.unwrap();
    assert_eq!((&user["role"], &user["remoteAccess"]), (&json!("user"), &json!("enabled")));
    let id = user["id"].as_str().unwrap().to_owned();
    assert!(state.groups[0].users.contains(&id) && state.device("d2").unwrap().users.contains(&id));
    assert_eq!(code(ask(&mut state, Op::Join, &[], join)), "invite-not-found", "single use");
}

#[test]
fn a_public_invite_is_used_again_until_the_licences_end() {
    let mut state = team();
    state.plan.licensed_users = 3;
    let made = body(ask(&mut state, Op::InviteUser, &[], json!({})));
    assert_eq!((made.get("sentTo"), &made["singleUse"]), (None, &json!(false)));
    let join = |email: &str| json!({"secret": made["secret"], "email": email});
    assert_eq!(code(ask(&mut state, Op::Join, &[], join("BOB@team.example"))), "user-already-on-team");
    assert_eq!(code(ask(&mut state, Op::Join, &[], join("nobody"))), "invalid-parameter");
    assert!(ask(&mut state, Op::Join, &[], join("f@x.example")).is_ok());
    assert_eq!(code(ask(&mut state, Op::Join, &[], join("g@x.example"))), "active-users-exceed-licensed-quanity");
    assert_eq!(code(ask(&mut state, Op::InviteUser, &[], json!({"singleUse": true}))), "invalid-parameter");
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert_eq!(ask(&mut state, Op::RemoveInvite, &[&secret], json!({})).unwrap().status, 201);
    assert_eq!(code(ask(&mut state, Op::Join, &[], join("h@x.example"))), "invite-not-found");
    assert_eq!(code(ask(&mut state, Op::RemoveInvite, &[&secret], json!({}))), "invite-not-found");
}

#[test]
fn opening_the_link_within_24_hours_turns_two_factor_off() {
    for (case, id, set) in [("without 2FA", "cyd", (false, true)), ("SSO only", "ann", (true, true))] {
        let mut state = team();
        state.user_mut(id).unwrap().totp = set.0;
        state.plan.enterprise = set.1;
        assert_eq!(code(ask(&mut state, Op::RemoveTotp, &[id], json!({}))), "totp-not-enabled", "{case}");
    }
    let mut state = team();
    state.plan.enterprise = false;
    assert_eq!(code(ask(&mut state, Op::RemoveTotp, &["bob"], json!({}))), "forbidden");
    state.plan.enterprise = true;
    assert_eq!(ask(&mut state, Op::RemoveTotp, &["bob"], json!({})).unwrap().status, 200);
    let is_on = |state: &mut TeamState| body(ask(state, Op::UserInfo, &["bob"], json!({})))["totp"]["enabled"].clone();
    assert_eq!(is_on(&mut state), true, "unchanged until the link is followed");
    let follow = json!({"secret": state.mail[0].secret});
    assert_eq!(code(at(&mut state, Op::ConfirmTotp, &[], follow.clone(), NOW + DAY)), "not-found");
    assert!(at(&mut state, Op::ConfirmTotp, &[], follow.clone(), NOW + DAY - 1).is_ok());
    assert_eq!(is_on(&mut state), false);
    assert_eq!(code(ask(&mut state, Op::ConfirmTotp, &[], follow)), "not-found", "followed once");
}

#[test]
fn launch_links_carry_the_current_name() {
    let mut state = team();
    ask(&mut state, Op::RenameDevice, &["d1"], json!({"name": "edit & cut"})).unwrap();
    let links = body(ask(&mut state, Op::DeviceUrls, &["d1"], json!({})));
    for link in ["connect", "askScreenShare"] {
        assert!(links[link].as_str().unwrap().ends_with("?name=edit%20%26%20cut"), "{links}");
    }
    assert!(links["dashboard"].as_str().unwrap().contains("d1"));
    assert_eq!(code(ask(&mut state, Op::DeviceUrls, &["zed"], json!({}))), "device-not-found");
}

#[test]
fn a_connection_makes_five_kinds_of_events_that_end_now() {
    let mut state = team();
    let outcome = ask(&mut state, Op::Connect, &["d1"], json!({"userID": "bob", "seconds": 60})).unwrap();
    let seen: Vec<(&str, i64)> = outcome
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Connection { kind, at_ms, .. } => (*kind, at_ms - NOW * 1000),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("incomingConnectionRequest", -60_004),
        ("incomingConnectionEvent", -60_003),
        ("authFailedEvent", -60_002),
        ("authSucceededEvent", -60_001),
        ("connectionClosedEvent", 0),
    ];
    assert_eq!(seen, expected);
    let outcome = ask(&mut state, Op::Connect, &["d1"], json!({"tunnelID": "rdp", "open": true})).unwrap();
    assert_eq!(
        outcome.effects.len(),
        2,
        "only a fluid connection has a sign-in event; an open connection has no close event"
    );
    assert_eq!(code(ask(&mut state, Op::Connect, &["d1"], json!({"userID": "cyd"}))), "forbidden");
    assert_eq!(code(ask(&mut state, Op::Connect, &["d2"], json!({}))), "forbidden");
    let gone = ask(&mut state, Op::RemoveDevice, &["d1"], json!({})).unwrap();
    assert!(gone.effects.contains(&Effect::ComputerRemoved("d1".to_owned())) && state.sessions.is_empty());
}
