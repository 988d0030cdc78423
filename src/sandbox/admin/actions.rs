//! Actions of people outside the documented interface: connect, accept an invite, run an installer, follow a link.
//! Only the sandbox has requests for them.

use serde_json::{Value, json};

use crate::sandbox::answer::Refusal;

use super::accounts::spread;
use super::events::{self, activity, connection_event};
use super::invites::looks_like_address;
use super::request::{AccountChange, Actor, AdminRequest, Answer, Context, Outcome};
use super::state::{Device, MemberRole, Session, TeamState, User, is_over, push_new};
use super::users::{check_licence, newly_on_team};
use super::views;

/// The addresses of people who connect, from the networks that are reserved for documentation.
const PEER_ADDRESS: &str = "198.18.7.7";
const DIRECT_ADDRESS: &str = "198.51.100.7";

/// A person connects to a computer: request, connection, sign-in attempts (`fluid` only) and close. Each event
/// follows a millisecond after the one before, and the last one happens now. With `seconds`, the connection began
/// that much earlier.
pub fn connect(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let device = state.device(request.id(0))?.clone();
    let user = match request.text("userID") {
        Some(id) => Some(state.user(id)?),
        None => state.users.iter().find(|user| state.may_connect(user, &device)),
    };
    let user = user.filter(|user| state.may_connect(user, &device));
    let user = user.ok_or_else(|| Refusal::forbidden("this user may not connect to this computer"))?.clone();
    let session = begin(state, request, &device, &user);
    let is_fluid = session.details["tunnelID"] == "fluid";
    let mut steps: Vec<(&'static str, Option<&str>)> =
        vec![("incomingConnectionRequest", None), ("incomingConnectionEvent", None)];
    if is_fluid {
        let attempts = usize::try_from(request.number("failedAttempts").unwrap_or(1)).unwrap_or(0);
        steps.extend(std::iter::repeat_n(("authFailedEvent", Some("wrong_password")), attempts));
        steps.push(("authSucceededEvent", None));
    }
    let stays_open = request.flag("open").unwrap_or(false);
    let length_ms = request.number("seconds").unwrap_or(0) * 1_000;
    let now_ms = context.now.nanos().div_euclid(1_000_000);
    let last = if stays_open { now_ms } else { now_ms - 1 };
    let mut effects = Vec::new();
    for (number, (kind, reason)) in steps.iter().rev().enumerate() {
        let at_ms = last - length_ms - i64::try_from(number).unwrap_or(0);
        effects.push(connection_event(state, &session, kind, at_ms, *reason));
    }
    effects.reverse();
    let answer = json!({"connectionID": session.connection_id, "userID": user.id, "deviceID": device.id});
    if stays_open {
        state.sessions.push(session);
    } else {
        effects.push(connection_event(state, &session, "connectionClosedEvent", now_ms, None));
    }
    state.user_mut(&user.id)?.last_used_at = Some(context.now.seconds());
    Ok(Outcome::created().with(answer).with_effects(effects))
}

fn begin(state: &mut TeamState, request: &AdminRequest<'_>, device: &Device, user: &User) -> Session {
    let connection_id = state.draw_id();
    let (tunnel, source) = (request.text("tunnelID").unwrap_or("fluid"), request.text("sourceType").unwrap_or("cloud"));
    let mut details = json!({
        "connectionID": connection_id,
        "tunnelID": tunnel,
        "sourceType": source,
        "peerInfo": {"email": user.email, "ipAddress": PEER_ADDRESS},
    });
    if source == "directip" {
        details["directConnectionInfo"] = json!({"ipaddress": DIRECT_ADDRESS});
    }
    Session { connection_id, device: device.id.clone(), user: user.id.clone(), host: device.name.clone(), details }
}

/// A computer connects or reconnects to the cloud. Only this updates its last online time.
pub fn online(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let device = state.device_mut(request.id(0))?;
    device.last_online_at = Some(context.now.seconds());
    Ok(Outcome::ok().with(views::computer(device)))
}

pub fn disconnect(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let place = state.sessions.iter().position(|session| session.connection_id == request.id(0));
    let session = state.sessions.remove(place.ok_or_else(|| Refusal::not_found("connection"))?);
    let now_ms = context.now.nanos().div_euclid(1_000_000);
    let effect = connection_event(state, &session, "connectionClosedEvent", now_ms, None);
    Ok(Outcome::ok().with_effect(effect))
}

/// A person accepts an invite.
pub fn join(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let secret = request.text("secret").unwrap_or_default();
    let place = state.invites.iter().position(|held| held.secret == secret && !is_over(held.expires_at, now));
    let invite = state.invites[place.ok_or_else(|| Refusal::invite_not_found("invite"))?].clone();
    let email = request.text("email").or(invite.sent_to.as_deref()).unwrap_or_default().to_owned();
    if !looks_like_address(&email) {
        return Err(Refusal::invalid("email takes an email address"));
    }
    if state.users.iter().any(|user| user.email.eq_ignore_ascii_case(&email)) {
        return Err(Refusal::already_there("user-already-on-team", "the user is on the team already"));
    }
    check_licence(state)?;
    let user = match state.account(&email).or_else(|| context.elsewhere.first()) {
        Some(account) => newly_on_team(account, now),
        None => newcomer(state, request, email, "password", now),
    };
    if invite.single_use {
        state.invites.retain(|held| held.secret != secret);
    }
    for group in &invite.groups {
        push_new(&mut state.group_mut(group)?.users, &user.id);
    }
    for device in &invite.devices {
        push_new(&mut state.device_mut(device)?.users, &user.id);
    }
    let outcome = Outcome::created().with(views::user(state, &user)).with_effects(events::user_added(&user, "invite"));
    let outcome = outcome.by(Actor::Person(user.id.clone(), user.email.clone()));
    state.admit(user);
    Ok(outcome)
}

fn newcomer(state: &mut TeamState, request: &AdminRequest<'_>, email: String, provider: &str, now: i64) -> User {
    User {
        id: state.draw_id(),
        email,
        first_name: request.text("firstName").unwrap_or_default().to_owned(),
        last_name: request.text("lastName").unwrap_or_default().to_owned(),
        avatar_url: request.text("avatarURL").map(str::to_owned),
        role: MemberRole::User,
        remote_access: true,
        totp: request.flag("totpEnabled").unwrap_or(false),
        providers: vec![provider.to_owned()],
        annotations: Vec::new(),
        joined_on: now,
        last_used_at: None,
        scim: request.flag("scim").unwrap_or(false),
        token_log: json!([]),
    }
}

/// A person runs an installer on a computer.
pub fn install(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let secret = request.text("secret").unwrap_or_default();
    let place = state.installers.iter().position(|held| held.secret == secret && !is_over(held.expires_at, now));
    let installer = state.installers[place.ok_or_else(|| Refusal::invite_not_found("installer"))?].clone();
    let person = request.text("userID").map(|id| state.user(id).cloned()).transpose()?;
    if installer.requires_authentication && person.is_none() {
        return Err(Refusal::forbidden("the person who adds the computer must sign in: say userID"));
    }
    if installer.single_use {
        state.installers.retain(|held| held.secret != secret);
    }
    let device = Device {
        id: state.draw_id(),
        name: request.text("name").unwrap_or_default().to_owned(),
        last_online_at: Some(now),
        users: installer.users,
        groups: Vec::new(),
        annotations: Vec::new(),
        client_info: views::client_info("windows", request.text("name").unwrap_or_default()),
        config: installer.config,
    };
    let id = device.id.clone();
    let payload = json!({"deviceID": id, "name": device.name, "installerID": installer.id,
        "addedBy": person.as_ref().map(|person| &person.id)});
    let actor = person.map_or(Actor::Nobody, |person| Actor::Person(person.id, person.email));
    state.devices.push(device);
    installer.groups.iter().try_for_each(|group| state.join_group(&id, group))?;
    let answer = views::computer(state.device(&id)?);
    Ok(Outcome::created().with(answer).with_effect(activity(events::DEVICE_ADDED, payload)).by(actor))
}

/// The emails to the team's people, oldest first.
pub fn mail(state: &TeamState) -> Outcome {
    let all: Value = state
        .mail
        .iter()
        .map(|mail| {
            views::object(vec![
                ("to", json!(mail.to)),
                ("kind", json!(mail.kind)),
                ("secret", json!(mail.secret)),
                ("sentAt", json!(mail.sent_at)),
                ("expiresAt", json!(mail.expires_at)),
            ])
        })
        .collect();
    Outcome::ok().with(json!({"mail": all}))
}

/// A person follows the link that removes 2-factor authentication.
pub fn confirm_totp(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let (secret, now) = (request.text("secret").unwrap_or_default(), context.now.seconds());
    let is_meant = |mail: &&mut super::state::Mail| {
        mail.kind == "totp-removal" && mail.secret == secret && !mail.is_used && !is_over(mail.expires_at, now)
    };
    let mail = state.mail.iter_mut().find(is_meant).ok_or_else(|| Refusal::not_found("link"))?;
    mail.is_used = true;
    let email = mail.to.clone();
    let actor = state.account(&email).map_or(Actor::Nobody, |user| Actor::Person(user.id.clone(), user.email.clone()));
    let effects = spread(state, &email, AccountChange::TotpRemoved);
    Ok(Outcome::ok().with_effects(effects).by(actor).everywhere(&email, AccountChange::TotpRemoved))
}

/// The identity provider adds a person: a new one, or one who already has an account.
pub fn sso_account(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let email = request.text("email").unwrap_or_default().to_owned();
    if !looks_like_address(&email) {
        return Err(Refusal::invalid("email takes an email address"));
    }
    let now = context.now.seconds();
    let known = state.account(&email).or_else(|| context.elsewhere.first()).cloned();
    let mut user = known.unwrap_or_else(|| newcomer(state, request, email, "saml", now));
    spread(state, &user.email, AccountChange::SsoGained);
    if !user.signs_in_with("saml") {
        user.providers.push("saml".to_owned());
    }
    let outcome = Outcome::created().with(views::sso_user(state, &user));
    let outcome = outcome.everywhere(&user.email, AccountChange::SsoGained);
    state.departed.retain(|held| held.id != user.id);
    if !state.users.iter().chain(&state.sso_outsiders).any(|held| held.id == user.id) {
        state.sso_outsiders.push(user);
    }
    Ok(outcome)
}
