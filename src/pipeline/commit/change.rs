//! Changes of the records of windows and streams by a reading. Pure: each change is committed with the rows that prove it.

use crate::archive::{ReadPoint, SnapshotEntry, StreamRecord, WalkPoint, WindowRecord, WindowState};
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
    /// Proved complete by two equal walks that began after the lag.
    pub confirmed: Option<Range>,
    /// Unstable in every walk.
    pub unstable: Option<Range>,
    /// The end of the last walk over an open window.
    pub walk: Option<WalkPoint>,
    /// The whole window was re-scanned.
    pub rescanned: bool,
    /// Late events of the window at the start of the round. If there are more now, the re-scan found a change.
    pub late_before: u64,
    /// Parts of the window were confirmed in an earlier round.
    pub is_resumed: bool,
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
            rescanned: false,
            late_before: 0,
            is_resumed: false,
            read_at,
            ended_at: read_at,
        }
    }

    /// The record after this change, with `rows` new rows.
    pub fn apply(&self, held: Option<&WindowRecord>, rows: u64, settings: &Settings) -> WindowRecord {
        let mut record = held.cloned().unwrap_or_else(|| WindowRecord::new(self.stream, self.window));
        record.reads += self.walks;
        record.requests += self.requests;
        record.events += rows;
        if record.state == WindowState::Provisional {
            self.advance(&mut record, settings);
        } else {
            record.late += rows;
            if self.rescanned && record.state == WindowState::Settled {
                let passed = settings.tiers_passed(record.range.end, self.read_at);
                // A change on the last re-scan needs one more re-scan before the window is final.
                let has_changed = record.late > self.late_before;
                record.rescans = if has_changed { without_the_last(passed, settings) } else { passed };
                if record.rescans >= settings.tiers() {
                    record.state = WindowState::Sealed;
                }
            }
        }
        record
    }

    fn advance(&self, record: &mut WindowRecord, settings: &Settings) {
        if let Some(walk) = &self.walk {
            record.walk = Some(walk.clone());
        }
        if let Some(confirmed) = self.confirmed {
            record.confirmed = union(&record.confirmed, confirmed);
            record.confirmed_at = record.confirmed_at.max(Some(self.ended_at));
        }
        if let Some(unstable) = self.unstable {
            record.unstable = union(&record.unstable, unstable);
        }
        record.unstable = record.unstable.iter().flat_map(|open| missing(*open, &record.confirmed)).collect();
        if missing(record.range, &record.confirmed).is_empty() {
            let passed = settings.tiers_passed(record.range.end, self.read_at);
            // Parts confirmed long ago may have late events by now, so the window is read once more before it is final.
            record.rescans = if self.is_resumed { without_the_last(passed, settings) } else { passed };
            let is_final = record.rescans >= settings.tiers();
            record.state = if is_final { WindowState::Sealed } else { WindowState::Settled };
            record.settled_at = Some(self.read_at);
            record.confirmed.clear();
            record.walk = None;
        }
    }
}

/// The number of re-scans done, without the last one.
fn without_the_last(passed: u32, settings: &Settings) -> u32 {
    passed.min(settings.tiers().saturating_sub(1))
}

/// The change of a stream's record by a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamChange {
    pub begins: Option<Instant>,
    pub read_points: Vec<ReadPoint>,
    pub snapshot: Option<Vec<SnapshotEntry>>,
    pub plan_span_seconds: Option<u64>,
}

impl StreamChange {
    /// Changes the record, without its read points: a commit writes these separately, so it need not write the record again.
    pub fn apply(&self, record: &mut StreamRecord) {
        record.begins = self.begins.or(record.begins);
        record.plan_span_seconds = self.plan_span_seconds.or(record.plan_span_seconds);
        if let Some(snapshot) = &self.snapshot {
            record.snapshot = snapshot.clone();
        }
    }

