//! One anchored walk over one list: each page starts a few events early, so the walk notices when the list changes.
//!
//! Pure: it gives the next offset and takes the answers. It compares the service's `hasMoreEvents`, `nextOffset` and order with the
//! events and counts contradictions. These claims never end a walk; they can only make it ask for more.

use std::collections::VecDeque;

use crate::api::{PAGE_EVENTS_MAX, Page};
use crate::model::{Digest, Instant, RawEvent};
use crate::planted::{self, Bug};

/// The number of anchors: events before an offset that the next page repeats.
pub const ANCHORS_MAX: usize = 8;

/// If this number of pages in a row has the same new events, the service serves one page for ever.
const REPEATS_MAX: u32 = 16;

/// How many offsets beyond the end of the list a walk tries, if the service claims more events there.
const PROBES_MAX: u32 = 16;

/// Contradictions of the service. They are counted for the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// `hasMoreEvents` said the opposite of the next page. The list may have changed between the two requests, so a reading counts it
    /// only if two walks with the same events both met it.
    pub has_more: u64,
    /// `nextOffset` was not the number of events passed.
    pub next_offset: u64,
    /// An event older than the event before it, although the request asked for oldest first.
    pub order: u64,
    /// An event outside the range asked for.
    pub outside: u64,
}

impl Anomalies {
    pub fn add(&mut self, other: Anomalies) {
        self.has_more += other.has_more;
        self.next_offset += other.next_offset;
        self.order += other.order;
        self.outside += other.outside;
    }

    /// Each kind by name, with how often it was met.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("hasMoreEvents", self.has_more),
            ("nextOffset", self.next_offset),
            ("order", self.order),
            ("outside", self.outside),
        ];
        all.into_iter()
    }
}

/// The meaning of a page for the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The anchors are in their places, and this number of events at the end of the page is new.
    More { new: usize },
    /// The page has only the anchors: the walk is whole.
    Whole,
    /// The anchors are missing: the list changed under the walk.
    Moved,
}

/// The state of one walk.
#[derive(Debug, Clone)]
pub struct Walk {
    /// Events of the list that were passed.
    offset: u64,
    /// Digest prefixes of the last events before `offset`, oldest first.
    tail: VecDeque<[u8; 16]>,
    /// The number of anchors in `tail` that the next page must begin with.
    anchors: usize,
    page_max: usize,
    last_time: Option<Instant>,
    claimed_more: Option<bool>,
    /// A hash of the last page's new events, and how many pages in a row had the same.
    repeated: (u64, u32),
    /// The offset beyond the end of the list where the service claims more events.
    probe: Option<u64>,
    /// How many such offsets the walk has tried.
    probes: u32,
    pub anomalies: Anomalies,
}

impl Walk {
    pub fn from_start() -> Self {
        Self {
            offset: 0,
            tail: VecDeque::with_capacity(ANCHORS_MAX + 1),
            anchors: 0,
            page_max: 0,
            last_time: None,
            claimed_more: None,
            repeated: (0, 0),
            probe: None,
            probes: 0,
            anomalies: Anomalies::default(),
        }
    }

    /// Continues at a checkpoint. `anchors` are the digest prefixes of the last events before `offset`.
    pub fn resumed(offset: u64, anchors: Vec<[u8; 16]>) -> Self {
        let mut walk = Self::from_start();
        walk.offset = offset;
        walk.anchors = anchors.len();
        walk.tail = anchors.into();
        walk
    }

    /// Events of the list that were passed.
    pub fn passed(&self) -> u64 {
        self.offset
    }

    /// The offset of the next page.
    pub fn next_offset(&self) -> u64 {
        self.probe.unwrap_or(self.offset - self.anchors as u64)
    }

    /// How many anchors the next page must begin with.
    pub fn anchors(&self) -> usize {
        self.anchors
    }

    /// The checkpoint: events passed, and the anchors for a later walk.
    pub fn point(&self) -> (u64, Vec<[u8; 16]>) {
        // Without an anchor, one deleted and one inserted event would look like an unchanged list.
        let least = usize::from(!planted::is(Bug::PointUnanchored));
        let anchors = self.anchors.max(least).min(self.tail.len());
        (self.offset, self.tail.iter().skip(self.tail.len() - anchors).copied().collect())
    }

