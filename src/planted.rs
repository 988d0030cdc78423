//! Bugs planted on purpose, to show that the checkers catch them. No build but the library's own tests has any.

/// A bug that some checker must catch. The first seven are the exhaustive checker's of `collect`, the others the
/// simulation's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    NoPad,
    NoAnchors,
    TrustHasMore,
    SetDedupe,
    SingleWalk,
    /// A page of an open window that is not full ends the look at it.
    ShortPageEnds,
    /// A look at an open window leaves a place to go on from without an anchor.
    PointUnanchored,
    /// A window is settled the moment that it ends.
    NoLag,
    NoRescans,
    /// What a re-scan brings is not kept.
    RescanUnread,
    /// What is dated into the future is not looked for.
    FutureUnread,
    NoRemovalGap,
    /// A removal is believed only of computers that a list shows.
    StrangersForgotten,
    /// A removal before the first reading is not recorded.
    RemovedBeforeForgotten,
    /// A removal's gap begins with the last reading, though events may appear late.
    NoLateness,
    /// A removal during the first reading leaves no gap.
    FirstReadingForgotten,
    /// A removal's gap reaches back to the archive's beginning.
    GapFromBeginning,
    NoSpanGap,
    /// A gap of the plan's span is forgotten where the round that finds it breaks off.
    BehindForgotten,
    NoBillingGap,
    RetryAfterIgnored,
    /// What fails is tried again at once.
    HotLoop,
    /// Another body of the same id is taken for the same event.
    RevisionsDropped,
    SecretsKept,
    /// What cannot be a row is dropped.
    RejectsDropped,
    /// What is in quarantine is put there again.
    RejectsForgotten,
    /// New events do not change a session.
    SessionsForgotten,
    /// What was written is not read back.
    NoReadBack,
    /// An unfinished line stays at the ledger's end.
    TornLineKept,
    /// A commit removes at once what it replaces.
    RemovesAtOnce,
    /// `vacuum` removes what is younger than the grace.
    VacuumWithoutGrace,
    /// `vacuum` reads the ledger before it lists the files.
    VacuumReadsFirst,
    /// What a hold covers expires, or is erased.
    HoldsForgotten,
    /// A reader takes a snapshot for the end of a ledger that does not reach as far.
    SnapshotAhead,
    /// A reader takes a snapshot as it stands, without its digest.
    SnapshotUnchecked,
}

#[cfg(test)]
thread_local! {
    pub static CURRENT: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether `bug` is planted.
#[cfg(test)]
pub fn is(bug: Bug) -> bool {
    CURRENT.get() == Some(bug)
}

#[cfg(not(test))]
pub const fn is(_: Bug) -> bool {
    false
}

#[cfg(test)]
mod tests;
