//! Reads a team's ledger from the first line to the last, and checks every link.

use crate::model::path::{ArchivePath, day_start};
use crate::model::{Digest, Instant, LedgerSeq, TeamId, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Blob, Store};

use super::ArchiveError;
use super::ledger::{self, Line, Link, TailKind};
use super::ledger_files::{LedgerEnd, ledger_files};
use super::snapshot;
use super::state::TeamState;
use super::text_lines::{TextLine, TextLines};

/// The result of a replay.
#[derive(Debug)]
pub struct Replay {
    /// The state after the last line.
    pub state: TeamState,
    /// The last line that was read; `None` if the replay started at the end of the ledger.
    pub last: Option<LastLine>,
    /// The place of the next line.
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
    replay_listed_for_reading(store, &ledger_files(store, &TeamKey::of(team))?, archive_id, team)
}

/// Like [`replay_for_reading`], from the days of [`ledger_files`]. Lines after that list may be missing.
pub fn replay_listed_for_reading(
    store: &dyn Store,
    files: &[(Instant, u64)],
    archive_id: &str,
    team: &TeamId,
) -> Result<Replay, ArchiveError> {
    let short = snapshot::before_the_end(store, files, archive_id, team)
        .map(|(state, end)| replay_from(store, files, state, end));
    match short {
        Some(Ok(replay)) if replay.last.is_some() || planted::is(Bug::SnapshotAhead) => Ok(replay),
        // The full replay reports the damage.
        _ => replay_files(store, files, archive_id, team),
    }
}

/// Replays for writers, which extend the chain: hashes every line before the snapshot, and checks the links up to the head in
/// the snapshot. Does not parse these lines; `verify` does.
pub fn replay_for_writing(store: &dyn Store, archive_id: &str, team: &TeamId) -> Result<Replay, ArchiveError> {
    let files = ledger_files(store, &TeamKey::of(team))?;
    let short = snapshot::before_the_end(store, &files, archive_id, team)
        .filter(|(state, end)| leads_to(store, &files, state, *end).unwrap_or(false))
        .map(|(state, end)| replay_from(store, &files, state, end));
    match short {
        Some(Ok(replay)) if replay.last.is_some() => Ok(replay),
        _ => replay_files(store, &files, archive_id, team),
    }
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
    let mut link = Link::genesis(&state.archive_id, &state.team_id);
    for (day, bytes) in files.iter().copied().filter(|(day, _)| *day <= last) {
        let path = ArchivePath::Ledger { team: key.clone(), day }.to_string();
        for (line, number) in TextLines::new(store.read_listed(&path, bytes, None)?, 0).zip(1..) {
            let line = line.map_err(|fault| fault.at(&path, number))?;
            let is_behind = day == last && line.end() > end.len;
            if is_behind {
                break;
            }
            if !line.has_newline || link.follow(&line.text, day).is_none() {
                return Ok(false);
            }
        }
    }
    Ok((link.seq, link.head) == (state.seq, state.head))
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
        replay.end = follow_file(&mut replay, &path, *day, (store.read_listed(&path, *bytes, None)?, begin), is_last)?;
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
    for (line, number) in TextLines::new(blob, begin).zip(1..) {
        let line = line.map_err(|fault| fault.at(path, number))?;
        if !line.has_newline {
            return follow_tail(replay, (path, number), end, &line, is_last);
        }
        match follow_line(replay, day, line.offset, &line.text) {
            Ok(()) => end.len = line.end(),
            Err(_) if is_last && line.is_last && ledger::is_zeroed(&line.text, line.offset) => {
                return Ok(LedgerEnd { torn: line.len(), ..end });
            }
            Err(reason) => return Err(damaged(path, number, reason)),
        }
    }
    Ok(end)
}

/// Handles the bytes after the last newline of a file.
fn follow_tail(
    replay: &mut Replay,
    (path, number): (&str, u64),
    end: LedgerEnd,
    tail: &TextLine,
    is_last: bool,
) -> Result<LedgerEnd, ArchiveError> {
    match ledger::tail_kind(&tail.text) {
        _ if !is_last => Err(damaged(path, number, "ends in the middle of a line, but later files exist".to_owned())),
        TailKind::Altered => Err(damaged(path, number, "somebody altered its newline".to_owned())),
        TailKind::Torn => Ok(LedgerEnd { torn: tail.len(), ..end }),
        TailKind::Unended => {
            let day = end.day.expect("BUG: a file has a day");
            follow_line(replay, day, tail.offset, &tail.text).map_err(|reason| damaged(path, number, reason))?;
            if let Some(last) = &mut replay.last {
                last.is_unended = true;
            }
            Ok(LedgerEnd { len: tail.end() + 1, ..end })
        }
    }
}

fn follow_line(replay: &mut Replay, day: Instant, offset: u64, text: &[u8]) -> Result<(), String> {
    let (line, hash) = Line::decode(text).map_err(|e| e.to_string())?;
    let before = replay.last.as_ref().map(|last| last.day).or(replay.end.day);
    let earliest = before.unwrap_or(day_start(line.at));
    if day != day_start(line.at).max(earliest) {
        return Err(format!("a line with the time {} stands in the file of another day", line.at));
    }
    let bytes = [text, b"\n"].concat();
    replay.last = Some(LastLine { seq: line.seq, hash, day, offset, bytes, is_unended: false });
    replay.state.try_follow(line, hash).map_err(|e| e.to_string())
}

fn damaged(path: &str, line: u64, reason: String) -> ArchiveError {
    ArchiveError::Damaged { path: path.to_owned(), line, reason }
}
