//! An erasure in an archive with every kind of content: sealed years, amended months, sealed days, quarantine,
//! snapshots of the ledger, files within the grace, open tables of several versions, and an interrupted order.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::faulty_service::program::{files_below, live_files};
use crate::faulty_service::subject_search::{ORDER, SINCE, late, trace, years};
use crate::faulty_service::{DAY, HOUR, Program, Service, scene};

const BY_DAY: &str = "[windows]\npartition = \"day\"\n";

/// The traces of the subject in all files below the program's home.
fn traces(program: &Program) -> Vec<String> {
    let found = files_below(program.home()).into_iter();
    found.filter_map(|path| trace(path.to_str().unwrap(), fs::read(&path).unwrap())).collect()
}

fn roles(program: &Program, dataset: &str) -> BTreeSet<String> {
    let role = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().split('-').nth(1).unwrap().to_owned();
    live_files(program, dataset).into_iter().map(role).collect()
}

fn with_everything() -> (Service, Program) {
    let (service, program) = scene();
    years(&mut service.world());
    program.sync(&SINCE).ended(0);
    program.run(&["publish"]).ended(0);
    program.configure(BY_DAY);
    late(&mut service.world());
    program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    service.set_clock(DAY + 200 * HOUR);
    program.sync(&SINCE).ended(0);
    program.run(&["publish"]).ended(0);
    let summary = "select count(*)::int as n from activity";
    assert!(program.sql(summary)[0]["n"].as_u64() > Some(80));
    (service, program)
}

#[test]
fn no_byte_of_the_subject_stays_in_any_file() {
    let (service, program) = with_everything();
    let all: BTreeSet<String> =
        ["connections", "activity", "sessions"].iter().flat_map(|dataset| roles(&program, dataset)).collect();
    for role in ["month", "day", "amendment"] {
        assert!(all.contains(role), "no file of the role {role}: {all:?}");
    }
    let of = |part: &str| files_below(&program.archive()).iter().any(|path| path.to_str().unwrap().contains(part));
    for part in ["/metadata/v2.metadata.json", "/tables/quarantine/", "/tables/activity/metadata/"] {
        assert!(of(part), "no file of {part}");
    }
    let before = traces(&program);
    for part in ["/tables/activity/", "/tables/connections/", "/tables/sessions/", "/tables/quarantine/"] {
        assert!(before.iter().any(|found| found.contains(part)), "the subject was never in {part}");
    }
    let rows = |program: &Program| {
        program.sql(
            "select 'a' as d, count(*)::int as n from activity union all select 'c', count(*)::int from connections \
             union all select 's', count(*)::int from sessions union all select 'q', count(*)::int from quarantine order by 1",
        )
    };
    let counted = rows(&program);

    let _ = program.start(&ORDER).kill_after(Duration::from_millis(150));
    program.run(&ORDER).ended(0);
    assert_eq!(traces(&program), Vec::<String>::new());
    assert_eq!(rows(&program), counted);
    program.run(&["verify"]).ended(0);
    // The order published the open tables again: they name the new files.
    program.run(&["publish", "--check"]).ended(0);
    let live: BTreeSet<PathBuf> = live_files(&program, "connections").into_iter().collect();
    let there = files_below(&program.archive().join("tables/connections"));
    let there = there.into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet"));
    assert_eq!(there.collect::<BTreeSet<_>>(), live);

    // Re-scans, later seals and publications do not restore the subject.
    program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    service.set_clock(DAY + 900 * HOUR);
    program.sync(&SINCE).ended(0);
    program.run(&["quarantine", "retry"]).ended(0);
    program.run(&["publish"]).ended(0);
    assert_eq!(traces(&program), Vec::<String>::new());
    assert_eq!(rows(&program), counted);
    program.run(&["verify"]).ended(0);
}

/// A digest of a served text in the ledger would confirm a guess of the text.
#[test]
fn no_ledger_line_holds_a_plain_digest_of_a_served_text() {
    let (service, program) = scene();
    {
        let mut world = service.world();
        world.fill(DAY, 0..4);
        for n in 0..30 {
            world.billing(DAY + 70 * HOUR + n * 60);
        }
    }
    program.sync(&SINCE).ended(0);
    let ledger: String = program.ledger().into_iter().map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect();
    for member in ["\"anchors\":[\"", "\"snapshot\":[{"] {
        assert!(ledger.contains(member), "the ledger holds no {member}");
    }
    for event in &service.world().teams[0].events {
        let digest = annals::model::Digest::of(event.text.as_bytes()).to_string();
        assert!(!ledger.contains(&digest[..32]), "{}", event.text);
    }
}
