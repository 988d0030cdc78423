//! A service of many teams in virtual time: each request waits for the rate limit and then takes some time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::api::{
    Answer, ApiError, BillingSnapshot, Computers, EventSource, Page, PageQuery, Served, TeamView, UnfilteredJson,
    scans_per_second,
};
use annals::archive::Archive;
use annals::clock::Clock;
use annals::config::Schedule;
use annals::daemon::{Daemon, DaemonCommand, Live};
use annals::model::{DeviceId, EventId, Instant, RawEvent, ServedTime, Stream, TeamId};
use annals::pipeline::{Edges, InventorySettings, NoProgress, ScanMode, Settings, Workers};
use annals::store::MemoryStore;
use futures::channel::mpsc;
use futures::future::BoxFuture;

use super::common::virtual_clock::VirtualClock;

/// The behaviour of one team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Well,
    /// It answers 401 to every request.
    Refusing,
    /// It answers with an error after a minute.
    Hanging,
}

/// The machine's clock: it is sometimes ten years ahead of the service's clock.
struct MachineClock {
    base: Arc<VirtualClock>,
    ahead: std::ops::Range<Duration>,
}

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        let is_ahead = self.ahead.contains(&self.base.monotonic());
        self.base.now().plus(if is_ahead { Duration::from_secs(10 * 365 * 86_400) } else { Duration::ZERO })
    }

    fn monotonic(&self) -> Duration {
        self.base.monotonic()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'_, ()> {
        self.base.sleep(span)
    }

    fn random(&self) -> u64 {
        self.base.random()
    }
}

/// The removal of the computer that every team has.
#[derive(Debug, Clone, Copy)]
pub struct Removed {
    /// The time since the start.
    pub at: Duration,
    /// Whether activity shows the removal.
    pub is_shown: bool,
}

pub struct FleetWorld {
    pub clock: Arc<VirtualClock>,
    teams: Vec<TeamId>,
    manners: BTreeMap<TeamId, Manner>,
    pub plan_spans: Mutex<BTreeMap<TeamId, Duration>>,
    /// From this time on, the service answers no request.
    pub down_from: Option<Duration>,
    /// The number of users of each team. The daemon asks about each user.
    pub people: usize,
    /// The rate limit, in requests a second.
    rate: f64,
    latency: Duration,
    /// The time between two connection events of a team.
    pub event_every: Duration,
    pub removed: Option<Removed>,
    /// During this time since the start, the machine's clock is ten years ahead.
    pub clock_ahead: std::ops::Range<Duration>,
    /// The service lists the last team from this time on.
    pub joins: Duration,
    /// How long the service takes to list the teams, and whether it then fails.
    pub listing_takes: Duration,
    pub listing_fails: bool,
    /// The shortest time between two commits of a team.
    pub commit_every: Duration,
    start: Instant,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    next_slot: Duration,
    /// The same for inventory readings.
    next_scan: Duration,
    longest_wait: Duration,
    /// When the daemon requested the newest window of a team's stream.
    scans: BTreeMap<(TeamId, Stream), Vec<Instant>>,
    /// The time and the operation of each request.
    requests: Vec<(Duration, String)>,
}

impl FleetWorld {
    pub fn new(start: &str, teams: usize, rate: f64) -> Self {
        Self {
            clock: VirtualClock::at(start.parse().unwrap()),
            teams: (0..teams).map(|n| TeamId::new(format!("team-{n:04}"))).collect(),
            manners: BTreeMap::new(),
            plan_spans: Mutex::default(),
            down_from: None,
            people: 0,
            rate,
            latency: Duration::from_millis(80),
            event_every: Duration::from_secs(3_600),
            removed: None,
            clock_ahead: Duration::ZERO..Duration::ZERO,
            joins: Duration::ZERO,
            listing_takes: Duration::ZERO,
            listing_fails: false,
            commit_every: Duration::ZERO,
            start: start.parse().unwrap(),
            seen: Mutex::default(),
        }
    }

    pub fn behave(&mut self, teams: std::ops::Range<usize>, manner: Manner) {
        self.manners.extend(self.teams[teams].iter().map(|team| (team.clone(), manner)));
    }

    pub fn teams(&self) -> &[TeamId] {
        &self.teams
    }

    /// When the daemon read a team's stream.
    pub fn scans(&self, team: &TeamId, stream: Stream) -> Vec<Instant> {
        self.seen.lock().unwrap().scans.get(&(team.clone(), stream)).cloned().unwrap_or_default()
    }

    pub fn longest_wait(&self) -> Duration {
        self.seen.lock().unwrap().longest_wait
    }

    /// The largest number of requests in any second.
    pub fn requests_in_a_second(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        let in_second = |from: usize| {
            let end = seen.requests[from].0 + Duration::from_secs(1);
            seen.requests[from..].iter().take_while(|(at, _)| *at < end).count()
        };
        (0..seen.requests.len()).map(in_second).max().unwrap_or(0)
    }

