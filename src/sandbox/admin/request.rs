//! The input and output of the rules: a parsed request, its caller, and its outcome.

use serde_json::{Map, Value};

use crate::model::Instant;
use crate::sandbox::answer::Refusal;
use crate::sandbox::choices::Choices;
use crate::sandbox::routes::Op;

use super::state::User;

/// A request whose body has the shape of its row in the table of routes.
#[derive(Debug, Clone)]
pub struct AdminRequest<'a> {
    pub op: Op,
    /// The ids in the path, in order, without the team's id.
    pub ids: &'a [String],
    /// The query's pairs.
    pub query: &'a [(String, String)],
    pub body: &'a Map<String, Value>,
}

impl AdminRequest<'_> {
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

    /// A list of strings without repetitions, in the request's order; empty if the field is missing.
    pub fn list(&self, name: &str) -> Vec<String> {
        let mut items = Vec::new();
        for item in self.body.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            super::state::push_new(&mut items, item);
        }
        items
    }
}

/// The caller of a request, from the view of one team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The owner of the token.
    pub user_id: String,
    pub email: String,
    /// The token's title.
    pub title: String,
    pub is_admin: bool,
    pub signs_in_with_sso: bool,
    /// The teams on which this person is an admin; `None`: all teams.
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
    /// The people of other teams whom the request concerns: they share the SSO connection or have the address.
    pub elsewhere: &'a [User],
}

/// The author of a change in its activity event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Actor {
    #[default]
    Caller,
    /// A person on the team who does not use the API: id and address.
    Person(String, String),
    /// Not recorded.
    Nobody,
}

/// A change of a person's account. Every team that knows the person sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountChange {
    /// 2-factor authentication is off.
    TotpRemoved,
    /// The person signs in with SSO from now on.
    SsoGained,
}

/// An effect of a change outside the team's state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// An activity event: its type and payload.
    Activity { name: &'static str, payload: Map<String, Value> },
    /// A billing entry's `event`.
    Billing(Map<String, Value>),
    /// A removed computer: its connection history disappears.
    ComputerRemoved(String),
    /// The parts of a connection event.
    Connection { id: String, at_ms: i64, device: String, host: String, kind: &'static str, event: Value },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub status: u16,
    /// `None`: "OK" or "Created", for which the document shows no body.
    pub body: Option<Value>,
    pub effects: Vec<Effect>,
    pub actor: Actor,
    /// A change that the other teams need too: the person's address, and the change.
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

    /// Marks a change that other teams with this address need too.
    pub fn everywhere(mut self, email: &str, change: AccountChange) -> Self {
        self.account = Some((email.to_owned(), change));
        self
    }

    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    pub fn with_effects(mut self, effects: Vec<Effect>) -> Self {
        self.effects.extend(effects);
        self
    }
}

/// The result of a rule.
pub type Answer = Result<Outcome, Refusal>;
