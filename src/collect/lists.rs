//! The lists that a stream of a team is served in, and one page of one of them.
//!
//! Normally one list. Where `history/devices` is not there, the deprecated history of each computer is a list of its own.

use crate::api::{ApiError, EventSource, Page, PageQuery, Served};
use crate::model::{DeviceId, Instant, Range, RawEvent, Stream, TeamId};

use super::limits::PageLimit;
use super::planted::{self, Bug};
use super::walk::{Anomalies, Walk};

/// What readings cost and met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadStats {
    pub requests: u64,
    /// Whole walks.
    pub walks: u32,
    /// Walks begun again because the list moved.
    pub restarts: u32,
    /// Events served, each as often as it came.
    pub events: u64,
    pub anomalies: Anomalies,
}

impl ReadStats {
    pub fn add(&mut self, other: ReadStats) {
        self.requests += other.requests;
        self.walks += other.walks;
        self.restarts += other.restarts;
        self.events += other.events;
        self.anomalies.add(other.anomalies);
    }
}

/// What is read: one stream of one team.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    pub source: &'a dyn EventSource,
    pub team: &'a TeamId,
    pub stream: Stream,
    /// `[None]`: the stream's one list. Computers: the deprecated history of each.
    pub devices: &'a [Option<DeviceId>],
    pub limit: &'a PageLimit,
}

/// A range of event time as it is asked for: padded, so that no reading of the bounds can hide an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub range: Range,
    /// Seconds added at both ends, at least 1. Re-scans use other paddings, so that a bound that the service reads
    /// in an unexpected way does not fall on the same events again.
    pub pad: i64,
}

impl Asked {
    pub fn start(&self) -> i64 {
        self.range.start.seconds() - self.padding()
    }

    pub fn stop(&self) -> i64 {
        self.range.end.seconds() + self.padding()
    }

    fn padding(&self) -> i64 {
        if planted::is(Bug::NoPad) { 0 } else { self.pad }
    }

    /// Whether an event lies outside every reading of the bounds: the service was not asked for it.
    pub fn is_stray(&self, at: Instant) -> bool {
        at < Instant::from_seconds(self.start() - 1) || at > Instant::from_seconds(self.stop() + 1)
    }

    /// Whether this reading keeps the event: owned, or owned by no reading of a neighbour.
    pub fn keeps(&self, event: &RawEvent) -> bool {
        event.at().is_none_or(|at| self.range.owns(at) || self.is_stray(at))
    }
}

impl Lists<'_> {
    /// Asks for the page of `list` at the walk's offset.
    pub async fn page(
        &self,
        list: &Option<DeviceId>,
        asked: Asked,
        offset: u64,
        stats: &mut ReadStats,
    ) -> Result<Served<Page>, PageError> {
        let limit = if list.is_some() { self.limit.device_events() } else { self.limit.events() };
        let query = PageQuery {
            stream: self.stream,
            start: asked.start(),
            stop: asked.stop(),
            offset,
            limit,
            device: list.clone(),
        };
        stats.requests += 1;
        match self.source.page(self.team, &query).await {
            Ok(served) => {
                stats.events += served.body.events.len() as u64;
                let strays = served.body.events.iter().filter_map(RawEvent::at).filter(|at| asked.is_stray(*at));
                stats.anomalies.outside += strays.count() as u64;
                Ok(served)
            }
            Err(ApiError::Rejected { status: 400, .. }) if self.limit.refuse(limit) => Err(PageError::LimitRefused),
            Err(error) => Err(PageError::Api(error)),
        }
    }
}

#[derive(Debug)]
pub enum PageError {
    /// The service refused the page size; a smaller one is set, and the walk begins again.
    LimitRefused,
    Api(ApiError),
}

/// Adds what a finished or broken walk noticed.
pub fn note(stats: &mut ReadStats, walk: &Walk) {
    stats.anomalies.add(walk.anomalies);
}
