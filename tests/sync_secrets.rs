//! Secrets planted wherever the interface can carry them stand in no file and in no output.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod awkward;

use awkward::laws::{files_agree, findings, nanos, no_secret_anywhere};
use awkward::serve::SECRET;
use awkward::{Action, DAY, HOUR, Kind, SINCE, World, hold, scene};

/// `text` holds secrets as `<n>`; what is kept holds the redaction in their place.
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
    // In quarantine, too; and in the token of who did it.
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
