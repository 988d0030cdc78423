//! People on the team: change, remove, add by SSO. Guards keep an admin on the team.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::sandbox::answer::Refusal;
use crate::sandbox::choices::AdminAccess;

use super::events::{self, activity, close_sessions};
use super::request::{AdminRequest, Answer, Context, Effect, Outcome};
use super::state::{Mail, MemberRole, TeamState, User};
use super::views;

const REQUIRES_ADMIN: &str = "team-requires-admin";
/// How long a link for the removal of 2-factor authentication works.
const TOTP_LINK_SECONDS: i64 = 24 * 3_600;

pub fn list(state: &TeamState, request: &AdminRequest<'_>) -> Outcome {
    let email = request.parameter("email");
    let is_asked = |user: &&User| email.is_none_or(|email| user.email.eq_ignore_ascii_case(email));
    let found: Value = state.users.iter().filter(is_asked).map(|user| views::user(state, user)).collect();
    Outcome::ok().with(json!({"users": found}))
}

/// Checks that the team still has an admin and a user with remote access after `id` changes to the given user or
/// leaves.
fn guard(state: &TeamState, context: &Context<'_>, id: &str, after: Option<(MemberRole, bool)>) -> Result<(), Refusal> {
    let needs_access = context.choices.admin_needs_access;
    let is_always = needs_access == AdminAccess::Always;
    let counts = |role: MemberRole, access: bool| role == MemberRole::Admin && (access || !is_always);
    let others = || state.users.iter().filter(|user| user.id != id);
    let is_admin = after.is_some_and(|(role, access)| counts(role, access));
    if !is_admin && !others().any(|user| counts(user.role, user.remote_access)) {
        return Err(Refusal::rule(REQUIRES_ADMIN, "the team would be left without an admin"));
    }
    if !after.is_some_and(|(_, access)| access) && !others().any(|user| user.remote_access) {
        let detail = "the team would be left without a user with remote access on";
        return Err(Refusal::rule("team-requires-active-user", detail));
    }
    let is_active_admin = |user: &User| user.role == MemberRole::Admin && user.remote_access;
    let is_turned_off = after.is_some_and(|(_, access)| !access) && state.user(id).is_ok_and(is_active_admin);
    if is_turned_off && needs_access == AdminAccess::WhenChanged && !others().any(is_active_admin) {
        return Err(Refusal::rule(REQUIRES_ADMIN, "the team would be left without an admin with remote access on"));
    }
    Ok(())
}

/// Checks that one more person may connect. The service spells the code this way.
pub fn check_licence(state: &TeamState) -> Result<(), Refusal> {
    if state.active_users() < state.plan.licensed_users {
        return Ok(());
    }
    let detail = format!("all {} licensed users are in use", state.plan.licensed_users);
    Err(Refusal::rule("active-users-exceed-licensed-quanity", detail))
}

/// Changes a user. Missing fields keep their value.
pub fn change(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let user = state.user(request.id(0))?;
    let (old_role, old_access) = (user.role, user.remote_access);
    let role = request.text("role").and_then(MemberRole::named).unwrap_or(old_role);
    let access = request.text("remoteAccess").map_or(old_access, |sent| sent == "enabled");
    if (role, access) != (old_role, old_access) {
        guard(state, context, request.id(0), Some((role, access)))?;
    }
    if access && !old_access {
        check_licence(state)?;
    }
    let before = state.active_users();
    let user = state.user_mut(request.id(0))?;
    (user.role, user.remote_access) = (role, access);
    let who = json!({"userID": user.id, "email": user.email});
    let with = |field: &str, value: &str| {
        let mut payload = who.clone();
        payload[field] = json!(value);
        payload
    };
    let mut effects = Vec::new();
    if role != old_role {
        effects.push(activity(events::USER_ROLE, with("role", role.name())));
    }
    if access != old_access {
        effects.push(activity(
            events::USER_REMOTE_ACCESS,
            with("remoteAccess", if access { "enabled" } else { "disabled" }),
        ));
        effects.push(events::user_count(before, state.active_users()));
    }
    if !access {
        effects.extend(close_sessions(state, request.id(0), context));
    }
    let answer = views::user(state, state.user(request.id(0))?);
    Ok(Outcome::created().with(answer).with_effects(effects))
}

