//! Invites: a person who has the secret can join the team.

use serde_json::json;

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Context, Outcome};
use super::state::{Invite, Mail, TeamState, is_over};
use super::views;

const DAY_SECONDS: i64 = 86_400;

pub fn create(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let sent_to = request.text("sendTo").filter(|address| !address.is_empty()).map(str::to_owned);
    let is_mail = sent_to.is_some();
    let single_use = request.flag("singleUse").unwrap_or(is_mail);
    if single_use && !is_mail {
        return Err(Refusal::invalid("singleUse requires sendTo"));
    }
    if sent_to.as_ref().is_some_and(|address| !looks_like_address(address)) {
        return Err(Refusal::invalid("sendTo takes an email address"));
    }
    let (groups, devices) = (request.list("groups"), request.list("devices"));
    state.require_known(&[], &groups, &devices)?;
    let days = i64::from(context.choices.invite_days);
    let invite = Invite {
        secret: state.draw_secret(),
        name: request.text("name").unwrap_or_default().to_owned(),
        sent_to,
        single_use,
        groups,
        devices,
        created_at: now,
        expires_at: (days > 0).then_some(now + days * DAY_SECONDS),
    };
    if let Some(to) = invite.sent_to.clone() {
        let (secret, expires_at) = (invite.secret.clone(), invite.expires_at);
        state.mail.push(Mail { to, kind: "invite".to_owned(), secret, sent_at: now, expires_at, is_used: false });
    }
    let effect = activity(events::USER_INVITED, json!({"name": invite.name, "sentTo": invite.sent_to}));
    let answer = views::invite(&invite);
    state.invites.push(invite);
    Ok(Outcome::created().with(answer).with_effect(effect))
}

/// Checks only for text, one `@`, and text.
pub fn looks_like_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// Removes an invite. Its link stops working.
pub fn remove(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let is_meant = |held: &Invite| held.secret == request.id(0) && !is_over(held.expires_at, now);
    let place = state.invites.iter().position(is_meant).ok_or_else(|| Refusal::invite_not_found("invite"))?;
    let gone = state.invites.remove(place);
    let effect = activity(events::USER_INVITE_REMOVED, json!({"name": gone.name, "sentTo": gone.sent_to}));
    Ok(Outcome::created().with_effect(effect))
}
