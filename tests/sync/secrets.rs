//! Secrets are planted in every field that the interface has for them. No file and no output may contain one.

use crate::awkward;

use awkward::laws::{files_agree, findings, nanos, no_secret_anywhere};
use awkward::serve::SECRET;
use awkward::{Action, DAY, HOUR, Kind, SINCE, Service, World, hold, scene};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// `text` holds secrets as `<n>`; the archived text holds the redaction instead.
fn plant(world: &mut World, kind: Kind, at: i64, text: &str) {
    let served =
        text.replace("<1>", &format!("\"{SECRET}-one\"")).replace("<2>", &format!("\"{SECRET} \\\"two\\u0022\""));
    let number = world.add(kind, nanos(at), None, served);
    world.event(number).kept = text.replace("<1>", "\"[redacted]\"").replace("<2>", "\"[redacted]\"");
}

fn plant_everywhere(world: &mut World) {
    world.team("team-one").plan_span = Some(30 * 86_400);
    for (at, payload) in [
        "{\"secret\":<1>}",
        "{\"invite\":{\"secret\" : <2>,\"name\":\"secret\"}}",
        "{\"list\":[{\"secret\":<1>},{\"secret\":<2>}],\"secrets\":\"plural\"}",
        "{\"\\u0073ecret\":<1>}",
        "{\"secret\":[<1>,{\"deep\":<2>}],\"after\":\"kept\"}",
        "{\"secret\":\"\",\"other\":null}",
    ]
    .iter()
    .zip(0..)
    .map(|(payload, n)| (DAY + 30 * HOUR + n, payload))
    {
        let text = format!(
            "{{\"header\":{{\"eventTimestampUnixNano\":{}}},\"teamInviteEvent\":{payload}}}",
            at * 1_000_000_000
        );
        let text = text.replace("\"secret\":\"\"", "\"secret\":<1>");
        plant(world, Kind::Activity, at, &text);
        let text = format!("{{\"id\":\"s-{at}\",\"timestamp\":{},\"incomingConnectionEvent\":{payload}}}", at * 1_000);
        plant(world, Kind::Connections, at, &text.replace("\"secret\":\"\"", "\"secret\":<2>"));
        let text = format!("{{\"id\":\"b-{at}\",\"timestamp\":{at},\"event\":{{\"usersAdded\":{payload}}}}}");
        plant(world, Kind::Billing, at, &text.replace("\"secret\":\"\"", "\"secret\":<2>"));
    }
    // Also in quarantine, and in `tokenInfo`.
    plant(world, Kind::Activity, DAY + 31 * HOUR, "{\"header\":{\"tokenInfo\":{\"secret\":<1>}},\"secret\":<2>}");
    let header =
        format!("{{\"eventTimestampUnixNano\":{},\"tokenInfo\":{{\"secret\":<1>}}}}", (DAY + HOUR) * 1_000_000_000);
    plant(world, Kind::Activity, DAY + HOUR, &format!("{{\"header\":{header},\"teamUserAddedEvent\":{{}}}}"));
}

#[test]
fn no_secret_reaches_a_file_or_an_output() {
    let (service, program) = scene();
    plant_everywhere(&mut service.world());
    service.world().fill(DAY, 0..4);
    program.sync(&[&SINCE[..], &["--verbose"]].concat()).ended(0);
    hold(&service, &program, &SINCE);
    files_agree(&program);
    assert!(!findings(&program, "redacted").is_empty());
    let redacted = program.sql("select count(*)::int as n from activity where redacted");
    assert_eq!(redacted[0]["n"], 7);
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["plan"],
        &["files", "connections"],
        &["connect"],
        &["sql", "select * from activity"],
        &["verify"],
        &["doctor"],
        &["doctor", "--verbose"],
        &["quarantine", "list"],
    ] {
        let run = program.run(arguments);
        assert!(matches!(run.code, Some(0 | 3)), "{arguments:?}: {run:?}");
    }
    no_secret_anywhere(&program);
}

/// Every inventory view and its expected rows.
const VIEWS: [(&str, usize); 10] = [
    ("inventory_team", 1),
    ("inventory_users", 1),
    ("inventory_sso_users", 1),
    ("inventory_computers", 3),
    ("inventory_groups", 1),
    ("inventory_memberships", 2),
    ("inventory_grants", 0),
    ("inventory_sign_in", 1),
    ("inventory_tokens", 1),
    ("inventory_reads", 9),
];

