//! The work that a round defers to the next round.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::{Range, Stream};

/// The deferred work of all streams.
#[derive(Debug, Default)]
pub struct Deferred(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    open: Vec<(Stream, Range)>,
    is_unfinished: bool,
}

impl Deferred {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An unstable range stays open.
    pub fn note_open(&self, stream: Stream, range: Range) {
        self.held().open.push((stream, range));
    }

    /// The ranges that stay open, in the order in which they were deferred.
    pub fn open(&self) -> Vec<(Stream, Range)> {
        self.held().open.clone()
    }

    /// The round is out of time: there is more to do.
    pub fn note_unfinished(&self) {
        self.held().is_unfinished = true;
    }

    pub fn is_unfinished(&self) -> bool {
        self.held().is_unfinished
    }
}
