//! Limits the requests a second: of all requests together, and of requests about people.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// The share of all requests that may be about people. The rest remains for events.
const SCANS_SHARE: f64 = 0.5;
/// Requests that are due within this span may start together, because timers are not exact.
const BURST_SECONDS: f64 = 0.02;

/// The maximum requests a second about people of all teams, if `requests_per_second` is the limit for all requests.
pub fn scans_per_second(requests_per_second: f64) -> f64 {
    requests_per_second * SCANS_SHARE
}

/// A limiter for `requests_per_second`; `None` (no limit) if it is not a positive number.
pub(super) fn rate_limiter(requests_per_second: f64) -> Option<DefaultDirectRateLimiter> {
    if !(requests_per_second.is_finite() && requests_per_second > 0.0) {
        return None;
    }
    let period = Duration::try_from_secs_f64(1.0 / requests_per_second).ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the type's range")]
    let burst = (requests_per_second * BURST_SECONDS).clamp(1.0, 1_000.0) as u32;
    let quota = Quota::with_period(period)?.allow_burst(NonZeroU32::new(burst)?);
    Some(RateLimiter::direct(quota))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_means_no_limit() {
        assert!([0.0, -1.0, f64::NAN, f64::INFINITY, 1e-30].into_iter().all(|rate| rate_limiter(rate).is_none()));
        assert!([0.01, 5.0, 1e6].into_iter().all(|rate| rate_limiter(rate).is_some()));
    }
}
