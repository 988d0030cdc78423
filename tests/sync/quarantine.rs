//! Events that an earlier version could not read: after a retry they are rows, once, like all others.

use crate::awkward;

use std::sync::Arc;

use annals::archive::{Archive, Committed, Draft, TeamWriter};
use annals::model::{Instant, RejectRow, Stream, TeamId};
use annals::store::LocalStore;
use awkward::laws::{files_agree, findings, nanos};
use awkward::{DAY, HOUR, Kind, Program, SINCE, Service, World, events, hold, scene};
use serde_json::{Value, json};

const BUSY: i64 = DAY + 13 * HOUR;
const DAY_SECONDS: i64 = 86_400;
const DEVICE: &str = "team-one-computer-1";
const NEVER: &str = "{\"header\":{\"eventTimestampUnixNano\":\"soon\"},\"teamOddEvent\":{}}";
const FIRST_SEEN: &str = "2026-11-11T05:06:07Z";

fn archive(program: &Program) -> Archive {
    Archive::open(Arc::new(LocalStore::new(program.archive()))).unwrap()
}

fn writer(program: &Program) -> TeamWriter {
    archive(program).writer(&TeamId::from("team-one")).unwrap()
}

/// Puts texts into quarantine, like an earlier version that could not read them.
fn quarantine(program: &Program, texts: &[(Stream, String)]) {
    let mut writer = writer(program);
    let reject = |(n, (stream, text)): (usize, &(Stream, String))| RejectRow {
        team_id: TeamId::from("team-one"),
        stream: *stream,
        event_id: format!("old-{n}").as_str().into(),
        time: None,
        reason: "not_known_then".to_owned(),
        detail: "an earlier version".to_owned(),
        first_seen_at: FIRST_SEEN.parse().unwrap(),
        redacted: false,
        raw: text.clone().into(),
        erased: None,
    };
    let rejects = texts.iter().enumerate().map(reject).collect();
    let now: Instant = "2026-11-20T00:00:00Z".parse().unwrap();
    let committed = writer.commit(Draft { rejects, ..Draft::default() }, now).unwrap();
    assert!(matches!(committed, Committed::Committed { .. }));
}

/// A history with quarantined events: two of one connection, two of three equal events without ids, and an unreadable
/// one. The service shows all of them.
fn old_scene() -> (Service, Program) {
    let (service, program) = scene();
    let at = |n: i64| (BUSY + n) * 1_000;
    let plain = || events::plain_activity(BUSY * 1_000_000_000);
    let add_connection = |world: &mut World, n: u64, text: &str| {
        world.add(Kind::Connections, nanos(BUSY + i64::try_from(n).unwrap()), Some(DEVICE), text.to_owned());
    };
    let [asked, came, left] = [0, 1, 2].map(|n| events::connection(9_000 + n, at(i64::try_from(n).unwrap()), DEVICE));
    service.world().fill(DAY, 0..3);
    add_connection(&mut service.world(), 0, &asked);
    service.world().add(Kind::Activity, nanos(BUSY), None, plain());
    program.sync(&SINCE).ended(0);
    quarantine(
        &program,
        &[
            (Stream::Connections, came.clone()),
            (Stream::Activity, plain()),
            (Stream::Activity, NEVER.to_owned()),
            (Stream::Connections, left.clone()),
            (Stream::Activity, plain()),
        ],
    );
    add_connection(&mut service.world(), 1, &came);
    add_connection(&mut service.world(), 2, &left);
    for text in [plain(), plain(), NEVER.to_owned()] {
        service.world().add(Kind::Activity, nanos(BUSY), None, text);
    }
    (service, program)
}

fn retry(program: &Program) -> Value {
    let run = program.run(&["quarantine", "retry", "--format", "json"]).ended(0);
    serde_json::from_str(&run.stdout).unwrap()
}

fn outcome(stream: &str, released: u64, kept: u64) -> Value {
    json!({"team_id": "team-one", "stream": stream, "reason": "not_known_then", "released": released, "kept": kept})
}

fn holds_after_a_retry(service: &Service, program: &Program) {
    program.sync(&["--rescan", SINCE[0], SINCE[1]]).ended(0);
    hold(service, program, &SINCE);
    assert_eq!(program.sql("select count(*)::int as n from quarantine")[0]["n"], 5, "served again, they stay");
    assert_eq!(retry(program), json!([outcome("activity", 2, 1), outcome("connections", 2, 0)]));
    assert_eq!(program.sql("select raw from quarantine"), [json!({"raw": NEVER})]);
    let rows = program.sql(&format!("select event_id from connections where first_seen_at = timestamp '{FIRST_SEEN}'"));
    assert_eq!(rows.len(), 2, "the rows keep the time at which Annals first saw the events: {rows:?}");
    let session = program.sql(
        "select outcome, event_count, established_at is not null as was_established from sessions \
         where connection_id = 'conn-3000'",
    );
    assert_eq!(session, [json!({"outcome": "ended", "event_count": 3, "was_established": true})]);
    assert_eq!(findings(program, "released")["not_known_then"], 4);
    program.sync(&["--rescan", SINCE[0], SINCE[1]]).ended(0);
    hold(service, program, &SINCE);
    files_agree(program);
    let lines = program.ledger_lines();
    let listed = program.run(&["quarantine", "list"]).ended(0).says(&["not_known_then"]);
    assert!(!listed.stdout.contains("connections"));
    assert_eq!(retry(program), json!([outcome("activity", 0, 1)]));
    assert_eq!(program.ledger_lines(), lines, "a retry that releases nothing writes nothing");
}

