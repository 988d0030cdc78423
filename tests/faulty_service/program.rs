//! Runs the real binary like a user.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::service::Service;

/// The time limit of a run. A longer run is killed, and the test fails.
const RUN_SECONDS_MAX: u64 = 60;
/// How often to check whether to kill a run.
const POLL_MILLIS: u64 = 1;

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
        Running { program: self, child: watch(self.command(arguments).spawn().unwrap()) }
    }

    /// Runs a command made by [`Program::command`] to its end.
    pub fn finish(&self, mut command: Command) -> Run {
        let running = Running { program: self, child: watch(command.spawn().unwrap()) };
        running.wait()
    }

    pub fn printed(&self) -> MutexGuard<'_, String> {
        self.printed.lock().unwrap()
    }

    /// The rows of a query.
    #[track_caller]
    pub fn sql(&self, query: &str) -> Vec<Value> {
        let run = self.run(&["sql", query, "--format", "ndjson"]).ended(0);
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

/// A run in the background.
pub struct Running<'a> {
    program: &'a Program,
    child: Watched,
}

impl Running<'_> {
    /// Stops the process with SIGSTOP, or lets it continue.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.process.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Waits for the end, and kills the process with SIGKILL after `span`.
    pub fn kill_after(self, span: Duration) -> Run {
        self.end_within(span).0
    }

    /// Waits for the end, and kills the process with SIGKILL as soon as `is_time` is true.
    pub fn kill_when(self, mut is_time: impl FnMut() -> bool) -> Run {
        for _ in 0..RUN_SECONDS_MAX * 1_000 / POLL_MILLIS {
            let closed = self.child.closed.recv_timeout(Duration::from_millis(POLL_MILLIS));
            if closed != Err(RecvTimeoutError::Timeout) || is_time() {
                return self.kill_after(Duration::ZERO);
            }
        }
        panic!("no end after {RUN_SECONDS_MAX} s: {:?}", self.kill_after(Duration::ZERO));
    }

    #[track_caller]
    pub fn wait(self) -> Run {
        let (run, was_killed) = self.end_within(Duration::from_secs(RUN_SECONDS_MAX));
        assert!(!was_killed, "no end after {RUN_SECONDS_MAX} s, stderr:\n{}", run.stderr);
        run
    }

    fn end_within(mut self, span: Duration) -> (Run, bool) {
        let was_killed = match self.child.closed.recv_timeout(span) {
            Err(RecvTimeoutError::Timeout) => {
                self.child.process.kill().unwrap();
                true
            }
            _ => false,
        };
        let status = self.child.process.wait().unwrap();
        let stdout = self.child.stdout.join().unwrap();
        let stderr = self.child.stderr.join().unwrap();
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
