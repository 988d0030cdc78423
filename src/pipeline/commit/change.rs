//! Changes of the records of windows and streams by a reading. Pure: each change is committed with the rows that prove it.

use std::time::Duration;

use crate::archive::{SnapshotEntry, StreamRecord, WalkPoint, WindowRecord, WindowState};
use crate::model::ranges::{missing, union};
use crate::model::{Instant, Range, Stream};
use crate::pipeline::settings::Settings;

/// The change of one window by one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowChange {
    pub stream: Stream,
    pub window: Range,
    pub walks: u32,
    pub requests: u64,
    /// Proved complete by two equal walks that began after the lag, or re-scanned.
    pub confirmed: Option<Range>,
    /// Unstable in every walk.
    pub unstable: Option<Range>,
    /// The end of the last walk over an open window.
    pub walk: Option<WalkPoint>,
    /// The service's clock at the start of the reading.
    pub read_at: Instant,
    /// The service's clock at the end of the reading.
    pub ended_at: Instant,
}

impl WindowChange {
    pub fn new(stream: Stream, window: Range, read_at: Instant) -> Self {
        Self {
            stream,
            window,
            walks: 0,
            requests: 0,
            confirmed: None,
            unstable: None,
            walk: None,
            read_at,
            ended_at: read_at,
        }
    }

    /// The record after this change, with the new rows.
    pub fn apply(&self, held: Option<&WindowRecord>, rows: RowCounts, settings: &Settings) -> WindowRecord {
        let mut record = held.cloned().unwrap_or_else(|| WindowRecord::new(self.stream, self.window));
        record.reads += self.walks;
        record.requests += self.requests;
        rows.add_to(&mut record, settings);
        if record.state == WindowState::Sealed {
            return record;
        }
        if let Some(confirmed) = self.confirmed {
            record.confirmed = union(&record.confirmed, confirmed);
            // An event may appear in a part that was read, so the whole reading counts from its first part.
            record.counts_from = Some(record.counts_from.map_or(self.read_at, |from| from.min(self.read_at)));
        }
        if record.state == WindowState::Provisional {
            self.note_first_reading(&mut record);
        }
        if missing(record.range, &record.confirmed).is_empty() {
            let from = record.counts_from.take().unwrap_or(self.read_at);
            record.rescans = settings.rescans_due(record.range.end, from);
            let is_final = record.rescans >= settings.rescans_wanted();
            record.state = if is_final { WindowState::Sealed } else { WindowState::Settled };
            record.confirmed.clear();
        }
        record
    }

    fn note_first_reading(&self, record: &mut WindowRecord) {
        if let Some(walk) = &self.walk {
            record.walk = Some(walk.clone());
        }
        if self.confirmed.is_some() {
            record.confirmed_at = record.confirmed_at.max(Some(self.ended_at));
        }
        if let Some(unstable) = self.unstable {
            record.unstable = union(&record.unstable, unstable);
        }
        record.unstable = record.unstable.iter().flat_map(|open| missing(*open, &record.confirmed)).collect();
        if missing(record.range, &record.confirmed).is_empty() {
            record.settled_at = Some(self.read_at);
            record.walk = None;
        }
    }
}

/// The numbers of new rows of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub all: u64,
    /// Rows of events that the archive did not hold. The others are revisions.
    pub first_seen: u64,
}

impl RowCounts {
    /// Counts the rows. Rows of a settled window are a change.
    pub fn add_to(self, record: &mut WindowRecord, settings: &Settings) {
        record.events += self.all;
        if record.state == WindowState::Provisional {
            return;
        }
        record.late += self.first_seen;
        if let Some(last) = settings.rescan.last().filter(|_| self.all > 0 && record.state == WindowState::Settled) {
            // A change on the last re-scan needs one more re-scan before the window is final.
            let before_last = record.range.end.plus(*last).minus(Duration::from_nanos(1));
            record.counts_from = Some(record.counts_from.map_or(before_last, |from| from.min(before_last)));
        }
    }
}

/// The change of a stream's record by a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamChange {
    pub begins: Option<Instant>,
    pub snapshot: Option<Vec<SnapshotEntry>>,
    pub plan_span: Option<Duration>,
}

impl StreamChange {
    pub fn apply(&self, record: &mut StreamRecord) {
        record.begins = self.begins.or(record.begins);
        record.plan_span_seconds = self.plan_span.map(|span| span.as_secs()).or(record.plan_span_seconds);
        if let Some(snapshot) = &self.snapshot {
            record.snapshot = snapshot.clone();
        }
    }
}

