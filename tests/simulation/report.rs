//! Writes `docs/reliability.md`: the faults that tests try, by which test, and how often each happened.

use std::fmt::Write;

use super::faults::{Coverage, Fault, Rare};
use super::store_faults;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reliability.md");

/// Harnesses beside the simulation: the file, and the faults that it tries.
const OTHERS: [(&str, &str); 66] = [
    (
        "src/collect/exhaustive.rs",
        "small lists in every interleaving, with up to three changes between any two requests",
    ),
    (
        "src/archive/tests/faults.rs",
        "each step of a commit fails, before or after it took effect; then the writer retries",
    ),
    (
        "src/archive/tests/failed_syncs.rs",
        "a sync fails at each step: the writer writes the data again, and never syncs the same file again",
    ),
    (
        "src/archive/tests/syncs.rs",
        "no fault: the exact number of syncs of a commit on a local disk, with the reason for each",
    ),
    (
        "src/archive/tests/torn.rs",
        "power is lost after each step of commits, recovery, copies and `vacuum`, also while a writer stalls beside another one, on a model of a disk that keeps, drops, cuts, zero-fills or tears unsynced data",
    ),
    (
        "src/archive/tests/kills.rs",
        "a real process is killed before, during and after each step, at random, and during recovery; or it stops there, while a second one commits and vacuums, and wakes or is killed",
    ),
    (
        "src/archive/tests/fencing.rs",
        "a writer stalls for hours, another writer overtakes it (also at midnight), or it never learns the result of its append",
    ),
    (
        "src/archive/tests/vacuum.rs",
        "the files that `vacuum` removes and keeps: beside a commit, and with an interruption at each step",
    ),
    (
        "src/archive/tests/copy.rs",
        "a copy is interrupted at each step, repeated every day, takes longer than the grace, or meets a `vacuum` of its target",
    ),
    (
        "src/archive/tests/erasure.rs",
        "an erasure order fails at each step and is repeated; no file names the subject (S8), held rows stay (S7), and planted bugs break these laws",
    ),
    ("src/archive/tests/damage.rs", "every kind of damage; `verify` must name it"),
    ("src/archive/tests/flips.rs", "10,000 random bits are flipped, one at a time; `verify` must name each"),
    ("src/archive/tests/concurrent_writer.rs", "`verify` runs while a writer is at work"),
    ("src/archive/tests/hostile.rs", "hostile archives: `verify` names each, and no reader leaves its directory"),
    ("src/archive/tests/properties.rs", "any rows, in any sequence of commits"),
    ("src/store/tests/conformance.rs", "the contract of every store"),
    (
        "tests/archive/damage_table.rs",
        "the published table of damage, planted in a real archive and checked by the program",
    ),
    (
        "tests/archive/second_verifier.rs",
        "a second verifier, which uses only Python's standard library, on intact and damaged archives",
    ),
    ("tests/archive/other_engine.rs", "another engine reads the archive's files"),
    ("tests/fuzz.rs", "every parser, on a kept corpus and on mutations of it"),
    (
        "tests/sync/quotas.rs",
        "a full disk, few open files, a read-only directory, another disk: the error names it, no half-written file stays, and the next sync continues",
    ),
    (
        "tests/api/wire_faults.rs",
        "a TCP proxy damages the connection; TLS certificates are expired, unknown or for another host",
    ),
    ("tests/api/faults.rs", "invalid answers on a real connection"),
    ("tests/api/retry.rs", "the retry policy, in virtual time"),
    ("tests/sync/changing_lists.rs", "lists change while the program reads them"),
    ("tests/sync/paging.rs", "false, stuck and shrinking paging; more events in a second than a page holds"),
    ("tests/sync/bounds.rs", "every interpretation of a range's bounds, which the interface leaves open"),
    ("tests/sync/removals.rs", "the service deletes or hides events before the program reads them"),
    ("tests/sync/unlisted.rs", "computers that come and go between two lists"),
    ("tests/sync/odd_events.rs", "events that the interface does not describe"),
    ("tests/sync/faults.rs", "the service fails, refuses, redirects, or sends a wrong time"),
    ("tests/sync/crash.rs", "the program is killed at any moment, or several first syncs make one archive"),
    ("tests/sync/signing.rs", "lines that a sync cannot sign"),
    ("tests/sync/chaos.rs", "the service fails at random"),
    (
        "tests/sync/days.rs",
        "months that are sealed day by day: late events, kills, and changes of the setting in both directions",
    ),
    ("tests/sync/years.rs", "sessions of past years: read at once, read as the years end, and late events"),
    ("tests/sync/secrets.rs", "planted secrets, which no output and no file may contain"),
    (
        "tests/pipeline/unread.rs",
        "rounds that do not read everything: lists that move, empty lists, removals before the last page",
    ),
    ("tests/pipeline/sessions.rs", "sessions, compared with a naive recomputation"),
    ("tests/reports/goldens.rs", "every report, on a small archive with planted cases"),
    ("tests/sync/vacuum.rs", "`annals vacuum` on a real archive: beside readers, beside a daemon, and killed"),
    (
        "tests/sync/retention.rs",
        "`annals retention` and `annals hold` on a real archive: policies, holds, re-scans, and wrong use",
    ),
    (
        "src/archive/tests/expiry.rs",
        "each rule of expiry, with its smallest violation; the expiry of a month on a disk and in a bucket",
    ),
    (
        "tests/sync/erasure.rs",
        "`annals erase` on a real archive: every spelling, re-scans, holds, wrong orders, and kills at any moment",
    ),
    (
        "tests/sync/erasure_again.rs",
        "`annals erase --again FILE` on a restored back-up: lost orders, kills, holds, and wrong files",
    ),
    ("tests/sync/erasure_unlinkable.rs", "`annals erase --unlinkable`: replaced salts, later seals, kills"),
    (
        "tests/sync/erasure_everything.rs",
        "an erasure in an archive with sealed years, amended months, sealed days, quarantine and open tables: every file is searched in every JSON spelling",
    ),
    ("tests/buckets/erasure.rs", "the same in a bucket that keeps versions, with a cache"),
    (
        "tests/buckets/split_ledger.rs",
        "the ledger under Object Lock in a place of its own: every verb, kills, wrong places, and each pair of a bucket and a disk. `src/archive/tests/split_ledger.rs` cuts off the creation at each operation",
    ),
    ("tests/reports/erasure.rs", "every report before and after an erasure"),
    (
        "src/lake/tests.rs",
        "open tables of random histories: each snapshot is exact, publications are cut off, two publishers race, metadata expires",
    ),
    (
        "tests/lake/snapshots.rs",
        "PyIceberg, Polars, ClickHouse, DuckDB and Sail read each snapshot of random histories, row for row",
    ),
    (
        "tests/lake/publish.rs",
        "`annals publish` on a real archive: what it prints, its exit codes, wrong use, and an archive that moves",
    ),
    (
        "tests/lake/publication_lag.rs",
        "`annals status` counts the commits that each table lacks, and names a late publication and a table that it cannot read",
    ),
    (
        "tests/lake/planted.rs",
        "damage planted in open tables; `publish --check` and `verify` must name it, and no other",
    ),
    (
        "tests/lake/vacuum.rs",
        "`annals vacuum` beside open tables: also while nobody publishes, readers of a version find its files",
    ),
    (
        "tests/lake/catalog.rs",
        "the daemon's catalog: the token, each refused write, and PyIceberg, DuckDB and ClickHouse as its clients",
    ),
    ("tests/lake/daemon.rs", "the daemon publishes on a schedule, shows a failure, reads on, and checks the tables"),
    (
        "tests/lake/buckets.rs",
        "open tables in a bucket: killed publications, two shards that publish at once, and engines that read the bucket",
    ),
    ("tests/lake/ledger_tables.rs", "the tables `coverage` and `findings`, compared with the program's answers"),
    (
        "src/store/object/tests/mod.rs",
        "the store in a bucket: faults that no emulator offers, and MiniStack, Azurite and (in the long run) Ceph's gateway",
    ),
    (
        "tests/buckets/verbs.rs",
        "an archive in a bucket: every verb, the cache, kills, three writers, copies, a rewritten ledger",
    ),
    (
        "tests/buckets/kills.rs",
        "the program is killed at each request of a commit to a bucket, before and after the bucket carries it out",
    ),
    ("tests/buckets/faults.rs", "a bucket refuses requests, and cuts, loses and delays its answers"),
    ("tests/buckets/fleets.rs", "several daemons write to one bucket while kills are random and the shards change"),
    ("tests/daemon/main.rs", "the daemon's schedules in virtual time, and the program under faults"),
];

