//! The daemon in its own process, with a sandbox in this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use annals::model::{DeviceId, Instant, Stream, TeamId};
use annals::sandbox::{InsertedEvent, RunningSandbox, Sandbox, SandboxConfig};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::common::wait::note;
pub use crate::common::wait::{PATIENCE, now, pause, wait_for};

/// The polling interval of all streams, in seconds.
pub const POLLS: &str =
    "[schedule]\nconnections = \"*/2 * * * * *\"\nactivity = \"*/2 * * * * *\"\nbilling = \"*/3 * * * * *\"\n";

/// A sandbox, and a daemon's directory with `annals.toml` and `token`.
pub struct Scene {
    pub home: TempDir,
    pub sandbox: RunningSandbox,
    _runtime: Runtime,
}

impl Scene {
    pub fn new(teams: u32) -> Self {
        Self::of(SandboxConfig { teams, days: 2, sessions_per_day: 30, ..SandboxConfig::default() })
    }

    pub fn of(config: SandboxConfig) -> Self {
        let runtime = Runtime::new().unwrap();
        let sandbox = runtime.block_on(Sandbox::start(config)).unwrap();
        let scene = Self { home: tempfile::tempdir().unwrap(), sandbox, _runtime: runtime };
        scene.set_token(&scene.sandbox.read_only_token);
        scene.configure(POLLS);
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn set_token(&self, token: &str) {
        put(&self.path("token"), token);
    }

    /// Writes `annals.toml`: the service, no rate limit, a free port, and `more`.
    pub fn configure(&self, more: &str) {
        let listen = if more.contains("[http]") { "" } else { "[http]\nlisten = \"127.0.0.1:0\"\n" };
        let base_url = &self.sandbox.base_url;
        let api = format!("[api]\nbase_url = \"{base_url}\"\ntoken_file = \"token\"\nrequests_per_second = 0\n");
        put(&self.path("annals.toml"), format!("archive = \"archive\"\n{api}{listen}{more}"));
    }

    pub fn team(&self, n: usize) -> TeamId {
        self.sandbox.teams[n].clone()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.args(arguments).current_dir(self.home.path()).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, &[])
    }

