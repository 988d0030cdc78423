//! Kills, second writers, full disks and damaged files: afterwards the archive equals the truth, or the program names
//! the reason.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use std::fs;
use std::time::Duration;

use faulty_service::chance::times;
use faulty_service::{
    Action, Chance, DAY, Expected, Gate, HOUR, Program, SINCE, Service, busy, hold, hold_with, program, scene,
};

const NOON: i64 = DAY + 84 * HOUR;

#[test]
fn random_kills_lose_and_double_nothing() {
    let (service, program) = scene();
    let mut chance = Chance::of(20_261_110);
    busy(&mut service.world());
    service.on_request(|_, _, _| Action::Slow(Duration::from_millis(3)));
    let (mut killed, mut clock, kills) = (0, NOON, times("ANNALS_KILLS", 25));
    for round in 0..kills * 8 {
        if killed == kills {
            break;
        }
        let running = program.start_sync(&SINCE);
        let run = running.kill_after(Duration::from_millis(10 + chance.below(140)));
        match run.code {
            None => killed += 1,
            code => {
                assert_eq!(code, Some(0), "round {round}: {run:?}");
                for n in 0..20 {
                    service.world().connection(clock + n * 60, n);
                    service.world().activity(clock + n * 90, n);
                }
                clock += HOUR;
                service.set_clock(clock);
            }
        }
    }
    assert!(killed >= kills / 2, "only {killed} kills fell within a run");
    service.calm();
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &Expected { requests_max: 200_000, arguments: &SINCE, ..Expected::default() });
}

/// Each team has one writer. Who loses a team says so, and the next sync reads what is left.
#[test]
fn first_syncs_at_once_make_one_archive() {
    for round in 0..4 {
        let (service, program) = scene();
        busy(&mut service.world());
        service.on_request(|_, _, _| Action::Slow(Duration::from_millis(5)));
        let running: Vec<_> = (0..3).map(|_| program.start_sync(&SINCE)).collect();
        for run in running.into_iter().map(|running| running.wait()) {
            match run.code {
                Some(0) => {}
                Some(1) => {
                    assert!(
                        run.stderr.contains("another writer holds the lock: stop `annals run`, or wait"),
                        "{run:?}"
                    );
                }
                _ => panic!("round {round}: {run:?}"),
            }
        }
        program.run(&["verify"]).ended(0);
        program.sync(&SINCE).ended(0);
        let expected = Expected { requests_max: 200_000, arguments: &SINCE, ..Expected::default() };
        hold_with(&service, &program, &expected);
    }
}

/// Whether a commit is being written: its files are in the scratch directory.
fn is_committing(program: &Program) -> bool {
    !program::files_below(&program.archive().join("scratch")).is_empty()
}

#[test]
fn kills_during_a_commit_lose_and_double_nothing() {
    let (service, program) = scene();
    let mut chance = Chance::of(77);
    busy(&mut service.world());
    let mut clock = NOON;
    let mut killed = 0;
    for round in 0..240 {
        if killed == 12 {
            break;
        }
        let running = program.start_sync(&SINCE);
        running.watch(|| is_committing(&program));
        let run = running.kill_after(Duration::from_micros(chance.below(12_000)));
        killed += usize::from(run.code.is_none());
        assert!(matches!(run.code, None | Some(0)), "round {round}: {run:?}");
        for n in 0..10 {
            service.world().connection(clock + n * 60, n);
            service.world().activity(clock + n * 60, n);
        }
        clock += HOUR;
        service.set_clock(clock);
    }
    assert!(killed >= 10, "only {killed} kills fell within a run");
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &Expected { requests_max: 20_000, arguments: &SINCE, ..Expected::default() });
}

/// From now on, the service holds the pages of events back, so a sync that has a team's lock keeps it.
pub fn hold_back(service: &Service) -> Gate {
    let gate = Gate::default();
    let held = gate.clone();
    service.on_request(move |_, request, _| match request.is_history() {
        true => Action::Behind(held.clone()),
        false => Action::Serve,
    });
    gate
}

#[test]
fn of_two_writers_one_wins_and_one_refuses() {
    let (service, program) = scene();
    busy(&mut service.world());
    let gate = hold_back(&service);
    let first = program.start_sync(&SINCE);
    gate.wait_for_answer();
    program.sync(&SINCE).ended(1).says(&["team-one", "lock", "stop `annals run`"]);
    gate.open();
    first.wait().ended(0);
    hold_with(&service, &program, &Expected { requests_max: 400, arguments: &SINCE, ..Expected::default() });
}

