//! The teams that the daemon reads: the configured ones, or those that the service lists.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::ApiError;
use crate::model::{Instant, TeamId};

use super::event_loop::Daemon;

/// The interval of the list of teams, and the interval after a failure.
const LISTING_EVERY: Duration = Duration::from_secs(300);
const LISTING_RETRY: Duration = Duration::from_secs(15);

impl Daemon {
    /// Starts with the configured teams, or with the teams of the archive. The daemon keeps an archived team that the service does
    /// not list: its streams become late, and their errors say why.
    pub(super) fn add_known_teams(&mut self) {
        let now = self.edges.clock.now();
        if !self.edges.settings.teams.is_empty() {
            return self.follow_named_teams(now);
        }
        let archived = self.edges.archive.teams().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot list the teams of the archive");
            Vec::new()
        });
        for team in self.edges.settings.own(archived) {
            self.add_team(&team, now);
        }
    }

    pub(super) fn add_team(&mut self, team: &TeamId, now: Instant) {
        self.timetable.add(team, now);
        self.show_tasks(team);
    }

    pub(super) fn show_tasks(&self, team: &TeamId) {
        self.live.show_tasks(team, |task| self.timetable.job(team, task));
    }

    pub(super) fn listed(&mut self, listed: Result<Vec<TeamId>, ApiError>) {
        let now = self.edges.clock.now();
        match listed {
            Ok(teams) => {
                let teams = self.edges.settings.own(teams);
                self.next_listing_at = Some(self.edges.clock.monotonic() + LISTING_EVERY);
                let known = self.timetable.teams();
                for team in teams.iter().filter(|team| !known.contains(*team)) {
                    tracing::info!(%team, "the daemon starts to read this team");
                    self.add_team(team, now);
                }
                // Set this last: until then a reader would see an incomplete list.
                self.live.listed(None);
            }
            Err(error) => {
                tracing::warn!(%error, "the service does not list the teams");
                let wait = error.retry_after().unwrap_or_default().max(LISTING_RETRY);
                self.next_listing_at = Some(self.edges.clock.monotonic().saturating_add(wait));
                self.live.listed(Some(error.to_string()));
            }
        }
    }

    /// Reads exactly the teams that the configuration names, if it names teams.
    pub(super) fn follow_named_teams(&mut self, now: Instant) {
        if self.edges.settings.teams.is_empty() {
            return;
        }
        let named = self.edges.settings.own(self.edges.settings.teams.clone());
        let named: BTreeSet<TeamId> = named.into_iter().collect();
        for team in self.timetable.teams().difference(&named) {
            self.timetable.remove(team);
            self.live.forget(team);
        }
        for team in &named {
            self.add_team(team, now);
        }
        // The service lists no teams from now on: an earlier failure must not stay in view.
        self.live.listed(None);
    }
}
