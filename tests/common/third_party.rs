//! The parts of other authors that tests demand: engines, object servers, a browser.

use std::io::Write;

/// Says that a part is missing, and what is not tested without it. Fails the test unless `ANNALS_WITHOUT`, a list with commas,
/// names the part.
#[track_caller]
pub fn missing(part: &str, untested: &str, reason: &str) {
    let without = std::env::var("ANNALS_WITHOUT").unwrap_or_default();
    let is_excused = without.split(',').any(|named| named.trim() == part);
    let reason = reason.trim();
    assert!(
        is_excused,
        "not tested: {untested}: {part} is missing: {reason} (ANNALS_WITHOUT={part} excuses a machine that cannot have it)"
    );
    // Write to standard error directly, because a passing test's output is hidden.
    let said = format!("\nMISSING {part}, not tested: {untested}: {reason}\n");
    let _ = std::io::stderr().lock().write_all(said.as_bytes());
}
