//! Walks a team's ledger line by line, and continues after every fault.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::path::{ArchivePath, ledger_of};
use crate::model::{Digest, Instant, LedgerSeq, Stream, TeamKey};
use crate::store::{Listed, Store};

use super::super::FindingKind;
use super::options::VerifyOptions;
use super::signatures::{Days, Signable, Signatures, lines_of_day, reason_of};
use super::{Anchored, FaultCode, TeamReport, VerifyReport};
use crate::archive::ledger::ledger_files::LedgerText;
use crate::archive::ledger::line::{LedgerLine, LineError, day_of_line};
use crate::archive::ledger::snapshot;
use crate::archive::ledger::state::TeamState;
use crate::archive::ledger::state_error::StateError;

/// The allowed difference between the clocks of two machines.
const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(300);

/// The content of a ledger, as far as it can be followed.
#[derive(Default)]
pub struct Walk {
    pub key: TeamKey,
    /// The state after the last line; `None` if no line could be read.
    pub state: Option<TeamState>,
    /// The line that added each live file.
    pub added: BTreeMap<String, LedgerSeq>,
    pub removed: BTreeMap<String, Removal>,
    /// Valid lines that a given head names by hash or number, by their hashes.
    pub anchored_lines: BTreeMap<Digest, Anchored>,
    /// The archive that all lines name; `None` if they differ.
    pub named_archive: Option<String>,
    /// The team's index in the report.
    pub at: usize,
}

/// The line that removes a file.
#[derive(Debug, Clone)]
pub struct Removal {
    pub seq: LedgerSeq,
    /// The last write time of the line's file.
    pub at: Instant,
    /// The order of erasure that the line carries out.
    pub order: Option<String>,
}

/// One pass over the lines of a team.
struct Walker<'a> {
    walk: Walk,
    options: &'a VerifyOptions,
    report: &'a mut VerifyReport,
    team: TeamReport,
    /// The line before was invalid, so its content and hash are unknown.
    is_lost: bool,
    day: Option<Instant>,
    /// The last write time of the current file.
    modified: Instant,
    /// The lines of the current day.
    signable: Vec<Signable>,
    snapshots: Vec<(String, TeamState)>,
}

impl Walk {
    /// Walks the ledger files of one team, oldest first. `snapshot` is the line of its newest snapshot.
    pub fn over(
        store: &dyn Store,
        options: &VerifyOptions,
        key: TeamKey,
        days: &Days<'_>,
        snapshot: Option<LedgerSeq>,
        report: &mut VerifyReport,
    ) -> Walk {
        let team = TeamReport { ledger: ledger_of(&key), ..TeamReport::default() };
        let mut walker = Walker {
            snapshots: snapshot::newest_intact(store, &key),
            walk: Walk { key, at: report.teams.len(), ..Walk::default() },
            options,
            report,
            team,
            is_lost: false,
            day: None,
            modified: Instant::EARLIEST,
            signable: Vec::new(),
        };
        let archive_id = walker.report.archive_id.as_deref().unwrap_or_default();
        let mut signatures = Signatures::new(archive_id, &walker.walk.key);
        let last_ledger = days.iter().rev().find(|(_, (ledger, _))| ledger.is_some()).map(|(day, _)| *day);
        let last_heads = days.iter().rev().find(|(_, (_, heads))| heads.is_some()).map(|(day, _)| *day);
        for (day, (ledger, heads)) in days {
            if let Some(file) = ledger {
                walker.file(store, file, Some(*day) == last_ledger);
            }
            let lines = std::mem::take(&mut walker.signable);
            signatures.day(store, *heads, lines, Some(*day) == last_heads, walker.report);
        }
        let Walker { walk, report, mut team, is_lost, .. } = walker;
        if let Some(state) = &walk.state {
            team.team_id = Some(state.team_id.clone());
            if let Some(damage) = &mut team.damage {
                // After the first invalid line, nothing is proved.
                damage.last_seq = damage.last_seq.max(state.seq);
            }
            notice_gaps(state, &team.ledger, report);
            // Only the end of an undamaged ledger is its true end.
            if let Some(snapshot) = snapshot.filter(|snapshot| state.seq < *snapshot && !is_lost) {
                report.fault(FaultCode::HeadRollback, &team.ledger, snapshot::ahead_of(state.seq, snapshot));
            }
        }
        let last = walk.state.as_ref().map(|state| state.seq);
        signatures.finish(last, &options.keys, &mut team, report);
        report.teams.push(team);
        walk
    }
}