/// Removes a user. All access and sessions end. The account and its SSO sign-in stay.
pub fn remove(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let user = state.user(request.id(0))?.clone();
    guard(state, context, &user.id, None)?;
    let mut effects: Vec<Effect> = close_sessions(state, &user.id, context);
    state.forget_user(&user.id);
    effects.extend(events::user_removed(&user));
    if user.signs_in_with("saml") {
        state.sso_outsiders.push(user);
    } else {
        state.departed.push(user);
    }
    Ok(Outcome::ok().with_effects(effects))
}

pub fn info(state: &TeamState, request: &AdminRequest<'_>) -> Answer {
    Ok(Outcome::ok().with(views::authentication(state.user(request.id(0))?)))
}

/// Sends a link. Nothing changes until the person follows it.
pub fn remove_totp(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let user = state.user(request.id(0))?.clone();
    if !state.plan.enterprise {
        return Err(Refusal::forbidden("removing 2-factor authentication is a Teams Enterprise feature"));
    }
    if !user.totp || !user.signs_in_with("password") {
        let detail = "the user has no 2-factor authentication, or does not sign in with email and password";
        return Err(Refusal::rule("totp-not-enabled", detail));
    }
    let now = context.now.seconds();
    let secret = state.draw_secret();
    state.mail.push(Mail {
        to: user.email.clone(),
        kind: "totp-removal".to_owned(),
        secret,
        sent_at: now,
        expires_at: Some(now + TOTP_LINK_SECONDS),
        is_used: false,
    });
    Ok(Outcome::ok()
        .with_effect(activity(events::TOTP_REMOVAL_REQUESTED, json!({"userID": user.id, "email": user.email}))))
}

/// Requires an admin who signs in with SSO, of this team and of the connection's owner.
fn check_sso_caller(state: &TeamState, context: &Context<'_>) -> Result<(), Refusal> {
    let owner = state.sso_owner();
    let caller = context.caller;
    if !state.plan.sso {
        return Err(Refusal::forbidden("SSO is not enabled on this team"));
    }
    if !caller.signs_in_with_sso || !caller.administers(&state.id) || !caller.administers(owner) {
        let detail =
            "SSO users are for admins who sign in with SSO, of this team and of the one that owns the connection";
        return Err(Refusal::forbidden(detail));
    }
    Ok(())
}

pub fn sso_list(state: &TeamState, context: &Context<'_>) -> Answer {
    check_sso_caller(state, context)?;
    let members = state.users.iter().filter(|user| user.signs_in_with("saml"));
    let mut known = HashSet::new();
    let all = members.chain(&state.sso_outsiders).chain(context.elsewhere);
    let each_once = all.filter(|user| known.insert(user.id.as_str()));
    Ok(Outcome::ok().with(each_once.map(|user| views::sso_user(state, user)).collect()))
}

/// Adds the person at once, without an email.
pub fn sso_add(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    check_sso_caller(state, context)?;
    if state.user(request.id(0)).is_ok() {
        return Err(Refusal::already_there("user-already-on-team", "the user is on the team already"));
    }
    let mut sharing = state.sso_outsiders.iter().chain(context.elsewhere);
    let found = sharing.find(|user| user.id == request.id(0)).ok_or_else(|| Refusal::not_found("user"))?;
    check_licence(state)?;
    let user = newly_on_team(found, context.now.seconds());
    let outcome = Outcome::ok().with(views::sso_user(state, &user)).with_effects(events::user_added(&user, "sso"));
    state.admit(user);
    Ok(outcome)
}

/// A new member from an account: the person's fields stay, and the team's fields start fresh.
pub fn newly_on_team(account: &User, now: i64) -> User {
    User {
        role: MemberRole::User,
        remote_access: true,
        joined_on: now,
        last_used_at: None,
        annotations: Vec::new(),
        ..account.clone()
    }
}
