//! A service that fails, refuses, redirects or sends a wrong time. The program retries or reports the fault, and never
//! treats it as an empty answer.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use std::time::Duration;

use faulty_service::laws::findings;
use faulty_service::{
    Action, Answer, DAY, Dates, Expected, HOUR, Request, SINCE, Service, World, hold, hold_with, program, scene,
};

const NOON: i64 = DAY + 84 * HOUR;

fn failures() -> Vec<(&'static str, Action)> {
    let answer = |status, body: &str| Action::Answer(Answer::of(status, body));
    vec![
        ("429 with seconds", Action::Answer(Answer::of(429, "{}").with("Retry-After", "1"))),
        (
            "429 with a past date",
            Action::Answer(Answer::of(429, "{}").with("Retry-After", "Tue, 10 Nov 2026 00:00:00 GMT")),
        ),
        ("429 with nonsense", Action::Answer(Answer::of(429, "").with("Retry-After", "-1"))),
        ("429", answer(429, "")),
        ("500", answer(500, "{\"code\":\"boom\"}")),
        ("502", Action::Answer(Answer { status: 502, ..Answer::html() })),
        ("503", answer(503, "")),
        ("504", answer(504, "null")),
        ("a reset", Action::Reset),
        ("a body that breaks off", Action::Cut(12)),
        ("no body at all", Action::Cut(0)),
        ("a web page", Action::Answer(Answer::html())),
        ("null", answer(200, "null")),
        ("nothing", answer(200, "")),
        ("an empty object", answer(200, "{}")),
        ("another list", answer(200, "{\"entries\":[]}")),
        ("a list that is null", answer(200, "{\"events\":null,\"deviceEvents\":null,\"devices\":null}")),
        ("a list that is an object", answer(200, "{\"events\":{},\"deviceEvents\":{},\"devices\":{}}")),
        ("JSON that breaks off", answer(200, "{\"deviceEvents\":[{\"id\":\"1\"")),
        ("JSON and more", answer(200, "{\"deviceEvents\":[],\"events\":[],\"devices\":[]}]")),
        (
            "an aged copy",
            Action::Answer(Answer::of(200, "{\"deviceEvents\":[],\"events\":[],\"devices\":[]}").with("Age", "60")),
        ),
    ]
}

/// Two failures in a row at a request of each kind, then success.
fn survives(scenario: &str, failure: &Action) {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.world().behaviour.cap = Some(30);
    let failure = failure.clone();
    let mut left: Vec<(&str, usize)> =
        ["/v1/user/teams", "/devices", "/history", "/history/devices", "/billing/events"].map(|end| (end, 2)).to_vec();
    service.on_request(move |number, request, _| {
        let path = &request.path;
        // `/history/devices` also ends with `/devices`, so use the longest match.
        let kind = left.iter_mut().filter(|(end, _)| path.ends_with(end)).max_by_key(|(end, _)| end.len());
        match kind {
            Some((_, count)) if *count > 0 && (number > 4 || path.ends_with("teams")) => {
                *count -= 1;
                failure.clone()
            }
            _ => Action::Serve,
        }
    });
    let run = program.sync(&SINCE);
    assert_eq!(run.code, Some(0), "{scenario}: {run:?}");
    hold(&service, &program, &SINCE);
}

#[test]
fn sync_survives_bursts_of_failures() {
    // Run in parallel, because the runs mostly wait.
    for some in failures().chunks(7) {
        std::thread::scope(|scope| {
            let all: Vec<_> = some
                .iter()
                .map(|(scenario, failure)| (scenario, scope.spawn(move || survives(scenario, failure))))
                .collect();
            for (scenario, one) in all {
                assert!(one.join().is_ok(), "{scenario}");
            }
        });
    }
}

fn refuse(
    status: u16,
    is_it: impl Fn(&Request) -> bool + Send + 'static,
) -> impl FnMut(usize, &Request, &mut World) -> Action {
    move |_, request, _| {
        if is_it(request) { Action::Answer(faulty_service::serve::error(status, "no-rights")) } else { Action::Serve }
    }
}

