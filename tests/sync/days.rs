//! `partition = "day"`: a final day is one file, its month is never written again, and the setting may change at any
//! time.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use faulty_service::laws::{archived, files_agree, findings};
use faulty_service::{Action, Chance, DAY, Expected, HOUR, Kind, Program, Service, World, hold_with, program, scene};

/// 2026-09-20T00:00:00Z
const SEPTEMBER: i64 = DAY - 51 * 24 * HOUR;
const SINCE: [&str; 2] = ["--since", "2026-09-20"];
const BY_DAY: &str = "[windows]\npartition = \"day\"\n";
const BY_MONTH: &str = "[windows]\npartition = \"month\"\n";
/// Hours from [`DAY`] to the fourth of December, when November is final.
const DECEMBER: i64 = 24 * 24 + 2;

/// Adds events on every second day from 2026-09-20 on, and on each of the last four days.
fn months(world: &mut World) {
    for day in (0..51).step_by(2) {
        world.fill(SEPTEMBER, day..day + 1);
    }
    world.teams[0].events.retain(|event| event.kind != Kind::Billing);
    world.fill(DAY, 0..4);
}

fn hold(service: &Service, program: &Program) {
    hold_with(service, program, &Expected { requests_max: 3_000, arguments: &SINCE, ..Expected::default() });
    files_agree(program);
}

/// The sealed files of a dataset: month, day and first letter of the role, with the number of each.
fn sealed(program: &Program, dataset: &str) -> BTreeMap<String, usize> {
    counts(program::sealed_files(&program.archive(), dataset))
}

/// The same, without the files of a killed commit.
fn live_sealed(program: &Program, dataset: &str) -> BTreeMap<String, usize> {
    let live = program::live_files(program, dataset);
    let mut files = program::sealed_files(&program.archive(), dataset);
    files.retain(|path| live.contains(path));
    counts(files)
}

fn counts(files: Vec<PathBuf>) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for path in files {
        let month = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let name = path.file_name().unwrap().to_str().unwrap();
        let (day, letter) = (&name[6..8], &name["20260920t000000z-".len()..][..1]);
        *found.entry(format!("{month} {day} {letter}")).or_insert(0) += 1;
    }
    found
}

/// The files from September to the ninth of November, whose re-scans are done.
fn days() -> BTreeMap<String, usize> {
    let days = (20..=30).step_by(2).map(|day| format!("month=2026-09 {day} d"));
    let days = days.chain((2..=30).step_by(2).map(|day| format!("month=2026-10 {day:02} d")));
    days.chain((1..=9).step_by(2).map(|day| format!("month=2026-11 {day:02} d"))).map(|day| (day, 1)).collect()
}

/// The days of unsealed files.
fn unsealed(program: &Program, dataset: &str) -> Vec<String> {
    let sealed = program::sealed_files(&program.archive(), dataset);
    let mut files = program::live_files(program, dataset);
    files.retain(|path| !sealed.contains(path));
    files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()[..8].to_owned()).collect()
}

#[test]
fn a_day_is_one_file_as_soon_as_it_is_final() {
    for length in ["1d", "1h"] {
        println!("windows of {length}");
        let (service, program) = scene();
        months(&mut service.world());
        program.configure(&format!("{BY_DAY}length = \"{length}\"\n"));
        program.sync(&SINCE).ended(0);
        for dataset in ["connections", "activity"] {
            let found = sealed(&program, dataset);
            if length == "1d" {
                assert_eq!(found, days(), "{dataset}");
                assert!(unsealed(&program, dataset).iter().all(|date| &date[..] >= "20261110"), "{dataset}");
            }
            assert!(found.keys().all(|file| file.ends_with('d')), "{found:?}");
        }
        hold(&service, &program);
        // Twelve hours later the tenth of November is final, and no other file of the month changes.
        let before = program::sealed_files(&program.archive(), "");
        service.set_clock(DAY + 97 * HOUR);
        program.sync(&SINCE).ended(0);
        let after = sealed(&program, "connections");
        assert_eq!(after.get("month=2026-11 10 d"), Some(&1), "{after:?}");
        assert!(before.iter().all(|path| path.is_file()), "a sealed file is never removed");
        hold(&service, &program);
    }
}

#[test]
fn late_events_are_amendments_of_their_day() {
    let (service, program) = scene();
    months(&mut service.world());
    program.configure(BY_DAY);
    program.sync(&SINCE).ended(0);
    let of_events = |path: &PathBuf| !path.to_string_lossy().contains("/sessions/");
    let before: Vec<_> = program::sealed_files(&program.archive(), "").into_iter().filter(of_events).collect();
    let bytes = |paths: &[PathBuf]| paths.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    let content = bytes(&before);
    // Add events to a sealed month, to a sealed day of this month and to an empty sealed day, and edit one event.
    for day in [4, 46, 47] {
        service.world().connection(SEPTEMBER + day * 24 * HOUR + 7, 1);
        service.world().activity(SEPTEMBER + day * 24 * HOUR + 9, 1);
    }
    let number = service.world().teams[0].events.iter().find(|event| event.text.contains("\"host\"")).unwrap().number;
    service.world().edit(number, |text| text.replace("\"host\"", "\"renamed\""));
    program.sync(&["--rescan"]).ended(0);
    assert_eq!(bytes(&before), content, "sealed files stay unchanged");
    let amended: Vec<String> = sealed(&program, "connections").into_keys().filter(|file| file.ends_with('a')).collect();
    // September and October are sealed months, so their amendments belong to the months.
    assert_eq!(amended, ["month=2026-09 01 a", "month=2026-11 05 a", "month=2026-11 06 a"]);
    assert!(!findings(&program, "late").is_empty() && !findings(&program, "changed_upstream").is_empty());
    hold(&service, &program);
    // At the end of the month, no unsealed file is left for it.
    let before: Vec<_> = program::sealed_files(&program.archive(), "connections");
    service.set_clock(DAY + DECEMBER * HOUR);
    program.sync(&SINCE).ended(0);
    assert!(sealed(&program, "connections").keys().all(|file| !file.ends_with('m')));
    assert!(before.iter().all(|path| path.is_file()));
    assert!(sealed(&program, "sessions").contains_key("month=2026-11 01 m"), "sessions go by months");
    hold(&service, &program);
}

