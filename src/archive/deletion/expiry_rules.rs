//! The rules of expiry: the month, rows and digest of the record match the files, the month is older than its retention
//! class, and no hold covers it.

use std::collections::BTreeSet;

use crate::model::path::{DataPath, month_of};
use crate::model::{Dataset, Instant, LedgerSeq, Range, RetentionPolicy, Stream};
use crate::planted::{self, Bug};

use super::expiry_record::{ExpiredRecord, retained};
use super::hold::{Hold, covering};
use crate::archive::ledger::line::LedgerLine;
use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::ledger::state::{TeamState, stream_of};
use crate::archive::ledger::state_error::StateError;
use crate::archive::{Body, FileEntry, WindowState};

/// The reason that keeps a due month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptBy {
    Holds(Vec<String>),
    /// Some windows of the month will be read again.
    OpenWindows,
    /// Sessions are not yet derived from all events.
    SessionsBehind,
}

/// The month of the file's folder.
pub fn month_of_file(file: &FileEntry) -> Option<Instant> {
    DataPath::parse(&file.path).map(|data| month_of(data.start).start)
}

impl TeamState {
    /// The ledger line and the record of the expired month that contains `at`.
    pub fn expired_month(&self, dataset: Dataset, at: Instant) -> Option<&(LedgerSeq, ExpiredRecord)> {
        if self.expired.is_empty() {
            return None;
        }
        self.expired.get(&(dataset, month_of(at).start))
    }

    /// Whether a stream's events at `at` have expired. Expired events are not read again.
    pub fn has_expired(&self, stream: Stream, at: Instant) -> bool {
        self.expired_month(stream.into(), at).is_some() && !planted::is(Bug::ExpiredComesBack)
    }

    /// Whether a quarantined event of this time has expired: its window was completely read before the end of an expired month of
    /// quarantine. The service can still return such an event.
    pub fn has_expired_in_quarantine(&self, stream: Stream, time: Option<Instant>) -> bool {
        let months = self.expired.range((Dataset::Quarantine, Instant::from_nanos(i64::MIN))..);
        let last = months.take_while(|((dataset, _), _)| *dataset == Dataset::Quarantine).last();
        let settled_at = time.and_then(|time| {
            let (_, window) = self.windows.range(..=(stream, time)).next_back()?;
            window.settled_at.filter(|_| window.stream == stream && window.range.owns(time))
        });
        last.zip(settled_at).is_some_and(|(((_, month), _), settled_at)| settled_at < month_of(*month).end)
    }

    /// The month with which a session expires, by its first event. A window of several days can begin in the month before, and its
    /// events lie in the folder of that month.
    pub(in crate::archive) fn month_of_session(&self, first_event_at: Instant) -> Instant {
        let window = self.windows.range(..=(Stream::Connections, first_event_at)).next_back().map(|(_, window)| window);
        let window = window.filter(|window| window.stream == Stream::Connections && window.range.owns(first_event_at));
        month_of(window.map_or(first_event_at, |window| window.range.start)).start
    }

    pub fn files_of_month(&self, dataset: Dataset, month: Instant) -> impl Iterator<Item = &FileEntry> {
        self.files_of(dataset).filter(move |file| month_of_file(file) == Some(month))
    }

    /// Whether the line removes the file because its month expires.
    pub(in crate::archive) fn expires(&self, body: &Body, file: &FileEntry) -> bool {
        let is_of =
            |record: &ExpiredRecord| record.dataset == file.dataset && month_of_file(file) == Some(record.month);
        file.dataset != Dataset::Sessions && body.expired.iter().any(is_of)
    }

    /// The period of a month's files: the month, extended to the last row if a window ends after the month.
    pub(in crate::archive) fn period_of(&self, dataset: Dataset, month: Instant) -> Range {
        let month = month_of(month);
        if matches!(dataset, Dataset::Quarantine | Dataset::Sessions) {
            return month;
        }
        let last = self.files_of_month(dataset, month.start).filter_map(|file| file.last).max();
        let after = last.map_or(month.end, |last| Instant::from_nanos(last.nanos().saturating_add(1)));
        match dataset {
            // A month's file describes the state until the first scan of a later month.
            Dataset::Inventory(_) => {
                let later = self.files_of(dataset).filter_map(|file| file.first).filter(|first| *first >= month.end);
                Range::new(month.start, later.min().unwrap_or(Instant::from_nanos(i64::MAX)))
            }
            _ => Range::new(month.start, after.max(month.end)),
        }
    }

