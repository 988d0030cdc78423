//! Metrics in the text format of Prometheus.

mod teams;

use std::collections::HashSet;
use std::time::Duration;

use metrics::{Label, describe_counter, describe_gauge, describe_histogram, with_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use parking_lot::Mutex;

use crate::daemon::{Live, LiveSnapshot};
use crate::model::{Instant, Severity, Stream, TeamId};
use crate::pipeline::{CommitCounts, Progress};

use super::Settings;
use super::metric_names::{self as names, Kind, Name};
use teams::Measure;

/// Upper bounds of the commit histogram, in seconds.
const COMMIT_SECONDS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// All metrics of this process.
pub struct Metrics {
    /// Values that are measured as they happen. All other values are read at each scrape, so a team that is no longer read has no
    /// values.
    commits: PrometheusRecorder,
    /// Allows one scrape at a time.
    scraping: Mutex<()>,
}

impl Metrics {
    pub fn new() -> Self {
        Self { commits: recorder(), scraping: Mutex::default() }
    }

    /// The text of all metrics at `now`.
    pub fn render(&self, live: &Live, settings: &Settings, now: Instant) -> String {
        let _one = self.scraping.lock();
        let (snapshot, late) = (live.snapshot(), live.late(now).unwrap_or_default());
        let late: HashSet<(&TeamId, Stream)> = late.iter().map(|late| (&late.team, late.stream)).collect();
        let measure = Measure { now, late: &late, time_left: settings.time_left };
        let gauges = recorder();
        with_local_recorder(&gauges, || {
            gauge(names::BUILD_INFO, vec![Label::new("version", env!("CARGO_PKG_VERSION"))], 1.0);
            let shard = live.shard();
            let labels = [("shard", shard.number()), ("shards", shard.shards())];
            gauge(names::SHARD, labels.map(|(name, value)| Label::new(name, value.to_string())).into(), 1.0);
            for (result, count) in live.requests() {
                counter(names::REQUESTS, vec![Label::new("result", result)], count);
            }
            let (open_bytes, open_teams) = live.open_size();
            gauge(names::TEAMS_OPEN, vec![], open_teams as f64);
            gauge(names::TEAMS_OPEN_BYTES, vec![], open_bytes as f64);
            record_daemon(&snapshot);
            measure.totals(&snapshot);
            if settings.team_metrics.shows(snapshot.teams.len()) {
                snapshot.teams.iter().for_each(|(team, live)| measure.team(team, live));
            }
        });
        gauges.handle().render() + &self.commits.handle().render()
    }
}

fn recorder() -> PrometheusRecorder {
    let matcher = Matcher::Full(names::COMMIT_SECONDS.name.to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(matcher, &COMMIT_SECONDS);
    let recorder = builder.expect("BUG: there are bounds").build_recorder();
    with_local_recorder(&recorder, || {
        for Name { name, kind, help, .. } in names::ALL {
            match kind {
                Kind::Counter => describe_counter!(*name, *help),
                Kind::Gauge => describe_gauge!(*name, *help),
                Kind::Histogram => describe_histogram!(*name, *help),
            }
        }
    });
    recorder
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Metrics {
    fn committed(&self, _: &TeamId, _: &CommitCounts, took: Duration) {
        with_local_recorder(&self.commits, || {
            metrics::histogram!(names::COMMIT_SECONDS.name).record(took.as_secs_f64());
        });
        // Recorded values are summed up at a scrape; without scrapes they would fill the memory.
        self.commits.handle().run_upkeep();
    }
}

fn record_daemon(snapshot: &LiveSnapshot) {
    gauge(names::TEAMS, vec![], snapshot.teams.len() as f64);
    gauge(names::TEAMS_LISTED, vec![], f64::from(u8::from(snapshot.listing_error.is_none())));
    if let Some(seconds) = snapshot.clock_skew {
        gauge(names::CLOCK_SKEW, vec![], seconds as f64);
    }
    for target in ["log", "webhook", "command"] {
        for result in ["delivered", "failed"] {
            let count = snapshot.alerts.get(&(target, result)).copied().unwrap_or(0);
            counter(names::ALERTS, vec![Label::new("target", target), Label::new("result", result)], count);
        }
    }
    detections(snapshot);
    if let Some(verified) = &snapshot.verified {
        gauge(names::VERIFY_FAULTS, vec![], verified.faults as f64);
        gauge(names::VERIFY_AT, vec![], verified.at.seconds() as f64);
    }
    if let Some(published) = &snapshot.published {
        gauge(names::PUBLISH_FAILED, vec![], f64::from(u8::from(published.error.is_some())));
        if let Some(at) = published.done_at {
            gauge(names::PUBLISH_AT, vec![], at.seconds() as f64);
        }
    }
}

fn detections(snapshot: &LiveSnapshot) {
    let failed = snapshot.detections.failed.len();
    if snapshot.detections.at.is_some() || failed > 0 {
        gauge(names::REPORTS_FAILED, vec![], failed as f64);
    }
    let Some(at) = snapshot.detections.at else { return };
    gauge(names::REPORTS_AT, vec![], at.seconds() as f64);
    for (report, detected) in &snapshot.detections.found {
        for severity in Severity::ALL {
            let count = detected.subjects.values().filter(|of| **of == severity).count();
            let labels = vec![Label::new("report", report.clone()), Label::new("severity", severity.as_str())];
            gauge(names::DETECTIONS, labels, count as f64);
        }
    }
}

/// Without a value, the series is missing.
fn gauge_if_known(name: Name, labels: Vec<Label>, value: Option<u64>) {
    if let Some(value) = value {
        gauge(name, labels, value as f64);
    }
}

fn gauge(name: Name, labels: Vec<Label>, value: f64) {
    debug_assert_eq!(name.kind, Kind::Gauge);
    metrics::gauge!(name.name, labels).set(value);
}

fn counter(name: Name, labels: Vec<Label>, value: u64) {
    debug_assert_eq!(name.kind, Kind::Counter);
    metrics::counter!(name.name, labels).absolute(value);
}
