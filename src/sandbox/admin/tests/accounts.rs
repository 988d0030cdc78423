//! One address is one account from the view of every team.

use super::*;

fn ask_beside(
    state: &mut TeamState,
    op: Op,
    ids: &[&str],
    sent: Value,
    elsewhere: &[User],
) -> Result<Outcome, Refusal> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let Value::Object(body) = sent else { panic!("a body is an object") };
    let request = AdminRequest { op, ids: &ids, query: &[], body: &body };
    let (caller, now) = (ann(), Instant::from_seconds(NOW));
    let context = Context { now, choices: Choices::default(), caller: &caller, plan_span: 7, elsewhere };
    apply(state, &request, &context)
}

#[test]
fn people_who_share_the_sso_connection_are_listed_once_and_can_be_added() {
    let far = [user("far", MemberRole::Admin, false, "saml", true), user("eve", MemberRole::User, true, "saml", false)];
    let mut state = team();
    let listed = body(ask_beside(&mut state, Op::SsoUsers, &[], json!({}), &far));
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|user| user["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["ann", "eve", "far"]);
    ask_beside(&mut state, Op::AddSsoUser, &["far"], json!({}), &far).unwrap();
    let added = state.user("far").unwrap();
    assert_eq!(
        (added.role, added.remote_access, added.totp),
        (MemberRole::User, true, true),
        "the account's 2FA is its own"
    );
    assert_eq!(code(ask_beside(&mut state, Op::AddSsoUser, &["zed"], json!({}), &far)), "user-not-found");
}

#[test]
fn a_person_who_joins_with_a_known_address_is_the_same_person() {
    let known = [user("far", MemberRole::Admin, true, "password", true)];
    let mut state = team();
    let invite = body(ask(&mut state, Op::InviteUser, &[], json!({})));
    let join = |email: &str| json!({"secret": invite["secret"], "email": email, "firstName": "Else"});
    let joined = body(ask_beside(&mut state, Op::Join, &[], join("FAR@team.example"), &known));
    assert_eq!((&joined["id"], &joined["role"], joined.get("firstName")), (&json!("far"), &json!("user"), None));
    ask(&mut state, Op::RemoveUser, &["far"], json!({})).unwrap();
    assert_eq!((state.departed.len(), state.departed[0].id.as_str()), (1, "far"));
    let back = body(ask(&mut state, Op::Join, &[], join("far@team.example")));
    assert_eq!((&back["id"], state.departed.len()), (&json!("far"), 0), "in one list at a time");
    ask(&mut state, Op::RemoveUser, &["far"], json!({})).unwrap();
    let outsider = body(ask(&mut state, Op::Join, &[], join("eve@team.example")));
    assert_eq!((&outsider["id"], state.sso_outsiders.len()), (&json!("eve"), 0));
}

#[test]
fn a_change_of_an_account_happens_once_and_only_members_get_an_event() {
    let mut state = team();
    let effects = spread(&mut state, "BOB@team.example", AccountChange::TotpRemoved);
    assert!(matches!(&effects[..], [Effect::Activity { name: "teamUserTotpRemovedEvent", .. }]), "{effects:?}");
    assert!(!state.user("bob").unwrap().totp);
    assert_eq!(spread(&mut state, "bob@team.example", AccountChange::TotpRemoved), []);
    state.sso_outsiders[0].totp = true;
    assert_eq!(spread(&mut state, "eve@team.example", AccountChange::TotpRemoved), [], "eve is not on the team");
    assert!(!state.sso_outsiders[0].totp);
    for _ in 0..2 {
        assert_eq!(spread(&mut state, "bob@team.example", AccountChange::SsoGained), []);
        assert_eq!(state.user("bob").unwrap().providers, ["password", "saml"]);
    }
}
