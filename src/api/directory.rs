//! The edge to the service for a team's people and computers, and answers that nobody is shown.

use std::fmt;
use std::sync::Arc;

use crate::model::{DeviceId, TeamId};

use super::contract::{Answer, ApiError};

/// The JSON text of an answer about people and computers. It may hold secrets of invites and installers: `inventory` takes
/// from it what is allowed, and no message, log or file has any of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Unread(Arc<str>);

impl Unread {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// An object without a field: nothing is known.
impl Default for Unread {
    fn default() -> Self {
        Self::new("{}")
    }
}

impl fmt::Debug for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unread({} bytes)", self.0.len())
    }
}

/// The team's computers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Computers {
    pub ids: Vec<DeviceId>,
    /// `{devices: [Computer]}`
    pub whole: Unread,
}

impl From<Vec<DeviceId>> for Computers {
    fn from(ids: Vec<DeviceId>) -> Self {
        Self { ids, whole: Unread::default() }
    }
}

/// The lists of a team's people. Contract: as that of [`EventSource`](super::EventSource); where a source has no such list,
/// it answers that there is none.
pub trait Directory: Send + Sync {
    /// `GET /v1/team/{teamID}/users`: `{users: [User]}`, each with an id of its own.
    fn users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Unread> {
        no_list(team)
    }

    /// `GET /v1/team/{teamID}/saml/users`: a list of SSO users, each with an id of its own.
    fn sso_users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Unread> {
        no_list(team)
    }

    /// `GET /v1/team/{teamID}/user/{userID}/info`: an object with at least one of its documented fields.
    fn user_info<'a>(&'a self, team: &'a TeamId, _user: &'a str) -> Answer<'a, Unread> {
        no_list(team)
    }
}

fn no_list(team: &TeamId) -> Answer<'_, Unread> {
    let what = format!("a list of the people of team {team}");
    Box::pin(std::future::ready(Err(ApiError::NotFound { what, status: 404 })))
}
