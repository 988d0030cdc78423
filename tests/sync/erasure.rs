//! `annals erase` through the command line: the replaced and the kept values, later re-scans, and kills at any moment.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::faulty_service::parquet_files::all_texts;
use crate::faulty_service::program::{files_below, put};
use crate::faulty_service::world::Kind;
use crate::faulty_service::{DAY, HOUR, Program, SINCE, Service, events, scene};
use crate::retention;

/// A peer of each seventh connection event.
pub const PEER: &str = "p3@example.com";
pub const USER: &str = "user-zoë";
const ORDER: [&str; 6] = ["erase", "--order", "DPO-1", "--subject", PEER, "--subject"];
const PERIOD: [&str; 4] = ["--from", "2026-11-01", "--to", "2026-12-01"];

/// The places of the subject's names outside the connections.
const PAYLOADS: [&str; 5] = [
    r#"{"user":{"id":"user-zo\u00EB","email":"P3@Example.com"}}"#,
    r#"{"p3@example.com":["\u0070\u0033\u0040example.com"],"by":"user-zoë"}"#,
    r#"{"text":"{\"email\":\"p3@example.com\",\"of\":\"p3@example.community\"}"}"#,
    r#"{"user":"p3@example.com.invalid"}"#,
    r#"{"user":"somebody"}"#,
];

