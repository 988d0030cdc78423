//! The state of a team that administration reads and changes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sandbox::answer::Refusal;
use crate::sandbox::seed::{mix2, opaque_id, secret};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamState {
    pub id: String,
    pub name: String,
    /// Seconds since the epoch.
    pub created_at: i64,
    /// The seed of new ids and secrets.
    pub seed: u64,
    pub plan: Plan,
    pub users: Vec<User>,
    pub devices: Vec<Device>,
    pub groups: Vec<Group>,
    pub installers: Vec<Installer>,
    pub invites: Vec<Invite>,
    pub configs: Vec<AgentConfig>,
    /// People who share the team's SSO connection and are not on the team.
    pub sso_outsiders: Vec<User>,
    /// Former members who do not sign in with SSO. Their accounts still exist.
    pub departed: Vec<User>,
    pub delete_schedule: Option<DeleteSchedule>,
    pub migrations: Vec<Migration>,
    /// The emails to people.
    pub mail: Vec<Mail>,
    /// Open connections.
    pub sessions: Vec<Session>,
    /// The members who join and leave on a schedule: since when each is on the team, and the last role.
    pub seasons: Vec<Option<(i64, MemberRole)>>,
    /// The number of ids made so far.
    pub drawn: u64,
}

/// The plan. The document gives no numbers, so these are the sandbox's own. A sandbox-only request changes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub licensed_users: usize,
    pub installers: usize,
    pub groups: usize,
    /// The limit on each computer, user or group.
    pub annotations: usize,
    /// Whether the plan is Teams Enterprise. Only this plan allows the removal of 2-factor authentication.
    pub enterprise: bool,
    pub sso: bool,
    /// The team that owns the SSO connection; `None`: this team.
    pub sso_owner: Option<String>,
}

/// When the team is to be deleted. The document shows only that this field exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteSchedule {
    pub scheduled_at: i64,
    pub delete_at: i64,
}

/// A person's computers that are migrating to the team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    pub user: String,
    /// These are not computers of the team yet.
    pub devices: Vec<String>,
    pub started_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    Admin,
    AdminReadOnly,
    User,
}