#[test]
fn no_secret_of_people_and_computers_reaches_a_file_or_an_output() {
    let (service, program) = scene();
    service.world().team("team-one").plan_span = Some(30 * 86_400);
    service.world().fill(DAY, 0..4);
    let mut loud = program.command(&["sync", "--verbose", "--since", SINCE[1]]);
    loud.env("RUST_LOG", "trace");
    program.finish(loud).ended(0);
    hold(&service, &program, &SINCE);
    for (view, expected) in VIEWS {
        let rows = program.sql(&format!("select * from {view}"));
        assert_eq!(rows.len(), expected, "{view}: {rows:?}");
        for format in ["table", "csv", "ndjson", "json", "markdown"] {
            program.run(&["sql", &format!("from {view}"), "--format", format]);
        }
        let out = program.home().join(format!("{view}.parquet"));
        program.run(&["sql", &format!("from {view}"), "-o", out.to_str().unwrap()]);
    }
    let unknown = findings(&program, "unknown_field");
    for (subject, count) in [
        ("team.inviteCodes: object", 1),
        ("team.(odd name): boolean", 1),
        ("team.planFeatures.licenseKey: string", 1),
        ("team.groups.joinCode: string", 1),
        ("devices.urls: object", 3),
        ("devices.(odd name): list", 3),
        ("users.recovery: list", 1),
        ("saml.users.assertion: string", 1),
        ("info.recoveryCodes: list", 1),
        ("info.totp.seed: string", 1),
        ("info.tokenLog.token: string", 1),
    ] {
        assert_eq!(unknown.get(subject), Some(&count), "{subject} in {unknown:?}");
    }
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["plan", "--verbose"],
        &["files", "inventory_users"],
        &["connect"],
        &["verify"],
        &["doctor", "--verbose"],
        &["sync", "--stream", "inventory", "--verbose"],
        &["sync", "--no-user-info", "--verbose"],
    ] {
        let run = program.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
    }
    no_secret_anywhere(&program);
}

#[test]
fn no_secret_of_an_error_is_repeated() {
    for status in [400, 401, 403, 404, 409, 410, 418] {
        let (service, program) = scene();
        service.world().fill(DAY, 0..1);
        service.on_request(move |number, request, _| match number {
            1..4 => Action::Serve,
            _ => {
                let echo = request.header("authorization").unwrap_or_default().to_owned();
                let body = format!("{{\"code\":\"{SECRET}-{echo}\",\"token\":\"{echo}\",\"detail\":\"{SECRET}\"}}");
                Action::Answer(awkward::Answer::of(status, body))
            }
        });
        program.sync(&[&SINCE[..], &["--verbose"]].concat()).ended(1);
        no_secret_anywhere(&program);
    }
}

/// Answers that contain the token.
fn echoes(token: &str) -> Vec<awkward::Answer> {
    let json = |status, body: String| awkward::Answer::of(status, body);
    let host = token.to_lowercase();
    vec![
        json(400, format!("{{\"code\":\"{token}\"}}")),
        json(400, format!("{{\"code\":\"x-{token}.y\"}}")),
        json(409, format!("{{\"errors\":[{{\"code\":\"{token}\"}}]}}")),
        json(422, format!("{{\"error\":{{\"code\":\"{}\"}}}}", token.replace('p', "\\u0070"))),
        json(302, String::new()).with("Location", &format!("https://{host}.example/")),
        json(302, String::new()).with("Location", &format!("/v1/{token}")),
        json(503, token.to_owned()).with("Retry-After", token),
        json(200, token.to_owned()),
        json(200, format!("{{\"{token}\":1}}")),
        json(200, format!("{{\"events\":\"{token}\",\"devices\":[\"{token}\"]}}")),
        json(200, format!("[\"{token}\"]")),
    ]
}

#[test]
fn an_echoed_token_is_redacted() {
    let token = Service::at(DAY + 84 * HOUR).token.clone();
    for at in 0..echoes(&token).len() {
        let (service, program) = scene();
        service.world().fill(DAY, 0..1);
        let mut echoed = 0;
        service.on_request(move |number, request, _| {
            let token = request.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
            let echo = echoes(&token).swap_remove(at);
            echoed += usize::from(number > 3);
            // The service finally answers the retries.
            let is_final = (400..500).contains(&echo.status);
            if number > 3 && (is_final || echoed <= 2) { Action::Answer(echo) } else { Action::Serve }
        });
        let run = program.sync(&[&SINCE[..], &["--verbose"]].concat());
        program.run(&["status", "--json"]);
        no_secret_anywhere(&program);
        let host = program.token().to_lowercase();
        let said = program.printed().to_lowercase();
        assert!(!said.contains(&host), "{at}: {said}");
        if at < 3 {
            assert!(run.code == Some(1) && run.said().contains("[redacted]"), "{at}: {run:?}");
        }
    }
}