#[test]
fn a_quarantined_event_that_can_be_a_row_becomes_one() {
    let (service, program) = old_scene();
    holds_after_a_retry(&service, &program);
}

#[test]
fn a_sealed_month_gains_released_events() {
    let (service, program) = old_scene();
    service.set_clock(DAY + 40 * 24 * HOUR);
    program.sync(&SINCE).ended(0);
    assert!(!awkward::program::sealed_files(&program.archive(), "connections").is_empty(), "nothing is sealed");
    holds_after_a_retry(&service, &program);
}

#[test]
fn an_erased_event_stays_in_quarantine_and_its_served_text_is_not_added_again() {
    const ERASED: &str = "p6@example.com";
    let (_service, program) = old_scene();
    program.run(&["erase", "--order", "DPO-1", "--subject", ERASED]).ended(0);
    assert_eq!(retry(&program), json!([outcome("activity", 2, 1), outcome("connections", 1, 1)]));
    let count = || {
        program.sql("select 'rows' as t, count(*)::int as n from connections union all select 'rejects', count(*)::int from quarantine order by 1")
    };
    let before = count();
    assert_eq!(before[0], json!({"t": "rejects", "n": 2}));
    program.sync(&["--rescan", SINCE[0], SINCE[1]]).ended(0);
    assert_eq!(count(), before);
    let found = program.sql(&format!("select event_id from connections where raw like '%{ERASED}%'"));
    assert!(found.is_empty(), "{found:?}");
    program.run(&["verify"]).ended(0);
}

#[test]
fn a_quarantined_text_that_is_not_one_event_stays() {
    let (_service, program) = scene();
    program.sync(&SINCE).ended(0);
    let good = events::connection(9_001, BUSY * 1_000, DEVICE);
    let forged = [format!("{good},{good}"), format!("{good}],\"x\":[{good}"), String::new(), format!(" {good} ")];
    quarantine(&program, &forged.clone().map(|text| (Stream::Connections, text)));
    assert_eq!(retry(&program), json!([outcome("connections", 0, 4)]));
    let kept = program.sql("select raw from quarantine order by raw");
    assert_eq!(kept.len(), forged.len(), "{kept:?}");
}

/// A quarantined event that is already a row, and one of another day that can become a row now.
#[test]
fn a_window_that_gains_nothing_is_not_recorded_again() {
    let (service, program) = scene();
    let known = events::connection(9_001, BUSY * 1_000, DEVICE);
    service.world().fill(DAY, 0..3);
    service.world().add(Kind::Connections, nanos(BUSY), Some(DEVICE), known.clone());
    program.sync(&SINCE).ended(0);
    let fresh = events::connection(9_002, (BUSY + DAY_SECONDS) * 1_000, DEVICE);
    quarantine(&program, &[(Stream::Connections, known), (Stream::Connections, fresh)]);
    assert_eq!(retry(&program), json!([outcome("connections", 1, 1)]));
    let lines: Vec<Value> = program.ledger().iter().flat_map(|(_, bytes)| lines_of(bytes)).collect();
    let released = lines.iter().find(|line| !line["body"]["released"].is_null()).unwrap();
    let windows = released["body"]["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 1, "{windows:?}");
    assert_eq!(windows[0]["start"], "2026-11-11T00:00:00Z");
}

fn lines_of(bytes: &[u8]) -> Vec<Value> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[test]
fn wrong_use_and_a_locked_team_are_reported_and_change_nothing() {
    let (_service, program) = scene();
    program.run(&["quarantine", "retry"]).ended(2).says(&["no archive exists here"]);
    program.sync(&SINCE).ended(0);
    quarantine(&program, &[(Stream::Connections, events::connection(9_001, BUSY * 1_000, DEVICE))]);
    program.run(&["quarantine", "retry", "--team", "team-two"]).ended(2).says(&["team-two", "did you mean team-one"]);
    let held = writer(&program);
    let lines = program.ledger_lines();
    program.run(&["quarantine", "retry"]).ended(1).says(&["team-one", "lock"]);
    assert_eq!(program.ledger_lines(), lines);
    drop(held);
    program.run(&["quarantine", "retry", "--team", "team-one"]).ended(0).says(&["released", "connections"]);
    assert!(program.sql("select * from quarantine").is_empty());
}
