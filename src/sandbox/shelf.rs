//! One stream of one team: millions of records in time order. It finds any page in logarithmic time.

use std::collections::HashMap;
use std::sync::{RwLock, RwLockReadGuard};
use std::time::Duration;

use bytes::Bytes;

use crate::model::{DeviceId, Instant};

use super::config::Lateness;
use super::overlay::{Extra, Overlay, Withdrawal, insert_by_time};
use super::seed::{mix2, short};
use super::view::View;

/// A compact record. `Ord` gives the order of the stream.
pub(super) trait Record: Copy + Ord + Send + Sync {
    fn at(self) -> Instant;
    /// A number that identifies the record; twins have the same number.
    fn name(self) -> u64;
}

/// The positions of each computer's records: one list, divided by computer.
#[derive(Default)]
pub(super) struct ByComputer {
    places: Vec<u16>,
    starts: Vec<u32>,
    positions: Vec<u32>,
}

impl ByComputer {
    /// `places` holds the computer of each record in the stream's order; `computers` is the number of computers.
    pub(super) fn new(places: Vec<u16>, computers: usize) -> Self {
        let mut starts = vec![0u32; computers + 1];
        for &place in &places {
            starts[usize::from(place) + 1] += 1;
        }
        for place in 0..computers {
            starts[place + 1] += starts[place];
        }
        let mut next = starts.clone();
        let mut positions = vec![0u32; places.len()];
        for (position, &place) in (0u32..).zip(&places) {
            let slot = &mut next[usize::from(place)];
            positions[*slot as usize] = position;
            *slot += 1;
        }
        Self { places, starts, positions }
    }

    pub(super) fn of(&self, computer: u32) -> &[u32] {
        let place = computer as usize;
        match (self.starts.get(place), self.starts.get(place + 1)) {
            (Some(&start), Some(&end)) => &self.positions[start as usize..end as usize],
            _ => &[],
        }
    }

    pub(super) fn computer_at(&self, position: u32) -> Option<u32> {
        self.places.get(position as usize).map(|&place| u32::from(place))
    }
}

/// The filter of a listing, before paging.
pub(super) struct Listing {
    /// Half-open, to the nanosecond.
    pub from: Instant,
    pub end: Instant,
    /// Only events of these computers: positions for records, ids for inserted events.
    pub computers: Option<Vec<(Option<u32>, DeviceId)>>,
}

/// The page of a listing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub offset: u64,
    pub limit: usize,
    pub newest_first: bool,
    pub neighbours_swapped: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Item<R> {
    Made(R),
    Extra(Bytes),
}

/// All changes of a stream.
pub(super) struct Changes {
    /// Sorted by time.
    pub extras: Vec<Extra>,
    pub removed: HashMap<u32, Instant>,
    pub withdrawals: Vec<Withdrawal>,
}

pub(super) struct Shelf<R> {
    pub(super) base: Vec<R>,
    pub(super) by_computer: ByComputer,
    lateness: Lateness,
    seed: u64,
    /// Late records, sorted by the time at which they become visible.
    late: Vec<(Instant, u32)>,
    overlay: RwLock<Overlay>,
}

impl<R: Record> Shelf<R> {
    /// `base` must be sorted.
    pub(super) fn new(base: Vec<R>, by_computer: ByComputer, lateness: Lateness, seed: u64) -> Self {
        let mut shelf = Self { base, by_computer, lateness, seed, late: Vec::new(), overlay: RwLock::default() };
        if lateness.per_million > 0 {
            let births =
                (0u32..).zip(&shelf.base).map(|(position, &record)| (shelf.birth(record), record.at(), position));
            let mut late: Vec<_> =
                births.filter(|(born, at, _)| born > at).map(|(born, _, place)| (born, place)).collect();
            late.sort_unstable();
            shelf.late = late;
        }
        shelf.rebuild_hidden(&mut shelf.write(), 0);
        shelf
    }

    /// When the sandbox first shows the record.
    pub(super) fn birth(&self, record: R) -> Instant {
        let roll = mix2(self.seed ^ record.name(), record.at().nanos().unsigned_abs());
        if self.lateness.per_million == 0 || roll % 1_000_000 >= u64::from(self.lateness.per_million) {
            return record.at();
        }
        let longest = u64::try_from(self.lateness.longest.as_millis()).unwrap_or(u64::MAX).max(1);
        record.at().plus(Duration::from_millis(1 + (roll >> 20) % longest))
    }

