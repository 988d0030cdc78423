//! The page size that a service accepts. Annals learns it if it differs from the documented one.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api::{DEVICE_PAGE_EVENTS_MAX, PAGE_EVENTS_MAX};

/// Limits tried one after another when the service refuses one, or when a page is too long: ten events may have 6 MiB each.
const STEPS: [u32; 5] = [PAGE_EVENTS_MAX, 1000, 500, 100, 10];

/// The `limit` to ask for; shared by all readings of one service, and by all clones.
#[derive(Debug, Clone)]
pub struct PageLimit {
    steps: Cow<'static, [u32]>,
    step: Arc<AtomicUsize>,
}

impl PageLimit {
    pub fn documented() -> Self {
        Self { steps: Cow::Borrowed(&STEPS), step: Arc::default() }
    }

    /// One page size, without smaller steps.
    pub fn fixed(events: u32) -> Self {
        Self { steps: vec![events].into(), step: Arc::default() }
    }

    pub fn events(&self) -> u32 {
        self.steps[self.step.load(Ordering::Relaxed)]
    }

    /// The limit of the deprecated per-computer history.
    pub fn device_events(&self) -> u32 {
        self.events().min(DEVICE_PAGE_EVENTS_MAX)
    }

    /// Steps down after the service refused `limit`. Returns false if no smaller limit exists.
    pub fn refuse(&self, limit: u32) -> bool {
        match self.steps.iter().position(|&step| step < limit) {
            Some(next) => {
                self.step.fetch_max(next, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_limit_steps_down_once_and_is_remembered() {
        let limit = PageLimit::documented();
        let mut tried = vec![limit.events()];
        while limit.refuse(limit.events()) {
            tried.push(limit.events());
        }
        assert_eq!(tried, [1001, 1000, 500, 100, 10]);
        assert!(!limit.refuse(10));
    }

    #[test]
    fn two_refusals_at_the_same_time_step_down_once() {
        let limit = PageLimit::documented();
        assert!(limit.refuse(1001) && limit.refuse(1001));
        assert_eq!(limit.events(), 1000);
    }
}
