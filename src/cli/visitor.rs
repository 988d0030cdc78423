//! The process that answers one query of a page visitor. `annals run` starts it; no person does.
//!
//! The process reads one question, asks the system to limit it, reads the daemon's snapshot of the archive, answers, and ends. It
//! has no token and no environment, and replays no ledger. It ends when its standard input ends, as it does when the daemon dies.

use std::fs::OpenOptions;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

use crate::archive::Archive;
use crate::error::{Error, Exit};
use crate::files::remove_work_folders;
use crate::report::{ReportError, SNAPSHOT_BYTES_MAX, ViewData, VisitorAnswer, VisitorQuestion};
use crate::store::LocalStore;

use super::output;

/// The largest question: the query and its limits.
const QUESTION_BYTES_MAX: u64 = 1 << 20;
const MIB: u64 = 1 << 20;
/// Reading the service has priority.
const NICENESS: i32 = 10;

pub fn run() -> Result<Exit, Error> {
    let line = read_line(QUESTION_BYTES_MAX)?;
    let question: VisitorQuestion = serde_json::from_slice(&line).map_err(|_| {
        Error::Usage("only `annals run` starts this command: to query in SQL, use `annals sql`".to_owned())
    })?;
    let answer = match confine(&question) {
        Ok(()) => answer(&question)?,
        Err(why) => {
            VisitorAnswer::Failed(format!("the system cannot limit this process, so it answers no query: {why}"))
        }
    };
    output::print(&serde_json::to_vec(&answer).expect("BUG: an answer is plain data"))?;
    Ok(Exit::Done)
}

fn read_line(bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(bytes_max);
    input.read_until(b'\n', &mut line).map_err(|source| Error::io("cannot read the question", source))?;
    Ok(line)
}

fn answer(question: &VisitorQuestion) -> Result<VisitorAnswer, Error> {
    let line = read_line(SNAPSHOT_BYTES_MAX)?;
    exit_when_stdin_closes()?;
    let data = serde_json::from_slice::<ViewData>(&line);
    drop(line);
    let answer = data.map_err(|error| ReportError::Engine(error.to_string())).and_then(|mut data| {
        if let Some(root) = &question.root {
            data.archive = Some(open(root, question).map_err(ReportError::Engine)?);
        }
        question.answer(data)
    });
    Ok(answer.unwrap_or_else(VisitorAnswer::from))
}

/// The archive with the daemon's options of a check.
fn open(root: &Path, question: &VisitorQuestion) -> Result<Archive, String> {
    let archive = Archive::open(Arc::new(LocalStore::new(root))).map_err(|error| error.to_string())?;
    let mut archive = archive.with_grace(question.grace);
    archive.checks.keys = question.keys.iter().map(|key| key.parse()).collect::<Result<_, String>>()?;
    Ok(archive)
}

/// From now on the system enforces the limits. No core dump: it would hold archived data.
fn confine(question: &VisitorQuestion) -> io::Result<()> {
    // macOS refuses this limit: there only the engine's own limit bounds a query's memory.
    if !cfg!(target_os = "macos") {
        bound(Resource::As, u64::from(question.process_mib) * MIB)?;
    }
    bound(Resource::Cpu, question.cpu_seconds)?;
    bound(Resource::Core, 0)?;
    // If the system refuses these, only its scheduling changes.
    let _ = nice(NICENESS);
    if let Ok(mut score) = OpenOptions::new().write(true).open("/proc/self/oom_score_adj") {
        let _ = score.write_all(b"1000");
    }
    Ok(())
}

fn bound(resource: Resource, most: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(most, |held| held.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Ends the process when standard input ends: then no process waits for the answer.
fn exit_when_stdin_closes() -> Result<(), Error> {
    let wait = || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        remove_work_folders();
        std::process::exit(i32::from(Exit::Fault as u8));
    };
    let thread = std::thread::Builder::new().name("daemon".into()).spawn(wait);
    thread.map(drop).map_err(|source| Error::io("cannot start a thread", source))
}
