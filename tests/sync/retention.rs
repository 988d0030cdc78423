//! `annals retention` and `annals hold` through the command line: expired rows are gone and never return, held rows stay, and the archive
//! verifies.

use crate::age;
use crate::faulty_service;

use age::age;
use faulty_service::laws::{findings, nanos, verified, word};
use faulty_service::program::put;
use faulty_service::{HOUR, Kind, Program, Run, Service, events};
use serde_json::Value;

/// 2025-01-01T00:00:00Z.
const JANUARY: i64 = 1_735_689_600;
const FEBRUARY: i64 = JANUARY + 31 * DAY_SECONDS;
const MARCH: i64 = FEBRUARY + 28 * DAY_SECONDS;
const DAY_SECONDS: i64 = 86_400;
const SINCE: [&str; 2] = ["--since", "2025-01-01"];
/// The service shows 2025, so this machine's clock is years ahead of it.
const APPLY: [&str; 3] = ["retention", "apply", "--trust-clock"];
const DEVICE: &str = "team-one-computer-1";
pub const POLICY: &str = "[retention]\nconnections = \"1y\"\nquarantine = \"1y\"\nactivity = \"100y\"\n";

/// Two months and a half, read in March, with a session that crosses from January to February.
pub fn read() -> (Service, Program) {
    let service = Service::at(MARCH + 15 * DAY_SECONDS);
    let program = Program::of(&service);
    {
        let mut world = service.world();
        for day in [0, 9, 30] {
            world.fill(JANUARY + day * DAY_SECONDS, 0..1);
        }
        for day in [3, 20] {
            world.fill(FEBRUARY + day * DAY_SECONDS, 0..1);
        }
        world.fill(MARCH, 12..15);
        for (n, at) in [(0, FEBRUARY - 600), (1, FEBRUARY - 300), (2, FEBRUARY + 1_800)] {
            world.add(Kind::Connections, nanos(at), Some(DEVICE), events::connection(90_000 + n, at * 1_000, DEVICE));
        }
    }
    program.sync(&SINCE).ended(0);
    (service, program)
}

