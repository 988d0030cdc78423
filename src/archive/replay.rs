//! Reads a team's ledger from the first line to the last, and checks every link.

use crate::model::path::ArchivePath;
use crate::model::{Digest, Instant, LedgerSeq, TeamId, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Blob, Store, StoreError};

use super::ArchiveError;
use super::ledger::{ChainHead, LedgerLine, day_of_line};
use super::ledger_files::{LedgerEnd, LedgerText, ledger_files};
use super::snapshot::{self, Snapshots};
use super::state::TeamState;
use super::text_lines::{TextLine, TextLines};

/// The result of a replay.
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
    pub seq: LedgerSeq,
    pub hash: Digest,
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
#[derive(Debug, Default)]
pub struct ReplayFiles {
    pub snapshots: Snapshots,
    /// The days of [`ledger_files`].
    pub ledger: Vec<(Instant, u64)>,
}

impl ReplayFiles {
    /// Lists snapshots before ledgers: a writer creates its first snapshot after its first line.
    pub fn list(store: &dyn Store, key: &TeamKey) -> Result<Self, StoreError> {
        let snapshots = snapshot::listed(store, key)?;
        Ok(Self { snapshots, ledger: ledger_files(store, key)? })
    }
}

/// Replays the whole ledger of a team. A team without a ledger has the state before the first line.
///
/// # Errors
/// [`ArchiveError::Damaged`] for the first invalid line. A torn line at the very end is not an error.
pub fn replay(store: &dyn Store, archive_id: &str, team: &TeamId) -> Result<Replay, ArchiveError> {
    let files = ledger_files(store, &TeamKey::of(team))?;
    replay_files(store, &files, archive_id, team)
}

fn replay_files(
    store: &dyn Store,
    files: &[(Instant, u64)],
    archive_id: &str,
    team: &TeamId,
) -> Result<Replay, ArchiveError> {
    replay_from(store, files, TeamState::genesis(archive_id, team.clone()), LedgerEnd::default())
}

/// Replays for readers, from the newest snapshot on if one exists. Does not check the lines before the snapshot.
pub fn replay_for_reading(store: &dyn Store, archive_id: &str, team: &TeamId) -> Result<Replay, ArchiveError> {
    replay_listed_for_reading(store, &ReplayFiles::list(store, &TeamKey::of(team))?, archive_id, team)
}

/// Like [`replay_for_reading`], from listed files. Lines that were appended after the list may be missing.
pub fn replay_listed_for_reading(
    store: &dyn Store,
    files: &ReplayFiles,
    archive_id: &str,
    team: &TeamId,
) -> Result<Replay, ArchiveError> {
    match replay_from_snapshot(store, files, archive_id, team, |_, _| true) {
        Some(replay) if replay.last.is_some() || planted::is(Bug::SnapshotAhead) => Ok(replay),
        _ => replay_files(store, &files.ledger, archive_id, team),
    }
}

/// Replays for writers, which extend the chain: hashes every line before the snapshot, and checks the links up to the head in
/// the snapshot. Does not parse these lines; `verify` does.
pub fn replay_for_writing(
    store: &dyn Store,
    files: &ReplayFiles,
    archive_id: &str,
    team: &TeamId,
) -> Result<Replay, ArchiveError> {
    let is_proved = |state: &TeamState, end| leads_to(store, &files.ledger, state, end).unwrap_or(false);
    match replay_from_snapshot(store, files, archive_id, team, is_proved) {
        Some(replay) if replay.last.is_some() => Ok(replay),
        _ => replay_files(store, &files.ledger, archive_id, team),
    }
}

/// `None` if no snapshot is usable, or a line after it is invalid: the full replay reports the damage.
fn replay_from_snapshot(
    store: &dyn Store,
    ReplayFiles { snapshots, ledger }: &ReplayFiles,
    archive_id: &str,
    team: &TeamId,
    is_usable: impl Fn(&TeamState, LedgerEnd) -> bool,
) -> Option<Replay> {
    let (state, end) = snapshot::before_the_end(store, snapshots, ledger, archive_id, team)?;
    is_usable(&state, end).then(|| replay_from(store, ledger, state, end).ok())?
}

/// Whether the chain leads from the first line of the ledger to the line of `state`, which ends at `end`.
fn leads_to(
    store: &dyn Store,
    files: &[(Instant, u64)],
    state: &TeamState,
    end: LedgerEnd,
) -> Result<bool, ArchiveError> {
    let key = TeamKey::of(&state.team_id);
    let Some(last) = end.day else { return Ok(false) };
    let mut chain = ChainHead::genesis(&state.archive_id, &state.team_id);
    for (day, bytes) in files.iter().copied().filter(|(day, _)| *day <= last) {
        let path = ArchivePath::Ledger { team: key.clone(), day }.to_string();
        for (line, number) in TextLines::new(store.read_listed(&path, bytes, None)?, 0).zip(1..) {
            let line = line.map_err(|fault| fault.at(&path, number))?;
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
fn replay_from(
    store: &dyn Store,
    files: &[(Instant, u64)],
    state: TeamState,
    from: LedgerEnd,
) -> Result<Replay, ArchiveError> {
    let key = TeamKey::of(&state.team_id);
    let begins = |day: Instant| from.day.is_none_or(|from| day >= from);
    let files: Vec<(Instant, u64)> = files.iter().copied().filter(|(day, _)| begins(*day)).collect();
    let snapshot = from.day.map(|_| state.seq);
    let mut replay = Replay { state, last: None, end: from, snapshot };
    for (at, (day, bytes)) in files.iter().enumerate() {
        let path = ArchivePath::Ledger { team: key.clone(), day: *day }.to_string();
        let is_last = at + 1 == files.len();
        let begin = if from.day == Some(*day) { from.len } else { 0 };
        let blob = match store.read_listed(&path, *bytes, None) {
            // A writer has removed the file since the list, because it held no line.
            Err(error) if is_last && error.is_not_found() => break,
            read => read?,
        };
        replay.end = follow_file(&mut replay, &path, *day, (blob, begin), is_last)?;
    }
    Ok(replay)
}

fn follow_file(
    replay: &mut Replay,
    path: &str,
    day: Instant,
    (blob, begin): (Blob, u64),
    is_last: bool,
) -> Result<LedgerEnd, ArchiveError> {
    let mut end = LedgerEnd { day: Some(day), len: begin.min(blob.size()), torn: 0 };
    for (text, number) in TextLines::new(blob, begin).zip(1..) {
        let text = text.map_err(|fault| fault.at(path, number))?;
        let damaged = |reason: String| ArchiveError::Damaged { path: path.to_owned(), line: number, reason };
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
    replay.last = Some(LastLine { seq: line.seq, hash, day, offset, bytes, is_unended: !has_newline });
    replay.state.try_follow(line, hash).map_err(|e| e.to_string())
}
