//! Appends forged lines with matching numbers, links and hashes to the first team's ledger. The program never writes such lines.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Body, Draft, ExpiredRecord, HoldAdded, HoldRecord, HoldScope, LedgerLine, Signer};
use annals::model::Dataset;
use annals::model::path::month_of;
use annals::model::{Digest, Instant, TeamId};
use annals::store::LocalStore;

use super::tampering::{file_with, files, put};
use super::world::{TEAM, World, at, key};

/// Appends a line to the newest ledger file.
pub fn append(root: &Path, body: Body) {
    let ledgers = files(&root.join("ledger/team=acme"));
    let path = ledgers.iter().rfind(|path| path.extension().is_some_and(|e| e == "jsonl")).unwrap();
    let mut bytes = fs::read(path).unwrap();
    let last = bytes[..bytes.len() - 1].rsplit(|byte| *byte == b'\n').next().unwrap();
    let (mut line, hash) = LedgerLine::decode(last).unwrap();
    (line.seq, line.prev, line.at, line.body) = (line.seq.next(), hash, line.at.plus(Duration::from_secs(60)), body);
    bytes.extend(line.encode().0);
    put(path, &bytes);
}

/// The record of a line that expires October.
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

/// Removes the sealed file. A forged record claims that it expired.
pub fn take_away(root: &Path) {
    fs::remove_file(file_with(root, "-month-")).unwrap();
}

/// Expires October, and removes its file, by a line that the program does not write.
fn forged(world: &World, policy: &str) {
    append(&world.archive(), october(&world.archive(), policy, at("2026-11-03T00:06:00Z")));
    take_away(&world.archive());
}

/// October is younger than its class.
pub fn young(world: &World) {
    forged(world, "connections = 1y");
}

pub fn unsigned(world: &World) {
    forged(world, "connections = 1d");
    append(&world.archive(), Body::default());
}

pub fn other_rows(world: &World) {
    let mut body = october(&world.archive(), "connections = 1d", at("2026-11-03T00:06:00Z"));
    body.expired[0].rows -= 1;
    append(&world.archive(), body);
    take_away(&world.archive());
}

pub fn under_hold(world: &World) {
    let body = october(&world.archive(), "connections = 1d", at("2026-11-03T00:07:00Z"));
    append(&world.archive(), hold());
    append(&world.archive(), body);
    take_away(&world.archive());
}

/// Verifies an expiry under one policy with a configuration that has another policy.
pub fn policy_edited(world: &World) {
    let archive = Archive::open(Arc::new(LocalStore::new(world.archive()))).unwrap();
    let signer = Some(Arc::new(Signer { key: key(1), previous: None, signs_all: false }));
    let archive = archive.with_signer(signer);
    let mut writer = archive.writer(&TeamId::from(TEAM)).unwrap();
    let body = october(&world.archive(), "connections = 1d", at("2026-11-03T00:06:00Z"));
    let draft = Draft::from(Body { expired: body.expired, ..Body::default() });
    let _ = writer.commit(draft, at("2026-11-03T00:06:00Z")).unwrap();
    drop(writer);
    put(&world.path("annals.toml"), b"[retention]\nconnections = \"7y\"\n");
}
