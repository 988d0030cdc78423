//! The state that survives a restart: the sent alerts, and the last check of the archive. Each target receives each occurrence once,
//! also after a restart. An occurrence is identified by its ledger line, or by the condition that still holds. The record is not
//! part of the archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::daemon::Verified;
use crate::files::{self, Links};
use crate::model::{Instant, LedgerSeq, TeamId};

use super::occurrence::{AlertState, Occurrence};

/// The maximum size of the file.
const SENT_LOG_BYTES_MAX: u64 = 256 << 20;
/// The name of each record contains this text, and its shard after it.
const NAME: &str = "alerts";

/// The alerts that each target has received, and the last check of the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentLog {
    targets: BTreeMap<String, SentToTarget>,
    pub(super) verified: Option<Verified>,
}

/// The alerts that one target has received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentToTarget {
    /// The time from which the target receives alerts.
    since: Option<Instant>,
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
        match files::read(path, Links::Refuse, SENT_LOG_BYTES_MAX) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Reads the record. If it does not exist, another number of shards may have written records beside it: each team that `owns`
    /// keeps the newest of these, so that an alert that has not arrived is not lost.
    ///
    /// # Errors
    /// When a record exists and cannot be read.
    pub fn read_or_inherit(path: &Path, owns: impl Fn(&TeamId) -> bool) -> std::io::Result<Self> {
        if path.try_exists()? {
            return Self::read(path);
        }
        let mut records = Vec::new();
        for path in Self::beside(path)? {
            records.push((std::fs::metadata(&path)?.modified()?, Self::read(&path)?));
        }
        records.sort_by_key(|(written_at, _)| *written_at);
        let mut inherited = Self::default();
        for (name, sent) in records.into_iter().flat_map(|(_, record)| record.targets) {
            let target = inherited.of(&name);
            target.since = target.since.into_iter().chain(sent.since).min();
            target.lines.extend(sent.lines.into_iter().filter(|(team, _)| owns(team)));
            target.beyond.extend(sent.beyond);
        }
        Ok(inherited)
    }

    /// The records of all shards of the archive, in the directory of the record at `path`.
    ///
    /// # Errors
    /// When the directory exists and cannot be read.
    pub fn beside(path: &Path) -> std::io::Result<Vec<PathBuf>> {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once(NAME));
        let (Some(directory), Some((start, _))) = (path.parent(), name) else { return Ok(Vec::new()) };
        let start = format!("{start}{NAME}");
        let entries = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut records = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        let is_record = |name: &str| name.starts_with(&start) && name.ends_with(".json");
        records.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_record));
        Ok(records)
    }

    /// Replaces the whole file. A bucket's daemon can be the first that uses the directory of the cache.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Forgets the detections of reports. Their keys are digests of rows, so they confirm a guess of a row. Each detection that still
    /// holds is sent once more. Returns whether there were any.
    pub fn forget_detections(&mut self) -> bool {
        let mut is_changed = false;
        for target in self.targets.values_mut() {
            let before = target.holding.len();
            target.holding.retain(|key| !key.contains(':') || key.starts_with("verify:"));
            is_changed |= target.holding.len() != before;
        }
        is_changed
    }

    pub fn of(&mut self, target: &str) -> &mut SentToTarget {
        self.targets.entry(target.to_owned()).or_default()
    }
}

impl SentToTarget {
    /// From now on the target receives alerts, if it did not before. Returns whether that is new.
    pub fn begin(&mut self, now: Instant) -> bool {
        let is_new = self.since.is_none();
        self.since.get_or_insert(now);
        is_new
    }

    /// Forgets conditions that no longer hold. For a new team, everything that its ledger records at the start of this process
    /// counts as sent, unless Annals found it since the target receives alerts: an earlier process can have ended before its alert.
    /// Returns whether anything changed.
    pub fn settle(&mut self, state: &AlertState) -> bool {
        let before = (self.lines.len(), self.holding.len());
        let is_unsent = |found: &Occurrence| self.since.is_some_and(|since| found.at >= since);
        for (team, opened_at) in &state.opened_at {
            let recorded = state.recorded.iter().filter(|(of, _, found)| of == team && is_unsent(found));
            let before_first = recorded.map(|(_, seq, _)| LedgerSeq(seq.0.saturating_sub(1))).min();
            let sent_to = before_first.map_or(*opened_at, |seq| seq.min(*opened_at));
            self.lines.entry(team.clone()).or_insert(sent_to);
        }
        self.holding.retain(|key| match key.split_once(':') {
            // A failed report shows nothing about its conditions, so they stay.
            Some((report, _)) => state.detected.get(report).is_none_or(|detected| detected.contains(key)),
            None => !state.resolved.contains(key),
        });
        before != (self.lines.len(), self.holding.len())
    }

    /// The occurrences that are not sent yet.
    pub fn unsent(&self, state: &AlertState) -> Vec<Occurrence> {
        let recorded = state.recorded.iter().filter(|(team, seq, occurrence)| self.is_new(team, *seq, occurrence));
        let firing = state.firing.iter().filter_map(|occurrence| occurrence.unsent_part(&self.holding));
        recorded.map(|(_, _, occurrence)| occurrence.clone()).chain(firing).collect()
    }

    /// A team whose ledger this process has not opened has no new occurrences.
    fn is_new(&self, team: &TeamId, seq: LedgerSeq, occurrence: &Occurrence) -> bool {
        self.lines.get(team).is_some_and(|last| *last < seq) && !self.beyond.contains(&occurrence.key)
    }

