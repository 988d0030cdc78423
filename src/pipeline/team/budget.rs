//! The limit of uncommitted events of all teams of a process.
//!
//! A reading reserves a permit before it begins. The permit goes with the events into the team's batch, and is free when their
//! commit has ended. Readings without room wait in a queue. A team that waits commits all that it holds, so no team waits for
//! another team that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pipeline::settings::{HELD_EVENTS_MAX, READ_EVENTS_MAX, RESCAN_EVENTS_MAX, Settings};

/// There is room for so many readings at least.
const READINGS_AT_ONCE_MIN: usize = 6;

/// The events that all teams of a process may hold together.
pub struct Budget {
    free: Arc<Semaphore>,
    events_max: usize,
    /// Readings that wait for room.
    waiting: AtomicUsize,
    held: AtomicUsize,
    most_held: AtomicUsize,
    /// One team at a time makes deferred sessions: they take about as much memory as its events.
    making: Arc<Semaphore>,
}

impl Budget {
    /// Room for so many events. A single reading has room in any case.
    pub fn new(events_max: usize) -> Arc<Self> {
        let events_max = events_max.clamp(RESCAN_EVENTS_MAX, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Arc::new(Self {
            free: Arc::new(Semaphore::new(events_max)),
            events_max,
            waiting: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            most_held: AtomicUsize::new(0),
            making: Arc::new(Semaphore::new(1)),
        })
    }

    /// Room for all readings of one team, for its batch, and for a commit of the same size.
    pub fn of(settings: &Settings) -> Arc<Self> {
        let readings = READINGS_AT_ONCE_MIN.max(settings.concurrency.saturating_mul(3) / 2);
        Self::new(readings.saturating_mul(READ_EVENTS_MAX).saturating_add(2 * HELD_EVENTS_MAX))
    }

    /// The most events that were held at once.
    pub fn most_held(&self) -> usize {
        self.most_held.load(Ordering::Relaxed)
    }

    /// Whether all room is free.
    pub fn is_free(&self) -> bool {
        self.free.available_permits() == self.events_max && self.held.load(Ordering::Relaxed) == 0
    }

    /// Whether a reading waits for room.
    pub fn is_contended(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Counts a waiting reading until the guard is dropped.
    pub fn waits(&self) -> Waits<'_> {
        Waits::among(&self.waiting)
    }

    /// A permit for no events.
    pub fn nothing(self: &Arc<Self>) -> Permit {
        Permit { budget: self.clone(), permit: None, held: 0 }
    }

    pub fn try_reserve(self: &Arc<Self>, events: usize) -> Option<Permit> {
        let permit = self.free.clone().try_acquire_many_owned(permits(events)).ok()?;
        Some(Permit { budget: self.clone(), permit: Some(permit), held: 0 })
    }

    pub async fn reserve(self: &Arc<Self>, events: usize) -> Permit {
        let permit = self.free.clone().acquire_many_owned(permits(events)).await;
        let permit = Some(permit.expect("BUG: the semaphore is never closed"));
        Permit { budget: self.clone(), permit, held: 0 }
    }

    /// The turn to make sessions, if it is free.
    pub fn try_turn(&self) -> Option<OwnedSemaphorePermit> {
        self.making.clone().try_acquire_owned().ok()
    }

    /// The turn to make sessions.
    pub async fn turn(&self) -> OwnedSemaphorePermit {
        self.making.clone().acquire_owned().await.expect("BUG: the semaphore is never closed")
    }
}

fn permits(events: usize) -> u32 {
    u32::try_from(events).expect("BUG: a reading brings few events")
}

/// Room for events, until it is dropped.
pub struct Permit {
    budget: Arc<Budget>,
    permit: Option<OwnedSemaphorePermit>,
    /// The events that use it.
    held: usize,
}

impl Permit {
    /// Sets how many events use the permit. With `is_all` the rest of the room is free.
    pub fn hold(&mut self, events: usize, is_all: bool) {
        // One step: two steps would count the old and the new events together.
        let (held, most) = (&self.budget.held, &self.budget.most_held);
        if let Some(more) = events.checked_sub(self.held) {
            most.fetch_max(held.fetch_add(more, Ordering::Relaxed) + more, Ordering::Relaxed);
        } else {
            held.fetch_sub(self.held - events, Ordering::Relaxed);
        }
        self.held = events;
        if is_all {
            drop(self.beyond(events));
        }
    }

