//! Open tables of a thousand small teams: how long a publication takes, how large its metadata is, and how fast the
//! daemon's catalog answers from memory.
//!
//! The pipeline reads the archive from the sandbox. The program then publishes it, and serves it from its port to one
//! client that loads tables one after the other. `--teams N`, `--events N` (of a team) and `--days N` set other sizes;
//! `--keep DIRECTORY` keeps the archive there, and uses it again.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../tests/common/free_port.rs"]
mod free_port;
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use annals::clock::SystemClock;
use free_port::free_port;
use support::{Began, Failure, Took, kept_archive, median, number, print_ratio, text};

const TEAMS: u32 = 1_000;
const EVENTS_A_TEAM: u32 = 120;
const DAYS: u32 = 4;
const LOADS: usize = 1_000;
const STARTS_MAX: u32 = 200;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (teams, events, days) =
        (number("--teams", TEAMS)?, number("--events", EVENTS_A_TEAM)?, number("--days", DAYS)?);
    let archive = kept_archive((teams, events, days), text("--keep").map(PathBuf::from)).await?;
    let clock = Arc::new(SystemClock::new());
    let first = publish(&archive.0, &clock)?;
    let again = publish(&archive.0, &clock)?;
    let (metadata, data) = (bytes(&archive.0, true)?, bytes(&archive.0, false)?);
    println!("{teams} teams of {events} events: {metadata} bytes of metadata, {data} bytes of data");
    print_ratio("the first publication of all tables, seconds", first.wall, "-", 10.0);
    print_ratio("a publication without changes, seconds", again.wall, "-", 5.0);
    let home = tempfile::tempdir()?;
    let daemon = Daemon::start(&archive.0, home.path())?;
    for table in ["connections", "sessions"] {
        let path = format!("/iceberg/v1/namespaces/annals/tables/{table}");
        let size = daemon.get(&path)?;
        let mut times = Vec::new();
        for _ in 0..LOADS {
            let began = Began::now(&clock);
            daemon.get(&path)?;
            times.push(began.took());
        }
        times.sort_by(|a, b| a.wall.total_cmp(&b.wall));
        let slow = times[LOADS * 99 / 100].wall;
        println!("{table}: an answer has {size} bytes");
        print_ratio(&format!("load {table}, median, milliseconds"), median(times).wall * 1e3, 10.0, 2.0);
        print_ratio(&format!("load {table}, 99 of 100, milliseconds"), slow * 1e3, "-", 10.0);
    }
    Ok(())
}

fn annals() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("annals"))
}

fn publish(archive: &Path, clock: &Arc<SystemClock>) -> Result<Took, Failure> {
    let began = Began::now(clock);
    let done = annals().arg("publish").env("ANNALS_ARCHIVE", archive).output()?;
    let took = began.took();
    match done.status.success() {
        true => Ok(took),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
    }
}

/// The bytes of the tables' metadata, or of the other files of the tables.
fn bytes(archive: &Path, is_metadata: bool) -> Result<u64, Failure> {
    let mut sum = 0;
    let mut directories = vec![archive.join("tables")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else if directory.ends_with("metadata") == is_metadata {
                sum += entry.metadata()?.len();
            }
        }
    }
    Ok(sum)
}

/// The daemon over an archive, whose service does not answer.
struct Daemon {
    process: Child,
    address: String,
}

impl Daemon {
    fn start(archive: &Path, home: &Path) -> Result<Self, Failure> {
        let address = format!("127.0.0.1:{}", free_port());
        let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = annals();
        command.arg("run").current_dir(home).env("ANNALS_ARCHIVE", archive).env("ANNALS_TOKEN", "none");
        command.env("ANNALS_BASE_URL", format!("http://{nobody}"));
        std::fs::File::create(home.join("annals.toml"))?
            .write_all(format!("[http]\nlisten = \"{address}\"\n").as_bytes())?;
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let daemon = Self { process, address };
        for _ in 0..STARTS_MAX {
            if daemon.get("/iceberg/v1/config").is_ok() {
                return Ok(daemon);
            }
            pause();
        }
        Err("the daemon does not answer".into())
    }

    /// The bytes of an answer.
    fn get(&self, path: &str) -> Result<usize, Failure> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        match answer.starts_with(b"HTTP/1.1 200 ") {
            true => Ok(answer.len()),
            false => Err(format!("{path}: {}", String::from_utf8_lossy(&answer)).into()),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the test waits for another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}
