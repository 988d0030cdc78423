//! Months that are older than their retention class, the reasons to keep them, and the commit that expires them.

use std::collections::BTreeSet;

use crate::model::{Dataset, Instant, Range, Retention, RetentionPolicy};

use super::expiry_record::{ExpiredRecord, datasets_of};
use super::expiry_rules::{KeptBy, month_of_file};
use super::hold::Hold;
use crate::archive::ledger::state::TeamState;
use crate::archive::sessions::{ExpiringSessions, expiring_sessions};
use crate::archive::{ArchiveError, Body, Committed, Draft, SessionsDraft, TeamReader, TeamWriter};

/// A month of a dataset that is older than its retention class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMonth {
    pub policy: RetentionPolicy,
    pub dataset: Dataset,
    /// The first instant of the month.
    pub month: Instant,
    /// The period of the month's rows, which can end after the month.
    pub period: Range,
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
    /// The time at which the month became due.
    pub due_at: Instant,
    pub kept_by: Option<KeptBy>,
}

impl DueMonth {
    /// The reason that keeps the month, as text.
    pub fn kept_text(&self) -> Option<String> {
        Some(match self.kept_by.as_ref()? {
            KeptBy::Holds(holds) => format!("held by {}", holds.join(", ")),
            KeptBy::OpenWindows => "some of its windows are not sealed yet".to_owned(),
            KeptBy::SessionsBehind => "Annals has not made its sessions yet: run `annals sync`".to_owned(),
        })
    }
}

impl TeamState {
    /// The newest read of the service that the ledger records, by the service's clock.
    pub fn last_read(&self) -> Option<Instant> {
        let points = self.streams.values().flat_map(|stream| &stream.read_points).map(|point| point.at);
        points.chain(self.inventory.values().flatten().map(|read| read.read_at)).max()
    }

    /// The due months, sorted by dataset and time, each with the reason that keeps it. `holds` are the holds that apply to
    /// the team.
    pub fn due(&self, retention: &Retention, holds: &[Hold], now: Instant) -> Vec<DueMonth> {
        let mut found = self.retained_months(retention, holds);
        found.retain(|month| month.due_at <= now);
        found
    }

    /// All months of datasets with a class, due or not.
    pub fn retained_months(&self, retention: &Retention, holds: &[Hold]) -> Vec<DueMonth> {
        let mut found = Vec::new();
        for policy in retention.0.keys().filter_map(|key| retention.policy(*key)) {
            for dataset in datasets_of(policy.retained) {
                let months: BTreeSet<Instant> = self.files_of(dataset).filter_map(month_of_file).collect();
                found.extend(months.into_iter().map(|month| self.due_month(policy, dataset, month, holds)));
            }
        }
        found
    }

    fn due_month(&self, policy: RetentionPolicy, dataset: Dataset, month: Instant, holds: &[Hold]) -> DueMonth {
        let ExpiredRecord { files, rows, .. } = self.expiring(String::new(), month, dataset, month);
        let bytes = self.files_of_month(dataset, month).fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
        let is_behind = dataset == Dataset::Connections && self.sessions.is_none_or(|mark| mark.through.is_some());
        let kept_by = self.kept_by(dataset, month, holds).or(is_behind.then_some(KeptBy::SessionsBehind));
        let due_at = self.due_at(policy, dataset, month);
        let period = self.period_of(dataset, month);
        DueMonth { policy, dataset, month, period, files, rows, bytes, due_at, kept_by }
    }
}

/// The line's expiry records for the due months and their sessions.
fn records(state: &TeamState, due: &[DueMonth], sessions: &ExpiringSessions, at: Instant) -> Vec<ExpiredRecord> {
    let of = |due: &DueMonth| state.expiring(due.policy.to_string(), at, due.dataset, due.month);
    let mut records: Vec<ExpiredRecord> = due.iter().map(of).collect();
    for due in due.iter().filter(|due| due.dataset == Dataset::Connections) {
        let Some(gone) = sessions.months.get(&due.month) else { continue };
        let (policy, dataset, rows_digest) = (due.policy.to_string(), Dataset::Sessions, gone.sum.digest);
        let (month, files, rows) = (due.month, gone.files, gone.sum.rows);
        records.push(ExpiredRecord { policy, at, dataset, month, files, rows, rows_digest });
    }
    records
}

fn months_of_connections(due: &[DueMonth]) -> BTreeSet<Instant> {
    due.iter().filter(|due| due.dataset == Dataset::Connections).map(|due| due.month).collect()
}

impl TeamReader {
    /// The records that [`TeamWriter::expire`] would write for these months.
    pub fn would_expire(&self, due: &[DueMonth], now: Instant) -> Result<Vec<ExpiredRecord>, ArchiveError> {
        let months = months_of_connections(due);
        let sessions = expiring_sessions(self.store(), self.state(), None, &months)?;
        Ok(records(self.state(), due, &sessions, now))
    }
}

impl TeamWriter {
    /// Expires months in one commit, with the sessions that start in them. If later events of such a session remain, the line
    /// marks their time as not derived, and the next round derives a session from them. `at` is the time at which the months are
    /// due, `now` the machine's clock. Returns the line's records.
    ///
    /// # Errors
    /// As [`TeamWriter::commit`]. When something keeps one of the months, nothing changes.
    pub fn expire(&mut self, due: &[DueMonth], at: Instant, now: Instant) -> Result<Vec<ExpiredRecord>, ArchiveError> {
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let months = months_of_connections(due);
        let salts = self.salts().clone();
        let gone = expiring_sessions(self.store(), self.state(), Some(&salts), &months)?;
        let expire = records(self.state(), due, &gone, at);
        let is_changed = !gone.months.is_empty();
        let sessions = self.state().sessions.filter(|_| is_changed).map(|mut mark| {
            (mark.through, mark.until) = (gone.rest.map(|rest| rest.start), gone.rest.map(|rest| rest.end));
            SessionsDraft { mark, is_anew: false, open: Vec::new(), finished: Vec::new(), replaced: gone.replaced }
        });
        let body = Body { expired: expire.clone(), ..Body::default() };
        let draft = Draft { body, expired_sessions: gone.files, sessions, ..Draft::default() };
        let _: Committed = self.commit(draft, now)?;
        Ok(expire)
    }
}