const LAWS: &str = "\
| law | holds in every world, at all times and after 144 quiet hours |
|---|---|
| I1 | every event that the service showed is archived, or lies inside a recorded gap of its stream, computer and time |
| I2 | every event that was read and committed stays archived, whatever happens at the service |
| I3 | every archived event has bytes that the service sent |
| I4 | the archive holds no event more often than the service held it at one time |
| I5 | a world without faults records no gap. A removal's gap is at most as long as the outage before it plus two polls, or lies in a range that changed at each read or was read empty; a service that hides connections counts as an outage. The gap's part for late events is at most as long as the lag. A gap of `unknown_computer` exists only if the removal does not name its computer, or if the archive keeps no texts of activity |
| I6 | an acknowledged line survives every crash, and the chain continues after it; a reader that starts from a snapshot gets the same state as from the whole ledger |
| I7 | settled windows stay settled, and sealed files never change |
| I8 | the same seed makes the same archive twice, byte for byte |
| I9 | no window stays open, and every window that can be final is final |
| I10 | a second reading of everything adds no row |
| I11 | requests stay within their budget, and the program obeys `Retry-After` |
| I12 | no file contains a planted secret |
| I13 | sessions equal a naive recomputation |
| S1 | the files of a line are durable before the line; every live file is there and unchanged, and stays for the grace after a line removes it |
| S2 | two writers of one team never append two lines with the same number; the writer that loses reads the events again, and the archive holds each event once |
| S3 | `vacuum` removes no file that is live or may belong to an unfinished commit, also if the store's clock is an hour wrong |
| S4 | `vacuum` removes no file within the grace after the line that removes it, and a reader that began before commits and a `vacuum` finishes within the grace. A slower reader sees the same rows, or an error names the file that is gone |
| S6 | a line names the expired rows, which are older than their class; no other row is missing, and no expired row returns |
| S7 | no row under a hold expires or is erased |
| S8 | after an order of erasure no file, no table and no column holds a value of the subject, even if power was lost during the order; no erased row returns |
| S9 | a process with `[privacy] raw = \"columns-only\"` archives no text and no payload; each keyed digest names a served event, and the ledger counts these rows exactly |
| I15 | every fault and every rare state below happened; otherwise the test fails |
";

