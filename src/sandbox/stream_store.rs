//! One stream of one team: millions of records in time order. It finds any page in logarithmic time.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};

use crate::model::{DeviceId, Instant};

use super::overlay::{Overlay, TextEvent, Withdrawal, insert_by_time};
use super::records::{ByComputer, Cut, Item, Listing, Record, Records};
use super::seed::{mix2, short};
use super::view::View;

/// How many events the service shows only some time after they happened, and how long after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Late events in a million.
    pub per_million: u32,
    /// The longest delay. Delays are spread evenly from one millisecond to this one.
    pub longest: Duration,
}

/// All changes of a stream.
pub(super) struct Changes {
    /// Sorted by time.
    pub text_events: Vec<TextEvent>,
    pub removed: HashMap<u32, Instant>,
    pub withdrawals: Vec<Withdrawal>,
}

pub(super) struct StreamStore<R> {
    pub(super) records: Records<R>,
    lateness: Lateness,
    seed: u64,
    /// Late records, sorted by the time at which they become visible.
    late: Vec<(Instant, u32)>,
    overlay: RwLock<Overlay>,
}

impl<R: Record> StreamStore<R> {
    /// `base` must be sorted.
    pub(super) fn new(base: Vec<R>, by_computer: ByComputer, lateness: Lateness, seed: u64) -> Self {
        let records = Records { base, by_computer };
        let mut store = Self { records, lateness, seed, late: Vec::new(), overlay: RwLock::default() };
        if lateness.per_million > 0 {
            let times = (0u32..)
                .zip(&store.records.base)
                .map(|(position, &record)| (store.visible_from(record), record.at(), position));
            let mut late: Vec<_> =
                times.filter(|(born, at, _)| born > at).map(|(born, _, place)| (born, place)).collect();
            late.sort_unstable();
            store.late = late;
        }
        store.rebuild_hidden(&mut store.write(), 0);
        store
    }

    /// When the sandbox first shows the record.
    pub(super) fn visible_from(&self, record: R) -> Instant {
        let roll = mix2(self.seed ^ record.name(), record.at().nanos().unsigned_abs());
        if self.lateness.per_million == 0 || roll % 1_000_000 >= u64::from(self.lateness.per_million) {
            return record.at();
        }
        let longest = u64::try_from(self.lateness.longest.as_millis()).unwrap_or(u64::MAX).max(1);
        record.at().plus(Duration::from_millis(1 + (roll >> 20) % longest))
    }

    /// A consistent view of the overlay at `now`.
    pub(super) fn overlay(&self, now: Instant) -> RwLockReadGuard<'_, Overlay> {
        let born = self.late.partition_point(|(birth, _)| *birth <= now);
        if self.read().born != born {
            self.rebuild_hidden(&mut self.write(), born);
        }
        self.read()
    }

    /// A page, and the number of events in the whole listing.
    pub(super) fn page(&self, now: Instant, listing: &Listing, cut: Cut) -> (Vec<Item<R>>, u64) {
        let overlay = self.overlay(now);
        View::new(&self.records, &overlay, now, listing).page(cut)
    }

    /// The number of records and inserted events that are visible at `now`.
    pub(super) fn visible(&self, now: Instant) -> u64 {
        let whole =
            Listing { from: Instant::from_nanos(i64::MIN), end: Instant::from_nanos(i64::MAX), computers: None };
        let overlay = self.overlay(now);
        View::new(&self.records, &overlay, now, &whole).total()
    }

    pub(super) fn insert(&self, extra: TextEvent) {
        insert_by_time(&mut self.write().text_events, extra);
    }

    /// Deletes a computer's whole history. Returns false if it was deleted before.
    pub(super) fn remove_computer(&self, place: u32, id: &DeviceId, now: Instant) -> bool {
        let mut overlay = self.write();
        if overlay.removed.contains_key(&place) {
            return false;
        }
        overlay.removed.insert(place, now);
        for extra in overlay.text_events.iter_mut().filter(|extra| extra.device.as_ref() == Some(id)) {
            extra.withdraw(now);
        }
        let born = overlay.born;
        self.rebuild_hidden(&mut overlay, born);
        true
    }

    /// All changes since the stream was made.
    pub(super) fn changes(&self) -> Changes {
        let overlay = self.read();
        let (text_events, removed) = (overlay.text_events.clone(), overlay.removed.clone());
        Changes { text_events, removed, withdrawals: overlay.withdrawals.clone() }
    }

    /// Restores saved changes. Positions past the end have no record.
    pub(super) fn restore(&self, mut changes: Changes) {
        let end = short(self.records.base.len());
        for withdrawal in &mut changes.withdrawals {
            withdrawal.positions.end = withdrawal.positions.end.min(end);
        }
        changes.text_events.sort_by_key(|extra| extra.at);
        let mut overlay = self.write();
        overlay.text_events = changes.text_events;
        overlay.removed = changes.removed;
        overlay.withdrawals = changes.withdrawals;
        let born = overlay.born;
        self.rebuild_hidden(&mut overlay, born);
    }

    /// Deletes the inserted events of a computer.
    pub(super) fn withdraw_extras_of(&self, id: &DeviceId, now: Instant) {
        for extra in self.write().text_events.iter_mut().filter(|extra| extra.device.as_ref() == Some(id)) {
            extra.withdraw(now);
        }
    }

    /// Deletes the visible events of `[from, end)` and returns their number.
    pub(super) fn withdraw(&self, from: Instant, end: Instant, now: Instant) -> u64 {
        let before = self.visible(now);
        let mut overlay = self.write();
        let shown = end.min(now.plus(Duration::from_nanos(1)));
        let positions =
            self.records.position_of(from)..self.records.position_of(shown).max(self.records.position_of(from));
        overlay.withdrawals.push(Withdrawal { positions, at: now });
        for extra in overlay.text_events.iter_mut().filter(|extra| from <= extra.at && extra.at < end) {
            extra.withdraw(now);
        }
        let born = overlay.born;
        self.rebuild_hidden(&mut overlay, born);
        drop(overlay);
        before - self.visible(now)
    }

    fn rebuild_hidden(&self, overlay: &mut Overlay, born: usize) {
        let unborn = self.late[born..].iter().map(|&(_, position)| position);
        let withdrawn = overlay.withdrawals.iter().flat_map(|withdrawal| withdrawal.positions.clone());
        let mut hidden: Vec<u32> = unborn.chain(withdrawn).collect();
        hidden.sort_unstable();
        hidden.dedup();
        overlay.hidden_of.clear();
        for &position in &hidden {
            if let Some(place) = self.records.by_computer.computer_at(position) {
                overlay.hidden_of.entry(place).or_default().push(position);
            }
        }
        for place in overlay.removed.keys() {
            hidden.extend_from_slice(self.records.by_computer.of(*place));
        }
        hidden.sort_unstable();
        hidden.dedup();
        overlay.hidden = hidden;
        overlay.born = born;
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Overlay> {
        self.overlay.read()
    }

    fn write(&self) -> parking_lot::RwLockWriteGuard<'_, Overlay> {
        self.overlay.write()
    }
}

#[cfg(test)]
mod tests;
