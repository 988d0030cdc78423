//! The faults of a store and of other writers, by harness: a table of `docs/reliability.md`.

use std::fmt::Write;

/// The files whose tests the table names.
const FILES: [&str; 5] = [
    "src/archive/tests/faults.rs",
    "src/archive/tests/fencing.rs",
    "src/archive/tests/vacuum.rs",
    "src/archive/tests/torn.rs",
    "src/archive/tests/kills.rs",
];

const FENCED: &str =
    "`a_commit_of_more_than_an_hour_is_refused`, `a_vacuum_fences_a_commit_that_stalled_for_longer_than_the_grace`";
const BESIDE: &str = "`a_file_that_a_concurrent_commit_names_is_kept`";
const STALL: &str = "`no_power_loss_around_a_stalled_writer_loses_or_doubles_a_row`";
const STOP: &str = "`a_writer_that_stops_loses_and_doubles_nothing`";

/// A fault; its tests in memory, on the torn disk and with real processes; the simulation's faults.
const TABLE: [[&str; 5]; 6] = [
    ["a writer stalls for hours, and wakes", FENCED, STALL, STOP, "F43"],
    ["`vacuum` beside a commit", BESIDE, STALL, STOP, "F43"],
    [
        "`vacuum` beside a reader",
        "`a_reader_finishes_within_the_grace_and_is_refused_after_it`",
        "none: a reader writes nothing that a power loss could tear",
        "none: a reader holds nothing that a kill could leave behind",
        "F69",
    ],
    ["`vacuum` beside a second writer", BESIDE, STALL, STOP, "F43, F58"],
    [
        "an append whose answer is lost",
        "`no_failed_operation_loses_or_doubles_a_row`, `a_lost_answer_to_an_append_is_resolved_by_reading`",
        "`no_power_loss_loses_or_doubles_a_row`: power is lost between an append and its answer",
        "`a_kill_at_any_step_loses_and_doubles_nothing`: a kill after the append",
        "F59",
    ],
    [
        "the store's clock is an hour or more beside ours",
        "`no_failed_operation_loses_or_doubles_a_row`: the store's clock stands in 1970",
        "`no_power_loss_loses_or_doubles_a_row`: the disk's clock stands in 1970",
        "none: the clock of a local disk is the machine's clock",
        "two worlds of three",
    ],
];

/// The section of the page.
pub fn section() -> String {
    let mut text = String::from(
        "\n## Faults of the store and of other writers\n\nThe damage table, the hostile archives and the second verifier check archives \
         at rest, so these faults cannot meet them.\n\n\
         | fault | in memory | torn disk (`torn.rs`) | real processes (`kills.rs`) | simulation |\n|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Checks that each named test exists.
pub fn check() {
    let read = |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let source: String = FILES.map(read).concat();
    let named = TABLE.iter().flatten().flat_map(|cell| cell.split('`').skip(1).step_by(2));
    for test in named.filter(|name| name.contains('_')) {
        assert!(source.contains(&format!("#[test]\nfn {test}()")), "no test has the name {test}");
    }
}
