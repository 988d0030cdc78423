//! Reads a team's ledger from the first line to the last, and checks every link.

use crate::model::{Digest, Instant, LedgerSeq, TeamId, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Blob, Listed, Store, StoreError, read_all_listed, read_listed};

use super::ledger_files::{LedgerEnd, LedgerText, ledger_files, ledger_path};
use super::line::{ChainHead, LedgerLine, day_of_line};
use super::snapshot::{self, Snapshots};
use super::state::TeamState;
use super::text_lines::{TextLine, TextLines};
use crate::archive::ArchiveError;

/// The day files that a writer requests from a bucket at once.
const DAYS_AT_ONCE: usize = 16;

#[derive(Debug)]
pub struct Replay {
    /// The state after the last line.
    pub state: TeamState,
    /// The last line that was read; `None` if the replay started at the end of the ledger.
    pub last: Option<LastLine>,
    /// The end of the newest file, which can hold no line.
    pub end: LedgerEnd,
    /// The line of the snapshot from which the replay started.
    pub snapshot: Option<LedgerSeq>,
}

#[derive(Debug)]
pub struct LastLine {
    pub day: Instant,
    /// The line's offset in its file.
    pub offset: u64,
    /// The line's bytes with its newline.
    pub bytes: Vec<u8>,
    /// The newline is missing: the append was interrupted at its last byte.
    pub is_unended: bool,
}

impl LastLine {
    /// The end of the line, and so of the ledger.
    pub fn end(&self) -> LedgerEnd {
        LedgerEnd { day: Some(self.day), len: self.offset + self.bytes.len() as u64, torn: 0 }
    }
}

/// A team's ledger and snapshots, as they were listed.
pub struct ReplayFiles<'a> {
    pub store: &'a dyn Store,
    pub archive_id: &'a str,
    pub team: TeamId,
    pub snapshots: Snapshots,
    /// The days of [`ledger_files`].
    pub ledger: Vec<(Instant, u64)>,
}

/// Replays the whole ledger of a team. A team without a ledger has the state before the first line.
///
/// # Errors
/// [`ArchiveError::Damaged`] for the first invalid line. A torn line at the very end is not an error.
pub fn replay(store: &dyn Store, archive_id: &str, team: &TeamId) -> Result<Replay, ArchiveError> {
    let ledger = ledger_files(store, &TeamKey::of(team))?;
    ReplayFiles { store, archive_id, team: team.clone(), snapshots: Snapshots::new(), ledger }.replay()
}

impl<'a> ReplayFiles<'a> {
    /// Lists snapshots before ledgers: a writer creates its first snapshot after its first line.
    pub fn list(store: &'a dyn Store, archive_id: &'a str, team: &TeamId) -> Result<Self, StoreError> {
        let key = TeamKey::of(team);
        let snapshots = snapshot::listed(store, &key)?;
        Ok(Self { store, archive_id, team: team.clone(), snapshots, ledger: ledger_files(store, &key)? })
    }

    fn replay(&self) -> Result<Replay, ArchiveError> {
        self.replay_from(TeamState::genesis(self.archive_id, self.team.clone()), LedgerEnd::default())
    }

    /// Replays for readers, from the newest snapshot on if one exists. Does not check the lines before the snapshot. Lines that were
    /// appended after the list may be missing.
    pub fn replay_for_reading(&self) -> Result<Replay, ArchiveError> {
        match self.replay_from_snapshot(|_, _| true) {
            Some(replay) if replay.last.is_some() || planted::is(Bug::SnapshotAhead) => Ok(replay),
            _ => self.replay(),
        }
    }

    /// Replays for writers, which extend the chain: hashes every line before the snapshot, and checks the links up to the head in
    /// the snapshot. Does not parse these lines; `verify` does.
    pub fn replay_for_writing(&self) -> Result<Replay, ArchiveError> {
        match self.replay_from_snapshot(|state, end| self.leads_to(state, end).unwrap_or(false)) {
            Some(replay) if replay.last.is_some() => Ok(replay),
            _ => self.replay(),
        }
    }

    /// `None` if no snapshot is usable, or a line after it is invalid: the full replay reports the damage.
    fn replay_from_snapshot(&self, is_usable: impl Fn(&TeamState, LedgerEnd) -> bool) -> Option<Replay> {
        let (state, end) =
            snapshot::before_the_end(self.store, &self.snapshots, &self.ledger, self.archive_id, &self.team)?;
        is_usable(&state, end).then(|| self.replay_from(state, end).ok())?
    }

    /// A day's file, as it was listed.
    fn day_file(&self, day: Instant, bytes: u64) -> Listed {
        Listed::new(ledger_path(&TeamKey::of(&self.team), day), bytes, Instant::EARLIEST)
    }

