//! The lists in which the service serves a stream of a team, and their pages.
//!
//! A stream is normally one list. Without `history/devices`, the deprecated history of each computer is a list of its own.

use std::sync::Arc;

use crate::api::{ApiError, EventSource, Page, PageComparison, PageQuery, Served};
use crate::model::{DeviceId, Instant, RawEvent, Stream, TeamId};

use super::limits::PageLimit;
use super::padded_range::PaddedRange;
use super::walk::{Anomalies, Walk};
use super::walk_pages::WalkPage;

/// The cost and the anomalies of readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadStats {
    pub requests: u64,
    /// Whole walks.
    pub walks: u32,
    /// Walks that began again because the list changed.
    pub restarts: u32,
    /// Served events, counted each time.
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

/// One stream of one team. A clone shares everything.
#[derive(Clone)]
pub struct Lists {
    pub source: Arc<dyn EventSource>,
    pub team: TeamId,
    pub stream: Stream,
    /// `[None]`: the stream's one list. Computers: the deprecated history of each.
    pub devices: Arc<[Option<DeviceId>]>,
    pub limit: PageLimit,
}

impl Lists {
    /// Reads the page of `list` at `offset`.
    pub async fn page(
        &self,
        list: &Option<DeviceId>,
        asked: PaddedRange,
        offset: u64,
        stats: &mut ReadStats,
    ) -> Result<Served<Page>, PageError> {
        let query = self.query(list, asked, offset);
        stats.requests += 1;
        let served = self.source.page(&self.team, &query).await.map_err(|error| self.refused(error, query.limit))?;
        count(stats, asked, served.body.events.iter().map(RawEvent::at));
        Ok(served)
    }

    /// Reads a page again that an earlier walk read.
    pub async fn page_again(
        &self,
        list: &Option<DeviceId>,
        asked: PaddedRange,
        offset: u64,
        former: &WalkPage,
        stats: &mut ReadStats,
    ) -> Result<Served<PageComparison>, PageError> {
        let query = self.query(list, asked, offset);
        stats.requests += 1;
        let answer = self.source.page_again(&self.team, &query, &former.body).await;
        let served = answer.map_err(|error| self.refused(error, query.limit))?;
        match &served.body {
            PageComparison::Same => count(stats, asked, former.events.iter().map(|(_, at)| *at)),
            PageComparison::Changed(page) => count(stats, asked, page.events.iter().map(RawEvent::at)),
        }
        Ok(served)
    }

    /// The page size to ask for.
    pub fn limit_of(&self, list: &Option<DeviceId>) -> u32 {
        if list.is_some() { self.limit.device_events() } else { self.limit.events() }
    }

    fn query(&self, list: &Option<DeviceId>, asked: PaddedRange, offset: u64) -> PageQuery {
        PageQuery {
            stream: self.stream,
            start: asked.start(),
            stop: asked.stop(),
            offset,
            limit: self.limit_of(list),
            device: list.clone(),
        }
    }

    fn refused(&self, error: ApiError, limit: u32) -> PageError {
        match error {
            ApiError::Rejected { status: 400, .. } | ApiError::TooLong { .. } if self.limit.refuse(limit) => {
                PageError::LimitRefused
            }
            error => PageError::Api(error),
        }
    }
}

fn count(stats: &mut ReadStats, asked: PaddedRange, times: impl Iterator<Item = Option<Instant>>) {
    for at in times {
        stats.events += 1;
        stats.anomalies.outside += u64::from(at.is_some_and(|at| asked.is_outside(at)));
    }
}

#[derive(Debug)]
pub enum PageError {
    /// The service refused the page size, or the page was too long. A smaller size is set, and the walk begins again.
    LimitRefused,
    Api(ApiError),
}

/// Adds the anomalies of a finished or interrupted walk.
pub fn note(stats: &mut ReadStats, walk: &Walk) {
    stats.anomalies.add(Anomalies { has_more: 0, ..walk.anomalies });
}