    /// The time from which a month may expire: the retention class, counted from the end of the month's period.
    pub(in crate::archive) fn due_at(&self, policy: RetentionPolicy, dataset: Dataset, month: Instant) -> Instant {
        let period = self.period_of(dataset, month);
        policy.class.after(if planted::is(Bug::ExpiresEarly) { period.start } else { period.end })
    }

    /// The reason that keeps a month from its expiry, however old it is.
    pub(in crate::archive) fn kept_by<'a>(
        &self,
        dataset: Dataset,
        month: Instant,
        holds: impl IntoIterator<Item = &'a Hold>,
    ) -> Option<KeptBy> {
        let holds = covering(holds, dataset, self.period_of(dataset, month), None);
        match () {
            () if !holds.is_empty() => Some(KeptBy::Holds(holds.iter().map(|hold| hold.added.id.clone()).collect())),
            () if self.has_open_windows(dataset, month) => Some(KeptBy::OpenWindows),
            () => None,
        }
    }

    /// Whether the month has windows that will be read again. Its rows may not expire before.
    fn has_open_windows(&self, dataset: Dataset, month: Instant) -> bool {
        let Some(stream) = stream_of(dataset) else { return false };
        let month = month_of(month);
        let mut windows = self.windows.range((stream, month.start)..(stream, month.end));
        windows.any(|(_, window)| window.state != WindowState::Sealed)
    }

    /// The record of an expiry of all live files of a month.
    pub(in crate::archive) fn expiring(
        &self,
        policy: String,
        at: Instant,
        dataset: Dataset,
        month: Instant,
    ) -> ExpiredRecord {
        let files = self.files_of_month(dataset, month).count() as u64;
        let RowsSum { rows, digest } = RowsSum::of_files(self.files_of_month(dataset, month));
        ExpiredRecord { policy, at, dataset, month, files, rows, rows_digest: digest }
    }

    pub(in crate::archive) fn check_expiry_times(&self, line: &LedgerLine) -> Result<(), StateError> {
        let ahead = line.body.expired.iter().find(|record| record.at > line.at);
        ahead.map_or(Ok(()), |record| {
            let reason = format!("the rows expire at {}, later than the line's time {}", record.at, line.at);
            Err(StateError::Protected(of_record(record, &reason)))
        })
    }

    /// Checks the line's expiry records, and that the line adds no file to an expired month.
    pub(in crate::archive) fn check_expired(&self, body: &Body) -> Result<(), StateError> {
        let is_back = |file: &&FileEntry| {
            let has_expired =
                |month: Instant| self.expired_month(file.dataset, month).is_some() || self.expires(body, file);
            stream_of(file.dataset).is_some() && month_of_file(file).is_some_and(has_expired)
        };
        if let Some(file) = body.adds.iter().find(is_back).filter(|_| !planted::is(Bug::ExpiredComesBack)) {
            return Err(StateError::Expiry(format!("{}: the line adds the file to an expired month", file.path)));
        }
        if body.expired.is_empty() {
            return Ok(());
        }
        let removed: BTreeSet<&String> = body.removes.iter().collect();
        let mut named = BTreeSet::new();
        for record in &body.expired {
            let ExpiredRecord { dataset, month, .. } = *record;
            let is_new = self.expired_month(dataset, month).is_none() || stream_of(dataset).is_none();
            if month_of(month).start != month || !named.insert((dataset, month)) || !is_new {
                let reason = "the rows expire twice, or the record's time is not the start of a month";
                return Err(StateError::Expiry(of_record(record, reason)));
            }
            self.check_due(record)?;
            match dataset {
                Dataset::Sessions => check_sessions(body, record)?,
                _ => self.check_removed_month(record, &removed)?,
            }
        }
        self.check_expired_sessions(body, &removed)
    }

    /// Checks the policy, its time and the holds.
    fn check_due(&self, record: &ExpiredRecord) -> Result<(), StateError> {
        let ExpiredRecord { policy, dataset, month, at, .. } = record;
        let (dataset, month) = (*dataset, *month);
        let protected = |reason: String| Err(StateError::Protected(of_record(record, &reason)));
        let refused = |reason: &str| Err(StateError::Expiry(of_record(record, reason)));
        let parsed: Option<RetentionPolicy> = policy.parse().ok();
        let Some(parsed) = parsed.filter(|parsed| parsed.retained == retained(dataset)) else {
            return protected(format!("{policy:?} is not a policy for this dataset"));
        };
        let is_last = matches!(dataset, Dataset::Inventory(_))
            && self.period_of(dataset, month).end == Instant::from_nanos(i64::MAX);
        if is_last {
            return refused("the rows hold the current state, because no later month has a row");
        }
        let due = self.due_at(parsed, dataset, month);
        if due > *at {
            return protected(format!("{policy:?} lets the rows expire at {due}, but the line expires them at {at}"));
        }
        match self.kept_by(dataset, month, self.holds.values()) {
            Some(KeptBy::Holds(holds)) => protected(format!("hold {} protects the rows", holds[0])),
            Some(KeptBy::OpenWindows) => refused("some windows are not final"),
            // The line marks the time of such sessions as not derived.
            Some(KeptBy::SessionsBehind) | None => Ok(()),
        }
    }

    /// Checks that the line removes all files of the month, and that they match the record.
    fn check_removed_month(&self, record: &ExpiredRecord, removed: &BTreeSet<&String>) -> Result<(), StateError> {
        let ExpiredRecord { dataset, month, .. } = *record;
        if let Some(file) = self.files_of_month(dataset, month).find(|file| !removed.contains(&file.path)) {
            return Err(not_removed(file));
        }
        let found = self.expiring(record.policy.clone(), record.at, dataset, month);
        if found == *record && found.files > 0 {
            return Ok(());
        }
        let say = |of: &ExpiredRecord| format!("{} files with {} rows {}", of.files, of.rows, of.rows_digest.short());
        let reason = format!("the line records {}, but removes {}", say(record), say(&found));
        Err(StateError::Expiry(of_record(record, &reason)))
    }

    /// Checks that sessions expire together with the connections at their start.
    fn check_expired_sessions(&self, body: &Body, removed: &BTreeSet<&String>) -> Result<(), StateError> {
        let gone = |at: Instant| {
            let month = self.month_of_session(at);
            body.expired.iter().any(|record| record.dataset == Dataset::Connections && record.month == month)
        };
        let stay = self.files_of(Dataset::Sessions).filter(|file| !removed.contains(&file.path));
        let added = body.adds.iter().filter(|file| file.dataset == Dataset::Sessions);
        let mut edges = stay.chain(added).filter(|file| file.first.is_some_and(gone) || file.last.is_some_and(gone));
        edges.next().map_or(Ok(()), |file| Err(not_removed(file)))
    }
}

fn of_record(record: &ExpiredRecord, reason: &str) -> String {
    format!("{} of {}: {reason}", record.dataset, record.month.month())
}

fn not_removed(file: &FileEntry) -> StateError {
    StateError::Expiry(format!("{}: the file belongs to an expired month, but the line does not remove it", file.path))
}

/// Checks that the line replaces the expired sessions, and that their connections expire in the same line.
fn check_sessions(body: &Body, record: &ExpiredRecord) -> Result<(), StateError> {
    let replaced = body.sessions.map_or(0, |sessions| sessions.replaced);
    let all = body.expired.iter().filter(|other| other.dataset == Dataset::Sessions);
    let rows = all.fold(0, |sum: u64, other| sum.saturating_add(other.rows));
    let follows = |other: &ExpiredRecord| {
        (other.dataset, other.month, &other.policy) == (Dataset::Connections, record.month, &record.policy)
    };
    match rows <= replaced && body.expired.iter().any(follows) {
        true => Ok(()),
        false => Err(StateError::Expiry(format!(
            "{rows} session rows expire, but the line replaces {replaced}, or their connections do not expire"
        ))),
    }
}
