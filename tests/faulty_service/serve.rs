//! Makes the documented answers from the world.

use super::behaviour::{More, Next, Order, SECOND};
use super::chance::Chance;
use super::http::{Answer, Request};
use super::world::{Event, Kind, Team, World};

/// The page size of a request without a limit.
const LIMIT_DEFAULT: i64 = 100;
const DEVICE_LIMIT_MAX: i64 = 100;
const BILLING_SHOWN: usize = 10;

/// Every planted secret begins with this text. Only the service may hold it.
pub const SECRET: &str = "pLaNtEd-SeCrEt";

/// The answer, and the numbers of its events.
pub fn answer(world: &World, request: &Request) -> (Answer, Vec<u64>) {
    if !authorized(world, request) {
        return (error(401, "unauthorized"), Vec::new());
    }
    if request.method != "GET" {
        return (error(405, "read-only"), Vec::new());
    }
    let path: Vec<String> = request.path.trim_start_matches('/').split('/').map(decoded).collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["v1", "user", "teams"] => {
            let ids: Vec<&str> = world.teams.iter().map(|team| team.id.as_str()).collect();
            (Answer::of(200, serde_json::to_string(&ids).unwrap()), Vec::new())
        }
        ["v1", "team", id, rest @ ..] => match world.teams.iter().find(|team| team.id == *id) {
            Some(team) => of_team(world, team, rest, request),
            None => (error(404, "team-not-found"), Vec::new()),
        },
        _ => (error(404, "not-found"), Vec::new()),
    }
}

