//! Compares questions over a thousand small teams with the same questions over one large team with as many events.
//!
//! The pipeline reads both archives from the sandbox. Each answer is a run of the whole program, so the reading of
//! the ledgers counts. Prints the seconds of both, and their ratio. `--teams N`, `--events N` (of a team) and `--days
//! N` set other sizes; `--keep DIRECTORY` keeps the archive of the small teams there, and uses it again;
//! `--keep-large DIRECTORY` does the same for the large team. Seven years of one team: `--teams 1 --events 3400000
//! --days 2557`.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use annals::archive::Archive;
use annals::model::FileRole;
use annals::store::LocalStore;
use std::sync::Arc;
use support::{Began, Failure, Took, kept_archive, median, number, print_ratio, text};

const TEAMS: u32 = 1_000;
const EVENTS_A_TEAM: u32 = 3_250;
const DAYS: u32 = 33;
const ROUNDS: usize = 3;

/// The questions, and how many seconds each may take for a thousand teams.
const QUESTIONS: [(&str, &[&str], f64); 8] = [
    ("count of all connections", &["sql", "SELECT count(*) FROM connections"], 2.0),
    (
        "failures of a week",
        &[
            "sql",
            "SELECT count(*), count(DISTINCT peer_ip) FROM connections WHERE event_type = 'authFailedEvent' \
             AND event_time >= '2026-11-10' AND event_time < '2026-11-17'",
        ],
        5.0,
    ),
    ("R02 of a week", &["report", "run", "R02", "--from", "2026-11-10", "--to", "2026-11-17"], 5.0),
    ("R03 of a week", &["report", "run", "R03", "--from", "2026-11-10", "--to", "2026-11-17"], 5.0),
    ("R15 of a week", &["report", "run", "R15", "--from", "2026-11-10", "--to", "2026-11-17"], 5.0),
    ("R02 of seven years", &["report", "run", "R02", "--from", "2019-11-20", "--to", "2026-11-20"], 5.0),
    ("R03 of seven years", &["report", "run", "R03", "--from", "2019-11-20", "--to", "2026-11-20"], 5.0),
    ("R15 of seven years", &["report", "run", "R15", "--from", "2019-11-20", "--to", "2026-11-20"], 5.0),
];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (teams, events, days) =
        (number("--teams", TEAMS)?, number("--events", EVENTS_A_TEAM)?, number("--days", DAYS)?);
    let small = kept_archive((teams, events, days), text("--keep").map(PathBuf::from)).await?;
    let large = kept_archive((1, teams * events, days), text("--keep-large").map(PathBuf::from)).await?;
    println!("{teams} small teams: {}; one large team: {}", files(&small.0)?, files(&large.0)?);
    let clock = Arc::new(annals::clock::SystemClock::new());
    for (name, arguments, seconds_max) in QUESTIONS {
        let (mut of_small, mut of_large) = (Vec::<Took>::new(), Vec::new());
        for _ in 0..ROUNDS {
            for (place, times) in [(&small.0, &mut of_small), (&large.0, &mut of_large)] {
                let began = Began::now(&clock);
                ask(place, arguments)?;
                times.push(began.took());
            }
        }
        let (of_small, of_large) = (median(of_small).wall, median(of_large).wall);
        print_ratio(&format!("{name}: small teams, seconds"), of_small, seconds_max, seconds_max / 2.0);
        print_ratio(&format!("{name}: small teams / one large team"), of_small / of_large, "-", 3.0);
    }
    Ok(())
}

/// The number of connection files by role.
fn files(place: &Path) -> Result<String, Failure> {
    let archive = Archive::open(Arc::new(LocalStore::new(place)))?;
    let mut counts = std::collections::BTreeMap::<FileRole, usize>::new();
    for team in archive.teams()? {
        for file in archive.read(&team)?.state().files.values() {
            *counts.entry(file.role).or_default() += 1;
        }
    }
    let each = counts.iter().map(|(role, count)| format!("{count} {role:?}"));
    Ok(format!("{} files ({})", counts.values().sum::<usize>(), each.collect::<Vec<_>>().join(", ")))
}

fn ask(archive: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    let done = command.args(arguments).env("ANNALS_ARCHIVE", archive).output()?;
    match done.status.code() {
        Some(0 | 3) => Ok(()),
        _ => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
    }
}
