//! The API: shapes, filters, pages of lists, refusals.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use annals::model::Stream;

use super::http::get;
use super::world::{HOSTILE, Lonely, with_strangers};
use crate::program::wait_for;
use crate::reporting::{Day, HOUR, Place};

/// The team of [`Lonely`].
const TEAM: &str = "O'Brien & söhne";
const OCTOBER: &str = "from=2026-10-01&to=2026-11-01";

#[test]
fn the_api_shows_everything_with_stable_names() {
    let world = Lonely::new("");
    let json = |path: &str| {
        let answer = world.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    };
    wait_for("a look at the team", || (json("/api/status")["teams"][0]["ledger_seq"] == 1).then_some(()));
    let status = json("/api/status");
    assert_eq!((&status["archive_id"], &status["healthy"]), (&json!("test"), &json!(false)));
    assert_eq!(status["teams"][0]["team"], TEAM);
    assert_eq!(status["totals"]["gaps"], 1);
    wait_for("the error of the service", || {
        json("/api/status")["teams_error"].as_str().is_some_and(|error| !error.is_empty()).then_some(())
    });
    let streams = status["teams"][0]["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 3);
    for member in
        ["stream", "health", "last_read_at", "read_to", "settled_to", "lag_seconds", "seconds_to_loss", "gaps"]
    {
        assert!(streams[0].as_object().unwrap().contains_key(member), "{member}: {streams:?}");
    }
    let covered = json("/api/coverage?stream=connections&from=2026-10-13&to=2026-10-22");
    let stream = &covered["streams"][0];
    assert_eq!(covered["streams"].as_array().unwrap().len(), 1);
    let stretches: Vec<(&str, &str)> = (stream["stretches"].as_array().unwrap().iter())
        .map(|stretch| (stretch["from"].as_str().unwrap(), stretch["state"].as_str().unwrap()))
        .collect();
    let expected = [
        ("2026-10-13T00:00:00Z", "complete"),
        ("2026-10-20T00:00:00Z", "not_fetched"),
        ("2026-10-21T00:00:00Z", "complete"),
    ];
    assert_eq!(stretches, expected);
    assert_eq!(stream["gaps"][0]["ledger_seq"], 1);
    let ledger = json("/api/ledger");
    assert_eq!(ledger["heads"][0]["sha256"], world.place.head(TEAM));
    let gap = json("/api/findings?kind=gap&stream=connections");
    assert_eq!(gap["findings"][0]["reason"], "computer removed");
    assert_eq!(json("/api/findings?kind=late")["findings"], json!([]));
    let index = json("/api/");
    assert!(!index["places"].as_array().unwrap().contains(&json!("/api/sql")), "{index}");
    world.daemon.stop();
}

#[test]
fn pages_of_a_list_together_are_the_whole_list() {
    let world = Lonely::new("");
    let all = world.get(&format!("/api/sessions?{OCTOBER}&limit=1000")).json();
    let all: Vec<Value> = all["sessions"].as_array().unwrap().clone();
    assert_eq!(all.len(), (1..=31).filter(|day| *day != 20).map(|day| day % 4).sum::<usize>());
    assert!(all.is_sorted_by(|a, b| a["first_event_at"].as_str() > b["first_event_at"].as_str()));
    let (mut parts, mut after) = (Vec::new(), String::new());
    loop {
        let part = world.get(&format!("/api/sessions?{OCTOBER}&limit=7{after}")).json();
        parts.extend(part["sessions"].as_array().unwrap().clone());
        let Some(next) = part["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(parts, all);
    let count = |more: &str| {
        let found = world.get(&format!("/api/sessions?{OCTOBER}&limit=1000&{more}")).json();
        found["sessions"].as_array().unwrap_or_else(|| panic!("{more}: {found}")).len()
    };
    assert_eq!(count("user=MALLORY"), all.len(), "in any case");
    assert_eq!(count("user=nobody"), 0);
    assert_eq!(count("address=203.0.113."), all.len());
    assert_eq!(count("address=113"), 0, "an address by its beginning");
    assert_eq!(count("computer=hyperlink"), all.len());
    assert_eq!(count("computer=D1"), all.len(), "a computer by its id");
    assert_eq!(count("outcome=ended"), 0);
    assert_eq!(count("user=%27%20OR%201%3D1%20--"), 0, "a value is a value");
    assert_eq!(count("user=%25"), 0, "and no pattern");
    let id = all[0]["connection_id"].as_str().unwrap().replace(':', "%3A");
    let one = world.get(&format!("/api/session?id={id}")).json();
    assert_eq!(one["session"], all[0]);
    assert_eq!((one["events"].as_array().unwrap().len(), &one["truncated"]), (1, &json!(false)));
    world.daemon.stop();
}

#[test]
fn an_id_of_two_teams_needs_the_team() {
    let place = Place::month_with_a_gap();
    place.commit_whole("acme", vec![Day::new(Stream::Connections, "2026-10-10").with(1, 5 * HOUR)], Vec::new());
    let world = Lonely::over(place, "");
    let path = "session?id=c-2026-10-10T05%3A00%3A00Z";
    for place in ["api/", ""] {
        let answer = world.get(&format!("/{place}{path}"));
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.body.contains("teams") && answer.body.contains("acme"), "{}", answer.body);
    }
    assert_eq!(world.get(&format!("/api/{path}&team=acme")).json()["session"]["team_id"], "acme");
    world.daemon.stop();
}

#[test]
fn every_check_of_the_daemon_expects_the_configured_public_key() {
    let place = Place::one_event();
    let public_key = place.run(&["anchor", "--keygen", "key"]);
    let key = public_key.text().trim();
    let config = format!("sql = true\n[signing]\npublic_key = \"{key}\"\n[schedule]\nverify = \"* * * * * *\"\n");
    let world = Lonely::over(place, &config);
    wait_for("a check", || {
        let verify = world.get("/api/ledger").json()["verify"].clone();
        verify["faults"].as_u64().map(|faults| assert_eq!(faults, 1, "no line is signed: {verify}"))
    });
    let report = world.get("/api/reports/r24?from=2026-10-01&to=2026-11-01");
    assert!(report.body.contains("BAD_SIG"), "{}", report.body);
    let query = json!({"query": "SELECT code FROM verification"}).to_string();
    let answer = super::http::ask(&world.daemon.address, "POST", "/api/sql", &[], &query);
    assert!(answer.status == 200 && answer.body.contains("BAD_SIG"), "{}", answer.body);
    world.daemon.stop();
}

#[test]
fn an_invalid_request_is_refused_with_the_reason() {
    let world = Lonely::new("");
    for (path, status, code, named) in [
        ("/api/sessions?usr=x", 400, "bad_request", "usr"),
        ("/api/sessions?by=computer", 400, "bad_request", "unknown parameter"),
        ("/api/sessions?usr=", 400, "bad_request", "usr: the value is empty"),
        ("/api/sessions?user=%20", 400, "bad_request", "user: the value is empty"),
        ("/api/coverage?from=2026-10-02&to=2026-10-01", 400, "bad_request", "the period ends before it begins"),
        ("/api/reports/r21", 400, "bad_request", "give param.subject=text"),
        ("/api/sessions?from=yesterday", 400, "bad_request", "yesterday"),
        ("/api/sessions?from=2026-10-02&to=2026-10-01", 400, "bad_request", "ends before it begins"),
        ("/api/sessions?outcome=good", 400, "bad_request", "auth_failed"),
        ("/api/sessions?limit=100000", 400, "bad_request", "1000"),
        ("/api/sessions?after=x", 400, "bad_request", "after"),
        ("/api/sessions?team=other", 404, "not_found", "other"),
        ("/api/sessions?tz=Mars/Base", 400, "bad_request", "Mars"),
        ("/api/session", 400, "bad_request", "id"),
        ("/api/session?id=none", 404, "not_found", "session"),
        ("/api/coverage?stream=none", 400, "bad_request", "stream"),
        ("/api/reports/none", 404, "not_found", "none"),
        ("/api/reports/r02?param.burst_count=many", 400, "bad_request", "burst_count"),
        ("/api/reports/r18?param.percentile=1.5", 400, "bad_request", "from 0 to 1"),
        ("/api/reports/r21", 400, "bad_request", "subject is missing"),
        ("/api/reports/r21?param.subject=%20", 400, "bad_request", "param.subject: the value is empty"),
        ("/api/reports/r02?run=1", 400, "bad_request", "unknown parameter"),
        ("/api/reports/r02?param.other=1", 400, "bad_request", "other"),
        ("/api/reports/r02?other=1", 400, "bad_request", "other"),
        ("/api/findings?stream=x", 400, "bad_request", "stream"),
        ("/api/status?team=other", 404, "not_found", "team"),
        ("/api/nowhere", 404, "not_found", "/api/"),
        ("/api/sessions?team=a&team=b", 400, "bad_request", "parameter team occurs twice"),
        ("/api/sessions?team=", 400, "bad_request", "team: the value is empty"),
        ("/api/reports/%FF", 400, "bad_request", "UTF-8"),
    ] {
        let answer = world.get(path);
        assert_eq!((answer.status, answer.refusal().as_str()), (status, code), "{path}");
        assert!(answer.body.contains(named), "{path}: {}", answer.body);
    }
    let answer = super::http::ask(&world.daemon.address, "POST", "/api/sql", &[], "{\"query\":\"SELECT 1\"}");
    assert_eq!((answer.status, answer.refusal().as_str()), (403, "forbidden"), "SQL is off unless configured");
    for path in ["/api", "/api/", "/api/status"] {
        let answer = super::http::ask(&world.daemon.address, "POST", path, &[], "");
        assert_eq!((answer.status, answer.refusal().as_str()), (405, "method_not_allowed"), "{path}");
        assert_eq!(answer.header("allow"), "GET,HEAD", "{path}");
    }
    world.daemon.stop();
}

#[test]
fn reports_are_listed_and_answered_as_the_program_answers_them() {
    let world = Lonely::new("");
    let listed = world.get("/api/reports").json();
    let param = |report: &str, name: &str| {
        let of = |list: &Value, key: &str, is: &str| {
            list.as_array().unwrap().iter().find(|one| one[key] == is).cloned().unwrap()
        };
        of(&of(&listed["reports"], "id", report)["params"], "name", name)
    };
    let percentile = param("R18", "percentile");
    assert_eq!(
        (&percentile["min"], &percentile["max"], &percentile["choices"]),
        (&json!("0"), &json!("1"), &Value::Null)
    );
    assert_eq!(param("R14", "workdays")["choices"][0], "mon");
    assert_eq!(param("R21", "subject")["required"], true);
    let listed: BTreeSet<&str> =
        listed["reports"].as_array().unwrap().iter().map(|report| report["id"].as_str().unwrap()).collect();
    assert!(listed.len() >= 26 && listed.contains("R02"), "{listed:?}");
    let arguments = [
        "report",
        "run",
        "r02",
        "--from",
        "2026-10-01",
        "--to",
        "2026-11-01",
        "--format",
        "json",
        "--param",
        "burst_count=2",
    ];
    let program = world.place.run(&arguments).json();
    let api = world.get(&format!("/api/reports/failed-authentications?{OCTOBER}&param.burst_count=2")).json();
    assert_eq!(api["rows"], program["rows"]);
    for member in ["period", "params", "rows", "coverage", "ledger", "query_sha256"] {
        assert_eq!(api["about"][member], program["about"][member], "{member}");
    }
    let all = world.get(&format!("/api/reports/R01?{OCTOBER}")).json();
    let program =
        world.place.run(&["report", "run", "r01", "--from", "2026-10-01", "--to", "2026-11-01", "--format", "json"]);
    assert_eq!(all["rows"], program.json()["rows"]);
    assert!(all["rows"].as_array().unwrap().len() > 30);
    let cut = world.get(&format!("/api/reports/r01?{OCTOBER}&limit=3")).json();
    assert_eq!((cut["rows"].as_array().unwrap().len(), &cut["truncated"]), (3, &json!(true)));
    let file = world.get(&format!("/reports/r01/file?{OCTOBER}&format=csv"));
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"r01-session-register-2026-10-01.csv\"");
    let arguments = ["report", "run", "r01", "--from", "2026-10-01", "--to", "2026-11-01", "--format", "csv"];
    let program = world.place.run(&arguments);
    let data =
        |text: &str| text.lines().filter(|line| !line.starts_with("# made")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(data(&file.body), data(program.text()));
    for format in ["html", "json", "ndjson", "parquet"] {
        let file = world.get(&format!("/reports/r01/file?{OCTOBER}&format={format}"));
        assert!(file.status == 200 && file.body.len() > 500, "{format}: {}", file.status);
    }
    assert_eq!(world.get("/reports/r01/file?format=exe").status, 400);
    world.daemon.stop();
}

#[test]
fn new_events_and_strangers_texts_are_shown_unchanged() {
    let (scene, daemon) = with_strangers();
    let get = |path: &str| get(&daemon.address, path).json();
    let team = scene.team(0);
    let found = get(&format!("/api/sessions?team={team}&user=onerror%3D"));
    let hostile = &found["sessions"][0];
    assert_eq!((&hostile["connection_id"], &hostile["outcome"]), (&json!("hostile-1"), &json!("ended")), "{found}");
    assert_eq!(hostile["peer_email"], HOSTILE);
    assert_eq!(hostile["duration_ms"], 600_000);
    let one = get(&format!("/api/session?team={team}&id=hostile-1"));
    let raws: Vec<&str> =
        one["events"].as_array().unwrap().iter().map(|event| event["raw"].as_str().unwrap()).collect();
    assert_eq!(raws.len(), 2);
    assert!(raws[0].starts_with("{\"id\":\"h1\",\"timestamp\":"), "the bytes as served: {raws:?}");
    let spaced = &get(&format!("/api/sessions?team={team}&user=lead@x.example"))["sessions"][0];
    assert_eq!(spaced["connection_id"], " lead", "a space at the end of an id stays");
    assert_eq!(&get(&format!("/api/session?team={team}&id=+lead"))["session"], spaced);
    let kept = get(&format!("/api/quarantine?team={team}"));
    assert!(kept["quarantine"].as_array().unwrap().iter().any(|row| row["event_id"] == "broken"), "{kept}");
    scene.connect(&team, "born-now");
    wait_for("the new event", || {
        let status = get(&format!("/api/status?team={team}"));
        let seq = status["teams"][0]["ledger_seq"].as_u64().unwrap();
        let heads = get(&format!("/api/ledger?team={team}"));
        (heads["heads"][0]["seq"].as_u64().unwrap() >= seq
            && scene.count("connections where event_id = 'born-now'") == 1)
            .then_some(())
    });
    let status = get("/api/status");
    assert_eq!(status["totals"]["teams"], 2);
    wait_for("health", || (get("/api/status")["healthy"] == true).then_some(()));
    let part = get("/api/status?limit=1");
    assert_eq!(part["teams"].as_array().unwrap().len(), 1);
    let rest = get(&format!("/api/status?limit=1&after={}", part["next"].as_str().unwrap()));
    assert_ne!(rest["teams"][0]["team"], part["teams"][0]["team"]);
    assert_eq!(rest["next"], Value::Null);
    daemon.stop();
}
