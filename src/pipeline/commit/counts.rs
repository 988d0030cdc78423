//! Counts of commits.

/// The counts of one or more commits.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CommitCounts {
    pub rows: u64,
    pub rejects: u64,
    pub late: u64,
    /// Events that the archive held before.
    pub repeated: u64,
    pub gaps: u64,
    pub commits: u64,
    /// Commits that another writer of the team fenced. The next round reads their events again.
    pub conflicts: u64,
    /// New activity events of removed computers.
    pub removals: u64,
}

impl CommitCounts {
    /// Adds the counts of another commit.
    pub fn add(&mut self, other: &CommitCounts) {
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
