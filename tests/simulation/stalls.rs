//! Stalls: a writer stops in the middle of a commit, for hours. Meanwhile another process reads, commits and vacuums.

use std::sync::Arc;

use super::faults::Fault;
use super::readers::SNAPSHOTS;
use super::store::{Act, SimStore};

/// What the other process does, while the writer stalls for this many seconds.
pub type Meanwhile = Arc<dyn Fn(i64) + Send + Sync>;

pub struct Stalls {
    /// From when on each one is due, and its seconds.
    due: Vec<(i64, i64)>,
    is_stalled: bool,
    pub meanwhile: Option<Meanwhile>,
}

impl Stalls {
    pub fn new(due: Vec<(i64, i64)>) -> Self {
        Self { due, is_stalled: false, meanwhile: None }
    }

    /// Takes out a stall that happens now: half of them before a file becomes durable, half before an append.
    fn begin(&mut self, now: i64, act: Act) -> Option<(i64, Meanwhile)> {
        let is_now = |(from, seconds): &(i64, i64)| {
            *from <= now && act == if seconds % 2 == 0 { Act::Append } else { Act::Sync }
        };
        let place = self.due.iter().position(is_now).filter(|_| !self.is_stalled)?;
        let meanwhile = self.meanwhile.clone()?;
        self.is_stalled = true;
        Some((self.due.remove(place).1, meanwhile))
    }
}

impl SimStore {
    /// Stalls before an operation, if a stall is due.
    pub fn stall(&self, act: Act, path: &str) {
        let (clock, seed) = (&self.disk.clock, self.disk.plan.seed);
        let begun = {
            let mut inner = self.disk.inner();
            match inner.is_dead || path.starts_with(SNAPSHOTS) {
                true => None,
                false => inner.stalls.begin(clock.truth().seconds(), act),
            }
        };
        let Some((seconds, meanwhile)) = begun else { return };
        self.disk.trace.note(clock.truth(), || format!("store: {act:?} {path}: the writer stalls for {seconds} s"));
        let began = clock.truth().nanos();
        meanwhile(seconds);
        let mut inner = self.disk.inner();
        inner.stalls.is_stalled = false;
        // The commit can fail: then its events are read again.
        inner.failures.extend([began, clock.truth().nanos()]);
        inner.coverage.fault(Fault::Stalled, seed);
    }
}