/// Whether a window's record has news, apart from the counts of its readings.
pub fn has_news(record: &WindowRecord, before: Option<&WindowRecord>) -> bool {
    let held = before.cloned().unwrap_or_else(|| WindowRecord::new(record.stream, record.range));
    let counts = (record.reads, record.requests, record.events, record.without_text);
    let (reads, requests, events, without_text) = counts;
    *record != WindowRecord { reads, requests, events, without_text, ..held }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    fn change(read_at: &str) -> WindowChange {
        let window = Settings::default().grid.window_of(at("2026-11-10T00:00:00Z"));
        WindowChange::new(Stream::Activity, window, at(read_at))
    }

    const NONE: RowCounts = RowCounts { all: 0, first_seen: 0 };

    fn rows(first_seen: u64) -> RowCounts {
        RowCounts { all: first_seen, first_seen }
    }

    #[test]
    fn a_window_settles_when_its_parts_are_confirmed() {
        let settings = Settings::default();
        let mut left = change("2026-11-11T00:20:00Z");
        let (first, second) = left.window.halves().unwrap();
        left.confirmed = Some(first);
        let record = left.apply(None, rows(3), &settings);
        assert_eq!((record.state, record.events), (WindowState::Provisional, 3));
        let right = WindowChange { confirmed: Some(second), ..left };
        let record = right.apply(Some(&record), NONE, &settings);
        assert_eq!((record.state, record.rescans, record.confirmed.len()), (WindowState::Settled, 0, 0));
    }

    /// The change by a reading of the whole window.
    fn whole(read_at: &str) -> WindowChange {
        let change = change(read_at);
        WindowChange { confirmed: Some(change.window), ..change }
    }

    #[test]
    fn a_window_older_than_the_last_re_scan_is_sealed_at_once() {
        let old = whole("2026-11-20T00:00:00Z");
        assert_eq!(old.apply(None, NONE, &Settings::default()).state, WindowState::Sealed);
    }

    #[test]
    fn a_re_scan_without_changes_seals_the_window_and_a_change_delays_the_seal() {
        let settings = Settings::default();
        let settled = whole("2026-11-11T00:20:00Z").apply(None, rows(5), &settings);
        let once = whole("2026-11-11T01:30:00Z").apply(Some(&settled), NONE, &settings);
        assert_eq!((once.state, once.rescans), (WindowState::Settled, 1));
        let last = whole("2026-11-14T01:00:00Z");
        for (changed, late) in [(rows(2), 2), (RowCounts { all: 2, first_seen: 0 }, 0)] {
            let found = last.apply(Some(&once), changed, &settings);
            assert_eq!((found.state, found.rescans, found.late, found.events), (WindowState::Settled, 2, late, 7));
            let quiet = whole("2026-11-14T02:00:00Z").apply(Some(&found), NONE, &settings);
            assert_eq!(quiet.state, WindowState::Sealed);
            assert_eq!((quiet.confirmed.len(), quiet.counts_from), (0, None));
        }
        let (first, second) = last.window.halves().unwrap();
        let first_part = WindowChange { confirmed: Some(first), ..last.clone() }.apply(Some(&once), rows(2), &settings);
        assert_eq!((first_part.state, first_part.rescans), (WindowState::Settled, 1));
        let last_part = WindowChange { confirmed: Some(second), ..last }.apply(Some(&first_part), NONE, &settings);
        assert_eq!(last_part.state, WindowState::Settled, "another part of the same re-scan had changed");
    }

    #[test]
    fn a_re_scan_over_several_rounds_counts_from_its_first_part() {
        let settings = Settings::default();
        let settled = whole("2026-11-11T00:20:00Z").apply(None, rows(5), &settings);
        let part = |part, read_at| WindowChange { confirmed: Some(part), ..change(read_at) };
        let (first, second) = settled.range.halves().unwrap();
        let early = part(first, "2026-11-11T01:30:00Z").apply(Some(&settled), NONE, &settings);
        assert_eq!((early.state, early.rescans, early.confirmed.clone()), (WindowState::Settled, 0, vec![first]));
        let record = part(second, "2026-11-20T00:00:00Z").apply(Some(&early), NONE, &settings);
        assert_eq!((record.state, record.rescans, record.confirmed.len()), (WindowState::Settled, 1, 0));
        assert_eq!((record.settled_at, record.confirmed_at), (settled.settled_at, settled.confirmed_at));
        assert!(settings.is_rescan_due(&record, at("2026-11-20T00:00:00Z")));
    }

    #[test]
    fn a_window_confirmed_over_several_rounds_is_read_once_more_before_it_is_final() {
        let settings = Settings::default();
        let early = change("2026-11-11T00:20:00Z");
        let (first, second) = early.window.halves().unwrap();
        let held = WindowChange { confirmed: Some(first), ..early }.apply(None, NONE, &settings);
        let late = WindowChange { confirmed: Some(second), ..change("2026-11-20T00:00:00Z") };
        let record = late.apply(Some(&held), NONE, &settings);
        assert_eq!((record.state, record.rescans), (WindowState::Settled, 0));
    }

    #[test]
    fn an_unstable_second_stays_open_until_it_is_confirmed() {
        let settings = Settings::default();
        let mut moving = change("2026-11-11T00:20:00Z");
        let second = Range::new(moving.window.start, at("2026-11-10T00:00:01Z"));
        moving.confirmed = Some(Range::new(second.end, moving.window.end));
        moving.unstable = Some(second);
        let record = moving.apply(None, NONE, &settings);
        assert_eq!((record.state, record.unstable.clone()), (WindowState::Provisional, vec![second]));
        let mut calm = change("2026-11-11T01:20:00Z");
        calm.confirmed = Some(second);
        let record = calm.apply(Some(&record), NONE, &settings);
        assert_eq!((record.state, record.unstable.len()), (WindowState::Settled, 0));
        // An unstable range may become stable in parts.
        let (left, right) = moving.window.halves().unwrap();
        let mut record = WindowChange { unstable: Some(moving.window), confirmed: None, ..moving.clone() }
            .apply(None, NONE, &settings);
        for part in [left, right] {
            assert!(!record.unstable.is_empty());
            let calm = WindowChange { unstable: None, confirmed: Some(part), ..moving.clone() };
            record = calm.apply(Some(&record), NONE, &settings);
        }
        assert_eq!((record.state, record.unstable.len()), (WindowState::Settled, 0));
    }
}