    /// The days' files with their paths. A bucket answers the requests of several days at once.
    fn read_days(&self, days: &[(Instant, u64)]) -> impl Iterator<Item = Result<(Instant, String, Blob), StoreError>> {
        days.chunks(DAYS_AT_ONCE).flat_map(|days| {
            let files: Vec<Listed> = days.iter().map(|(day, bytes)| self.day_file(*day, *bytes)).collect();
            match read_all_listed(self.store, &files) {
                Ok(contents) => {
                    let paths = files.into_iter().map(|file| file.path);
                    days.iter()
                        .zip(paths.zip(contents))
                        .map(|((day, _), (path, content))| Ok((*day, path, content)))
                        .collect()
                }
                Err(error) => vec![Err(error)],
            }
        })
    }

    /// Whether the chain leads from the first line of the ledger to the line of `state`, which ends at `end`.
    fn leads_to(&self, state: &TeamState, end: LedgerEnd) -> Result<bool, ArchiveError> {
        let Some(last) = end.day else { return Ok(false) };
        let mut chain = ChainHead::genesis(&state.archive_id, &state.team_id);
        let days: Vec<(Instant, u64)> = self.ledger.iter().copied().filter(|(day, _)| *day <= last).collect();
        for read in self.read_days(&days) {
            let (day, path, content) = read?;
            for line in TextLines::new(&path, content, 0) {
                let line = line?;
                let is_behind = day == last && line.end() > end.len;
                if is_behind {
                    break;
                }
                if !line.has_newline || chain.follow(&line.text, day).is_none() {
                    return Ok(false);
                }
            }
        }
        Ok((chain.seq, chain.head) == (state.seq, state.head))
    }

    /// Continues a replay at a place in the ledger where its state was `state`.
    fn replay_from(&self, state: TeamState, from: LedgerEnd) -> Result<Replay, ArchiveError> {
        let begins = |day: Instant| from.day.is_none_or(|from| day >= from);
        let files: Vec<(Instant, u64)> = self.ledger.iter().copied().filter(|(day, _)| begins(*day)).collect();
        let snapshot = from.day.map(|_| state.seq);
        let mut replay = Replay { state, last: None, end: from, snapshot };
        for (at, (day, bytes)) in files.iter().enumerate() {
            let file = self.day_file(*day, *bytes);
            let is_last = at + 1 == files.len();
            let begin = if from.day == Some(*day) { from.len } else { 0 };
            let blob = match read_listed(self.store, &file) {
                // A writer has removed the file since the list, because it held no line.
                Err(error) if is_last && error.is_not_found() => break,
                read => read?,
            };
            let end = LedgerEnd { day: Some(*day), len: begin.min(blob.size()), torn: 0 };
            replay.end = follow_file(&mut replay, TextLines::new(&file.path, blob, begin), end, *day, is_last)?;
        }
        Ok(replay)
    }
}

fn follow_file(
    replay: &mut Replay,
    mut lines: TextLines<'_>,
    mut end: LedgerEnd,
    day: Instant,
    is_last: bool,
) -> Result<LedgerEnd, ArchiveError> {
    while let Some(text) = lines.next().transpose()? {
        let damaged = |reason: String| lines.damaged(reason);
        if !text.has_newline && !is_last {
            return Err(damaged("ends in the middle of a line, but later files exist".to_owned()));
        }
        match LedgerText::of(&text, is_last) {
            LedgerText::Torn => return Ok(LedgerEnd { torn: text.len(), ..end }),
            LedgerText::Altered(..) => return Err(damaged("somebody altered its newline".to_owned())),
            LedgerText::Invalid(e) => return Err(damaged(e.to_string())),
            LedgerText::Line(line, hash) | LedgerText::Unended(line, hash) => {
                end.len = text.offset + text.text.len() as u64 + 1;
                follow_line(replay, day, (line, hash), text).map_err(damaged)?;
            }
        }
    }
    Ok(end)
}

fn follow_line(
    replay: &mut Replay,
    day: Instant,
    (line, hash): (LedgerLine, Digest),
    text: TextLine,
) -> Result<(), String> {
    let before = replay.last.as_ref().map(|last| last.day).or(replay.end.day);
    if day != day_of_line(line.at, before) {
        return Err(format!("a line with the time {} stands in the file of another day", line.at));
    }
    let TextLine { offset, text: mut bytes, has_newline, .. } = text;
    bytes.push(b'\n');
    replay.last = Some(LastLine { day, offset, bytes, is_unended: !has_newline });
    replay.state.try_follow(line, hash).map_err(|e| e.to_string())
}