    /// The number of requests by operation in a part of the run.
    pub fn asked(&self, stretch: std::ops::Range<Duration>) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for (_, what) in self.seen.lock().unwrap().requests.iter().filter(|(at, _)| stretch.contains(at)) {
            *asked.entry(what.clone()).or_default() += 1;
        }
        asked
    }

    /// The times of an operation's requests.
    pub fn times_of(&self, what: &str) -> Vec<Duration> {
        let seen = self.seen.lock().unwrap();
        seen.requests.iter().filter(|(_, asked)| asked == what).map(|(at, _)| *at).collect()
    }

    /// When the computer was removed, if it has been.
    fn removal(&self) -> Option<(Instant, Removed)> {
        let removed = self.removed.filter(|removed| self.clock.monotonic() >= removed.at)?;
        Some((self.start.plus(removed.at), removed))
    }

    /// Runs the daemon over all teams for this long.
    pub fn run(self: &Arc<Self>, schedule: &Schedule, span: Duration) -> Arc<Live> {
        let archive = Archive::open_or_create(Arc::new(MemoryStore::new()), || "test".to_owned()).unwrap();
        self.run_on(Arc::new(archive), schedule, span)
    }

    pub fn run_on(self: &Arc<Self>, archive: Arc<Archive>, schedule: &Schedule, span: Duration) -> Arc<Live> {
        self.run_with_commands(archive, schedule, vec![(span, DaemonCommand::Stop)])
    }

    /// Runs the daemon, which receives each command after a pause. The last command stops it.
    pub fn run_with_commands(
        self: &Arc<Self>,
        archive: Arc<Archive>,
        schedule: &Schedule,
        commands: Vec<(Duration, DaemonCommand)>,
    ) -> Arc<Live> {
        let live = Arc::new(Live::default());
        let (sender, received) = mpsc::unbounded();
        let daemon = Daemon::new(self.edges(archive, Vec::new()), schedule.clone(), live.clone(), 11);
        let end = async {
            for (pause, command) in commands {
                self.clock.sleep(pause).await;
                sender.unbounded_send(command).unwrap();
            }
        };
        self.clock.run(async { futures::join!(daemon.run(received), end) });
        live
    }

    /// The daemon's edges over this service. Without `teams`, the daemon reads every team that the service lists.
    pub fn edges(self: &Arc<Self>, archive: Arc<Archive>, teams: Vec<TeamId>) -> Edges {
        let clock: Arc<dyn Clock> =
            Arc::new(MachineClock { base: self.clock.clone(), ahead: self.clock_ahead.clone() });
        let since = Some(clock.now().minus(Duration::from_secs(3_600)));
        let inventory = InventorySettings {
            scan: if self.people > 0 { ScanMode::WhenDue } else { ScanMode::Never },
            user_info: true,
        };
        let commit_every = self.commit_every;
        let settings = Settings { since, concurrency: 8, inventory, commit_every, teams, ..Settings::default() };
        let source: Arc<dyn EventSource> = self.clone();
        let (settings, progress) = (Arc::new(settings), Arc::new(NoProgress));
        Edges { source, archive, clock, settings, workers: Workers::Inline, progress }
    }

    async fn answer<T>(
        &self,
        team: &TeamId,
        what: &str,
        body: impl FnOnce(Instant) -> T,
    ) -> Result<Served<T>, ApiError> {
        let wait = {
            let mut seen = self.seen.lock().unwrap();
            let now = self.clock.monotonic();
            let slot = seen.next_slot.max(now);
            seen.next_slot = slot + Duration::from_secs_f64(1.0 / self.rate);
            seen.longest_wait = seen.longest_wait.max(slot - now);
            seen.requests.push((slot, what.to_owned()));
            slot - now
        };
        self.clock.sleep(wait).await;
        let what = what.to_owned();
        if self.down_from.is_some_and(|from| self.clock.monotonic() >= from) {
            return Err(ApiError::Unavailable { what, detail: "down".into(), retry_after: None });
        }
        match self.manners.get(team).unwrap_or(&Manner::Well) {
            Manner::Well => {}
            Manner::Refusing => return Err(ApiError::Refused { what, status: 401 }),
            Manner::Hanging => {
                self.clock.sleep(Duration::from_secs(60)).await;
                return Err(ApiError::Unavailable { what, detail: "no answer".into(), retry_after: None });
            }
        }
        self.clock.sleep(self.latency).await;
        let now = self.clock.now();
        Ok(Served { body: body(now), at: Some(now.floor_second()) })
    }

    /// Waits like the client: inventory requests wait for their share of the rate, then for their turn among all
    /// requests.
    async fn answer_scan<T>(
        &self,
        team: &TeamId,
        what: &str,
        body: impl FnOnce(Instant) -> T,
    ) -> Result<Served<T>, ApiError> {
        let wait = {
            let mut seen = self.seen.lock().unwrap();
            let now = self.clock.monotonic();
            let slot = seen.next_scan.max(now);
            seen.next_scan = slot + Duration::from_secs_f64(1.0 / scans_per_second(self.rate));
            slot - now
        };
        self.clock.sleep(wait).await;
        self.answer(team, what, body).await
    }

    fn note_read(&self, team: &TeamId, stream: Stream, stop: Option<i64>) {
        let now = self.clock.now();
        // The newest window ends in the future; the future reading begins there.
        if stop.is_none_or(|stop| stop > now.seconds() && stop < now.seconds() + 2 * 86_400) {
            let mut seen = self.seen.lock().unwrap();
            let scans = seen.scans.entry((team.clone(), stream)).or_default();
            // Several pages of one reading count once.
            if scans.last().is_none_or(|last| now.since(*last) > Duration::from_secs(1)) {
                scans.push(now);
            }
        }
    }

    fn page_of(&self, team: &TeamId, query: &PageQuery, now: Instant) -> Page {
        let every = i64::try_from(self.event_every.as_secs()).unwrap();
        let phase = i64::from(team.as_str().bytes().map(u32::from).sum::<u32>() * 37) % every;
        let mut events = Vec::new();
        let removal = self.removal();
        if let Some((at, _)) =
            removal.filter(|(at, removed)| removed.is_shown && (query.start..=query.stop).contains(&at.seconds()))
            && query.stream == Stream::Activity
        {
            let nanos = at.nanos();
            let text = format!(
                r#"{{"header":{{"eventTimestampUnixNano":{nanos}}},"teamDeviceRemovedEvent":{{"deviceID":"d1"}}}}"#
            );
            events.push(RawEvent::new(text.into(), false, None, ServedTime::At(at)));
        }
        let mut at = (query.start - phase).div_euclid(every) * every + phase;
        while at <= query.stop.min(now.seconds()) && query.stream == Stream::Connections {
            if at >= query.start && removal.is_none() {
                let text =
                    format!(r#"{{"id":"e{at}","timestamp":{at}000,"deviceID":"d1","connectionClosedEvent":{{}}}}"#);
                let time = ServedTime::At(Instant::from_seconds(at));
                events.push(RawEvent::new(text.into(), false, Some(EventId::new(format!("e{at}"))), time));
            }
            at += every;
        }
        let from = usize::try_from(query.offset).unwrap().min(events.len());
        let to = (from + query.limit as usize).min(events.len());
        let has_more = Some(to < events.len());
        Page { has_more, events: events.drain(from..to).collect(), ..Page::default() }
    }
}

