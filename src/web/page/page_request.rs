//! The request for a page, its team, and the frame around every page.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};

use crate::model::{Instant, TeamId, When};
use crate::report::{Needs, TeamNames, View, Zone, local_time_text, printable, sessions_behind};

use super::super::AppState;
use super::super::answer::asked_teams;
use super::super::format::{Time, exact, time};
use super::super::guard::cookie;
use super::super::input::{Input, link};
use super::super::problem::Problem;
use super::super::query_service::TEAMS_TOGETHER_MAX;
use super::assets;

/// The cookie with the browser user's time zone.
pub const ZONE_COOKIE: &str = "annals_zone";

#[derive(Debug, Clone, Default)]
pub struct NavigationEntry {
    pub href: String,
    pub label: &'static str,
    pub is_here: bool,
}

/// The frame around every page.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    pub places: Vec<NavigationEntry>,
    /// Ids and names.
    pub teams: Vec<(String, String)>,
    pub team: String,
    /// The team's name.
    pub team_label: String,
    /// Whether a page can show all teams of the archive together.
    pub has_all: bool,
    pub zone: String,
    pub version: &'static str,
    pub now: Option<Time>,
    pub can_sign_out: bool,
    pub here: String,
    pub style: &'static str,
    pub script: &'static str,
}

const PLACES: [(&str, &str); 7] = [
    ("/", "Overview"),
    ("/coverage", "Coverage"),
    ("/sessions", "Sessions"),
    ("/reports", "Reports"),
    ("/findings", "Findings"),
    ("/quarantine", "Quarantine"),
    ("/sql", "SQL"),
];

impl Frame {
    /// The frame of a page without a team.
    pub fn bare(state: &AppState, headers: &HeaderMap, uri: &Uri) -> Self {
        let zone = zone_of(headers);
        let has_sql = state.settings().sql;
        let is_under = |href: &str| uri.path() == href || uri.path().starts_with(&format!("{href}/"));
        let places =
            PLACES.iter().filter(|(href, _)| has_sql || *href != "/sql").map(|(href, label)| NavigationEntry {
                href: (*href).to_owned(),
                label,
                is_here: is_under(href) || *href == "/sessions" && (is_under("/session") || is_under("/day")),
            });
        Self {
            places: places.collect(),
            zone: zone.name().to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            now: Some(time(state.clock.now(), &zone)),
            can_sign_out: state.needs_token(),
            here: uri.path_and_query().map_or_else(|| "/".to_owned(), |here| here.as_str().to_owned()),
            style: assets::style(),
            script: assets::script(),
            ..Self::default()
        }
    }
}

pub struct PageRequest {
    pub input: Input,
    pub zone: Zone,
    pub now: Instant,
    /// The team of the page; `None` for all.
    pub team: Option<TeamId>,
    /// All teams of the page.
    pub teams: Vec<TeamId>,
    pub names: Arc<TeamNames>,
    pub frame: Frame,
}

impl PageRequest {
    /// # Errors
    /// When the archive cannot be read, or does not hold the team.
    pub async fn of(state: &AppState, headers: &HeaderMap, uri: &Uri) -> Result<Self, Problem> {
        let input = Input::of(uri.query())?;
        let archived = state.queries.teams().await?;
        let (mut team, mut teams) = asked_teams(state, &input).await?;
        let has_all = archived.len() <= TEAMS_TOGETHER_MAX;
        if team.is_none() && (!has_all || archived.len() == 1) {
            team = archived.first().cloned();
            teams = team.iter().cloned().collect();
        }
        let mut frame = Frame::bare(state, headers, uri);
        let names = state.queries.names().await?;
        frame.teams = archived.iter().map(|team| (team.to_string(), names.label(team.as_str()))).collect();
        frame.teams.sort_by_cached_key(|(team, label)| (label.to_lowercase(), team.clone()));
        frame.has_all = has_all;
        let mut page = Self { input, zone: zone_of(headers), now: state.clock.now(), team: None, teams, names, frame };
        page.set_team(team);
        let team = page.frame.team.clone();
        if archived.len() > 1 {
            for place in page.frame.places.iter_mut().filter(|place| place.href != "/") {
                place.href = link(&place.href, [("team", team.as_str())]);
            }
        }
        Ok(page)
    }

    /// Changes the team of the page.
    pub fn set_team(&mut self, team: Option<TeamId>) {
        self.frame.team = team.as_ref().map(ToString::to_string).unwrap_or_default();
        self.frame.team_label = team.as_ref().map(|team| self.names.label(team.as_str())).unwrap_or_default();
        self.team = team;
    }

    /// The query part of an address with the team, if there is more than one team.
    pub fn team_query(&self) -> String {
        if self.frame.teams.len() > 1 { self.frame.team.clone() } else { String::new() }
    }

    /// The start or end of a period.
    pub fn time(&self, at: Instant) -> Time {
        time(at, &self.zone)
    }

    /// A sentence for each team of the page whose sessions lack archived events.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub async fn sessions_behind(&self, state: &AppState) -> Result<Vec<String>, Problem> {
        let data = state.queries.snapshot(self.teams.clone()).await?;
        Ok(sessions_behind(&data, &Needs::views(&[View::Sessions]), None))
    }

    /// The local date of a moment.
    pub fn day(&self, at: Instant) -> String {
        local_time_text(at, &self.zone)[..10].to_owned()
    }

    /// The date of a parameter, as a form field shows it; empty if it is missing or no date.
    pub fn given_day(&self, name: &str) -> String {
        match self.input.parsed::<When>(name) {
            Ok(Some(when)) => self.day(when.resolve_in(self.now, self.zone.rules())),
            _ => String::new(),
        }
    }

    /// The time of an event.
    pub fn exact(&self, at: Instant) -> Time {
        exact(at, &self.zone)
    }
}

impl FromRequestParts<Arc<AppState>> for PageRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AppState>) -> Result<Self, Problem> {
        Self::of(state, &parts.headers, &parts.uri).await
    }
}

/// The time zone that the browser's user has chosen.
pub fn zone_of(headers: &HeaderMap) -> Zone {
    let chosen = cookie(headers, ZONE_COOKIE).map(|text| text.replace("%2F", "/"));
    let chosen = chosen.and_then(|text| printable(&text).parse().ok());
    chosen.unwrap_or_else(Zone::utc)
}