    /// Records that an occurrence arrived.
    pub fn note(&mut self, sent: &Occurrence, state: &AlertState) {
        if state.firing.iter().any(|firing| firing.key == sent.key) {
            self.holding.extend(sent.keys());
            return;
        }
        self.beyond.insert(sent.key.clone());
        let Some((team, _, _)) = state.recorded.iter().find(|(_, _, occurrence)| occurrence.key == sent.key) else {
            return;
        };
        let of_team = || state.recorded.iter().filter(|(of, _, _)| of == team);
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
    use std::time::Duration;

    use super::*;
    use crate::alert::test_alert;

    fn named(key: &str) -> Occurrence {
        Occurrence { key: key.to_owned(), ..test_alert(Instant::from_seconds(1_800_000_000)) }
    }

    fn recorded(lines: &[(u64, &str)], opened_at: u64) -> AlertState {
        let team = TeamId::from("t");
        AlertState {
            recorded: lines.iter().map(|(seq, key)| (team.clone(), LedgerSeq(*seq), named(key))).collect(),
            opened_at: BTreeMap::from([(team, LedgerSeq(opened_at))]),
            ..AlertState::default()
        }
    }

    fn keys(target: &SentToTarget, state: &AlertState) -> Vec<String> {
        target.unsent(state).iter().map(|occurrence| occurrence.key.clone()).collect()
    }

    #[test]
    fn older_ledger_records_send_no_alert_and_new_ones_send_one() {
        let mut target = SentToTarget::default();
        let mut state = recorded(&[(3, "old")], 5);
        assert!(target.settle(&state));
        assert!(keys(&target, &state).is_empty());
        state = recorded(&[(3, "old"), (6, "a"), (6, "b")], 5);
        assert_eq!(keys(&target, &state), ["a", "b"]);
        target.note(&named("a"), &state);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("not/yet/there/sent.json");
        let memory = SentLog { targets: BTreeMap::from([("webhook".to_owned(), target)]), verified: None };
        memory.write(&path).unwrap();
        let mut after_restart = SentLog::read(&path).unwrap();
        let target = after_restart.of("webhook");
        state = recorded(&[(3, "old"), (6, "a"), (6, "b"), (7, "c")], 7);
        target.settle(&state);
        assert_eq!(keys(target, &state), ["b", "c"], "alerts that failed before the restart are sent after it");
        target.note(&named("b"), &state);
        target.note(&named("c"), &state);
        assert!(keys(target, &state).is_empty() && target.beyond.is_empty());
    }

    #[test]
    fn a_gap_of_an_earlier_process_that_ended_before_its_alert_is_sent() {
        // The gap is of this second.
        let found_at = Instant::from_seconds(1_800_000_000);
        let state = recorded(&[(3, "gap")], 5);
        for (since, expected) in [(found_at, &["gap"][..]), (found_at.plus(Duration::from_secs(1)), &[])] {
            let mut target = SentToTarget::default();
            assert!(target.begin(since) && !target.begin(found_at), "a restart does not change the time");
            target.settle(&state);
            assert_eq!(keys(&target, &state), expected, "alerts since {since}");
        }
    }

    #[test]
    fn another_number_of_shards_keeps_the_newest_record_of_each_team() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for (age, name, lines) in [
            (9, "alerts.json", [("a", 2), ("b", 2)]),
            (5, "alerts-1-of-3.json", [("a", 7), ("c", 7)]),
            (1, "other.json", [("a", 9), ("b", 9)]),
        ] {
            let mut log = SentLog::default();
            log.of("webhook").lines = lines.map(|(team, line)| (TeamId::from(team), LedgerSeq(line))).into();
            log.of("webhook").beyond.insert(format!("sent by {name}"));
            log.write(&at(name)).unwrap();
            let written_at = std::time::UNIX_EPOCH + Duration::from_secs(1_800_000_000 - age);
            std::fs::File::options().write(true).open(at(name)).unwrap().set_modified(written_at).unwrap();
        }
        let mut log = SentLog::read_or_inherit(&at("alerts-2-of-2.json"), |team| team.as_str() != "c").unwrap();
        let target = log.of("webhook");
        assert_eq!(target.lines, BTreeMap::from([("a".into(), LedgerSeq(7)), ("b".into(), LedgerSeq(2))]));
        assert_eq!(target.beyond.len(), 2);
        let own = SentLog::read_or_inherit(&at("alerts.json"), |_| true).unwrap();
        assert_eq!(own, SentLog::read(&at("alerts.json")).unwrap(), "an own record is enough");
    }

    #[test]
    fn an_erasure_leaves_no_digest_of_a_row_and_keeps_the_conditions() {
        let mut log = SentLog::default();
        let firing = AlertState {
            firing: ["stale", "verify:f", "r02:0123456789abcdef"].map(named).into(),
            ..AlertState::default()
        };
        for occurrence in &firing.firing {
            log.of("webhook").note(occurrence, &firing);
        }
        assert!(log.forget_detections() && !log.forget_detections());
        assert_eq!(keys(log.of("webhook"), &firing), ["r02:0123456789abcdef"]);
    }

    #[test]
    fn a_condition_sends_one_alert_until_it_ends() {
        let mut target = SentToTarget::default();
        let firing = AlertState { firing: vec![named("stale")], ..AlertState::default() };
        assert_eq!(keys(&target, &firing), ["stale"]);
        target.note(&named("stale"), &firing);
        let unknown = AlertState::default();
        target.settle(&unknown);
        assert!(keys(&target, &firing).is_empty(), "after a restart the state is unknown, so nothing is repeated");
        let resolved = AlertState { resolved: BTreeSet::from(["stale".to_owned()]), ..AlertState::default() };
        assert!(target.settle(&resolved));
        assert_eq!(keys(&target, &firing), ["stale"], "the condition ended and began again");
    }
}
