//! Checks every live file: it must exist, be complete and unaltered, and have the rows that the ledger names.

use super::super::salts::{DRAFTS_MONTH, Salts};
use super::super::table::{DigestError, RowsDigest, Selection, TableReader, digest_rows};
use super::super::{ArchiveError, FileEntry};
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport};
use crate::model::Digest;
use crate::model::path::ArchivePath;
use crate::store::{Blob, Store};

/// A file can be this much larger than twice its recorded size, and is still read to describe the damage.
const SURPLUS_BYTES_READ_MAX: u64 = 16 << 20;

/// Checks the live files and the salts of one team.
pub fn check(store: &dyn Store, walk: &Walk, report: &mut VerifyReport) {
    let Some(state) = &walk.state else { return };
    let salts = Salts::for_verifying(store, state);
    for file in state.files.values() {
        let before = report.faults.len();
        check_file(store, file, &salts, report);
        let is_good = report.faults.len() == before;
        if !is_good {
            note_damage(walk, file, report);
        }
        let team = &mut report.teams[walk.at];
        team.files.add(u64::from(is_good), 1);
        team.rows.add(if is_good { file.rows } else { 0 }, file.rows);
    }
    for lost in salts.lost() {
        let then = match lost.month == DRAFTS_MONTH.month() {
            true => "the digests of drafts cannot be checked".to_owned(),
            false => format!("only the file hashes attest the rows of {}", lost.month),
        };
        report.fault(FaultCode::Salt, &lost.path, format!("the salt of {}: {}; {then}", lost.month, lost.reason));
    }
}

fn check_file(store: &dyn Store, file: &FileEntry, salts: &Salts, report: &mut VerifyReport) {
    let path = file.path.as_str();
    if ArchivePath::parse(path).is_none() {
        // Do not open such a path: it could lead anywhere.
        let detail = "the ledger names a path that is not valid in an archive";
        return report.fault(FaultCode::PathMismatch, path, detail);
    }
    match store.read(path) {
        Ok(blob) => check_content(store, file, &blob, salts, report),
        Err(e) if e.is_not_found() => {
            let detail = format!("the file is missing, with {} rows of {}", file.rows, file.dataset);
            report.fault(FaultCode::FileMissing, path, detail);
        }
        Err(e) => report.fault(FaultCode::Unreadable, path, e),
    }
}

fn note_damage(walk: &Walk, file: &FileEntry, report: &mut VerifyReport) {
    let Some(&seq) = walk.added.get(&file.path) else { return };
    let damage = report.teams[walk.at].damaged(seq, seq);
    damage.first_event = [damage.first_event, file.first].into_iter().flatten().min();
    damage.last_event = damage.last_event.max(file.last);
}

fn check_content(store: &dyn Store, file: &FileEntry, blob: &Blob, salts: &Salts, report: &mut VerifyReport) {
    let path = file.path.as_str();
    if blob.size() != file.bytes {
        report.fault(FaultCode::FileSize, path, format!("{} bytes, but the ledger says {}", blob.size(), file.bytes));
        // A sparse file is cheap to create but expensive to read.
        if blob.size() > file.bytes.saturating_mul(2).saturating_add(SURPLUS_BYTES_READ_MAX) {
            let detail = "not read, because it is far larger than the committed file";
            return report.fault(FaultCode::FileHash, path, detail);
        }
    }
    let found = match blob.digest() {
        Ok(found) => found,
        Err(e) => return report.fault(FaultCode::Unreadable, path, e),
    };
    let rows = count(store, file, salts);
    if found != file.sha256 {
        let about = match &rows {
            Ok(rows) if *rows == expected(file) => "somebody rewrote the file, but its rows are intact".to_owned(),
            Ok((_, None)) => "its rows cannot be checked, because a salt is lost".to_owned(),
            Ok(_) => "its rows differ from the committed rows".to_owned(),
            Err(e) => format!("cannot be decoded: {e}"),
        };
        let detail = format!("digest {found}, but the ledger says {}; {about}", file.sha256);
        report.fault(FaultCode::FileHash, path, detail);
    }
    match rows {
        Ok((rows, digest)) => {
            if rows != file.rows {
                report.fault(FaultCode::RowCount, path, format!("{rows} rows, but the ledger says {}", file.rows));
            }
            if let Some(digest) = digest.filter(|digest| *digest != RowsDigest::from(file.rows_digest)) {
                let digest = Digest::from(digest);
                let detail = format!("row digest {digest}, but the ledger says {}", file.rows_digest);
                report.fault(FaultCode::RowRoot, path, detail);
            }
        }
        Err(e) if found == file.sha256 => report.fault(FaultCode::Unreadable, path, e),
        Err(_) => {}
    }
}

fn expected(file: &FileEntry) -> (u64, Option<RowsDigest>) {
    (file.rows, Some(file.rows_digest.into()))
}

/// The rows of a file and their digest; no digest if a salt is lost.
fn count(store: &dyn Store, file: &FileEntry, salts: &Salts) -> Result<(u64, Option<RowsDigest>), ArchiveError> {
    let mut found = (0, Some(RowsDigest::default()));
    for batch in TableReader::open(store, &file.path, file.dataset, Selection::default())? {
        let batch = batch?;
        let digest = match digest_rows(&batch, salts) {
            Ok(digest) => Some(digest),
            Err(DigestError::Salt(_)) => None,
            Err(DigestError::Columns(detail)) => return Err(ArchiveError::Table { path: file.path.clone(), detail }),
        };
        found = (found.0 + batch.num_rows() as u64, found.1.zip(digest).map(|(sum, digest)| sum.plus(digest)));
    }
    Ok(found)
}
