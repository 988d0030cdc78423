//! Tokens and their owners: three fixed tokens, which the seed determines, and tokens that are issued for a person.

use std::collections::{BTreeMap, HashMap};

use parking_lot::{Mutex, RwLock};

use super::admin::{Caller, MemberRole, Membership, TeamState};
use super::answer::Refusal;
use super::issued::{Issued, Minute};
use super::roster::Roster;
use super::seed::mix2;

/// The rights of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Admin,
    ReadOnly,
    /// The token of a member who is no admin and sees the limited team view.
    Member,
}

/// The owner of a request's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bearer {
    pub role: Role,
    /// `None`: a fixed token, whose rights never change.
    pub person: Option<Holder>,
}

/// The person of an issued token, and the person's current teams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub issued: Issued,
    pub memberships: Vec<Membership>,
}

impl Holder {
    pub(super) fn is_on(&self, team: &str) -> bool {
        self.memberships.iter().any(|membership| membership.team == team)
    }

    /// The token's rights on a team; without a team, its rights in requests that name no team.
    pub(super) fn role_on(&self, team: Option<&str>) -> Role {
        let membership = team.and_then(|team| self.memberships.iter().find(|membership| membership.team == team));
        match membership.map(|membership| membership.role) {
            Some(MemberRole::Admin) if !self.issued.read_only => Role::Admin,
            Some(MemberRole::Admin | MemberRole::AdminReadOnly) => Role::ReadOnly,
            Some(MemberRole::User) | None => Role::Member,
        }
    }
}

#[derive(Default)]
pub(super) struct Tokens {
    issued: RwLock<HashMap<String, Issued>>,
    counted: Mutex<Minute>,
}

pub(super) fn fixed(seed: u64, role: Role) -> String {
    let (name, salt) = match role {
        Role::Admin => ("admin", 0xad),
        Role::ReadOnly => ("read-only", 0x20),
        Role::Member => ("member", 0x3e),
    };
    format!("sandbox-{name}-token-{:016x}", mix2(seed, salt))
}

pub(super) fn fixed_role(seed: u64, token: &str) -> Option<Role> {
    [Role::Admin, Role::ReadOnly, Role::Member].into_iter().find(|&role| fixed(seed, role) == token)
}

impl Tokens {
    pub(super) fn issued(&self, token: &str) -> Option<Issued> {
        self.issued.read().get(token).cloned()
    }

    pub(super) fn all(&self) -> HashMap<String, Issued> {
        self.issued.read().clone()
    }

    pub(super) fn set_all(&self, all: HashMap<String, Issued>) {
        *self.issued.write() = all;
    }

    /// The token for a person; it is always the same.
    pub(super) fn issue(&self, seed: u64, issued: Issued) -> String {
        let text = format!("{} {} {}", issued.team, issued.user, issued.read_only);
        let number = text.bytes().fold(mix2(seed, 0x70c3), |held, byte| mix2(held, u64::from(byte)));
        let token = format!("sandbox-user-token-{number:016x}{:016x}", mix2(number, seed));
        self.issued.write().insert(token.clone(), issued);
        token
    }

    /// Counts a request of the minute. Returns false if there were too many.
    pub(super) fn count(&self, token: &str, now_seconds: i64, most: u32) -> bool {
        let mut counted = self.counted.lock();
        let number = now_seconds.div_euclid(60);
        if counted.number != number {
            *counted = Minute { number, requests: BTreeMap::new() };
        }
        let count = counted.requests.entry(token.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count <= most
    }

    pub(super) fn minute(&self) -> Minute {
        self.counted.lock().clone()
    }

    pub(super) fn set_minute(&self, minute: Minute) {
        *self.counted.lock() = minute;
    }
}

/// The person behind a token, from the view of a team. The team's first person owns the fixed tokens.
pub(super) fn caller(roster: &Roster, state: &TeamState, bearer: &Bearer) -> Result<Caller, Refusal> {
    let Some(holder) = &bearer.person else {
        let person = &roster.people[0];
        return Ok(Caller {
            user_id: person.id.clone(),
            email: person.email.clone(),
            title: "sandbox token".to_owned(),
            is_admin: bearer.role != Role::Member,
            signs_in_with_sso: true,
            admin_of: None,
        });
    };
    let user = state.user(&holder.issued.user).map_err(|_| Refusal::unauthorized())?;
    let admin_of = holder.memberships.iter().filter(|held| held.role == MemberRole::Admin);
    let admin_of = admin_of.map(|held| held.team.clone()).collect();
    Ok(Caller {
        user_id: user.id.clone(),
        email: user.email.clone(),
        title: holder.issued.title().to_owned(),
        is_admin: user.role != MemberRole::User,
        signs_in_with_sso: user.signs_in_with("saml"),
        admin_of: Some(admin_of),
    })
}
