//! Makes the bodies of answers.

use std::time::Duration;

use annals::api::ApiError;
use annals::model::{Instant, Stream};
use bytes::Bytes;

use super::behaviour::{Behaviour, Bound, Dates, More, Next, Order};
use super::chance::Chance;
use super::faults::{Fault, Rare};
use super::plan::Plan;
use super::random::Draw;
use super::service::{Ask, Inner};
use super::world::{Event, NANO, Team};

pub fn failure(fault: Fault, chance: &mut Draw) -> ApiError {
    let what = "a request".to_owned();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    match fault {
        Fault::Throttled => {
            // Read the wait like the client: limit an absurd one, and count a date from the answer's own date.
            let retry_after = chance.pick(&[None, seconds(0), seconds(7), seconds(120), seconds(900)]);
            ApiError::Throttled { what, retry_after }
        }
        Fault::Refused | Fault::TokenRotated => ApiError::Refused { what, status: chance.pick(&[401, 403]) },
        Fault::NotFound => ApiError::NotFound { what, status: chance.pick(&[404, 410]) },
        Fault::Redirect => {
            let detail = "a redirect to another address, which Annals does not follow".to_owned();
            ApiError::Unexpected { what, detail }
        }
        _ => {
            let retry_after = chance.pick(&[None, None, seconds(30)]);
            ApiError::Unavailable { what, detail: "the service failed (status 503)".into(), retry_after }
        }
    }
}

pub fn garbage(chance: &mut Draw) -> Bytes {
    let bodies = [
        "<!doctype html><html>Sign in</html>",
        "",
        "null",
        "{}",
        r#"{"events":[{"id":"x","#,
        r#"{"deviceEvents":null,"events":null}"#,
        "[]",
    ];
    Bytes::from_static(chance.pick(&bodies).as_bytes())
}

