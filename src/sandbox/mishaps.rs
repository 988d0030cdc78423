//! Faults by rule: which requests they befall, and how often. The command and a sandbox-only request set them.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::config::{Fault, RequestInfo};

/// The statuses that a rule may ask for.
pub(super) const FAILURES: RangeInclusive<u16> = 400..=599;
/// The longest that a rule may hold an answer back: an hour.
pub(super) const LATENCY_MS_MAX: u64 = 3_600_000;

/// One rule, as JSON: `{"path": "/history", "every": 5, "times": 3, "fault": {"status": {"status": 503}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Only paths that hold this text; none: all of the documented ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Each so-many-th of the requests that fit.
    #[serde(default = "one")]
    pub every: NonZeroU64,
    /// No more often than this; none: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    pub fault: Mishap,
}

/// What befalls a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mishap {
    /// The answer comes so many milliseconds later.
    LatencyMs(#[serde(deserialize_with = "latency")] u64),
    /// This status, with a `Retry-After` of this text.
    #[serde(rename_all = "snake_case")]
    Status {
        #[serde(deserialize_with = "failure")]
        status: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<String>,
    },
    Reset,
    /// Half of the JSON text, as if whole.
    Truncate,
    /// Half of the body, then the connection ends.
    CutShort,
    Html,
}

fn one() -> NonZeroU64 {
    NonZeroU64::MIN
}

fn latency<'de, D: Deserializer<'de>>(text: D) -> Result<u64, D::Error> {
    let millis = u64::deserialize(text)?;
    if millis <= LATENCY_MS_MAX {
        return Ok(millis);
    }
    Err(D::Error::custom(format!("a latency of {millis} ms: at most {LATENCY_MS_MAX} are allowed")))
}

/// Only failures are faults: an answer that is none, or good, comes of itself.
fn failure<'de, D: Deserializer<'de>>(text: D) -> Result<u16, D::Error> {
    let status = u16::deserialize(text)?;
    if FAILURES.contains(&status) {
        return Ok(status);
    }
    Err(D::Error::custom(format!("{status} is no status of a failure: {} to {} are", FAILURES.start(), FAILURES.end())))
}

/// A rule, and how often it has been looked at and come true; as JSON in a saved sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountedRule {
    rule: FaultRule,
    fitting: u64,
    befallen: u64,
}

#[derive(Default)]
pub(super) struct Mishaps(Mutex<Vec<CountedRule>>);

impl Mishaps {
    pub(super) fn new(rules: Vec<FaultRule>) -> Self {
        let mishaps = Self::default();
        mishaps.set(rules);
        mishaps
    }

    pub(super) fn set(&self, rules: Vec<FaultRule>) {
        *self.held() = rules.into_iter().map(|rule| CountedRule { rule, fitting: 0, befallen: 0 }).collect();
    }

    pub(super) fn counted(&self) -> Vec<CountedRule> {
        self.held().clone()
    }

    pub(super) fn restore(&self, counted: Vec<CountedRule>) {
        *self.held() = counted;
    }

    pub(super) fn rules(&self) -> Vec<FaultRule> {
        self.held().iter().map(|counted| counted.rule.clone()).collect()
    }

    /// What befalls a request: the first rule that fits and whose turn it is.
    pub(super) fn befalling(&self, request: &RequestInfo) -> Option<Fault> {
        // What rules the faults must stay in reach.
        if !request.path.starts_with("/v1/") {
            return None;
        }
        self.held().iter_mut().find_map(|counted| counted.turn(request))
    }

    fn held(&self) -> MutexGuard<'_, Vec<CountedRule>> {
        self.0.lock().expect("BUG: nothing panics while it holds the fault rules")
    }
}

impl CountedRule {
    fn turn(&mut self, request: &RequestInfo) -> Option<Fault> {
        let rule = &self.rule;
        let fits = rule.path.as_ref().is_none_or(|path| request.path.contains(path.as_str()))
            && rule.method.as_ref().is_none_or(|method| request.method.eq_ignore_ascii_case(method));
        if !fits || rule.times.is_some_and(|times| self.befallen >= times) {
            return None;
        }
        self.fitting += 1;
        if !self.fitting.is_multiple_of(rule.every.get()) {
            return None;
        }
        self.befallen += 1;
        Some(match &rule.fault {
            Mishap::LatencyMs(millis) => Fault::Delay(Duration::from_millis(*millis)),
            Mishap::Status { status, retry_after } => {
                Fault::Status { status: *status, retry_after: retry_after.clone() }
            }
            Mishap::Reset => Fault::Reset,
            Mishap::Truncate => Fault::Truncate,
            Mishap::CutShort => Fault::CutShort,
            Mishap::Html => Fault::Html,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Instant;

    use super::*;

    #[test]
    fn a_rule_befalls_each_nth_fitting_request_so_often() {
        let rule: FaultRule = serde_json::from_str(
            r#"{"path": "/history", "every": 2, "times": 2, "fault": {"status": {"status": 503}}}"#,
        )
        .unwrap();
        let mishaps = Mishaps::new(vec![rule]);
        let ask = |path: &str| {
            let now = Instant::from_seconds(0);
            let (method, query) = ("GET".to_owned(), String::new());
            mishaps.befalling(&RequestInfo { serial: 0, method, path: path.to_owned(), query, now }).is_some()
        };
        let seen: Vec<bool> = (0..8).map(|_| ask("/v1/team/x/history")).collect();
        assert_eq!(seen, [false, true, false, true, false, false, false, false]);
        assert!(!ask("/v1/user/teams") && !ask("/sandbox/history"));
        for wrong in [
            r#"{"fault": "none"}"#,
            r#"{"fault": "reset", "often": 1}"#,
            r#"{"fault": "reset", "every": 0}"#,
            r#"{"fault": {"status": {"status": 200}}}"#,
            r#"{"fault": {"latency_ms": 3600001}}"#,
            "{}",
        ] {
            assert!(serde_json::from_str::<FaultRule>(wrong).is_err(), "{wrong}");
        }
    }
}