    /// Takes over another permit and its events.
    pub fn merge(&mut self, mut other: Self) {
        self.held += std::mem::take(&mut other.held);
        self.permit = match (self.permit.take(), other.permit.take()) {
            (Some(mut own), Some(others)) => {
                own.merge(others);
                Some(own)
            }
            (own, others) => own.or(others),
        };
    }

    /// Splits off all but the room of `stay` events.
    pub fn split_off(&mut self, stay: usize) -> Self {
        let permit = self.beyond(stay);
        let held = self.held.saturating_sub(stay);
        self.held -= held;
        Self { budget: self.budget.clone(), permit, held }
    }

    fn beyond(&mut self, events: usize) -> Option<OwnedSemaphorePermit> {
        let permit = self.permit.as_mut()?;
        let more = permit.num_permits().saturating_sub(events);
        permit.split(more)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// Counts a waiting reading.
pub struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    pub fn among(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn room_is_given_in_the_order_in_which_it_was_asked_for() {
        let budget = Budget::new(2 * READ_EVENTS_MAX);
        let [first, second] = [(); 2].map(|()| budget.try_reserve(READ_EVENTS_MAX).unwrap());
        let mut third = Box::pin(budget.reserve(READ_EVENTS_MAX));
        let mut fourth = Box::pin(budget.reserve(1));
        assert!((&mut third).now_or_never().is_none() && (&mut fourth).now_or_never().is_none());
        drop(first);
        assert!((&mut fourth).now_or_never().is_none(), "the third came before");
        let third = (&mut third).now_or_never().unwrap();
        drop(second);
        assert!((&mut fourth).now_or_never().is_some());
        assert!(budget.try_reserve(READ_EVENTS_MAX + 1).is_none());
        drop((third, fourth));
        assert!(budget.try_reserve(2 * READ_EVENTS_MAX).is_some());
    }

    /// Two steps would add the new events before they take the old ones away, or the other way round.
    #[test]
    fn a_share_that_changes_is_counted_in_one_step() {
        let budget = Budget::new(READ_EVENTS_MAX);
        let (few, many) = (2_000, 3_000);
        let mut permit = budget.nothing();
        permit.hold(few, false);
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| {
                for _ in 0..20_000 {
                    permit.hold(many, false);
                    permit.hold(few, false);
                }
            });
            while !changing.is_finished() {
                let held = budget.held.load(Ordering::Relaxed);
                assert!([few, many].contains(&held), "{held} events are counted");
            }
        });
        assert_eq!(budget.most_held(), many);
    }

    #[test]
    fn room_goes_with_the_events_and_comes_back_when_they_are_committed() {
        let budget = Budget::new(2 * READ_EVENTS_MAX);
        let held = || budget.held.load(Ordering::Relaxed);
        let free = || budget.free.available_permits();
        let mut read = budget.try_reserve(READ_EVENTS_MAX).unwrap();
        read.hold(1_000, true);
        assert_eq!((held(), free()), (1_000, 2 * READ_EVENTS_MAX - 1_000), "what a reading did not bring is free");
        let mut waiting = budget.nothing();
        waiting.merge(read);
        waiting.hold(1_200, false);
        assert_eq!((held(), free()), (1_200, 2 * READ_EVENTS_MAX - 1_000), "some came without room");
        let leaving = waiting.split_off(300);
        assert_eq!(held(), 1_200);
        drop(leaving);
        assert_eq!((held(), free()), (300, 2 * READ_EVENTS_MAX - 300));
        drop(waiting);
        assert_eq!((held(), free(), budget.most_held()), (0, 2 * READ_EVENTS_MAX, 1_200));
    }
}
