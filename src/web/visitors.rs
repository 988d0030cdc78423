//! SQL of visitors: one query of each at a time, a few of all, each answered by a process of its own that the system bounds,
//! and that is ended when it takes too long or nobody waits for it any more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::oneshot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::clock::Clock;
use crate::report::{LOOK_BYTES_MAX, Needs, ViewData, VisitorAnswer, VisitorQuestion, printable, remove_stale_spills};

use super::problem::Problem;
use super::queue::{Queue, Turn};

/// Queries that are answered at once.
const AT_ONCE: usize = 2;
/// Bytes of an answer, as it comes from its process.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The verb of this program that answers one query.
const VERB: &str = "visitor";

/// Who has a query running.
#[derive(Clone)]
pub struct Visitors(Arc<Shared>);

struct Shared {
    /// This program, to be started again.
    program: PathBuf,
    queue: Queue,
    running: Mutex<BTreeSet<String>>,
}

/// A visitor's query, until it has ended.
struct Visit {
    shared: Arc<Shared>,
    name: String,
}

impl Visitors {
    /// `program` is this one: a process of it answers each query.
    pub fn new(program: PathBuf) -> Self {
        Self(Arc::new(Shared { program, queue: Queue::new(AT_ONCE), running: Mutex::default() }))
    }

    fn enter(&self, name: String) -> Result<Visit, Problem> {
        if !self.0.running().insert(name.clone()) {
            return Err(Problem::busy("another query of yours is running: wait for its answer, or close its page"));
        }
        Ok(Visit { shared: self.0.clone(), name })
    }

    /// Asks `look` for the visitor of that name, within `time`, of which some is `spent`. An answer that failed may be another look's matter.
    ///
    /// # Errors
    /// When another query of that visitor runs, when it takes too long or too much, and those of the query.
    pub async fn ask(
        &self,
        name: String,
        question: VisitorQuestion,
        look: Arc<ViewData>,
        (time, spent): (Duration, Duration),
        clock: Arc<dyn Clock>,
    ) -> Result<VisitorAnswer, Problem> {
        let visit = self.enter(name)?;
        let (turn, left) = self.0.queue.turn(clock.as_ref(), time.saturating_sub(spent)).await?;
        // Dropped with this future, when whoever asked has gone.
        let (_waits, gone) = oneshot::channel::<()>();
        let asked = async move {
            let (spill_parent, visit) = (question.spill_parent.clone(), visit);
            let mut child = start(&visit.shared.program)?;
            let answer = tokio::select! {
                answer = talk(&mut child, &question, look) => answer,
                () = clock.sleep(left) => Err(Problem::too_long(time.as_secs())),
                _ = gone => Err(Problem::busy("nobody waits for the answer")),
            };
            end(child, &spill_parent, (visit, turn)).await;
            answer
        };
        // Of its own, so that it comes to its end whoever goes.
        match tokio::spawn(asked).await.map_err(|_| broken())?? {
            VisitorAnswer::Wrong(message) => Err(Problem::bad(printable(&message))),
            answer => Ok(answer),
        }
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.shared.running().remove(&self.name);
    }
}

/// It gets nothing of ours but the question: no token stands in its environment, for it has none.
fn start(program: &Path) -> Result<Child, Problem> {
    let mut command = Command::new(program);
    command.arg(VERB).env_clear().current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().map_err(|error| {
        tracing::warn!(%error, "no process can be started for a visitor's query");
        Problem::failed(format!("no process can be started that would answer: {error}"))
    })
}

/// The question goes in and what of the look it may be about, the answer comes out. The input stays open: its end would tell
/// the process to end.
async fn talk(child: &mut Child, question: &VisitorQuestion, look: Arc<ViewData>) -> Result<VisitorAnswer, Problem> {
    let mut line = serde_json::to_vec(question).expect("BUG: a question is plain data");
    line.push(b'\n');
    let needs = Needs::of_sql([question.sql.as_str()]);
    let written = tokio::task::spawn_blocking(move || serde_json::to_vec(&look.narrowed(&needs))).await;
    let mut look = written.map_err(|_| broken())?.map_err(|_| broken())?;
    look.push(b'\n');
    if look.len() as u64 > LOOK_BYTES_MAX {
        return Err(Problem::too_large("what is held of these teams is too much for one query: name a team"));
    }
    let mut input = child.stdin.take();
    if let Some(input) = &mut input {
        // Whoever does not read the question does not answer it: that is seen below.
        let _ = input.write_all(&line).await;
        let _ = input.write_all(&look).await;
    }
    drop((line, look));
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        let _ = output.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() as u64 > ANSWER_BYTES_MAX {
        return Err(Problem::too_large(format!(
            "the answer takes more than {} MiB: ask for fewer rows or columns",
            ANSWER_BYTES_MAX >> 20
        )));
    }
    let status = child.wait().await.map_err(|error| Problem::failed(format!("its process was lost: {error}")))?;
    match serde_json::from_slice(&bytes) {
        Ok(VisitorAnswer::TooLarge) => Err(too_much_memory(question)),
        Ok(answer) if status.success() => Ok(answer),
        _ => Err(died(status, question)),
    }
}

fn broken() -> Problem {
    tracing::error!("BUG: a visitor's question broke");
    Problem::failed("the question broke: the log says more")
}

fn too_much_memory(question: &VisitorQuestion) -> Problem {
    let mib = question.engine.memory_mib;
    Problem::too_large(format!(
        "the query needed more memory than it may use ({mib} MiB): ask for fewer rows, or for smaller values"
    ))
}

/// A process without memory ends itself, or is ended by the system.
fn died(status: ExitStatus, question: &VisitorQuestion) -> Problem {
    use std::os::unix::process::ExitStatusExt;
    const ABORTED: i32 = 6;
    const KILLED: i32 = 9;
    const CPU_TIME: i32 = 24;
    tracing::warn!(%status, "the process that answers a visitor's query died");
    match status.signal() {
        Some(ABORTED | KILLED) => too_much_memory(question),
        Some(CPU_TIME) => Problem::too_long(question.cpu_seconds),
        _ => Problem::failed(format!("the process that answers the query died ({status}): nothing else is harmed")),
    }
}

/// Whatever it was doing; another one may begin when it has ended, and nothing is left of it.
async fn end(mut child: Child, spill_parent: &Path, _held: (Visit, Turn)) {
    let _ = child.start_kill();
    let _ = child.wait().await;
    let spill_parent = spill_parent.to_owned();
    let _ = tokio::task::spawn_blocking(move || remove_stale_spills(&spill_parent)).await;
}