    pub fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(arguments).envs(variables.iter().copied()).output().unwrap()
    }

    /// Starts the daemon and waits until it is ready.
    pub fn start(&self) -> Running {
        self.start_with(&[])
    }

    pub fn start_with(&self, variables: &[(&str, &str)]) -> Running {
        Self::wait_ready(self.command(&["run"]).envs(variables.iter().copied()).spawn().unwrap())
    }

    /// Starts the daemon, does something during the start, and waits until it is ready.
    pub fn start_with_events(&self, during: impl FnOnce(&Running)) -> Running {
        let starting = Running::of(self.command(&["run"]).spawn().unwrap());
        during(&starting);
        starting.ready()
    }

    /// The same, in a process with this limit of descriptors.
    pub fn start_within(&self, descriptors: u32) -> Running {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -n {descriptors} && exec \"$0\" run"), env!("CARGO_BIN_EXE_annals")]);
        shell.current_dir(self.home.path()).env_clear();
        Self::wait_ready(shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn wait_ready(child: Child) -> Running {
        Running::of(child).ready()
    }

    /// The rows of a query.
    pub fn sql(&self, query: &str) -> Vec<Value> {
        let output = self.run(&["sql", query, "--format", "ndjson"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer = String::from_utf8(output.stdout).unwrap();
        note(query, &answer);
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn count(&self, of: &str) -> u64 {
        self.sql(&format!("select count(*)::int as n from {of}"))[0]["n"].as_u64().unwrap()
    }

    /// Adds a connection event of now with `mark` in its id.
    pub fn connect(&self, team: &TeamId, mark: &str) {
        let now = self.sandbox.handle.now();
        let device = self.sandbox.handle.devices(team)[0].clone();
        let raw = format!(
            r#"{{"id":"{mark}","timestamp":{},"deviceID":"{device}","connectionClosedEvent":{{}}}}"#,
            now.nanos() / 1_000_000
        );
        assert!(self.sandbox.handle.insert(team, Stream::Connections, inserted(&raw, now, Some(device))));
    }

    /// Asserts that `verify` finds no fault, and that the archive holds every event of the service once.
    pub fn holds_the_truth(&self) {
        let verified = self.run(&["verify"]);
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
        for team in &self.sandbox.teams {
            for (stream, since) in [(Stream::Connections, "connections"), (Stream::Activity, "activity")] {
                let held = self.count(&format!("{since} where team_id = '{team}'"));
                let truth = self.sandbox.handle.truth(team, stream).count() as u64;
                assert_eq!(held, truth, "{team} {stream}");
            }
        }
    }
}

fn inserted(raw: &str, at: Instant, device: Option<DeviceId>) -> InsertedEvent {
    InsertedEvent { raw: raw.to_owned().into(), at, device, visible_from: None }
}

/// A running daemon. A drop kills it; a failed test shows its output.
pub struct Running {
    pub child: Child,
    pub log: Log,
    pub address: String,
}

impl Running {
    fn of(mut child: Child) -> Self {
        let log = Log::of(child.stderr.take().unwrap());
        Self { child, log, address: String::new() }
    }

    fn ready(mut self) -> Self {
        let ready = self.log.wait(|line| line["message"] == "ready");
        self.address = ready["listen"].as_str().unwrap().to_owned();
        self
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Makes the daemon read its configuration again, and waits for its next log line that fits.
    #[track_caller]
    pub fn reload(&self, fits: impl Fn(&Value) -> bool) -> Value {
        let logged = self.log.length();
        self.signal(Signal::HUP);
        self.log.wait_beyond(logged, fits)
    }

    /// Waits for the end, and returns the exit code.
    pub fn ends(&mut self) -> Option<i32> {
        wait_for("the end of the daemon", || self.child.try_wait().unwrap()).code()
    }

    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.ends(), Some(0), "{}", self.log.text());
    }

    /// Status and body of a GET.
    pub fn get(&self, path: &str) -> (u16, String) {
        get(&self.address, path, None)
    }

    pub fn is_ready(&self) -> bool {
        self.get("/readyz").0 == 200
    }

    /// The value of a metric's series, with `labels` in their printed form.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let text = self.get("/metrics").1;
        let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        note(series, line.unwrap_or("no such series"));
        line?.rsplit(' ').next().unwrap().parse().ok()
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "the test runner shows it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the daemon's log:\n{}", self.log.text());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The daemon's log: one JSON object a line.
#[derive(Clone)]
pub struct Log(Arc<(Mutex<Lines>, Condvar)>);

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    /// The process has closed its log.
    is_over: bool,
}

impl Log {
    pub fn of(from: impl Read + Send + 'static) -> Self {
        let log = Self(Arc::default());
        let theirs = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                theirs.0.0.lock().unwrap().lines.push(line);
                theirs.0.1.notify_all();
            }
            theirs.0.0.lock().unwrap().is_over = true;
            theirs.0.1.notify_all();
        });
        log
    }

    pub fn text(&self) -> String {
        self.0.0.lock().unwrap().lines.join("\n")
    }

    /// The number of lines so far.
    pub fn length(&self) -> usize {
        self.0.0.lock().unwrap().lines.len()
    }

    /// Waits for the first matching log line.
    #[track_caller]
    pub fn wait(&self, fits: impl Fn(&Value) -> bool) -> Value {
        self.wait_beyond(0, fits)
    }

    /// The same, without the first `logged` lines.
    #[track_caller]
    pub fn wait_beyond(&self, logged: usize, fits: impl Fn(&Value) -> bool) -> Value {
        let end = now() + PATIENCE;
        let mut log = self.0.0.lock().unwrap();
        loop {
            let mut later = log.lines.iter().skip(logged).filter_map(|line| serde_json::from_str(line).ok());
            if let Some(line) = later.find(|line| fits(line)) {
                return line;
            }
            assert!(!log.is_over, "the process ended without such a log line:\n{}", log.lines.join("\n"));
            assert!(now() < end, "no such log line within {PATIENCE:?}:\n{}", log.lines.join("\n"));
            log = self.0.1.wait_timeout(log, end - now()).unwrap().0;
        }
    }
}

pub fn get(address: &str, path: &str, token: Option<&str>) -> (u16, String) {
    let Ok(mut stream) = std::net::TcpStream::connect(address) else {
        note(path, "no connection");
        return (0, String::new());
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let mut answer = String::new();
    // The daemon may end the connection at any time.
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n");
    let _ = stream.read_to_string(&mut answer);
    note(path, &answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body.to_owned())
}

/// The memory of a process that is in use, in KiB.
pub fn resident_kib(process: u32) -> u64 {
    let listed = Command::new("ps").args(["-o", "rss=", "-p", &process.to_string()]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().trim().parse().unwrap()
}

/// Replaces a file. A running daemon sees the old text or the new text, and no other file.
pub fn put(path: &Path, content: impl AsRef<[u8]>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content.as_ref()).unwrap();
    file.persist(path).unwrap();
}
