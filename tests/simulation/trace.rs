//! The trace of a world, for the command that repeats it.

use std::collections::VecDeque;
use std::sync::Mutex;

use annals::model::Instant;

/// How many lines the trace keeps.
const LINES_MAX: usize = 600;

pub struct Trace {
    lines: Option<Mutex<VecDeque<String>>>,
}

impl Trace {
    pub fn new(is_kept: bool) -> Self {
        Self { lines: is_kept.then(Mutex::default) }
    }

    pub fn note(&self, at: Instant, what: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let mut lines = lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            lines.push_back(format!("{at} {}", what()));
            if lines.len() > LINES_MAX && std::env::var_os("ANNALS_SIM_WHOLE").is_none() {
                lines.pop_front();
            }
        }
    }

    pub fn text(&self) -> String {
        let Some(lines) = &self.lines else { return String::new() };
        let lines = lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}
