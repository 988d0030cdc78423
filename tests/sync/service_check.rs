//! Checks the tests' own service against the interface's text, and that its laws can fail.

use crate::faulty_service;

use std::io::{Read, Write};
use std::net::TcpStream;

use faulty_service::{
    Action, Answer, Bound, DAY, Dates, Edge, HOUR, Kind, More, Next, Order, Program, SINCE, Service, serve,
};
use serde_json::Value;

/// Sends one request with the service's token, and returns status, head and body.
fn get(service: &Service, target: &str) -> (u16, String, String) {
    get_as(service, target, &service.token)
}

fn get_as(service: &Service, target: &str, token: &str) -> (u16, String, String) {
    let address = service.base_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_owned(), body.to_owned())
}

fn page(service: &Service, path: &str, query: &str) -> Value {
    let (status, _, body) = get(service, &format!("/v1/team/team-one/{path}?{query}"));
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn span(from: i64, to: i64) -> String {
    format!("desc=false&limit=1001&offset=0&startTime={from}&stopTime={to}")
}

fn times(page: &Value) -> Vec<i64> {
    page["deviceEvents"].as_array().unwrap().iter().map(|event| event["timestamp"].as_i64().unwrap()).collect()
}

#[test]
fn the_documented_paths_answer_with_the_documented_shapes() {
    let service = Service::at(DAY + HOUR);
    service.world().connection(DAY, 1);
    service.world().activity(DAY, 1);
    service.world().billing(DAY);
    assert_eq!(get(&service, "/v1/user/teams").2, "[\"team-one\"]");
    assert_eq!(page(&service, "devices", "")["devices"].as_array().unwrap().len(), 3);
    let connections = page(&service, "history/devices", &span(DAY, DAY + 1));
    assert_eq!(connections["deviceEvents"][0]["timestamp"], DAY * 1_000 + 1);
    assert_eq!((&connections["hasMoreEvents"], &connections["nextOffset"]), (&false.into(), &1.into()));
    let activity = page(&service, "history", &span(DAY, DAY + 1));
    assert_eq!(activity["events"][0]["header"]["eventTimestampUnixNano"], DAY * 1_000_000_000 + 1);
    assert_eq!(page(&service, "billing/events", "")["events"][0]["timestamp"], DAY);
    let (status, head, _) = get(&service, "/v1/team/team-two");
    assert!(status == 404 && head.contains("Date: Tue, 10 Nov 2026 01:00:00 GMT"), "{head}");
    assert_eq!(get_as(&service, "/v1/user/teams", "other").0, 401);
    assert_eq!(get(&service, "/v1/team/team-one/history?limit=1002").0, 400);
    assert_eq!(get(&service, "/v1/team/team-one/device/team-one-computer-1/history?limit=101").0, 400);
    assert_eq!(service.requests_count(), 9);
}

#[test]
fn each_interpretation_of_the_bounds_differs() {
    let service = Service::at(DAY + HOUR);
    for millis in [-1_000, -400, 0, 400, 600, 1_000, 1_400] {
        service.world().connection(DAY, millis);
    }
    let shown = |start, stop| {
        (service.world().behaviour.start, service.world().behaviour.stop) = (start, stop);
        times(&page(&service, "history/devices", &span(DAY, DAY + 1)))
            .iter()
            .map(|at| at - DAY * 1_000)
            .collect::<Vec<_>>()
    };
    let bound = |edge, inclusive| Bound { edge, inclusive };
    assert_eq!(shown(Bound::EXACT, Bound::EXACT), [0, 400, 600, 1_000]);
    assert_eq!(shown(bound(Edge::Exact, false), bound(Edge::Exact, false)), [400, 600]);
    assert_eq!(shown(bound(Edge::Floor, true), bound(Edge::Floor, true)), [0, 400, 600, 1_000, 1_400]);
    assert_eq!(shown(bound(Edge::Ceil, true), bound(Edge::Ceil, false)), [-400, 0]);
    assert_eq!(shown(bound(Edge::Round, true), bound(Edge::Round, true)), [-400, 0, 400, 600, 1_000, 1_400]);
}

#[test]
fn false_paging_caps_and_orders_work_as_configured() {
    let service = Service::at(DAY + HOUR);
    for second in 0..10 {
        service.world().connection(DAY + second, 0);
    }
    {
        let behaviour = &mut service.world().behaviour;
        (behaviour.cap, behaviour.more, behaviour.next) = (Some(4), More::Always(false), Next::Stuck);
    }
    let lied = page(&service, "history/devices", &span(DAY, DAY + 20));
    assert_eq!(times(&lied).len(), 4);
    assert_eq!((&lied["hasMoreEvents"], &lied["nextOffset"]), (&false.into(), &0.into()));
    service.world().behaviour.cap = None;
    for (order, is_sorted) in [(Order::Time, true), (Order::NewestFirst, false), (Order::Scattered, false)] {
        service.world().behaviour.order = order;
        let seen = times(&page(&service, "history/devices", &span(DAY, DAY + 20)));
        assert_eq!((seen.len(), seen.is_sorted()), (10, is_sorted), "{order:?}");
    }
    service.world().behaviour.order = Order::Time;
    let one = page(&service, "history/devices", &format!("{}&ids=none&ids=team-one-computer-1", span(DAY, DAY + 20)));
    assert_eq!(times(&one).len(), 10);
    service.world().remove_computer("team-one-computer-1", DAY + 60, true);
    assert!(times(&page(&service, "history/devices", &span(DAY, DAY + 20))).is_empty());
    let history = page(&service, "history", &span(DAY + 60, DAY + 60));
    assert!(history["events"][0]["teamDeviceRemovedEvent"].is_object());
    assert_eq!(service.world().teams[0].events.len(), 11, "the record of all events keeps deleted events");
}

#[test]
fn the_hook_decides_and_only_complete_answers_count() {
    let service = Service::at(DAY + HOUR);
    let number = service.world().connection(DAY, 0);
    service.on_request(|number, _, _| match number {
        1 => Action::Cut(5),
        2 => Action::Reset,
        3 => Action::Answer(Answer::html()),
        _ => Action::Serve,
    });
    let target = format!("/v1/team/team-one/history/devices?{}", span(DAY, DAY));
    assert_eq!(get(&service, &target).2.len(), 5);
    assert_eq!(get(&service, &target).0, 0);
    assert!(get(&service, &target).2.starts_with("<!DOCTYPE"));
    assert!(!service.world().event(number).served);
    assert!(get(&service, &target).2.contains("deviceEvents"));
    assert!(service.world().event(number).served);
    service.world().behaviour.dates = Dates::Absent;
    assert!(!get(&service, &target).1.contains("Date"));
    assert!(serve::error(400, "x").body.starts_with(b"{\"code\""));
}

#[test]
fn the_plan_s_span_hides_older_events_and_admins_see_secrets() {
    let service = Service::at(DAY + 10 * HOUR);
    service.world().connection(DAY, 0);
    service.world().connection(DAY + 8 * HOUR, 0);
    service.world().team("team-one").plan_span = Some(5 * HOUR);
    assert_eq!(times(&page(&service, "history/devices", &span(DAY, DAY + 86_400))).len(), 1);
    assert!(get(&service, "/v1/team/team-one").2.contains(serve::SECRET));
    let edited = service.world().edit(2, |text| text.replace("host", "renamed"));
    assert!(service.world().event(edited).alive && !service.world().event(2).alive);
    assert_eq!(service.world().teams[0].events.iter().filter(|event| event.kind == Kind::Connections).count(), 3);
}

/// Whether the laws find a fault.
fn are_broken(service: &Service, program: &Program) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| faulty_service::hold(service, program, &SINCE))).is_err()
}

