//! Pre-configured installers: a person who has one can add a computer to the team.

use serde_json::json;

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Context, Outcome};
use super::state::{Installer, TeamState, is_over};
use super::views;

pub fn create(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let (users, groups) = (request.list("users"), request.list("groups"));
    state.require_known(&users, &groups, &[])?;
    let active = state.installers.iter().filter(|held| !is_over(held.expires_at, now)).count();
    if active >= state.plan.installers {
        return Err(Refusal::invite_limit(state.plan.installers));
    }
    let installer = Installer {
        id: state.draw_id(),
        name: request.text("name").unwrap_or_default().to_owned(),
        secret: state.draw_secret(),
        users,
        groups,
        requires_authentication: request.flag("requireAuthentication").unwrap_or(false),
        single_use: request.flag("singleUse").unwrap_or(false),
        created_at: now,
        expires_at: request.number("expirySecs").filter(|&seconds| seconds > 0).map(|seconds| now + seconds),
        config: None,
    };
    let effect = activity(events::INSTALLER_CREATED, json!({"id": installer.id, "name": installer.name}));
    let answer = views::installer(&installer);
    state.installers.push(installer);
    Ok(Outcome::created().with(answer).with_effect(effect))
}

/// Removes an installer. Its copies and the connection code stop working; computers that it added stay.
pub fn remove(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let is_meant = |held: &Installer| held.id == request.id(0) && !is_over(held.expires_at, now);
    let place = state.installers.iter().position(is_meant).ok_or_else(|| Refusal::invite_not_found("installer"))?;
    let gone = state.installers.remove(place);
    let effect = activity(events::INSTALLER_REMOVED, json!({"id": gone.id, "name": gone.name}));
    Ok(Outcome::created().with_effect(effect))
}
