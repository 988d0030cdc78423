//! The interface's document read row by row against the running program, by a client of Python's standard library that
//! shares nothing with us: fields, statuses, rules, guards, expiry, activity, switches, time, faults, and the whole state
//! saved by one process and gone on with by another.

use std::process::Command;

use crate::common;

use common::python::plain_python;

const WALK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/outside/walk.py");

#[test]
fn an_independent_client_finds_no_deviation_from_the_document() {
    let Some(python) = plain_python("the document was not read by another client") else { return };
    let place = tempfile::tempdir().expect("a place");
    let mut command = Command::new(python);
    // No compiled files in the checkout.
    command.arg("-B").arg(WALK).arg(env!("CARGO_BIN_EXE_annals")).arg(place.path());
    let output = command.output().expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.trim_end().ends_with("checks, 0 deviations"), "{said}");
}
