//! `history`, `history/devices`, the deprecated per-computer history, and `billing/events`.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;

use crate::model::{DeviceId, Instant};

use super::activity::push_activity;
use super::answer::{Refusal, json_text};
use super::choices::{Choices, HasMore, NextOffset, Order};
use super::connections::{ConnectionForm, push_connection};
use super::effects::without_device;
use super::json::push_int;
use super::records::{Cut, Item, Listing, Record};
use super::stream_store::StreamStore;
use super::team::Team;
use super::world::World;

const BILLING_ENTRIES: usize = 10;
/// Buffer size for a usual page, so that the buffer rarely grows.
const EVENT_BYTES: usize = 420;

type Answer = Result<Response, Refusal>;

/// The query of a history request as the client sent it.
#[derive(Debug, Default, PartialEq, Eq)]
struct HistoryQuery {
    desc: Option<bool>,
    limit: Option<u64>,
    offset: u64,
    start: Option<i64>,
    stop: Option<i64>,
    ids: Vec<String>,
}

impl HistoryQuery {
    /// Ignores unknown parameters.
    fn parse(text: Option<String>) -> Result<Self, Refusal> {
        let mut query = Self::default();
        for (name, value) in url::form_urlencoded::parse(text.unwrap_or_default().as_bytes()) {
            match name.as_ref() {
                "desc" => query.desc = Some(flag(&name, &value)?),
                "limit" => query.limit = Some(number(&name, &value)?),
                "offset" => query.offset = number(&name, &value)?,
                "startTime" => query.start = Some(number(&name, &value)?),
                "stopTime" => query.stop = Some(number(&name, &value)?),
                "ids" => query.ids.push(value.into_owned()),
                _ => {}
            }
        }
        Ok(query)
    }

    fn listing(&self, choices: &Choices, earliest: Option<Instant>, computers: Option<Computers>) -> Listing {
        let from = self.start.map_or(i64::MIN, |start| choices.bounds.first_nano(start));
        let from = from.max(earliest.map_or(i64::MIN, Instant::nanos));
        let end = self.stop.map_or(i64::MAX, |stop| choices.bounds.end_nano(stop));
        Listing { from: Instant::from_nanos(from), end: Instant::from_nanos(end.max(from)), computers }
    }

    fn cut(&self, choices: &Choices, limit_max: usize, default_desc: bool) -> Result<Cut, Refusal> {
        let limit = match self.limit {
            None => choices.default_limit.min(limit_max),
            Some(0) => return Err(Refusal::invalid("limit must be at least 1")),
            Some(limit) => match usize::try_from(limit) {
                Ok(limit) if limit <= limit_max => limit,
                _ => return Err(Refusal::limit_too_large(limit, limit_max)),
            },
        };
        Ok(Cut {
            offset: self.offset,
            limit: choices.page_cap.map_or(limit, |cap| limit.min(cap)),
            newest_first: self.desc.unwrap_or(default_desc),
            neighbours_swapped: choices.order == Order::NeighboursSwapped,
        })
    }
}

type Computers = Vec<(Option<u32>, DeviceId)>;

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|_| Refusal::invalid(format!("{name} {value:?} is not what {name} takes")))
}

/// Accepts upper and lower case, and 1 and 0: clients write the boolean of their own language.
fn flag(name: &str, value: &str) -> Result<bool, Refusal> {
    match value.to_ascii_lowercase().as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        plain => number(name, plain),
    }
}

fn find_team<'a>(world: &'a World, id: &str) -> Result<&'a Arc<Team>, Refusal> {
    world.team(id).ok_or_else(|| Refusal::not_found("team"))
}

pub(super) async fn activity(
    State(world): State<Arc<World>>,
    Path(team): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let team = find_team(&world, &team)?;
    let (query, choices) = (HistoryQuery::parse(query)?, world.choices());
    let cut = query.cut(&choices, choices.limit_max, choices.default_desc)?;
    let listing = query.listing(&choices, None, None);
    let mut out = start_list("events", cut.limit);
    let served =
        push_page(&team.activity, world.clock.now(), &listing, cut, ConnectionForm::Team, &mut out, |record, out| {
            push_activity(&team.roster, record, out);
        });
    push_paging(&choices, cut, served, &mut out);
    Ok(json_text(out))
}

pub(super) async fn connections(
    State(world): State<Arc<World>>,
    Path(team): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let team = find_team(&world, &team)?;
    let (query, choices) = (HistoryQuery::parse(query)?, world.choices());
    let cut = query.cut(&choices, choices.limit_max, choices.default_desc)?;
    let named = |id: &String| (team.roster.computer_place(&DeviceId::from(id.as_str())), DeviceId::from(id.as_str()));
    let computers = (!query.ids.is_empty()).then(|| query.ids.iter().map(named).collect());
    let now = world.clock.now();
    let listing = query.listing(&choices, earliest(&world, &choices, now), computers);
    let mut out = start_list("deviceEvents", cut.limit);
    let served = push_page(&team.connections, now, &listing, cut, ConnectionForm::Team, &mut out, |record, out| {
        push_connection(&team.roster, record, ConnectionForm::Team, out);
    });
    push_paging(&choices, cut, served, &mut out);
    Ok(json_text(out))
}