/// Reads some days with the subject; some of the days are sealed.
pub fn read() -> (Service, Program) {
    let (service, program) = scene();
    {
        let mut world = service.world();
        world.fill(DAY, 0..3);
        for n in 0..60 {
            world.connection(DAY + 2 * HOUR + n * 600, n);
        }
        for (n, payload) in (0..).zip(PAYLOADS) {
            let at = (DAY + 5 * HOUR + n * 1_800) * 1_000_000_000 + n;
            let text = events::activity_event("teamUserLoggedInEvent", at, payload);
            world.add(Kind::Activity, i128::from(at), None, text);
        }
        // An unreadable event, for quarantine.
        let at = (DAY + 9 * HOUR) * 1_000_000_000;
        let text =
            format!(r#"{{"header":{{"eventTimestampUnixNano":{at}}},"oneEvent":{{"a":"{PEER}"}},"twoEvent":{{}}}}"#);
        world.add(Kind::Activity, i128::from(at), None, text);
    }
    program.sync(&SINCE).ended(0);
    (service, program)
}

fn order(program: &Program, more: &[&str]) -> crate::faulty_service::Run {
    program.run(&[&ORDER[..], &[USER], more].concat())
}

/// Asserts that no file contains the subject, neither in its bytes nor in its decoded columns.
pub fn assert_gone(program: &Program) {
    let files = files_below(&program.home().join("."));
    let files = files.into_iter().map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
    for text in all_texts(program).into_iter().chain(files) {
        let plain = text.to_lowercase().replace("\\u00eb", "ë").replace("\\u0070\\u0033\\u0040", "p3@");
        let plain = plain.replace("p3@example.community", "").replace("p3@example.com.invalid", "");
        assert!(!plain.contains(PEER) && !plain.contains(USER), "{text}");
    }
}

pub fn pseudonyms(program: &Program) -> BTreeSet<String> {
    let texts = all_texts(program);
    let words = texts.iter().flat_map(|text| text.split(['"', '\\']));
    words.filter(|word| word.starts_with("erased-")).map(str::to_owned).collect()
}

/// Counts of each dataset, which an erasure must not change.
pub fn counts(program: &Program) -> Vec<Value> {
    program.sql(
        "select 'a' as d, count(*) as n, sum(event_time_ns) as t, count(distinct event_id) as i, null as e from activity \
         union all select 'c', count(*), sum(event_time_ns), count(distinct event_id), count(distinct peer_email) from connections \
         union all select 'b', count(*), sum(event_time_ns), count(distinct event_id), null from billing \
         union all select 'q', count(*), sum(event_time_ns), count(distinct event_id), null from quarantine \
         union all select 's', count(*), sum(epoch_us(first_event_at)), count(distinct connection_id), sum(event_count) from sessions order by 1",
    )
}

pub fn rows(run: &str) -> Vec<Value> {
    serde_json::from_str(run).unwrap()
}

#[test]
fn an_erased_subject_is_not_added_again_by_later_readings() {
    let (service, program) = read();
    let before = (counts(&program), program.ledger_lines());
    let dry = order(&program, &["--dry-run", "--format", "json"]).ended(0).says(&["nothing was changed"]);
    assert_eq!(program.ledger_lines(), before.1);
    let found = rows(&dry.stdout);
    let of = |dataset: &str| found.iter().filter(|row| row["dataset"] == dataset).count();
    assert_eq!((of("activity"), of("quarantine")), (3, 1), "{found:#?}");
    assert!(of("connections") > 10 && of("sessions") > 10, "{found:#?}");

    let done = rows(&order(&program, &["--format", "json"]).ended(0).stdout);
    for row in &done {
        assert_eq!(row["rows"], of(row["dataset"].as_str().unwrap()), "{row}");
    }
    assert_gone(&program);
    assert_eq!(pseudonyms(&program).len(), 2);
    program.run(&["verify"]).ended(0);
    program.run(&["status"]).ended(0).says(&["team-one"]);
    assert!(!program.run(&["status"]).stdout.contains("unfinished erasure"));
    assert_eq!(counts(&program), before.0);
    let marked = program.sql("select erased, count(*)::int as n from connections group by all order by n");
    assert_eq!((&marked[0]["erased"], &marked[0]["n"]), (&Value::from("DPO-1"), &Value::from(of("connections"))));

    // The service still shows all events; re-scans add nothing.
    for arguments in [&[&SINCE[..], &["--rescan"]].concat(), &SINCE.to_vec()] {
        program.sync(arguments).ended(0);
    }
    service.set_clock(DAY + 400 * HOUR);
    program.sync(&SINCE).ended(0);
    program.run(&["quarantine", "retry"]).ended(0);
    let after = counts(&program);
    assert_eq!(after, before.0, "a re-scan added rows");
    assert_gone(&program);
    program.run(&["verify"]).ended(0);
    let changes = program.sql("select kind, count(*)::int as n from findings where kind in ('changed_upstream', 'no_longer_served', 'late') group by all");
    assert!(changes.is_empty(), "{changes:?}");

    // Repeating the order changes nothing, and R25 is its certificate.
    let lines = program.ledger_lines();
    order(&program, &[]).ended(0).says(&["no row holds the subject"]);
    assert_eq!(program.ledger_lines(), lines);
    let certificate = program.run(
        &[&["report", "run", "r25", "--bare", "--format", "json"], &["--from", "2020-01-01", "--to", "2099-12-31"][..]]
            .concat(),
    );
    let certificate = rows(&certificate.ended(0).stdout);
    let orders: Vec<&Value> = certificate.iter().filter(|row| row["state"] == "erased").collect();
    assert_eq!(orders.len(), done.len(), "{certificate:#?}");
    for row in orders {
        assert_eq!(
            (&row["order_id"], row["line_sha256"].as_str().unwrap().len()),
            (&Value::from("DPO-1"), 64),
            "{row}"
        );
    }
}

/// A dry run of an order and the person's dossier show the same rows.
#[test]
fn a_dry_run_and_the_dossier_agree_row_for_row() {
    let (_service, program) = read();
    let dossier = [
        "report",
        "run",
        "r21",
        "--param",
        &format!("subject={PEER}"),
        "--param",
        &format!("aliases={USER}"),
        "--bare",
        "--format",
        "json",
    ];
    let dossier = rows(&program.run(&[&dossier, &PERIOD[..]].concat()).ended(0).stdout);
    let listed: BTreeSet<(String, String)> = dossier
        .iter()
        .map(|row| (row["source"].as_str().unwrap().to_owned(), row["id"].as_str().unwrap_or_default().to_owned()))
        .collect();
    let dry = rows(&order(&program, &["--dry-run", "--format", "json"]).ended(0).stdout);
    let found: BTreeSet<(String, String)> = dry
        .iter()
        .map(|row| (row["dataset"].as_str().unwrap().to_owned(), row["id"].as_str().unwrap().to_owned()))
        .filter(|(dataset, _)| dataset != "sessions")
        .collect();
    assert_eq!(found, listed);
}

#[test]
fn invalid_orders_are_refused_and_change_nothing() {
    let (_service, program) = read();
    let lines = program.ledger_lines();
    let files = files_below(&program.archive());
    let erase = |more: &[&str]| program.run(&[&["erase"], more].concat());
    erase(&["--order", "DPO-1", "--subject", "nobody@example.com"]).ended(0).says(&["no row holds the subject"]);
    for (arguments, says) in [
        (&["--order", "DPO-1", "--subject", "host"][..], "more than half"),
        (&["--order", "DPO-1", "--subject", "Admin"], "a word of the service"),
        (&["--order", "DPO-1", "--subject", PEER, "--subject", "computerhostname"], "a word of the service"),
        (&["--order", "DPO-1", "--subject", "team-one"], "the id of a team"),
        (&["--order", "DPO-1", "--subject", "teamUserLoggedInEvent"], "event type"),
        (&["--order", "DPO-1", "--subject", " "], "empty"),
        (&["--order", "a b", "--subject", PEER], "other characters"),
        (&["--order", "DPO-1", "--subject", PEER, "--team", "nowhere"], "nowhere"),
        (&["--subject", PEER], "--order"),
        (&["--order", "DPO-1"], "--subject"),
    ] {
        let run = erase(arguments).ended(2).says(&[says]);
        assert!(!run.said().contains(PEER), "{}", run.said());
    }
    assert_eq!((program.ledger_lines(), files_below(&program.archive())), (lines, files));
    order(&program, &[]).ended(0);
    erase(&["--order", "DPO-1", "--subject", "p4@example.com"]).ended(2).says(&["for another subject"]);
    erase(&["--order", "DPO-2", "--subject", "host", "--yes-all"]).ended(0);
    program.run(&["verify"]).ended(0);
    let marks = program.sql("select distinct erased from connections order by 1");
    assert_eq!(marks.iter().map(|row| row["erased"].as_str().unwrap()).collect::<Vec<_>>(), ["DPO-1 DPO-2", "DPO-2"]);
}

/// An order is not repeatable, so its result must not be lost.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_changes() {
    let (_service, program) = read();
    let before = (program.ledger_lines(), files_below(program.home()));
    let erase = [&ORDER[..], &[USER]].concat();
    for verb in [&erase[..], &["publish"], &["retention", "apply"], &["vacuum"], &["quarantine", "retry"]] {
        for output in ["nowhere/x.csv", "."] {
            let run = program.run(&[verb, &["-o", output]].concat()).ended(2).says(&[output, "cannot write this file"]);
            assert!(!run.said().contains(".annals-"), "{}", run.said());
        }
    }
    assert_eq!((program.ledger_lines(), files_below(program.home())), before);
}