/// A path segment, percent-decoded.
fn decoded(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        let digits: Option<String> = (byte == b'%').then(|| rest.by_ref().take(2).map(char::from).collect());
        bytes.push(digits.map_or(byte, |digits| u8::from_str_radix(&digits, 16).unwrap_or(b'?')));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn authorized(world: &World, request: &Request) -> bool {
    let token = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
    token.is_some_and(|token| world.tokens.iter().any(|known| known == token))
}

pub fn error(status: u16, code: &str) -> Answer {
    Answer::of(status, format!("{{\"code\":\"{code}\",\"detail\":\"{SECRET}-in-an-error\"}}"))
}

fn of_team(world: &World, team: &Team, rest: &[&str], request: &Request) -> (Answer, Vec<u64>) {
    match rest {
        [] => (Answer::of(200, team_view(team)), Vec::new()),
        ["devices"] => (Answer::of(200, devices(team)), Vec::new()),
        ["users"] => (Answer::of(200, users(team)), Vec::new()),
        ["saml", "users"] => (Answer::of(200, sso_users(team)), Vec::new()),
        ["user", _, "info"] => (Answer::of(200, user_info()), Vec::new()),
        ["billing", "events"] => billing(team),
        ["history"] => page(world, team, Kind::Activity, None, request),
        ["history", "devices"] if world.behaviour.team_connections => {
            page(world, team, Kind::Connections, None, request)
        }
        ["device", id, "history"] if team.computers.iter().any(|known| known == id) => {
            page(world, team, Kind::Connections, Some(id), request)
        }
        _ => (error(404, "not-found"), Vec::new()),
    }
}

fn team_view(team: &Team) -> String {
    let (id, computer) = (&team.id, &team.computers[0]);
    let name = serde_json::Value::from(team.name.as_str());
    let Some(span) = team.plan_span else { return format!("{{\"id\":\"{id}\",\"name\":{name}}}") };
    format!(
        "{{\"id\":\"{id}\",\"name\":{name},\"planFeatures\":{{\"deviceEventsMaxRetrievalDuration\":{span},\
         \"licenseKey\":\"{SECRET}-license\"}},\"inviteCodes\":{{\"{SECRET}-as-a-key\":1}},\"{SECRET}-field\":true,\
         \"saml\":{{\"certificate\":\"{SECRET}-saml\"}},\"security\":{{\"pin\":\"{SECRET}-pin\"}},\
         \"billing\":{{\"card\":\"{SECRET}-card\"}},\"deviceConfigs\":[{{\"key\":\"{SECRET}-config\"}}],\
         \"users\":{{\"{id}-u1\":{{\"resetLink\":\"https://x.example/{SECRET}-reset\"}}}},\
         \"devices\":{{\"{computer}\":{{\"connect\":\"app://{SECRET}-launch\"}}}},\
         \"groups\":{{\"g1\":{{\"name\":\"Lab\",\"users\":[\"{id}-u1\"],\"devices\":[\"{computer}\"],\
         \"joinCode\":\"{SECRET}-join\"}}}},\
         \"userInvites\":[{{\"secret\":\"{SECRET}-user-invite\",\"name\":\"all\",\"sentTo\":\"\"}}],\
         \"deviceInvites\":[{{\"id\":\"i1\",\"secret\":\"{SECRET}-installer\",\"connectDownloads\":\
         {{\"winexe\":\"https://downloads.example.com/{SECRET}-exe\",\"winmsi\":\"https://downloads.example.com/{SECRET}-msi\",\
         \"macpkg\":\"https://downloads.example.com/{SECRET}-pkg\"}}}}]}}"
    )
}

fn devices(team: &Team) -> String {
    let all = team.computers.iter().map(|id| {
        format!(
            "{{\"id\":\"{id}\",\"name\":\"Computer {id}\",\"clientInfo\":{{\"key\":\"{SECRET}-client\"}},\
                 \"urls\":{{\"connect\":\"app://{SECRET}-connect\"}},\"{SECRET}-field\":[\"{SECRET}\"]}}"
        )
    });
    let all: Vec<String> = all.collect();
    format!("{{\"devices\":[{}]}}", all.join(","))
}

fn users(team: &Team) -> String {
    format!(
        "{{\"users\":[{{\"id\":\"{}-u1\",\"email\":\"u1@example.com\",\"role\":\"admin\",\
         \"avatarURL\":\"https://x.example/{SECRET}-avatar\",\"scimUserInfo\":{{\"token\":\"{SECRET}-scim\"}},\
         \"recovery\":[\"{SECRET}-recovery\"],\"role2\":\"{SECRET}\"}}]}}",
        team.id
    )
}

fn sso_users(team: &Team) -> String {
    format!(
        "[{{\"id\":\"{}-u1\",\"email\":\"u1@example.com\",\"assertion\":\"{SECRET}-saml\",\
         \"scimUserInfo\":{{\"x\":\"{SECRET}-scim\"}}}}]",
        team.id
    )
}

fn user_info() -> String {
    format!(
        "{{\"totp\":{{\"enabled\":true,\"seed\":\"{SECRET}-totp\"}},\
         \"authProviders\":[{{\"provider\":\"saml\",\"email\":\"{SECRET}-masked\"}}],\
         \"tokenLog\":[{{\"title\":\"web\",\"scopes\":[\"team:read\"],\"token\":\"{SECRET}-token\",\"lastUsed\":1790000000}}],\
         \"recoveryCodes\":[\"{SECRET}-code\"]}}"
    )
}

fn billing(team: &Team) -> (Answer, Vec<u64>) {
    let mut entries: Vec<&Event> =
        team.events.iter().filter(|event| event.alive && event.kind == Kind::Billing).collect();
    entries.sort_by_key(|event| (event.at, event.number));
    let newest: Vec<&Event> = entries.into_iter().rev().take(BILLING_SHOWN).collect();
    let texts: Vec<&str> = newest.iter().map(|event| event.text.as_str()).collect();
    let body = format!("{{\"events\":[{}]}}", texts.join(","));
    (Answer::of(200, body), newest.iter().map(|event| event.number).collect())
}

/// The events that a request may see, in the order of the list.
fn list<'a>(world: &World, team: &'a Team, kind: Kind, device: Option<&str>, request: &Request) -> Vec<&'a Event> {
    let behaviour = &world.behaviour;
    let (start, stop) = (request.number("startTime"), request.number("stopTime"));
    let ids: Vec<&str> = request.query.iter().filter(|(key, _)| key == "ids").map(|(_, id)| id.as_str()).collect();
    let oldest = match (kind, team.plan_span) {
        (Kind::Connections, Some(span)) => i128::from(world.now - span) * SECOND,
        _ => i128::MIN,
    };
    let is_seen = |event: &&Event| {
        let of = event.device.as_deref();
        event.alive
            && event.kind == kind
            && event.at >= oldest
            && device.is_none_or(|device| of == Some(device))
            && (ids.is_empty() || of.is_some_and(|of| ids.contains(&of)))
            && start.is_none_or(|start| behaviour.start.starts(event.at, start))
            && stop.is_none_or(|stop| behaviour.stop.stops(event.at, stop))
    };
    let mut seen: Vec<&Event> = team.events.iter().filter(is_seen).collect();
    match behaviour.order {
        Order::Time | Order::NewestFirst => seen.sort_by_key(|event| (event.at, event.number)),
        Order::Scattered => seen.sort_by_key(|event| Chance::scatter(event.number)),
    }
    if (behaviour.order == Order::NewestFirst) != (request.param("desc") == Some("true")) {
        seen.reverse();
    }
    seen.into_iter().flat_map(|event| std::iter::repeat_n(event, event.shown.max(1))).collect()
}

