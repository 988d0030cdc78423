//! The plan of a stream's round: a pure function of its windows and the service's clock.

use std::time::Duration;

use crate::archive::{StreamRecord, TeamState, WindowState};
use crate::model::{Instant, Range, Stream};
use crate::planted::{self, Bug};

use crate::model::ranges::missing;
use crate::pipeline::plan::StreamWindows;
use crate::pipeline::settings::Settings;

/// The plan of one stream's round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamPlan {
    /// The start of the first window.
    pub begins: Instant,
    /// Windows within their lag. Their new events are read provisionally.
    pub open: Vec<Range>,
    /// Unconfirmed parts of windows past their lag, oldest first.
    pub unread: Vec<Range>,
    /// Parts of settled windows to read again, oldest first.
    pub rescans: Vec<Range>,
}

impl StreamPlan {
    /// Excludes windows whose rows have expired: they are not read again, even if the service still shows them.
    pub fn without_expired(mut self, state: &TeamState, stream: Stream) -> Self {
        for ranges in [&mut self.open, &mut self.unread, &mut self.rescans] {
            ranges.retain(|range| !state.has_expired(stream, range.start));
        }
        self
    }

    /// Excludes paused ranges. An unread range is read without its paused parts. A re-scan waits as a whole.
    pub fn without_paused(mut self, paused: &[Range]) -> Self {
        self.unread = self.unread.iter().flat_map(|range| missing(*range, paused)).collect();
        self.rescans.retain(|range| !paused.iter().any(|held| held.overlaps(range)));
        self
    }
}

/// The effective lag: the longer of the configured and the learned one.
pub fn lag(record: &StreamRecord, settings: &Settings) -> Duration {
    if planted::is(Bug::NoLag) {
        return Duration::ZERO;
    }
    settings.lag.max(Duration::from_secs(record.learned_lag_seconds))
}

/// Plans one round of a windowed stream, and adds the new windows up to now. `first` is the start of a backfill.
pub fn plan(windows: &mut StreamWindows, first: Instant, settings: &Settings, now: Instant) -> StreamPlan {
    let begins = begins(&windows.record, first, settings, now);
    let lag = lag(&windows.record, settings);
    let mut plan = StreamPlan { begins, ..StreamPlan::default() };
    for window in windows.extend(begins, now) {
        if !settings.selects(window) {
            continue;
        }
        let held = windows.held.get(&window.start);
        let left = || missing(window, held.map_or(&[], |held| &held.confirmed));
        match held.filter(|held| held.state != WindowState::Provisional) {
            Some(_) if settings.rescan_now && settings.since.is_none_or(|since| window.end > since) => {
                plan.rescans.push(window);
            }
            Some(held) if settings.is_rescan_due(held, now) && !planted::is(Bug::NoRescans) => {
                plan.rescans.extend(left());
            }
            Some(_) => {}
            None if window.end.plus(lag) <= now => plan.unread.extend(left()),
            None => plan.open.push(window),
        }
    }
    plan
}

