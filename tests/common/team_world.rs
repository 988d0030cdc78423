//! A team in memory, with paged answers in virtual time, and rounds of the pipeline over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::api::{
    Answer, ApiError, BillingSnapshot, Computers, EventSource, Page, PageQuery, Served, TeamView, UnfilteredJson,
};
use annals::archive::{Archive, Finding, FindingKind, TeamState, WindowRecord};
use annals::clock::Clock;
use annals::model::{DeviceId, EventId, EventRow, Instant, Range, RawEvent, RejectReason, ServedTime, Stream, TeamId};
use annals::pipeline::{Edges, EventBudget, NoProgress, Settings, TeamEdges, TeamRound, Workers, read_team};
use annals::store::{MemoryStore, Store};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

/// A request to the service.
pub enum Ask<'a> {
    Teams,
    Team,
    Devices,
    Page(&'a PageQuery),
    Billing,
    Users,
    SsoUsers,
    UserInfo(&'a str),
}

type Hook = Box<dyn FnMut(&Ask<'_>, &mut Team) -> Option<ApiError> + Send>;

/// The service's current data of the team.
pub struct Team {
    pub now: Instant,
    /// How far this machine's clock is ahead of the service's.
    pub machine_ahead: Duration,
    /// The `Date` of the next answer, instead of `now`.
    pub wild_date: Option<Instant>,
    pub plan_span: Option<Duration>,
    pub devices: Vec<&'static str>,
    pub activity: Vec<RawEvent>,
    pub connections: Vec<RawEvent>,
    /// Newest first.
    pub billing: Vec<RawEvent>,
    /// Whether `history/devices` is missing.
    pub is_old: bool,
    pub page_max: usize,
    pub roster: Roster,
}

/// The service's answers about people and computers, as JSON; empty: it has none.
#[derive(Clone, Default)]
pub struct Roster {
    pub team: String,
    pub computers: String,
    pub users: String,
    pub sso_users: String,
    pub info: BTreeMap<String, String>,
}

/// The world: a team, its archive, and a clock that both share.
pub struct World {
    team: Mutex<Team>,
    hook: Mutex<Option<Hook>>,
    pub store: Arc<dyn Store>,
}

impl World {
    pub fn new(now: &str) -> Arc<Self> {
        let team = Team {
            now: at(now),
            machine_ahead: Duration::ZERO,
            wild_date: None,
            plan_span: None,
            devices: vec!["d1", "d2"],
            activity: Vec::new(),
            connections: Vec::new(),
            billing: Vec::new(),
            is_old: false,
            page_max: 1001,
            roster: Roster::default(),
        };
        Arc::new(Self { team: Mutex::new(team), hook: Mutex::new(None), store: Arc::new(MemoryStore::new()) })
    }

    pub fn team(&self) -> MutexGuard<'_, Team> {
        self.team.lock()
    }

    pub fn set_now(&self, now: &str) {
        self.team().now = at(now);
    }

    /// A hook before each answer. It may change the team or fail the request.
    pub fn on_ask(&self, hook: impl FnMut(&Ask<'_>, &mut Team) -> Option<ApiError> + Send + 'static) {
        *self.hook.lock() = Some(Box::new(hook));
    }

    pub fn calm(&self) {
        *self.hook.lock() = None;
    }

    fn edges(self: &Arc<Self>, settings: &Settings) -> Edges {
        Edges {
            source: self.clone(),
            archive: Arc::new(Archive::open_or_create(self.store.clone(), || "test".to_owned()).unwrap()),
            clock: Arc::new(Shared(self.clone())),
            settings: Arc::new(settings.clone()),
            workers: Workers::Inline,
            progress: Arc::new(NoProgress),
        }
    }

    pub async fn round(self: &Arc<Self>, settings: &Settings) -> TeamRound {
        let (_, round) = self.edges(settings).read_once().await.unwrap().teams.remove(0);
        round.unwrap()
    }

    /// Runs a round of a new process that has this time for settling and re-scanning.
    pub async fn run(self: &Arc<Self>, settings: &Settings, time_limit: Duration) -> TeamRound {
        read_team(self.open(settings, time_limit).await).await
    }

    /// The team as a new process opens it for several runs.
    pub async fn open(self: &Arc<Self>, settings: &Settings, time_limit: Duration) -> Arc<TeamEdges> {
        let open = TeamEdges::open(self.edges(settings), TeamId::from("t"), EventBudget::of(settings));
        let edges = open.await.unwrap();
        Arc::new(TeamEdges { time_limit: Some(time_limit), ..edges })
    }

    /// Runs a round and asserts that nothing fails.
    pub async fn sync(self: &Arc<Self>, settings: &Settings) -> TeamRound {
        let round = self.round(settings).await;
        assert!(round.failures.is_empty(), "{:?}", round.failures);
        round
    }

    pub fn state(&self) -> TeamState {
        let archive = Archive::open_or_create(self.store.clone(), || "test".to_owned()).unwrap();
        archive.read(&TeamId::from("t")).unwrap().state().clone()
    }

    pub fn window(&self, stream: Stream, start: &str) -> WindowRecord {
        self.state().windows[&(stream, at(start))].clone()
    }

    pub fn findings(&self, kind: FindingKind) -> Vec<Finding> {
        self.state().findings.into_iter().map(|(_, finding)| finding).filter(|f| f.kind == kind).collect()
    }

    /// The archived texts of a stream, in order.
    pub fn held(&self, stream: Stream) -> Vec<String> {
        let archive = Archive::open_or_create(self.store.clone(), || "test".to_owned()).unwrap();
        let mut texts = Vec::new();
        let all = Range::new(Instant::EARLIEST, Instant::LATEST);
        let mut take = |row: EventRow| {
            texts.push(String::from_utf8(row.raw.to_vec()).unwrap());
            Ok(())
        };
        archive.read(&TeamId::from("t")).unwrap().rows().rows_in(stream, all, &mut take).unwrap();
        texts.sort();
        texts
    }

    /// The archived revisions of an id, in order.
    pub fn revisions(&self, stream: Stream, id: &str) -> Vec<u32> {
        let archive = Archive::open_or_create(self.store.clone(), || "test".to_owned()).unwrap();
        let all = Range::new(Instant::EARLIEST, Instant::LATEST);
        let mut stored = archive.read(&TeamId::from("t")).unwrap().rows().events_in(stream, all).unwrap();
        stored.retain(|event| event.event_id.as_str() == id);
        let mut revisions: Vec<u32> = stored.into_iter().map(|event| event.revision).collect();
        revisions.sort_unstable();
        revisions
    }

    fn answer<T: Clone + Send + 'static>(&self, ask: &Ask<'_>, make: impl FnOnce(&Team) -> T) -> Answer<'_, T> {
        let mut team = self.team();
        let failure = self.hook.lock().as_mut().and_then(|hook| hook(ask, &mut team));
        let answer = match failure {
            Some(error) => Err(error),
            None => {
                let date = team.wild_date.take().unwrap_or(team.now);
                Ok(Served { body: make(&team), at: Some(date) })
            }
        };
        Box::pin(std::future::ready(answer))
    }
}

