//! People on several teams: one address is one account. Finds who shares an SSO connection, who joins a second team,
//! and the rights of a token on each of its person's teams.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::model::Instant;

use super::admin::{AccountChange, AdminRequest, Membership, User, spread};
use super::answer::Refusal;
use super::effects::publish;
use super::issued::Issued;
use super::routes::Op;
use super::team::Team;
use super::tokens::{self, Bearer, Holder};
use super::world::World;

impl World {
    /// The owner and the rights of a token on a team. A person's token is valid while the person is on any team.
    pub(super) fn bearer_of(&self, token: &str, team: Option<&str>) -> Option<Bearer> {
        if let Some(role) = tokens::fixed_role(self.config.seed, token) {
            return Some(Bearer { role, person: None });
        }
        let issued = self.tokens.issued(token)?;
        let memberships = self.memberships(&issued);
        if memberships.is_empty() {
            return None;
        }
        let holder = Holder { issued, memberships };
        Some(Bearer { role: holder.role_on(team), person: Some(holder) })
    }

    /// A team without a state yet has only the people that its seed makes, so only the token's own team needs a look.
    fn memberships(&self, issued: &Issued) -> Vec<Membership> {
        let at = self.roster_at();
        let may_have = |team: &&Arc<Team>| team.has_state() || team.roster.id.as_str() == issued.team;
        let membership = |team: &Arc<Team>| {
            let role = team.state(at).user(&issued.user).ok()?.role;
            Some(Membership { team: team.roster.id.as_str().to_owned(), role })
        };
        self.teams.iter().filter(may_have).filter_map(membership).collect()
    }

    /// Issues a token for a person of a team, and adds it to the person's token log.
    pub(super) fn issue(&self, issued: Issued) -> Result<String, Refusal> {
        let team = self.team(&issued.team).ok_or_else(|| Refusal::not_found("team"))?;
        let mut state = team.state(self.roster_at());
        let (title, scope) = (issued.title(), if issued.read_only { "team:read" } else { "team:write" });
        let user = state.user_mut(&issued.user)?;
        if let Some(log) = user.token_log.as_array_mut()
            && !log.iter().any(|held| held["title"] == title)
        {
            log.push(json!({"title": title, "scopes": [scope]}));
        }
        drop(state);
        Ok(self.tokens.issue(self.config.seed, issued))
    }

    /// Writes into the token log when and from which address the token was last used.
    pub(super) fn note_use(&self, holder: &Holder, peer: Option<IpAddr>) {
        let Some(team) = self.team(&holder.issued.team) else { return };
        let (title, mut state) = (holder.issued.title(), team.state(self.roster_at()));
        let Ok(user) = state.user_mut(&holder.issued.user) else { return };
        let log = user.token_log.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
        for entry in log.iter_mut().filter(|held| held["title"] == title) {
            entry["lastUsed"] = json!(self.clock.now().seconds());
            if let Some(peer) = peer {
                entry["lastUsedIPAddress"] = json!(peer.to_string());
            }
        }
    }

    /// The people of other teams that a request concerns.
    pub(super) fn elsewhere(&self, team: &Team, request: &AdminRequest<'_>) -> Result<Vec<User>, Refusal> {
        let at = self.roster_at();
        match request.op {
            Op::SsoUsers | Op::AddSsoUser => Ok(self.sharing(team)),
            Op::Join | Op::SsoAccount => {
                let sent_to = || {
                    let (state, secret) = (team.state(at), request.text("secret"));
                    state.invites.iter().find(|held| Some(held.secret.as_str()) == secret)?.sent_to.clone()
                };
                let email = request.text("email").map(str::to_owned).or_else(sent_to);
                Ok(email.and_then(|email| self.account(team, &email)).into_iter().collect())
            }
            Op::Settings => match request.text("ssoOwner") {
                Some(owner) if !owner.is_empty() && self.team(owner).is_none() => Err(Refusal::not_found("team")),
                _ => Ok(Vec::new()),
            },
            _ => Ok(Vec::new()),
        }
    }

    /// The people of other teams who share this team's SSO connection.
    fn sharing(&self, team: &Team) -> Vec<User> {
        if !self.shares_sso() {
            return Vec::new();
        }
        let at = self.roster_at();
        let owner = team.state(at).sso_owner().to_owned();
        let mut found = Vec::new();
        for other in self.others(team).filter(|other| other.has_state() || other.roster.id.as_str() == owner) {
            let state = other.state(at);
            if state.sso_owner() == owner {
                found.extend(state.accounts().filter(|user| user.signs_in_with("saml")).cloned());
            }
        }
        found
    }

    /// The account of an address, as another team knows it.
    fn account(&self, team: &Team, email: &str) -> Option<User> {
        let at = self.roster_at();
        let is_seeded = |other: &Team| other.roster.people.iter().any(|held| held.email.eq_ignore_ascii_case(email));
        let mut may_know = self.others(team).filter(|other| other.has_state() || is_seeded(other));
        may_know.find_map(|other| other.state(at).account(email).cloned())
    }

    /// Applies a change of an account to the other teams that know it.
    pub(super) fn spread(
        &self,
        team: &Team,
        account: (String, AccountChange),
        author: Option<&Value>,
        now: Instant,
        delay: Duration,
    ) {
        let ((email, change), at) = (account, self.roster_at());
        let is_seeded = |other: &Team| other.roster.people.iter().any(|held| held.email.eq_ignore_ascii_case(&email));
        for other in self.others(team).filter(|other| other.has_state() || is_seeded(other)) {
            let mut state = other.state(at);
            let effects = spread(&mut state, &email, change);
            publish(other, &mut state, author, now, delay, effects);
        }
    }

    fn others(&self, team: &Team) -> impl Iterator<Item = &Arc<Team>> {
        let id = team.roster.id.clone();
        self.teams.iter().filter(move |other| other.roster.id != id)
    }
}
