//! What changes while a sandbox runs: events put in by hand, computers removed, events taken away.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::model::{DeviceId, Instant};

/// An event that is kept as its text: billing entries, and whatever is put in by hand.
#[derive(Debug, Clone)]
pub(super) struct Extra {
    pub raw: Bytes,
    pub at: Instant,
    pub device: Option<DeviceId>,
    pub visible_from: Instant,
    pub visible_until: Option<Instant>,
}

impl Extra {
    pub(super) fn new(raw: impl Into<Bytes>, at: Instant, device: Option<DeviceId>, visible_from: Instant) -> Self {
        Self { raw: raw.into(), at, device, visible_from, visible_until: None }
    }

    pub(super) fn is_visible(&self, now: Instant) -> bool {
        self.visible_from <= now && self.visible_until.is_none_or(|until| now < until)
    }

    /// Takes the event away at `now`; one that is gone already stays gone since then.
    pub(super) fn withdraw(&mut self, now: Instant) -> bool {
        let was_there = self.is_visible(now);
        self.visible_until = Some(self.visible_until.map_or(now, |until| until.min(now)));
        was_there
    }
}

/// Puts an event in its place in time, after those of the same moment.
pub(super) fn insert_by_time(extras: &mut Vec<Extra>, extra: Extra) {
    let place = extras.partition_point(|held| held.at <= extra.at);
    extras.insert(place, extra);
}

/// Records taken away together: their positions, and when.
#[derive(Debug, Clone)]
pub(super) struct Withdrawal {
    pub positions: Range<u32>,
    pub at: Instant,
}

/// The changing part of a shelf.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// Sorted by time.
    pub extras: Vec<Extra>,
    /// Computers by place, and when they were removed.
    pub removed: HashMap<u32, Instant>,
    pub withdrawals: Vec<Withdrawal>,
    /// Positions of records that are not served, sorted: not born yet, of a removed computer, or taken away.
    pub hidden: Vec<u32>,
    /// The same by computer, without the removed ones.
    pub hidden_of: HashMap<u32, Vec<u32>>,
    /// How many of the shelf's late records `hidden` takes as born.
    pub born: usize,
}
