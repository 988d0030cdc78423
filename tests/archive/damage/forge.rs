//! Lines that no program of ours writes, appended to the first team's ledger with numbers, links and hashes that fit.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{
    Archive, Body, Dataset, ExpiredRecord, HoldAdded, HoldRecord, HoldScope, Line, LocalStore, month_of,
};
use annals::model::{Digest, Instant, TeamId};

use super::hands::{file_with, files, put};
use super::world::{TEAM, at};

/// Appends a line to the newest ledger file.
pub fn append(root: &Path, body: Body) {
    let ledgers = files(&root.join("ledger/team=acme"));
    let path = ledgers.iter().rfind(|path| path.extension().is_some_and(|e| e == "jsonl")).unwrap();
    let mut bytes = fs::read(path).unwrap();
    let last = bytes[..bytes.len() - 1].rsplit(|byte| *byte == b'\n').next().unwrap();
    let (mut line, hash) = Line::decode(last).unwrap();
    (line.seq, line.prev, line.at, line.body) = (line.seq.next(), hash, line.at.plus(Duration::from_secs(60)), body);
    bytes.extend(line.encode().0);
    put(path, &bytes);
}

/// What a line says that lets October go.
pub fn october(root: &Path, policy: &str, at: Instant) -> Body {
    let archive = Archive::open(Arc::new(LocalStore::new(root))).unwrap();
    let reader = archive.read(&TeamId::from(TEAM)).unwrap();
    let month = month_of(super::world::at("2026-10-01T00:00:00Z")).start;
    let files: Vec<_> = reader.state().files_of_month(Dataset::Connections, month).collect();
    let sum = files.iter().fold([0_u8; 32], |sum, file| plus(sum, file.rows_digest.0));
    let record = ExpiredRecord {
        policy: policy.to_owned(),
        at,
        dataset: Dataset::Connections,
        month,
        files: files.len() as u64,
        rows: files.iter().map(|file| file.rows).sum(),
        rows_digest: Digest(sum),
    };
    let mut removes: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    removes.sort();
    Body { removes, expired: vec![record], ..Body::default() }
}

fn plus(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    let (mut sum, mut carry) = ([0; 32], 0_u16);
    for place in (0..32).rev() {
        carry += u16::from(a[place]) + u16::from(b[place]);
        sum[place] = carry.to_be_bytes()[1];
        carry >>= 8;
    }
    sum
}

pub fn hold() -> Body {
    let (id, reason) = ("CASE-7".to_owned(), "a claim".to_owned());
    let (now, scope) = (at("2026-11-03T00:05:00Z"), HoldScope::Team);
    let added = HoldAdded { id, reason, by: None, at: now, from: None, to: None, scope, subject: None };
    Body { holds: vec![HoldRecord::Add(added)], ..Body::default() }
}

/// Takes the sealed file away that a forged record is to excuse.
pub fn take_away(root: &Path) {
    fs::remove_file(file_with(root, "-month-")).unwrap();
}
