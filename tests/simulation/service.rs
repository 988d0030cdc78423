//! The simulated service: the documented interface over the truth, with the behaviour and the faults of the plan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use annals::api::{Answer, ApiError, BillingSnapshot, Computers, EventSource, Page, PageQuery, Served, TeamView, wire};
use annals::clock::Clock;
use annals::model::{Instant, Stream, TeamId};
use bytes::Bytes;

use super::answers;
use super::behaviour::Dates;
use super::clock::SimClock;
use super::faults::{Coverage, Fault, Rare};
use super::plan::Plan;
use super::random::Draw;
use super::requests::Seen;
use super::trace::Trace;
use super::world::{NANO, Team};

/// A request's operation and team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    Teams,
    Team(usize),
    Devices(usize),
    Billing(usize),
    Page { team: usize, stream: Stream, start: i64, stop: i64, offset: u64, limit: u32, device: Option<String> },
}

impl Ask {
    pub fn team(&self) -> Option<usize> {
        match self {
            Ask::Teams => None,
            Ask::Team(team) | Ask::Devices(team) | Ask::Billing(team) | Ask::Page { team, .. } => Some(*team),
        }
    }

    pub fn stream(&self) -> Option<Stream> {
        match self {
            Ask::Billing(_) => Some(Stream::Billing),
            Ask::Page { stream, .. } => Some(*stream),
            Ask::Devices(_) => Some(Stream::Connections),
            Ask::Teams | Ask::Team(_) => None,
        }
    }
}

pub struct Inner {
    pub teams: Vec<Team>,
    pub coverage: Coverage,
    pub seen: Seen,
    pub chance: Draw,
    /// Old answers for the cache fault.
    cached: BTreeMap<Ask, (Instant, Bytes)>,
    pub flips: u64,
}

pub struct Service {
    pub plan: Arc<Plan>,
    pub clock: Arc<SimClock>,
    pub trace: Arc<Trace>,
    inner: Arc<Mutex<Inner>>,
    /// The number of the requesting process among the running ones.
    process: u32,
}

impl Service {
    pub fn new(plan: Arc<Plan>, clock: Arc<SimClock>, trace: Arc<Trace>) -> Self {
        let inner = Inner {
            teams: super::world::teams(&plan),
            coverage: Coverage::default(),
            seen: Seen::new(plan.seed, plan.teams),
            chance: Draw::of(plan.seed, "service"),
            cached: BTreeMap::new(),
            flips: 0,
        };
        Self { plan, clock, trace, inner: Arc::new(Mutex::new(inner)), process: 0 }
    }

    /// The same service for another process.
    pub fn of_another_process(&self) -> Self {
        let (plan, clock, trace) = (self.plan.clone(), self.clock.clone(), self.trace.clone());
        Self { plan, clock, trace, inner: self.inner.clone(), process: self.process + 1 }
    }

    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn number_of(&self, team: &TeamId) -> usize {
        team.as_str().rsplit('-').next().and_then(|n| n.parse().ok()).expect("a team of this world")
    }

    /// The faults that affect a request now.
    fn spells(&self, ask: &Ask, chance: &mut Draw) -> Vec<Fault> {
        let now = self.clock.truth().seconds();
        let is_of = |of: Option<usize>, stream: Option<Stream>| {
            of.is_none_or(|team| ask.team() == Some(team)) && stream.is_none_or(|stream| ask.stream() == Some(stream))
        };
        let here = self.plan.spells.iter().filter(|spell| spell.from <= now && now < spell.until);
        let is_view = matches!(ask, Ask::Team(_));
        let here = here.filter(|spell| is_of(spell.team, spell.stream));
        let here = here.filter(|spell| spell.fault != Fault::ViewFails || is_view);
        here.filter(|spell| spell.percent == 100 || chance.is(spell.percent)).map(|spell| spell.fault).collect()
    }

    async fn answer<T>(
        &self,
        ask: Ask,
        make: impl FnOnce(&mut Inner, &Ask, Instant) -> Result<Bytes, ApiError>,
        read: impl FnOnce(&Bytes) -> Result<T, wire::WireError>,
    ) -> Result<Served<T>, ApiError> {
        let (number, latency) = {
            let mut inner = self.inner();
            let Inner { seen, coverage, .. } = &mut *inner;
            let number = seen.begin(self.process, &ask, self.clock.truth(), coverage);
            let spells = self.spells(&ask, &mut inner.chance);
            let jitter = if spells.contains(&Fault::OutOfOrder) { 8_000 } else { 60 };
            (number, inner.chance.between(40, 40 + jitter))
        };
        self.clock.sleep(Duration::from_millis(latency.unsigned_abs())).await;
        let now = self.clock.truth();
        let mut inner = self.inner();
        if inner.seen.end(&ask, number) {
            inner.coverage.fault(Fault::OutOfOrder, self.plan.seed);
        }
        let answer = self.decide(&mut inner, &ask, now, make);
        let error = answer.as_ref().err().map(|error| format!("{error:?}"));
        self.trace.note(now, || format!("{ask:?} -> {}", error.unwrap_or_else(|| "ok".to_owned())));
        let what = format!("{:?}", ask.stream());
        let read = answer.and_then(|(at, body)| {
            let read = read(&body).map_err(|error| ApiError::Unexpected { what, detail: error.to_string() });
            read.map(|read| (at, body, read))
        });
        match read {
            Ok((at, body, read)) => {
                inner.seen.answered(&ask, now);
                if self.plan.has(Fault::StaleCache) {
                    inner.cached.insert(ask, (at.unwrap_or(now), body));
                }
                Ok(Served { body: read, at })
            }
            Err(error) => {
                inner.seen.failed(self.process, &ask, &error, now);
                Err(error)
            }
        }
    }