fn rows(run: &Run) -> Vec<Value> {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// Dataset, month and a third column of each row.
fn months(run: &Run, column: &str) -> Vec<(String, String, String)> {
    let text = |row: &Value| row[column].as_str().map_or_else(|| row[column].to_string(), str::to_owned);
    rows(run).iter().map(|row| (word(row, "dataset"), word(row, "month"), text(row))).collect()
}

fn count(program: &Program, table: &str, time: &str, from: &str, to: &str) -> i64 {
    let query = format!(
        "select count(*)::bigint as n from {table} where {time} >= timestamp '{from} 00:00:00' and {time} < timestamp '{to} 00:00:00'"
    );
    program.sql(&query)[0]["n"].as_i64().unwrap()
}

pub fn connections(program: &Program, from: &str, to: &str) -> i64 {
    count(program, "connections", "event_time", from, to)
}

fn of(dataset: &str, month: &str, text: &str) -> (String, String, String) {
    (dataset.to_owned(), month.to_owned(), text.to_owned())
}

#[test]
fn expired_months_are_removed_in_one_line_and_never_return() {
    let (service, program) = read();
    let plan = program.run(&["retention", "plan", "--format", "json"]).ended(0).says(&["nothing ever expires"]);
    assert!(rows(&plan).is_empty(), "without a policy nothing is due");
    program.configure(POLICY);
    let plan = program.run(&["retention", "plan", "--format", "json"]).ended(0);
    let open = "some of its windows are not sealed yet";
    let due = [of("connections", "2025-01", ""), of("connections", "2025-02", ""), of("connections", "2025-03", open)];
    assert_eq!(months(&plan, "kept_by"), due);

    let (january, february) = (("2025-01-01", "2025-02-01"), ("2025-02-01", "2025-03-01"));
    let of_february = connections(&program, february.0, february.1);
    let (before, lines) = (connections(&program, january.0, january.1), program.ledger_lines());
    assert!(before > 30 && of_february > 20);
    let dry = program.run(&["retention", "apply", "--dry-run", "--format", "json"]).ended(0);
    let gone = months(&dry, "dataset").into_iter().map(|(dataset, month, _)| (dataset, month)).collect::<Vec<_>>();
    let pairs =
        ["connections", "sessions"].map(|of| ["2025-01", "2025-02"].map(|month| (of.to_owned(), month.to_owned())));
    assert_eq!(gone, pairs.concat());
    assert_eq!(program.ledger_lines(), lines, "a dry run writes nothing");

    // The held month stays, and the output names it; the other month expires.
    program
        .run(&["hold", "add", "--id", "CASE-7", "--reason", "a claim", "--from", "2025-02-10", "--to", "2025-02-11"])
        .ended(0)
        .says(&["CASE-7"]);
    let lines = program.ledger_lines();
    program.run(&["retention", "apply"]).ended(1).says(&["no month was removed", "--trust-clock"]);
    assert_eq!(program.ledger_lines(), lines, "the last read does not confirm the clock");
    let run = program.run(&[&APPLY[..], &["--format", "json"]].concat());
    let run = run.ended(1).says(&["2025-02", "held by CASE-7"]);
    let gone = [of("connections", "2025-01", &before.to_string())];
    assert_eq!(months(&run, "rows")[..1], gone);
    verified(&program);
    assert_eq!(connections(&program, january.0, january.1), 0);
    assert_eq!(connections(&program, february.0, february.1), of_february);
    assert_eq!(count(&program, "activity", "event_time", january.0, january.1), 36, "it has another class");
    assert_eq!(count(&program, "sessions", "first_event_at", january.0, january.1), 0);
    let tail = program.sql("select outcome, event_count from sessions where connection_id = 'conn-30000'");
    assert_eq!((tail[0]["outcome"].as_str(), tail[0]["event_count"].as_i64()), (Some("closed_only"), Some(1)));

    // The service still shows the expired month, and Annals does not read it again.
    let held = faulty_service::laws::archived(&program);
    for arguments in [&[][..], &["--rescan"], &["--since", "2025-01-01", "--rescan"]] {
        program.sync(arguments).ended(0);
        assert_eq!(faulty_service::laws::archived(&program), held, "{arguments:?}");
    }
    let events = [0, 3].map(|n| service.world().connection(JANUARY + 40_000 + n, n));
    program.sync(&["--since", "2025-01-01", "--rescan"]).ended(0);
    assert_eq!(
        faulty_service::laws::archived(&program),
        held,
        "late events {events:?} of an expired month are not read either"
    );
    it_is_said(&program);

    // After the release, the next run expires the month. No other month ever expires.
    program.run(&["hold", "release", "CASE-7", "--reason", "settled out of court"]).ended(0);
    program.run(&APPLY).ended(0);
    assert_eq!(connections(&program, february.0, february.1), 0);
    verified(&program);
    age(&program.archive());
    program.run(&["vacuum"]).ended(0);
    verified(&program);
    let left = faulty_service::program::files_below(&program.archive().join("tables/connections"));
    assert!(left.iter().all(|path| path.to_str().unwrap().contains("month=2025-03")), "{left:?}");
    let again = program.run(&[&APPLY[..], &["--format", "json"]].concat()).ended(0);
    assert!(rows(&again).is_empty(), "an expired month is not due again");
}

/// Asserts that no output calls expired rows a gap or missing.
fn it_is_said(program: &Program) {
    let states = program.sql(
        "select distinct state from coverage where stream = 'connections' and window_start < timestamp '2025-02-01 00:00:00'",
    );
    assert_eq!(states.iter().map(|row| word(row, "state")).collect::<Vec<_>>(), ["expired"]);
    let said = program.sql("select dataset, policy, rows::bigint as n from expired order by dataset");
    assert_eq!(word(&said[0], "policy"), "connections = 1y");
    let period = ["--from", "2025-01-01", "--to", "2025-02-01"];
    let report = program.run(&[&["report", "run", "R01", "--format", "html"][..], &period].concat());
    assert!(report.stdout.contains("expired under connections = 1y on"), "{}", report.said());
    let bare = program.run(&[&["report", "run", "R01", "--format", "csv"][..], &period].concat());
    let top: Vec<&str> = bare.stdout.lines().take(6).collect();
    assert!(top.iter().any(|line| line.contains("expired: ") && line.contains("connections = 1y")), "{top:?}");
    let out = program.run(&[&["report", "pack", "-o", "pack", "--reports", "R01"][..], &period].concat());
    assert_eq!(out.code, Some(0), "{}", out.said());
    for file in ["index.html", "about.json", "reports/r01-session-register.html"] {
        let text = std::fs::read_to_string(program.home().join("pack").join(file)).unwrap();
        assert!(text.contains("expired under connections = 1y on 2"), "{file}");
    }
    let coverage = std::fs::read_to_string(program.home().join("pack/coverage.csv")).unwrap();
    assert!(coverage.contains("connections,") && coverage.contains(",expired,"), "{coverage}");
    program.run(&["status"]).ended(0).says(&["expired", "connections = 1y"]);
    let of_r25 = [&["report", "run", "R25", "--format", "json", "--from", "2020-01-01"][..]].concat();
    let r25 = program.run(&of_r25);
    for word in ["CASE-7", "\"expired\"", "connections = 1y", "\"held\""] {
        assert!(r25.stdout.contains(word), "{word}: {}", r25.said());
    }
}

#[test]
fn holds_are_listed_and_wrong_use_is_reported_in_one_line() {
    let (_service, program) = read();
    let add = |more: &[&str]| program.run(&[&["hold", "add"], more].concat());
    let good = ["--id", "CASE-1", "--reason", "a claim", "--by", "legal"];
    add(&good).ended(0);
    let lines = program.ledger_lines();
    add(&good).ended(0).says(&["CASE-1 already exists"]);
    assert_eq!(program.ledger_lines(), lines, "a repeated command writes nothing");
    add(&["--id", "CASE-2", "--reason", "a person", "--team", "team-one", "--subject", "Ann@Example.com"]).ended(0);
    for (more, word) in [
        (&["--id", "CASE-3", "--reason", ""][..], "empty"),
        (&["--id", "CASE-3", "--reason", "   "], "empty"),
        (&["--id", "", "--reason", "x"], "empty"),
        (&["--id", "CASE-3"], "--reason"),
        (&["--id", "CASE-3", "--reason", "about ann@example.com"], "address"),
        (&["--id", "CASE-3", "--reason", "x", "--from", "2025-02-01", "--to", "2025-02-01"], "not after"),
        (&["--id", "CASE-3", "--reason", "x", "--team", "nobody"], "nobody"),
        (&["--id", "CASE-3", "--reason", "x", "--subject", " "], "--subject"),
        (&["--id", "CASE-3", "--reason", "x", "--subject", &"x".repeat(1_025)], "limit of 1024"),
        (&["--id", "CASE-1", "--reason", "another reason"], "CASE-1"),
    ] {
        let run = add(more).ended(2).says(&[word]);
        assert!(run.stderr.lines().count() <= 8, "{run:?}");
    }
    program.run(&["hold", "release", "CASE-9", "--reason", "x"]).ended(2).says(&["CASE-9"]);
    program.run(&["hold", "release", "CASE-1", "--reason", ""]).ended(2).says(&["empty"]);
    program.run(&["hold", "release", "CASE-1", "--reason", "closed"]).ended(0);
    program.run(&["hold", "release", "CASE-1", "--reason", "closed"]).ended(2).says(&["already released"]);
    add(&good).ended(2).says(&["CASE-1"]);
    add(&["--id", "CASE-4", "--reason", "a short one"]).ended(0);
    program.run(&["hold", "release", "CASE-4"]).ended(0).says(&["releases hold CASE-4"]);

    let listed = rows(&program.run(&["hold", "list", "--format", "json"]).ended(0));
    let of = |row: &Value| [word(row, "hold_id"), word(row, "scope"), word(row, "release_reason")];
    let expected = [["CASE-1", "all", "closed"], ["CASE-2", "team", ""], ["CASE-4", "all", "no reason given"]];
    assert_eq!(listed.iter().map(of).collect::<Vec<_>>(), expected);
    // The ledger contains only a keyed digest of the subject.
    for (path, bytes) in program.ledger() {
        assert!(!String::from_utf8_lossy(&bytes).to_lowercase().contains("example.com"), "{}", path.display());
    }
    // A hold on a subject keeps every month, because any row can be about the subject.
    program.configure(POLICY);
    program.run(&APPLY).ended(1).says(&["held by CASE-2"]);
    assert!(connections(&program, "2025-01-01", "2025-02-01") > 30);

    for (text, word) in [
        ("[retention]\nconections = \"7y\"\n", "conections"),
        ("[retention]\nsessions = \"7y\"\n", "sessions"),
        ("[retention]\nconnections = \"7 parsecs\"\n", "7 parsecs"),
        ("[retention.teams.\"team-one\"]\nactivity = \"0d\"\n", "0d"),
        ("[schedule]\nretention = \"now\"\n", "schedule.retention"),
    ] {
        program.configure(text);
        program.run(&["retention", "plan"]).ended(2).says(&[word]);
    }
    program.configure("[retention]\nconnections = \"1y\"\n[retention.teams.\"team-one\"]\nconnections = \"forever\"\n");
    assert!(rows(&program.run(&["retention", "plan", "--format", "json"]).ended(0)).is_empty(), "a team of its own");
}

/// Cuts the newest ledger line of the last team: the state after a kill right before this commit.
fn cut_last_line(program: &Program) {
    let (path, bytes) = program.ledger().pop().unwrap();
    let end = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    put(&path, &bytes[..end]);
}

#[test]
fn a_repeated_hold_is_added_where_an_interruption_left_it_out() {
    let (service, program) = read();
    {
        let mut world = service.world();
        world.add_team("team-two");
        world.connection_of(1, 0, MARCH, 0);
    }
    program.sync(&SINCE).ended(0);
    let add = |reason: &str| {
        program.run(&["hold", "add", "--id", "CASE-1", "--reason", reason, "--subject", "ann@example.com"])
    };
    add("a claim").ended(0).says(&["team-one", "team-two"]);
    cut_last_line(&program);
    let run = add("a claim").ended(0).says(&["team-two", "adds hold CASE-1"]);
    assert!(!run.said().contains("team-one"), "{}", run.said());
    let lines = program.ledger_lines();
    add("a claim").ended(0).says(&["CASE-1 already exists"]);
    add("another claim").ended(2).says(&["different hold"]);
    assert_eq!(program.ledger_lines(), lines);
    // A relative date is another time now, and the error names the time to give.
    let since = |from: &str| program.run(&["hold", "add", "--id", "CASE-2", "--reason", "a claim", "--from", from]);
    since("-30d").ended(0);
    cut_last_line(&program);
    let refused = since("-30d").ended(2).says(&["another period", "give --from 20", "and no --to"]);
    let from = refused.stderr.split("give --from ").nth(1).unwrap().split(' ').next().unwrap();
    since(from).ended(0).says(&["team-two", "adds hold CASE-2"]);
    verified(&program);
}

#[test]
fn a_repeated_apply_makes_the_sessions_that_an_interrupted_one_did_not_make() {
    let (_service, program) = read();
    program.configure(POLICY);
    // The hold keeps February, so no month is due for the second run.
    let hold = ["hold", "add", "--id", "CASE-7", "--reason", "a claim", "--from", "2025-02-10", "--to", "2025-02-11"];
    program.run(&hold).ended(0);
    program.run(&APPLY).ended(1).says(&["held by CASE-7"]);
    let sessions = || program.sql("select connection_id, outcome, event_count from sessions order by all");
    let whole = sessions();
    cut_last_line(&program);
    assert!(sessions().len() < whole.len(), "the rest of a session that began in January is missing");
    program.run(&APPLY).ended(1).says(&["held by CASE-7"]);
    assert_eq!(sessions(), whole);
    verified(&program);
    let lines = program.ledger_lines();
    program.run(&APPLY).ended(1);
    assert_eq!(program.ledger_lines(), lines, "nothing is left to do");
}

#[test]
fn apply_lists_the_expired_months_despite_a_damaged_table_and_its_repetition_publishes_the_table() {
    let (_service, program) = read();
    program.configure(POLICY);
    program.run(&["publish"]).ended(0);
    let damaged = program.archive().join("tables/sessions/metadata/v1.metadata.json");
    let bytes = std::fs::read(&damaged).unwrap();
    put(&damaged, b"");
    let apply = || program.run(&[&APPLY[..], &["--format", "json"]].concat());
    let gone = months(&apply().ended(1).says(&["v1.metadata.json"]), "dataset");
    let is_listed = |month: &str| gone.iter().any(|(dataset, of, _)| dataset == "connections" && of == month);
    assert!(is_listed("2025-01") && is_listed("2025-02"), "{gone:?}");
    apply().ended(1).says(&["v1.metadata.json"]);
    put(&damaged, &bytes);
    assert!(rows(&apply().ended(0)).is_empty(), "no month is due");
    let published = rows(&program.run(&["publish", "--format", "json"]).ended(0));
    assert!(published.iter().all(|row| row["is_new"] == false), "{published:?}");
    assert!(published.iter().any(|row| row["table"] == "sessions" && row["version"] == 2), "{published:?}");
    program.run(&["publish", "--check"]).ended(0);
}

#[test]
fn a_policy_of_an_unknown_team_is_named_and_a_wrong_team_is_an_error_alone() {
    let (_service, program) = read();
    let run = program.run(&["retention", "plan", "--team", "nope"]).ended(2).says(&["nope"]);
    assert!(!run.said().contains("nothing ever expires"), "{}", run.said());
    program.configure(&format!(
        "{POLICY}[retention.teams.nope]\nactivity = \"1y\"\n[retention.teams.team-one]\nactivity = \"2y\"\n"
    ));
    for verb in [&["plan"][..], &["apply", "--dry-run"]] {
        let run = program.run(&[&["retention"], verb].concat()).ended(0);
        let named: Vec<_> = run.stderr.lines().filter(|line| line.contains("[retention.teams]")).collect();
        assert!(matches!(named[..], [line] if line.contains("id nope,")), "{}", run.stderr);
    }
}

/// Quarantine expires by the time at which Annals first saw an event. An older event that Annals never saw is kept.
#[test]
fn a_longer_backfill_keeps_malformed_events_that_it_sees_for_the_first_time() {
    let service = Service::at(MARCH + 15 * DAY_SECONDS);
    let program = Program::of(&service);
    let odd = |at: i64| {
        let text = events::plain_activity(at * 1_000_000_000);
        format!("{},\"teamOtherEvent\":{{}}}}", text.strip_suffix('}').unwrap())
    };
    for at in [FEBRUARY + HOUR, MARCH + HOUR] {
        service.world().fill(at, 0..1);
        service.world().add(Kind::Activity, nanos(at), None, odd(at));
    }
    let kept = || program.sql("select raw from quarantine").iter().map(|row| word(row, "raw")).collect::<Vec<_>>();
    let not_kept = || findings(&program, "quarantine_expired").len();
    let sync = |since: &str, more: &[&str]| {
        program.sync(&[&["--stream", "activity", "--since", since], more].concat()).ended(0);
        verified(&program);
    };
    sync("2025-03-01", &[]);
    assert_eq!(kept(), [odd(MARCH + HOUR)]);
    service.set_clock(MARCH + 45 * DAY_SECONDS);
    sync("2025-03-01", &[]);
    program.configure("[retention]\nquarantine = \"1d\"\n");
    program.run(&APPLY).ended(0);
    assert_eq!((kept(), not_kept()), (Vec::new(), 0));
    sync("2025-01-01", &[]);
    assert_eq!((kept(), not_kept()), (vec![odd(FEBRUARY + HOUR)], 0));
    // The service still shows the expired event.
    sync("2025-01-01", &["--rescan"]);
    assert_eq!((kept(), not_kept()), (vec![odd(FEBRUARY + HOUR)], 1));
}

#[test]
fn quarantine_and_the_inventory_expire_by_their_own_classes() {
    let (service, program) = read();
    service.set_clock(MARCH + 16 * DAY_SECONDS + HOUR);
    program.sync(&[]).ended(0);
    program.configure("[retention]\ninventory = \"1d\"\nquarantine = \"1d\"\n");
    // The newest month of the inventory holds the current state, so it never expires.
    let plan = program.run(&["retention", "plan", "--format", "json"]).ended(0);
    assert!(rows(&plan).is_empty(), "{plan:?}");
    program.run(&APPLY).ended(0);
    verified(&program);

    // In April a computer is removed. Then March's versions ended before the class, and the state since April stays.
    service.set_clock(MARCH + 45 * DAY_SECONDS);
    service.world().remove_computer("team-one-computer-3", MARCH + 44 * DAY_SECONDS, true);
    program.sync(&[]);
    let of = |from: &str, to: &str| {
        let query = format!(
            "select distinct device_id from inventory_computers where valid_from < timestamp '{to}' \
             and coalesce(valid_to, timestamp '2100-01-01') > timestamp '{from}' order by 1"
        );
        program.sql(&query).iter().map(|row| word(row, "device_id")).collect::<Vec<_>>()
    };
    let (march, now) = (("2025-03-16", "2025-03-31"), ("2025-04-20", "2025-05-01"));
    let (before, standing) = (of(march.0, march.1), of(now.0, now.1));
    assert!(before.len() > standing.len() && !standing.is_empty(), "{before:?} {standing:?}");
    let plan = program.run(&["retention", "plan", "--format", "json"]).ended(0);
    assert!(months(&plan, "month").iter().all(|(_, month, _)| month == "2025-03"), "{plan:?}");
    program.run(&APPLY).ended(0);
    verified(&program);
    assert_eq!((of(march.0, march.1), of(now.0, now.1)), (Vec::new(), standing));
    let report =
        program.run(&["report", "run", "R11", "--format", "csv", "--from", "2025-03-01", "--to", "2025-04-01"]);
    let said: Vec<&str> = report.stdout.lines().filter(|line| line.contains("expired: ")).collect();
    assert!(said.len() == 1 && said[0].contains(" inventory: ") && said[0].contains("inventory = 1d"), "{said:?}");
    program.sync(&[]);
    assert_eq!(of(march.0, march.1), Vec::<String>::new(), "it is not read again");
}
