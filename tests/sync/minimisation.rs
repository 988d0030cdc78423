//! `[privacy] raw = "columns-only"` through the command line: the archive keeps no text, reads nothing twice, and is otherwise
//! equal to an archive with texts.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::awkward::laws::{open_gaps, verified};
use crate::awkward::parquet_files::all_texts;
use crate::awkward::program::files_below;
use crate::awkward::world::Kind;
use crate::awkward::{DAY, HOUR, Program, SINCE, Service, events, scene};
use crate::common::python::python_with_duckdb;

const COLUMNS_ONLY: &str = "[privacy]\nraw = \"columns-only\"\n";
const PERIOD: [&str; 4] = ["--from", "2026-11-01", "--to", "2026-12-01"];

/// Some days, with twins without ids, and an event that does not fit the schema.
fn world(service: &Service) {
    let mut world = service.world();
    world.fill(DAY, 0..4);
    for n in 0..60 {
        world.connection(DAY + 2 * HOUR + n * 600, n);
    }
    let at = (DAY + 5 * HOUR) * 1_000_000_000;
    for _ in 0..3 {
        world.add(Kind::Activity, i128::from(at), None, events::plain_activity(at));
    }
    let text =
        format!(r#"{{"header":{{"eventTimestampUnixNano":{at}}},"oneEvent":{{}},"twoEvent":{{"b":"odd one"}}}}"#);
    world.add(Kind::Activity, i128::from(at), None, text);
    world.billing(DAY + 6 * HOUR);
}

fn read(configuration: &str) -> (Service, Program) {
    let (service, program) = scene();
    world(&service);
    program.configure(configuration);
    program.sync(&SINCE).ended(0);
    // A computer is removed after its connections were read: their loss is a gap.
    service.set_clock(DAY + 86 * HOUR);
    service.world().remove_computer("team-one-computer-2", DAY + 85 * HOUR, true);
    program.sync(&[]).ended(3);
    (service, program)
}

fn counts(program: &Program) -> Vec<Value> {
    program.sql(
        "select 'activity' as s, count(*)::int as n, count(raw)::int as raw, count(payload)::int as payload, \
         count(distinct event_id)::int as ids from activity \
         union all select 'billing', count(*), count(raw), count(payload), count(distinct event_id) from billing \
         union all select 'connections', count(*), count(raw), 0, count(distinct event_id) from connections \
         union all select 'quarantine', count(*), count(raw), 0, count(distinct event_id) from quarantine order by 1",
    )
}

fn numbers(rows: &[Value], column: &str) -> Vec<i64> {
    rows.iter().map(|row| row[column].as_i64().unwrap()).collect()
}

/// Asserts that a re-scan of everything, an hour later, changes no row.
fn adds_nothing(service: &Service, program: &Program) {
    let before = (counts(program), program.sql("from sessions order by all"));
    for arguments in [&SINCE[..], &["--rescan"]] {
        program.sync(arguments).ended(0);
        assert_eq!((counts(program), program.sql("from sessions order by all")), before, "{arguments:?}");
    }
    service.set_clock(DAY + 180 * HOUR);
    program.sync(&["--rescan"]).ended(0);
    assert_eq!((counts(program), program.sql("from sessions order by all")), before, "sealed");
    let odd = program.sql("select kind from findings where kind in ('changed_upstream', 'late')");
    assert!(odd.is_empty(), "{odd:?}");
}

fn second_verifier_agrees(program: &Program) {
    let Some(python) = python_with_duckdb("the second verifier of an archive without texts") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second_verifier.py");
    let ended = Command::new(python).arg(script).arg(program.archive()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn without_kept_texts_every_other_column_is_the_same() {
    let (_, with) = read("");
    let (service, without) = read(COLUMNS_ONLY);
    let (kept, bare) = (counts(&with), counts(&without));
    assert_eq!((numbers(&bare, "n"), numbers(&bare, "ids")), (numbers(&kept, "n"), numbers(&kept, "ids")));
    assert!(numbers(&kept, "n").iter().all(|n| *n > 0), "{kept:?}");
    assert_eq!(numbers(&kept, "raw"), numbers(&kept, "n"));
    assert_eq!(numbers(&bare, "raw"), [0, 0, 0, numbers(&kept, "n")[3]], "only quarantine keeps its bytes");
    assert_eq!(numbers(&bare, "payload"), [0; 4]);
    for query in [
        "from sessions order by all",
        "select * exclude (raw, first_seen_at) from connections order by all",
        "select event_time_ns, event_type, token_info, redacted from activity order by all",
        "select stream, kind, subject, date_trunc('minute', from_time) as since, to_time, count from findings where kind <> 'archive_begins' order by all",
    ] {
        assert_eq!(without.sql(query), with.sql(query), "{query}");
    }
    assert!(!open_gaps(&with).is_empty(), "the removed computer leaves a gap in both");

    let files: Vec<Vec<u8>> = files_below(&without.archive()).into_iter().map(|path| fs::read(path).unwrap()).collect();
    let columns = all_texts(&without);
    let texts: Vec<String> = service.world().teams[0].events.iter().map(|event| event.text.clone()).collect();
    for text in texts.iter().filter(|text| !text.contains("odd one")) {
        let payload = text.split_once("},\"").map_or(text.as_str(), |(_, rest)| rest);
        assert!(columns.iter().all(|column| !column.contains(payload)), "{text}");
        assert!(!files.iter().any(|file| file.windows(payload.len()).any(|part| part == payload.as_bytes())), "{text}");
    }
    verified(&without);
    second_verifier_agrees(&without);
    adds_nothing(&service, &without);
    verified(&without);
    second_verifier_agrees(&without);
}

#[test]
fn each_stream_has_its_own_policy_and_a_change_affects_new_events() {
    let (service, program) = read("[privacy]\nraw = \"columns-only\"\n[privacy.streams]\nactivity = \"keep\"\n");
    let held = counts(&program);
    assert_eq!(numbers(&held, "raw")[..3], [numbers(&held, "n")[0], 0, 0]);
    let said = |report: &str| {
        let run = program.run(&[&["report", "run", report, "--format", "csv"][..], &PERIOD].concat());
        run.stdout.lines().filter(|line| line.starts_with('#')).take(8).map(str::to_owned).collect::<Vec<_>>()
    };
    let named = |lines: &[String], stream: &str| {
        lines.iter().any(|line| line.contains("payloads were not kept") && line.contains(stream))
    };
    assert!(named(&said("R22"), "billing"), "{:?}", said("R22"));
    assert!(!named(&said("R20"), "activity") && !named(&said("R01"), "connections"), "they miss nothing");
    let dossier = [&["report", "run", "R21", "--param", "subject=p3@example.com", "--format"][..], &["html"], &PERIOD];
    let page = program.run(&dossier.concat());
    assert!(
        page.stdout.contains("payloads were not kept") && page.stdout.contains("p3@example.com"),
        "{}",
        page.said()
    );

    // New events follow the new setting. Archived events do not change.
    program.configure("");
    service.world().connection(DAY + 80 * HOUR, 7);
    program.sync(&["--rescan"]).ended(0);
    let after = counts(&program);
    assert_eq!(numbers(&after, "raw")[2], 1);
    assert_eq!(numbers(&after, "n")[2], numbers(&held, "n")[2] + 1);
    adds_nothing(&service, &program);
    program.configure(COLUMNS_ONLY);
    adds_nothing(&service, &program);
    verified(&program);
}

#[test]
fn quarantine_and_erasure_recognise_an_event_without_its_text() {
    let (service, program) = read(COLUMNS_ONLY);
    let before = counts(&program);
    program.run(&["quarantine", "retry"]).ended(0);
    assert_eq!(counts(&program), before);
    program.run(&["erase", "--order", "DPO-1", "--subject", "p3@example.com"]).ended(0);
    assert!(all_texts(&program).iter().all(|text| !text.contains("p3@example.com")));
    assert_eq!(numbers(&counts(&program), "n"), numbers(&before, "n"));
    adds_nothing(&service, &program);
    verified(&program);
    second_verifier_agrees(&program);
}

#[test]
fn a_wrong_value_is_reported_in_one_line() {
    let (_service, program) = scene();
    for (text, words) in [
        ("[privacy]\nraw = \"none\"\n", ["none", "columns-only"]),
        ("[privacy]\nraw = true\n", ["line 2", "string"]),
        ("[privacy]\ntext = \"keep\"\n", ["text", "raw"]),
        ("[privacy.streams]\nsessions = \"keep\"\n", ["sessions", "connections"]),
        ("[privacy.streams]\nbilling = \"drop\"\n", ["drop", "columns-only"]),
    ] {
        program.configure(text);
        let run = program.run(&["status"]).ended(2).says(&words);
        assert_eq!(
            run.stderr.lines().filter(|line| line.contains("privacy") || line.contains("line")).count(),
            1,
            "{run:?}"
        );
    }
}