pub fn empty(ask: &Ask) -> Bytes {
    match ask {
        Ask::Page { stream: Stream::Connections, device: None, .. } => {
            Bytes::from_static(br#"{"deviceEvents":[],"hasMoreEvents":false,"nextOffset":0}"#)
        }
        _ => Bytes::from_static(br#"{"events":[],"hasMoreEvents":false,"nextOffset":0}"#),
    }
}

pub fn teams(teams: &[Team]) -> Bytes {
    let ids: Vec<String> = teams.iter().map(|team| format!("\"{}\"", team.id)).collect();
    format!("[{}]", ids.join(",")).into()
}

pub fn team(plan_span: Option<i64>) -> Bytes {
    match plan_span {
        Some(span) => format!(r#"{{"planFeatures":{{"deviceEventsMaxRetrievalDuration":{span}}}}}"#).into(),
        None => Bytes::from_static(b"{}"),
    }
}

pub fn devices(team: &Team, now: Instant) -> Bytes {
    let here = team.devices.iter().filter(|device| (device.added..device.removed).contains(&now.nanos()));
    let ids: Vec<String> = here.map(|device| format!(r#"{{"id":"{}"}}"#, device.id)).collect();
    format!(r#"{{"devices":[{}]}}"#, ids.join(",")).into()
}

/// Whether the service lists it now.
pub fn is_listed(event: &Event, plan_span: Option<i64>, now: i64, flips: u64) -> bool {
    let is_retained = event.stream != Stream::Connections || plan_span.is_none_or(|span| event.at >= now - span * NANO);
    let is_its_turn = event.flaps.is_none_or(|(from, until, is_second)| {
        let is_second_now = (from..until).contains(&now) && flips % 2 == 1;
        is_second == is_second_now
    });
    is_retained && is_its_turn && (event.from..event.until).contains(&now)
}

/// How many billing entries an answer shows.
const BILLING_MAX: usize = 10;

pub fn billing(team: &Team, now: Instant) -> Bytes {
    let listed = |event: &&Event| is_listed(event, None, now.nanos(), 0);
    let shown = team.lists[Stream::Billing as usize].iter().rev().filter(listed).take(BILLING_MAX);
    let texts: Vec<&str> = shown.map(|event| event.text.as_str()).collect();
    format!(r#"{{"events":[{}]}}"#, texts.join(", ")).into()
}

/// A client requests the next page: the changes that wait for this happen now.
fn turn(inner: &mut Inner, team: usize, stream: Stream, (start, stop): (i64, i64), now: i64) {
    let list = &mut inner.teams[team].lists[stream as usize];
    let inside = |event: &Event| (start * NANO..stop * NANO).contains(&event.at);
    let waiting = |event: &Event| event.is_waiting && event.at < now && now < event.from;
    if let Some(event) = list.iter_mut().find(|event| waiting(event) && inside(event)) {
        (event.from, event.is_waiting) = (now, false);
        return;
    }
    let doomed = |event: &Event| event.is_doomed && event.from < now && now < event.until;
    if let Some(event) = list.iter_mut().find(|event| doomed(event) && inside(event)) {
        (event.until, event.is_doomed) = (now, false);
        inner.coverage.fault(Fault::DeletedBetween, inner.seen.seed);
    }
}

pub fn page(inner: &mut Inner, plan: &Plan, ask: &Ask, now: Instant) -> Result<Bytes, ApiError> {
    let Ask::Page { team, stream, start, stop, offset, limit, device } = ask else { unreachable!("a page") };
    let behaviour = plan.behaviour_at(now.seconds());
    if plan.is_old && *stream == Stream::Connections && device.is_none() {
        return Err(ApiError::NotFound { what: "a page".into(), status: 404 });
    }
    if *limit as usize > behaviour.limit_max {
        inner.coverage.fault(Fault::LimitRefused, plan.seed);
        return Err(ApiError::Rejected { what: "a page".into(), status: 400, code: None });
    }
    if *limit < 1001 && device.is_none() {
        inner.coverage.rare(Rare::StepDown, plan.seed);
    }
    if *offset > 0 {
        turn(inner, *team, *stream, (*start, *stop), now.nanos());
    }
    inner.flips += 1;
    let flips = inner.flips;
    let chosen = inner.teams[*team].device(device.as_deref().unwrap_or_default());
    let Inner { teams, seen, coverage, .. } = &mut *inner;
    let list = &teams[*team].lists[*stream as usize];
    let mut rows = listed(list, plan, behaviour, (*start, *stop), (now.nanos(), flips));
    rows.retain(|event| device.is_none() || event.device == chosen);
    match behaviour.order {
        Order::Time => {}
        Order::NewestFirst => rows.reverse(),
        Order::Scattered => rows.sort_by_key(|event| Chance::scatter(u64::from(event.number))),
    }
    let from = usize::try_from(*offset).unwrap_or(usize::MAX).min(rows.len());
    let to = (from + behaviour.cap.unwrap_or(usize::MAX).min(*limit as usize)).min(rows.len());
    let is_cut = to < rows.len();
    let is_inside = |event: &Event| (*start * NANO..*stop * NANO).contains(&event.at) && event.served.is_some();
    if rows.is_empty() && list.iter().any(is_inside) {
        seen.misled(ask);
    }
    if device.is_none() {
        let numbers = rows.iter().map(|event| event.number);
        seen.shown((*team, *stream), (*start, *stop), from, numbers, coverage);
    }
    let texts: Vec<&str> = rows[from..to].iter().map(|event| event.text.as_str()).collect();
    let name = if *stream == Stream::Connections && device.is_none() { "deviceEvents" } else { "events" };
    let body = format!(r#"{{"{name}": [{}]{}}}"#, texts.join(",\n"), claims(behaviour, is_cut, (*offset, to)));
    count_behaviour(inner, plan, behaviour, is_cut);
    Ok(body.into())
}

fn listed<'e>(
    list: &'e [Event],
    plan: &Plan,
    behaviour: &Behaviour,
    (start, stop): (i64, i64),
    (now, flips): (i64, u64),
) -> Vec<&'e Event> {
    let begin = list.partition_point(|event| event.at < (start - 2) * NANO);
    let near = list[begin..].iter().take_while(|event| event.at <= (stop + 2) * NANO);
    let asked = near.filter(|event| {
        let at = i128::from(event.at);
        behaviour.start.starts(at, start) && behaviour.stop.stops(at, stop)
    });
    let here = asked.filter(|event| is_listed(event, plan.plan_span, now, flips));
    here.flat_map(|event| std::iter::repeat_n(event, event.shown)).collect()
}

/// `hasMoreEvents` and `nextOffset`, or the false values of a fault.
fn claims(behaviour: &Behaviour, is_cut: bool, (offset, to): (u64, usize)) -> String {
    let more = match behaviour.more {
        More::True => format!(r#","hasMoreEvents":{is_cut}"#),
        More::Always(claim) => format!(r#","hasMoreEvents":{claim}"#),
        More::Absent => String::new(),
        More::Null => r#","hasMoreEvents":null"#.to_owned(),
    };
    let next = match behaviour.next {
        Next::True => format!(r#","nextOffset":{to}"#),
        Next::Stuck => format!(r#","nextOffset":{offset}"#),
        Next::Backwards => format!(r#","nextOffset":{}"#, offset / 2),
        Next::Null => r#","nextOffset":null"#.to_owned(),
        Next::Zero => r#","nextOffset":0"#.to_owned(),
        Next::Absent => String::new(),
        Next::Absurd => r#","nextOffset":"1e300""#.to_owned(),
    };
    more + &next
}

fn count_behaviour(inner: &mut Inner, plan: &Plan, behaviour: &Behaviour, is_cut: bool) {
    let met = [
        (Fault::HasMoreFalse, is_cut && matches!(behaviour.more, More::Always(false) | More::Absent | More::Null)),
        (Fault::HasMoreTrue, !is_cut && behaviour.more == More::Always(true)),
        (Fault::NextOffset, behaviour.next != Next::True),
        (Fault::SilentCap, is_cut && behaviour.cap.is_some()),
        (Fault::Unsorted, behaviour.order != Order::Time),
        (Fault::Bounds, plan.has(Fault::Bounds) && (behaviour.start, behaviour.stop) != (Bound::EXACT, Bound::EXACT)),
        (Fault::StartExclusive, plan.has(Fault::StartExclusive) && !behaviour.start.inclusive),
        (Fault::Skew, behaviour.dates != Dates::Clock),
    ];
    for (fault, _) in met.iter().filter(|(_, is_met)| *is_met) {
        inner.coverage.fault(*fault, plan.seed);
    }
}

/// Records which events an answer held, if the request was about their time.
pub fn mark(inner: &mut Inner, plan: &Plan, ask: &Ask, now: Instant, body: &Bytes) {
    let (team, stream, places) = match ask {
        Ask::Page { team, stream, start, stop, .. } => (*team, *stream, (*start + 1) * NANO..(*stop - 1) * NANO),
        Ask::Billing(team) => (*team, Stream::Billing, i64::MIN..i64::MAX),
        Ask::Teams | Ask::Team(_) | Ask::Devices(_) => return,
    };
    let text = std::str::from_utf8(body).expect("the service writes UTF-8");
    let flips = inner.flips;
    let Inner { teams, coverage, .. } = inner;
    let list = &mut teams[team].lists[stream as usize];
    // Equal billing entries beyond the shown ones do not count as served.
    let listed = |event: &&Event| is_listed(event, None, now.nanos(), 0);
    let oldest = match ask {
        Ask::Billing(_) => list.iter().rev().filter(listed).take(BILLING_MAX).last().map(|event| event.number),
        _ => None,
    };
    let begin = oldest.and_then(|oldest| list.iter().position(|event| event.number == oldest));
    let begin = begin.unwrap_or_else(|| list.partition_point(|event| event.at < places.start));
    for event in list[begin..].iter_mut().take_while(|event| event.at < places.end) {
        let is_new = event.served.is_none() && is_listed(event, plan.plan_span, now.nanos(), flips);
        if is_new && text.contains(&event.text) {
            event.served = Some(now.nanos());
            if let Some(fault) = event.fault {
                coverage.fault(fault, plan.seed);
            }
        }
    }
}
