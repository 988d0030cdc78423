//! The teams that are open for writing, each with its lock and its replayed state, so a poll does not read the ledger
//! again. When memory is short, the least recently used teams are closed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::archive::{ArchiveError, TeamState, TeamWriter};
use crate::model::TeamId;
use crate::pipeline::{Edges, EventBudget, TeamEdges, TeamMemory};

/// The approximate limit of replayed state in memory.
pub const OPEN_TEAMS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The bytes of a team without its records, and of one record, plus a sixth for the allocator. `tests/daemon/memory.rs`
/// measures them.
const TEAM_BYTES: usize = 8 * 1024;
const RECORD_BYTES: usize = 270;

struct TeamSlot {
    memory: Arc<TeamMemory>,
    writer: Option<Arc<tokio::sync::Mutex<TeamWriter>>>,
    bytes: usize,
    /// The last use, by the monotonic clock.
    used: Duration,
}

/// All teams of the daemon.
pub struct OpenTeams {
    bytes_max: usize,
    /// The room for the events of all runs.
    budget: Arc<EventBudget>,
    slots: Mutex<BTreeMap<TeamId, TeamSlot>>,
}

impl OpenTeams {
    pub fn new(bytes_max: usize, budget: Arc<EventBudget>) -> Self {
        Self { bytes_max, budget, slots: Mutex::default() }
    }

    /// The edges of a run, which ends with [`OpenTeams::close`]. Opens the team, if it is not open.
    ///
    /// # Errors
    /// When it cannot be opened: another process writes it, or its ledger is invalid.
    pub async fn open(&self, edges: Edges, team: &TeamId, time_limit: Duration) -> Result<TeamEdges, ArchiveError> {
        let (memory, writer) = {
            let mut slots = self.slots.lock();
            let slot = slots.entry(team.clone()).or_insert_with(|| TeamSlot {
                memory: Arc::new(TeamMemory::new(edges.clock.clone())),
                writer: None,
                bytes: 0,
                used: Duration::ZERO,
            });
            slot.used = edges.clock.monotonic();
            (slot.memory.clone(), slot.writer.clone())
        };
        let writer = match writer {
            Some(writer) => writer,
            None => {
                let writer = edges.open_writer(team).await?;
                if let Some(slot) = self.slots.lock().get_mut(team) {
                    slot.writer = Some(writer.clone());
                }
                writer
            }
        };
        let (team, budget, time_limit) = (team.clone(), self.budget.clone(), Some(time_limit));
        Ok(TeamEdges { edges, team, budget, memory, writer, time_limit })
    }

    /// Ends a run. `keeps`: the writer can continue. Otherwise the next run opens the team again.
    pub async fn close(&self, team: &TeamId, keeps: bool) {
        let kept = self.slots.lock().get(team).and_then(|slot| slot.writer.clone()).filter(|_| keeps);
        // Without the lock of all teams: a question can hold this writer while it fetches a file.
        let bytes = match kept {
            Some(writer) => weight(writer.lock().await.state()),
            None => 0,
        };
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get_mut(team) {
            (slot.writer, slot.bytes) = (slot.writer.take().filter(|_| keeps), bytes);
        }
        self.make_room(&mut slots);
    }

    fn make_room(&self, slots: &mut BTreeMap<TeamId, TeamSlot>) {
        let mut bytes: usize = slots.values().map(|slot| slot.bytes).sum();
        while bytes > self.bytes_max {
            // A run holds the writer, too.
            let is_idle = |slot: &&mut TeamSlot| slot.writer.as_ref().is_some_and(|held| Arc::strong_count(held) == 1);
            let idle = slots.values_mut().filter(is_idle);
            let Some(slot) = idle.min_by_key(|slot| slot.used) else { return };
            bytes -= slot.bytes;
            (slot.writer, slot.bytes) = (None, 0);
        }
    }

