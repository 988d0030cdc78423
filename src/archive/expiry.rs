//! When rows may go: as a record says whose month, rows and digest agree with the files, that outlived its class, and that no
//! hold covers.

use std::collections::BTreeSet;

use crate::model::{Instant, LedgerSeq, Range, RetentionPolicy, Stream};
use crate::planted::{self, Bug};

use super::expired::{ExpiredRecord, ExpiryError, retained};
use super::hold::covering;
use super::ledger::Line;
use super::path::{DataPath, month_of};
use super::rules::StateError;
use super::state::{TeamState, stream_of};
use super::table::RowsDigest;
use super::{Body, Dataset, FileEntry, WindowState};

/// The month in whose folder a file stands.
pub fn month_of_file(file: &FileEntry) -> Option<Instant> {
    DataPath::parse(&file.path).map(|data| month_of(data.start).start)
}

impl TeamState {
    /// The month of a dataset that holds `at`, if its rows have expired: the line, and what it says.
    pub fn expired_month(&self, dataset: Dataset, at: Instant) -> Option<&(LedgerSeq, ExpiredRecord)> {
        if self.expired.is_empty() {
            return None;
        }
        self.expired.get(&(dataset, month_of(at).start))
    }

    /// Whether events of a stream at `at` have expired: they are not read again, and no row of them comes back.
    pub fn has_expired(&self, stream: Stream, at: Instant) -> bool {
        self.expired_month(stream.into(), at).is_some() && !planted::is(Bug::ExpiredComesBack)
    }

    /// Whether the time of an event in quarantine lies before the end of a month of quarantine that expired. It may be one
    /// of that month's that the service still shows; it has outlived its class in any case.
    pub fn has_expired_in_quarantine(&self, time: Option<Instant>) -> bool {
        let months = self.expired.range((Dataset::Quarantine, Instant::from_nanos(i64::MIN))..);
        let last = months.take_while(|((dataset, _), _)| *dataset == Dataset::Quarantine).last();
        last.zip(time).is_some_and(|(((_, month), _), time)| time < month_of(*month).end)
    }

    /// The live files of a month of a dataset, by the folder in which they stand.
    pub fn files_of_month(&self, dataset: Dataset, month: Instant) -> impl Iterator<Item = &FileEntry> {
        self.files_of(dataset).filter(move |file| month_of_file(file) == Some(month))
    }

    /// Whether a line takes the file away because its month expires.
    pub(super) fn expires(&self, body: &Body, file: &FileEntry) -> bool {
        let is_of =
            |record: &ExpiredRecord| record.dataset == file.dataset && month_of_file(file) == Some(record.month);
        file.dataset != Dataset::Sessions && body.expired.iter().any(is_of)
    }

    /// The time that a month's files are about: the month, and where a window runs over its end, up to the last row.
    pub(super) fn period_of(&self, dataset: Dataset, month: Instant) -> Range {
        let month = month_of(month);
        if matches!(dataset, Dataset::Quarantine | Dataset::Sessions) {
            return month;
        }
        let last = self.files_of_month(dataset, month.start).filter_map(|file| file.last).max();
        let after = last.map_or(month.end, |last| Instant::from_nanos(last.nanos().saturating_add(1)));
        match dataset {
            // A month's file tells how things stood until the first look of the next.
            Dataset::Inventory(_) => {
                let later = self.files_of(dataset).filter_map(|file| file.first).filter(|first| *first >= month.end);
                Range::new(month.start, later.min().unwrap_or(Instant::from_nanos(i64::MAX)))
            }
            _ => Range::new(month.start, after.max(month.end)),
        }
    }

    /// The moment from which on a month may go: its end, of inventory also the look that takes over, has outlived the class.
    pub(super) fn due_at(&self, policy: RetentionPolicy, dataset: Dataset, month: Instant) -> Instant {
        let period = self.period_of(dataset, month);
        policy.class.after(if planted::is(Bug::ExpiresEarly) { period.start } else { period.end })
    }

    /// Whether windows of the month are read again: then its rows may not go yet.
    pub(super) fn has_open_windows(&self, dataset: Dataset, month: Instant) -> bool {
        let Some(stream) = stream_of(dataset) else { return false };
        let month = month_of(month);
        let mut windows = self.windows.range((stream, month.start)..(stream, month.end));
        windows.any(|(_, window)| window.state != WindowState::Sealed)
    }

    /// Checks what a line says of the time at which rows were judged.
    pub(super) fn check_judged(&self, line: &Line) -> Result<(), StateError> {
        let ahead = line.body.expired.iter().find(|record| record.at > line.at);
        ahead.map_or(Ok(()), |record| {
            let ExpiredRecord { dataset, month, at, .. } = *record;
            Err(ExpiryError::Ahead { dataset, month, at, line: line.at }.into())
        })
    }

