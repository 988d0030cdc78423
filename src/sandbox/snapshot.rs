//! Takes the state of a running sandbox as a [`Saved`], and restores one.

use std::collections::HashMap;

use crate::model::Instant;

use super::saved::{DataConfig, FORMAT, Saved, SavedChanges, SavedError, SavedEvent, SavedTeam};
use super::team::Team;
use super::world::World;

impl Saved {
    pub(super) fn of(world: &World) -> Self {
        Self {
            format: FORMAT,
            saved_by: env!("CARGO_PKG_VERSION").to_owned(),
            made_of: DataConfig::of(world),
            clock: world.clock.saved(),
            choices: world.choices(),
            faults: world.fault_rules.counted(),
            tokens: world.tokens.all().into_iter().collect(),
            minute: world.tokens.minute(),
            teams: world.teams.iter().map(|team| SavedTeam::of(team, world.roster_at())).collect(),
        }
    }

    /// # Errors
    /// When its data differs from the sandbox's. The sandbox then stays unchanged.
    pub(super) fn restore(self, world: &World) -> Result<(), SavedError> {
        let is_same = |(saved, team): (&SavedTeam, &std::sync::Arc<Team>)| saved.state.id == team.roster.id.as_str();
        if self.made_of != DataConfig::of(world)
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
        world.fault_rules.restore(self.faults);
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

impl DataConfig {
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