pub fn unavailable() -> ApiError {
    ApiError::Unavailable { what: "a request".into(), detail: "as the test wants".into(), retry_after: None }
}

fn not_found() -> ApiError {
    ApiError::NotFound { what: "a request".into(), status: 404 }
}

impl World {
    fn roster_answer<'a>(
        &'a self,
        ask: &Ask<'_>,
        get: impl FnOnce(&Roster) -> Option<String>,
    ) -> Answer<'a, UnfilteredJson> {
        let text = get(&self.team().roster).filter(|text| !text.is_empty());
        let Some(text) = text else {
            // The hook still sees the request.
            let failure = self.answer(ask, |_| ()).now_or_never().unwrap().err();
            return Box::pin(std::future::ready(Err(failure.unwrap_or_else(not_found))));
        };
        self.answer(ask, move |_| UnfilteredJson::new(text))
    }
}

impl EventSource for World {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        self.answer(&Ask::Teams, |_| vec![TeamId::from("t")])
    }

    fn team<'a>(&'a self, _: &'a TeamId) -> Answer<'a, TeamView> {
        self.answer(&Ask::Team, |team| {
            let whole = if team.roster.team.is_empty() { "{}" } else { &team.roster.team };
            TeamView { name: None, plan_span: team.plan_span, whole: UnfilteredJson::new(whole) }
        })
    }

    fn devices<'a>(&'a self, _: &'a TeamId) -> Answer<'a, Computers> {
        self.answer(&Ask::Devices, |team| {
            let ids: Vec<DeviceId> = team.devices.iter().map(|id| DeviceId::from(*id)).collect();
            let bare = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect::<Vec<_>>().join(",");
            let whole = match team.roster.computers.as_str() {
                "" => format!(r#"{{"devices":[{bare}]}}"#),
                text => text.to_owned(),
            };
            Computers { ids, whole: UnfilteredJson::new(whole) }
        })
    }

    fn page<'a>(&'a self, _: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        if query.stream == Stream::Connections && query.device.is_none() && self.team().is_old {
            return Box::pin(std::future::ready(Err(not_found())));
        }
        self.answer(&Ask::Page(query), |team| team.page(query))
    }

    fn billing<'a>(&'a self, _: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        self.answer(&Ask::Billing, |team| BillingSnapshot { events: team.billing.iter().take(10).cloned().collect() })
    }

    fn users<'a>(&'a self, _: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        self.roster_answer(&Ask::Users, |roster| Some(roster.users.clone()))
    }

    fn sso_users<'a>(&'a self, _: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        self.roster_answer(&Ask::SsoUsers, |roster| Some(roster.sso_users.clone()))
    }

    fn user_info<'a>(&'a self, _: &'a TeamId, user: &'a str) -> Answer<'a, UnfilteredJson> {
        self.roster_answer(&Ask::UserInfo(user), |roster| roster.info.get(user).cloned())
    }
}

