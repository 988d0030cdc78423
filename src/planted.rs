//! Bugs that tests plant, to show that the checkers catch them. Only the library's own tests contain them.

/// A bug that a checker must catch, by the law that its test names. The exhaustive checker of `collect` catches the first seven,
/// tests of the archive catch `VacuumReadsFirst`, `VacuumUnfenced` and `ErasureUnescaped`, and the simulation catches the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    NoPad,
    NoAnchors,
    TrustHasMore,
    SetDedupe,
    SingleWalk,
    /// A page that is not full ends the walk over an open window.
    ShortPageEnds,
    /// A walk over an open window leaves a resume point without an anchor.
    PointUnanchored,
    /// A window settles at the moment it ends.
    NoLag,
    NoRescans,
    /// Events of a re-scan are not kept.
    RescanUnread,
    /// Future events are not read.
    FutureUnread,
    NoRemovalGap,
    /// A removal counts only for computers that a list shows.
    UnlistedComputersIgnored,
    /// Connections that were read do not prove that their computer existed.
    UsedComputersForgotten,
    /// A removal before the backfill is not recorded.
    RemovedBeforeForgotten,
    /// A removal's gap begins with the last read, although late events can appear.
    NoLagInRemovalGap,
    /// A removal during the backfill leaves no gap.
    FirstReadingForgotten,
    /// A removal's gap goes back to the archive's beginning.
    GapFromBeginning,
    NoSpanGap,
    /// A gap of the plan's span is forgotten if the round that finds it fails.
    SpanGapLostOnFailure,
    NoBillingGap,
    RetryAfterIgnored,
    /// A failed request is repeated at once.
    RetriesWithoutDelay,
    /// Another body with the same id counts as the same event.
    RevisionsDropped,
    SecretsKept,
    /// An event that does not fit the schema is dropped.
    RejectsDropped,
    /// A quarantined event is quarantined again.
    QuarantineRepeated,
    /// A session is made from its new events, without those of earlier commits.
    SessionsForgotten,
    /// Written files are not read back.
    NoReadBack,
    /// A line is appended before the content of its files is on the disk.
    LineBeforeFiles,
    /// A torn line remains at the ledger's end.
    TornLineKept,
    /// A writer appends its line after the line of another writer.
    AppendUnfenced,
    /// A commit deletes the files that it replaces at once.
    ReplacedFilesDeletedAtOnce,
    /// `vacuum` removes files younger than the grace.
    VacuumWithoutGrace,
    /// `vacuum` removes files of any age that no line has named yet, and keeps those that a line removed.
    YoungFilesRemoved,
    /// `vacuum` reads the ledger before it lists the files.
    VacuumReadsFirst,
    /// `vacuum` removes files that no line has named, and appends no line before.
    VacuumUnfenced,
    /// A held event expires or is erased.
    HoldsForgotten,
    /// An erasure leaves the files that it replaced.
    ErasedFilesKept,
    /// An erasure leaves events in quarantine as they are.
    QuarantineNotErased,
    /// An erasure does not find values that are spelled with escapes.
    ErasureUnescaped,
    /// An erased event counts as new when the service serves it again.
    ErasedEventsReadAgain,
    /// The age of a month is counted from its beginning.
    ExpiresEarly,
    /// Expired months are read again, and their rows come back.
    ExpiredComesBack,
    /// An event of a stream that keeps columns only is archived with its text.
    TextsKept,
    /// A reader uses a snapshot that is ahead of the ledger's end.
    SnapshotAhead,
    /// A reader uses a snapshot without checking its digest.
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