/// Stops the program while it reads or commits: no other writer can take over, and it continues afterwards.
#[test]
fn a_stopped_writer_keeps_its_lock_and_doubles_nothing() {
    use rustix::process::Signal;
    let (service, program) = scene();
    busy(&mut service.world());
    let gate = hold_back(&service);
    let reading = program.start_sync(&SINCE);
    gate.wait_for_answer();
    assert!(reading.stop());
    program.sync(&SINCE).ended(1).says(&["team-one", "lock"]);
    reading.signal(Signal::CONT);
    gate.open();
    reading.wait().ended(0);
    let mut was_committing = false;
    let mut n = 0;
    // A commit takes a moment: try until a stop falls into one.
    while !was_committing {
        n += 1;
        assert!(n < 200, "no stop fell into a commit");
        service.world().connection(NOON + n * 60 - 30, n);
        service.set_clock(NOON + n * 60);
        let committing = program.start_sync(&SINCE);
        committing.watch(|| is_committing(&program));
        was_committing = committing.stop() && is_committing(&program);
        if was_committing {
            program.sync(&SINCE).ended(1).says(&["team-one", "lock"]);
        }
        committing.signal(Signal::CONT);
        committing.wait().ended(0);
    }
    let requests_max = 600 + 100 * usize::try_from(n).unwrap();
    hold_with(&service, &program, &Expected { requests_max, arguments: &SINCE, ..Expected::default() });
}

#[test]
fn four_writers_at_once_double_nothing() {
    let (service, program) = scene();
    busy(&mut service.world());
    let all: Vec<_> = (0..4).map(|_| program.start_sync(&SINCE)).collect();
    let codes: Vec<Option<i32>> = all.into_iter().map(|running| running.wait().code).collect();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 1))) && codes.contains(&Some(0)), "{codes:?}");
    hold_with(&service, &program, &Expected { requests_max: 800, arguments: &SINCE, ..Expected::default() });
}

#[test]
fn sync_reports_a_full_disk_and_recovers() {
    let (service, program) = scene();
    busy(&mut service.world());
    let mut failed = 0;
    // The largest file in kilobytes: nothing, a manifest, a ledger line, some data.
    for (round, limit) in [0, 1, 2, 4, 8, 16, 32, 64].into_iter().enumerate() {
        let script = format!("ulimit -f {limit}; exec \"$@\"");
        let run = program.through_shell(&script, &[&["sync"], &SINCE[..]].concat());
        if run.code == Some(1) {
            failed += 1;
            assert!(run.stderr.contains("archive") || run.stderr.contains("scratch/"), "names the path: {run:?}");
        } else {
            assert_eq!(run.code, Some(0), "limit {limit}: {run:?}");
        }
        if program.archive().join("archive.json").is_file() && round > 0 {
            let verified = program.run(&["verify"]);
            assert_eq!(verified.code, Some(0), "limit {limit}: {verified:?}");
        }
        service.world().connection(NOON - HOUR + i64::try_from(round).unwrap(), 1);
    }
    assert!(failed >= 2, "the limits were felt {failed} times");
    service.calm();
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &Expected { requests_max: 2_000, arguments: &SINCE, ..Expected::default() });
}

#[test]
fn a_directory_without_write_access_is_reported() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..1);
    program::put(&program.home().join("file"), b"not a directory");
    let inside = program.home().join("file").join("archive");
    let inside = inside.to_str().unwrap();
    program.run(&["sync", "--archive", inside]).ended(1).says(&[inside]);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

/// The newest ledger file and its bytes.
fn ledger_end(program: &Program) -> (std::path::PathBuf, Vec<u8>) {
    program.ledger().pop().unwrap()
}