    /// The answer's date and body, or the error.
    fn decide(
        &self,
        inner: &mut Inner,
        ask: &Ask,
        now: Instant,
        make: impl FnOnce(&mut Inner, &Ask, Instant) -> Result<Bytes, ApiError>,
    ) -> Result<(Option<Instant>, Bytes), ApiError> {
        let seed = self.plan.seed;
        let date = self.date(inner, now);
        let spells = self.spells(ask, &mut inner.chance);
        for fault in spells {
            let is_list = matches!(ask, Ask::Page { .. } | Ask::Billing(_));
            if matches!(fault, Fault::EmptyAnswer | Fault::NotFound | Fault::Garbage) && !is_list {
                continue;
            }
            if fault == Fault::OutOfOrder {
                continue;
            }
            if fault == Fault::StaleCache {
                let Some((made, body)) = inner.cached.get(ask).cloned() else { continue };
                inner.coverage.fault(fault, seed);
                // The client refuses an answer with an `Age` header; it cannot recognise other old answers.
                if now.since(made) > Duration::from_secs(300) {
                    let detail = "stale: a cache on the way says that it is old".to_owned();
                    return Err(ApiError::Unexpected { what: "a request".into(), detail });
                }
                return Ok((Some(made.floor_second()), body));
            }
            inner.coverage.fault(fault, seed);
            if fault == Fault::AnswerLost {
                let _ = make(inner, ask, now)?;
                return Err(answers::failure(fault, &mut inner.chance));
            }
            if fault == Fault::EmptyAnswer {
                inner.seen.misled(ask);
                return Ok((date, answers::empty(ask)));
            }
            if fault == Fault::Garbage {
                return Ok((date, answers::garbage(&mut inner.chance)));
            }
            assert!(fault != Fault::Panic, "a planted panic");
            return Err(answers::failure(fault, &mut inner.chance));
        }
        let body = make(inner, ask, now)?;
        answers::mark(inner, &self.plan, ask, now, &body);
        Ok((date, body))
    }

    fn date(&self, inner: &mut Inner, now: Instant) -> Option<Instant> {
        let dates = self.plan.behaviour_at(now.seconds()).dates;
        if dates != Dates::Clock {
            inner.coverage.fault(Fault::Skew, self.plan.seed);
        }
        match dates {
            Dates::Absent | Dates::Garbage => None,
            Dates::Clock => Some(now.floor_second()),
            Dates::Off(seconds) => Some(Instant::from_nanos(now.nanos() + seconds * NANO).floor_second()),
        }
    }

    pub fn rare(&self, state: Rare) {
        self.inner().coverage.rare(state, self.plan.seed);
    }

    async fn page_of(&self, team: &TeamId, query: &PageQuery) -> Result<Served<Page>, ApiError> {
        let ask = Ask::Page {
            team: self.number_of(team),
            stream: query.stream,
            start: query.start,
            stop: query.stop,
            offset: query.offset,
            limit: query.limit,
            device: query.device.as_ref().map(|device| device.as_str().to_owned()),
        };
        let make = |inner: &mut Inner, ask: &Ask, now| answers::page(inner, &self.plan, ask, now);
        self.answer(ask, make, |body| wire::page(query.stream, query.device.as_ref(), body)).await
    }
}

impl EventSource for Service {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        let make = |inner: &mut Inner, _: &Ask, _| Ok(answers::teams(&inner.teams));
        Box::pin(self.answer(Ask::Teams, make, |body| wire::teams(body)))
    }

    fn team<'a>(&'a self, team: &'a TeamId) -> Answer<'a, TeamView> {
        let make = |_: &mut Inner, _: &Ask, _| Ok(answers::team(self.plan.plan_span));
        Box::pin(self.answer(Ask::Team(self.number_of(team)), make, |body| wire::team(body)))
    }

    fn devices<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Computers> {
        let number = self.number_of(team);
        let make = move |inner: &mut Inner, _: &Ask, now| Ok(answers::devices(&inner.teams[number], now));
        Box::pin(self.answer(Ask::Devices(number), make, |body| wire::devices(body)))
    }

    fn page<'a>(&'a self, team: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        Box::pin(self.page_of(team, query))
    }

    fn billing<'a>(&'a self, team: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        let number = self.number_of(team);
        let make = move |inner: &mut Inner, _: &Ask, now| Ok(answers::billing(&inner.teams[number], now));
        Box::pin(self.answer(Ask::Billing(number), make, wire::billing))
    }
}
