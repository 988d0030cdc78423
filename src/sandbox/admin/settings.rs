//! What is set in the dashboard alone: the plan, agent configurations, and what an identity provider pushes. Only the
//! sandbox has requests for it.

use serde_json::json;

use super::apply::Answer;
use super::asked::{Asked, Outcome};
use super::state::{AgentConfig, Group, TeamState};
use super::told::{self, told};
use super::views;

/// Fields that are left out keep their value; an empty `ssoOwner` is this team.
pub fn change(state: &mut TeamState, asked: &Asked<'_>) -> Answer {
    let mut plan = state.plan.clone();
    for (name, held) in [
        ("licensedUsers", &mut plan.licensed_users),
        ("installers", &mut plan.installers),
        ("groups", &mut plan.groups),
        ("annotations", &mut plan.annotations),
    ] {
        if let Some(sent) = asked.number(name).and_then(|sent| usize::try_from(sent).ok()) {
            *held = sent;
        }
    }
    plan.enterprise = asked.flag("enterprise").unwrap_or(plan.enterprise);
    plan.sso = asked.flag("sso").unwrap_or(plan.sso);
    if let Some(owner) = asked.text("ssoOwner") {
        plan.sso_owner = (!owner.is_empty()).then(|| owner.to_owned());
    }
    let mut effects = vec![told(told::SETTINGS, json!({"setting": "plan"}))];
    if plan.licensed_users != state.plan.licensed_users {
        effects.push(told::seats(plan.licensed_users));
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
    Ok(Outcome::ok().with(answer).telling_all(effects))
}

/// Makes an agent configuration and assigns it to computers and groups.
pub fn assign_config(state: &mut TeamState, asked: &Asked<'_>) -> Answer {
    let (groups, devices) = (asked.list("groups"), asked.list("devices"));
    state.know(&[], &groups, &devices)?;
    let config = AgentConfig { id: state.draw_id(), name: asked.text("name").unwrap_or_default().to_owned() };
    state
        .groups
        .iter_mut()
        .filter(|held| groups.contains(&held.id))
        .for_each(|held| held.config = Some(config.id.clone()));
    let assigned = state.devices.iter_mut().filter(|held| devices.contains(&held.id));
    assigned.for_each(|held| held.config = Some(config.id.clone()));
    let answer = json!({"id": config.id, "name": config.name});
    state.configs.push(config);
    Ok(Outcome::created().with(answer).telling(told(told::SETTINGS, json!({"setting": "deviceConfigs"}))))
}

/// A group as an identity provider pushes it.
pub fn scim_group(state: &mut TeamState, asked: &Asked<'_>) -> Answer {
    let users = asked.list("users");
    state.know(&users, &[], &[])?;
    let group = Group {
        id: state.draw_id(),
        name: asked.text("name").unwrap_or_default().to_owned(),
        users,
        scim: true,
        annotations: Vec::new(),
        config: None,
    };
    let effect = told(told::GROUP_CREATED, json!({"groupID": group.id, "name": group.name, "source": "scim"}));
    let answer = views::whole_group(state, &group);
    state.groups.push(group);
    Ok(Outcome::created().with(answer).telling(effect))
}
