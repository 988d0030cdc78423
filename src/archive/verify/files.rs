//! Every live file: there, whole, unaltered, and with the rows that the ledger says.

use super::super::ledger::Line;
use super::super::path::{ArchivePath, day_start};
use super::super::publish::staged_path;
use super::super::replay::ledger_days;
use super::super::state::TeamState;
use super::super::store::{Blob, Store, StoreError};
use super::super::table::{RowsDigest, Selection, TableReader, digest_rows};
use super::super::text_lines::TextLines;
use super::super::{ArchiveError, FileEntry};
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport};
use crate::model::Digest;

/// A file may be this much larger than twice what it should be, and is still read to say what is wrong with it.
const SURPLUS_BYTES_READ_MAX: u64 = 16 << 20;

/// Checks the live files of one team.
pub fn check(store: &dyn Store, walk: &Walk, report: &mut VerifyReport) {
    let Some(state) = &walk.state else { return };
    for file in state.files.values() {
        let before = report.faults.len();
        if ArchivePath::parse(&file.path).is_none() {
            // Such a path may lead anywhere: nothing is looked for there.
            report.fault(FaultCode::PathMismatch, &file.path, "the ledger names a path that no archive has");
            note_damage(walk, file, report);
            report.teams[walk.at].files.add(0, 1);
            report.teams[walk.at].rows.add(0, file.rows);
            continue;
        }
        let staged = staged(walk, file);
        let found = look_for(store, file, staged.as_deref());
        let is_pending = matches!(&found, Ok(Some((path, _))) if *path != file.path);
        match found {
            Err(e) => report.fault(FaultCode::Unreadable, &file.path, e),
            Ok(None) => {
                let detail = format!("{} rows of {} are gone", file.rows, file.dataset);
                report.fault(FaultCode::FileMissing, &file.path, detail);
            }
            Ok(Some((path, blob))) => check_content(store, file, &path, &blob, report),
        }
        let is_good = report.faults.len() == before;
        if !is_good && is_replaced(store, walk, state, file) {
            report.faults.truncate(before);
            continue;
        }
        if !is_good {
            note_damage(walk, file, report);
        }
        let team = &mut report.teams[walk.at];
        team.files.add(u64::from(is_good), 1);
        team.rows.add(if is_good { file.rows } else { 0 }, file.rows);
        team.pending += u64::from(is_pending);
    }
}

/// Whether a writer at work has taken the file away since the ledger was walked: lines that continue its chain say so, and it is
/// gone. What stands in its place is checked the next time.
fn is_replaced(store: &dyn Store, walk: &Walk, state: &TeamState, file: &FileEntry) -> bool {
    let is_gone = matches!(store.read(&file.path), Err(e) if e.is_not_found());
    let Some(at) = state.at.filter(|_| is_gone) else { return false };
    let days = ledger_days(store, &walk.key).unwrap_or_default();
    let mut head = (state.seq, state.head);
    for day in days.into_iter().filter(|day| *day >= day_start(at)) {
        let path = ArchivePath::Ledger { team: walk.key.clone(), day }.to_string();
        let Ok(blob) = store.read(&path) else { return false };
        for text in TextLines::new(blob, 0) {
            let Ok(text) = text else { return false };
            if !text.has_newline {
                continue;
            }
            let Ok((line, hash)) = Line::decode(&text.text) else { return false };
            if line.seq <= head.0 {
                continue;
            }
            if (line.seq, line.prev) != (head.0.next(), head.1) {
                return false;
            }
            if line.body.removes.contains(&file.path) {
                return true;
            }
            head = (line.seq, hash);
        }
    }
    false
}

fn note_damage(walk: &Walk, file: &FileEntry, report: &mut VerifyReport) {
    let Some(&seq) = walk.added.get(&file.path) else { return };
    let damage = report.teams[walk.at].damaged(seq, seq);
    damage.first_event = [damage.first_event, file.first].into_iter().flatten().min();
    damage.last_event = damage.last_event.max(file.last);
}

/// Where a file waits that the last line adds.
fn staged(walk: &Walk, file: &FileEntry) -> Option<String> {
    let last = walk.last.as_ref()?;
    let index = last.body.adds.iter().position(|add| add.path == file.path)?;
    Some(staged_path(&walk.key, last, index))
}

/// The file in place, or on its way there. A writer may move it while we look, hence the second look.
fn look_for(store: &dyn Store, file: &FileEntry, staged: Option<&str>) -> Result<Option<(String, Blob)>, StoreError> {
    for path in [Some(file.path.as_str()), staged, staged.map(|_| file.path.as_str())].into_iter().flatten() {
        match store.read(path) {
            Ok(blob) => return Ok(Some((path.to_owned(), blob))),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

fn check_content(store: &dyn Store, file: &FileEntry, path: &str, blob: &Blob, report: &mut VerifyReport) {
    if blob.size() != file.bytes {
        report.fault(FaultCode::FileSize, path, format!("{} bytes, the ledger says {}", blob.size(), file.bytes));
        // A hole costs nobody anything to make, and reading it would.
        if blob.size() > file.bytes.saturating_mul(2).saturating_add(SURPLUS_BYTES_READ_MAX) {
            return report.fault(FaultCode::FileHash, path, "far too large to be what was committed: not read");
        }
    }
    let found = match blob.digest() {
        Ok(found) => found,
        Err(e) => return report.fault(FaultCode::Unreadable, path, e),
    };
    let rows = count(store, path, file);
    if found != file.sha256 {
        let about = match &rows {
            Ok(rows) if *rows == expected(file) => "rewritten, its rows are intact".to_owned(),
            Ok(_) => "its rows are not those that were committed".to_owned(),
            Err(e) => format!("cannot be decoded: {e}"),
        };
        report.fault(FaultCode::FileHash, path, format!("digest {found}, the ledger says {}; {about}", file.sha256));
    }
    match rows {
        Ok((rows, digest)) => {
            if rows != file.rows {
                report.fault(FaultCode::RowCount, path, format!("{rows} rows, the ledger says {}", file.rows));
            }
            if digest != RowsDigest::from(file.rows_digest) {
                let digest = Digest::from(digest);
                let detail = format!("row digest {digest}, the ledger says {}", file.rows_digest);
                report.fault(FaultCode::RowRoot, path, detail);
            }
        }
        Err(e) if found == file.sha256 => report.fault(FaultCode::Unreadable, path, e),
        Err(_) => {}
    }
}

fn expected(file: &FileEntry) -> (u64, RowsDigest) {
    (file.rows, file.rows_digest.into())
}

/// The rows of a file and their digest.
fn count(store: &dyn Store, path: &str, file: &FileEntry) -> Result<(u64, RowsDigest), ArchiveError> {
    let mut found = (0, RowsDigest::default());
    for batch in TableReader::open(store, path, file.dataset, Selection::default())? {
        let batch = batch?;
        let digest = digest_rows(&batch);
        let digest = digest.map_err(|detail| ArchiveError::Table { path: path.to_owned(), detail })?;
        found = (found.0 + batch.num_rows() as u64, found.1.plus(digest));
    }
    Ok(found)
}
