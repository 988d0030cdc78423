//! Who holds which token: three standing ones, derived from the seed, and those issued for a person.

use std::collections::HashMap;
use std::sync::{Mutex, RwLock};

use serde::{Deserialize, Serialize};

use super::admin::{Caller, Standing, TeamState};
use super::answer::Refusal;
use super::cast::Cast;
use super::seed::mix2;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Admin,
    ReadOnly,
    /// A member who is no admin: sees the limited team view.
    Member,
}

/// A token issued for one person; it may do what the person may, now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issued {
    pub team: String,
    pub user: String,
    pub read_only: bool,
}

/// Whose request it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bearer {
    pub role: Role,
    /// None: a standing token, which keeps what it may do whatever happens to people.
    pub issued: Option<Issued>,
}

#[derive(Default)]
pub(super) struct Tokens {
    issued: RwLock<HashMap<String, Issued>>,
    /// The minute, and each token's requests in it.
    counted: Mutex<(i64, HashMap<String, u32>)>,
}

pub(super) fn standing(seed: u64, role: Role) -> String {
    let (name, salt) = match role {
        Role::Admin => ("admin", 0xad),
        Role::ReadOnly => ("read-only", 0x20),
        Role::Member => ("member", 0x3e),
    };
    format!("sandbox-{name}-token-{:016x}", mix2(seed, salt))
}

pub(super) fn standing_role(seed: u64, token: &str) -> Option<Role> {
    [Role::Admin, Role::ReadOnly, Role::Member].into_iter().find(|&role| standing(seed, role) == token)
}

impl Tokens {
    pub(super) fn issued(&self, token: &str) -> Option<Issued> {
        self.issued.read().expect("BUG: nothing panics while it holds the tokens").get(token).cloned()
    }

    pub(super) fn all(&self) -> HashMap<String, Issued> {
        self.issued.read().expect("BUG: nothing panics while it holds the tokens").clone()
    }

    pub(super) fn set_all(&self, all: HashMap<String, Issued>) {
        *self.issued.write().expect("BUG: nothing panics while it holds the tokens") = all;
    }

    /// A token for a person: always the same one.
    pub(super) fn issue(&self, seed: u64, issued: Issued) -> String {
        let text = format!("{} {} {}", issued.team, issued.user, issued.read_only);
        let number = text.bytes().fold(mix2(seed, 0x70c3), |held, byte| mix2(held, u64::from(byte)));
        let token = format!("sandbox-user-token-{number:016x}{:016x}", mix2(number, seed));
        self.issued.write().expect("BUG: nothing panics while it holds the tokens").insert(token.clone(), issued);
        token
    }

    /// Counts a request of the minute; false when there were too many.
    pub(super) fn count(&self, token: &str, now_seconds: i64, most: u32) -> bool {
        let mut counted = self.counted.lock().expect("BUG: nothing panics while it counts requests");
        let minute = now_seconds.div_euclid(60);
        if counted.0 != minute {
            *counted = (minute, HashMap::new());
        }
        let count = counted.1.entry(token.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count <= most
    }
}

/// What a person's token may do now; none: the person is not on the team.
pub(super) fn role_of(state: &TeamState, issued: &Issued) -> Option<Role> {
    Some(match state.user(&issued.user).ok()?.role {
        Standing::Admin if !issued.read_only => Role::Admin,
        Standing::Admin | Standing::AdminReadOnly => Role::ReadOnly,
        Standing::User => Role::Member,
    })
}

/// The person behind a token, as a team sees it. The standing ones are those of the team's first person.
pub(super) fn caller(cast: &Cast, state: &TeamState, bearer: &Bearer) -> Result<Caller, Refusal> {
    let Some(issued) = &bearer.issued else {
        let person = &cast.people[0];
        return Ok(Caller {
            user_id: person.id.clone(),
            email: person.email.clone(),
            title: "sandbox token".to_owned(),
            is_admin: bearer.role != Role::Member,
            signs_in_with_sso: true,
            admin_of: None,
        });
    };
    let user = state.user(&issued.user).map_err(|_| Refusal::unauthorized())?;
    let admin_of = if user.role == Standing::Admin { vec![issued.team.clone()] } else { Vec::new() };
    Ok(Caller {
        user_id: user.id.clone(),
        email: user.email.clone(),
        title: "sandbox token of a person".to_owned(),
        is_admin: user.role != Standing::User,
        signs_in_with_sso: user.signs_in_with("saml"),
        admin_of: Some(admin_of),
    })
}
