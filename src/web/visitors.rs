//! SQL of visitors: one query for each visitor, a few in total. A process of its own answers each query, with limits from the
//! system. The process is ended when it takes too long or its client is gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::clock::Clock;
use crate::report::{
    Needs, SNAPSHOT_BYTES_MAX, ViewData, VisitorAnswer, VisitorQuestion, printable, remove_stale_spills,
};

use super::problem::Problem;
use super::query_service::{broken, on_thread};
use super::queue::{QueryPermit, Queue};

/// Number of parallel queries.
const AT_ONCE: usize = 2;
/// The maximum size of an answer from its process.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The verb of this program that answers one query.
const VERB: &str = "visitor";

/// The visitors with a running query.
#[derive(Clone)]
pub struct Visitors(Arc<Shared>);

struct Shared {
    /// The path of this program, for starting it again.
    program: PathBuf,
    queue: Queue,
    running: Mutex<BTreeSet<String>>,
}

/// A visitor's query, until it ends.
struct RunningQuery {
    shared: Arc<Shared>,
    name: String,
}

impl Visitors {
    /// `program` is the path of this program: a process of it answers each query.
    pub fn new(program: PathBuf) -> Self {
        Self(Arc::new(Shared { program, queue: Queue::new(AT_ONCE), running: Mutex::default() }))
    }

    fn enter(&self, name: String) -> Result<RunningQuery, Problem> {
        if !self.0.running.lock().insert(name.clone()) {
            return Err(Problem::busy("your previous query is still running: wait for its answer, or close its page"));
        }
        Ok(RunningQuery { shared: self.0.clone(), name })
    }

    /// Runs a visitor's query on `snapshot` within `time`, minus the time already `spent`.
    ///
    /// # Errors
    /// When another query of the visitor runs, when it exceeds a limit; the errors of the query.
    pub async fn ask(
        &self,
        name: String,
        question: VisitorQuestion,
        snapshot: Arc<ViewData>,
        (time, spent): (Duration, Duration),
        clock: Arc<dyn Clock>,
    ) -> Result<VisitorAnswer, Problem> {
        let visit = self.enter(name)?;
        let (turn, left) = self.0.queue.turn(clock.as_ref(), time.saturating_sub(spent)).await?;
        // Dropped with this future when the client is gone.
        let (_waits, gone) = oneshot::channel::<()>();
        let asked = async move {
            let (spill_parent, visit) = (question.engine.spill_parent.clone(), visit);
            let mut child = start(&visit.shared.program)?;
            let answer = tokio::select! {
                answer = ask_process(&mut child, &question, snapshot) => answer,
                () = clock.sleep(left) => Err(Problem::too_long(time.as_secs())),
                _ = gone => Err(Problem::busy("the client is gone")),
            };
            end(child, &spill_parent, (visit, turn)).await;
            answer
        };
        // A task of its own, so that the query ends properly even if the client is gone.
        match tokio::spawn(asked).await.map_err(|_| broken())?? {
            VisitorAnswer::Wrong(message) => Err(Problem::bad(printable(&message))),
            answer => Ok(answer),
        }
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.shared.running.lock().remove(&self.name);
    }
}

/// The process receives only the question: its environment is empty and holds no token.
fn start(program: &Path) -> Result<Child, Problem> {
    let mut command = Command::new(program);
    command.arg(VERB).env_clear().current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().map_err(|error| {
        tracing::warn!(%error, "cannot start a process for a visitor's query");
        Problem::failed(format!("cannot start a process for the query: {error}"))
    })
}

/// Sends the question and the snapshot, and reads the answer. Standard input remains open: its end would tell the process to end.
async fn ask_process(
    child: &mut Child,
    question: &VisitorQuestion,
    snapshot: Arc<ViewData>,
) -> Result<VisitorAnswer, Problem> {
    let mut line = serde_json::to_vec(question).expect("BUG: a question is plain data");
    line.push(b'\n');
    let needs = Needs::of_sql([question.sql.as_str()]);
    let written = move || serde_json::to_vec(&snapshot.narrowed(&needs)).map_err(|_| broken());
    let mut snapshot = on_thread(written).await?;
    snapshot.push(b'\n');
    if snapshot.len() as u64 > SNAPSHOT_BYTES_MAX {
        return Err(Problem::too_large("these teams have too much data for one query: name a team"));
    }
    let mut input = child.stdin.take();
    if let Some(input) = &mut input {
        // If the process does not read the question, it sends no answer, which is an error below.
        let _ = input.write_all(&line).await;
        let _ = input.write_all(&snapshot).await;
    }
    drop((line, snapshot));
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        let _ = output.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() as u64 > ANSWER_BYTES_MAX {
        return Err(Problem::too_large(format!(
            "the answer has more than {} MiB: select fewer rows or columns",
            ANSWER_BYTES_MAX >> 20
        )));
    }
    let status =
        child.wait().await.map_err(|error| Problem::failed(format!("cannot wait for the query's process: {error}")))?;
    match serde_json::from_slice(&bytes) {
        Ok(VisitorAnswer::TooLarge) => Err(too_much_memory(question)),
        Ok(answer) if status.success() => Ok(answer),
        _ => Err(died(status, question)),
    }
}

fn too_much_memory(question: &VisitorQuestion) -> Problem {
    let mib = question.engine.memory_mib;
    Problem::too_large(format!(
        "the query needs more memory than its limit of {mib} MiB: select fewer rows, or smaller values"
    ))
}

/// A process without memory aborts, or the system kills it.
fn died(status: ExitStatus, question: &VisitorQuestion) -> Problem {
    use std::os::unix::process::ExitStatusExt;
    const ABORTED: i32 = 6;
    const KILLED: i32 = 9;
    const CPU_TIME: i32 = 24;
    tracing::warn!(%status, "the process of a visitor's query died");
    match status.signal() {
        Some(ABORTED | KILLED) => too_much_memory(question),
        Some(CPU_TIME) => Problem::too_long(question.cpu_seconds),
        _ => {
            Problem::failed(format!("the query's process died ({status}): the daemon and the archive are not affected"))
        }
    }
}

/// Kills the process and removes its spill files. The visitor's next query can start after that.
async fn end(mut child: Child, spill_parent: &Path, _held: (RunningQuery, QueryPermit)) {
    let _ = child.start_kill();
    let _ = child.wait().await;
    let spill_parent = spill_parent.to_owned();
    let _ = tokio::task::spawn_blocking(move || remove_stale_spills(&spill_parent)).await;
}
