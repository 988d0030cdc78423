//! Accounts: one address is one person on every team.

use serde_json::json;

use super::events::{self, activity};
use super::request::{AccountChange, Effect};
use super::state::{MemberRole, TeamState};

/// A person's membership of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub team: String,
    pub role: MemberRole,
}

/// Changes this team's copy of an account. If the person is on the team, activity gets an event.
pub fn spread(state: &mut TeamState, email: &str, change: AccountChange) -> Vec<Effect> {
    let mut effects = Vec::new();
    for user in state.accounts_mut().filter(|user| user.email.eq_ignore_ascii_case(email)) {
        match change {
            AccountChange::TotpRemoved if user.totp => {
                user.totp = false;
                let payload = json!({"userID": user.id, "email": user.email});
                effects.push((user.id.clone(), activity(events::TOTP_REMOVED, payload)));
            }
            AccountChange::SsoGained if !user.signs_in_with("saml") => user.providers.push("saml".to_owned()),
            AccountChange::TotpRemoved | AccountChange::SsoGained => {}
        }
    }
    effects.into_iter().filter(|(id, _)| state.user(id).is_ok()).map(|(_, effect)| effect).collect()
}