/// The deprecated history: its own limit, no paging fields, and no `deviceID` in the events.
pub(super) async fn computer_connections(
    State(world): State<Arc<World>>,
    Path((team, computer)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Answer {
    let team = find_team(&world, &team)?;
    let id = DeviceId::from(computer.as_str());
    team.state(world.roster_at()).device(&computer)?;
    let place = team.roster.computer_place(&id);
    let (query, choices) = (HistoryQuery::parse(query)?, world.choices());
    let cut = query.cut(&choices, choices.device_limit_max, false)?;
    let now = world.clock.now();
    let listing = query.listing(&choices, earliest(&world, &choices, now), Some(vec![(place, id)]));
    let mut out = start_list("events", cut.limit);
    push_page(&team.connections, now, &listing, cut, ConnectionForm::Computer, &mut out, |record, out| {
        push_connection(&team.roster, record, ConnectionForm::Computer, out);
    });
    out.extend_from_slice(b"]}");
    Ok(json_text(out))
}

/// The ten newest entries, newest first.
pub(super) async fn billing(State(world): State<Arc<World>>, Path(team): Path<String>) -> Answer {
    let team = find_team(&world, &team)?;
    let now = world.clock.now();
    let mut out = start_list("events", BILLING_ENTRIES);
    let entries = team.billing();
    let newest = entries.iter().rev().filter(|entry| entry.is_visible(now)).take(BILLING_ENTRIES);
    for (number, entry) in newest.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&entry.raw);
    }
    out.extend_from_slice(b"]}");
    Ok(json_text(out))
}

/// The answer omits connection events before this moment.
fn earliest(world: &World, choices: &Choices, now: Instant) -> Option<Instant> {
    choices.enforce_plan_span.then(|| now.minus(world.config.plan_span()))
}

fn start_list(name: &str, limit: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + limit * EVENT_BYTES);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":[");
    out
}

/// The outcome of a page.
#[derive(Clone, Copy)]
struct Served {
    events: usize,
    total: u64,
}

fn push_page<R: Record>(
    store: &StreamStore<R>,
    now: Instant,
    listing: &Listing,
    cut: Cut,
    form: ConnectionForm,
    out: &mut Vec<u8>,
    render: impl Fn(R, &mut Vec<u8>),
) -> Served {
    let (items, total) = store.page(now, listing, cut);
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        match item {
            Item::Record(record) => render(*record, out),
            Item::Text(raw) => match (form == ConnectionForm::Computer).then(|| without_device(raw)).flatten() {
                Some(bare) => out.extend_from_slice(&bare),
                None => out.extend_from_slice(raw),
            },
        }
    }
    Served { events: items.len(), total }
}

/// Closes the list and adds the service's claims about the remaining events.
fn push_paging(choices: &Choices, cut: Cut, served: Served, out: &mut Vec<u8>) {
    let next = cut.offset.saturating_add(served.events as u64);
    let more = match choices.has_more {
        HasMore::Honest => Some(next < served.total),
        HasMore::AlwaysTrue => Some(true),
        HasMore::AlwaysFalse => Some(false),
        HasMore::Missing => None,
    };
    let claimed = match choices.next_offset {
        NextOffset::Honest => (more == Some(true)).then_some(next),
        NextOffset::Missing => None,
        NextOffset::Zero => Some(0),
        NextOffset::Stuck => Some(cut.offset),
        NextOffset::Backwards => Some(cut.offset / 2),
    };
    out.push(b']');
    if let Some(more) = more {
        out.extend_from_slice(b",\"hasMoreEvents\":");
        out.extend_from_slice(if more { "true" } else { "false" }.as_bytes());
    }
    if let Some(offset) = claimed {
        out.extend_from_slice(b",\"nextOffset\":");
        push_int(out, i64::try_from(offset).unwrap_or(i64::MAX));
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_in_full_or_refused() {
        let read = |query: &str| HistoryQuery::parse(Some(query.to_owned()));
        let query = read("desc=false&limit=1001&offset=5&startTime=-1&stopTime=9&ids=a&ids=b%20c&else=1").unwrap();
        let whole = HistoryQuery {
            desc: Some(false),
            limit: Some(1001),
            offset: 5,
            start: Some(-1),
            stop: Some(9),
            ids: vec!["a".to_owned(), "b c".to_owned()],
        };
        assert_eq!(query, whole);
        for wrong in ["limit=x", "limit=-1", "offset=-1", "startTime=1.5", "desc=2", "desc=yes", "desc=", "stopTime="] {
            assert_eq!(read(wrong).unwrap_err().code, "invalid-parameter", "{wrong}");
        }
        for (sent, desc) in [("true", true), ("True", true), ("1", true), ("FALSE", false), ("0", false)] {
            assert_eq!(read(&format!("desc={sent}")).unwrap().desc, Some(desc), "{sent}");
        }
        assert_eq!(HistoryQuery::parse(None).unwrap(), HistoryQuery::default());
    }

    #[test]
    fn a_limit_over_the_maximum_is_refused_and_a_cap_is_silent() {
        let query = |limit| HistoryQuery { limit: Some(limit), ..HistoryQuery::default() };
        let choices = Choices { page_cap: Some(7), ..Choices::default() };
        assert_eq!(query(1001).cut(&choices, 1001, true).unwrap().limit, 7);
        assert_eq!(query(1002).cut(&choices, 1001, true).unwrap_err().code, "limit-too-large");
        assert_eq!(query(0).cut(&choices, 1001, true).unwrap_err().code, "invalid-parameter");
        assert_eq!(HistoryQuery::default().cut(&Choices::default(), 1001, true).unwrap().limit, 100);
    }
}
