//! The readers against scripted lists: a list changes exactly before the request that the test names.

mod dense;
mod lists;
pub mod page_source;
mod span;
mod tail;
mod walk_pages;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use parking_lot::{Mutex, MutexGuard};

use super::*;
use crate::api::{ApiError, Page, PageQuery, Served};
use crate::model::{DeviceId, EventId, Instant, Range, RawEvent, RejectReason, ServedTime, Stream, TeamId};
use page_source::Pages;

/// Seconds of these tests are counted from here, so the times are plausible.
const EPOCH_SECONDS: i64 = 1_700_000_000;
/// No reading of these lists sends more requests.
const REQUESTS_MAX: usize = 5_000;

type Change = Box<dyn FnMut(usize, &mut Vec<RawEvent>) + Send>;

/// The list, and the requests so far.
#[derive(Default)]
struct Script {
    lists: BTreeMap<Option<DeviceId>, Vec<RawEvent>>,
    asked: Vec<PageQuery>,
    /// The change of the list before each request. Requests are counted from 0.
    change: Option<Change>,
    /// The service refuses larger limits.
    limit_max: Option<u32>,
    /// Pages over this limit are too long instead.
    is_too_long: bool,
    /// From this request on the service does not answer.
    fails_from: Option<usize>,
    ignores_offsets: bool,
    ignores_bounds: bool,
    has_bodies: bool,
    /// The fixed value of `hasMoreEvents`.
    claim: Option<bool>,
}

#[derive(Clone, Default)]
struct Service(Arc<Mutex<Script>>);

impl Service {
    fn of(events: Vec<RawEvent>) -> Self {
        let service = Self::default();
        service.state().lists.insert(None, events);
        service
    }

    fn changing(self, change: impl FnMut(usize, &mut Vec<RawEvent>) + Send + 'static) -> Self {
        self.state().change = Some(Box::new(change));
        self
    }

    fn state(&self) -> MutexGuard<'_, Script> {
        self.0.lock()
    }
}

impl Pages for Service {
    fn serve(&self, query: &PageQuery) -> Result<Served<Page>, ApiError> {
        let mut state = self.state();
        let number = state.asked.len();
        assert!(number < REQUESTS_MAX, "an endless reading");
        state.asked.push(query.clone());
        if state.fails_from.is_some_and(|from| number >= from) {
            return Err(ApiError::NotFound { what: "history".to_owned(), status: 404 });
        }
        if state.limit_max.is_some_and(|most| query.limit > most) {
            if state.is_too_long {
                return Err(ApiError::TooLong { what: "history".to_owned(), bytes_max: 1 });
            }
            return Err(ApiError::Rejected { what: "history".to_owned(), status: 400, code: None });
        }
        let mut list = state.lists.remove(&query.device).unwrap_or_default();
        if let Some(change) = &mut state.change {
            change(number, &mut list);
        }
        let is_within = |event: &&RawEvent| {
            state.ignores_bounds || event.at().is_none_or(|at| (query.start..=query.stop).contains(&at.seconds()))
        };
        let offset = if state.ignores_offsets { 0 } else { usize::try_from(query.offset).unwrap() };
        let page = list.iter().filter(is_within).skip(offset).take(query.limit as usize);
        let events: Vec<RawEvent> = page.cloned().collect();
        let mut body: Vec<u8> = Vec::new();
        if state.has_bodies {
            body.push(b'[');
            events.iter().for_each(|event| body.extend_from_slice(&event.text));
        }
        state.lists.insert(query.device.clone(), list);
        let page = Page { events, body: body.into(), has_more: state.claim, ..Page::default() };
        Ok(Served { body: page, at: Some(clock(number)) })
    }
}

/// The service's clock at its answer to a request.
fn clock(request: usize) -> Instant {
    second(1_000_000 + i64::try_from(request).unwrap())
}

fn second(second: i64) -> Instant {
    Instant::from_seconds(EPOCH_SECONDS + second)
}

fn range(start: i64, end: i64) -> Range {
    Range::new(second(start), second(end))
}

/// An event with an id.
fn event(name: &str, at: i64) -> RawEvent {
    let text = Bytes::from(format!("{name}@{at}"));
    RawEvent::new(text, false, Some(EventId::new(name.to_owned())), ServedTime::At(second(at)))
}

/// An event without an id. Two events with the same name and time are twins.
fn event_without_id(name: &str, at: i64) -> RawEvent {
    RawEvent::new(Bytes::from(format!("{name}@{at}")), false, None, ServedTime::At(second(at)))
}

/// One event a second.
fn events(seconds: std::ops::Range<i64>) -> Vec<RawEvent> {
    seconds.map(|at| event(&format!("e{at}"), at)).collect()
}

/// The events by text, with their counts.
fn counts_by_text(held: &[CountedEvent]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for one in held {
        *counts.entry(String::from_utf8(one.event.text.to_vec()).unwrap()).or_default() += one.count;
    }
    counts
}

/// The events of the current list by text, with their counts.
fn counts_in_list(list: &[RawEvent]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for event in list {
        *counts.entry(String::from_utf8(event.text.to_vec()).unwrap()).or_default() += 1;
    }
    counts
}

/// The answer. These services answer at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("the service answers at once")
}

/// One list, or one list for each computer.
fn lists(service: &Service, devices: &[Option<DeviceId>], limit: &PageLimit) -> Lists {
    let (source, team) = (Arc::new(service.clone()), TeamId::from("t"));
    Lists { source, team, stream: Stream::Connections, devices: devices.into(), limit: limit.clone() }
}

fn computers(names: &[&str]) -> Vec<Option<DeviceId>> {
    names.iter().map(|name| Some(DeviceId::from(*name))).collect()
}
