//! What became of a batch.

use crate::archive::Committed;

/// What a flush did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Flushed {
    pub rows: u64,
    pub rejects: u64,
    pub late: u64,
    /// Events read again that were held already.
    pub repeated: u64,
    pub gaps: u64,
    pub commits: u64,
    /// Commits that lost the race against another writer of the team. The next round reads their events again.
    pub conflicts: u64,
    /// New activity events that tell of a computer's removal.
    pub removals: u64,
}

impl Flushed {
    /// With the commit that it ended in.
    #[must_use]
    pub fn with(self, committed: Committed) -> Self {
        Self { commits: u64::from(committed != Committed::Nothing), ..self }
    }

    /// Adds what another commit did.
    pub fn add(&mut self, other: &Flushed) {
        self.rows += other.rows;
        self.rejects += other.rejects;
        self.late += other.late;
        self.repeated += other.repeated;
        self.gaps += other.gaps;
        self.commits += other.commits;
        self.conflicts += other.conflicts;
        self.removals += other.removals;
    }
}
