//! What can go wrong, what can be rare, and how often either was met.

use std::collections::BTreeMap;

macro_rules! named {
    ($(#[$doc:meta])* $kind:ident { $($name:ident $id:literal $what:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kind { $($name),* }

        impl $kind {
            pub const ALL: &[$kind] = &[$($kind::$name),*];

            /// Its number in the list of faults and rare states.
            pub fn id(self) -> &'static str {
                match self { $($kind::$name => $id),* }
            }

            pub fn what(self) -> &'static str {
                match self { $($kind::$name => $what),* }
            }
        }
    };
}

named! {
    /// Faults of the world, as the seed draws them.
    Fault {
        LateWithinLag "F01" "an event appears late, within the lag",
        LateBeyondLag "F02" "an event appears late, beyond the lag and within 72 hours",
        DeletedBetween "F03" "an event is deleted between two requests",
        InsertedBetween "F04" "an event is inserted between two pages",
        ComputerRemoved "F05" "a computer is removed, and its history with it",
        Vanished "F06" "an archived event vanishes upstream",
        EmptyAnswer "F07" "200 with an empty list for a busy account",
        HasMoreFalse "F08" "hasMoreEvents is false though more follow",
        HasMoreTrue "F09" "hasMoreEvents is true for ever",
        NextOffset "F10" "nextOffset is null, 0, stuck, backwards or absurd",
        SilentCap "F11" "pages are silently shorter than asked for",
        LimitRefused "F12" "a limit above 1000, 500 or 100 is refused",
        Unsorted "F13" "pages are newest first or in no order",
        Duplicates "F14" "one event stands twice in a list",
        Bounds "F15" "the bounds are rounded some other way",
        StartExclusive "F16" "startTime is exclusive",
        DenseSecond "F17" "more than 1,000 events in one second",
        Twins "F18" "byte-identical events without ids",
        Edited "F19" "the same id comes with another body",
        UnknownFields "F20" "unknown event types, extra and missing fields",
        OddNumbers "F21" "times that are huge, negative, fractions, texts or nothing",
        Future "F22" "events dated two days ahead",
        Garbage "F24" "HTML, nothing, null or truncated JSON with 200",
        Throttled "F25" "429 with, without and with an absurd Retry-After",
        Unavailable "F26" "5xx in bursts, and for hours",
        Refused "F27" "401 or 403 for hours",
        NotFound "F28" "404 on a history that was there",
        Redirect "F29" "a redirect to another place",
        Flapping "F30" "an event's body changes between any two reads",
        ShortRetention "F31" "an outage longer than the plan's span",
        BillingBurst "F32" "eleven and more billing entries at once, equal ones, edited ones",
        AnswerLost "F34" "the answer is lost on the way",
        StaleCache "F37" "a cache on the way serves an old answer",
        OutOfOrder "F38" "answers come out of order",
        Crash "F40" "the process is killed at any moment",
        Panic "F42" "a panic in a task ends the process",
        KilledInRecovery "F44" "killed again during recovery",
        PowerLoss "F47" "power is lost in the middle of a write: torn, zeroed, or gone",
        CrashBeforeLine "F46" "killed between the files of a commit and its ledger line",
        DiskFull "F49" "no space left, for hours",
        DiskErrors "F50" "writes, syncs and reads fail now and then",
        ClockStep "F56" "the machine's clock jumps: an hour, to 1970, to 2038",
        Skew "F57" "the service's clock is five minutes beside",
        SecondPoller "F58" "another process polls the same archive",
        AppendButDone "F59" "an append answers that it failed, and is done",
        StaleList "F62" "lists lag behind what was written and taken away, as readers see them",
        TokenRotated "F66" "the token is rotated while the daemon runs",
        WriteFails "F67" "a file's write fails in the middle",
        BitFlip "F68" "a bit flips between memory and file",
        ManyDays "F71" "events on a great many days",
        VacuumCrash "F72" "killed while vacuum removes files",
        OddSessions "F73" "sessions without an end, over weeks, backwards, or with ids used again",
        ShortLived "F79" "a computer is added, used and removed before anybody lists it",
        InFirstReading "F80" "a computer is removed during the first reading",
        LateOfRemoved "F81" "events of a computer appear late, and it is removed before a re-scan",
        RemovedBefore "F82" "a computer was removed before the first reading, inside the archive's span",
    }
}