#[test]
fn a_torn_last_line_is_dropped_and_reported() {
    for torn in [1, 2, 40, 200, usize::MAX] {
        println!("{torn} bytes of the last line are gone");
        let (service, program) = scene();
        busy(&mut service.world());
        program.sync(&SINCE).ended(0);
        for n in 0..30 {
            service.world().connection(NOON + n, n);
        }
        service.set_clock(NOON + HOUR);
        let held = |path: std::path::PathBuf| (fs::read(&path).unwrap(), path);
        let before: Vec<_> = program::files_below(&program.archive().join("tables")).into_iter().map(held).collect();
        program.sync(&SINCE).ended(0);
        let (path, bytes) = ledger_end(&program);
        let last = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        // A torn line means that the commit did not happen: the old files of sessions are still live. A line that
        // only lacks its newline is complete.
        if torn > 1 {
            let line: serde_json::Value = serde_json::from_slice(&bytes[last..]).unwrap();
            for added in line["body"]["adds"].as_array().into_iter().flatten() {
                fs::remove_file(program.archive().join(added["path"].as_str().unwrap())).unwrap();
            }
            for removed in line["body"]["removes"].as_array().into_iter().flatten() {
                let place = program.archive().join(removed.as_str().unwrap());
                program::put(&place, &before.iter().find(|(_, path)| *path == place).unwrap().0);
            }
        }
        // Keep at least the first byte of the line.
        let length = bytes.len().saturating_sub(torn).max(last + 1);
        program::put(&path, &bytes[..length]);
        let run = program.sync(&SINCE).ended(0);
        // If only the newline is missing, the line is complete and stays.
        assert!(torn == 1 || run.stderr.contains("dropped an unfinished ledger line"), "{run:?}");
        hold_with(&service, &program, &Expected { requests_max: 400, arguments: &SINCE, ..Expected::default() });
    }
}

#[test]
fn a_flipped_byte_of_the_ledger_is_refused_and_named() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    for n in 0..30 {
        service.world().connection(NOON + n, n);
    }
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(0);
    let (path, bytes) = ledger_end(&program);
    let name = path.file_name().unwrap().to_str().unwrap();
    let first_line = bytes.iter().position(|&byte| byte == b'\n').unwrap();
    let mut chance = Chance::of(5);
    let mut places: Vec<usize> =
        (0..12).map(|_| usize::try_from(chance.below(bytes.len() as u64 - 1)).unwrap()).collect();
    places.extend([0, first_line, bytes.len() - 2]);
    for place in places {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << chance.below(7);
        program::put(&path, &damaged);
        program.run(&["verify"]).ended(1).says(&[name]);
        program.sync(&SINCE).ended(1).says(&[name]);
        assert_eq!(fs::read(&path).unwrap(), damaged, "byte {place}: the program repairs no damage silently");
        program.run(&["sql", "select 1"]).ended(1).says(&[name]);
    }
    program::put(&path, &bytes);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_flipped_byte_of_a_file_is_named() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    let mut chance = Chance::of(6);
    // `verify` reads no retired file, and a slow run leaves some: flip bytes of live files only.
    let tables = fs::read_dir(program.archive().join("tables")).unwrap();
    let files: Vec<_> =
        tables.flat_map(|table| program::live_files(&program, table.unwrap().file_name().to_str().unwrap())).collect();
    assert!(files.len() > 5, "{files:?}");
    for path in files.iter().chain([&program.archive().join("archive.json")]) {
        let bytes = fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let place = usize::try_from(chance.below(bytes.len() as u64)).unwrap();
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << chance.below(7);
        program::put(path, &damaged);
        let verified = program.run(&["verify"]).ended(1);
        // With another archive's manifest, the ledger's lines look wrong.
        assert!(verified.said().contains(name) || verified.said().contains("ARCHIVE_ID"), "{verified:?}");
        program::put(path, &bytes);
        fs::rename(path, path.with_extension("away")).unwrap();
        program.run(&["verify"]).ended(1).says(&[name]);
        fs::rename(path.with_extension("away"), path).unwrap();
    }
    hold(&service, &program, &SINCE);
}

#[test]
fn two_archives_are_not_mixed() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..2);
    program.sync(&SINCE).ended(0);
    let other = Program::of(&service);
    other.sync(&SINCE).ended(0);
    // Put another archive's manifest beside this ledger.
    let manifest = fs::read(other.archive().join("archive.json")).unwrap();
    let own = fs::read(program.archive().join("archive.json")).unwrap();
    program::put(&program.archive().join("archive.json"), &manifest);
    program.sync(&SINCE).ended(1);
    program.run(&["verify"]).ended(1);
    program::put(&program.archive().join("archive.json"), &own);
    hold(&service, &program, &SINCE);
    let _ = Service::at(NOON);
}
