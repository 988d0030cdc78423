//! Runs the detecting reports on their schedule, for the daemon's alerts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::util::display::array_value_to_string;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::config::{Config, Rule};
use crate::daemon::{Detected, Detections, Live};
use crate::error::Error;
use crate::model::{Digest, Instant, Range, Severity};
use crate::report::{
    Catalog, Engine, Flow, Interrupter, Report, ReportError, ReportInput, SeverityRule, Sink, ViewData, Zone,
};

use super::super::report::CatalogArgs;
use super::super::{limits, query};
use super::next_run;

/// The most detections of one report and one severity that the daemon tells apart. The others bring no alert, and they are the
/// newest, because reports list these last. Ninety days of a busy team have some ten thousand mild ones.
const SUBJECTS_MAX: usize = 100_000;

/// The parts that detection needs.
pub struct Detector {
    pub config: Config,
    pub catalog: CatalogArgs,
    pub live: Arc<Live>,
    pub clock: Arc<dyn Clock>,
}

impl Detector {
    /// Runs the reports on their schedule forever. When it is dropped, it stops the running query.
    pub async fn run(self) {
        if !self.config.alerts.rules.contains(&Rule::Report) {
            return;
        }
        let detector = Arc::new(self);
        let schedule = &detector.config.schedule.reports;
        let mut since = detector.clock.now();
        while let Some(now) = next_run(schedule, since, detector.clock.as_ref()).await {
            detector.detect(now).await;
            since = detector.clock.now();
        }
    }

    async fn detect(self: &Arc<Self>, now: Instant) {
        let stop = Arc::new(Stop::default());
        let _stopped = StopOnDrop(stop.clone());
        let own = self.clone();
        let done = tokio::task::spawn_blocking(move || own.run_reports(now, &stop)).await;
        let detections = match done {
            Ok(Ok(detections)) => detections,
            Ok(Err(error)) => {
                let error = error.render(false);
                tracing::warn!(error, "cannot run the reports for the alerts");
                self.live.detection_failed(error);
                return;
            }
            Err(error) => {
                tracing::error!(%error, "BUG: the task that runs the reports panicked");
                self.live.detection_failed(format!("BUG: {error}"));
                return;
            }
        };
        for (report, error) in &detections.failed {
            // The engine's message can quote data of the rows, so the alert leaves it out.
            tracing::warn!(report, "cannot run a report for the alerts: `annals report run` shows the error");
            tracing::debug!(report, error, "the error of the report");
        }
        self.live.detected(detections);
    }

    fn run_reports(&self, now: Instant, stop: &Stop) -> Result<Detections, Error> {
        let catalog = self.catalog.load(&self.config)?;
        for fault in catalog.faults() {
            tracing::warn!("{fault}");
        }
        self.run_reports_on(query::own_view_data(&self.config)?, &catalog, now, stop)
    }

    fn run_reports_on(
        &self,
        data: ViewData,
        catalog: &Catalog,
        now: Instant,
        stop: &Stop,
    ) -> Result<Detections, Error> {
        let mut limits = limits::limits(&self.config);
        // Use one thread: reading the service has priority.
        limits.threads = self.config.sql.threads.unwrap_or(1);
        let least = self.config.alerts.severity;
        let detecting = || catalog.reports().iter().filter(|report| detects(report, least));
        let engine = Engine::open_for_reports(data, detecting(), &limits)?;
        let mut engine = engine.confined()?;
        stop.watch(Some(engine.interrupter()));
        let mut detections = Detections { at: Some(now), ..Detections::default() };
        for report in detecting() {
            if stop.is_asked() {
                break;
            }
            match self.run_one(&mut engine, report, now) {
                Ok(detected) => {
                    detections.found.insert(report.id.clone(), Arc::new(detected));
                }
                Err(error) => {
                    detections.failed.insert(report.id.clone(), error.render(false));
                }
            }
        }
        stop.watch(None);
        Ok(detections)
    }