fn page(world: &World, team: &Team, kind: Kind, device: Option<&str>, request: &Request) -> (Answer, Vec<u64>) {
    let limit = request.number("limit").unwrap_or(LIMIT_DEFAULT);
    let limit_max = if device.is_some() { DEVICE_LIMIT_MAX } else { i64::try_from(world.behaviour.limit_max).unwrap() };
    let offset = request.number("offset").unwrap_or(0);
    if !(1..=limit_max).contains(&limit) || offset < 0 {
        return (error(400, "bad-limit"), Vec::new());
    }
    let offset = usize::try_from(offset).unwrap();
    let limit = usize::try_from(limit).unwrap().min(world.behaviour.cap.unwrap_or(usize::MAX));
    let all = list(world, team, kind, device, request);
    let counted: Vec<&Event> = all.iter().skip(offset).take(limit).copied().collect();
    let shown: Vec<&Event> = counted.iter().filter(|event| event.shown > 0).copied().collect();
    let texts: Vec<&str> = shown.iter().map(|event| event.text.as_str()).collect();
    let name = if kind == Kind::Connections && device.is_none() { "deviceEvents" } else { "events" };
    let mut body = format!("{{\"{name}\":[{}]", texts.join(" ,\n"));
    if device.is_none() {
        body.push_str(&claims(world, offset, counted.len(), all.len()));
    }
    body.push('}');
    (Answer::of(200, body), shown.iter().map(|event| event.number).collect())
}

/// `hasMoreEvents` and `nextOffset`, correct or false.
fn claims(world: &World, offset: usize, counted: usize, all: usize) -> String {
    let more = match world.behaviour.more {
        More::True => Some((offset + counted < all).to_string()),
        More::Always(claim) => Some(claim.to_string()),
        More::Null => Some("null".to_owned()),
        More::Absent => None,
    };
    let next = match world.behaviour.next {
        Next::True => Some((offset + counted).to_string()),
        Next::Stuck => Some(offset.to_string()),
        Next::Backwards => Some((i64::try_from(offset).unwrap() - 7).to_string()),
        Next::Null => Some("null".to_owned()),
        Next::Zero => Some("0".to_owned()),
        Next::Absurd => Some("\"9223372036854775808\"".to_owned()),
        Next::Absent => None,
    };
    let more = more.map(|claim| format!(",\"hasMoreEvents\":{claim}")).unwrap_or_default();
    let next = next.map(|claim| format!(",\"nextOffset\":{claim}")).unwrap_or_default();
    more + &next
}
