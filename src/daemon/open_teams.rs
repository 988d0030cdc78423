//! The teams that are open for writing, each with its lock and its replayed state: a poll need not read the ledger again. When
//! memory is short, the least recently used teams are closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::archive::{Archive, ArchiveError, Recovery, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::model::TeamId;
use crate::pipeline::{Budget, TeamMemory, Workers};

/// About so many bytes of replayed state are kept.
pub const OPEN_TEAMS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The bytes of a team without its records, and of one record, with a sixth for the allocator:
/// `tests/daemon/memory.rs` measures it.
const TEAM_BYTES: usize = 8 * 1024;
const RECORD_BYTES: usize = 270;

/// An open team.
#[derive(Clone)]
pub struct Opened {
    pub writer: Arc<Mutex<TeamWriter>>,
    pub memory: Arc<TeamMemory>,
    /// The recovery, if the team was opened just now.
    pub recovery: Option<Recovery>,
}

#[derive(Clone)]
struct Place {
    memory: Arc<TeamMemory>,
    writer: Option<Arc<Mutex<TeamWriter>>>,
    bytes: usize,
    used: u64,
    is_in_use: bool,
}

/// All teams of the daemon.
pub struct OpenTeams {
    archive: Arc<Archive>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    bytes_max: usize,
    /// The room for the events of all runs.
    budget: Arc<Budget>,
    held: Mutex<(u64, BTreeMap<TeamId, Place>)>,
}

impl OpenTeams {
    pub fn new(
        archive: Arc<Archive>,
        clock: Arc<dyn Clock>,
        workers: Workers,
        bytes_max: usize,
        budget: Arc<Budget>,
    ) -> Self {
        Self { archive, clock, workers, bytes_max, budget, held: Mutex::default() }
    }

    pub fn budget(&self) -> Arc<Budget> {
        self.budget.clone()
    }

    fn held(&self) -> MutexGuard<'_, (u64, BTreeMap<TeamId, Place>)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the team, if it is not open.
    ///
    /// # Errors
    /// When it cannot be opened: another process writes it, or its ledger does not check.
    pub async fn open(&self, team: &TeamId) -> Result<Opened, ArchiveError> {
        let place = {
            let mut held = self.held();
            held.0 += 1;
            let used = held.0;
            let place = held.1.entry(team.clone()).or_insert_with(|| Place {
                memory: Arc::new(TeamMemory::new(self.clock.clone())),
                writer: None,
                bytes: 0,
                used: 0,
                is_in_use: false,
            });
            (place.used, place.is_in_use) = (used, true);
            place.clone()
        };
        if let Some(writer) = place.writer {
            return Ok(Opened { writer, memory: place.memory, recovery: None });
        }
        let (archive, owned) = (Arc::clone(&self.archive), team.clone());
        let writer = self.workers.run(move || archive.writer(&owned)).await;
        let writer = writer.inspect_err(|_| self.close(team, false))?;
        let recovery = Some(writer.recovery());
        let writer = Arc::new(Mutex::new(writer));
        if let Some(place) = self.held().1.get_mut(team) {
            place.writer = Some(Arc::clone(&writer));
        }
        Ok(Opened { writer, memory: place.memory, recovery })
    }

    /// Ends a run. `keeps`: the writer can go on; else the next run opens the team again.
    pub fn close(&self, team: &TeamId, keeps: bool) {
        let mut held = self.held();
        if let Some(place) = held.1.get_mut(team) {
            place.is_in_use = false;
            place.writer = place.writer.take().filter(|_| keeps);
            place.bytes = place.writer.as_ref().map_or(0, |writer| weight(lock(writer).state()));
        }
        self.make_room(&mut held.1);
    }

    fn make_room(&self, places: &mut BTreeMap<TeamId, Place>) {
        let mut bytes: usize = places.values().map(|place| place.bytes).sum();
        while bytes > self.bytes_max {
            let idle = places.values_mut().filter(|place| !place.is_in_use && place.writer.is_some());
            let Some(place) = idle.min_by_key(|place| place.used) else { return };
            bytes -= place.bytes;
            (place.writer, place.bytes) = (None, 0);
        }
    }

    /// Gives `read` the state of the team after its last commit, if it is open. Returns whether it is. Waits for a commit under way.
    pub fn with_state(&self, team: &TeamId, read: &mut dyn FnMut(&TeamState)) -> bool {
        let writer = self.held().1.get(team).and_then(|place| place.writer.clone());
        writer.is_some_and(|writer| {
            read(lock(&writer).state());
            true
        })
    }

    /// Bytes that the open teams take, about, and how many they are.
    pub fn size(&self) -> (usize, usize) {
        let held = self.held();
        let open = held.1.values().filter(|place| place.writer.is_some());
        open.fold((0, 0), |(bytes, count), place| (bytes + place.bytes, count + 1))
    }
}

/// About what a team's replayed state takes.
pub fn weight(state: &TeamState) -> usize {
    let records = state.windows.len() + state.files.len() + state.findings.len() + state.devices.len();
    TEAM_BYTES + RECORD_BYTES * records
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{MemoryStore, Store};
    use crate::clock::SystemClock;

    #[test]
    fn a_team_stays_open_until_there_is_no_room_and_is_closed_when_its_writer_is_spent() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let archive = Arc::new(Archive::open_or_create(store, || "test".to_owned()).unwrap());
        let open_teams = OpenTeams::new(
            archive.clone(),
            Arc::new(SystemClock::new()),
            Workers::Inline,
            2 * TEAM_BYTES,
            Budget::new(0),
        );
        let team = |n: usize| TeamId::from(["a", "b", "c"][n]);
        let open = |n: usize| futures::executor::block_on(open_teams.open(&team(n)));
        for n in 0..3 {
            assert!(open(n).unwrap().recovery.is_some());
            open_teams.close(&team(n), true);
        }
        assert_eq!(open_teams.size(), (2 * TEAM_BYTES, 2), "the first was closed");
        assert!(open(2).unwrap().recovery.is_none(), "it is still open");
        assert!(archive.writer(&team(2)).is_err(), "and locked");
        open_teams.close(&team(2), false);
        assert!(archive.writer(&team(2)).is_ok());
        let elsewhere = archive.writer(&team(0)).unwrap();
        assert!(matches!(open(0), Err(ArchiveError::Locked { .. })));
        drop(elsewhere);
        assert!(open(0).is_ok());
    }
}