const ASSUMED: &str = "\
## Assumptions about the service

- Each answer is documented data, an error, or a body whose form is invalid.
- An event keeps its time. If the service corrects the time of a billing entry, the row of the new time is the next revision, with a finding
  `changed_upstream`. If it corrects the time of a connection event, both rows can stay with revision 1. If the new time is in another window, the
  re-scan of the old window is a finding `no_longer_served`; within a window, no finding tells of it. If the service takes a correction back, another
  finding `changed_upstream` names the revision that it shows again; the last revision of the archive stays the corrected one. An event appears
  at most 72 hours after the end of its window.
- The service always writes an event as the same text. Two texts that differ in white space or in the order of fields are two contents. If a new
  version of the service writes old events in another way, each re-read connection event and billing entry with an id becomes a new revision, with
  a finding `changed_upstream`. Events without an id stand in both texts, and the finding `no_longer_served` of their window counts the earlier ones.
- Only three things delete history: the removal of a computer, the end of the plan's span, and the limit of ten billing entries.
- The `Date` header is the service's clock, correct to a few minutes. Without the header, the program uses the machine's clock.

## Assumptions about the disk

- Synced data stays. Every process sees a write or a removal at once, in directory lists too. This is true of local file systems
  (`src/store/tests/conformance.rs` checks it for both stores). It is not true of network file systems that cache directory lists.
