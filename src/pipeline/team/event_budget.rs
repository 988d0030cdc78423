//! The limit of uncommitted events of all teams of a process.
//!
//! A reading reserves a permit before it begins. The permit moves with the events into the team's batch, and is free at
//! the end of their commit. Readings without room wait in a queue. While any reading waits, every team commits all its
//! events, so no team waits for another waiting team.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pipeline::settings::{HELD_EVENTS_MAX, READ_EVENTS_MAX, RESCAN_EVENTS_MAX, Settings};

/// The budget has room for at least this number of readings.
const READINGS_AT_ONCE_MIN: usize = 6;

/// Room for events, until it is dropped.
pub type Permit = OwnedSemaphorePermit;

/// The events that all teams of a process may hold together.
pub struct EventBudget {
    free: Arc<Semaphore>,
    /// Each reading that waits for room holds a copy.
    waiting: Arc<()>,
    /// Only one team at a time makes deferred sessions: they take about as much memory as its events.
    session_permits: Arc<Semaphore>,
}

impl EventBudget {
    /// Room for this number of events. A single reading always has room.
    pub fn new(events_max: usize) -> Arc<Self> {
        let events_max = events_max.clamp(RESCAN_EVENTS_MAX, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let (free, session_permits) = (Arc::new(Semaphore::new(events_max)), Arc::new(Semaphore::new(1)));
        Arc::new(Self { free, waiting: Arc::default(), session_permits })
    }

    /// Room for all readings of one team, for its batch, and for a commit of the same size.
    pub fn of(settings: &Settings) -> Arc<Self> {
        let readings = READINGS_AT_ONCE_MIN.max(settings.concurrency.saturating_mul(3) / 2);
        Self::new(readings.saturating_mul(READ_EVENTS_MAX).saturating_add(2 * HELD_EVENTS_MAX))
    }

    /// Whether a reading waits for room.
    pub fn is_contended(&self) -> bool {
        Arc::strong_count(&self.waiting) > 1
    }

    /// A reading waits until the result is dropped.
    #[must_use]
    pub fn waits(&self) -> Arc<()> {
        self.waiting.clone()
    }

    pub fn try_reserve(&self, events: usize) -> Option<Permit> {
        self.free.clone().try_acquire_many_owned(permits(events)).ok()
    }

    pub async fn reserve(&self, events: usize) -> Permit {
        let permit = self.free.clone().acquire_many_owned(permits(events)).await;
        permit.expect("BUG: the semaphore is never closed")
    }

    /// The permit to make sessions, if it is free.
    pub fn try_session_permit(&self) -> Option<Permit> {
        self.session_permits.clone().try_acquire_owned().ok()
    }

    /// The permit to make sessions.
    pub async fn session_permit(&self) -> Permit {
        self.session_permits.clone().acquire_owned().await.expect("BUG: the semaphore is never closed")
    }
}

fn permits(events: usize) -> u32 {
    u32::try_from(events).expect("BUG: a reading brings few events")
}

/// Splits off everything except the room of `stay` events.
pub fn split_off(permit: &mut Permit, stay: usize) -> Option<Permit> {
    permit.split(permit.num_permits().saturating_sub(stay))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn readings_get_room_in_the_order_of_their_requests() {
        let budget = EventBudget::new(2 * READ_EVENTS_MAX);
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

    #[test]
    fn room_moves_with_the_events_and_is_free_after_their_commit() {
        let budget = EventBudget::new(2 * READ_EVENTS_MAX);
        let taken = || 2 * READ_EVENTS_MAX - budget.free.available_permits();
        let mut read = budget.try_reserve(READ_EVENTS_MAX).unwrap();
        drop(split_off(&mut read, 1_000));
        assert_eq!(taken(), 1_000, "the unused room of a reading is free");
        let mut waiting = budget.try_reserve(0).unwrap();
        waiting.merge(read);
        assert!(split_off(&mut waiting, 1_200).is_none_or(|none| none.num_permits() == 0), "some came without room");
        let leaving = split_off(&mut waiting, 300);
        assert_eq!(taken(), 1_000);
        drop(leaving);
        assert_eq!(taken(), 300);
        drop(waiting);
        assert_eq!(taken(), 0);
    }

    #[test]
    fn an_empty_permit_needs_no_room() {
        let budget = EventBudget::new(0);
        let all = budget.try_reserve(RESCAN_EVENTS_MAX).unwrap();
        assert_eq!(
            (budget.try_reserve(0).map(|none| none.num_permits()), budget.try_reserve(1).is_none()),
            (Some(0), true)
        );
        drop(all);
    }
}
