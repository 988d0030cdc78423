//! The record of sent alerts: each target receives each occurrence once, also after a restart. An occurrence is identified by its
//! ledger line, or by the condition that still holds. The record is not part of the archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{self, Links};
use crate::model::{LedgerSeq, TeamId};

use super::occurrence::{Evaluation, Occurrence};

/// The maximum size of the file.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The alerts that each target has received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentLog {
    targets: BTreeMap<String, SentToTarget>,
}

/// The alerts that one target has received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentToTarget {
    /// Everything that ledgers record up to these lines.
    lines: BTreeMap<TeamId, LedgerSeq>,
    /// Keys of later occurrences that the target has received.
    beyond: BTreeSet<String>,
    /// Keys of conditions that still hold and were sent.
    holding: BTreeSet<String>,
}

impl SentLog {
    /// Reads the record, which is empty if the file does not exist.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        match files::read(path, Links::Refuse, MEMORY_BYTES_MAX) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the whole file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    pub fn of(&mut self, target: &str) -> &mut SentToTarget {
        self.targets.entry(target.to_owned()).or_default()
    }
}

impl SentToTarget {
    /// Forgets conditions that no longer hold. For a new team, everything that its ledger records at the start of this process
    /// counts as sent. Returns whether anything changed.
    pub fn settle(&mut self, evaluation: &Evaluation) -> bool {
        let before = (self.lines.len(), self.holding.len());
        for (team, seq) in &evaluation.opened_at {
            self.lines.entry(team.clone()).or_insert(*seq);
        }
        self.holding.retain(|key| match key.split_once(':') {
            // If a report failed, nobody knows which of its conditions still hold.
            Some((report, _)) => evaluation.detected.get(report).is_none_or(|detected| detected.contains(key)),
            None => !evaluation.well.contains(key),
        });
        before != (self.lines.len(), self.holding.len())
    }

    /// The occurrences that are not sent yet.
    pub fn unsent(&self, evaluation: &Evaluation) -> Vec<Occurrence> {
        let recorded = evaluation.recorded.iter().filter(|(team, seq, occurrence)| self.is_new(team, *seq, occurrence));
        let firing = evaluation.firing.iter().filter_map(|occurrence| occurrence.beyond(&self.holding));
        recorded.map(|(_, _, occurrence)| occurrence.clone()).chain(firing).collect()
    }

    /// A team whose ledger this process has not opened has no new occurrences.
    fn is_new(&self, team: &TeamId, seq: LedgerSeq, occurrence: &Occurrence) -> bool {
        self.lines.get(team).is_some_and(|told| *told < seq) && !self.beyond.contains(&occurrence.key)
    }

    /// Records that an occurrence arrived.
    pub fn note(&mut self, told: &Occurrence, evaluation: &Evaluation) {
        if evaluation.firing.iter().any(|firing| firing.key == told.key) {
            self.holding.extend(told.keys());
            return;
        }
        self.beyond.insert(told.key.clone());
        let Some((team, _, _)) = evaluation.recorded.iter().find(|(_, _, occurrence)| occurrence.key == told.key)
        else {
            return;
        };
        let of_team = || evaluation.recorded.iter().filter(|(of, _, _)| of == team);
        if of_team().all(|(team, seq, occurrence)| !self.is_new(team, *seq, occurrence)) {
            let newest = of_team().map(|(_, seq, _)| *seq).max().unwrap_or_default();
            self.lines.insert(team.clone(), newest);
            of_team().for_each(|(_, _, occurrence)| {
                self.beyond.remove(&occurrence.key);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::test_alert;
    use crate::model::Instant;

    fn named(key: &str) -> Occurrence {
        Occurrence { key: key.to_owned(), ..test_alert(Instant::from_seconds(1_800_000_000)) }
    }

    fn recorded(lines: &[(u64, &str)], opened_at: u64) -> Evaluation {
        let team = TeamId::from("t");
        Evaluation {
            recorded: lines.iter().map(|(seq, key)| (team.clone(), LedgerSeq(*seq), named(key))).collect(),
            opened_at: BTreeMap::from([(team, LedgerSeq(opened_at))]),
            ..Evaluation::default()
        }
    }

    fn keys(told: &SentToTarget, evaluation: &Evaluation) -> Vec<String> {
        told.unsent(evaluation).iter().map(|occurrence| occurrence.key.clone()).collect()
    }

    #[test]
    fn older_ledger_records_send_no_alert_and_new_ones_send_one() {
        let mut told = SentToTarget::default();
        let mut evaluation = recorded(&[(3, "old")], 5);
        assert!(told.settle(&evaluation));
        assert!(keys(&told, &evaluation).is_empty());
        evaluation = recorded(&[(3, "old"), (6, "a"), (6, "b")], 5);
        assert_eq!(keys(&told, &evaluation), ["a", "b"]);
        told.note(&named("a"), &evaluation);
        let path = tempfile::tempdir().unwrap().keep().join("told.json");
        let memory = SentLog { targets: BTreeMap::from([("webhook".to_owned(), told)]) };
        memory.write(&path).unwrap();
        let mut after_restart = SentLog::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let told = after_restart.of("webhook");
        evaluation = recorded(&[(3, "old"), (6, "a"), (6, "b"), (7, "c")], 7);
        told.settle(&evaluation);
        assert_eq!(keys(told, &evaluation), ["b", "c"], "alerts that failed before the restart are sent after it");
        told.note(&named("b"), &evaluation);
        told.note(&named("c"), &evaluation);
        assert!(keys(told, &evaluation).is_empty() && told.beyond.is_empty());
    }

    #[test]
    fn a_condition_sends_one_alert_until_it_ends() {
        let mut told = SentToTarget::default();
        let firing = Evaluation { firing: vec![named("stale")], ..Evaluation::default() };
        assert_eq!(keys(&told, &firing), ["stale"]);
        told.note(&named("stale"), &firing);
        let unknown = Evaluation::default();
        told.settle(&unknown);
        assert!(keys(&told, &firing).is_empty(), "after a restart the state is unknown, so nothing is repeated");
        let well = Evaluation { well: BTreeSet::from(["stale".to_owned()]), ..Evaluation::default() };
        assert!(told.settle(&well));
        assert_eq!(keys(&told, &firing), ["stale"], "the condition ended and began again");
    }
}
