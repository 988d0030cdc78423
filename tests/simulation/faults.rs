//! The faults and the rare states of the simulation, and how often each happened.

use std::collections::BTreeMap;

macro_rules! named {
    ($(#[$doc:meta])* $kind:ident { $($name:ident $id:literal $what:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kind { $($name),* }

        impl $kind {
            pub const ALL: &[$kind] = &[$($kind::$name),*];

            /// The id in the list of faults and rare states.
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
    /// The faults of a world, which its seed determines.
    Fault {
        LateWithinLag "F01" "an event appears late, within the lag",
        LateBeyondLag "F02" "an event appears late, beyond the lag and within 72 hours",
        DeletedBetween "F03" "an event is deleted between two requests",
        InsertedBetween "F04" "an event is inserted between two pages",
        ComputerRemoved "F05" "a computer is removed, and the service deletes its history",
        Vanished "F06" "an archived event vanishes upstream",
        EmptyAnswer "F07" "status 200 with an empty list for a busy account",
        HasMoreFalse "F08" "hasMoreEvents is false although more events follow",
        HasMoreTrue "F09" "hasMoreEvents is always true",
        NextOffset "F10" "nextOffset is null, 0, stuck, backwards or absurd",
        SilentCap "F11" "pages are shorter than requested, without notice",
        LimitRefused "F12" "the service refuses a limit above 1000, 500 or 100",
        Unsorted "F13" "pages are newest first or in no order",
        Duplicates "F14" "a list holds one event twice",
        Bounds "F15" "the service rounds the bounds in another way",
        StartExclusive "F16" "the range excludes startTime",
        DenseSecond "F17" "more than 1,000 events in one second",
        Twins "F18" "byte-identical events without ids",
        Edited "F19" "an event with the same id has another body",
        UnknownFields "F20" "unknown event types, undocumented and missing fields",
        OddNumbers "F21" "times that are huge, negative, fractional, texts or missing",
        Future "F22" "events with a time two days in the future",
        Garbage "F24" "status 200 with HTML, an empty body, null or truncated JSON",
        Throttled "F25" "429 with a valid, an absurd or no Retry-After",
        Unavailable "F26" "5xx for seconds, and for hours",
        Refused "F27" "401 or 403 for hours",
        NotFound "F28" "404 for a history that existed before",
        Redirect "F29" "a redirect to another address",
        Flapping "F30" "an event's body changes between any two reads",
        ShortRetention "F31" "an outage longer than the plan's span",
        BillingBurst "F32" "eleven or more billing entries at once, equal ones, edited ones",
        AnswerLost "F34" "an answer is lost on the network",
        StaleCache "F37" "a cache between serves an old answer",
        OutOfOrder "F38" "answers arrive out of order",
        Crash "F40" "the process is killed at any moment",
        Panic "F42" "a panic in a task ends the process",
        Stalled "F43" "a writer stalls for hours in a commit, while another process reads, commits and vacuums",
        KilledInRecovery "F44" "the process is killed again during recovery",
        PowerLoss "F47" "power is lost during a write: the data is torn, zeroed or gone",
        CrashBeforeLine "F46" "the process is killed between a commit's files and its ledger line",
        DiskFull "F49" "the disk is full for hours",
        DiskErrors "F50" "single writes, syncs and reads fail",
        ClockStep "F56" "the machine's clock jumps: by an hour, to 1970, to 2038",
        Skew "F57" "the service's clock is five minutes wrong",
        SecondPoller "F58" "another process polls the same archive",
        AppendButDone "F59" "an append reports a failure although it succeeded",
        StaleList "F62" "readers see stale lists, without recent writes and removals",
        TokenRotated "F66" "the token is rotated while the daemon runs",
        WriteFails "F67" "the write of a file fails in the middle",
        BitFlip "F68" "a bit flips between memory and file",
        SlowReader "F69" "a reader takes hours, while writers commit and vacuum removes the files that they replace",
        ManyDays "F71" "events on very many days",
        VacuumCrash "F72" "the process is killed while vacuum removes files",
        OddSessions "F73" "sessions without an end, over weeks, backwards, or with reused ids",
        ShortLived "F79" "a computer is added, used and removed before any list shows it",
        InFirstReading "F80" "a computer is removed during the backfill",
        LateOfRemoved "F81" "events of a computer appear late, and the computer is removed before a re-scan",
        RemovedBefore "F82" "a computer was removed before the backfill, inside the archive's span",
        ViewFails "F83" "only `GET /team/{teamID}` fails, for hours",
        LargeEvents "F84" "events within an hour that together are larger than a reading may hold",
    }
}

named! {
    /// Rare states of the program.
    Rare {
        Split "split" "the program reads a range in parts of less than an hour",
        DenseSecond "dense second" "the program reads a single second by itself",
        MovedAnchors "moved anchors" "a walk starts again because the list changed under it",
        TornLine "torn line" "a writer drops a torn ledger line",
        Retired "retired" "vacuum deletes a file that a ledger line removed",
        Orphan "orphan" "vacuum deletes an orphan file, which no line ever named",
        FencedWriter "fenced writer" "a second writer loses the append and stops",
        StepDown "page size" "the program requests a smaller page",
        Deprecated "deprecated" "the program reads the deprecated per-computer history",
        RetryWait "retry" "the program repeats a request after Retry-After",
        SealedMonth "sealed month" "the program seals a month into one file",
        SealedDay "sealed day" "the program seals a day into its own file",
        MixedMonth "mixed month" "the program seals a month that already has sealed days",
        JoinedYear "joined year" "the sessions of a past year become one file",
        DeviceGap "removal gap" "a gap of a removed computer",
        SpanGap "plan gap" "a gap of the plan's span",
        BillingGap "billing gap" "a gap of the billing history",
        GapClosed "gap closed" "a gap is closed because no event was lost",
        RemovedBefore "removed before" "a computer was removed before the backfill",
        Late "late" "an event first seen on a re-scan",
        Revision "revision" "a second body of the same id",
        NoLongerServed "no longer served" "an archived event disappeared from the service",
        Unstable "unstable" "a second whose list changed at every reading",
        Ambiguous "ambiguous overlap" "billing answers that overlap in several possible ways",
        Anomaly "paging anomaly" "a false paging claim of the service",
        Quarantine "quarantine" "an event that cannot become a row",
        Redacted "redacted" "a secret that was redacted",
        ClockBack "clock regression" "the machine's clock is before the last commit",
        Silence "silence" "an empty answer that the program does not trust",
        NewType "new event type" "the first event of a new type",
        NoConnection "no connection" "a connection event without a connection id",
        NoTexts "no text" "a stream is archived without its texts: columns and keyed digests",
        SomeTexts "some texts" "a stream holds events with and without text",
        SnapshotRead "snapshot read" "a reader starts from a snapshot of the ledger",
        SnapshotTorn "torn snapshot" "a reader skips a damaged snapshot",
        SnapshotUnfit "unfit snapshot" "a reader skips a snapshot that is ahead of its ledger or of another team",
        ReaderRefused "late reader" "a reader that takes longer than the grace misses a file, and an error names the file",
    }
}

impl Fault {
    /// Faults of computers. A world draws them apart from its other faults.
    pub const OF_COMPUTERS: [Fault; 4] =
        [Fault::ShortLived, Fault::InFirstReading, Fault::LateOfRemoved, Fault::RemovedBefore];

    /// The faults that a world draws. Stale lists are not drawn, because the readers of every world see them. A world draws
    /// stalls, slow readers, failing views and large events apart.
    pub fn drawn() -> Vec<Fault> {
        let apart = [Fault::StaleList, Fault::Stalled, Fault::SlowReader, Fault::ViewFails, Fault::LargeEvents];
        let is_drawn = |fault: &Fault| !apart.contains(fault) && !Self::OF_COMPUTERS.contains(fault);
        Self::ALL.iter().copied().filter(is_drawn).collect()
    }
}

/// How often each fault and state happened, and in which seed last.
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

    /// The faults and states that never happened.
    pub fn missing(&self) -> Vec<String> {
        let faults = Fault::ALL.iter().filter(|fault| !self.faults.contains_key(fault));
        let faults = faults.map(|fault| format!("{} {fault:?}: {}", fault.id(), fault.what()));
        let rare = Rare::ALL.iter().filter(|state| !self.rare.contains_key(state));
        faults.chain(rare.map(|state| format!("{}: {}", state.id(), state.what()))).collect()
    }
}