/// Each month begins with one setting and ends with the other: sealed files stay, and the new setting seals the rest.
#[test]
fn the_setting_may_change_at_any_time() {
    for (scenario, settings) in [
        ("months, then days", [BY_MONTH, BY_DAY, BY_DAY]),
        ("days, then months", [BY_DAY, BY_MONTH, BY_MONTH]),
        ("days for a while", [BY_MONTH, BY_DAY, BY_MONTH]),
        ("months for a while", [BY_DAY, BY_MONTH, BY_DAY]),
    ] {
        println!("{scenario}");
        let (service, program) = scene();
        months(&mut service.world());
        let mut held: Vec<PathBuf> = Vec::new();
        for (text, hours) in settings.into_iter().zip([84, 15 * 24, DECEMBER]) {
            program.configure(text);
            for n in 0..6 {
                service.world().connection(DAY + hours * HOUR - n * 9_000, n);
                service.world().activity(DAY + hours * HOUR - n * 9_000, n);
            }
            service.set_clock(DAY + hours * HOUR);
            program.sync(&SINCE).ended(0);
            assert!(held.iter().all(|path| path.is_file()), "{scenario}: a sealed file is never removed");
            held = program::sealed_files(&program.archive(), "connections");
        }
        let files = sealed(&program, "connections");
        let letters = |month: &str| {
            let mut of_month: Vec<&str> = files.keys().filter(|file| file.contains(month)).map(|f| &f[17..]).collect();
            of_month.dedup();
            of_month.concat()
        };
        let expected = match scenario {
            "months, then days" => ["m", "m", "d"],
            "days, then months" => ["d", "d", "mdmd"],
            "days for a while" => ["m", "m", "dmd"],
            _ => ["d", "d", "d"],
        };
        let found = ["2026-09", "2026-10", "2026-11"].map(letters);
        println!("{found:?} of {expected:?}: {files:?}");
        assert_eq!(found.iter().map(|of| of.contains('m')).collect::<Vec<_>>(), expected.map(|of| of.contains('m')));
        assert_eq!(found.iter().map(|of| of.contains('d')).collect::<Vec<_>>(), expected.map(|of| of.contains('d')));
        hold(&service, &program);
    }
}

/// Asserts equal answers for both layouts.
#[test]
fn questions_have_the_same_answers_as_with_months() {
    let (service, by_day) = scene();
    months(&mut service.world());
    let by_month = Program::of(&service);
    by_day.configure(BY_DAY);
    for program in [&by_day, &by_month] {
        program.sync(&SINCE).ended(0);
    }
    assert_eq!(archived(&by_day), archived(&by_month));
    for question in [
        "select event_time, event_id, raw from connections where event_time >= '2026-10-03' and event_time < '2026-11-06' order by all",
        "select date_trunc('day', event_time) as day, count(*) as n from activity group by all order by all",
        "select * from sessions order by all",
        "select * exclude (settled_at) from coverage order by all",
    ] {
        let (one, other) = (by_day.sql(question), by_month.sql(question));
        assert!(!one.is_empty() && one == other, "{question}");
    }
    for report in ["r00", "r01"] {
        let rows = |program: &Program| -> Vec<String> {
            let run = program.run(&["report", "run", report, "--from", "2026-10-01", "--to", "2026-11-10"]).ended(0);
            run.stdout.lines().filter(|line| line.starts_with('│')).map(str::to_owned).collect()
        };
        let (one, other) = (rows(&by_day), rows(&by_month));
        assert!(one.len() > 20 && one == other, "{report}");
    }
}

/// Kills the program while it seals days: every file is complete, and the next run finishes.
#[test]
fn kills_during_sealing_lose_and_double_nothing() {
    let mut chance = Chance::of(20_261_122);
    let mut killed = 0;
    for round in 0..80 {
        if round >= 8 && killed >= 3 {
            break;
        }
        let (service, program) = scene();
        months(&mut service.world());
        program.configure(BY_DAY);
        let running = program.start_sync(&SINCE);
        running.watch(|| !program::sealed_files(&program.archive(), "").is_empty());
        let run = running.kill_after(Duration::from_micros(chance.below(30_000)));
        assert!(matches!(run.code, None | Some(0)), "round {round}: {run:?}");
        killed += usize::from(run.code.is_none());
        service.on_request(|_, _, _| Action::Serve);
        program.sync(&SINCE).ended(0);
        assert_eq!(live_sealed(&program, "connections"), days(), "round {round}");
        hold(&service, &program);
    }
    assert!(killed >= 3, "only {killed} kills fell within a run");
}

#[test]
fn windows_longer_than_a_day_cannot_be_sealed_by_days() {
    let (service, program) = scene();
    months(&mut service.world());
    program.configure(&format!("{BY_DAY}length = \"7d\"\n"));
    program.sync(&SINCE).ended(2).says(&[
        "windows.partition",
        "windows of 7d are longer",
        "windows.length of at most 1d",
    ]);
    // If they were read before, they are sealed with the day of their beginning.
    program.configure("[windows]\nlength = \"7d\"\n");
    program.sync(&SINCE).ended(0);
    program.configure(BY_DAY);
    service.set_clock(DAY + 200 * HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program);
}