#[test]
fn the_laws_can_be_broken() {
    let (service, program) = faulty_service::scene();
    service.world().fill(DAY, 0..3);
    program.sync(&SINCE).ended(0);
    assert!(!are_broken(&service, &program));
    type Breach = fn(&Service, &Program);
    let breaches: [(&str, Breach); 5] = [
        ("an event lost", |service, _| _ = service.world().connection(DAY + HOUR, 9)),
        ("an event doubled", |service, _| _ = service.world().teams[0].events.pop()),
        ("an event altered", |service, _| service.world().teams[0].events[3].kept.push(' ')),
        ("a secret kept", |_, program| {
            faulty_service::program::put(&program.home().join("log"), service_secret().as_bytes());
        }),
        ("a file altered", |_, program| {
            let files = faulty_service::program::files_below(&program.archive().join("tables"));
            let mut bytes = std::fs::read(&files[0]).unwrap();
            bytes[10] ^= 1;
            faulty_service::program::put(&files[0], &bytes);
        }),
    ];
    for (scenario, breach) in breaches {
        let (service, program) = faulty_service::scene();
        service.world().fill(DAY, 0..3);
        program.sync(&SINCE).ended(0);
        breach(&service, &program);
        // This sync does not read settled windows again, so it does not see this change.
        assert!(are_broken(&service, &program), "{scenario} is not noticed");
    }
}

fn service_secret() -> String {
    format!("x{}x", serve::SECRET)
}