impl EventSource for FleetWorld {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        Box::pin(async move {
            if !self.listing_takes.is_zero() {
                self.clock.sleep(self.listing_takes).await;
            }
            if self.listing_fails {
                return Err(ApiError::Unavailable { what: "teams".into(), detail: "down".into(), retry_after: None });
            }
            let shown = self.teams.len() - usize::from(self.clock.monotonic() < self.joins);
            Ok(Served { body: self.teams[..shown].to_vec(), at: Some(self.clock.now()) })
        })
    }

    fn team<'a>(&'a self, team: &'a TeamId) -> Answer<'a, TeamView> {
        let plan_span = self.plan_spans.lock().unwrap().get(team).copied();
        let plan_span = plan_span.or(Some(Duration::from_secs(90 * 86_400)));
        Box::pin(self.answer(team, "the team", move |_| TeamView { plan_span, ..TeamView::default() }))
    }

    fn devices<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Computers> {
        Box::pin(self.answer(team, "the computers", |_| match self.removal() {
            Some(_) => Computers { ids: Vec::new(), whole: UnfilteredJson::new(r#"{"devices":[]}"#) },
            None => Computers {
                ids: vec![DeviceId::from("d1")],
                whole: UnfilteredJson::new(r#"{"devices":[{"id":"d1"}]}"#),
            },
        }))
    }

    fn page<'a>(&'a self, team: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        self.note_read(team, query.stream, Some(query.stop));
        Box::pin(self.answer(team, query.stream.as_str(), move |now| self.page_of(team, query, now)))
    }

    fn billing<'a>(&'a self, team: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        self.note_read(team, Stream::Billing, None);
        Box::pin(self.answer(team, Stream::Billing.as_str(), |_| BillingSnapshot::default()))
    }

    fn users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        let users: Vec<String> = (0..self.people).map(|n| format!(r#"{{"id":"u{n}"}}"#)).collect();
        Box::pin(self.answer_scan(team, "the users", move |_| {
            UnfilteredJson::new(format!(r#"{{"users":[{}]}}"#, users.join(",")))
        }))
    }

    fn sso_users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        Box::pin(self.answer_scan(team, "the SSO users", |_| UnfilteredJson::new("[]")))
    }

    fn user_info<'a>(&'a self, team: &'a TeamId, _: &'a str) -> Answer<'a, UnfilteredJson> {
        Box::pin(self.answer_scan(team, "a user", |_| UnfilteredJson::default()))
    }
}
