//! `docs/reliability.md`: what is tried, by which test, how often it happened. Made from what the tests know.

use std::fmt::Write;

use super::faults::{Coverage, Fault, Rare};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reliability.md");

/// Harnesses beside the simulation: the file, and what it tries.
const OTHERS: [(&str, &str); 41] = [
    (
        "src/collect/exhaustive.rs",
        "every interleaving of small lists with up to three changes between any two requests",
    ),
    ("src/archive/tests/faults.rs", "a commit fails at every step, done or not done, and is taken up again"),
    (
        "src/archive/tests/syncs.rs",
        "a sync fails at every step: what it was to make safe is written anew, and its file never synced again",
    ),
    (
        "src/archive/tests/torn.rs",
        "power is lost after every step, on a model of a disk that keeps, drops, cuts, zero-fills or tears what was not synced",
    ),
    (
        "src/archive/tests/kills.rs",
        "a real process is killed before, within and after every step, at random, and while it recovers",
    ),
    (
        "src/archive/tests/fencing.rs",
        "a writer that stalls for hours, one that another overtakes, also at midnight, one that is not told what it did",
    ),
    ("src/archive/tests/vacuum.rs", "what `vacuum` removes and keeps, beside a commit, and interrupted at every step"),
    ("src/archive/tests/damage.rs", "damage of every kind, which `verify` must name"),
    ("src/archive/tests/flips.rs", "10,000 random bits turned, one at a time, each of which `verify` must name"),
    ("src/archive/tests/busy.rs", "an archive that is verified while a writer is at work"),
    ("src/archive/tests/hostile.rs", "archives made by strangers: they are named, and lead nowhere"),
    ("src/archive/tests/properties.rs", "any rows, committed in any way"),
    ("src/archive/store/conformance.rs", "what every store promises"),
    ("tests/archive/damage_table.rs", "the published table of damage, planted in a real archive, against the program"),
    (
        "tests/archive/second_verifier.rs",
        "another verifier, of Python's standard library, on whole and damaged archives",
    ),
    ("tests/archive/outside.rs", "the archive's files, read by an engine that is not ours"),
    ("tests/fuzz.rs", "every parser, given a kept corpus and mutations of it"),
    (
        "tests/sync/quotas.rs",
        "a full disk, few open files, a read-only place, another disk: named, nothing half written, gone on from",
    ),
    (
        "tests/api/wire_faults.rs",
        "a TCP proxy that spoils the connection; TLS with certificates that are expired, of others, unknown",
    ),
    ("tests/api/faults.rs", "answers that are none, on a real connection"),
    ("tests/api/retry.rs", "the retry policy, in virtual time"),
    ("tests/sync/moving.rs", "lists that move while they are read"),
    ("tests/sync/paging.rs", "paging that lies, sticks and shrinks; seconds too full for a page"),
    ("tests/sync/bounds.rs", "every reading of the bounds of a range, which the interface leaves open"),
    ("tests/sync/removals.rs", "what the service deletes or hides before it could be read"),
    ("tests/sync/odd_events.rs", "events that are not what the interface shows"),
    ("tests/sync/faults.rs", "a service that fails, refuses, sends elsewhere, or tells the wrong time"),
    ("tests/sync/crash.rs", "the program killed at any moment"),
    ("tests/sync/chaos.rs", "the program against a service that fails at random"),
    ("tests/sync/days.rs", "months sealed day by day: late events, kills, and the setting changed back and forth"),
    ("tests/sync/years.rs", "sessions of years that are over: read at once or as the years end, and what comes late"),
    ("tests/sync/secrets.rs", "planted secrets, looked for in everything that is written or printed"),
    ("tests/pipeline/sessions.rs", "sessions against a naive recomputation"),
    ("tests/reports/goldens.rs", "every report, on a small archive in which what it looks for was planted"),
    ("tests/sync/vacuum.rs", "`annals vacuum` on a real archive: beside readers, beside a daemon, killed"),
    (
        "src/archive/store/object/tests/mod.rs",
        "the store in a bucket: faults that no emulator offers, and MiniStack, Azurite and (in the long run) Ceph's gateway",
    ),
    (
        "tests/buckets/verbs.rs",
        "an archive in a bucket: every verb, the cache, kills, three writers, copies, a ledger written again",
    ),
    (
        "tests/buckets/kills.rs",
        "the program killed at each request that a commit makes to a bucket, before and after it is carried out",
    ),
    ("tests/buckets/faults.rs", "a bucket that refuses, cuts, loses and delays its answers"),
    ("tests/buckets/fleets.rs", "daemons that write one bucket, killed at random, with shards that change"),
    ("tests/daemon/main.rs", "the daemon's schedules in virtual time, and the program in trouble"),
];

