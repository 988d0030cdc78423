//! A sandbox as one JSON file: its configuration and all later changes. The file omits what the seed makes.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::model::{DeviceId, Instant};

use super::admin::TeamState;
use super::choices::Choices;
use super::config::{Lateness, SandboxConfig};
use super::mishaps::CountedRule;
use super::overlay::{Extra, Withdrawal};
use super::shelf::Changes;
use super::team::Team;
use super::time::SavedClock;
use super::tokens::{Issued, Minute};
use super::world::World;

mod older;

/// Raise this with every change that an older version cannot read; [`older`] converts earlier formats.
const FORMAT: u64 = 2;

/// Why a saved sandbox cannot be loaded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SavedError {
    #[error("the text cannot be read as a saved sandbox: {0}")]
    Unreadable(String),
    #[error(
        "the saved sandbox has format {format}{}, and this is annals {}, which reads formats 1 to {FORMAT}: load it \
         with the version that saved it, or a later one",
        .saved_by.as_ref().map(|version| format!(", saved by annals {version}")).unwrap_or_default(),
        env!("CARGO_PKG_VERSION")
    )]
    Format { format: u64, saved_by: Option<String> },
    #[error("the saved sandbox has other data than this sandbox: start a sandbox with it (annals sandbox --load FILE)")]
    OtherData,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    format: u64,
    /// The version of Annals that saved it. The error message of an unreadable format shows it.
    saved_by: String,
    made_of: MadeOf,
    clock: SavedClock,
    choices: Choices,
    faults: Vec<CountedRule>,
    tokens: BTreeMap<String, Issued>,
    /// The counters of the rate limit.
    minute: Minute,
    teams: Vec<SavedTeam>,
}

