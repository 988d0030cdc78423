//! The ranges that a round left open.

use std::sync::{Mutex, PoisonError};

use crate::model::{Range, Stream};

/// The ranges that one round left open because they did not hold still.
#[derive(Debug, Default)]
pub struct LeftOpen(Mutex<Vec<(Stream, Range)>>);

impl LeftOpen {
    pub fn note(&self, stream: Stream, range: Range) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((stream, range));
    }

    /// In the order in which they were given up.
    pub fn all(&self) -> Vec<(Stream, Range)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