impl Walker<'_> {
    fn file(&mut self, store: &dyn Store, file: &Listed, is_last: bool) {
        let lines = match lines_of_day(store, file, self.report) {
            Ok(lines) => lines,
            Err(error) => return self.unreadable(&file.path, &error.to_string()),
        };
        let Some(ArchivePath::Ledger { day, .. }) = ArchivePath::parse(&file.path) else { return };
        self.modified = file.modified;
        for (line, number) in lines.zip(1..) {
            let object = format!("{}:{number}", file.path);
            let line = match line {
                Ok(line) => line,
                Err(error) => return self.unreadable(&object, &reason_of(error)),
            };
            match LedgerText::of(&line, is_last) {
                LedgerText::Line(line, hash) => self.line(&object, day, line, hash),
                LedgerText::Invalid(e) => self.invalid(&object, &e),
                LedgerText::Unended(line, hash) => {
                    let detail = "the last line is whole, but its newline is missing";
                    self.report.fault(FaultCode::TornTail, &object, detail);
                    self.line(&object, day, line, hash);
                }
                LedgerText::Altered(line, hash) => {
                    self.mark_bad();
                    self.report.fault(FaultCode::ChainBreak, &object, "somebody altered its newline");
                    self.line(&object, day, line, hash);
                }
                LedgerText::Torn if !is_last => {
                    self.mark_lost();
                    let detail = "the file ends in the middle of a line, but later files exist";
                    self.report.fault(FaultCode::ChainBreak, &object, detail);
                }
                LedgerText::Torn => {
                    let detail = format!("{} bytes of a torn line: the next writer drops them", line.text.len());
                    self.report.fault(FaultCode::TornTail, &object, detail);
                }
            }
        }
        self.day = Some(day);
    }

    fn invalid(&mut self, object: &str, error: &LineError) {
        self.team.commits.total += 1;
        let is_newer = matches!(error, LineError::Version { .. } | LineError::Unknown);
        self.report.fault(if is_newer { FaultCode::Version } else { FaultCode::ChainBreak }, object, error);
        self.mark_lost();
    }

    fn line(&mut self, object: &str, day: Instant, line: LedgerLine, hash: Digest) {
        self.team.commits.total += 1;
        if self.options.wants(&self.walk.key, line.seq, &hash) {
            self.walk.anchored_lines.insert(hash, Anchored { seq: line.seq, at: line.at });
        }
        self.signable.push(Signable { object: object.to_owned(), seq: line.seq, hash, is_signed: false });
        self.note_archive(&line);
        let faults = self.report.faults.len();
        let held = self.walk.state.take();
        let mut state = held.unwrap_or_else(|| TeamState::genesis(&line.archive_id, line.team_id.clone()));
        self.check_place(object, day, &line);
        self.notice_salts(object, &line);
        self.notice_times(object, state.at, &line);
        if self.is_lost {
            // Assume one missing line before this one, so that one fault is not reported twice.
            state.seq = LedgerSeq(line.seq.0.saturating_sub(1));
            state.head = line.prev;
        }
        self.check_link(object, &state, &line);
        if let Err(e) = state.check_expiry_times(&line).and_then(|()| state.check(&line.body)) {
            let is_protected = matches!(e, StateError::Protected(_));
            let code = if is_protected { FaultCode::PolicyViolation } else { FaultCode::State };
            self.report.fault(code, object, e);
        }
        self.is_lost = false;
        if self.report.faults.len() == faults {
            self.team.commits.good += 1;
            self.team.first_at = self.team.first_at.or(Some(line.at));
            self.team.last_at = Some(line.at);
            (self.team.last_seq, self.team.head) = (line.seq, Some(hash));
        } else {
            self.mark_bad();
            self.team.damaged(line.seq);
        }
        self.day = Some(day);
        let order = line.body.erased.as_ref().map(|record| record.order.clone());
        for removed in &line.body.removes {
            self.walk.added.remove(removed);
            let removal = Removal { seq: line.seq, at: self.modified, order: order.clone() };
            self.walk.removed.insert(removed.clone(), removal);
        }
        self.walk.added.extend(line.body.adds.iter().map(|file| (file.path.clone(), line.seq)));
        state.follow(line, hash);
        self.check_snapshots(&state);
        self.walk.state = Some(state);
    }

    /// Readers and writers continue from a snapshot, so it must agree with the lines. A snapshot of another history has another
    /// head, and nobody uses it.
    fn check_snapshots(&mut self, state: &TeamState) {
        for (path, held) in &self.snapshots {
            if (held.seq, held.head) == (state.seq, state.head) && held != state {
                let detail =
                    format!("the snapshot differs from the ledger lines up to {}: remove the snapshot", state.seq);
                self.report.fault(FaultCode::State, path, detail);
            }
        }
    }

    /// Reports the months whose salts an erasure replaces.
    fn notice_salts(&mut self, object: &str, line: &LedgerLine) {
        let Some(record) = line.body.erased.as_ref().filter(|record| record.replaced_salts()) else { return };
        for salt in &line.body.salts {
            let (month, order) = (salt.month.month(), &record.order);
            let detail = format!(
                "order {order} replaced the salt of {month}: only hashes and signatures attest the row digests of {month} in this \
                 line and all lines before it"
            );
            self.report.notice(FaultCode::SaltReplaced, object, detail);
        }
    }

    /// Checks that the line is in the right ledger, and in the file of the right day.
    fn check_place(&mut self, object: &str, day: Instant, line: &LedgerLine) {
        if let Some(id) = self.report.archive_id.clone().filter(|id| *id != line.archive_id) {
            let wrong = StateError::ArchiveId { found: line.archive_id.clone(), expected: id };
            self.report.fault(FaultCode::ArchiveId, object, wrong);
        }
        if TeamKey::of(&line.team_id) != self.walk.key {
            let detail =
                format!("the line belongs to team {}, but stands in the ledger team={}", line.team_id, self.walk.key);
            self.report.fault(FaultCode::ArchiveId, object, detail);
        }
        let expected = day_of_line(line.at, self.day);
        if day != expected {
            let detail =
                format!("the line was written at {}, so it belongs in the file of {}", line.at, expected.day());
            self.report.fault(FaultCode::PathMismatch, object, detail);
        }
    }

    /// Reports each broken rule of the chain; [`Walker::check_place`] reports a wrong archive or team.
    fn check_link(&mut self, object: &str, state: &TeamState, line: &LedgerLine) {
        for broken in state.broken_links(line) {
            let code = match &broken {
                StateError::Seq { .. } => FaultCode::SeqGap,
                StateError::Chain { .. } => FaultCode::ChainBreak,
                StateError::Kind { .. } => FaultCode::Version,
                _ => continue,
            };
            self.report.fault(code, object, broken);
        }
    }

    /// Reports signs that the clock of the writer was wrong: then the times in the lines prove less.
    fn notice_times(&mut self, object: &str, before: Option<Instant>, line: &LedgerLine) {
        if let Some(before) = before
            && line.at < before
        {
            let detail = format!("written at {}, but the line before at {before}: the clock was set back", line.at);
            self.report.notice(FaultCode::TimeRegression, object, detail);
        }
        if let Some(now) = self.options.now
            && line.at > now.plus(CLOCK_AHEAD_MAX)
        {
            let detail = format!("written at {}, but it is {now} now: one of the two clocks is wrong", line.at);
            self.report.notice(FaultCode::TimeFuture, object, detail);
        }
    }

    /// If the manifest names another archive than all lines do, the manifest is wrong.
    fn note_archive(&mut self, line: &LedgerLine) {
        let is_first = self.team.commits.total == 1;
        let named = self.walk.named_archive.take();
        self.walk.named_archive =
            if is_first { Some(line.archive_id.clone()) } else { named.filter(|id| *id == line.archive_id) };
    }

    fn mark_bad(&mut self) {
        self.team.first_bad_line = self.team.first_bad_line.or(Some(self.team.commits.total));
    }

    fn mark_lost(&mut self) {
        self.mark_bad();
        let next = self.walk.state.as_ref().map_or(LedgerSeq(1), |state| state.seq.next());
        self.team.damaged(next);
        self.is_lost = true;
    }

    fn unreadable(&mut self, path: &str, reason: &str) {
        self.mark_lost();
        self.report.fault(FaultCode::Unreadable, path, reason);
    }
}