    /// Passes the state of the team after its last commit to `read`, if the team is open. Returns whether it is. Waits
    /// for a running commit, so it must not run on a thread of the runtime.
    pub fn with_state(&self, team: &TeamId, read: &mut dyn FnMut(&TeamState)) -> bool {
        let writer = self.slots.lock().get(team).and_then(|slot| slot.writer.clone());
        writer.is_some_and(|writer| {
            read(writer.blocking_lock().state());
            true
        })
    }

    /// The approximate memory of the open teams, and their number.
    pub fn size(&self) -> (usize, usize) {
        let slots = self.slots.lock();
        let open = slots.values().filter(|slot| slot.writer.is_some());
        open.fold((0, 0), |(bytes, count), slot| (bytes + slot.bytes, count + 1))
    }
}

/// The approximate memory of a team's replayed state.
pub fn weight(state: &TeamState) -> usize {
    let records = state.windows.len() + state.files.len() + state.findings.len() + state.devices.len();
    TEAM_BYTES + RECORD_BYTES * records
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread::spawn;

    use futures::FutureExt;
    use futures::executor::block_on;

    use super::*;
    use crate::api::{HttpOptions, HttpSource, TokenSource};
    use crate::archive::Archive;
    use crate::clock::SystemClock;
    use crate::pipeline::{NoProgress, Workers};
    use crate::store::MemoryStore;

    fn edges() -> Edges {
        // An open team sends no requests.
        let service = HttpOptions::new("http://127.0.0.1:1", TokenSource::Fixed("unused".to_owned().into()));
        Edges {
            source: Arc::new(HttpSource::new(service).unwrap()),
            archive: Arc::new(Archive::open_or_create(Arc::new(MemoryStore::new()), || "test".to_owned()).unwrap()),
            clock: Arc::new(SystemClock::new()),
            settings: Arc::default(),
            workers: Workers::Inline,
            progress: Arc::new(NoProgress),
        }
    }

    #[test]
    fn a_question_that_holds_a_writer_stops_no_other_team() {
        let (open_teams, team) = (Arc::new(OpenTeams::new(TEAM_BYTES, EventBudget::new(0))), TeamId::from("a"));
        drop(block_on(open_teams.open(edges(), &team, Duration::MAX)).unwrap());
        let (entered, is_entered) = channel();
        let (leave, may_leave) = channel::<()>();
        let (asked, of) = (open_teams.clone(), team.clone());
        spawn(move || {
            asked.with_state(&of, &mut |_| {
                entered.send(()).unwrap();
                let _ = may_leave.recv();
            })
        });
        is_entered.recv().unwrap();
        let mut closing = Box::pin(open_teams.close(&team, true));
        assert!((&mut closing).now_or_never().is_none(), "it waits for the question, and its thread does not");
        assert_eq!(open_teams.size(), (0, 1));
        drop(leave);
        block_on(closing);
    }

    #[test]
    fn a_team_is_closed_when_memory_is_short_or_its_writer_fails() {
        let edges = edges();
        let archive = edges.archive.clone();
        let open_teams = OpenTeams::new(2 * TEAM_BYTES, EventBudget::new(0));
        let team = |n: usize| TeamId::from(["a", "b", "c"][n]);
        let open = |n: usize| block_on(open_teams.open(edges.clone(), &team(n), Duration::MAX));
        let is_locked = |n: usize| archive.writer(&team(n)).is_err();
        for n in 0..3 {
            drop(open(n).unwrap());
            assert!(is_locked(n));
            block_on(open_teams.close(&team(n), true));
        }
        assert_eq!(open_teams.size(), (2 * TEAM_BYTES, 2), "the first was closed");
        assert!(!is_locked(0) && is_locked(1) && is_locked(2));
        let (first, second) = (open(2).unwrap(), open(2).unwrap());
        assert!(Arc::ptr_eq(&first.writer, &second.writer), "it is still open");
        drop((first, second));
        block_on(open_teams.close(&team(2), false));
        assert!(!is_locked(2));
        let elsewhere = archive.writer(&team(0)).unwrap();
        assert!(matches!(open(0), Err(ArchiveError::Locked { .. })));
        drop(elsewhere);
        assert!(open(0).is_ok());
    }
}