    fn run_one(&self, engine: &mut Engine, report: &Report, now: Instant) -> Result<Detected, Error> {
        let zone = Zone::utc();
        // Round to whole seconds: the alert names the period, and a person types it.
        let now = now.floor_second();
        let period = Range { start: now.minus(self.config.alerts.period), end: now };
        let values = report.values(&[], now, zone.rules())?;
        let asked = ReportInput { period, team: None, zone, as_of: now, now, values };
        let run = engine.run(report, &asked)?;
        let mut subjects = Subjects::new(report, self.config.alerts.severity);
        run.rows(&mut subjects)?;
        let (report, name, title) = (report.id.clone(), report.name.clone(), report.title.clone());
        Ok(Detected { report, name, title, period, subjects: subjects.found })
    }
}

/// Whether a report can detect rows of at least this severity. Faults that `verify` finds have a rule of their own.
fn detects(report: &Report, least: Severity) -> bool {
    let may = match report.severity {
        None => false,
        Some(SeverityRule::Every(severity)) => severity >= least,
        Some(SeverityRule::Column) => true,
    };
    may && !report.needs_verify
}

/// Whether a column identifies the detection of a row: a text, an hour or a day. Counts and exact times of the same detection
/// change from run to run.
fn identifies(field: &Field) -> bool {
    let is_rounded = field.name().starts_with("hour_") || field.name().starts_with("day_");
    *field.data_type() == DataType::Utf8 || is_rounded && field.data_type().is_temporal()
}

/// Collects the detections of a report with severity `least` or higher.
struct Subjects<'a> {
    report: &'a Report,
    least: Severity,
    found: BTreeMap<String, Severity>,
    /// The detections that were found first with each severity. Each severity has its own limit: many mild rows must not
    /// hide a grave one.
    counts: BTreeMap<Severity, usize>,
}

impl<'a> Subjects<'a> {
    fn new(report: &'a Report, least: Severity) -> Self {
        Self { report, least, found: BTreeMap::new(), counts: BTreeMap::new() }
    }

    fn is_full(&self, severity: Severity) -> bool {
        self.counts.get(&severity).is_some_and(|count| *count >= SUBJECTS_MAX)
    }

    fn severity(&self, batch: &RecordBatch, row: usize) -> Option<Severity> {
        match self.report.severity? {
            SeverityRule::Every(severity) => Some(severity),
            SeverityRule::Column => {
                let column = batch.column_by_name("severity")?.as_string_opt::<i32>()?;
                column.is_valid(row).then(|| column.value(row).parse().ok())?
            }
        }
    }
}

impl Sink for Subjects<'_> {
    fn begin(&mut self, _: SchemaRef) -> Result<(), ReportError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let schema = batch.schema();
        let columns: Vec<_> =
            schema.fields().iter().zip(batch.columns()).filter(|(field, _)| identifies(field)).collect();
        for row in 0..batch.num_rows() {
            let Some(severity) = self.severity(batch, row) else { continue };
            if severity < self.least || self.is_full(severity) {
                continue;
            }
            let held = columns.iter().filter(|(_, column)| column.is_valid(row));
            // A time out of the formatter's range has no text.
            let parts: Vec<[String; 2]> = held
                .map(|(field, column)| [field.name().clone(), array_value_to_string(column, row).unwrap_or_default()])
                .collect();
            let row = serde_json::json!([self.report.id, parts]).to_string();
            let key =
                format!("{}:{}", self.report.id, Digest::with_domain("annals detection\n", &[row.as_bytes()]).short());
            match self.found.entry(key) {
                Entry::Occupied(mut held) => *held.get_mut() = severity.max(*held.get()),
                Entry::Vacant(place) => {
                    place.insert(severity);
                    *self.counts.entry(severity).or_default() += 1;
                }
            }
            if self.is_full(Severity::Critical) {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }
}

/// Stops the query that runs on another thread.
#[derive(Default)]
struct Stop {
    is_asked: AtomicBool,
    running: Mutex<Option<Interrupter>>,
}