const LAWS: &str = "\
| law | held in every world, throughout and after 144 quiet hours |
|---|---|
| I1 | what the service showed and is not archived lies inside a recorded gap of its stream, computer and time |
| I2 | what was read and committed is archived, whatever became of it upstream |
| I3 | every archived event has bytes that were served |
| I4 | no event stands there more often than it existed at one time |
| I5 | a world without faults records no gap; a removal's gap is no longer than the outage before it and two polls, and its part that is possible alone no longer than the lag |
| I6 | an acknowledged line survives every crash, and the chain goes on from it; who reads on from a snapshot sees what the whole ledger says |
| I7 | settled windows stay settled, sealed files never change |
| I8 | the same seed twice gives the same archive, byte for byte |
| I9 | nothing stays open, and nothing that can be final is not |
| I10 | reading everything again adds no row |
| I11 | requests stay within their budget, and `Retry-After` is kept to |
| I12 | no planted secret in any file |
| I13 | sessions equal a naive recomputation |
| S1 | the files of a line are durable before it; every live file is there unaltered, and stays for a grace after a line removes it |
| S3 | `vacuum` removes no file that is live or may be of a commit under way, also where the store's clock is an hour beside ours |
| S4 | `vacuum` removes no file within the grace after the line that removes it, so that a reader can finish |
| I15 | every fault and every rare state below happened, or the run fails |
";

const ASSUMED: &str = "\
## What is assumed of the service

- It answers what [its interface](api.md) describes, or an error, or something that is visibly neither.
- An event keeps its own time; it appears at the latest 72 hours after the end of its window.
- Nothing but the removal of a computer, the plan's span and the ten billing entries takes history away.
- `Date` is the service's clock, within minutes; where there is none, the machine's is.

## What is assumed of the disk

- What was synced stays, and what was written or removed is seen at once by every process, in lists too: true of local file
  systems (`src/archive/store/conformance.rs` holds both stores to it), not of network file systems that keep lists of
  directories for a while.
- A reader whose lists lag (F62) sees a whole earlier commit; the simulation's readers do so in every world. A writer's lists
  must not lag: it finds the end of its ledger by them, and would take a shorter ledger for the whole.
- The store's clock may be wrong, and runs at about the right speed: `vacuum` tells ages by it alone.

## What may be lost all the same

| case | what detects it |
|---|---|
| an event deleted by itself before it was ever read | cannot be known |
| an event that appears after the last re-scan of its window | cannot be known; one that a later re-scan brings is a finding `late` |
| an event that was read and vanished before its commit, while the process or the disk failed | cannot be known |
| a late event that the plan's span hides before a re-scan could show it | cannot be known |
| a body that was replaced before it was read | cannot be known; a body that was read stays, the next is a finding `changed_upstream` |
| of equal events without ids, one deleted and one born between two reads | cannot be known |
| of equal billing entries without ids, those beyond what one answer shows at once | a finding `gap` of `billing`, of the second that they all have; cannot be known where they come later than the last re-scan |
| what a removed computer had connected since the last read | a finding `gap` of that computer, or of `unknown_computer` where activity does not say which; it begins earlier by the lag |
| what a removed computer had connected, and the service showed later than the lag | the same gap names the removal; how late events may be cannot be known |
| what a computer had connected that was removed before the first reading | a finding `removed_before`, where activity tells of it |
| what a computer had connected that no list ever showed, where activity does not tell of its removal | cannot be known |
| what passed out of the plan's span during an outage | a finding `gap` of `plan_span`; before that the time left is shown |
| more than ten billing entries between two polls | a finding `gap` of `billing` |
";

