//! Third-party programs and other parts that tests need: engines, object servers, a browser, Linux.

use std::io::Write;

/// Reports that the program `part` is missing, and what is not tested without it. Fails the test unless `ANNALS_WITHOUT`, a list
/// with commas, names the program.
#[track_caller]
pub fn missing(part: &str, untested: &str, reason: &str) {
    let without = std::env::var("ANNALS_WITHOUT").unwrap_or_default();
    let is_skipped = without.split(',').any(|named| named.trim() == part);
    let reason = reason.trim();
    assert!(
        is_skipped,
        "not tested: {untested}: {part} is missing: {reason} (ANNALS_WITHOUT={part} skips the test on a machine that cannot have it)"
    );
    // Write to standard error directly, because a passing test's output is hidden.
    let said = format!("\nMISSING {part}, not tested: {untested}: {reason}\n");
    let _ = std::io::stderr().lock().write_all(said.as_bytes());
}