impl Stop {
    fn watch(&self, interrupter: Option<Interrupter>) {
        *self.running.lock() = interrupter;
    }

    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }
}

struct StopOnDrop(Arc<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.is_asked.store(true, Ordering::Relaxed);
        if let Some(running) = &*self.0.running.lock() {
            running.interrupt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringArray, TimestampMicrosecondArray};

    fn batch(rows: &[(&str, String)]) -> RecordBatch {
        let severities: StringArray = rows.iter().map(|(severity, _)| Some(*severity)).collect();
        let names: StringArray = rows.iter().map(|(_, name)| Some(name.as_str())).collect();
        let column = |array: StringArray| -> ArrayRef { Arc::new(array) };
        RecordBatch::try_from_iter([("severity", column(severities)), ("name", column(names))]).unwrap()
    }

    #[test]
    fn many_mild_rows_do_not_hide_a_grave_one() {
        let catalog = Catalog::embedded();
        let report = catalog.reports().iter().find(|report| report.severity == Some(SeverityRule::Column)).unwrap();
        let mut rows: Vec<(&str, String)> = Vec::new();
        for severity in ["low", "high"] {
            rows.extend((0..SUBJECTS_MAX + 5).map(|row| (severity, format!("{severity} {row}"))));
        }
        rows.push(("critical", "the grave one".to_owned()));
        let mut subjects = Subjects::new(report, Severity::High);
        assert_eq!(subjects.batch(&batch(&rows)).unwrap(), Flow::More);
        let count = |of: Severity| subjects.found.values().filter(|severity| **severity == of).count();
        assert_eq!((count(Severity::Critical), count(Severity::High), count(Severity::Low)), (1, SUBJECTS_MAX, 0));
    }

    #[test]
    fn thousands_of_detections_do_not_hide_a_new_one() {
        let catalog = Catalog::embedded();
        let report = catalog.reports().iter().find(|report| report.severity == Some(SeverityRule::Column)).unwrap();
        let rows: Vec<(&str, String)> = (0..5_000).map(|row| ("high", row.to_string())).collect();
        let mut subjects = Subjects::new(report, Severity::High);
        assert_eq!(subjects.batch(&batch(&rows)).unwrap(), Flow::More);
        assert_eq!(subjects.found.len(), rows.len());
    }

    #[test]
    fn an_equal_row_of_another_hour_or_day_is_another_detection() {
        let catalog = Catalog::embedded();
        let report = catalog.reports().iter().find(|report| report.severity == Some(SeverityRule::Column)).unwrap();
        let found = |name: &str, times: [i64; 3]| {
            let severities: ArrayRef = Arc::new(StringArray::from(vec!["high"; 3]));
            let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times.to_vec()));
            let rows = RecordBatch::try_from_iter([("severity", severities), (name, times)]).unwrap();
            let mut subjects = Subjects::new(report, Severity::High);
            assert_eq!(subjects.batch(&rows).unwrap(), Flow::More);
            subjects.found.into_keys().collect::<Vec<_>>()
        };
        let hour = 3_600_000_000;
        for name in ["hour_local", "day_utc"] {
            assert_eq!(found(name, [0, 24 * hour, 24 * hour]).len(), 2, "{name}");
            assert_eq!(found(name, [0, hour, 0]), found(name, [hour, 0, hour]), "{name}: the key is stable");
        }
        assert_eq!(found("last_at", [0, 1, 2]).len(), 1, "an exact time changes with each run");
    }

    #[test]
    fn reading_ends_only_when_no_graver_row_can_follow() {
        let catalog = Catalog::embedded();
        let report = catalog.reports().iter().find(|report| report.severity == Some(SeverityRule::Column)).unwrap();
        let rows: Vec<(&str, String)> = (0..=SUBJECTS_MAX).map(|row| ("critical", row.to_string())).collect();
        let mut subjects = Subjects::new(report, Severity::Info);
        assert_eq!(subjects.batch(&batch(&rows)).unwrap(), Flow::Enough);
        assert_eq!(subjects.found.len(), SUBJECTS_MAX);
    }
}