- A reader with stale lists (F62) sees a complete earlier commit; the simulation's readers do so in every world. A writer's lists
  must not be stale: the writer finds the end of its ledger by them, and would take a shorter ledger for the whole ledger.
- The store's clock may be wrong, but runs at about the right speed: `vacuum` computes ages from this clock alone.

## Losses that remain possible

| case | what detects it |
|---|---|
| the service deletes a single event before Annals first reads it | nothing can |
| an event appears after the last re-scan of its window | nothing can; an event that a later re-scan brings is a finding `late` |
| an event is read, and then vanishes before its commit, while the process or the disk fails | nothing can |
| a late event leaves the plan's span before a re-scan could show it | nothing can |
| the service replaces an event's body before Annals first reads it | nothing can; a body that was read stays, and the next one is a finding `changed_upstream` |
| of two equal events without ids, one disappears and the other appears between two readings | nothing can |
| equal billing entries without ids, more than one answer can show | a finding `gap` of `billing`, for the second of these entries; nothing, if they come after the last re-scan |
| connections of a removed computer since the last whole reading | a finding `gap` of the computer, or of `unknown_computer` if activity does not name it; the gap begins earlier by the lag |
| connections of a removed computer in an earlier range that was never read whole, because its list moved or was shown empty | a finding `gap` of the computer for this range |
| connections of a removed computer in a window without archived events, if the service showed the window empty although it held them | nothing can |
| the service shows an old window empty by mistake during the backfill, and the window is older than the last re-scan | nothing can; `annals sync --rescan` reads it again |
| connections of a removed computer that the service would have shown later than the lag | the same gap names the removal; nobody can know how late events may be |
| connections of a computer that was removed before the backfill | a finding `removed_before`, if activity shows the removal |
| connections of a removed computer, if no list showed it, no connection of it was read, and activity does not show its removal | nothing can; activity can show its addition |
| the same, although connections were read, if the service has never listed a computer | nothing can: the service may hide the list from the token |
| connections of a computer that was removed and added again between two lists, if activity does not show the removal | nothing can; a re-scan can find that archived events are `no_longer_served` |
| events that leave the plan's span during an outage, while Annals catches up after it, in an interrupted backfill, or after an answer that Annals doubts | findings `gap` of `plan_span`, from the last moment for which a reading vouches; before that, `status` shows the time left |
| the same, if neither the service nor `api.plan_span` has ever given the plan's span | nothing can; `sync`, `status` and `doctor` say that the span is unknown |
| more than ten billing entries between two polls | a finding `gap` of `billing`, from five minutes before the first poll, because its `Date` may be wrong, to the oldest entry shown |
";