fn notice_gaps(state: &TeamState, ledger: &str, report: &mut VerifyReport) {
    let gaps = state.findings.iter().filter(|(_, finding)| finding.kind == FindingKind::Gap);
    for (seq, gap) in gaps {
        let time = |at: Option<Instant>| at.map_or_else(|| "?".to_owned(), |at| at.to_string());
        let stream = gap.stream.map_or("all streams", Stream::as_str);
        let detail = format!("{stream} [{}..{}), {}: {}", time(gap.from), time(gap.to), gap.subject, gap.reason);
        report.notice(FaultCode::CoverageGap, format!("{ledger} seq {seq}"), detail);
    }
}

#[cfg(test)]
mod tests {
    use super::super::VerifyOptions;
    use super::*;
    use crate::archive::tests::{commit, history, now, open, team, writer};
    use crate::model::path::day_start;
    use crate::store::MemoryStore;

    #[test]
    fn a_ledger_file_of_any_size_is_read() {
        let disk = MemoryStore::new();
        let _ =
            commit(&mut writer(&open(&(std::sync::Arc::new(disk.clone()) as _))), history().swap_remove(0)).unwrap();
        let key = TeamKey::of(&team());
        let day = day_start(now());
        let path = ArchivePath::Ledger { team: key.clone(), day }.to_string();
        let listed = Listed { path, bytes: 1 << 40, modified: now(), tag: None, irregular: None };
        let days = Days::from([(day, (Some(&listed), None))]);
        let mut report = VerifyReport { archive_id: Some("archive-1".to_owned()), ..VerifyReport::default() };
        let options = VerifyOptions::default();
        let walk = Walk::over(&disk, &options, key, &days, None, &mut report);
        assert!(walk.state.is_some() && report.faults.is_empty(), "{:#?}", report.faults);
    }
}
