//! Faults by rule: which requests they befall, and how often. The command and a sandbox-only request set them.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::{Fault, RequestInfo};

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
    pub every: u64,
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
    LatencyMs(u64),
    /// This status, with a `Retry-After` of this text.
    #[serde(rename_all = "snake_case")]
    Status {
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

fn one() -> u64 {
    1
}

struct Counted {
    rule: FaultRule,
    fitting: u64,
    befallen: u64,
}

#[derive(Default)]
pub(super) struct Mishaps(Mutex<Vec<Counted>>);

impl Mishaps {
    pub(super) fn new(rules: Vec<FaultRule>) -> Self {
        let mishaps = Self::default();
        mishaps.set(rules);
        mishaps
    }

    pub(super) fn set(&self, rules: Vec<FaultRule>) {
        *self.held() = rules.into_iter().map(|rule| Counted { rule, fitting: 0, befallen: 0 }).collect();
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

    fn held(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.0.lock().expect("BUG: nothing panics while it holds the fault rules")
    }
}

impl Counted {
    fn turn(&mut self, request: &RequestInfo) -> Option<Fault> {
        let rule = &self.rule;
        let fits = rule.path.as_ref().is_none_or(|path| request.path.contains(path.as_str()))
            && rule.method.as_ref().is_none_or(|method| request.method.eq_ignore_ascii_case(method));
        if !fits || rule.times.is_some_and(|times| self.befallen >= times) {
            return None;
        }
        self.fitting += 1;
        if !self.fitting.is_multiple_of(rule.every.max(1)) {
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
        for wrong in [r#"{"fault": "none"}"#, r#"{"fault": "reset", "often": 1}"#, "{}"] {
            assert!(serde_json::from_str::<FaultRule>(wrong).is_err(), "{wrong}");
        }
    }
}
