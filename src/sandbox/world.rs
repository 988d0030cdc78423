//! Everything that a running sandbox holds: teams, clock, tokens, switches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::model::{Instant, TeamId};

use super::config::{Choices, FaultHook, SandboxConfig, TEAM_SESSIONS_MAX};
use super::error::SandboxError;
use super::seed::mix2;
use super::sessions::DAY_MS;
use super::team::{Span, Team};

const HOUR: Duration = Duration::from_secs(3600);
const DAY_SECONDS: i64 = DAY_MS / 1000;
const TEAMS_MAX: u64 = 10_000;
/// People, or computers, of one team: records name them in 16 bits.
const MEMBERS_MAX: u64 = 65_000;

/// Real time shifted, or a time of its own that only the handle moves.
pub(super) struct SandboxClock {
    system: SystemClock,
    stands: bool,
    nanos: AtomicI64,
}

impl SandboxClock {
    fn new(now: Option<Instant>) -> Self {
        let nanos = AtomicI64::new(now.map_or(0, Instant::nanos));
        Self { system: SystemClock::new(), stands: now.is_some(), nanos }
    }

    pub(super) fn now(&self) -> Instant {
        let own = self.nanos.load(Ordering::SeqCst);
        if self.stands {
            return Instant::from_nanos(own);
        }
        Instant::from_nanos(self.system.now().nanos().saturating_add(own))
    }

    pub(super) fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        self.nanos.fetch_add(by, Ordering::SeqCst);
    }

    pub(super) fn set(&self, now: Instant) {
        let base = if self.stands { 0 } else { self.system.now().nanos() };
        self.nanos.store(now.nanos().saturating_sub(base), Ordering::SeqCst);
    }

    pub(super) async fn sleep(&self, span: Duration) {
        self.system.sleep(span).await;
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Admin,
    ReadOnly,
    /// A member who is no admin: sees the limited team view.
    Member,
}

pub(super) struct World {
    pub config: SandboxConfig,
    pub clock: SandboxClock,
    pub end: Instant,
    horizon: Instant,
    pub teams: Vec<Arc<Team>>,
    by_id: HashMap<TeamId, Arc<Team>>,
    choices: RwLock<Choices>,
    faults: RwLock<Option<FaultHook>>,
    requests: AtomicU64,
}

impl World {
    /// Makes all teams, two at a time. Takes seconds for ten million events: not for an async task.
    pub(super) fn generate(config: SandboxConfig) -> Result<Self, SandboxError> {
        let clock = SandboxClock::new(config.now);
        let end = config.end.unwrap_or_else(|| clock.now().floor_to(HOUR));
        check(&config, end)?;
        let end_day = end.seconds().div_euclid(DAY_SECONDS);
        let ahead = i64::from(config.days_ahead);
        let horizon = if ahead == 0 { end } else { Instant::from_seconds((end_day + ahead + 1) * DAY_SECONDS) };
        let span = Span { first_day: end_day - i64::from(config.days), last_day: end_day + ahead, horizon };
        let teams = generate_teams(&config, span);
        let by_id = teams.iter().map(|team| (team.cast.id.clone(), Arc::clone(team))).collect();
        let choices = RwLock::new(config.choices);
        let faults = RwLock::new(config.faults.clone());
        Ok(Self { config, clock, end, horizon, teams, by_id, choices, faults, requests: AtomicU64::new(0) })
    }

    pub(super) fn team(&self, id: &str) -> Option<&Arc<Team>> {
        self.by_id.get(&TeamId::from(id))
    }

    pub(super) fn token(&self, role: Role) -> String {
        let (name, salt) = match role {
            Role::Admin => ("admin", 0xad),
            Role::ReadOnly => ("read-only", 0x20),
            Role::Member => ("member", 0x3e),
        };
        format!("sandbox-{name}-token-{:016x}", mix2(self.config.seed, salt))
    }

    pub(super) fn role_of(&self, token: &str) -> Option<Role> {
        [Role::Admin, Role::ReadOnly, Role::Member].into_iter().find(|&role| self.token(role) == token)
    }

    pub(super) fn choices(&self) -> Choices {
        *self.choices.read().expect("BUG: nothing panics while it holds the choices")
    }

    pub(super) fn set_choices(&self, choices: Choices) {
        *self.choices.write().expect("BUG: nothing panics while it holds the choices") = choices;
    }

    pub(super) fn faults(&self) -> Option<FaultHook> {
        self.faults.read().expect("BUG: nothing panics while it holds the fault hook").clone()
    }

    pub(super) fn set_faults(&self, faults: Option<FaultHook>) {
        *self.faults.write().expect("BUG: nothing panics while it holds the fault hook") = faults;
    }

    /// The moment that people and computers are shown as of: as events are, never younger than the last that are in store.
    pub(super) fn roster_at(&self) -> Instant {
        self.clock.now().min(self.horizon)
    }

    pub(super) fn next_serial(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::SeqCst)
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

fn check(config: &SandboxConfig, end: Instant) -> Result<(), SandboxError> {
    let sessions = u64::from(config.sessions_per_day) * (u64::from(config.days) + u64::from(config.days_ahead) + 1);
    let limits = [
        ("teams", u64::from(config.teams), TEAMS_MAX),
        ("computers a team", u64::from(config.computers_per_team), MEMBERS_MAX),
        ("people a team", u64::from(config.people_per_team), MEMBERS_MAX),
        ("connections a team", sessions, TEAM_SESSIONS_MAX),
    ];
    for (what, asked, most) in limits {
        if asked > most {
            return Err(SandboxError::TooMany { what, asked, most });
        }
    }
    let first = end.seconds() - (i64::from(config.days) + 1) * DAY_SECONDS;
    let last = end.seconds() + (i64::from(config.days_ahead) + 30) * DAY_SECONDS;
    if first < Instant::EARLIEST.seconds() || last >= Instant::LATEST.seconds() {
        return Err(SandboxError::OutsideTime { days: config.days, end: end.to_string() });
    }
    Ok(())
}

fn generate_teams(config: &SandboxConfig, span: Span) -> Vec<Arc<Team>> {
    let waiting = Mutex::new(0..config.teams);
    let made = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from).min(config.teams as usize);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("BUG: nothing panics while it counts teams").next();
                    let Some(number) = next else { break };
                    let team = Arc::new(Team::generate(config, number, span));
                    made.lock().expect("BUG: nothing panics while it keeps a team").push((number, team));
                }
            });
        }
    });
    let mut made = made.into_inner().expect("BUG: nothing panics while it keeps a team");
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, team)| team).collect()
}
