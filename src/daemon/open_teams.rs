//! The teams that are open for writing, each with its lock and its replayed state, so a poll does not read the ledger
//! again. When memory is short, the least recently used teams are closed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::archive::{Archive, ArchiveError, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::model::TeamId;
use crate::pipeline::{EventBudget, TeamMemory, Workers};

/// The approximate limit of replayed state in memory.
pub const OPEN_TEAMS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The bytes of a team without its records, and of one record, plus a sixth for the allocator. `tests/daemon/memory.rs`
/// measures them.
const TEAM_BYTES: usize = 8 * 1024;
const RECORD_BYTES: usize = 270;

/// An open team.
#[derive(Clone)]
pub struct OpenTeam {
    pub writer: Arc<Mutex<TeamWriter>>,
    pub memory: Arc<TeamMemory>,
    /// This call opened the team.
    pub is_new: bool,
}

#[derive(Clone)]
struct TeamSlot {
    memory: Arc<TeamMemory>,
    writer: Option<Arc<Mutex<TeamWriter>>>,
    bytes: usize,
    /// The last use, by the monotonic clock.
    used: Duration,
    is_in_use: bool,
}

/// All teams of the daemon.
pub struct OpenTeams {
    archive: Arc<Archive>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    bytes_max: usize,
    /// The room for the events of all runs.
    pub budget: Arc<EventBudget>,
    slots: Mutex<BTreeMap<TeamId, TeamSlot>>,
}

impl OpenTeams {
    pub fn new(
        archive: Arc<Archive>,
        clock: Arc<dyn Clock>,
        workers: Workers,
        bytes_max: usize,
        budget: Arc<EventBudget>,
    ) -> Self {
        Self { archive, clock, workers, bytes_max, budget, slots: Mutex::default() }
    }

    /// Opens the team, if it is not open.
    ///
    /// # Errors
    /// When it cannot be opened: another process writes it, or its ledger is invalid.
    pub async fn open(&self, team: &TeamId) -> Result<OpenTeam, ArchiveError> {
        let slot = {
            let mut slots = self.slots.lock();
            let slot = slots.entry(team.clone()).or_insert_with(|| TeamSlot {
                memory: Arc::new(TeamMemory::new(self.clock.clone())),
                writer: None,
                bytes: 0,
                used: Duration::ZERO,
                is_in_use: false,
            });
            (slot.used, slot.is_in_use) = (self.clock.monotonic(), true);
            slot.clone()
        };
        if let Some(writer) = slot.writer {
            return Ok(OpenTeam { writer, memory: slot.memory, is_new: false });
        }
        let (archive, owned) = (Arc::clone(&self.archive), team.clone());
        let writer = self.workers.run(move || archive.writer(&owned)).await;
        let writer = writer.inspect_err(|_| self.close(team, false))?;
        let writer = Arc::new(Mutex::new(writer));
        if let Some(slot) = self.slots.lock().get_mut(team) {
            slot.writer = Some(Arc::clone(&writer));
        }
        Ok(OpenTeam { writer, memory: slot.memory, is_new: true })
    }

    /// Ends a run. `keeps`: the writer can continue. Otherwise the next run opens the team again.
    pub fn close(&self, team: &TeamId, keeps: bool) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get_mut(team) {
            slot.is_in_use = false;
            slot.writer = slot.writer.take().filter(|_| keeps);
            slot.bytes = slot.writer.as_ref().map_or(0, |writer| weight(writer.lock().state()));
        }
        self.make_room(&mut slots);
    }

    fn make_room(&self, slots: &mut BTreeMap<TeamId, TeamSlot>) {
        let mut bytes: usize = slots.values().map(|slot| slot.bytes).sum();
        while bytes > self.bytes_max {
            let idle = slots.values_mut().filter(|slot| !slot.is_in_use && slot.writer.is_some());
            let Some(slot) = idle.min_by_key(|slot| slot.used) else { return };
            bytes -= slot.bytes;
            (slot.writer, slot.bytes) = (None, 0);
        }
    }

    /// Passes the state of the team after its last commit to `read`, if the team is open. Returns whether it is. Waits
    /// for a running commit.
    pub fn with_state(&self, team: &TeamId, read: &mut dyn FnMut(&TeamState)) -> bool {
        let writer = self.slots.lock().get(team).and_then(|slot| slot.writer.clone());
        writer.is_some_and(|writer| {
            read(writer.lock().state());
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
    use super::*;
    use crate::clock::SystemClock;
    use crate::store::{MemoryStore, Store};

    #[test]
    fn a_team_is_closed_when_memory_is_short_or_its_writer_fails() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let archive = Arc::new(Archive::open_or_create(store, || "test".to_owned()).unwrap());
        let open_teams = OpenTeams::new(
            archive.clone(),
            Arc::new(SystemClock::new()),
            Workers::Inline,
            2 * TEAM_BYTES,
            EventBudget::new(0),
        );
        let team = |n: usize| TeamId::from(["a", "b", "c"][n]);
        let open = |n: usize| futures::executor::block_on(open_teams.open(&team(n)));
        for n in 0..3 {
            assert!(open(n).unwrap().is_new);
            open_teams.close(&team(n), true);
        }
        assert_eq!(open_teams.size(), (2 * TEAM_BYTES, 2), "the first was closed");
        assert!(!open(2).unwrap().is_new, "it is still open");
        assert!(archive.writer(&team(2)).is_err(), "and locked");
        open_teams.close(&team(2), false);
        assert!(archive.writer(&team(2)).is_ok());
        let elsewhere = archive.writer(&team(0)).unwrap();
        assert!(matches!(open(0), Err(ArchiveError::Locked { .. })));
        drop(elsewhere);
        assert!(open(0).is_ok());
    }
}
