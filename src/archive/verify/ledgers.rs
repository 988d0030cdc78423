//! A team's ledger line by line, going on behind every fault.

use std::collections::BTreeSet;

use crate::model::{Digest, Instant};

use super::super::ledger::{self, Cut, Line, LineError, TailKind};
use super::super::path::{ArchivePath, TeamKey, day_start, ledger_of};
use super::super::rules::StateError;
use super::super::state::TeamState;
use super::super::store::{Listed, Store};
use super::{FaultCode, TeamReport, VerifyReport};

/// What a ledger says, as far as it can be followed.
pub struct Walk {
    pub key: TeamKey,
    /// The state after the last line; none when no line could be read.
    pub state: Option<TeamState>,
    /// The last line: its files may still be on their way.
    pub last: Option<Line>,
    /// The hashes of all lines that check by themselves.
    pub hashes: BTreeSet<Digest>,
    /// The team's place among the report's teams.
    pub at: usize,
}

/// One pass over the lines of a team.
struct Walker<'a> {
    walk: Walk,
    archive_id: Option<&'a str>,
    report: &'a mut VerifyReport,
    team: TeamReport,
    /// The line before did not check: what it was and how it hashed is not known.
    is_lost: bool,
    day: Option<Instant>,
    lines: u64,
}

impl Walk {
    /// Walks the ledger files of one team, oldest first.
    pub fn over(
        store: &dyn Store,
        archive_id: Option<&str>,
        key: TeamKey,
        files: &[&Listed],
        report: &mut VerifyReport,
    ) -> Walk {
        let team = TeamReport { ledger: ledger_of(&key), ..TeamReport::default() };
        let at = report.teams.len();
        let walk = Walk { key, state: None, last: None, hashes: BTreeSet::new(), at };
        let mut walker = Walker { walk, archive_id, report, team, is_lost: false, day: None, lines: 0 };
        for (number, file) in files.iter().enumerate() {
            walker.file(store, file, number + 1 == files.len());
        }
        let Walker { mut walk, report, mut team, .. } = walker;
        if let Some(state) = &walk.state {
            team.team_id = Some(state.team_id.clone());
        }
        walk.at = report.teams.len();
        report.teams.push(team);
        walk
    }
}

impl Walker<'_> {
    fn file(&mut self, store: &dyn Store, file: &Listed, is_last: bool) {
        if let Some(what) = &file.irregular {
            self.report.fault(FaultCode::Unreadable, &file.path, what);
        }
        let content = match store.read(&file.path).map(|blob| blob.to_bytes()) {
            Ok(Ok(content)) => content,
            Ok(Err(e)) => return self.unreadable(&file.path, &e.to_string()),
            Err(e) => return self.unreadable(&file.path, &e.to_string()),
        };
        let Some(ArchivePath::Ledger { day, .. }) = ArchivePath::parse(&file.path) else { return };
        let Cut { lines, tail } = ledger::cut(&content);
        let mut number = 0;
        for line in lines.split_inclusive(|b| *b == b'\n') {
            number += 1;
            self.line(&format!("{}:{number}", file.path), day, &line[..line.len() - 1]);
        }
        let object = format!("{}:{}", file.path, number + 1);
        match ledger::tail_kind(tail) {
            TailKind::Nothing => {}
            TailKind::Unended => {
                self.report.fault(FaultCode::TornTail, &object, "a whole line without its newline");
                self.line(&object, day, tail);
            }
            TailKind::Altered => {
                self.bad();
                self.report.fault(FaultCode::ChainBreak, &object, "its newline was altered");
                self.line(&object, day, &tail[..tail.len() - 1]);
            }
            TailKind::Torn if is_last => {
                let detail = format!("{} bytes of an unfinished line; opening for writing drops them", tail.len());
                self.report.fault(FaultCode::TornTail, &object, detail);
            }
            TailKind::Torn => {
                self.lost();
                self.report.fault(FaultCode::ChainBreak, &object, "ends in the middle of a line, and lines follow");
            }
        }
        self.day = Some(day);
    }

    fn line(&mut self, object: &str, day: Instant, text: &[u8]) {
        self.lines += 1;
        self.team.commits.total += 1;
        let (line, hash) = match Line::decode(text) {
            Ok(decoded) => decoded,
            Err(e) => {
                let is_newer = matches!(e, LineError::Version { .. } | LineError::Unknown);
                self.report.fault(if is_newer { FaultCode::Version } else { FaultCode::ChainBreak }, object, e);
                return self.lost();
            }
        };
        self.walk.hashes.insert(hash);
        let faults = self.report.faults.len();
        let held = self.walk.state.take();
        let is_first = held.is_none() && self.lines == 1;
        let mut state = held.unwrap_or_else(|| TeamState::genesis(&line.archive_id, line.team_id.clone()));
        self.check_place(object, day, &line);
        if self.is_lost {
            // One line is missing between what is known and this one; the next fault is its own, not an echo.
            state.seq = crate::model::LedgerSeq(line.seq.0.saturating_sub(1));
            state.head = line.prev;
        }
        self.check_link(object, &state, &line, is_first);
        if let Err(e) = state.check(&line.body) {
            self.report.fault(FaultCode::State, object, e);
        }
        self.is_lost = false;
        if self.report.faults.len() == faults {
            self.team.commits.good += 1;
            self.team.first_at = self.team.first_at.or(Some(line.at));
            self.team.last_at = Some(line.at);
            (self.team.last_seq, self.team.head) = (line.seq, Some(hash));
        } else {
            self.bad();
        }
        self.day = Some(day);
        self.walk.last = Some(line.clone());
        state.follow(line, hash);
        self.walk.state = Some(state);
    }

    /// Whether the line stands in the right ledger, in the file of the right day.
    fn check_place(&mut self, object: &str, day: Instant, line: &Line) {
        if let Some(id) = self.archive_id
            && line.archive_id != id
        {
            let detail = format!("a line of archive {}, this is archive {id}", line.archive_id);
            self.report.fault(FaultCode::ArchiveId, object, detail);
        }
        if TeamKey::of(&line.team_id) != self.walk.key {
            let detail = format!("a line of team {} in the ledger team={}", line.team_id, self.walk.key);
            self.report.fault(FaultCode::ArchiveId, object, detail);
        }
        let expected = self.day.map_or(day_start(line.at), |held| held.max(day_start(line.at)));
        if day != expected {
            let detail = format!("written at {}, belongs into the file of {}", line.at, expected.day());
            self.report.fault(FaultCode::PathMismatch, object, detail);
        }
    }

    fn check_link(&mut self, object: &str, state: &TeamState, line: &Line, is_first: bool) {
        let next = state.seq.next();
        if line.seq != next {
            let detail = format!("line {}, expected {next}", line.seq);
            self.report.fault(FaultCode::SeqGap, object, detail);
        }
        if line.prev != state.head {
            let what = if is_first { "the beginning of a ledger" } else { "the line before" };
            let detail = format!("follows {}, {what} is {}", line.prev, state.head);
            self.report.fault(FaultCode::ChainBreak, object, detail);
        }
        if let Err(e @ StateError::Kind { .. }) = state.check_link(line) {
            self.report.fault(FaultCode::Version, object, e);
        }
    }

    fn bad(&mut self) {
        self.team.first_bad_line = self.team.first_bad_line.or(Some(self.lines));
    }

    fn lost(&mut self) {
        self.bad();
        self.is_lost = true;
    }

    fn unreadable(&mut self, path: &str, reason: &str) {
        self.lost();
        self.report.fault(FaultCode::Unreadable, path, reason);
    }
}