/// The page; without counts, where `coverage` has none.
pub fn page(coverage: &Coverage, ran: &str) -> String {
    let mut text = String::from(
        "# Reliability\n\nHow the promise is tested. The tables are made by the tests: \
         `ANNALS_SIM_WRITE=1 cargo test --release --test simulation` counts anew.\n\n",
    );
    let _ = writeln!(
        text,
        "## The simulation\n\n`tests/simulation.rs` runs the real pipeline (collect, normalize, archive, sessions, the daemon's schedule) for weeks of several teams\non one thread, in virtual time, over a simulated service, store and clock. A world and its faults are drawn from a seed.\n"
    );
    let _ = writeln!(text, "Last counted: {ran}.\n\n{LAWS}\n### Faults\n");
    let _ = writeln!(text, "| fault | | happened | last seed |\n|---|---|---|---|");
    for fault in Fault::ALL {
        let (count, seed) = coverage.faults.get(fault).copied().unwrap_or_default();
        let _ = writeln!(text, "| {} | {} | {count} | {seed} |", fault.id(), fault.what());
    }
    let _ = writeln!(text, "\n### Rare states\n\n| state | | reached | last seed |\n|---|---|---|---|");
    for state in Rare::ALL {
        let (count, seed) = coverage.rare.get(state).copied().unwrap_or_default();
        let _ = writeln!(text, "| {} | {} | {count} | {seed} |", state.id(), state.what());
    }
    let _ = writeln!(text, "\n## Other harnesses\n\n| where | what |\n|---|---|");
    for (path, what) in OTHERS {
        let _ = writeln!(text, "| `{path}` | {what} |");
    }
    let _ = writeln!(
        text,
        "\n## Planted bugs\n\nEach of these bugs is planted in the library's own tests, and must be caught.\n"
    );
    let _ = writeln!(text, "| bug | caught by | in worlds with |\n|---|---|---|");
    for (bug, by, faults) in planted() {
        let _ = writeln!(text, "| {bug} | {by} | {faults} |");
    }
    let _ = write!(text, "\n{ASSUMED}");
    text
}

/// Each planted bug, as the tests that catch it name it.
fn planted() -> Vec<(String, &'static str, String)> {
    let read = |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut all: Vec<(String, &'static str, String)> = Vec::new();
    for (path, by) in [("src/collect/exhaustive.rs", "exhaustive"), ("src/planted/tests.rs", "simulation")] {
        for line in read(path).lines() {
            let Some((_, bug)) = line.split_once("Bug::") else { continue };
            let name: String = bug.chars().take_while(|c| c.is_alphanumeric()).collect();
            let faults: Vec<&str> = bug.split("Fault::").skip(1).map(|f| f.split([',', ']']).next().unwrap()).collect();
            let is_listed = all.iter().any(|(known, ..)| *known == name);
            if !is_listed && (by == "exhaustive" || line.trim_start().starts_with("(Bug::")) {
                all.push((name, by, faults.join(", ")));
            }
        }
    }
    all
}

/// Counts and seeds aside.
fn without_counts(text: &str) -> String {
    let counted = text.lines().filter(|line| !line.starts_with("Last counted"));
    counted
        .map(|line| line.trim_end_matches(|c: char| c.is_ascii_digit() || "| ".contains(c)).to_owned() + "\n")
        .collect()
}

/// Holds the page to what the tests know, or writes it anew.
pub fn check(coverage: Option<(&Coverage, &str)>) {
    if let Some((coverage, ran)) = coverage {
        #[expect(clippy::disallowed_methods, reason = "a page of the documentation, by hand")]
        std::fs::write(PATH, page(coverage, ran)).unwrap();
    }
    for (path, _) in OTHERS {
        let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
        assert!(std::path::Path::new(&path).is_file(), "{path} is not there");
    }
    let held = std::fs::read_to_string(PATH).unwrap_or_default();
    let expected = without_counts(&page(&Coverage::default(), ""));
    assert_eq!(without_counts(&held), expected, "docs/reliability.md is old: count anew with ANNALS_SIM_WRITE=1");
}