    /// A consistent view of the overlay at `now`.
    pub(super) fn look(&self, now: Instant) -> RwLockReadGuard<'_, Overlay> {
        let born = self.late.partition_point(|(birth, _)| *birth <= now);
        if self.read().born != born {
            self.rebuild_hidden(&mut self.write(), born);
        }
        self.read()
    }

    /// A page, and the number of events in the whole listing.
    pub(super) fn page(&self, now: Instant, listing: &Listing, cut: Cut) -> (Vec<Item<R>>, u64) {
        let overlay = self.look(now);
        View::new(self, &overlay, now, listing).page(cut)
    }

    /// The number of records and inserted events that are visible at `now`.
    pub(super) fn visible(&self, now: Instant) -> u64 {
        let whole =
            Listing { from: Instant::from_nanos(i64::MIN), end: Instant::from_nanos(i64::MAX), computers: None };
        let overlay = self.look(now);
        View::new(self, &overlay, now, &whole).total()
    }

    pub(super) fn insert(&self, extra: Extra) {
        insert_by_time(&mut self.write().extras, extra);
    }

    /// Deletes a computer's whole history. Returns false if it was deleted before.
    pub(super) fn remove_computer(&self, place: u32, id: &DeviceId, now: Instant) -> bool {
        let mut overlay = self.write();
        if overlay.removed.contains_key(&place) {
            return false;
        }
        overlay.removed.insert(place, now);
        for extra in overlay.extras.iter_mut().filter(|extra| extra.device.as_ref() == Some(id)) {
            extra.withdraw(now);
        }
        let born = overlay.born;
        self.rebuild_hidden(&mut overlay, born);
        true
    }

    /// All changes since the stream was made.
    pub(super) fn changes(&self) -> Changes {
        let overlay = self.read();
        let (extras, removed) = (overlay.extras.clone(), overlay.removed.clone());
        Changes { extras, removed, withdrawals: overlay.withdrawals.clone() }
    }

    /// Restores saved changes. Positions past the end have no record.
    pub(super) fn restore(&self, mut changes: Changes) {
        let end = short(self.base.len());
        for withdrawal in &mut changes.withdrawals {
            withdrawal.positions.end = withdrawal.positions.end.min(end);
        }
        changes.extras.sort_by_key(|extra| extra.at);
        let mut overlay = self.write();
        overlay.extras = changes.extras;
        overlay.removed = changes.removed;
        overlay.withdrawals = changes.withdrawals;
        let born = overlay.born;
        self.rebuild_hidden(&mut overlay, born);
    }

    /// Deletes the inserted events of a computer.
    pub(super) fn withdraw_extras_of(&self, id: &DeviceId, now: Instant) {
        for extra in self.write().extras.iter_mut().filter(|extra| extra.device.as_ref() == Some(id)) {
            extra.withdraw(now);
        }
    }

    /// Deletes the visible events of `[from, end)` and returns their number.
    pub(super) fn withdraw(&self, from: Instant, end: Instant, now: Instant) -> u64 {
        let before = self.visible(now);
        let mut overlay = self.write();
        let shown = end.min(now.plus(Duration::from_nanos(1)));
        let positions = self.position_of(from)..self.position_of(shown).max(self.position_of(from));
        overlay.withdrawals.push(Withdrawal { positions, at: now });
        for extra in overlay.extras.iter_mut().filter(|extra| from <= extra.at && extra.at < end) {
            extra.withdraw(now);
        }
        let born = overlay.born;
        self.rebuild_hidden(&mut overlay, born);
        drop(overlay);
        before - self.visible(now)
    }

    /// The first position at or after a time.
    pub(super) fn position_of(&self, at: Instant) -> u32 {
        short(self.base.partition_point(|record| record.at() < at))
    }

    fn rebuild_hidden(&self, overlay: &mut Overlay, born: usize) {
        let unborn = self.late[born..].iter().map(|&(_, position)| position);
        let withdrawn = overlay.withdrawals.iter().flat_map(|withdrawal| withdrawal.positions.clone());
        let mut hidden: Vec<u32> = unborn.chain(withdrawn).collect();
        hidden.sort_unstable();
        hidden.dedup();
        overlay.hidden_of.clear();
        for &position in &hidden {
            if let Some(place) = self.by_computer.computer_at(position) {
                overlay.hidden_of.entry(place).or_default().push(position);
            }
        }
        for place in overlay.removed.keys() {
            hidden.extend_from_slice(self.by_computer.of(*place));
        }
        hidden.sort_unstable();
        hidden.dedup();
        overlay.hidden = hidden;
        overlay.born = born;
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Overlay> {
        self.overlay.read().expect("BUG: nothing panics while it holds the overlay")
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Overlay> {
        self.overlay.write().expect("BUG: nothing panics while it holds the overlay")
    }
}

#[cfg(test)]
mod tests;