/// The archive begins at the latest with the current window. If it began in the future, no reading would ever start.
fn begins(record: &StreamRecord, first: Instant, settings: &Settings, now: Instant) -> Instant {
    let latest = settings.grid.window_of(now).start;
    let first = settings.grid.window_of(first).start.min(latest);
    match (record.begins, settings.since) {
        (None, _) => first,
        (Some(held), Some(_)) => held.min(first),
        (Some(held), None) => held.min(latest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{WalkPoint, WindowRecord};
    use crate::model::Stream;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    fn window(day: u32, state: WindowState, rescans: u32) -> WindowRecord {
        let range = Settings::default().grid.window_of(at(&format!("2026-11-{day:02}T00:00:00Z")));
        WindowRecord {
            state,
            reads: 2,
            requests: 4,
            events: 0,
            rescans,
            walk: None::<WalkPoint>,
            ..WindowRecord::new(Stream::Activity, range)
        }
    }

    /// The plan of a stream with these windows.
    fn plan(
        record: &StreamRecord,
        held: &[WindowRecord],
        first: Instant,
        settings: &Settings,
        now: Instant,
    ) -> StreamPlan {
        let mut windows = StreamWindows::new(record.clone(), held.to_vec(), settings.grid);
        super::plan(&mut windows, first, settings, now)
    }

    fn days(ranges: &[Range]) -> Vec<String> {
        ranges.iter().map(|range| range.start.day()).collect()
    }

    #[test]
    fn a_first_round_reads_from_the_first_window_to_now() {
        let plan = plan(
            &StreamRecord::default(),
            &[],
            at("2026-11-17T05:00:00Z"),
            &Settings::default(),
            at("2026-11-20T00:10:00Z"),
        );
        assert_eq!(plan.begins, at("2026-11-17T00:00:00Z"));
        assert_eq!(days(&plan.unread), ["2026-11-17", "2026-11-18"]);
        assert_eq!(days(&plan.open), ["2026-11-19", "2026-11-20"], "the nineteenth is within its lag");
    }

    #[test]
    fn a_learned_lag_keeps_a_window_open_longer() {
        let record = StreamRecord { learned_lag_seconds: 7200, ..StreamRecord::default() };
        let first = at("2026-11-19T00:00:00Z");
        let plan = plan(&record, &[], first, &Settings::default(), at("2026-11-20T01:59:59Z"));
        assert_eq!(days(&plan.open), ["2026-11-19", "2026-11-20"]);
    }

    #[test]
    fn re_scans_are_due_by_age_and_a_sealed_window_is_not_read_again() {
        let windows = [
            window(16, WindowState::Sealed, 3),
            window(17, WindowState::Settled, 2),
            window(18, WindowState::Settled, 2),
            window(19, WindowState::Settled, 0),
        ];
        let record = StreamRecord { begins: Some(at("2026-11-16T00:00:00Z")), ..StreamRecord::default() };
        let now = at("2026-11-21T00:30:00Z");
        let plan = plan(&record, &windows, now, &Settings::default(), now);
        assert_eq!(days(&plan.rescans), ["2026-11-17", "2026-11-19"]);
    }

    #[test]
    fn a_re_scan_continues_with_the_parts_that_it_lacks() {
        let mut record = window(19, WindowState::Settled, 0);
        let (first, second) = record.range.halves().unwrap();
        record.confirmed = vec![first];
        let windows = [record.clone()];
        let stream = StreamRecord { begins: Some(record.range.start), ..StreamRecord::default() };
        let now = at("2026-11-20T01:30:00Z");
        let rescans = |settings: &Settings| plan(&stream, &windows, now, settings, now).rescans;
        assert_eq!(rescans(&Settings::default()), [second]);
        assert_eq!(rescans(&Settings { rescan_now: true, ..Settings::default() }), [record.range]);
    }

    #[test]
    fn a_settled_window_is_re_scanned_after_the_list_of_ages_has_changed() {
        let hours = |ages: &[u64]| ages.iter().map(|hours| Duration::from_secs(hours * 3600)).collect();
        for (ages, rescans, now, is_due) in [
            (&[72][..], 2, "2026-11-20T23:00:00Z", false),
            (&[72], 2, "2026-11-23T00:00:00Z", true),
            (&[1, 72], 2, "2026-11-23T00:00:00Z", true),
            (&[1], 2, "2026-11-21T12:00:00Z", true),
            (&[], 2, "2026-11-21T12:00:00Z", true),
            (&[1, 24, 72], 2, "2026-11-21T12:00:00Z", false),
        ] {
            let windows = [window(19, WindowState::Settled, rescans)];
            let record = StreamRecord { begins: Some(at("2026-11-19T00:00:00Z")), ..StreamRecord::default() };
            let settings = Settings { rescan: hours(ages), ..Settings::default() };
            let plan = plan(&record, &windows, at(now), &settings, at(now));
            assert_eq!(!plan.rescans.is_empty(), is_due, "{ages:?} at {now}");
        }
    }

    #[test]
    fn an_earlier_since_extends_the_backfill() {
        let windows = [window(19, WindowState::Sealed, 3)];
        let record = StreamRecord { begins: Some(at("2026-11-19T00:00:00Z")), ..StreamRecord::default() };
        let since = at("2026-11-17T12:00:00Z");
        let settings = Settings { since: Some(since), ..Settings::default() };
        let plan = plan(&record, &windows, since, &settings, at("2026-11-20T12:00:00Z"));
        assert_eq!(days(&plan.unread), ["2026-11-17", "2026-11-18"]);
    }

    #[test]
    fn an_archive_never_begins_in_the_future() {
        let (now, since) = (at("2026-11-20T12:00:00Z"), at("2031-01-01T00:00:00Z"));
        let settings = Settings { since: Some(since), ..Settings::default() };
        let first = plan(&StreamRecord::default(), &[], since, &settings, now);
        assert_eq!((first.begins, days(&first.open)), (at("2026-11-20T00:00:00Z"), vec!["2026-11-20".to_owned()]));
        let record = StreamRecord { begins: Some(since), ..StreamRecord::default() };
        let later = plan(&record, &[], now, &Settings::default(), now);
        assert_eq!(later.begins, at("2026-11-20T00:00:00Z"));
    }

    #[test]
    fn paused_parts_are_cut_out_of_unread_ranges_and_stop_whole_re_scans() {
        let range = |from, to| Range::new(Instant::from_seconds(from), Instant::from_seconds(to));
        let (unread, rescans) = (vec![range(0, 100)], vec![range(100, 200), range(200, 300)]);
        let plan = StreamPlan { unread, rescans, ..StreamPlan::default() };
        let left = plan.clone().without_paused(&[range(7, 8), range(150, 151)]);
        assert_eq!((left.unread, left.rescans), (vec![range(0, 7), range(8, 100)], vec![range(200, 300)]));
        assert_eq!(plan.clone().without_paused(&[]), plan);
    }
}
