//! Checks every live file: it must exist, be complete and unaltered, and have the rows that the ledger names.

use std::convert::Infallible;

use super::super::FileEntry;
use super::super::salts::{DRAFTS_MONTH, Salts};
use super::super::table::{digest_file, threads_for};
use super::ledgers::Walk;
use super::{FaultCode, VerifyFault, VerifyReport};
use crate::archive::ledger::rows_sum::RowsSum;
use crate::model::path::ArchivePath;
use crate::store::{Blob, Store};
use crate::threads::each;

/// A file can be this much larger than twice its recorded size, and is still read to describe the damage.
const SURPLUS_BYTES_READ_MAX: u64 = 16 << 20;

/// Checks the live files and the salts of all teams, several files in parallel.
pub fn check(store: &dyn Store, walks: &[Walk], report: &mut VerifyReport) {
    let readable = walks.iter().filter_map(|walk| Some((walk, walk.state.as_ref()?)));
    let teams: Vec<_> = readable.map(|(walk, state)| (walk, state, Salts::for_verifying(store, state))).collect();
    let files =
        || teams.iter().flat_map(|(walk, state, salts)| state.files.values().map(move |file| (*walk, salts, file)));
    let threads = threads_for(files().map(|(.., file)| file.rows));
    let check = |(walk, salts, file)| Ok::<_, Infallible>((walk, file, check_file(store, file, salts)));
    let Ok(checked) = each(files(), threads, check);
    for (walk, file, faults) in checked {
        if !faults.is_empty() {
            note_damage(walk, file, report);
        }
        let team = &mut report.teams[walk.at];
        team.files.add(u64::from(faults.is_empty()), 1);
        team.rows.add(if faults.is_empty() { file.rows } else { 0 }, file.rows);
        report.faults.extend(faults);
    }
    for lost in teams.iter().flat_map(|(.., salts)| salts.lost()) {
        let then = match lost.month == DRAFTS_MONTH.month() {
            true => "the digests of drafts cannot be checked".to_owned(),
            false => format!("only the file hashes attest the rows of {}", lost.month),
        };
        report.fault(FaultCode::Salt, &lost.path, format!("the salt of {}: {}; {then}", lost.month, lost.reason));
    }
}

fn note_damage(walk: &Walk, file: &FileEntry, report: &mut VerifyReport) {
    let Some(&seq) = walk.added.get(&file.path) else { return };
    let damage = report.teams[walk.at].damaged(seq);
    damage.first_event = [damage.first_event, file.first].into_iter().flatten().min();
    damage.last_event = damage.last_event.max(file.last);
}

fn check_file(store: &dyn Store, file: &FileEntry, salts: &Salts) -> Vec<VerifyFault> {
    let fault = |code, detail: String| vec![VerifyFault { code, object: file.path.clone(), detail }];
    if ArchivePath::parse(&file.path).is_none() {
        // Do not open such a path: it could lead anywhere.
        return fault(FaultCode::PathMismatch, "the ledger names a path that is not valid in an archive".to_owned());
    }
    match store.read(&file.path) {
        Ok(blob) => check_content(store, file, &blob, salts),
        Err(e) if e.is_not_found() => {
            let detail = format!("the file is missing, with {} rows of {}", file.rows, file.dataset);
            fault(FaultCode::FileMissing, detail)
        }
        Err(e) => fault(FaultCode::Unreadable, e.to_string()),
    }
}

fn check_content(store: &dyn Store, file: &FileEntry, blob: &Blob, salts: &Salts) -> Vec<VerifyFault> {
    let path = file.path.as_str();
    let mut faults = Vec::new();
    let mut fault = |code, detail: String| faults.push(VerifyFault { code, object: path.to_owned(), detail });
    if blob.size() != file.bytes {
        fault(FaultCode::FileSize, format!("{} bytes, but the ledger says {}", blob.size(), file.bytes));
        // A sparse file is cheap to create but expensive to read.
        if blob.size() > file.bytes.saturating_mul(2).saturating_add(SURPLUS_BYTES_READ_MAX) {
            fault(FaultCode::FileHash, "not read, because it is far larger than the committed file".to_owned());
            return faults;
        }
    }
    let found = match blob.digest() {
        Ok(found) => found,
        Err(e) => {
            fault(FaultCode::Unreadable, e.to_string());
            return faults;
        }
    };
    // Without a salt, the rows have no digest.
    let rows = digest_file(store, file, salts).map(|(rows, sum)| (rows, sum.ok()));
    if found != file.sha256 {
        let about = match &rows {
            Ok((_, Some(sum))) if *sum == file.sum() => "somebody rewrote the file, but its rows are intact".to_owned(),
            Ok((_, None)) => "its rows cannot be checked, because a salt is lost".to_owned(),
            Ok(_) => "its rows differ from the committed rows".to_owned(),
            Err(e) => format!("cannot be decoded: {e}"),
        };
        fault(FaultCode::FileHash, format!("digest {found}, but the ledger says {}; {about}", file.sha256));
    }
    match rows {
        Ok((rows, sum)) => {
            if rows != file.rows {
                fault(FaultCode::RowCount, format!("{rows} rows, but the ledger says {}", file.rows));
            }
            if let Some(RowsSum { digest, .. }) = sum.filter(|sum| sum.digest != file.rows_digest) {
                fault(FaultCode::RowRoot, format!("row digest {digest}, but the ledger says {}", file.rows_digest));
            }
        }
        Err(e) if found == file.sha256 => fault(FaultCode::Unreadable, e.to_string()),
        Err(_) => {}
    }
    faults
}
