//! Settings of the dashboard: the plan, agent configurations, and changes that an identity provider pushes. Only the
//! sandbox has requests for them.

use serde_json::json;

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Context, Outcome};
use super::state::{AgentConfig, DeleteSchedule, Group, Migration, TeamState};
use super::views;

/// Changes the plan. Missing fields keep their value; an empty `ssoOwner` means this team.
pub fn change(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let mut plan = state.plan.clone();
    for (name, held) in [
        ("licensedUsers", &mut plan.licensed_users),
        ("installers", &mut plan.installers),
        ("groups", &mut plan.groups),
        ("annotations", &mut plan.annotations),
    ] {
        if let Some(sent) = request.number(name).and_then(|sent| usize::try_from(sent).ok()) {
            *held = sent;
        }
    }
    plan.enterprise = request.flag("enterprise").unwrap_or(plan.enterprise);
    plan.sso = request.flag("sso").unwrap_or(plan.sso);
    if let Some(owner) = request.text("ssoOwner") {
        plan.sso_owner = (!owner.is_empty()).then(|| owner.to_owned());
    }
    let mut effects = vec![activity(events::SETTINGS, json!({"setting": "plan"}))];
    if plan.licensed_users != state.plan.licensed_users {
        effects.push(events::licensed_users(plan.licensed_users));
    }
    state.plan = plan;
    let plan = &state.plan;
    let answer = views::object(vec![
        ("licensedUsers", json!(plan.licensed_users)),
        ("installers", json!(plan.installers)),
        ("groups", json!(plan.groups)),
        ("annotations", json!(plan.annotations)),
        ("enterprise", json!(plan.enterprise)),
        ("sso", json!(plan.sso)),
        ("ssoOwner", json!(plan.sso_owner)),
    ]);
    Ok(Outcome::ok().with(answer).with_effects(effects))
}

/// Makes an agent configuration and assigns it to computers, groups and installers.
pub fn assign_config(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let (groups, devices, installers) = (request.list("groups"), request.list("devices"), request.list("installers"));
    state.require_known(&[], &groups, &devices)?;
    let is_there = |id: &String| state.installers.iter().any(|held| held.id == *id);
    if !installers.iter().all(is_there) {
        return Err(Refusal::invite_not_found("installer"));
    }
    let config = AgentConfig { id: state.draw_id(), name: request.text("name").unwrap_or_default().to_owned() };
    state
        .groups
        .iter_mut()
        .filter(|held| groups.contains(&held.id))
        .for_each(|held| held.config = Some(config.id.clone()));
    let assigned = state.devices.iter_mut().filter(|held| devices.contains(&held.id));
    assigned.for_each(|held| held.config = Some(config.id.clone()));
    let assigned = state.installers.iter_mut().filter(|held| installers.contains(&held.id));
    assigned.for_each(|held| held.config = Some(config.id.clone()));
    let answer = views::config(state, &config);
    state.configs.push(config);
    Ok(Outcome::created().with(answer).with_effect(activity(events::SETTINGS, json!({"setting": "deviceConfigs"}))))
}

/// Schedules the team's deletion; an empty request cancels it. Nothing happens at that time, because the document
/// does not describe it.
pub fn schedule_deletion(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let now = context.now.seconds();
    state.delete_schedule =
        request.number("inSeconds").map(|seconds| DeleteSchedule { scheduled_at: now, delete_at: now + seconds });
    let answer = state.delete_schedule.as_ref().map_or_else(|| json!({}), views::delete_schedule);
    let effect = activity(events::SETTINGS, json!({"setting": "deleteSchedule"}));
    Ok(Outcome::ok().with(answer).with_effect(effect))
}

/// Starts the migration of a person's computers to the team; a request without computers cancels it.
pub fn migrate(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    let user = state.user(request.id(0))?.id.clone();
    let devices = request.list("devices");
    state.migrations.retain(|held| held.user != user);
    let mut answer = json!({});
    if !devices.is_empty() {
        let migration = Migration { user: user.clone(), devices, started_at: context.now.seconds() };
        answer = views::migration(&migration);
        state.migrations.push(migration);
    }
    let effect = activity(events::SETTINGS, json!({"setting": "userDeviceMigrate", "userID": user}));
    Ok(Outcome::ok().with(answer).with_effect(effect))
}

/// Adds a group that the identity provider pushes.
pub fn scim_group(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let users = request.list("users");
    state.require_known(&users, &[], &[])?;
    let group = Group {
        id: state.draw_id(),
        name: request.text("name").unwrap_or_default().to_owned(),
        users,
        scim: true,
        annotations: Vec::new(),
        config: None,
    };
    let effect = activity(events::GROUP_CREATED, json!({"groupID": group.id, "name": group.name, "source": "scim"}));
    let answer = views::whole_group(state, &group);
    state.groups.push(group);
    Ok(Outcome::created().with(answer).with_effect(effect))
}
