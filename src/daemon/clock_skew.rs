//! The difference of the service's clock, which decides when a window settles, from the machine's.

use super::live::Live;

/// Annals warns of a larger difference.
pub const SKEW_SECONDS_MAX: u64 = 60;

/// Shows the seconds by which the service's clock is ahead, and logs each change between a small and a large difference.
pub fn show(live: &Live, seconds: Option<i64>) {
    let Some(seconds) = seconds else { return };
    let mut before = None;
    live.change(|shown| before = shown.clock_skew.replace(seconds));
    let is_large = |seconds: i64| seconds.unsigned_abs() > SKEW_SECONDS_MAX;
    match (before.is_some_and(is_large), is_large(seconds)) {
        (false, true) => tracing::warn!(
            seconds_ahead = seconds,
            "the service's clock differs from this machine's: the service's decides when a window settles"
        ),
        (true, false) => tracing::info!(seconds_ahead = seconds, "the two clocks agree again"),
        _ => {}
    }
}
