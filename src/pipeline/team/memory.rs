//! The state of a team that only this process has: readings without new events, which were not committed, and answers
//! that stay valid for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::archive::ReadPoint;
use crate::clock::Clock;
use crate::collect::PageLimit;
use crate::config::Cron;
use crate::model::{Instant, Range, Stream};

use crate::pipeline::plan::{LastReading, RangeBackoff};
use crate::pipeline::team::service_clock::ServiceClock;

/// The interval at which the team's view is read again: the plan's span changes seldom.
const VIEW_AGE_MAX: Duration = Duration::from_secs(3600);
/// The interval at which events dated into the future are read.
const LOOK_AHEAD_EVERY: Duration = Duration::from_secs(900);
/// Read points of one stream that are kept: some hours, if connections are read every minute.
const POINTS_MAX: usize = 256;
/// The interval at which the computers are listed while activity reports their changes.
const LIST_EVERY: Duration = Duration::from_secs(3600);
/// The interval at which the team's files are vacuumed: a vacuum that removes files reads the whole ledger.
const VACUUM_EVERY: Duration = Duration::from_secs(24 * 3600);
/// If activity is no older than this, it has reported every relevant removal.
const ACTIVITY_AGE_MAX: Duration = Duration::from_secs(900);

/// One team's state in this process. `sync` begins with an empty one; the daemon keeps it from run to run.
pub struct TeamMemory {
    pub service: ServiceClock,
    pub limits: [PageLimit; 3],
    clock: Arc<dyn Clock>,
    state: Mutex<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    view: Option<PlanView>,
    streams: [StreamMemory; 3],
    /// The times of the billing entries shown, newest first.
    billing: Vec<Instant>,
    listed: Option<ListedComputers>,
    /// A computer disappeared without an activity event.
    is_activity_silent: bool,
    vacuumed: Option<Duration>,
    expired: Option<Instant>,
    held_back: Vec<String>,
}

#[derive(Default)]
struct StreamMemory {
    /// The read points, oldest first.
    points: VecDeque<ReadPoint>,
    looked_ahead: Option<Duration>,
    backoff: RangeBackoff,
}

#[derive(Clone, Copy)]
struct PlanView {
    plan_span: Option<Duration>,
    /// The same moment by both clocks: the monotonic clock stops while the machine sleeps, and the machine's clock may jump.
    now: Instant,
    monotonic: Duration,
}

/// The last list of the computers.
#[derive(Clone, Copy)]
struct ListedComputers {
    /// By the service's clock.
    at: Instant,
    monotonic: Duration,
    /// How many computers the archive knew after it: listed ones, and all ever seen.
    known: (usize, usize),
}

