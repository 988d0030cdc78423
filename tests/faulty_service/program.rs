//! Runs the real binary like a user.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;
use tempfile::TempDir;

use super::service::Service;
use crate::common::wait::{PATIENCE, note, now};

/// How often to look whether a run has ended.
const POLL: Duration = Duration::from_millis(1);

/// How one run ended.
#[derive(Debug)]
pub struct Run {
    /// `None`: killed by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    pub fn said(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.said().contains(word),
                "nothing of {word:?} in stdout:\n{}\nstderr:\n{}",
                self.stdout,
                self.stderr
            );
        }
        self
    }
}

pub struct Program {
    home: TempDir,
    base_url: String,
    token: Mutex<String>,
    /// The output of all runs.
    printed: Mutex<String>,
    syncs: AtomicUsize,
    /// Arguments of every run.
    environment: Vec<(&'static str, PathBuf)>,
}

impl Program {
    /// An empty archive of `service`.
    pub fn of(service: &Service) -> Self {
        Self::through(service, service.base_url())
    }

    /// An empty archive of `service`, which has another address.
    pub fn through(service: &Service, base_url: String) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            base_url,
            token: Mutex::new(service.token.clone()),
            printed: Mutex::default(),
            syncs: AtomicUsize::new(0),
            environment: Vec::new(),
        }
    }

    pub fn with_variable(mut self, name: &'static str, path: PathBuf) -> Self {
        self.environment.push((name, path));
        self
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn archive(&self) -> PathBuf {
        self.home.path().join("archive")
    }

    pub fn set_token(&self, token: &str) {
        token.clone_into(&mut self.token.lock().unwrap());
    }

    pub fn token(&self) -> String {
        self.token.lock().unwrap().clone()
    }

    /// `annals.toml` of all further runs.
    pub fn configure(&self, text: &str) {
        put(&self.home.path().join("annals.toml"), text.as_bytes());
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.dressed(Command::new(env!("CARGO_BIN_EXE_annals")), arguments)
    }

    /// The binary, started by the shell script `script` with the binary and its arguments in `"$@"`.
    pub fn through_shell(&self, script: &str, arguments: &[&str]) -> Run {
        let mut command = Command::new("bash");
        command.args(["-c", script, "annals", env!("CARGO_BIN_EXE_annals")]);
        self.finish(self.dressed(command, arguments))
    }

    fn dressed(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("ANNALS_TOKEN", self.token())
            .env("ANNALS_BASE_URL", &self.base_url)
            .env("ANNALS_ARCHIVE", self.archive())
            .env("ANNALS_REQUESTS_PER_SECOND", "0")
            .env_remove("ANNALS_CONFIG")
            .env_remove("ANNALS_TOKEN_FILE")
            .env("NO_COLOR", "1")
            .envs(self.environment.iter().map(|(name, path)| (name, path)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.finish(self.command(arguments))
    }

    /// The number of started runs.
    pub fn syncs(&self) -> usize {
        self.syncs.load(Ordering::SeqCst)
    }

    pub fn sync(&self, arguments: &[&str]) -> Run {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.run(&[&["sync"], arguments].concat())
    }

    /// Starts a sync in the background.
    pub fn start_sync(&self, arguments: &[&str]) -> Running<'_> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.start(&[&["sync"], arguments].concat())
    }

    /// Starts a run in the background.
    pub fn start(&self, arguments: &[&str]) -> Running<'_> {
        Running { program: self, child: Some(watch(self.command(arguments).spawn().unwrap())) }
    }

    /// Runs a command made by [`Program::command`] to its end.
    pub fn finish(&self, mut command: Command) -> Run {
        Running { program: self, child: Some(watch(command.spawn().unwrap())) }.wait()
    }

    pub fn printed(&self) -> MutexGuard<'_, String> {
        self.printed.lock().unwrap()
    }

    /// The rows of a query.
    #[track_caller]
    pub fn sql(&self, query: &str) -> Vec<Value> {
        let run = self.run(&["sql", query, "--format", "ndjson"]).ended(0);
        note(query, &run.stdout);
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every ledger file's bytes, in order.
    pub fn ledger(&self) -> Vec<(PathBuf, Vec<u8>)> {
        files_below(&self.archive().join("ledger"))
            .into_iter()
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }

    pub fn ledger_lines(&self) -> usize {
        self.ledger().iter().map(|(_, bytes)| bytes.iter().filter(|&&byte| byte == b'\n').count()).sum()
    }
}

