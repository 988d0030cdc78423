//! The joined content of several readings of a range: the pointwise maximum of multiplicities.
//!
//! A page is one atomic answer, so it contributes its own counts. Only a confirmed walk contributes the sum of its pages: if the
//! list changes, two pages can have the same event.

use std::collections::hash_map::Entry;

use crate::model::{Digest, DigestMap, Multiset, Range, RawEvent};
use crate::planted::{self, Bug};

/// An event and how often it truly occurred.
#[derive(Debug, Clone)]
pub struct CountedEvent {
    pub event: RawEvent,
    pub count: u32,
}

/// The joined content of the pages so far.
#[derive(Debug, Default)]
pub struct Joined {
    events: Vec<CountedEvent>,
    places: DigestMap<usize>,
    /// The events that [`Joined::take_all`] returned. They are not returned again.
    handed_out: Multiset<Digest>,
    needs_sums: bool,
}

impl Joined {
    /// Joins one page, without the events that `keep` refuses.
    pub fn add_page(&mut self, page: Vec<RawEvent>, keep: impl Fn(&RawEvent) -> bool) {
        let mut counts = Multiset::default();
        self.events.reserve(page.len());
        self.places.reserve(page.len());
        for event in page.into_iter().filter(keep) {
            let count = if event.id.is_some() { 1 } else { counts.add(event.digest) };
            self.needs_sums |= event.id.is_none();
            if !self.handed_out.is_empty() && self.handed_out.count(&event.digest) >= count {
                continue;
            }
            match self.places.entry(event.digest) {
                Entry::Occupied(place) => self.events[*place.get()].raise(count),
                Entry::Vacant(place) => {
                    place.insert(self.events.len());
                    let mut held = CountedEvent { event, count: 1 };
                    held.raise(count);
                    self.events.push(held);
                }
            }
        }
    }

    /// Whether a walk's sums matter: an event with an id exists once, whatever the sum.
    pub fn needs_sums(&self) -> bool {
        self.needs_sums
    }

    /// Joins a confirmed walk: its sums are true multiplicities.
    pub fn confirm(&mut self, walk: &Multiset<Digest>) {
        for (digest, count) in walk.iter() {
            if let Some(&place) = self.places.get(digest) {
                self.events[place].raise(count);
            }
        }
    }

    /// Takes out the events that `range` owns, and those that `whole` does not own (unusable times, events outside).
    pub fn take(&mut self, range: Range, whole: Range) -> Vec<CountedEvent> {
        let leaves = |event: &RawEvent| event.at().is_none_or(|at| range.owns(at) || !whole.owns(at));
        if self.events.iter().all(|held| leaves(&held.event)) {
            self.places.clear();
            return std::mem::take(&mut self.events);
        }
        let (taken, kept) = std::mem::take(&mut self.events).into_iter().partition(|held| leaves(&held.event));
        self.events = kept;
        self.places = self.events.iter().enumerate().map(|(place, held)| (held.event.digest, place)).collect();
        taken
    }

    /// Forgets the events that were handed out: a second reading returns them again.
    pub fn forget(&mut self) {
        self.handed_out = Multiset::default();
    }

    /// Takes out all events, and remembers them.
    pub fn take_all(&mut self) -> Vec<CountedEvent> {
        self.places.clear();
        for held in &self.events {
            self.handed_out.raise(held.event.digest, held.count);
        }
        std::mem::take(&mut self.events)
    }

    /// See [`CountedEvent::total_size`].
    pub fn size(&self) -> usize {
        CountedEvent::total_size(&self.events)
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl CountedEvent {
    /// The size of some events, in events of usual size.
    pub fn total_size(events: &[Self]) -> usize {
        events.iter().map(|held| held.event.size()).sum()
    }

    /// An event with an id exists once, however often it is served.
    fn raise(&mut self, count: u32) {
        if self.event.id.is_none() && !planted::is(Bug::SetDedupe) {
            self.count = self.count.max(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventId, Instant, ServedTime};

    fn event(text: &str, id: Option<&str>) -> RawEvent {
        let at = ServedTime::At(Instant::from_seconds(1_700_000_000));
        RawEvent::new(text.to_owned().into(), false, id.map(EventId::from), at)
    }

    fn counts(joined: &mut Joined) -> Vec<u32> {
        let range = Range::new(Instant::EARLIEST, Instant::LATEST);
        joined.take(range, range).into_iter().map(|held| held.count).collect()
    }

    #[test]
    fn twins_on_one_page_both_exist() {
        let mut joined = Joined::default();
        joined.add_page(vec![event("twin", None), event("twin", None)], |_| true);
        assert_eq!(counts(&mut joined), [2]);
    }

    #[test]
    fn an_event_on_two_pages_exists_once_until_a_walk_confirms_both() {
        let twin = event("twin", None);
        let mut joined = Joined::default();
        joined.add_page(vec![twin.clone()], |_| true);
        joined.add_page(vec![twin.clone()], |_| true);
        let walk = [twin.digest, twin.digest].into_iter().collect();
        joined.confirm(&walk);
        assert_eq!(counts(&mut joined), [2]);
    }

    #[test]
    fn a_twin_on_one_page_with_a_returned_event_is_a_second_event() {
        let twin = event("twin", None);
        let mut joined = Joined::default();
        joined.add_page(vec![twin.clone()], |_| true);
        assert_eq!(joined.take_all().len(), 1);
        joined.add_page(vec![twin.clone(), twin.clone()], |_| true);
        assert_eq!(counts(&mut joined), [2]);
        joined.add_page(vec![twin.clone(), twin.clone()], |_| true);
        assert_eq!((joined.is_empty(), joined.take_all().len(), joined.is_empty()), (false, 1, true));
        joined.add_page(vec![twin.clone(), twin.clone()], |_| true);
        assert!(joined.is_empty(), "both were handed out");
        joined.forget();
        joined.add_page(vec![twin.clone(), twin], |_| true);
        assert_eq!(counts(&mut joined), [2]);
    }

    #[test]
    fn an_event_with_an_id_exists_once() {
        let event = event("one", Some("id"));
        let mut joined = Joined::default();
        joined.add_page(vec![event.clone(), event.clone()], |_| true);
        joined.add_page(vec![event.clone()], |_| true);
        joined.confirm(&[event.digest, event.digest, event.digest].into_iter().collect());
        assert_eq!(counts(&mut joined), [1]);
    }
}
