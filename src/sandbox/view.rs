//! One listing of a stream at one moment: counts its events, and finds the k-th event without a walk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::model::Instant;

use super::overlay::{Overlay, TextEvent};
use super::records::{Cut, Item, Listing, Record, Records};
use super::seed::short;

pub(super) struct View<'a, R> {
    records: &'a Records<R>,
    overlay: &'a Overlay,
    /// The positions in the requested range, up to now.
    start: u32,
    end: u32,
    /// Only these computers, by position, without removed ones.
    computers: Option<Vec<u32>>,
    /// The visible inserted events, each with the position before which it stands.
    text_events: Vec<(u32, &'a TextEvent)>,
}

impl<'a, R: Record> View<'a, R> {
    pub(super) fn new(records: &'a Records<R>, overlay: &'a Overlay, now: Instant, listing: &Listing) -> Self {
        let start = records.position_of(listing.from);
        let end = records.position_of(listing.end.min(now.plus(Duration::from_nanos(1)))).max(start);
        let computers = listing.computers.as_ref().map(|asked| {
            let mut places: Vec<u32> = asked.iter().filter_map(|(place, _)| *place).collect();
            places.retain(|place| !overlay.removed.contains_key(place));
            places.sort_unstable();
            places.dedup();
            places
        });
        let first = overlay.text_events.partition_point(|extra| extra.at < listing.from);
        let past = overlay.text_events.partition_point(|extra| extra.at < listing.end).max(first);
        let text_events = overlay.text_events[first..past]
            .iter()
            .filter(|extra| extra.is_visible(now) && is_asked(listing, extra))
            .map(|extra| (records.position_of(extra.at.plus(Duration::from_nanos(1))).clamp(start, end), extra))
            .collect();
        Self { records, overlay, start, end, computers, text_events }
    }

    pub(super) fn total(&self) -> u64 {
        self.count_before(self.end) + self.text_events.len() as u64
    }

    pub(super) fn page(&self, cut: Cut) -> (Vec<Item<R>>, u64) {
        let total = self.total();
        let from = cut.offset.min(total);
        let to = from.saturating_add(cut.limit as u64).min(total);
        let items = if cut.neighbours_swapped {
            let (whole_from, whole_to) = (from & !1, (to + (to & 1)).min(total));
            swap_neighbours(self.ordered(whole_from, whole_to, total, cut.newest_first), whole_from, from, to)
        } else {
            self.ordered(from, to, total, cut.newest_first)
        };
        (items, total)
    }

    fn ordered(&self, from: u64, to: u64, total: u64, newest_first: bool) -> Vec<Item<R>> {
        if !newest_first {
            return self.ascending(from, to);
        }
        let mut items = self.ascending(total - to, total - from);
        items.reverse();
        items
    }

    /// The events number `from..to`, oldest first.
    fn ascending(&self, from: u64, to: u64) -> Vec<Item<R>> {
        let rank_of = |number: u32| self.count_before(self.text_events[number as usize].0) + u64::from(number);
        let mut next_extra = first_where(0, short(self.text_events.len()), |number| rank_of(number) >= from) as usize;
        let mut positions = self.positions_from(self.select(from - next_extra as u64)).peekable();
        let mut items = Vec::with_capacity(room(to - from));
        while (items.len() as u64) < to - from {
            match (self.text_events.get(next_extra), positions.peek()) {
                (Some((before, extra)), position) if position.is_none_or(|position| before <= position) => {
                    items.push(Item::Text(extra.raw.clone()));
                    next_extra += 1;
                }
                (_, Some(&position)) => {
                    items.push(Item::Record(self.records.base[position as usize]));
                    positions.next();
                }
                (_, None) => break,
            }
        }
        items
    }

    /// The number of the listing's records before a position.
    fn count_before(&self, position: u32) -> u64 {
        let Some(computers) = &self.computers else {
            let hidden = between(&self.overlay.hidden, self.start, position);
            return u64::from(position - self.start) - hidden;
        };
        let count = |&place: &u32| {
            let hidden = self.overlay.hidden_of.get(&place).map_or(0, |list| between(list, self.start, position));
            between(self.records.by_computer.of(place), self.start, position) - hidden
        };
        computers.iter().map(count).sum()
    }

    /// The position of the `rank`-th record of the listing, or the end.
    fn select(&self, rank: u64) -> u32 {
        first_where(self.start, self.end, |position| self.count_before(position + 1) > rank)
    }

    /// The listing's positions from a given one on, in order.
    fn positions_from(&self, position: u32) -> Box<dyn Iterator<Item = u32> + '_> {
        let hidden = &self.overlay.hidden;
        let Some(computers) = &self.computers else {
            let mut next_hidden = hidden.partition_point(|&hidden| hidden < position);
            return Box::new((position..self.end).filter(move |position| {
                let is_hidden = hidden.get(next_hidden) == Some(position);
                next_hidden += usize::from(is_hidden);
                !is_hidden
            }));
        };
        let mut lists: Vec<_> = computers.iter().map(|&place| self.records.by_computer.of(place)).collect();
        let mut heads = BinaryHeap::new();
        for (number, list) in lists.iter_mut().enumerate() {
            *list = &list[list.partition_point(|&held| held < position)..];
            heads.extend(list.first().map(|&head| Reverse((head, number))));
        }
        let merged = std::iter::from_fn(move || {
            let Reverse((head, number)) = heads.pop()?;
            lists[number] = &lists[number][1..];
            heads.extend(lists[number].first().map(|&next| Reverse((next, number))));
            (head < self.end).then_some(head)
        });
        Box::new(merged.filter(|position| hidden.binary_search(position).is_err()))
    }
}

/// The first number of `low..high` for which a condition holds, if it holds for all later ones; otherwise `high`.
fn first_where(mut low: u32, mut high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

fn is_asked(listing: &Listing, extra: &TextEvent) -> bool {
    match (&listing.computers, &extra.device) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(asked), Some(device)) => asked.iter().any(|(_, id)| id == device),
    }
}

/// The number of items of a sorted list in `start..end`.
fn between(list: &[u32], start: u32, end: u32) -> u64 {
    let first = list.partition_point(|&position| position < start);
    let past = list.partition_point(|&position| position < end);
    past.saturating_sub(first) as u64
}

/// The number of events of one page.
fn room(events: u64) -> usize {
    usize::try_from(events).expect("BUG: a page fits memory")
}

/// Swaps the items 2k and 2k+1 of the whole listing, and takes `from..to` of the result.
fn swap_neighbours<T>(mut items: Vec<T>, whole_from: u64, from: u64, to: u64) -> Vec<T> {
    items.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    items.into_iter().skip(room(from - whole_from)).take(room(to - from)).collect()
}