    /// Checks what a line says of expired rows, and that it adds none of an expired month.
    pub(super) fn check_expired(&self, body: &Body) -> Result<(), StateError> {
        let back = body.adds.iter().find(|file| {
            let is_event = stream_of(file.dataset).is_some();
            let month = month_of_file(file);
            is_event
                && month
                    .is_some_and(|month| self.expired_month(file.dataset, month).is_some() || self.expires(body, file))
        });
        if let Some(file) = back.filter(|_| !planted::is(Bug::ExpiredComesBack)) {
            return Err(ExpiryError::Back { path: file.path.clone() }.into());
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
                return Err(ExpiryError::Twice { dataset, month }.into());
            }
            self.check_due(record)?;
            match dataset {
                Dataset::Sessions => check_sessions(body, record)?,
                _ => self.check_taken(record, &removed)?,
            }
        }
        self.check_followed(body, &removed)
    }

    /// Whether the policy, its time and the holds let the rows go.
    fn check_due(&self, record: &ExpiredRecord) -> Result<(), StateError> {
        let ExpiredRecord { dataset, month, at, .. } = *record;
        let policy = || record.policy.clone();
        let parsed: Option<RetentionPolicy> = record.policy.parse().ok();
        let Some(parsed) = parsed.filter(|parsed| parsed.of == retained(dataset)) else {
            return Err(ExpiryError::Policy { dataset, month, policy: policy() }.into());
        };
        let is_last = matches!(dataset, Dataset::Inventory(_))
            && self.period_of(dataset, month).end == Instant::from_nanos(i64::MAX);
        if is_last {
            return Err(ExpiryError::Standing { dataset, month }.into());
        }
        let due = self.due_at(parsed, dataset, month);
        if due > at {
            return Err(ExpiryError::Early { dataset, month, policy: policy(), due, at }.into());
        }
        if self.has_open_windows(dataset, month) {
            return Err(ExpiryError::Open { dataset, month }.into());
        }
        match covering(self.holds.values(), dataset, self.period_of(dataset, month), None).first() {
            Some(hold) => Err(ExpiryError::Held { dataset, month, hold: hold.added.id.clone() }.into()),
            None => Ok(()),
        }
    }

    /// Whether all files of the month go, and are what the record says.
    fn check_taken(&self, record: &ExpiredRecord, removed: &BTreeSet<&String>) -> Result<(), StateError> {
        let ExpiredRecord { dataset, month, .. } = *record;
        let mut found = (0, 0_u64, RowsDigest::default());
        for file in self.files_of_month(dataset, month) {
            if !removed.contains(&file.path) {
                return Err(ExpiryError::Stays { path: file.path.clone() }.into());
            }
            found = (found.0 + 1, found.1.saturating_add(file.rows), found.2.plus(file.rows_digest.into()));
        }
        let said = (record.files, record.rows, RowsDigest::from(record.rows_digest));
        if found == said && found.0 > 0 {
            return Ok(());
        }
        let say = |(files, rows, digest): (u64, u64, RowsDigest)| {
            format!("{files} files with {rows} rows {}", crate::model::Digest::from(digest).short())
        };
        Err(ExpiryError::Differs { dataset, month, said: say(said), found: say(found) }.into())
    }

    /// Sessions go with the connections that they begin with.
    fn check_followed(&self, body: &Body, removed: &BTreeSet<&String>) -> Result<(), StateError> {
        let gone = |at: Instant| {
            let month = month_of(at).start;
            body.expired.iter().any(|record| record.dataset == Dataset::Connections && record.month == month)
        };
        let stay = self.files_of(Dataset::Sessions).filter(|file| !removed.contains(&file.path));
        let added = body.adds.iter().filter(|file| file.dataset == Dataset::Sessions);
        let mut edges = stay.chain(added).filter(|file| file.first.is_some_and(gone) || file.last.is_some_and(gone));
        match edges.next() {
            Some(file) => Err(ExpiryError::Stays { path: file.path.clone() }.into()),
            None => Ok(()),
        }
    }
}

/// What expires of sessions is among those that the line replaces, and their connections go with them.
fn check_sessions(body: &Body, record: &ExpiredRecord) -> Result<(), StateError> {
    let replaced = body.sessions.map_or(0, |sessions| sessions.replaced);
    let all = body.expired.iter().filter(|other| other.dataset == Dataset::Sessions);
    let rows = all.fold(0, |sum: u64, other| sum.saturating_add(other.rows));
    let follows = |other: &ExpiredRecord| {
        (other.dataset, other.month, &other.policy) == (Dataset::Connections, record.month, &record.policy)
    };
    match rows <= replaced && body.expired.iter().any(follows) {
        true => Ok(()),
        false => Err(ExpiryError::Sessions { rows, replaced }.into()),
    }
}