impl Team {
    /// Every range includes events without a usable time.
    fn page(&self, query: &PageQuery) -> Page {
        let list = if query.stream == Stream::Activity { &self.activity } else { &self.connections };
        let is_asked = |event: &&RawEvent| {
            let in_range = event.at().is_none_or(|at| (query.start..=query.stop).contains(&at.seconds()));
            in_range && query.device.as_ref().is_none_or(|device| event.device.as_ref() == Some(device))
        };
        let mut events: Vec<RawEvent> = list.iter().filter(is_asked).cloned().collect();
        events.sort_by_key(RawEvent::at);
        let from = usize::try_from(query.offset).unwrap().min(events.len());
        let to = from.saturating_add(self.page_max.min(query.limit as usize)).min(events.len());
        Page { events: events[from..to].to_vec(), has_more: Some(to < events.len()), ..Page::default() }
    }
}

pub fn connection(id: &str, device: &str, time: &str) -> RawEvent {
    let text = format!(r#"{{"id":"{id}","timestamp":0,"deviceID":"{device}","connectionClosedEvent":{{}}}}"#);
    let event = RawEvent::new(text.into(), false, Some(EventId::from(id)), ServedTime::At(at(time)));
    RawEvent { device: Some(DeviceId::from(device)), ..event }
}

pub fn activity(name: &str, payload: &str, time: &str) -> RawEvent {
    let text = format!(r#"{{"header":{{"at":"{time}"}},"{name}":{{"deviceID":"{payload}"}}}}"#);
    RawEvent::new(text.into(), false, None, ServedTime::At(at(time)))
}

pub fn untimed(name: &str) -> RawEvent {
    let text = format!(r#"{{"header":{{}},"{name}":{{}}}}"#);
    RawEvent::new(text.into(), false, None, ServedTime::unusable(RejectReason::TimeMissing, "none"))
}

pub fn entry(id: &str, time: &str) -> RawEvent {
    let text = format!(r#"{{"id":"{id}","event":{{"paymentSucceeded":{{}}}}}}"#);
    RawEvent::new(text.into(), false, Some(EventId::from(id)), ServedTime::At(at(time)))
}

/// The machine's clock.
struct Shared(Arc<World>);

impl Clock for Shared {
    fn now(&self) -> Instant {
        let team = self.0.team();
        team.now.plus(team.machine_ahead)
    }

    fn monotonic(&self) -> Duration {
        self.now().since(Instant::EARLIEST)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn random(&self) -> u64 {
        4
    }
}
