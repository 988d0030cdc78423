//! Compares a question about one month of a year's archive in a bucket with the same question on a local disk. Each
//! answer is a run of the whole program, in turn. The bucket is MiniStack's (`scripts/object-stores.sh install`),
//! otherwise our own server's.
//!
//! Prints the files that the first question fetches, the medians of later questions, and their ratio. The ratio
//! should be at most 1.2.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../tests/common/free_port.rs"]
mod free_port;
#[path = "support/months.rs"]
mod months;
#[path = "../tests/common/third_party_server.rs"]
mod third_party_server;
#[path = "../tests/common/wait.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod wait;

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use annals::clock::{Clock, SystemClock};
use annals::model::path::month_of;
use months::{EVENTS_A_MONTH, make_archive};
use object_server::{ACCESS_KEY, BUCKET, ObjectServer, REGION, SECRET_KEY};
use third_party_server::Server;

const MONTHS: usize = 12;
const ROUNDS: usize = 21;

/// A server with a bucket.
enum Bucket {
    MiniStack(Server),
    Own(ObjectServer),
}

impl Bucket {
    fn start() -> Self {
        Server::ministack(BUCKET).map_or_else(|| Self::Own(ObjectServer::start()), Self::MiniStack)
    }

    fn endpoint(&self) -> String {
        match self {
            Self::MiniStack(server) => server.endpoint(),
            Self::Own(server) => server.endpoint(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = SystemClock::new();
    let bucket = Bucket::start();
    let directory = tempfile::tempdir()?;
    let (local, cache) = (directory.path().join("archive"), directory.path().join("cache"));
    let months = make_archive(&local, MONTHS)?;
    let config = directory.path().join("annals.toml");
    write(&config, &format!("[cache]\ndirectory = {cache:?}\n"))?;
    let local = local.to_str().ok_or("the temporary directory is UTF-8")?.to_owned();
    let remote = format!("s3://{BUCKET}/archive");
    let run = |arguments: &[&str], archive: &str| -> Result<(String, Duration), Box<dyn Error>> {
        let began = clock.monotonic();
        let done = Command::new(env!("CARGO_BIN_EXE_annals"))
            .args(arguments)
            .args(["--archive", archive, "--config"])
            .arg(&config)
            .env("AWS_ENDPOINT_URL", bucket.endpoint())
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .output()?;
        let took = clock.monotonic() - began;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into());
        }
        Ok((String::from_utf8(done.stdout)?, took))
    };
    run(&["copy", &local, &remote], &local)?;
    let month = month_of(months[MONTHS / 2]);
    let question = format!(
        "SELECT device_id, count(*), max(event_time) FROM connections WHERE event_time >= '{}' AND event_time < '{}' \
         GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
        month.start.day(),
        month.end.day()
    );
    let (_, took) = run(&["sql", &question], &remote)?;
    let (held, _) = run(&["cache", "status", "--format", "csv"], &remote)?;
    let of = if matches!(bucket, Bucket::MiniStack(_)) { "MiniStack" } else { "our own server" };
    println!("{MONTHS} months of {EVENTS_A_MONTH} events in a bucket of {of}; a question about one month");
    println!("asked first: {took:.1?}; the cache holds then: {}", held.lines().last().unwrap_or_default());
    let report = ["report", "run", "R01", "--from", &month.start.day(), "--to", &month.end.day(), "--format", "csv"];
    let _ = run(&report, &remote)?;
    let (held, _) = run(&["cache", "status", "--format", "csv"], &remote)?;
    for (name, arguments) in [("the question", &["sql", &question][..]), ("a report of the month", &report[..])] {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (answer, took) = run(arguments, &local)?;
            here.push(took);
            let (again, took) = run(arguments, &remote)?;
            there.push(took);
            assert!(without_time(&answer) == without_time(&again), "the answers differ");
        }
        let (here, there) = (median(here), median(there));
        let ratio = there.as_secs_f64() / here.as_secs_f64();
        println!(
            "{name}, asked again: {there:.1?} of the bucket, {here:.1?} of the disk, ratio {ratio:.2} (limit 1.20)"
        );
    }
    let (after, _) = run(&["cache", "status", "--format", "csv"], &remote)?;
    assert_eq!(held, after, "a repeated question fetches nothing");
    Ok(())
}

/// A report says when it was made.
fn without_time(answer: &str) -> Vec<&str> {
    answer.lines().filter(|line| !line.starts_with("# made: ")).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "a file of the benchmark alone")]
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)
}
