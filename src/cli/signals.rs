//! Signals while the SQL engine works: Annals stops the query, removes its spill files, and then ends by that signal. In the
//! shell, an interrupt stops only the query. For all commands, the signal of a file that grows too large becomes an error.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::error::Error;
use crate::files::remove_work_folders;
use crate::report::Interrupter;

/// The longest time for a stopped query to remove its temporary files.
const CLEANUP_TIME_MAX: Duration = Duration::from_secs(5);
/// The interval between two attempts to stop the query: the first attempt can come before the query begins.
const STOP_AGAIN: Duration = Duration::from_millis(20);

/// The state that the signal thread shares with the other threads.
#[derive(Default)]
struct SignalState {
    /// Number of live guards.
    guards: u32,
    running: Option<Interrupter>,
    /// In a shell: the terminal settings from before the line editor changed them.
    shell: Option<Option<Termios>>,
    /// The signal that ends the program.
    ending: Option<i32>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<SignalState>,
    changed: Condvar,
}

/// While a guard lives, the program lets running work clean up before a signal ends it.
pub struct Guard {
    shared: Arc<Shared>,
}

/// Exists while a query runs.
pub struct Running<'a> {
    shared: &'a Shared,
}

/// Makes a write beyond the system's limit of a file's size (`ulimit -f`) an error that names the file. Otherwise the system ends
/// the program by a signal, without a message.
pub fn survive_size_limits() -> Result<(), Error> {
    let survived = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    survived.map(|_| ()).map_err(|source| Error::io("cannot watch for signals", source))
}

/// Starts to watch for signals.
pub fn guard() -> Result<Guard, Error> {
    static SHARED: OnceLock<Result<Arc<Shared>, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| start().map_err(|error| error.to_string()));
    let shared =
        shared.as_ref().map_err(|error| Error::io("cannot watch for signals", std::io::Error::other(&**error)))?;
    shared.work.lock().guards += 1;
    Ok(Guard { shared: Arc::clone(shared) })
}

impl Guard {
    /// From now on, an interrupt stops the query and not the program.
    pub fn in_shell(&self) {
        self.shared.work.lock().shell = Some(tcgetattr(std::io::stdin()).ok());
    }

    /// Until the returned value is dropped, a signal stops the query of `interrupter`.
    pub fn running(&self, interrupter: Interrupter) -> Running<'_> {
        self.shared.work.lock().running = Some(interrupter);
        Running { shared: &self.shared }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.work.lock().running = None;
    }
}

impl Drop for Guard {
    /// Blocks here if a signal is ending the program.
    fn drop(&mut self) {
        let mut work = self.shared.work.lock();
        work.guards -= 1;
        self.shared.changed.notify_all();
        while work.ending.is_some() {
            self.shared.changed.wait(&mut work);
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

/// In a shell, an interrupt stops the running query, if any, and nothing else.
fn stop_query(shared: &Shared, signal: i32) -> bool {
    let work = shared.work.lock();
    let is_for_query = signal == SIGINT && work.shell.is_some();
    if is_for_query && let Some(query) = &work.running {
        query.interrupt();
    }
    is_for_query
}

fn end(shared: &Shared, signal: i32) {
    let mut work = shared.work.lock();
    work.ending = Some(signal);
    let mut waited = Duration::ZERO;
    while work.guards > 0 && waited < CLEANUP_TIME_MAX {
        match &work.running {
            Some(query) => query.interrupt(),
            // The program waits for input and has no query: nothing needs cleaning up.
            None if waited > STOP_AGAIN * 5 => break,
            None => {}
        }
        shared.changed.wait_for(&mut work, STOP_AGAIN);
        waited += STOP_AGAIN;
    }
    remove_work_folders();
    if let Some(Some(terminal)) = &work.shell {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, terminal);
    }
    // This returns only for a signal that the system does not know.
    let _ = emulate_default_handler(signal);
}