impl TeamMemory {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            service: ServiceClock::new(clock.clone()),
            limits: [PageLimit::documented(), PageLimit::documented(), PageLimit::documented()],
            clock,
            state: Mutex::default(),
        }
    }

    /// The plan's span, if it was read recently.
    pub fn plan_span(&self) -> Option<Option<Duration>> {
        let view = self.state.lock().view?;
        let aged = self.clock.monotonic().saturating_sub(view.monotonic).max(self.clock.now().since(view.now));
        let is_set_back = self.clock.now() < view.now;
        (aged <= VIEW_AGE_MAX && !is_set_back).then_some(view.plan_span)
    }

    pub fn note_view(&self, plan_span: Option<Duration>) {
        let view = PlanView { plan_span, now: self.clock.now(), monotonic: self.clock.monotonic() };
        self.state.lock().view = Some(view);
    }

    /// Keeps the read point of a successful reading, committed or not.
    pub fn note_point(&self, stream: Stream, point: ReadPoint) {
        let points = &mut self.stream(stream).points;
        if points.back().is_some_and(|last| point.read_to <= last.read_to) {
            return;
        }
        points.push_back(point);
        if points.len() > POINTS_MAX {
            points.pop_front();
        }
    }

    fn stream(&self, stream: Stream) -> MappedMutexGuard<'_, StreamMemory> {
        MutexGuard::map(self.state.lock(), |state| &mut state.streams[stream as usize])
    }

    /// The kept read points of a stream, oldest first.
    pub fn points(&self, stream: Stream) -> Vec<ReadPoint> {
        self.stream(stream).points.iter().copied().collect()
    }

    pub fn last_point(&self, stream: Stream) -> Option<ReadPoint> {
        self.stream(stream).points.back().copied()
    }

    /// The state of a stream that the archive does not hold.
    pub fn known(&self, stream: Stream) -> LastReading {
        LastReading { point: self.last_point(stream), entries: self.state.lock().billing.clone() }
    }

    /// Keeps the times of the billing entries shown.
    pub fn note_billing(&self, mut entries: Vec<Instant>) {
        entries.sort_unstable_by(|a, b| b.cmp(a));
        self.state.lock().billing = entries;
    }

    /// The time of the last list of computers, if a new list would be the same: activity was read lately and reports every
    /// change, and the archive knows the same computers as after that list.
    pub fn listed_at(&self, known: (usize, usize)) -> Option<Instant> {
        let (state, now) = (self.state.lock(), self.service.now());
        let listed = state.listed.filter(|listed| listed.known == known && !state.is_activity_silent)?;
        let activity = state.streams[Stream::Activity as usize].points.back()?;
        let is_fresh = self.clock.monotonic().saturating_sub(listed.monotonic) < LIST_EVERY
            && now.since(listed.at) < LIST_EVERY
            && now.since(activity.at) <= ACTIVITY_AGE_MAX;
        is_fresh.then_some(listed.at)
    }

    pub fn note_list(&self, at: Instant, known: (usize, usize)) {
        self.state.lock().listed = Some(ListedComputers { at, monotonic: self.clock.monotonic(), known });
    }

    /// A computer disappeared without an activity event: from now on only lists show removals.
    pub fn note_silent_removal(&self) {
        self.state.lock().is_activity_silent = true;
    }

    /// A range was unstable. It is paused.
    pub fn note_unstable(&self, stream: Stream, range: Range) {
        let now = self.clock.monotonic();
        self.stream(stream).backoff.note(range, now);
    }

    /// A range was stable.
    pub fn note_stable(&self, stream: Stream, range: Range) {
        self.stream(stream).backoff.forget(range);
    }

    /// The unstable ranges that may not be read now.
    pub fn paused(&self, stream: Stream) -> Vec<Range> {
        let now = self.clock.monotonic();
        self.stream(stream).backoff.paused(now)
    }

    /// Whether it is time to read events with future dates. The caller reads them now.
    pub fn is_look_ahead_due(&self, stream: Stream) -> bool {
        let now = self.clock.monotonic();
        is_due(&mut self.stream(stream).looked_ahead, now, LOOK_AHEAD_EVERY)
    }

    /// Whether the schedule was due since the last expiry of this process. The caller expires months now.
    pub fn is_expiry_due(&self, schedule: &Cron, now: Instant) -> bool {
        let mut state = self.state.lock();
        let is_due = state.expired.as_mut().is_none_or(|at| schedule.next_since(at, now).is_some_and(|due| due <= now));
        if is_due {
            state.expired = Some(now);
        }
        is_due
    }

    /// Notes the rows past the retention of their class that a hold keeps: a sentence each.
    pub fn note_held_back(&self, held_back: Vec<String>) {
        self.state.lock().held_back = held_back;
    }

    pub fn held_back(&self) -> Vec<String> {
        self.state.lock().held_back.clone()
    }

    /// Whether it is time to vacuum the team's files. The caller does so now.
    pub fn is_vacuum_due(&self) -> bool {
        let now = self.clock.monotonic();
        is_due(&mut self.state.lock().vacuumed, now, VACUUM_EVERY)
    }
}

fn is_due(last: &mut Option<Duration>, now: Duration, every: Duration) -> bool {
    let is_due = last.is_none_or(|last| now.saturating_sub(last) >= every);
    *last = if is_due { Some(now) } else { *last };
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn months_expire_on_schedule_after_the_clock_was_set_back() {
        let memory = TeamMemory::new(Arc::new(SystemClock::new()));
        let daily: Cron = "0 3 * * *".parse().unwrap();
        for (now, expected) in [
            ("2036-11-20T12:00:00Z", true),
            ("2036-11-20T13:00:00Z", false),
            ("2026-11-20T12:00:00Z", false),
            ("2026-11-21T03:00:00Z", true),
            ("2026-11-21T03:01:00Z", false),
        ] {
            assert_eq!(memory.is_expiry_due(&daily, now.parse().unwrap()), expected, "{now}");
        }
    }
}