#[test]
fn a_stream_that_is_refused_stops_alone() {
    for (status, stream, other) in
        [(401, "connections", "activity"), (403, "activity", "connections"), (401, "billing", "activity")]
    {
        println!("{status} for {stream}");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        service.on_request(refuse(status, move |request| match stream {
            "connections" => request.is_connections(),
            "activity" => request.is_activity(),
            _ => request.is_billing(),
        }));
        program.sync(&SINCE).ended(1).says(&["token", &status.to_string(), stream]);
        let rows = program.sql(&format!("select count(*)::int as n from {other}"));
        assert_eq!(rows[0]["n"], 48, "the other streams continue");
        service.calm();
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn a_team_that_is_refused_stops_alone() {
    let (service, program) = scene();
    service.world().add_team("team-two");
    service.world().fill(DAY, 0..4);
    service.world().activity_of(1, DAY + HOUR, 5);
    service.on_request(refuse(403, |request| request.path.starts_with("/v1/team/team-two")));
    program.sync(&SINCE).ended(1).says(&["team-two", "403"]);
    let rows = program.sql("select distinct team_id from activity");
    assert_eq!(rows.len(), 1);
    service.calm();
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_new_token_continues_where_the_old_one_stopped() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    let next = format!("{}-rotated", service.token);
    service.world().tokens = vec![next.clone()];
    service.world().connection(NOON + 10, 0);
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(1).says(&["token", "401"]);
    program.set_token(&next);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_token_file_may_change_in_the_middle_of_a_run() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.world().behaviour.cap = Some(20);
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("token");
    program::put(&file, service.token.as_bytes());
    let (next, path) = (format!("{}-rotated", service.token), file.clone());
    let new = next.clone();
    service.on_request(move |number, _, world| {
        if number == 12 {
            world.tokens = vec![new.clone()];
            program::put(&path, format!("{new}\n").as_bytes());
        }
        Action::Serve
    });
    let mut command = program.command(&[&["sync"], &SINCE[..]].concat());
    command.env_remove("ANNALS_TOKEN").env("ANNALS_TOKEN_FILE", &file);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    program.set_token(&next);
    hold(&service, &program, &SINCE);
}

/// The texts of the deprecated history lack `deviceID`.
fn deprecated(world: &mut World) {
    world.behaviour.team_connections = false;
    for n in 0..330_u64 {
        let at = DAY + 20 * HOUR + i64::try_from(n).unwrap() * 600;
        let device = format!("team-one-computer-{}", n % 2 + 1);
        let text = faulty_service::events::connection_deprecated(10_000 + n, at * 1_000);
        world.add(faulty_service::Kind::Connections, faulty_service::laws::nanos(at), Some(&device), text);
        world.activity(at, 7);
    }
}

#[test]
fn without_history_devices_every_computer_is_read_by_itself() {
    let (service, program) = scene();
    deprecated(&mut service.world());
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    let rows = program.sql("select device_id, count(*)::int as n from connections group by all order by 1");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["n"] == 165), "{rows:?}");
    assert!(!findings(&program, "deprecated_history").is_empty());
    let said = program.run(&["status"]).ended(0);
    assert!(said.said().contains("deprecated"), "{said:?}");
    for n in 0..5 {
        let at = NOON + 100 + n;
        let text = faulty_service::events::connection_deprecated(20_000 + n.unsigned_abs(), at * 1_000);
        service.world().add(
            faulty_service::Kind::Connections,
            faulty_service::laws::nanos(at),
            Some("team-one-computer-3"),
            text,
        );
    }
    service.set_clock(NOON + 100 * HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_missing_history_is_an_error_and_settles_nothing() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.on_request(|_, request, _| match request.is_activity() {
        true => Action::Answer(faulty_service::serve::error(404, "not-found")),
        false => Action::Serve,
    });
    program.sync(&SINCE).ended(1).says(&["404"]);
    let settled =
        program.sql("select count(*)::int as n from coverage where stream = 'activity' and state <> 'provisional'");
    assert_eq!(settled[0]["n"], 0);
    service.calm();
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_redirect_to_another_host_is_not_followed() {
    let (service, program) = scene();
    let elsewhere = Service::at(NOON);
    service.world().fill(DAY, 0..4);
    elsewhere.world().connection(DAY + HOUR, 1);
    let target = elsewhere.base_url();
    let mut left = 2;
    service.on_request(move |_, request, _| {
        if request.is_connections() && left > 0 {
            left -= 1;
            return Action::Answer(Answer::of(307, "").with("Location", &format!("{target}{}", request.path)));
        }
        Action::Serve
    });
    let run = program.sync(&SINCE);
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    assert_eq!(elsewhere.requests_count(), 0, "the program sends no request and no token to another host");
    service.calm();
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn sync_waits_for_a_slow_service() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..2);
    service.on_request(|number, _, _| match number % 5 {
        0 => Action::Slow(Duration::from_millis(300)),
        _ => Action::Serve,
    });
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn an_address_without_a_service_is_reported_with_the_address() {
    let (service, program) = scene();
    let address = service.base_url();
    drop(service);
    // This checks only the message, not the end of the wait.
    let run = program.run(&["sync", "--base-url", "http://127.0.0.1:1/nothing?x=1"]).ended(2);
    assert!(!run.stderr.is_empty() && !address.is_empty());
    program.run(&["sync", "--stream", "nothing"]).ended(2);
    program.run(&["sync", "--since", "yesterday"]).ended(2).says(&["-30d"]);
}

#[test]
fn without_a_date_header_sync_uses_the_machine_s_clock() {
    for dates in [Dates::Absent, Dates::Garbage] {
        let (service, program) = scene();
        service.world().fill(DAY, 0..3);
        service.world().behaviour.dates = dates;
        program.sync(&SINCE).ended(0);
        // The machine's clock advances, so a window may become due between two runs.
        hold_with(&service, &program, &Expected { is_moving: true, arguments: &SINCE, ..Expected::default() });
    }
}

#[test]
fn a_clock_far_in_the_past_loses_nothing() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.world().behaviour.dates = Dates::Off(-10 * 366 * 86_400);
    let run = program.sync(&SINCE);
    assert!(matches!(run.code, Some(0..=2)), "{run:?}");
    service.world().behaviour.dates = Dates::Clock;
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_clock_that_goes_back_for_some_time_loses_nothing() {
    for seconds in [-120, -3_600, -30 * 86_400] {
        println!("{seconds} s");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        service.on_request(move |number, _, world| {
            world.behaviour.dates = if (6..9).contains(&number) { Dates::Off(seconds) } else { Dates::Clock };
            Action::Serve
        });
        program.sync(&SINCE).ended(0);
        service.calm();
        service.world().behaviour.dates = Dates::Clock;
        hold(&service, &program, &SINCE);
        // The clock also goes back between two runs.
        service.world().connection(NOON - 7_000, 1);
        service.set_clock(NOON - 2 * HOUR);
        program.sync(&SINCE).ended(0);
        service.set_clock(NOON + 200 * HOUR);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn a_configured_team_that_does_not_exist_is_named() {
    let (_service, program) = scene();
    program.configure("[api]\nteams = [\"Team One\"]\n");
    let run = program.sync(&[]).ended(1).says(&["Team One", "not found", "`api.teams` takes ids", "`annals init`"]);
    assert!(!run.stderr.contains("the archive begins"), "{}", run.stderr);
}
