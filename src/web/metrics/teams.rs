//! The metrics of the teams: always the totals, and each team's own series if configured.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use metrics::Label;

use crate::daemon::{LiveSnapshot, Task, TeamLive};
use crate::model::{Instant, Stream, TeamId, saturating_sum};
use crate::pipeline::{CommitCounts, StreamStatus};

use super::super::metric_names::{self as names, Name};
use super::{counter, gauge, gauge_if_known};

type Count = fn(&CommitCounts) -> u64;

/// The counters of one stream: the total's name, then the team's.
const COUNTS: [(Name, Name, Count); 5] = [
    (names::EVENTS_NEW, names::TEAM_EVENTS_NEW, |counts| counts.rows),
    (names::EVENTS_LATE, names::TEAM_EVENTS_LATE, |counts| counts.late),
    (names::EVENTS_DUPLICATE, names::TEAM_EVENTS_DUPLICATE, |counts| counts.repeated),
    (names::EVENTS_QUARANTINED, names::TEAM_EVENTS_QUARANTINED, |counts| counts.rejects),
    (names::COMMITS, names::TEAM_COMMITS, |counts| counts.commits),
];

/// The totals of one stream over all teams.
#[derive(Default)]
struct StreamTotals {
    streams: u64,
    late: u64,
    short_of_time: u64,
    gaps: u64,
    gap_at: Option<i64>,
    counts: CommitCounts,
    lag: Option<u64>,
    left: Option<u64>,
    window_age: u64,
}

/// The totals of one task over all teams.
#[derive(Default)]
struct TaskTotals {
    failures: u32,
    unfinished: u64,
    conflicts: u64,
}

/// The time of the scrape, the late streams, and the threshold for little time left.
pub(super) struct Measure<'a> {
    pub now: Instant,
    pub late: &'a HashSet<(&'a TeamId, Stream)>,
    pub time_left: Duration,
}