named! {
    /// Rare states of the program.
    Rare {
        Split "split" "a range is read in parts of less than an hour",
        DenseSecond "dense second" "a single second is read by itself",
        MovedAnchors "moved anchors" "a walk begins again because the list moved under it",
        TornLine "torn line" "an unfinished ledger line is cut off",
        Retired "retired" "vacuum removes a file that a line removed",
        Orphan "orphan" "vacuum removes a file that no line ever named",
        FencedWriter "fenced writer" "a second writer is refused",
        StepDown "page size" "a smaller page size is asked for",
        Deprecated "deprecated" "the per-computer history is read",
        RetryWait "retry" "a request is made again after Retry-After",
        SealedMonth "sealed month" "a month is sealed into one file",
        SealedDay "sealed day" "a day is sealed into a file of its own",
        MixedMonth "mixed month" "a month is sealed that was begun by days",
        JoinedYear "joined year" "the sessions of a year that is over become one file",
        DeviceGap "removal gap" "a gap of a removed computer",
        SpanGap "plan gap" "a gap of the plan's span",
        BillingGap "billing gap" "a gap of the billing ledger",
        GapClosed "gap closed" "a gap that turned out to have lost nothing",
        RemovedBefore "removed before" "a computer that was removed before the first reading",
        Late "late" "an event first seen on a re-scan",
        Revision "revision" "a second body of the same id",
        NoLongerServed "no longer served" "an archived event that is not there any more",
        Unstable "unstable" "a second that never held still",
        Ambiguous "ambiguous overlap" "billing snapshots that join in several ways",
        Anomaly "paging anomaly" "a claim of the service that was not kept to",
        Quarantine "quarantine" "an event that cannot be a row",
        Redacted "redacted" "a secret that was replaced",
        ClockBack "clock regression" "the machine's clock stands before the last commit",
        Silence "silence" "an empty answer that is not believed",
        NewType "new event type" "an event type met for the first time",
        NoConnection "no connection" "a connection event of no connection",
        SnapshotRead "snapshot read" "a reader goes on from a snapshot of the ledger",
        SnapshotTorn "torn snapshot" "a snapshot that is not as it was written is passed over",
        SnapshotUnfit "unfit snapshot" "a snapshot that is ahead of its ledger, or another team's, is passed over",
    }
}

impl Fault {
    /// Computers that come and go: drawn by themselves, beside the others of a world.
    pub const OF_COMPUTERS: [Fault; 4] =
        [Fault::ShortLived, Fault::InFirstReading, Fault::LateOfRemoved, Fault::RemovedBefore];

    /// Those that are a world's own. Lists that lag are shown to the readers of every world.
    pub fn drawn() -> Vec<Fault> {
        let is_drawn = |fault: &Fault| *fault != Fault::StaleList && !Self::OF_COMPUTERS.contains(fault);
        Self::ALL.iter().copied().filter(is_drawn).collect()
    }
}

/// How often each was met, and in which seed last.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    pub faults: BTreeMap<Fault, (u64, u64)>,
    pub rare: BTreeMap<Rare, (u64, u64)>,
}

impl Coverage {
    pub fn fault(&mut self, fault: Fault, seed: u64) {
        let (count, last) = self.faults.entry(fault).or_default();
        (*count, *last) = (*count + 1, seed);
    }

    pub fn rare(&mut self, state: Rare, seed: u64) {
        let (count, last) = self.rare.entry(state).or_default();
        (*count, *last) = (*count + 1, seed);
    }

    pub fn add(&mut self, other: &Self) {
        fn add<K: Ord + Copy>(into: &mut BTreeMap<K, (u64, u64)>, from: &BTreeMap<K, (u64, u64)>) {
            for (kind, (count, last)) in from {
                let (sum, seed) = into.entry(*kind).or_default();
                (*sum, *seed) = (*sum + count, (*seed).max(*last));
            }
        }
        add(&mut self.faults, &other.faults);
        add(&mut self.rare, &other.rare);
    }

    pub fn injected(&self) -> u64 {
        self.faults.values().map(|(count, _)| count).sum()
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<String> {
        let faults = Fault::ALL.iter().filter(|fault| !self.faults.contains_key(fault));
        let faults = faults.map(|fault| format!("{} {fault:?}: {}", fault.id(), fault.what()));
        let rare = Rare::ALL.iter().filter(|state| !self.rare.contains_key(state));
        faults.chain(rare.map(|state| format!("{}: {}", state.id(), state.what()))).collect()
    }
}
