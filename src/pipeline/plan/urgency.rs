//! The time left until events are lost. Pure.

use std::time::Duration;

use crate::archive::{ReadPoint, StreamRecord, TeamState};
use crate::model::{Instant, Stream};

use crate::pipeline::plan::coverage::reached;
use crate::pipeline::plan::read_to;
use crate::pipeline::settings::BACKFILL_DAYS_DEFAULT;

/// A task with less time left runs before all others.
const PRESSING: Duration = Duration::from_secs(86_400);
/// The assumed span of the service if it is unknown. It only orders tasks, and is never shown.
pub const SPAN_ASSUMED: Duration = Duration::from_secs(BACKFILL_DAYS_DEFAULT * 86_400);
/// A high rate of billing entries makes polls no more frequent than this.
pub const BILLING_WITHIN_MIN: Duration = Duration::from_secs(15);
/// Fewer entries give no rate.
const PACE_ENTRIES_MIN: u32 = 3;
const ENTRIES_SHOWN: u32 = 10;

/// The last reading of a stream in this process, committed or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastReading {
    /// The read point of the last successful reading.
    pub point: Option<ReadPoint>,
    /// The times of the billing entries shown, newest first. Only billing uses them.
    pub entries: Vec<Instant>,
}

/// The time at which a task's next events are lost, and how long the service keeps events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Urgency {
    /// `None`: the stream was never read.
    pub loss_at: Option<Instant>,
    /// The plan's span, or the time of ten billing entries; `None` if it is unknown.
    pub span: Option<Duration>,
}

/// The order of tasks: the smaller value runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Seconds left.
    Pressing(u64),
    /// Time left, in millionths of the span: a team with a long span does not wait until its task is urgent.
    Share(u64),
}

impl Urgency {
    /// A stream that was never read runs before every task that is not urgent.
    pub fn rank(&self, now: Instant) -> Rank {
        let Some(loss_at) = self.loss_at else { return Rank::Share(0) };
        let (left, span) = (loss_at.since(now), self.span.unwrap_or(SPAN_ASSUMED));
        if left <= PRESSING.min(span / 2) {
            return Rank::Pressing(left.as_secs());
        }
        let share = left.as_nanos().saturating_mul(1_000_000) / span.as_nanos().max(1);
        Rank::Share(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// The urgency of reading a stream.
    pub fn of(state: &TeamState, stream: Stream, known: &LastReading, now: Instant) -> Self {
        let record = state.streams.get(&stream);
        let (read, span) = match stream {
            Stream::Billing => {
                let read = record.and_then(|record| read_to(record, known.point));
                (read, read.and_then(|read| time_for_ten(state, known, read)))
            }
            Stream::Connections | Stream::Activity => {
                (reached(state, stream, known.point, now), record.and_then(StreamRecord::plan_span))
            }
        };
        Self { loss_at: read.map(|read| read.plus(span.unwrap_or(SPAN_ASSUMED))), span }
    }

    /// The time left, if the service's span or the rate of billing is known.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        self.loss_at.filter(|_| self.span.is_some()).map(|at| at.since(now))
    }

    /// The time within which billing must be polled again: before half of the ten entries can be new.
    pub fn billing_within(&self) -> Option<Duration> {
        self.span.map(|ten| (ten / 2).max(BILLING_WITHIN_MIN))
    }
}

/// The time of ten billing entries at the highest rate of the last ten, as of `read`.
fn time_for_ten(state: &TeamState, known: &LastReading, read: Instant) -> Option<Duration> {
    if !known.entries.is_empty() {
        return pace(known.entries.iter().zip(1..).map(|(at, count)| (count, *at)), read);
    }
    let windows = state.windows.values().rev().filter(|window| window.stream == Stream::Billing && window.events > 0);
    let mut held = 0;
    let counts = windows.map_while(|window| {
        let before = held;
        held += window.events;
        // Only the start and the number of entries of a window are known.
        (before < u64::from(ENTRIES_SHOWN)).then_some((u32::try_from(held).unwrap_or(u32::MAX), window.range.start))
    });
    pace(counts, read)
}

/// `counts`: numbers of entries since each instant. One or two entries give no rate.
fn pace(counts: impl Iterator<Item = (u32, Instant)>, read: Instant) -> Option<Duration> {
    let telling = counts.filter(|(count, _)| *count >= PACE_ENTRIES_MIN);
    telling.map(|(count, since)| read.since(since) / count * ENTRIES_SHOWN).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urgency(left: u64, span: u64) -> (Urgency, Instant) {
        let now = Instant::from_seconds(1_800_000_000);
        let loss_at = Some(now.plus(Duration::from_secs(left)));
        (Urgency { loss_at, span: Some(Duration::from_secs(span)) }, now)
    }

    #[test]
    fn urgent_tasks_run_first_and_then_those_that_used_more_of_their_time() {
        const DAY: u64 = 86_400;
        let order = [
            ("an hour left of a week", 3_600, 7 * DAY),
            ("half a day left of ninety", DAY / 2, 90 * DAY),
            ("two days left of a week", 2 * DAY, 7 * DAY),
            ("half of ninety days", 45 * DAY, 90 * DAY),
            ("a minute behind, of a week", 7 * DAY - 60, 7 * DAY),
            ("a minute behind, of ninety days", 90 * DAY - 60, 90 * DAY),
        ];
        let ranks: Vec<Rank> =
            order.iter().map(|(_, left, span)| urgency(*left, *span)).map(|(u, now)| u.rank(now)).collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert!(Urgency::default().rank(Instant::from_seconds(0)) > ranks[1]);
        assert!(Urgency::default().rank(Instant::from_seconds(0)) < ranks[2]);
    }

    #[test]
    fn a_short_span_is_urgent_only_after_half_of_it() {
        let (just_read, now) = urgency(3_590, 3_600);
        assert!(matches!(just_read.rank(now), Rank::Share(_)));
    }

    #[test]
    fn billing_is_polled_before_half_of_its_ten_entries_can_be_new() {
        let read = Instant::from_seconds(1_800_000_000);
        let within = |ages: &[u64]| {
            let mut state = TeamState::genesis("a", crate::model::TeamId::from("t"));
            let point = ReadPoint { at: read, read_to: read, listed_at: None };
            let record = StreamRecord { read_points: vec![point], ..Default::default() };
            state.streams.insert(Stream::Billing, record);
            let entries = ages.iter().map(|age| read.minus(Duration::from_secs(*age))).collect();
            let urgency = Urgency::of(&state, Stream::Billing, &LastReading { point: None, entries }, read);
            urgency.billing_within().map(|within| within.as_secs())
        };
        const DAY: u64 = 86_400;
        assert_eq!(within(&[]), None);
        assert_eq!(within(&[5, 9]), None, "two entries give no rate");
        assert_eq!(within(&[30 * DAY, 60 * DAY, 90 * DAY]), Some(150 * DAY));
        let burst: Vec<u64> = (1..=9).map(|n| n * 60).chain([40 * DAY]).collect();
        assert_eq!(within(&burst), Some(300), "nine in nine minutes: five may be new after five");
        assert_eq!(within(&[1; 10]), Some(BILLING_WITHIN_MIN.as_secs()));
    }
}
