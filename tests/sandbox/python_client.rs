//! A client of Python's standard library, without our code, checks the running program against the interface's
//! document row by row: fields, statuses, rules, guards, expiry, activity, switches, time and faults. One process also
//! saves a state, and another process loads it.

use std::process::Command;

use crate::common;

use common::python::plain_python;

const WALK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/python_client/walk.py");

#[test]
fn an_independent_client_finds_no_deviation_from_the_document() {
    let Some(python) = plain_python("another client of the document") else { return };
    let place = tempfile::tempdir().expect("a place");
    let mut command = Command::new(python);
    // Python writes no compiled files into the checkout.
    command.arg("-B").arg(WALK).arg(env!("CARGO_BIN_EXE_annals")).arg(place.path());
    let output = command.output().expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.trim_end().ends_with("checks, 0 deviations"), "{said}");
}
