//! The connections of the port: their number, their time limits, and which connection is closed first.
//!
//! A connection waits while it sends a request's header or sends nothing, and works while a request is answered. When there
//! are too many connections, the longest waiting one is closed for the next one. Requests other than probes need a turn,
//! and there are fewer turns than connections: so a probe always finds a place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Maximum and minimum number of connections, whatever the descriptor limit is.
const HELD_MAX: usize = 512;
const HELD_MIN: usize = 8;
/// The port uses one in this many file descriptors; the archive and the service use the others.
const DESCRIPTORS_FOR_ONE: u64 = 4;
/// The ticket of a connection that does not wait.
const NONE: u64 = 0;

/// Limits of connections, and of requests that are not probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    held: usize,
    turns: usize,
}

impl Bounds {
    /// For a process with this descriptor limit (RLIMIT_NOFILE); `None` for no limit.
    pub fn of(descriptors: Option<u64>) -> Self {
        let share =
            descriptors.map_or(usize::MAX, |count| usize::try_from(count / DESCRIPTORS_FOR_ONE).unwrap_or(usize::MAX));
        let held = share.clamp(HELD_MIN, HELD_MAX);
        Self { held, turns: held * 3 / 4 }
    }
}

/// The open connections.
pub struct Connections {
    bounds: Bounds,
    turns: Arc<Semaphore>,
    state: Mutex<ConnectionsState>,
    /// Signals that a connection was closed or waits.
    has_changed: Notify,
}

#[derive(Default)]
struct ConnectionsState {
    count: usize,
    tickets: u64,
    /// The waiting connections, the longest waiting first.
    waiting: BTreeMap<u64, Arc<Notify>>,
}

impl Connections {
    pub fn new(bounds: Bounds) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(bounds.turns));
        Arc::new(Self { bounds, turns, state: Mutex::default(), has_changed: Notify::new() })
    }

    /// Waits for a place for one more connection. If there is none, closes the longest waiting connection.
    pub async fn enter(self: &Arc<Self>) -> Arc<Connection> {
        let mut is_asked = false;
        loop {
            {
                let mut state = self.state.lock();
                if state.count < self.bounds.held {
                    state.count += 1;
                    break;
                }
                if !is_asked && let Some((_, longest)) = state.waiting.pop_first() {
                    longest.notify_one();
                    is_asked = true;
                }
            }
            self.has_changed.notified().await;
        }
        let connection = Connection {
            all: self.clone(),
            closing: Arc::default(),
            ticket: AtomicU64::new(NONE),
            frames: AtomicU64::new(0),
        };
        connection.wait();
        Arc::new(connection)
    }
}

/// One open connection, until it is dropped.
pub struct Connection {
    all: Arc<Connections>,
    closing: Arc<Notify>,
    ticket: AtomicU64,
    /// Number of frames of the current answer that the client has taken; 0 without an answer.
    frames: AtomicU64,
}

impl Connection {
    /// Completes when this connection must close.
    pub async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Starts a request. `None` if it is no probe and no turn is left.
    pub fn begin(self: &Arc<Self>, is_probe: bool) -> Option<InFlight> {
        let turn = match is_probe {
            true => None,
            false => Some(self.all.turns.clone().try_acquire_owned().ok()?),
        };
        self.all.state.lock().waiting.remove(&self.ticket.swap(NONE, Ordering::AcqRel));
        Some(InFlight { connection: self.clone(), _turn: turn })
    }

    /// Number of frames of the current answer that the client has taken; 0 without an answer.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Acquire)
    }

    fn wait(&self) {
        let mut state = self.all.state.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        state.waiting.insert(ticket, self.closing.clone());
        self.ticket.store(ticket, Ordering::Release);
        drop(state);
        self.all.has_changed.notify_one();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        state.waiting.remove(self.ticket.get_mut());
        state.count -= 1;
        drop(state);
        self.all.has_changed.notify_one();
    }
}

/// A request that is being answered, until the client has taken the whole answer.
pub struct InFlight {
    connection: Arc<Connection>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl InFlight {
    /// The client takes a part of the answer.
    pub fn advance(&self) {
        self.connection.frames.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.connection.frames.store(0, Ordering::Release);
        self.connection.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn the_port_uses_a_share_of_the_descriptors() {
        for (descriptors, held, turns) in [
            (Some(0), 8, 6),
            (Some(64), 16, 12),
            (Some(1_024), 256, 192),
            (Some(1 << 20), 512, 384),
            (Some(u64::MAX), 512, 384),
            (None, 512, 384),
        ] {
            assert_eq!(Bounds::of(descriptors), Bounds { held, turns }, "{descriptors:?}");
        }
    }

    #[test]
    fn the_longest_waiting_connection_is_closed_and_working_ones_are_not() {
        let all = Connections::new(Bounds { held: 3, turns: 2 });
        let mut open: Vec<_> = (0..3).map(|_| all.enter().now_or_never().unwrap()).collect();
        let work = open[0].begin(false).unwrap();
        assert!(all.enter().now_or_never().is_none());
        let closing: Vec<_> = open.iter().map(|open| open.closing().now_or_never().is_some()).collect();
        assert_eq!(closing, [false, true, false]);
        drop(open.remove(1));
        open.push(all.enter().now_or_never().unwrap());
        // A connection whose answer has just ended has waited least.
        drop(work);
        assert!(all.enter().now_or_never().is_none());
        let closing: Vec<_> = open.iter().map(|open| open.closing().now_or_never().is_some()).collect();
        assert_eq!(closing, [false, true, false]);
    }

    #[test]
    fn only_probes_are_answered_when_every_permit_is_taken() {
        let all = Connections::new(Bounds { held: 4, turns: 2 });
        let open: Vec<_> = (0..4).map(|_| all.enter().now_or_never().unwrap()).collect();
        let works: Vec<_> = open[..2].iter().map(|open| open.begin(false).unwrap()).collect();
        assert!(open[2].begin(false).is_none());
        assert!(open[2].begin(true).is_some() && open[3].begin(true).is_some());
        drop(works);
        assert!(open[2].begin(false).is_some());
    }
}