    /// Takes the answer to the page at [`Walk::next_offset`].
    pub fn take(&mut self, page: &Page) -> Step {
        if self.probe.is_some() {
            // Offsets that count hidden events move the anchors. Smaller ranges fit into one page.
            return if page.events.is_empty() { self.end(page) } else { Step::Moved };
        }
        let mut expected = self.tail.iter().skip(self.tail.len() - self.anchors).zip(&page.events);
        if !expected.all(|(anchor, event)| *anchor == prefix(&event.digest)) {
            return Step::Moved;
        }
        if self.is_capped(page) {
            self.page_max = page.events.len();
            self.anchors = usize::from(self.anchors > 1);
            return Step::More { new: 0 };
        }
        if page.events.len() < self.anchors {
            return Step::Moved;
        }
        let new = &page.events[self.anchors..];
        self.check_claims(page, new.is_empty());
        if new.is_empty() || self.trusts_end(page) {
            return self.end(page);
        }
        if self.is_stuck(new) {
            return Step::Moved;
        }
        self.pass(new);
        self.page_max = self.page_max.max(page.events.len());
        // Anchors take at most half a page. If the service caps pages at eight events, a page with only anchors would look like the
        // end of the list.
        self.anchors = ANCHORS_MAX.min(self.page_max / 2).min(self.tail.len());
        if planted::is(Bug::NoAnchors) {
            self.anchors = 0;
        }
        Step::More { new: new.len() }
    }

    /// A page with only anchors that claims that more events follow. The service may cap its pages so that only anchors fit. The walk
    /// asks once more, with fewer anchors, and does not rely on the claim.
    fn is_capped(&self, page: &Page) -> bool {
        (self.anchors > 1 || self.page_max == 0)
            && (1..=self.anchors).contains(&page.events.len())
            && page.has_more == Some(true)
    }

    /// Ends the walk, unless the service claims that more events follow at a later offset. The service may hide events after it has
    /// cut the list into pages: then offsets count events that no page has, and a page can be empty in the middle of the list.
    fn end(&mut self, page: &Page) -> Step {
        let asked = self.next_offset();
        let ahead = asked + page.events.len() as u64 + 1..=asked + u64::from(PAGE_EVENTS_MAX);
        let claimed = page.next_offset.filter(|_| page.has_more == Some(true) && self.probes < PROBES_MAX);
        self.probe = claimed.and_then(|next| u64::try_from(next).ok()).filter(|next| ahead.contains(next));
        self.probes += u32::from(self.probe.is_some());
        if self.probe.is_some() { Step::More { new: 0 } } else { Step::Whole }
    }

    /// Whether the walk ends because the service claims that nothing follows. Only a planted bug trusts that claim.
    fn trusts_end(&self, page: &Page) -> bool {
        planted::is(Bug::TrustHasMore) && page.has_more == Some(false) && self.offset > 0
    }

    /// Ends the walk if the service ignores offsets: a list of one event, or of equal events, would have no end.
    fn is_stuck(&mut self, new: &[RawEvent]) -> bool {
        let number = |event: &RawEvent| u64::from_le_bytes(event.digest.0[..8].try_into().expect("BUG: 32 bytes"));
        let brief = new.iter().fold(new.len() as u64, |sum, event| sum.rotate_left(7) ^ number(event));
        self.repeated = if self.repeated.0 == brief { (brief, self.repeated.1 + 1) } else { (brief, 0) };
        self.repeated.1 >= REPEATS_MAX
    }

    fn pass(&mut self, new: &[RawEvent]) {
        self.offset += new.len() as u64;
        for event in new {
            if let Some(at) = event.at() {
                self.anomalies.order += u64::from(self.last_time.is_some_and(|last| at < last));
                self.last_time = Some(at);
            }
        }
        for event in &new[new.len().saturating_sub(ANCHORS_MAX)..] {
            self.tail.push_back(prefix(&event.digest));
        }
        while self.tail.len() > ANCHORS_MAX {
            self.tail.pop_front();
        }
    }

    fn check_claims(&mut self, page: &Page, ended: bool) {
        if self.claimed_more.is_some_and(|claimed| claimed == ended) {
            self.anomalies.has_more += 1;
        }
        self.claimed_more = page.has_more;
        let passed = self.next_offset() + page.events.len() as u64;
        let lied = |next: i64| u64::try_from(next).is_ok_and(|next| next != passed) || next < 0;
        if page.has_more == Some(true) && page.next_offset.is_some_and(lied) {
            self.anomalies.next_offset += 1;
        }
    }
}

fn prefix(digest: &Digest) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.0[..16]);
    bytes
}

#[cfg(test)]
mod tests;
