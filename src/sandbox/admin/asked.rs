//! What comes in and goes out of the rules: a request that was read, who made it, and what follows from it.

use serde_json::{Map, Value};

use crate::model::Instant;
use crate::sandbox::choices::Choices;
use crate::sandbox::routes::Op;

use super::state::User;

/// A request whose body has the shape that the table of routes gives it.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    pub op: Op,
    /// The ids in the path, in order, without the team's.
    pub ids: &'a [String],
    /// The query's pairs.
    pub query: &'a [(String, String)],
    pub body: &'a Map<String, Value>,
}

impl Asked<'_> {
    pub fn id(&self, place: usize) -> &str {
        self.ids.get(place).map_or("", String::as_str)
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.body.get(name).and_then(Value::as_bool)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.body.get(name).and_then(Value::as_i64)
    }

    /// A list of strings, each once, in the order sent; empty when it is left out.
    pub fn list(&self, name: &str) -> Vec<String> {
        let mut items = Vec::new();
        for item in self.body.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            super::state::push_new(&mut items, item);
        }
        items
    }
}

/// Who asks, as seen by one team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The person whose token it is.
    pub user_id: String,
    pub email: String,
    /// The token's title.
    pub title: String,
    pub is_admin: bool,
    pub signs_in_with_sso: bool,
    /// The teams that this person is an admin of; none: all of them.
    pub admin_of: Option<Vec<String>>,
}

impl Caller {
    pub fn administers(&self, team: &str) -> bool {
        self.is_admin && self.admin_of.as_ref().is_none_or(|teams| teams.iter().any(|held| held == team))
    }
}

pub struct Context<'a> {
    pub now: Instant,
    pub choices: Choices,
    pub caller: &'a Caller,
    /// `planFeatures.deviceEventsMaxRetrievalDuration`, in seconds.
    pub plan_span: u64,
    /// Those of other teams that the request is about: who shares the SSO connection, or has the address.
    pub elsewhere: &'a [User],
}

/// Who is told to have made a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Actor {
    #[default]
    Caller,
    /// Someone on the team, not through the API: id and address.
    Person(String, String),
    /// Not recorded.
    Nobody,
}

/// A change of someone's account, which every team that knows them sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountChange {
    /// 2-factor authentication is off.
    TotpRemoved,
    /// Signs in with SSO from now on.
    SsoGained,
}

/// What the world outside the state learns of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// An activity event: its type and payload.
    Told { name: &'static str, payload: Map<String, Value> },
    /// A billing entry's `event`.
    Billed(Map<String, Value>),
    /// A computer was removed, and with it its connection history.
    DeviceGone(String),
    /// A connection event, in its parts.
    Connected { id: String, at_ms: i64, device: String, host: String, kind: &'static str, event: Value },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub status: u16,
    /// `None`: "OK" or "Created", of which the document shows no body.
    pub body: Option<Value>,
    pub effects: Vec<Effect>,
    pub actor: Actor,
    /// To be done in the other teams too: whose address, and what.
    pub account: Option<(String, AccountChange)>,
}

impl Outcome {
    pub fn ok() -> Self {
        Self { status: 200, body: None, effects: Vec::new(), actor: Actor::Caller, account: None }
    }

    pub fn created() -> Self {
        Self { status: 201, ..Self::ok() }
    }

    pub fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub fn by(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Other teams that know this address see the change too.
    pub fn everywhere(mut self, email: &str, change: AccountChange) -> Self {
        self.account = Some((email.to_owned(), change));
        self
    }

    pub fn telling(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    pub fn telling_all(mut self, effects: Vec<Effect>) -> Self {
        self.effects.extend(effects);
        self
    }
}
