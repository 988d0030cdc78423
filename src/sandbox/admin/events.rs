//! The activity and billing events of changes. The document names four activity types and no billing types, and does
//! not say which operation emits which. The other names follow its style; this file holds all of them.
//!
//! | change | activity event | billing event |
//! |---|---|---|
//! | a user joins by invite or SSO | `teamUserAddedEvent` (documented) | `usersAddedEvent` |
//! | a user is removed | `teamUserRemovedEvent` | `usersRemovedEvent`, when remote access was on |
//! | a new role | `teamUserRoleChangedEvent` | |
//! | remote access on or off | `teamUserRemoteAccessChangedEvent` | `userCountUpdatedEvent` |
//! | 2FA removal requested, confirmed | `teamUserTotpRemovalRequestedEvent`, `teamUserTotpRemovedEvent` | |
//! | an invite created, deleted | `teamUserInvitedEvent`, `teamUserInviteRemovedEvent` | |
//! | an installer created, deleted | `teamDeviceInviteCreatedEvent`, `teamDeviceInviteRemovedEvent` | |
//! | a computer added, renamed | `teamDeviceAddedEvent`, `teamDeviceRenamedEvent` | |
//! | a computer removed | `teamDeviceRemovedEvent` (documented) | |
//! | a computer's access | `teamDeviceMembersReplacedEvent`, `…AddedEvent`, `…RemovedEvent` | |
//! | a group created, renamed, deleted | `teamGroupCreatedEvent`, `teamGroupRenamedEvent`, `teamGroupRemovedEvent` | |
//! | a group's members | `teamGroupMembersAddedEvent`, `teamGroupMembersRemovedEvent` | |
//! | annotations | `teamDeviceAnnotationsChangedEvent`, `teamUserAnnotationsChangedEvent`, `teamGroupAnnotationsChangedEvent` | |
//! | plan, agent configuration, deletion schedule, migration (sandbox only) | `teamSettingsChangedEvent` (documented) | `subscriptionUpdatedEvent`, when the licensed users change |

use serde_json::{Map, Value, json};

use super::request::{Context, Effect};
use super::state::{Session, TeamState, User};

pub const USER_ADDED: &str = "teamUserAddedEvent";
pub const USER_REMOVED: &str = "teamUserRemovedEvent";
pub const USER_ROLE: &str = "teamUserRoleChangedEvent";
pub const USER_REMOTE_ACCESS: &str = "teamUserRemoteAccessChangedEvent";
pub const TOTP_REMOVAL_REQUESTED: &str = "teamUserTotpRemovalRequestedEvent";
pub const TOTP_REMOVED: &str = "teamUserTotpRemovedEvent";
pub const USER_INVITED: &str = "teamUserInvitedEvent";
pub const USER_INVITE_REMOVED: &str = "teamUserInviteRemovedEvent";
pub const INSTALLER_CREATED: &str = "teamDeviceInviteCreatedEvent";
pub const INSTALLER_REMOVED: &str = "teamDeviceInviteRemovedEvent";
pub const DEVICE_ADDED: &str = "teamDeviceAddedEvent";
pub const DEVICE_RENAMED: &str = "teamDeviceRenamedEvent";
pub const DEVICE_REMOVED: &str = "teamDeviceRemovedEvent";
pub const DEVICE_MEMBERS_REPLACED: &str = "teamDeviceMembersReplacedEvent";
pub const DEVICE_MEMBERS_ADDED: &str = "teamDeviceMembersAddedEvent";
pub const DEVICE_MEMBERS_REMOVED: &str = "teamDeviceMembersRemovedEvent";
pub const GROUP_CREATED: &str = "teamGroupCreatedEvent";
pub const GROUP_RENAMED: &str = "teamGroupRenamedEvent";
pub const GROUP_REMOVED: &str = "teamGroupRemovedEvent";
pub const GROUP_MEMBERS_ADDED: &str = "teamGroupMembersAddedEvent";
pub const GROUP_MEMBERS_REMOVED: &str = "teamGroupMembersRemovedEvent";
pub const DEVICE_ANNOTATED: &str = "teamDeviceAnnotationsChangedEvent";
pub const USER_ANNOTATED: &str = "teamUserAnnotationsChangedEvent";
pub const GROUP_ANNOTATED: &str = "teamGroupAnnotationsChangedEvent";
pub const SETTINGS: &str = "teamSettingsChangedEvent";

/// An activity event, without fields that have no value.
pub fn activity(name: &'static str, payload: Value) -> Effect {
    Effect::Activity { name, payload: fields(payload) }
}

fn fields(payload: Value) -> Map<String, Value> {
    let Value::Object(payload) = payload else { return Map::new() };
    let has_value = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    payload.into_iter().filter(|(_, value)| has_value(value)).collect()
}

fn billing(event: Value) -> Effect {
    Effect::Billing(fields(event))
}

pub fn user_added(user: &User, source: &str) -> Vec<Effect> {
    let payload = json!({"userID": user.id, "email": user.email, "role": user.role.name(), "source": source});
    vec![activity(USER_ADDED, payload), billing(json!({"usersAddedEvent": {"count": 1}}))]
}

pub fn user_removed(user: &User) -> Vec<Effect> {
    let mut effects = vec![activity(USER_REMOVED, json!({"userID": user.id, "email": user.email}))];
    if user.remote_access {
        effects.push(billing(json!({"usersRemovedEvent": {"count": 1}})));
    }
    effects
}

/// The number of people who may connect changed.
pub fn user_count(from: usize, to: usize) -> Effect {
    billing(json!({"userCountUpdatedEvent": {"from": from, "to": to}}))
}

pub fn licensed_users(count: usize) -> Effect {
    billing(json!({"subscriptionUpdatedEvent": {"licensedUsers": count}}))
}

pub fn connection_event(
    state: &mut TeamState,
    session: &Session,
    kind: &'static str,
    at_ms: i64,
    reason: Option<&str>,
) -> Effect {
    let event = if kind.starts_with("incoming") {
        session.details.clone()
    } else {
        let mut event = json!({"associatedIncomingConnectionEvent": session.details});
        if let Some(reason) = reason {
            event["reason"] = json!(reason);
        }
        event
    };
    let (id, device, host) = (state.draw_id(), session.device.clone(), session.host.clone());
    Effect::Connection { id, at_ms, device, host, kind, event }
}

/// Disconnects a person's active sessions.
pub fn close_sessions(state: &mut TeamState, user: &str, context: &Context<'_>) -> Vec<Effect> {
    let (closed, open) = std::mem::take(&mut state.sessions).into_iter().partition(|session| session.user == user);
    state.sessions = open;
    let closed: Vec<Session> = closed;
    let now_ms = context.now.nanos().div_euclid(1_000_000);
    closed.iter().map(|session| connection_event(state, session, "connectionClosedEvent", now_ms, None)).collect()
}
