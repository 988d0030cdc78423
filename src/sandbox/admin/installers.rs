//! Pre-configured installers: a person who has one can add a computer to the team.

use serde_json::json;

use crate::sandbox::answer::Refusal;

use super::apply::Answer;
use super::asked::{Asked, Context, Outcome};
use super::state::{Installer, TeamState, is_over};
use super::told::{self, told};
use super::views;

pub fn create(state: &mut TeamState, asked: &Asked<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let (users, groups) = (asked.list("users"), asked.list("groups"));
    state.know(&users, &groups, &[])?;
    let active = state.installers.iter().filter(|held| !is_over(held.expires_at, now)).count();
    if active >= state.plan.installers {
        return Err(Refusal::invite_limit(state.plan.installers));
    }
    let installer = Installer {
        id: state.draw_id(),
        name: asked.text("name").unwrap_or_default().to_owned(),
        secret: state.draw_secret(),
        users,
        groups,
        requires_authentication: asked.flag("requireAuthentication").unwrap_or(false),
        single_use: asked.flag("singleUse").unwrap_or(false),
        created_at: now,
        expires_at: asked.number("expirySecs").filter(|&seconds| seconds > 0).map(|seconds| now + seconds),
        config: None,
    };
    let effect = told(told::INSTALLER_CREATED, json!({"id": installer.id, "name": installer.name}));
    let answer = views::installer(&installer);
    state.installers.push(installer);
    Ok(Outcome::created().with(answer).telling(effect))
}

/// Removes an installer. Its copies and the connection code stop working; computers that it added stay.
pub fn remove(state: &mut TeamState, asked: &Asked<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    let is_meant = |held: &Installer| held.id == asked.id(0) && !is_over(held.expires_at, now);
    let place = state.installers.iter().position(is_meant).ok_or_else(|| Refusal::invite_not_found("installer"))?;
    let gone = state.installers.remove(place);
    let effect = told(told::INSTALLER_REMOVED, json!({"id": gone.id, "name": gone.name}));
    Ok(Outcome::created().telling(effect))
}
