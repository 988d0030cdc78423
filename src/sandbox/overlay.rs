//! The changes of a running sandbox: inserted events, removed computers, deleted events.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::model::{DeviceId, Instant};

/// An event that is stored as text: a billing entry or an inserted event.
#[derive(Debug, Clone)]
pub(super) struct TextEvent {
    pub raw: Bytes,
    pub at: Instant,
    pub device: Option<DeviceId>,
    pub visible_from: Instant,
    pub visible_until: Option<Instant>,
}

impl TextEvent {
    pub(super) fn new(raw: impl Into<Bytes>, at: Instant, device: Option<DeviceId>, visible_from: Instant) -> Self {
        Self { raw: raw.into(), at, device, visible_from, visible_until: None }
    }

    pub(super) fn is_visible(&self, now: Instant) -> bool {
        self.visible_from <= now && self.visible_until.is_none_or(|until| now < until)
    }

    /// Deletes the event at `now`. An event that is already deleted keeps its earlier time.
    pub(super) fn withdraw(&mut self, now: Instant) -> bool {
        let was_there = self.is_visible(now);
        self.visible_until = Some(self.visible_until.map_or(now, |until| until.min(now)));
        was_there
    }
}

/// Inserts an event by its time, after events of the same moment.
pub(super) fn insert_by_time(text_events: &mut Vec<TextEvent>, extra: TextEvent) {
    let place = text_events.partition_point(|held| held.at <= extra.at);
    text_events.insert(place, extra);
}

/// Records that were deleted together: their positions, and when.
#[derive(Debug, Clone)]
pub(super) struct Withdrawal {
    pub positions: Range<u32>,
    pub at: Instant,
}

/// The part of a stream that changes.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// Sorted by time.
    pub text_events: Vec<TextEvent>,
    /// Removed computers by position, and when.
    pub removed: HashMap<u32, Instant>,
    pub withdrawals: Vec<Withdrawal>,
    /// Sorted positions of records that the sandbox does not serve: late ones, those of removed computers, and
    /// deleted ones.
    pub hidden: Vec<u32>,
    /// The same by computer, without the removed ones.
    pub hidden_of: HashMap<u32, Vec<u32>>,
    /// How many of the stream's late records are visible, that is, not in `hidden`.
    pub born: usize,
}