/// A run in the background. A drop kills it; a failed test shows its log.
pub struct Running<'a> {
    program: &'a Program,
    /// `None`: the run has ended, and its output was taken.
    child: Option<Watched>,
}

impl Drop for Running<'_> {
    #[expect(clippy::print_stderr, reason = "the test runner shows it")]
    fn drop(&mut self) {
        if self.child.is_some() {
            let run = self.end_within(Duration::ZERO).0;
            if std::thread::panicking() {
                eprintln!("the log of the program:\n{}", run.stderr);
            }
        }
    }
}

impl Running<'_> {
    /// Stops the process with SIGSTOP, or lets it continue.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.child.as_ref().expect("it is taken at the end").process)
    }

    /// Stops the process with SIGSTOP. Returns false if it ended before.
    pub fn stop(&self) -> bool {
        self.signal(Signal::STOP);
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.id()), options));
        status.unwrap().unwrap().stopped()
    }

    /// Whether the process has closed its standard error.
    pub fn has_ended(&self) -> bool {
        self.closes_within(Duration::ZERO)
    }

    fn closes_within(&self, span: Duration) -> bool {
        let child = self.child.as_ref().expect("it is taken at the end");
        child.closed.recv_timeout(span) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits for the end, and kills the process with SIGKILL after `span`.
    pub fn kill_after(mut self, span: Duration) -> Run {
        self.end_within(span).0
    }

    /// Waits until `is_time` is true, or the run has ended.
    pub fn watch(&self, mut is_time: impl FnMut() -> bool) {
        let end = now() + PATIENCE;
        while !is_time() && !self.closes_within(POLL) {
            assert!(now() < end, "neither the awaited moment nor the end of the run came within {PATIENCE:?}");
        }
    }

    /// Waits for the end, and kills the process with SIGKILL as soon as `is_time` is true.
    pub fn kill_when(self, is_time: impl FnMut() -> bool) -> Run {
        self.watch(is_time);
        self.kill_after(Duration::ZERO)
    }

    #[track_caller]
    pub fn wait(mut self) -> Run {
        let (run, was_killed) = self.end_within(PATIENCE);
        assert!(!was_killed, "no end after {PATIENCE:?}, stderr:\n{}", run.stderr);
        run
    }

    fn end_within(&mut self, span: Duration) -> (Run, bool) {
        let was_killed = !self.closes_within(span);
        let mut child = self.child.take().expect("it is taken at the end");
        if was_killed {
            child.process.kill().unwrap();
        }
        let status = child.process.wait().unwrap();
        let stdout = child.stdout.join().unwrap();
        let stderr = child.stderr.join().unwrap();
        let run = Run { code: status.code(), stdout, stderr };
        self.program.printed().push_str(&run.said());
        (run, was_killed)
    }
}

struct Watched {
    process: Child,
    stdout: std::thread::JoinHandle<String>,
    stderr: std::thread::JoinHandle<String>,
    /// This ends when the process closes its standard error.
    closed: mpsc::Receiver<()>,
}

fn watch(mut process: Child) -> Watched {
    let (sender, closed) = mpsc::channel();
    let (out, err) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
    let stdout = std::thread::spawn(move || text_of(out));
    let stderr = std::thread::spawn(move || {
        let text = text_of(err);
        drop(sender);
        text
    });
    Watched { process, stdout, stderr, closed }
}

fn text_of(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every file below a directory, sorted.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files_below(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

/// The live files of a dataset, as the program lists them.
pub fn live_files(program: &Program, dataset: &str) -> Vec<PathBuf> {
    program.run(&["files", dataset]).ended(0).stdout.lines().map(PathBuf::from).collect()
}

/// The files of sealed days and months and their amendments; of one dataset, or of all if `dataset` is empty.
pub fn sealed_files(archive: &Path, dataset: &str) -> Vec<PathBuf> {
    let is_sealed = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["-day-", "-month-", "-amendment-"].iter().any(|role| name.contains(role))
    };
    files_below(&archive.join("tables").join(dataset)).into_iter().filter(is_sealed).collect()
}

/// Replaces a file's content.
pub fn put(path: &Path, bytes: &[u8]) {
    fs::File::create(path).unwrap().write_all(bytes).unwrap();
}