#[test]
fn an_event_that_holds_the_token_is_archived_without_it() {
    let (service, program) = scene();
    service.world().team("team-one").plan_span = Some(30 * 86_400);
    service.world().fill(DAY, 0..4);
    let token = program.token();
    let hidden: String = token.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let encoded = STANDARD.encode(format!("Bearer {token}"));
    let texts = [
        ("{\"note\":\"x <t> y\"}", "{\"note\":\"x [redacted] y\"}"),
        (
            "{\"<t>\":{\"deep\":[\"<t>\",{\"<t>\":1}]}}",
            "{\"[redacted]\":{\"deep\":[\"[redacted]\",{\"[redacted]\":1}]}}",
        ),
        ("{\"note\":\"<h>\",\"other\":\"a\\n\"}", "{\"note\":\"[redacted]\",\"other\":\"a\\n\"}"),
        ("{\"note\":\"\\\"<t>\"}", "{\"note\":\"[redacted]\"}"),
    ];
    for ((served, kept), n) in texts.into_iter().zip(0..) {
        let at = DAY + 30 * HOUR + n;
        let event = |payload: &str| {
            [
                format!("{{\"header\":{{\"eventTimestampUnixNano\":{at}000000000}},\"teamInviteEvent\":{payload}}}"),
                format!("{{\"id\":\"t-{at}\",\"timestamp\":{at}000,\"incomingConnectionEvent\":{payload}}}"),
                format!("{{\"id\":\"u-{at}\",\"timestamp\":{at},\"event\":{{\"usersAdded\":{payload}}}}}"),
            ]
        };
        let served = event(&served.replace("<t>", &token).replace("<h>", &hidden));
        for ((kind, served), kept) in
            [Kind::Activity, Kind::Connections, Kind::Billing].into_iter().zip(served).zip(event(kept))
        {
            let mut world = service.world();
            let number = world.add(kind, nanos(at), None, served);
            world.event(number).kept = kept;
        }
    }
    // Twice as an id: two events, which then have no id; and in quarantine.
    for (at, rest) in [(0, "1"), (1, "2"), (2, "3")] {
        let at = DAY + 31 * HOUR + at;
        let text =
            |id: &str| format!("{{\"id\":\"{id}\",\"timestamp\":{at}000,\"connectionClosedEvent\":{{\"n\":{rest}}}}}");
        let mut world = service.world();
        let number = world.add(Kind::Connections, nanos(at), None, text(&token));
        world.event(number).kept = text("[redacted]");
    }
    let odd = |note: &str| format!("{{\"id\":\"odd\",\"timestamp\":{}000,\"note\":\"{note}\"}}", DAY + 32 * HOUR);
    let number = service.world().add(Kind::Connections, nanos(DAY + 32 * HOUR), None, odd(&token));
    service.world().event(number).kept = odd("[redacted]");
    program.sync(&[&SINCE[..], &["--verbose"]].concat()).ended(0);
    hold(&service, &program, &SINCE);
    files_agree(&program);
    let redacted = findings(&program, "redacted");
    assert_eq!(redacted.values().sum::<i64>(), 3 * 4 + 3 + 1, "{redacted:?}");
    for (view, expected) in [("activity", 4), ("connections", 4), ("billing", 4)] {
        let rows = program.sql(&format!("select count(*)::int as n from {view} where redacted"));
        assert!(rows[0]["n"].as_i64() >= Some(expected), "{view}: {rows:?}");
    }
    assert!(!program.printed().contains(&encoded));
    no_secret_anywhere(&program);
}
#[test]
fn names_and_ids_that_hold_the_token_are_kept_without_it() {
    let (service, program) = scene();
    service.world().team("team-one").plan_span = Some(30 * 86_400);
    service.world().fill(DAY, 0..2);
    service.on_request(|_, request, _| {
        let token = request.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let body = match request.path.rsplit('/').next() {
            Some("teams") => format!("[\"team-one\",\"{token}\"]"),
            Some("team-one") => format!("{{\"id\":\"team-one\",\"name\":\"{token}\",\"planFeatures\":{{}}}}"),
            Some("devices") if request.path.ends_with("team-one/devices") => {
                format!("{{\"devices\":[{{\"id\":\"a\",\"name\":\"{token}\"}},{{\"id\":\"{token}\"}}]}}")
            }
            Some("users") if !request.path.contains("saml") => {
                format!("{{\"users\":[{{\"id\":\"{token}\",\"email\":\"{token}@x.example\"}}]}}")
            }
            _ => return Action::Serve,
        };
        Action::Answer(awkward::Answer::of(200, body))
    });
    let run = program.sync(&[&SINCE[..], &["--verbose"]].concat());
    assert!(run.code.is_some_and(|code| code <= 3), "{run:?}");
    for arguments in [&["status"][..], &["status", "--json"], &["plan"], &["doctor"], &["verify"], &["connect"]] {
        program.run(arguments);
    }
    for (view, _) in VIEWS {
        program.run(&["sql", &format!("from {view}"), "--format", "ndjson"]);
    }
    let names = program.sql("select distinct name from inventory_computers where team_id = 'team-one'");
    assert!(names.iter().any(|row| row["name"] == "[redacted]"), "{names:?}");
    no_secret_anywhere(&program);
}
