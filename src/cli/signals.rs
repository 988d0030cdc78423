//! What a signal does while the SQL engine works: the query is stopped, what was spilled is removed, and only then does
//! the program end, by that signal. In the shell an interrupt stops the query alone.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::error::Error;
use crate::report::{Interrupter, remove_spills};

/// How long a stopped query, and what was written for it, may take to clear up.
const CLEAR_UP_MAX: Duration = Duration::from_secs(5);
/// Between two tries to stop the query: the first may come before it has begun.
const STOP_AGAIN: Duration = Duration::from_millis(20);

/// What the thread that waits for signals knows of the rest.
#[derive(Default)]
struct Work {
    /// Guards that live.
    guards: u32,
    running: Option<Interrupter>,
    /// The terminal as it was before a line editor changed it, in a shell.
    shell: Option<Option<Termios>>,
    /// The signal that the program ends by.
    ending: Option<i32>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, signals that end the program let work in hand clear up first.
pub struct Guard {
    shared: Arc<Shared>,
}

/// While it lives, a query runs.
pub struct Running<'a> {
    shared: &'a Shared,
}

/// Begins to watch for signals.
///
/// # Errors
/// When the system does not let us.
pub fn guard() -> Result<Guard, Error> {
    static SHARED: OnceLock<Result<Arc<Shared>, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| start().map_err(|error| error.to_string()));
    let shared =
        shared.as_ref().map_err(|error| Error::io("cannot watch for signals", std::io::Error::other(&**error)))?;
    shared.work().guards += 1;
    Ok(Guard { shared: Arc::clone(shared) })
}

impl Guard {
    /// From now on an interrupt stops the query and not the program.
    pub fn in_shell(&self) {
        self.shared.work().shell = Some(tcgetattr(std::io::stdin()).ok());
    }

    /// Until the answer is dropped, a signal stops the query that `interrupter` belongs to.
    pub fn running(&self, interrupter: Interrupter) -> Running<'_> {
        self.shared.work().running = Some(interrupter);
        Running { shared: &self.shared }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.work().running = None;
    }
}

impl Drop for Guard {
    /// Where the program is ending by a signal, it goes no further than here.
    fn drop(&mut self) {
        let mut work = self.shared.work();
        work.guards -= 1;
        self.shared.changed.notify_all();
        while work.ending.is_some() {
            work = self.shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn start() -> std::io::Result<Arc<Shared>> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let shared = Arc::new(Shared::default());
    let watched = Arc::clone(&shared);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if !stop_query(&watched, signal) {
                end(&watched, signal);
            }
        }
    })?;
    Ok(shared)
}

/// In a shell an interrupt goes to the query, if one runs, and to nothing else.
fn stop_query(shared: &Shared, signal: i32) -> bool {
    let work = shared.work();
    let is_for_query = signal == SIGINT && work.shell.is_some();
    if is_for_query && let Some(query) = &work.running {
        query.interrupt();
    }
    is_for_query
}

fn end(shared: &Shared, signal: i32) {
    let mut work = shared.work();
    work.ending = Some(signal);
    let mut waited = Duration::ZERO;
    while work.guards > 0 && waited < CLEAR_UP_MAX {
        match &work.running {
            Some(query) => query.interrupt(),
            // A prompt, or an input that nobody writes: there is nothing to clear up.
            None if waited > STOP_AGAIN * 5 => break,
            None => {}
        }
        let (again, _) = shared.changed.wait_timeout(work, STOP_AGAIN).unwrap_or_else(PoisonError::into_inner);
        work = again;
        waited += STOP_AGAIN;
    }
    remove_spills();
    if let Some(Some(terminal)) = &work.shell {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, terminal);
    }
    // Only a signal that the system does not know would come back from here.
    let _ = emulate_default_handler(signal);
}