impl Measure<'_> {
    /// Records the totals of all teams.
    pub fn totals(&self, snapshot: &LiveSnapshot) {
        let mut streams: BTreeMap<Stream, StreamTotals> = BTreeMap::new();
        let mut tasks: BTreeMap<Task, TaskTotals> = BTreeMap::new();
        for (task, counts) in &snapshot.forgotten {
            tasks.entry(*task).or_default().conflicts += counts.conflicts;
            if let Task::Read(stream) = task {
                streams.entry(*stream).or_default().counts.add(counts);
            }
        }
        for (team, live) in &snapshot.teams {
            for (task, live) in &live.tasks {
                let totals = tasks.entry(*task).or_default();
                totals.failures = totals.failures.max(live.job.failures);
                totals.unfinished += u64::from(live.job.is_unfinished);
                totals.conflicts += live.counts.conflicts;
                if let Task::Read(stream) = *task {
                    let totals = streams.entry(stream).or_default();
                    totals.streams += 1;
                    totals.late += u64::from(self.late.contains(&(team, stream)));
                    totals.counts.add(&live.counts);
                }
            }
            for stream in live.status.iter().flat_map(|status| &status.streams) {
                self.add(streams.entry(stream.stream).or_default(), stream, live);
            }
        }
        let statuses = || snapshot.teams.values().filter_map(|live| live.status.as_ref());
        gauge(names::QUARANTINED, vec![], saturating_sum(statuses().map(|status| status.quarantined)) as f64);
        gauge(names::ARCHIVE_BYTES, vec![], saturating_sum(statuses().map(|status| status.bytes)) as f64);
        for (stream, totals) in streams {
            record_stream(stream, &totals);
        }
        for (task, totals) in tasks {
            let labels = || vec![Label::new("task", task.as_str())];
            gauge(names::TASK_FAILURES, labels(), f64::from(totals.failures));
            gauge(names::TASKS_UNFINISHED, labels(), totals.unfinished as f64);
            counter(names::CONFLICTS, labels(), totals.conflicts);
        }
    }

    fn add(&self, totals: &mut StreamTotals, stream: &StreamStatus, live: &TeamLive) {
        let aged = self.aged(live);
        totals.gaps += stream.gaps;
        totals.gap_at = totals.gap_at.max(Some(gap_at(live, stream.stream)));
        totals.short_of_time += u64::from(stream.short_of_time(self.time_left, aged).is_some());
        totals.lag = totals.lag.max(stream.lag_seconds.map(|lag| lag + aged));
        let left = stream.seconds_to_loss.map(|left| left.saturating_sub(aged));
        totals.left = totals.left.into_iter().chain(left).min();
        totals.window_age = totals.window_age.max(stream.open_seconds.map_or(0, |age| age + aged));
    }

    /// The age of the team's status in seconds.
    fn aged(&self, live: &TeamLive) -> u64 {
        live.seen_at.map_or(Duration::ZERO, |at| self.now.since(at)).as_secs()
    }

    /// Records the values of one team.
    pub fn team(&self, team: &TeamId, live: &TeamLive) {
        for (task, live) in &live.tasks {
            let labels = || vec![label(team), Label::new("task", task.as_str())];
            gauge(names::TEAM_TASK_FAILURES, labels(), f64::from(live.job.failures));
            gauge(names::TEAM_TASK_UNFINISHED, labels(), f64::from(u8::from(live.job.is_unfinished)));
            counter(names::TEAM_CONFLICTS, labels(), live.counts.conflicts);
            if let Some(at) = live.done_at {
                gauge(names::TEAM_TASK_DONE_AT, labels(), at.seconds() as f64);
            }
            if let Task::Read(stream) = *task {
                let is_late = self.late.contains(&(team, stream));
                gauge(names::TEAM_STREAM_LATE, of_stream(team, stream), f64::from(u8::from(is_late)));
                for (_, name, count) in COUNTS {
                    counter(name, of_stream(team, stream), count(&live.counts));
                }
            }
        }
        let Some(status) = &live.status else { return };
        gauge(names::TEAM_QUARANTINED, vec![label(team)], status.quarantined as f64);
        gauge(names::TEAM_ARCHIVE_BYTES, vec![label(team)], status.bytes as f64);
        gauge(names::TEAM_LEDGER_SEQ, vec![label(team)], status.ledger_seq as f64);
        for stream in &status.streams {
            self.team_status(team, stream, live);
        }
    }

    fn team_status(&self, team: &TeamId, stream: &StreamStatus, live: &TeamLive) {
        let (aged, labels) = (self.aged(live), || of_stream(team, stream.stream));
        gauge(names::TEAM_GAPS, labels(), stream.gaps as f64);
        gauge(names::TEAM_GAP_AT, labels(), gap_at(live, stream.stream) as f64);
        gauge_if_known(names::TEAM_LAG, labels(), stream.lag_seconds.map(|lag| lag + aged));
        let left = stream.seconds_to_loss.map(|left| left.saturating_sub(aged));
        gauge_if_known(names::TEAM_TIME_LEFT, labels(), left);
        gauge_if_known(names::TEAM_KEPT, labels(), stream.seconds_kept);
        let age = stream.open_seconds.map_or(0, |age| age + aged);
        gauge(names::TEAM_WINDOW_AGE, labels(), age as f64);
    }
}

fn record_stream(stream: Stream, totals: &StreamTotals) {
    let labels = || vec![Label::new("stream", stream.as_str())];
    for (name, _, count) in COUNTS {
        counter(name, labels(), count(&totals.counts));
    }
    gauge(names::STREAMS, labels(), totals.streams as f64);
    gauge(names::STREAMS_LATE, labels(), totals.late as f64);
    gauge(names::STREAMS_SHORT, labels(), totals.short_of_time as f64);
    gauge(names::GAPS, labels(), totals.gaps as f64);
    gauge(names::WINDOW_AGE, labels(), totals.window_age as f64);
    if let Some(at) = totals.gap_at {
        gauge(names::GAP_AT, labels(), at as f64);
    }
    gauge_if_known(names::LAG, labels(), totals.lag);
    gauge_if_known(names::TIME_LEFT, labels(), totals.left);
}

/// When the stream's newest gap was recorded, in seconds; 0 without a gap. Read from the ledger, so a restart does not hide it.
fn gap_at(live: &TeamLive, stream: Stream) -> i64 {
    let gaps = live.gaps.iter().filter(|(_, gap)| gap.stream == Some(stream));
    gaps.map(|(_, gap)| gap.found_at.seconds()).max().unwrap_or(0)
}

fn label(team: &TeamId) -> Label {
    Label::new("team", team.as_str().to_owned())
}

fn of_stream(team: &TeamId, stream: Stream) -> Vec<Label> {
    vec![label(team), Label::new("stream", stream.as_str())]
}
