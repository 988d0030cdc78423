//! The pages of one walk, kept to compare the next walk over the same list with it.
//!
//! If a page repeats byte for byte, it means the same for the next walk: it is neither parsed nor counted again. Two
//! walks with the same pages agree. Other walks are compared by their events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::api::Page;
use crate::model::{Digest, Instant, Multiset, NANOS_PER_SECOND, Range};

use super::padded_range::PaddedRange;
use super::walk::{Step, Walk};

/// One page of a walk.
#[derive(Debug)]
pub struct WalkPage {
    /// The number of the stream's list, and the place in it.
    list: usize,
    offset: u64,
    limit: u32,
    pub body: Bytes,
    /// The events and their times.
    pub events: Vec<(Digest, Option<Instant>)>,
    /// The size of the new events, in events of usual size.
    size: u64,
    /// The meaning of the page, and the walk after it.
    pub step: Step,
    pub after: Walk,
}

/// The pages of one walk, in order, list by list.
#[derive(Debug, Default)]
pub struct WalkPages {
    pages: Vec<Arc<WalkPage>>,
    /// How often `hasMoreEvents` said the opposite of what the walk then saw.
    pub has_more: u64,
}

impl WalkPages {
    /// The next page for a walk that has seen the first `at` pages of this one.
    pub fn next(&self, at: usize, (list, offset, limit): (usize, u64, u32)) -> Option<&Arc<WalkPage>> {
        let is_it = |seen: &&Arc<WalkPage>| (seen.list, seen.offset, seen.limit) == (list, offset, limit);
        self.pages.get(at).filter(is_it).filter(|seen| !seen.body.is_empty())
    }

    pub fn note(&mut self, (list, offset, limit): (usize, u64, u32), page: &Page, step: Step, after: Walk) {
        let new = if let Step::More { new } = step { new } else { 0 };
        let size = page.events[page.events.len() - new..].iter().map(|event| event.size() as u64).sum();
        let events = page.events.iter().map(|event| (event.digest, event.at())).collect();
        self.pages.push(Arc::new(WalkPage { list, offset, limit, body: page.body.clone(), events, size, step, after }));
    }

    pub fn note_again(&mut self, seen: Arc<WalkPage>) {
        self.pages.push(seen);
    }

    /// How many pages the walk has seen.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The size of the walk's events, in events of usual size.
    pub fn size(&self) -> u64 {
        self.pages.iter().map(|seen| seen.size).sum()
    }

    /// Whether both walks saw the same pages throughout.
    pub fn equals(&self, other: &Self) -> bool {
        self.pages.len() == other.pages.len() && self.pages.iter().zip(&other.pages).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// How often both walks found `hasMoreEvents` untrue, if they saw the same list. A list that changes makes honest claims look
    /// untrue.
    pub fn has_more_untrue(&self, former: &Self) -> u64 {
        let both = self.has_more.min(former.has_more);
        if both > 0 && (self.equals(former) || self.tally(|_| true) == former.tally(|_| true)) { both } else { 0 }
    }

    /// How often each event with a time that `keeps` accepts occurred, without repeated anchors.
    pub fn tally(&self, keeps: impl Fn(Option<Instant>) -> bool) -> Multiset<Digest> {
        let mut tally = Multiset::with_room_for(self.pages.iter().map(|seen| seen.events.len()).sum());
        for seen in &self.pages {
            let Step::More { new } = seen.step else { continue };
            for (digest, at) in &seen.events[seen.events.len() - new..] {
                if keeps(*at) {
                    tally.add(*digest);
                }
            }
        }
        tally
    }

    /// The cut of a range after which the walk has passed all events of the left part, if the list is in time order.
    /// `None` if the walk is too short.
    pub fn cut(&self, asked: PaddedRange) -> Option<(Range, Range)> {
        let passed = self.times().next()?;
        // The service may read each bound with up to a second more.
        let cut = passed.floor_second().nanos() - (asked.pad + 1) * NANOS_PER_SECOND;
        let cut = Instant::from_nanos(cut);
        let range = asked.range;
        (range.start < cut && cut < range.end).then(|| (Range::new(range.start, cut), Range::new(cut, range.end)))
    }

    /// The end of the second in which the walk stopped, with the padding after it. `None` if that second has at most
    /// half of the walk's events.
    pub fn dense_second_end(&self, asked: PaddedRange) -> Option<Instant> {
        let second = self.times().next()?.floor_second();
        let (all, inside) = (self.times().count(), self.times().filter(|at| at.floor_second() == second).count());
        let seconds = u64::try_from(asked.pad).ok()?.checked_add(2)?;
        (inside > all / 2).then(|| second.plus(Duration::from_secs(seconds)))
    }

    /// The times of the events that the walk saw, the last one first.
    fn times(&self) -> impl Iterator<Item = Instant> {
        self.pages.iter().rev().flat_map(|seen| seen.events.iter().rev().filter_map(|(_, at)| *at))
    }
}