/// The part of the configuration that determines the synthetic data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MadeOf {
    seed: u64,
    teams: u32,
    days: u32,
    sessions_per_day: u32,
    people_per_team: u32,
    computers_per_team: u32,
    end: Instant,
    days_ahead: u32,
    late_per_million: u32,
    late_up_to_ms: u64,
    dense_every_days: u32,
    odd_events: bool,
    plan_span_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTeam {
    state: TeamState,
    activity: SavedChanges,
    connections: SavedChanges,
    billing: Vec<SavedEvent>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedChanges {
    events: Vec<SavedEvent>,
    /// Removed computers of the synthetic history, by position.
    removed: BTreeMap<u32, Instant>,
    /// First and last position, and the time of the deletion.
    withdrawn: Vec<(u32, u32, Instant)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedEvent {
    /// The event's text; for bytes that are not UTF-8, the other field holds them in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_hex: Option<String>,
    at: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<DeviceId>,
    visible_from: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    visible_until: Option<Instant>,
}

impl Saved {
    /// Reads a saved sandbox of this format or an earlier one.
    ///
    /// # Errors
    /// When the text is not a saved sandbox, or has a later format.
    pub fn parse(text: &[u8]) -> Result<Self, SavedError> {
        Self::read(serde_json::from_slice(text).map_err(unreadable)?)
    }

    /// # Errors
    /// As [`Saved::parse`].
    pub(super) fn read(value: Value) -> Result<Self, SavedError> {
        serde_json::from_value(older::brought_up(value)?).map_err(unreadable)
    }

    /// The configuration that a sandbox needs to load this state.
    pub fn config(self) -> SandboxConfig {
        let made = self.made_of.clone();
        SandboxConfig {
            seed: made.seed,
            teams: made.teams,
            days: made.days,
            sessions_per_day: made.sessions_per_day,
            people_per_team: made.people_per_team,
            computers_per_team: made.computers_per_team,
            end: Some(made.end),
            days_ahead: made.days_ahead,
            lateness: Lateness {
                per_million: made.late_per_million,
                longest: Duration::from_millis(made.late_up_to_ms),
            },
            dense_every_days: made.dense_every_days,
            odd_events: made.odd_events,
            plan_span: made.plan_span_seconds.map(Duration::from_secs),
            saved: Some(self),
            ..SandboxConfig::default()
        }
    }

    pub(super) fn of(world: &World) -> Self {
        Self {
            format: FORMAT,
            saved_by: env!("CARGO_PKG_VERSION").to_owned(),
            made_of: MadeOf::of(world),
            clock: world.clock.saved(),
            choices: world.choices(),
            faults: world.mishaps.counted(),
            tokens: world.tokens.all().into_iter().collect(),
            minute: world.tokens.minute(),
            teams: world.teams.iter().map(|team| SavedTeam::of(team, world.roster_at())).collect(),
        }
    }

    /// # Errors
    /// When its data differs from the sandbox's. The sandbox then stays unchanged.
    pub(super) fn restore(self, world: &World) -> Result<(), SavedError> {
        let is_same = |(saved, team): (&SavedTeam, &std::sync::Arc<Team>)| saved.state.id == team.cast.id.as_str();
        if self.made_of != MadeOf::of(world)
            || self.teams.len() != world.teams.len()
            || !self.teams.iter().zip(&world.teams).all(is_same)
        {
            return Err(SavedError::OtherData);
        }
        for event in self.teams.iter().flat_map(SavedTeam::events) {
            event.bytes()?;
        }
        world.clock.restore(self.clock);
        world.set_choices(self.choices);
        world.mishaps.restore(self.faults);
        world.tokens.set_all(self.tokens.into_iter().collect::<HashMap<_, _>>());
        world.tokens.set_minute(self.minute);
        if self.teams.iter().any(|team| team.state.plan.sso_owner.is_some()) {
            world.note_shared_sso();
        }
        for (saved, team) in self.teams.into_iter().zip(&world.teams) {
            saved.restore(team, world.roster_at())?;
        }
        Ok(())
    }
}

fn unreadable(error: impl ToString) -> SavedError {
    SavedError::Unreadable(error.to_string())
}

impl MadeOf {
    fn of(world: &World) -> Self {
        let config = &world.config;
        Self {
            seed: config.seed,
            teams: config.teams,
            days: config.days,
            sessions_per_day: config.sessions_per_day,
            people_per_team: config.people_per_team,
            computers_per_team: config.computers_per_team,
            end: world.end,
            days_ahead: config.days_ahead,
            late_per_million: config.lateness.per_million,
            late_up_to_ms: u64::try_from(config.lateness.longest.as_millis()).unwrap_or(u64::MAX),
            dense_every_days: config.dense_every_days,
            odd_events: config.odd_events,
            plan_span_seconds: config.plan_span.map(|span| span.as_secs()),
        }
    }
}

impl SavedTeam {
    fn of(team: &Team, at: Instant) -> Self {
        // Hold these locks to the end: no change may happen between the parts.
        let state = team.state(at);
        Self {
            activity: SavedChanges::of(&team.activity.changes()),
            connections: SavedChanges::of(&team.connections.changes()),
            billing: team.billing().iter().map(SavedEvent::of).collect(),
            state: state.clone(),
        }
    }

    fn events(&self) -> impl Iterator<Item = &SavedEvent> {
        self.activity.events.iter().chain(&self.connections.events).chain(&self.billing)
    }

    fn restore(self, team: &Team, at: Instant) -> Result<(), SavedError> {
        let mut state = team.state(at);
        team.activity.restore(self.activity.changes()?);
        team.connections.restore(self.connections.changes()?);
        team.restore_billing(self.billing.into_iter().map(SavedEvent::extra).collect::<Result<_, _>>()?);
        *state = self.state;
        Ok(())
    }
}

impl SavedChanges {
    fn of(changes: &Changes) -> Self {
        let withdrawn = |one: &Withdrawal| (one.positions.start, one.positions.end, one.at);
        Self {
            events: changes.extras.iter().map(SavedEvent::of).collect(),
            removed: changes.removed.iter().map(|(&place, &at)| (place, at)).collect(),
            withdrawn: changes.withdrawals.iter().map(withdrawn).collect(),
        }
    }

    fn changes(self) -> Result<Changes, SavedError> {
        let withdrawal = |(start, end, at): (u32, u32, Instant)| Withdrawal { positions: start..end, at };
        Ok(Changes {
            extras: self.events.into_iter().map(SavedEvent::extra).collect::<Result<_, _>>()?,
            removed: self.removed.into_iter().collect(),
            withdrawals: self.withdrawn.into_iter().map(withdrawal).collect(),
        })
    }
}

impl SavedEvent {
    fn of(extra: &Extra) -> Self {
        let text = std::str::from_utf8(&extra.raw).ok().map(str::to_owned);
        Self {
            raw_hex: text.is_none().then(|| hex::encode(&extra.raw)),
            raw: text,
            at: extra.at,
            device: extra.device.clone(),
            visible_from: extra.visible_from,
            visible_until: extra.visible_until,
        }
    }

    fn bytes(&self) -> Result<Bytes, SavedError> {
        match (&self.raw, &self.raw_hex) {
            (Some(text), None) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            (None, Some(hex)) => hex::decode(hex).map(Bytes::from).map_err(unreadable),
            _ => Err(unreadable("an event has one of raw and raw_hex")),
        }
    }

    fn extra(self) -> Result<Extra, SavedError> {
        let raw = self.bytes()?;
        let Self { at, device, visible_from, visible_until, .. } = self;
        Ok(Extra { raw, at, device, visible_from, visible_until })
    }
}
