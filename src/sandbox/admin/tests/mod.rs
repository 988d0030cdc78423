//! Tests the rules without a server. Each case is one request on a small team, and its name is the rule.

use serde_json::{Value, json};

use crate::model::Instant;
use crate::sandbox::answer::Refusal;
use crate::sandbox::choices::{AdminAccess, Choices};
use crate::sandbox::routes::Op;

use super::state::{AgentConfig, Annotation, Device, Group, MemberRole, Plan, TeamState, User};
use super::{AccountChange, AdminRequest, Caller, Context, Effect, Outcome, apply, spread};

mod accounts;
mod guards;
mod members;
mod secrets;

const NOW: i64 = 1_795_000_000;

fn user(id: &str, role: MemberRole, remote_access: bool, provider: &str, totp: bool) -> User {
    User {
        id: id.to_owned(),
        email: format!("{id}@team.example"),
        first_name: String::new(),
        last_name: String::new(),
        avatar_url: None,
        role,
        remote_access,
        totp,
        providers: vec![provider.to_owned()],
        annotations: Vec::new(),
        joined_on: 1,
        last_used_at: None,
        scim: false,
        token_log: json!([]),
    }
}

fn device(id: &str, users: &[&str], groups: &[&str]) -> Device {
    let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
    Device {
        id: id.to_owned(),
        name: format!("name of {id}"),
        last_online_at: None,
        users: owned(users),
        groups: owned(groups),
        annotations: vec![Annotation { key: "tag".to_owned(), value: "a,b".to_owned() }],
        client_info: Value::Null,
        config: None,
    }
}

fn group(id: &str, users: &[&str], scim: bool, config: Option<&str>) -> Group {
    Group {
        id: id.to_owned(),
        name: format!("name of {id}"),
        users: users.iter().map(|item| (*item).to_owned()).collect(),
        scim,
        annotations: Vec::new(),
        config: config.map(str::to_owned),
    }
}

/// ann is the admin and signs in with SSO; bob signs in with a password and 2FA; cyd has no remote access. The
/// identity provider manages the group `managed`; the group `configured` has an agent configuration.
fn team() -> TeamState {
    TeamState {
        id: "team".to_owned(),
        name: "Team".to_owned(),
        created_at: 1,
        seed: 1,
        plan: Plan {
            licensed_users: 3,
            installers: 1,
            groups: 4,
            annotations: 2,
            enterprise: true,
            sso: true,
            sso_owner: None,
        },
        users: vec![
            user("ann", MemberRole::Admin, true, "saml", false),
            user("bob", MemberRole::User, true, "password", true),
            user("cyd", MemberRole::User, false, "password", false),
        ],
        devices: vec![device("d1", &["bob"], &["plain"]), device("d2", &[], &[])],
        groups: vec![
            group("plain", &["ann", "bob"], false, None),
            group("managed", &["bob"], true, None),
            group("configured", &[], false, Some("config")),
        ],
        installers: Vec::new(),
        invites: Vec::new(),
        configs: vec![AgentConfig { id: "config".to_owned(), name: "quiet".to_owned() }],
        sso_outsiders: vec![user("eve", MemberRole::User, false, "saml", false)],
        departed: Vec::new(),
        delete_schedule: None,
        migrations: Vec::new(),
        mail: Vec::new(),
        sessions: Vec::new(),
        seasons: Vec::new(),
        drawn: 0,
    }
}

fn ann() -> Caller {
    Caller {
        user_id: "ann".to_owned(),
        email: "ann@team.example".to_owned(),
        title: "token".to_owned(),
        is_admin: true,
        signs_in_with_sso: true,
        admin_of: Some(vec!["team".to_owned()]),
    }
}

/// One request by ann. Asserts that a refusal changes nothing.
fn ask(state: &mut TeamState, op: Op, ids: &[&str], body: Value) -> Result<Outcome, Refusal> {
    ask_with(state, op, ids, body, &ann(), Choices::default(), NOW)
}

fn ask_with(
    state: &mut TeamState,
    op: Op,
    ids: &[&str],
    body: Value,
    caller: &Caller,
    choices: Choices,
    now: i64,
) -> Result<Outcome, Refusal> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let Value::Object(body) = body else { panic!("a body is an object") };
    let request = AdminRequest { op, ids: &ids, query: &[], body: &body };
    let context = Context { now: Instant::from_seconds(now), choices, caller, plan_span: 7, elsewhere: &[] };
    let before = state.clone();
    let answer = apply(state, &request, &context);
    if answer.is_err() {
        assert_eq!(*state, before, "{op:?} was refused and changed something");
    }
    answer
}

fn code(answer: Result<Outcome, Refusal>) -> &'static str {
    match answer {
        Ok(outcome) => panic!("not refused: {outcome:?}"),
        Err(refusal) => refusal.code,
    }
}

fn body(answer: Result<Outcome, Refusal>) -> Value {
    answer.unwrap().body.unwrap_or(Value::Null)
}

/// The names of the activity events.
fn activity_events(outcome: &Outcome) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::Activity { name, .. } => Some(*name),
        _ => None,
    };
    outcome.effects.iter().filter_map(name).collect()
}

fn billing_events(outcome: &Outcome) -> Vec<Value> {
    let event = |effect: &Effect| match effect {
        Effect::Billing(event) => Some(Value::Object(event.clone())),
        _ => None,
    };
    outcome.effects.iter().filter_map(event).collect()
}