/// The text of the page. A fault that `coverage` does not hold gets count zero.
pub fn page(coverage: &Coverage, ran: &str) -> String {
    let mut text = String::from(
        "# Reliability\n\nHow this project tests its promise. The tests write the tables on this page: \
         `ANNALS_SIM_WRITE=1 cargo test --release --test simulation` counts again.\n\n",
    );
    let _ = writeln!(
        text,
        "## The simulation\n\n`tests/simulation.rs` runs the real pipeline (collect, normalize, archive, sessions, the daemon's schedule) over weeks of several teams.\nIt runs on one thread, in virtual time, with a simulated service, store and clock. A seed determines each world and its faults.\n"
    );
    let _ = writeln!(text, "Last counted: {ran}.\n\n{LAWS}\n### Faults\n");
    let _ = writeln!(text, "| fault | description | happened | last seed |\n|---|---|---|---|");
    for fault in Fault::ALL {
        let (count, seed) = coverage.faults.get(fault).copied().unwrap_or_default();
        let _ = writeln!(text, "| {} | {} | {count} | {seed} |", fault.id(), fault.what());
    }
    let _ = writeln!(text, "\n### Rare states\n\n| state | description | reached | last seed |\n|---|---|---|---|");
    for state in Rare::ALL {
        let (count, seed) = coverage.rare.get(state).copied().unwrap_or_default();
        let _ = writeln!(text, "| {} | {} | {count} | {seed} |", state.id(), state.what());
    }
    let _ = writeln!(text, "\n## Other harnesses\n\n| test | faults |\n|---|---|");
    for (path, what) in OTHERS {
        let _ = writeln!(text, "| `{path}` | {what} |");
    }
    text.push_str(&store_faults::section());
    let _ = writeln!(
        text,
        "\n## Planted bugs\n\nThe library's own tests plant each of these bugs, and the law that the table names must catch it.\n"
    );
    let _ = writeln!(text, "| bug | caught by | law | in worlds with the fault |\n|---|---|---|---|");
    for PlantedBug { name, by, law, faults } in planted() {
        let _ = writeln!(text, "| {name} | {by} | {law} | {faults} |");
    }
    let _ = write!(text, "\n{ASSUMED}");
    text
}

/// The tests that catch planted bugs. The simulation stands before the archive's tests, which also catch some of its bugs.
const CATCHERS: [(&str, &str); 6] = [
    ("src/collect/exhaustive/planted_bugs.rs", "exhaustive"),
    ("src/collect/exhaustive/tail.rs", "exhaustive"),
    ("src/planted/tests.rs", "simulation"),
    ("src/archive/tests/vacuum.rs", "archive's tests"),
    ("src/archive/tests/fencing.rs", "archive's tests"),
    ("src/archive/tests/erasure.rs", "archive's tests"),
];

struct PlantedBug {
    name: String,
    by: &'static str,
    law: String,
    faults: String,
}

/// The planted bugs, from the source of the tests that catch them. The law stands behind the bug, in the same line.
fn planted() -> Vec<PlantedBug> {
    let read = |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut all: Vec<PlantedBug> = Vec::new();
    for (path, by) in CATCHERS {
        let text = read(path);
        let lines = text.lines().filter(|line| by != "simulation" || line.trim_start().starts_with("(Bug::"));
        for bug in lines.flat_map(|line| line.split("Bug::").skip(1)) {
            let name: String = bug.chars().take_while(|c| c.is_alphanumeric()).collect();
            let faults: Vec<&str> = bug.split("Fault::").skip(1).map(|f| f.split([',', ']']).next().unwrap()).collect();
            if all.iter().all(|known| known.name != name) {
                let law = bug.split('"').nth(1).unwrap_or_else(|| panic!("{path} names no law for {name}")).to_owned();
                all.push(PlantedBug { name, by, law, faults: faults.join(", ") });
            }
        }
    }
    all
}

/// The page without counts and seeds.
fn without_counts(text: &str) -> String {
    let counted = text.lines().filter(|line| !line.starts_with("Last counted"));
    counted
        .map(|line| line.trim_end_matches(|c: char| c.is_ascii_digit() || "| ".contains(c)).to_owned() + "\n")
        .collect()
}

/// Compares the page with the tests, or writes it again.
pub fn check(coverage: Option<(&Coverage, &str)>) {
    if let Some((coverage, ran)) = coverage {
        #[expect(clippy::disallowed_methods, reason = "a page of the documentation, by hand")]
        std::fs::write(PATH, page(coverage, ran)).unwrap();
    }
    for (path, _) in OTHERS {
        let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
        assert!(std::path::Path::new(&path).is_file(), "{path} does not exist");
    }
    store_faults::check();
    let held = std::fs::read_to_string(PATH).unwrap_or_default();
    let expected = without_counts(&page(&Coverage::default(), ""));
    assert_eq!(without_counts(&held), expected, "docs/reliability.md is out of date: write it with ANNALS_SIM_WRITE=1");
}
