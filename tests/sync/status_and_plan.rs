//! `annals status` and `annals plan`, for people and for programs.

use crate::faulty_service;

use faulty_service::{DAY, HOUR, Program, SINCE, scene};
use serde_json::{Value, json};

const TEXTS: [&str; 5] = ["csv", "json", "ndjson", "markdown", "html"];

fn rows(program: &Program, arguments: &[&str]) -> Vec<Value> {
    let run = program.run(&[arguments, &["--format", "json"]].concat()).ended(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn status_can_be_printed_as_rows() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    program.sync(&SINCE).ended(0);
    let stands = rows(&program, &["status"]);
    let streams: Vec<&str> = stands.iter().map(|row| row["stream"].as_str().unwrap()).collect();
    assert_eq!(streams, ["activity", "connections", "billing", "inventory"]);
    let whole: Value = serde_json::from_str(&program.run(&["status", "--json"]).ended(0).stdout).unwrap();
    for (row, said) in stands.iter().zip(whole["teams"][0]["streams"].as_array().unwrap()) {
        for number in ["open_windows", "events", "late", "gaps"] {
            assert_eq!(row[number], said[number], "{number} of {row}");
        }
        assert_eq!(row["team_id"], "team-one");
    }
    assert_eq!((&stands[1]["begins"], &stands[1]["events"]), (&json!("2026-11-10T00:00:00"), &json!(36)));
    for format in TEXTS {
        let run = program.run(&["status", "--format", format]).ended(0);
        assert!(
            run.stdout.replace('\\', "").contains("seconds_to_loss") && run.stdout.contains("team-one"),
            "{format}: {}",
            run.stdout
        );
    }
    program.run(&["status"]).ended(0).says(&["time to loss", "team-one", "inventory", "3 computers"]);
    let file = program.home().join("standing.csv");
    program.run(&["status", "-o", file.to_str().unwrap()]).ended(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1 + 4);
    program.run(&["status", "--json", "--format", "csv"]).ended(2).says(&["--json", "--format"]);
}

#[test]
fn plan_can_be_printed_as_rows() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    let plan = ["plan", SINCE[0], SINCE[1]];
    let first = rows(&program, &plan);
    assert!(first.iter().all(|row| row["requests"].as_u64() > Some(0)), "{first:?}");
    program.sync(&SINCE).ended(0);
    service.set_clock(DAY + 100 * HOUR);
    let next = rows(&program, &plan);
    let connections = next.iter().find(|row| row["stream"] == "connections").unwrap();
    assert!(connections["unread_since"].as_str().unwrap().starts_with("2026-11-13T12:00:00"), "{connections}");
    for format in TEXTS {
        let run = program.run(&[&plan[..], &["--format", format]].concat()).ended(0);
        assert!(run.stdout.replace('\\', "").contains("seconds_to_read"), "{format}: {}", run.stdout);
        assert!(run.stderr.contains("requests"), "{format}: {}", run.stderr);
    }
    program.run(&plan).ended(0).says(&["unread since", "about", "requests"]);
}

/// A token of a user who is no admin does not see the plan's span.
#[test]
fn an_unknown_span_of_the_plan_is_said_and_a_configured_one_makes_a_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    let hint = "the service does not show the plan's span";
    let all = |sync: &[&str], code: i32| {
        let runs = [sync, &["status", "--format", "json"], &["doctor", "--format", "ndjson"]];
        let [sync, status, doctor] = runs.map(|arguments| program.run(arguments));
        [sync.ended(code), status, doctor].map(|run| run.said().matches(hint).count())
    };
    let sync = ["sync", SINCE[0], SINCE[1]];
    assert_eq!(all(&sync, 0), [1, 1, 1]);
    assert_eq!(all(&sync, 0), [1, 1, 1], "an unknown span alone is no gap");
    program.configure("[api]\nplan_span = \"5d\"\n");
    service.set_clock(DAY + 324 * HOUR);
    assert_eq!(all(&sync, 3), [0, 0, 0]);
    let gaps = faulty_service::laws::open_gaps(&program);
    assert_eq!((gaps.len(), &gaps[0]["subject"]), (1, &json!("plan_span")), "{gaps:?}");
}