    pub fn join(&mut self, later: StreamChange) {
        self.begins = later.begins.or(self.begins);
        self.plan_span_seconds = later.plan_span_seconds.or(self.plan_span_seconds);
        self.snapshot = later.snapshot.or(self.snapshot.take());
        self.read_points.extend(later.read_points);
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

    #[test]
    fn a_window_settles_when_its_parts_are_confirmed() {
        let settings = Settings::default();
        let mut left = change("2026-11-11T00:20:00Z");
        let (first, second) = left.window.halves().unwrap();
        left.confirmed = Some(first);
        let record = left.apply(None, 3, &settings);
        assert_eq!((record.state, record.events), (WindowState::Provisional, 3));
        let right = WindowChange { confirmed: Some(second), ..left };
        let record = right.apply(Some(&record), 0, &settings);
        assert_eq!((record.state, record.rescans, record.confirmed.len()), (WindowState::Settled, 0, 0));
    }

    #[test]
    fn a_window_older_than_the_last_re_scan_is_sealed_at_once() {
        let mut old = change("2026-11-20T00:00:00Z");
        old.confirmed = Some(old.window);
        assert_eq!(old.apply(None, 0, &Settings::default()).state, WindowState::Sealed);
    }

    #[test]
    fn a_re_scan_without_changes_seals_the_window_and_a_change_delays_the_seal() {
        let settings = Settings::default();
        let mut settle = change("2026-11-11T00:20:00Z");
        settle.confirmed = Some(settle.window);
        let settled = settle.apply(None, 5, &settings);
        let rescan =
            |read_at, held: &WindowRecord| WindowChange { rescanned: true, late_before: held.late, ..change(read_at) };
        let once = rescan("2026-11-11T01:30:00Z", &settled).apply(Some(&settled), 0, &settings);
        assert_eq!((once.state, once.rescans), (WindowState::Settled, 1));
        let last = rescan("2026-11-14T01:00:00Z", &once);
        let late = last.apply(Some(&once), 2, &settings);
        assert_eq!((late.state, late.rescans, late.late, late.events), (WindowState::Settled, 2, 2, 7));
        let quiet = rescan("2026-11-14T02:00:00Z", &late).apply(Some(&late), 0, &settings);
        assert_eq!(quiet.state, WindowState::Sealed);
        let first_part = WindowChange { rescanned: false, ..last.clone() }.apply(Some(&once), 2, &settings);
        let last_part = last.apply(Some(&first_part), 0, &settings);
        assert_eq!(last_part.state, WindowState::Settled, "another part of the same re-scan had changed");
    }

    #[test]
    fn a_window_confirmed_over_several_rounds_is_read_once_more_before_it_is_final() {
        let settings = Settings::default();
        let early = change("2026-11-11T00:20:00Z");
        let (first, second) = early.window.halves().unwrap();
        let early = WindowChange { confirmed: Some(first), ..early };
        let held = early.apply(None, 0, &settings);
        let late = WindowChange { confirmed: Some(second), is_resumed: true, ..change("2026-11-20T00:00:00Z") };
        let record = late.apply(Some(&held), 0, &settings);
        assert_eq!((record.state, record.rescans), (WindowState::Settled, 2));
    }

    #[test]
    fn an_unstable_second_stays_open_until_it_is_confirmed() {
        let settings = Settings::default();
        let mut moving = change("2026-11-11T00:20:00Z");
        let second = Range::new(moving.window.start, at("2026-11-10T00:00:01Z"));
        moving.confirmed = Some(Range::new(second.end, moving.window.end));
        moving.unstable = Some(second);
        let record = moving.apply(None, 0, &settings);
        assert_eq!((record.state, record.unstable.clone()), (WindowState::Provisional, vec![second]));
        let mut calm = change("2026-11-11T01:20:00Z");
        calm.confirmed = Some(second);
        let record = calm.apply(Some(&record), 0, &settings);
        assert_eq!((record.state, record.unstable.len()), (WindowState::Settled, 0));
        // An unstable range may become stable in parts.
        let (left, right) = moving.window.halves().unwrap();
        let mut record =
            WindowChange { unstable: Some(moving.window), confirmed: None, ..moving.clone() }.apply(None, 0, &settings);
        for part in [left, right] {
            assert!(!record.unstable.is_empty());
            let calm = WindowChange { unstable: None, confirmed: Some(part), ..moving.clone() };
            record = calm.apply(Some(&record), 0, &settings);
        }
        assert_eq!((record.state, record.unstable.len()), (WindowState::Settled, 0));
    }
}