#[test]
fn a_killed_order_continues_with_the_same_pseudonyms_when_it_is_repeated() {
    for millis in [0, 5, 20, 40, 60, 80, 100, 120, 140, 170, 200, 300] {
        let (_service, program) = read();
        let before = counts(&program);
        let killed = program.start(&[&ORDER[..], &[USER]].concat()).kill_after(Duration::from_millis(millis));
        let status = program.run(&["status"]).ended(0);
        if status.stdout.contains("unfinished erasure: DPO-1") {
            let other = ["erase", "--order", "DPO-1", "--subject", "p4@example.com"];
            program.run(&other).ended(2).says(&["for another subject"]);
        }
        let done = killed.code == Some(0) || !status.stdout.contains("unfinished erasure");
        order(&program, &[]).ended(0);
        assert_gone(&program);
        assert_eq!(pseudonyms(&program).len(), 2, "after {millis} ms, {done}");
        assert_eq!(counts(&program), before);
        program.run(&["verify"]).ended(0);
        assert!(!program.run(&["status"]).stdout.contains("unfinished erasure"));
    }
}

/// The key of a detection is a digest of the values in its row.
#[test]
fn an_order_removes_the_detections_from_the_lists_of_sent_alerts() {
    let (_service, program) = read();
    let paths = ["alerts.json", "alerts-2-of-8.json"].map(|name| program.archive().join("locks").join(name));
    let text = r#"{"targets":{"log":{"since":null,"lines":{},"beyond":[],"holding":[HELD]}},"verified":null}"#;
    let list = |holding: &str| text.replace("HELD", holding);
    let (both, one) = (list(r#""0123456789abcdef","R14:0123456789abcdef""#), list(r#""0123456789abcdef""#));
    paths.iter().for_each(|path| put(path, both.as_bytes()));
    let held = || paths.clone().map(|path| fs::read_to_string(path).unwrap());
    order(&program, &["--dry-run"]).ended(0);
    assert_eq!(held(), [both.clone(), both]);
    order(&program, &[]).ended(0);
    assert_eq!(held(), [one.clone(), one]);
}

/// An address has several spellings, and a hold on one protects the others.
#[test]
fn a_hold_on_an_address_stops_an_order_that_spells_it_differently() {
    let (service, program) = scene();
    let at = (DAY + 5 * HOUR) * 1_000_000_000;
    let text = events::activity_event("teamUserLoggedInEvent", at, r#"{"from":"2001:db8::1"}"#);
    service.world().add(Kind::Activity, i128::from(at), None, text);
    program.sync(&SINCE).ended(0);
    let erase = || program.run(&["erase", "--order", "DPO-1", "--subject", "2001:db8:0::1"]);
    program.run(&["hold", "add", "--id", "CASE-1", "--reason", "a case", "--subject", "2001:DB8::1"]).ended(0);
    erase().ended(1).says(&["CASE-1"]);
    program.run(&["hold", "release", "CASE-1", "--reason", "closed"]).ended(0);
    erase().ended(0);
    assert_eq!(program.sql("select count(*) as n from activity where payload like '%2001:%'")[0]["n"], 0);
}

/// Windows compares accounts without case, and begins a file with an invisible mark. An address of IPv4 can stand in the form of IPv6.
#[test]
fn a_value_is_found_in_another_case_and_in_another_form() {
    let (_service, program) = read();
    let found = |value: &str| {
        let run = program.run(&["erase", "--order", "DPO-1", "--dry-run", "--format", "json", "--subject", value]);
        rows(&run.ended(0).stdout)
    };
    for (value, other) in [
        (USER, "\u{feff}USER-ZOË\u{200b}"),
        (USER, "user-zoe\u{308}"),
        ("192.0.2.21", "::ffff:192.0.2.21"),
        ("192.0.2.21", "::ffff:192.0.2.21%eth0"),
    ] {
        assert!(!found(value).is_empty(), "{value}");
        assert_eq!(found(value), found(other), "{value}");
    }
    let hold = ["hold", "add", "--id", "CASE-1", "--reason", "a case", "--subject", "\u{feff}::ffff:192.0.2.21"];
    program.run(&hold).ended(0);
    program.run(&["erase", "--order", "DPO-1", "--subject", "192.0.2.21"]).ended(1).says(&["CASE-1", "with a port"]);
}

/// The person stands only in files of an expired month, which stay for the grace.
#[test]
fn an_order_reaches_expired_files_within_the_grace() {
    const GONE: &str = "gone@example.com";
    let (service, program) = retention::read();
    let at = 1_736_000_000;
    let text = events::connection(90_006, at * 1_000, "team-one-computer-1").replace("p0@example.com", GONE);
    assert!(text.contains(GONE), "{text}");
    service.world().add(Kind::Connections, i128::from(at) * 1_000_000_000, Some("team-one-computer-1"), text);
    program.sync(&["--since", "2025-01-01", "--rescan"]).ended(0);
    program.configure(retention::POLICY);
    program.run(&["retention", "apply", "--trust-clock"]).ended(0);
    let is_gone = || !all_texts(&program).iter().any(|text| text.contains(GONE));
    assert!(!is_gone());
    let erase = ["erase", "--order", "DPO-1", "--subject", GONE];
    let lines = program.ledger_lines();
    let dry = program.run(&[&erase[..], &["--dry-run"]].concat()).ended(0);
    let _ = dry.says(&["0 rows", "that no ledger line names"]);
    assert!(!is_gone());
    program.run(&erase).ended(0).says(&["no row holds the subject", "that no ledger line names"]);
    assert!(is_gone());
    assert!(!program.run(&["status"]).ended(0).stdout.contains("unfinished erasure"));
    program.run(&["verify"]).ended(0);
    program.run(&erase).ended(0).says(&["no row holds the subject: nothing is written"]);
    assert_eq!(program.ledger_lines(), lines);
}

/// Archives two teams and returns the lock of the first one, as if another process held it.
pub fn lock_one_of_two_teams(service: &Service, program: &Program) -> fs::File {
    {
        let mut world = service.world();
        world.add_team("team-two");
        for (team, n) in (0..2).flat_map(|team| (0..20).map(move |n| (team, n))) {
            world.connection_of(team, 0, DAY + 2 * HOUR + n * 600, n);
        }
    }
    program.sync(&SINCE).ended(0);
    let lock = fs::OpenOptions::new().write(true).open(program.archive().join("locks/team=team-one.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn status_names_an_unfinished_order() {
    let (service, program) = scene();
    let lock = lock_one_of_two_teams(&service, &program);
    let refused = order(&program, &[]).ended(1).says(&["team-one", "not erased", "give the order again to continue"]);
    assert!(!refused.said().contains(PEER), "{refused:?}");
    program.run(&["status"]).ended(0).says(&["unfinished erasure: DPO-1"]);
    assert_eq!(pseudonyms(&program).len(), 1);
    // The certificate and the check must not take a part for the whole.
    let certified = || {
        let r25 = ["report", "run", "r25", "--bare", "--format", "json", "--from", "2020-01-01", "--to", "2099-12-31"];
        let run = program.run(&r25);
        let of_order = |row: &&Value| row["class"] == "order" && row["severity"] == "high";
        let rows = rows(&run.stdout);
        let is_erased = rows.iter().any(|row| row["state"] == "erased");
        (is_erased, rows.iter().filter(of_order).count())
    };
    assert_eq!(certified(), (false, 2));
    program.run(&["verify"]).ended(0).says(&["UNFINISHED_ERASURE"]);
    let other = ["erase", "--order", "DPO-1", "--subject", "p4@example.com"];
    program.run(&other).ended(2).says(&["for another subject"]);
    lock.unlock().unwrap();
    order(&program, &[]).ended(0);
    assert_gone(&program);
    assert_eq!(pseudonyms(&program).len(), 1, "both teams have the same pseudonym");
    assert_eq!(certified(), (true, 0));
    assert!(!program.run(&["verify"]).ended(0).said().contains("UNFINISHED_ERASURE"));
    assert!(!program.run(&["status"]).ended(0).stdout.contains("unfinished erasure"));
}

#[test]
fn rows_under_a_hold_are_not_erased_and_the_hold_is_named() {
    let (_service, program) = read();
    let before = counts(&program);
    let hold = |arguments: &[&str]| program.run(&[&["hold"], arguments].concat()).ended(0);
    let only = |values: &[&str]| {
        let given = values.iter().flat_map(|value| ["--subject", value]);
        program.run(&["erase", "--order", "DPO-1"].into_iter().chain(given).collect::<Vec<_>>())
    };
    hold(&["add", "--id", "CASE-1", "--reason", "a case", "--from", "2026-11-10", "--to", "2026-11-11"]);
    order(&program, &[]).ended(1).says(&["CASE-1"]);
    order(&program, &["--dry-run"]).ended(0).says(&["CASE-1"]);
    hold(&["release", "CASE-1", "--reason", "closed"]);
    hold(&["add", "--id", "CASE-2", "--reason", "a case", "--subject", PEER]);
    order(&program, &[]).ended(1).says(&["CASE-2"]);
    // A hold on one of two subjects protects rows that name both.
    only(&[USER]).ended(1).says(&["CASE-2"]);
    hold(&["release", "CASE-2", "--reason", "closed"]);
    hold(&["add", "--id", "CASE-3", "--reason", "a case", "--subject", "nobody@example.com"]);
    hold(&["add", "--id", "CASE-4", "--reason", "a case", "--from", "2027-01-01", "--subject", PEER]);
    assert_eq!(counts(&program), before);
    assert!(program.sql("select * from erasures").is_empty());
    // Times in quarantine can be wrong, so a hold on the subject covers it.
    order(&program, &[]).ended(1).says(&["CASE-4"]);
    hold(&["release", "CASE-4", "--reason", "closed"]);
    order(&program, &[]).ended(0);
    assert_gone(&program);
    program.run(&["verify"]).ended(0);
}
