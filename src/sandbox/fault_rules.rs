//! Fault rules: which requests fail, how, and how often. The command line and a sandbox-only request set them.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::fault::{Fault, RequestInfo};

/// The statuses that a rule may set.
pub(super) const FAILURES: RangeInclusive<u16> = 400..=599;
/// The longest delay that a rule may set: an hour.
pub(super) const LATENCY_MS_MAX: u64 = 3_600_000;

/// One rule, as JSON: `{"path": "/history", "every": 5, "times": 3, "fault": {"status": {"status": 503}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The rule matches only paths that contain this text; `None`: all documented paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The rule matches only this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Every how many matching requests the fault happens.
    #[serde(default = "one")]
    pub every: NonZeroU64,
    /// How often the fault happens at most; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    pub fault: RuleFault,
}

/// The fault of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleFault {
    /// The answer comes this many milliseconds later.
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
    /// Half of the JSON text, with a matching length.
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

/// A rule may only set statuses of failures.
fn failure<'de, D: Deserializer<'de>>(text: D) -> Result<u16, D::Error> {
    let status = u16::deserialize(text)?;
    if FAILURES.contains(&status) {
        return Ok(status);
    }
    Err(D::Error::custom(format!("{status} is not a failure status: use {} to {}", FAILURES.start(), FAILURES.end())))
}

/// A rule, how many requests matched it, and how many got the fault. A saved sandbox holds it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountedRule {
    rule: FaultRule,
    fitting: u64,
    befallen: u64,
}

#[derive(Default)]
pub(super) struct FaultRules(Mutex<Vec<CountedRule>>);

impl FaultRules {
    pub(super) fn new(rules: Vec<FaultRule>) -> Self {
        let fault_rules = Self::default();
        fault_rules.set(rules);
        fault_rules
    }

    pub(super) fn set(&self, rules: Vec<FaultRule>) {
        *self.0.lock() = rules.into_iter().map(|rule| CountedRule { rule, fitting: 0, befallen: 0 }).collect();
    }

    pub(super) fn counted(&self) -> Vec<CountedRule> {
        self.0.lock().clone()
    }

    pub(super) fn restore(&self, counted: Vec<CountedRule>) {
        *self.0.lock() = counted;
    }

    pub(super) fn rules(&self) -> Vec<FaultRule> {
        self.0.lock().iter().map(|counted| counted.rule.clone()).collect()
    }

    /// The fault of a request: that of the first rule that matches and is due.
    pub(super) fn fault_of(&self, request: &RequestInfo) -> Option<Fault> {
        // Only documented paths get faults, so a test can always remove the rules.
        if !request.path.starts_with("/v1/") {
            return None;
        }
        self.0.lock().iter_mut().find_map(|counted| counted.next_fault(request))
    }
}

impl CountedRule {
    fn next_fault(&mut self, request: &RequestInfo) -> Option<Fault> {
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
            RuleFault::LatencyMs(millis) => Fault::Delay(Duration::from_millis(*millis)),
            RuleFault::Status { status, retry_after } => {
                Fault::Status { status: *status, retry_after: retry_after.clone() }
            }
            RuleFault::Reset => Fault::Reset,
            RuleFault::Truncate => Fault::Truncate,
            RuleFault::CutShort => Fault::CutShort,
            RuleFault::Html => Fault::Html,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_hits_every_nth_matching_request_up_to_its_limit() {
        let rule: FaultRule = serde_json::from_str(
            r#"{"path": "/history", "every": 2, "times": 2, "fault": {"status": {"status": 503}}}"#,
        )
        .unwrap();
        let fault_rules = FaultRules::new(vec![rule]);
        let ask = |path: &str| {
            let (method, query) = ("GET".to_owned(), String::new());
            fault_rules.fault_of(&RequestInfo { method, path: path.to_owned(), query }).is_some()
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
