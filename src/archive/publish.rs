//! The third step of a commit, and the whole of recovery: what the last line says is made so.

use crate::planted::{self, Bug};

use super::ledger::Line;
use super::path::{ArchivePath, TeamKey, staging_of};
use super::replay::Replay;
use super::store::{Blob, Store, StoreError, Tail, Verb};
use super::{ArchiveError, Body, FileEntry};

/// Where the file that a line adds as number `index` waits.
pub fn staged_path(key: &TeamKey, line: &Line, index: usize) -> String {
    ArchivePath::Staging { team: key.clone(), seq: line.seq, index }.to_string()
}

/// Moves what the line adds in place, then takes away what it removes. Done again, it changes nothing.
///
/// # Errors
/// When the store fails; the commit stands, and this is to be done again.
pub fn publish(store: &dyn Store, key: &TeamKey, line: &Line) -> Result<(), StoreError> {
    let staged: Vec<String> = (0..line.body.adds.len()).map(|index| staged_path(key, line, index)).collect();
    let moves = staged.iter().zip(&line.body.adds).map(|(staged, file)| (staged.as_str(), file.path.as_str()));
    store.publish_all(&moves.collect::<Vec<_>>())?;
    store.remove_all(&line.body.removes.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Makes so what the ledger says: cuts what an interrupted append left, makes the last line durable again, publishes its
/// files and empties staging. Returns how many files were staged.
///
/// # Errors
/// When the store fails, or a file of the last line is not as the line says.
pub fn recover(store: &dyn Store, key: &TeamKey, replay: &Replay) -> Result<usize, ArchiveError> {
    let ledger = |day| ArchivePath::Ledger { team: key.clone(), day }.to_string();
    if let (Some(day), 1..) = (replay.end.day, replay.end.torn)
        && !planted::is(Bug::TornLineKept)
    {
        store.append(&ledger(day), Tail { keep: replay.end.len, torn: replay.end.torn }, &[])?;
    }
    let mut staged = 0;
    if let Some(last) = &replay.last {
        check_staged(store, key, &last.line)?;
        // The writer before may have died between writing and syncing this line.
        let torn = if last.is_unended { last.bytes.len() as u64 - 1 } else { 0 };
        store.append(&ledger(last.day), Tail { keep: last.offset, torn }, &last.bytes)?;
        staged = store.list(&staging_of(key))?.len();
        if !planted::is(Bug::NoRollForward) {
            publish(store, key, &last.line)?;
        }
    }
    let left = clear_staging(store, key)?;
    Ok(staged.max(left))
}

/// Checks that every file of the last line is staged as it was written, or in place.
fn check_staged(store: &dyn Store, key: &TeamKey, line: &Line) -> Result<(), ArchiveError> {
    for (index, file) in line.body.adds.iter().enumerate() {
        let staged = staged_path(key, line, index);
        match found(store, &staged)? {
            Some(blob) => {
                let digest = blob.digest().map_err(|e| StoreError::io(Verb::Read, &staged, e))?;
                if digest != file.sha256 {
                    return Err(altered(staged, &blob, digest.to_string(), file));
                }
            }
            None => match found(store, &file.path)? {
                Some(blob) if blob.size() == file.bytes => {}
                Some(blob) => return Err(altered(file.path.clone(), &blob, "not computed".to_owned(), file)),
                None => return Err(ArchiveError::FileMissing { path: file.path.clone(), seq: line.seq }),
            },
        }
    }
    Ok(())
}

/// Whether everything that a line adds is in place.
///
/// # Errors
/// When the store fails otherwise than by not finding a file.
pub fn is_in_place(store: &dyn Store, body: &Body) -> Result<bool, StoreError> {
    for file in &body.adds {
        if found(store, &file.path)?.is_none_or(|blob| blob.size() != file.bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Empties a team's staging directory and returns how many files that were.
///
/// # Errors
/// When the store fails.
pub fn clear_staging(store: &dyn Store, key: &TeamKey) -> Result<usize, StoreError> {
    let listed = store.list(&staging_of(key))?;
    store.remove_all(&listed.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>())?;
    Ok(listed.len())
}

fn found(store: &dyn Store, path: &str) -> Result<Option<Blob>, StoreError> {
    match store.read(path) {
        Ok(blob) => Ok(Some(blob)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

fn altered(path: String, blob: &Blob, found: String, file: &FileEntry) -> ArchiveError {
    ArchiveError::FileAltered { path, bytes: blob.size(), found, expected: file.sha256.to_string() }
}
