//! Compares a month's evidence pack on an archive of a million connection events with a plain reading of the same rows.
//!
//! Prints the time of the whole program, the time in which the same engine reads every column of every row once, and
//! their ratio. `--events N` sets another size.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::path::Path;
use std::process::Command;

use annals::report::{Engine, Format, Limits, Medium, ViewData, sink_for};
use support::{Began, Failure, World, median, number, print_ratio};

const EVENTS: u32 = 1_000_000;
const DAYS: u32 = 30;
const ROUNDS: usize = 3;
const SECONDS_MAX: f64 = 10.0;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let events = number("--events", EVENTS)?;
    let world = World::start(events, DAYS).await?;
    let held = world.backfill().await?;
    let mut data = ViewData::default();
    data.add_state(held.directory.path().to_str().ok_or("a path in UTF-8")?, held.archive.read(world.team())?.state());
    let engine = Engine::open(data, &Limits::default())?;
    let (mut plain, mut packed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Began::now(&world.clock);
        let mut nowhere = std::io::sink();
        let mut rows = sink_for(Format::Csv, &mut nowhere, Medium::default());
        engine.query("SELECT * EXCLUDE (raw) FROM connections", rows.as_mut())?;
        plain.push(began.took());
        let began = Began::now(&world.clock);
        pack(held.directory.path(), round)?;
        packed.push(began.took());
    }
    let (plain, packed) = (median(plain), median(packed));
    println!("{} events: pack {:.1} s, the rows as plain CSV {:.1} s", world.events(), packed.wall, plain.wall);
    print_ratio("a month's pack, seconds", packed.wall, SECONDS_MAX, SECONDS_MAX / 2.0);
    print_ratio("a month's pack / its rows once as CSV", packed.wall / plain.wall, "-", 3.0);
    Ok(())
}

fn pack(archive: &Path, round: usize) -> Result<(), Failure> {
    let output = archive.with_extension(format!("pack-{round}"));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    command.args(["report", "pack", "--from", "2026-10-21", "--to", "2026-11-20", "-o"]).arg(&output);
    let done = command.env("ANNALS_ARCHIVE", archive).output()?;
    std::fs::remove_dir_all(&output)?;
    match done.status.code() {
        Some(0 | 3) => Ok(()),
        _ => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
    }
}
