//! The whole state of a running sandbox: teams, clock, tokens, switches.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::model::{Instant, TeamId};

use super::admin::{AdminRequest, Caller, Context, Outcome, apply};
use super::answer::Refusal;
use super::choices::Choices;
use super::config::{SandboxConfig, TEAM_SESSIONS_MAX};
use super::effects::{publish, token_info};
use super::error::SandboxError;
use super::fault::FaultHook;
use super::fault_rules::FaultRules;
use super::routes::Op;
use super::sessions::DAY_MS;
use super::team::{Span, Team};
use super::time::SandboxClock;
use super::tokens::{self, Bearer, Role, Tokens};

const HOUR: Duration = Duration::from_secs(3600);
const DAY_SECONDS: i64 = DAY_MS / 1000;
const TEAMS_MAX: u64 = 10_000;
/// The most people, or computers, of one team: records refer to them with 16 bits.
const MEMBERS_MAX: u64 = 65_000;

pub(super) struct World {
    pub config: SandboxConfig,
    pub clock: SandboxClock,
    pub end: Instant,
    horizon: Instant,
    pub teams: Vec<Arc<Team>>,
    by_id: HashMap<TeamId, Arc<Team>>,
    choices: RwLock<Choices>,
    faults: RwLock<Option<FaultHook>>,
    pub fault_rules: FaultRules,
    pub tokens: Tokens,
    requests: AtomicU64,
    /// A request that reads several teams holds this lock, because it locks their states one after the other.
    turn: Mutex<()>,
    /// Whether any team uses another team's SSO connection.
    shares_sso: AtomicBool,
}

impl World {
    /// Makes all teams on all cores. Ten million events take seconds, so do not call it on an async task.
    pub(super) fn generate(mut config: SandboxConfig) -> Result<Self, SandboxError> {
        let saved = config.saved.take();
        let clock = SandboxClock::new(config.now, config.speed);
        let end = config.end.unwrap_or_else(|| clock.now().floor_to(HOUR));
        check(&config, end)?;
        let end_day = end.seconds().div_euclid(DAY_SECONDS);
        let ahead = i64::from(config.days_ahead);
        let horizon = if ahead == 0 { end } else { Instant::from_seconds((end_day + ahead + 1) * DAY_SECONDS) };
        let span = Span { first_day: end_day - i64::from(config.days), last_day: end_day + ahead, horizon, end };
        let teams = generate_teams(&config, span);
        let by_id = teams.iter().map(|team| (team.roster.id.clone(), Arc::clone(team))).collect();
        let choices = RwLock::new(config.choices);
        let faults = RwLock::new(config.faults.clone());
        let fault_rules = FaultRules::new(std::mem::take(&mut config.fault_rules));
        let (tokens, requests) = (Tokens::default(), AtomicU64::new(0));
        let (turn, shares_sso) = (Mutex::default(), AtomicBool::new(false));
        let world = Self {
            config,
            clock,
            end,
            horizon,
            teams,
            by_id,
            choices,
            faults,
            fault_rules,
            tokens,
            requests,
            turn,
            shares_sso,
        };
        if let Some(saved) = saved {
            saved.restore(&world)?;
        }
        Ok(world)
    }

    pub(super) fn team(&self, id: &str) -> Option<&Arc<Team>> {
        self.by_id.get(&TeamId::from(id))
    }

    pub(super) fn token(&self, role: Role) -> String {
        tokens::fixed(self.config.seed, role)
    }

    pub(super) fn caller(&self, team: &Team, bearer: &Bearer) -> Result<Caller, Refusal> {
        tokens::caller(&team.roster, &team.state(self.roster_at()), bearer)
    }

    /// Runs one administration request at one moment: checks it, changes the state, and writes its effects into the
    /// streams.
    pub(super) fn administer(
        &self,
        team: &Team,
        caller: &Caller,
        request: &AdminRequest<'_>,
    ) -> Result<Outcome, Refusal> {
        let (now, choices) = (self.clock.now(), self.choices());
        let turn = || self.turn.lock();
        let _turn = reaches_beyond(request.op).then(turn);
        let elsewhere = self.elsewhere(team, request)?;
        let plan_span = self.config.plan_span().as_secs();
        let context = Context { now, choices, caller, plan_span, elsewhere: &elsewhere };
        let mut state = team.state(self.roster_at());
        let mut outcome = apply(&mut state, request, &context)?;
        let delay = Duration::from_millis(choices.event_delay_ms);
        let author = token_info(caller, &outcome.actor);
        publish(team, &mut state, author.as_ref(), now, delay, std::mem::take(&mut outcome.effects));
        if state.plan.sso_owner.is_some() {
            self.note_shared_sso();
        }
        drop(state);
        if let Some(account) = outcome.account.take() {
            self.spread(team, account, author.as_ref(), now, delay);
        }
        Ok(outcome)
    }

    pub(super) fn shares_sso(&self) -> bool {
        self.shares_sso.load(Ordering::SeqCst)
    }

    /// The flag is never cleared: a stale flag only costs an extra look at other teams.
    pub(super) fn note_shared_sso(&self) {
        self.shares_sso.store(true, Ordering::SeqCst);
    }

    pub(super) fn choices(&self) -> Choices {
        *self.choices.read()
    }

    pub(super) fn set_choices(&self, choices: Choices) {
        *self.choices.write() = choices;
    }

    pub(super) fn faults(&self) -> Option<FaultHook> {
        self.faults.read().clone()
    }

    pub(super) fn set_faults(&self, faults: Option<FaultHook>) {
        *self.faults.write() = faults;
    }

    /// The moment for which the sandbox shows people and computers: now, but not after the last prepared event.
    pub(super) fn roster_at(&self) -> Instant {
        self.clock.now().min(self.horizon)
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Whether a request reads or changes other teams too. Such requests run one after the other.
fn reaches_beyond(op: Op) -> bool {
    matches!(op, Op::SsoUsers | Op::AddSsoUser | Op::Join | Op::SsoAccount | Op::ConfirmTotp | Op::Settings)
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
                    let next = waiting.lock().next();
                    let Some(number) = next else { break };
                    let team = Arc::new(Team::generate(config, number, span));
                    made.lock().push((number, team));
                }
            });
        }
    });
    let mut made = made.into_inner();
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, team)| team).collect()
}