impl MemberRole {
    pub fn name(self) -> &'static str {
        match self {
            MemberRole::Admin => "admin",
            MemberRole::AdminReadOnly => "admin-read-only",
            MemberRole::User => "user",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [MemberRole::Admin, MemberRole::AdminReadOnly, MemberRole::User].into_iter().find(|role| role.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    pub key: String,
    #[serde(default)]
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: String,
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    pub avatar_url: Option<String>,
    pub role: MemberRole,
    pub remote_access: bool,
    pub totp: bool,
    /// `password` or `saml`.
    pub providers: Vec<String>,
    pub annotations: Vec<Annotation>,
    pub joined_on: i64,
    pub last_used_at: Option<i64>,
    pub scim: bool,
    /// The tokens that the authentication info shows.
    pub token_log: Value,
}

impl User {
    pub fn signs_in_with(&self, provider: &str) -> bool {
        self.providers.iter().any(|held| held == provider)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub id: String,
    pub name: String,
    pub last_online_at: Option<i64>,
    /// The users with direct access, without access through groups.
    pub users: Vec<String>,
    /// The groups that contain this computer. Groups have no list of their computers.
    pub groups: Vec<String>,
    pub annotations: Vec<Annotation>,
    pub client_info: Value,
    /// The agent configuration of this computer itself.
    pub config: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub id: String,
    pub name: String,
    pub users: Vec<String>,
    pub scim: bool,
    pub annotations: Vec<Annotation>,
    pub config: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentConfig {
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installer {
    pub id: String,
    pub name: String,
    pub secret: String,
    pub users: Vec<String>,
    pub groups: Vec<String>,
    pub requires_authentication: bool,
    pub single_use: bool,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    /// The agent configuration of the computers that this installer adds.
    pub config: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    pub secret: String,
    pub name: String,
    pub sent_to: Option<String>,
    pub single_use: bool,
    pub groups: Vec<String>,
    pub devices: Vec<String>,
    pub created_at: i64,
    pub expires_at: Option<i64>,
}

/// An email that the service would have sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    pub to: String,
    /// `invite` or `totp-removal`.
    pub kind: String,
    /// The secret in the email's link.
    pub secret: String,
    pub sent_at: i64,
    pub expires_at: Option<i64>,
    /// A link works once.
    pub is_used: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub connection_id: String,
    pub device: String,
    pub user: String,
    pub host: String,
    /// The details in the connection's events.
    pub details: Value,
}

pub fn is_over(expires_at: Option<i64>, now: i64) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

impl TeamState {
    pub fn user(&self, id: &str) -> Result<&User, Refusal> {
        self.users.iter().find(|user| user.id == id).ok_or_else(|| Refusal::not_found("user"))
    }

    pub fn user_mut(&mut self, id: &str) -> Result<&mut User, Refusal> {
        self.users.iter_mut().find(|user| user.id == id).ok_or_else(|| Refusal::not_found("user"))
    }

    pub fn device(&self, id: &str) -> Result<&Device, Refusal> {
        self.devices.iter().find(|device| device.id == id).ok_or_else(|| Refusal::not_found("computer"))
    }

    pub fn device_mut(&mut self, id: &str) -> Result<&mut Device, Refusal> {
        self.devices.iter_mut().find(|device| device.id == id).ok_or_else(|| Refusal::not_found("computer"))
    }

    pub fn group(&self, id: &str) -> Result<&Group, Refusal> {
        self.groups.iter().find(|group| group.id == id).ok_or_else(|| Refusal::not_found("group"))
    }

    pub fn group_mut(&mut self, id: &str) -> Result<&mut Group, Refusal> {
        self.groups.iter_mut().find(|group| group.id == id).ok_or_else(|| Refusal::not_found("group"))
    }

    /// Checks that everything that a request names is on the team.
    pub fn require_known(&self, users: &[String], groups: &[String], devices: &[String]) -> Result<(), Refusal> {
        users.iter().try_for_each(|id| self.user(id).map(drop))?;
        groups.iter().try_for_each(|id| self.group(id).map(drop))?;
        devices.iter().try_for_each(|id| self.device(id).map(drop))
    }

    /// Makes a new id in the usual form.
    pub fn draw_id(&mut self) -> String {
        self.drawn += 1;
        opaque_id(mix2(self.seed, 0xad31), self.drawn)
    }

    pub fn draw_secret(&mut self) -> String {
        self.drawn += 1;
        secret(mix2(self.seed, 0xad32), self.drawn)
    }

    pub fn active_users(&self) -> usize {
        self.users.iter().filter(|user| user.remote_access).count()
    }

    /// All accounts that this team knows, members or not.
    pub fn accounts(&self) -> impl Iterator<Item = &User> {
        self.users.iter().chain(&self.sso_outsiders).chain(&self.departed)
    }

    pub fn accounts_mut(&mut self) -> impl Iterator<Item = &mut User> {
        self.users.iter_mut().chain(&mut self.sso_outsiders).chain(&mut self.departed)
    }

    /// The account of an address, in upper or lower case.
    pub fn account(&self, email: &str) -> Option<&User> {
        self.accounts().find(|user| user.email.eq_ignore_ascii_case(email))
    }

    /// Adds a member to the team, and removes the account from the other lists.
    pub fn admit(&mut self, user: User) {
        self.sso_outsiders.retain(|held| held.id != user.id);
        self.departed.retain(|held| held.id != user.id);
        self.users.push(user);
    }

    /// The team that owns the SSO connection.
    pub fn sso_owner(&self) -> &str {
        self.plan.sso_owner.as_deref().unwrap_or(&self.id)
    }

    /// Removes a user from every list that grants access.
    pub fn forget_user(&mut self, id: &str) {
        self.users.retain(|user| user.id != id);
        self.migrations.retain(|migration| migration.user != id);
        self.groups.iter_mut().for_each(|group| group.users.retain(|user| user != id));
        self.devices.iter_mut().for_each(|device| device.users.retain(|user| user != id));
        self.installers.iter_mut().for_each(|installer| installer.users.retain(|user| user != id));
    }

    /// Whether a user may connect to a computer, directly or through a group.
    pub fn may_connect(&self, user: &User, device: &Device) -> bool {
        let through_group =
            || self.groups.iter().any(|group| device.groups.contains(&group.id) && group.users.contains(&user.id));
        user.remote_access && (device.users.contains(&user.id) || through_group())
    }

    /// Adds a computer to a group. The group's agent configuration replaces the computer's own.
    pub fn join_group(&mut self, device: &str, group: &str) -> Result<(), Refusal> {
        let has_config = self.group(group)?.config.is_some();
        let device = self.device_mut(device)?;
        push_new(&mut device.groups, group);
        if has_config {
            device.config = None;
        }
        Ok(())
    }
}

/// Adds an item unless the list has it.
pub fn push_new(list: &mut Vec<String>, item: &str) {
    if !list.iter().any(|held| held == item) {
        list.push(item.to_owned());
    }
}
