//! Bit flips in an archive, one at a time: `verify` names the right file or line.

use crate::model::path::SNAPSHOTS;
use crate::store::MemoryStore;

use super::super::{VerifyOptions, verify};
use super::*;

const FLIPS: usize = 10_000;
const SEED: u64 = 20_261_121;

/// The files of a signed archive of one team: sealed months, amendments, sessions, people, rejects.
fn archive() -> MemoryStore {
    let store = MemoryStore::new();
    let archive = open(&(Arc::new(store.clone()) as Arc<dyn Store>));
    let archive = archive.with_signer(Some(Arc::new(signing::signer(9))));
    let mut writer = writer(&archive);
    for draft in history() {
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
    }
    drop(writer);
    vacuumed(&store);
    store
}

/// The place of a random flip: one in four is in the newest line, the others are anywhere.
fn place(chance: &mut fastrand::Rng, files: &[(String, Bytes)]) -> (usize, usize) {
    let newest: Vec<usize> = (0..files.len()).filter(|at| files[*at].0.starts_with("ledger/")).collect();
    let is_newest = chance.u8(..).is_multiple_of(4);
    let file = if is_newest { newest[chance.usize(..newest.len())] } else { chance.usize(..files.len()) };
    let bytes = &files[file].1;
    let last = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let from = if is_newest { last } else { 0 };
    (file, chance.usize(from * 8..bytes.len() * 8))
}

fn turn_bits(store: &MemoryStore, files: &[(String, Bytes)], places: impl Iterator<Item = (usize, usize)>) {
    for (file, bit) in places {
        let (path, content) = &files[file];
        let mut turned = content.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        store.tamper(path, Some(turned.into()));
        let report = verify(store, &VerifyOptions::default()).unwrap();
        let line = format!("{path}:");
        let is_named = report.faults.iter().any(|fault| fault.object == *path || fault.object.starts_with(&line));
        assert!(is_named, "bit {bit} of {path} is not named: {:#?}", report.faults);
        store.tamper(path, Some(content.clone()));
    }
    assert!(verify(store, &VerifyOptions::default()).unwrap().is_clean());
}

/// Also flips one bit of every byte of the ledger; in the long run, of every byte of the archive.
#[test]
fn each_of_ten_thousand_flipped_bits_is_named() {
    let store = archive();
    // Readers ignore a damaged snapshot.
    let files: Vec<(String, Bytes)> = files_under(&(Arc::new(store.clone()) as Arc<dyn Store>), "")
        .into_iter()
        .filter(|path| !path.starts_with(SNAPSHOTS))
        .map(|path| (path.clone(), store.read(&path).unwrap().to_bytes().unwrap()))
        .collect();
    let mut chance = fastrand::Rng::with_seed(SEED);
    let mut places: Vec<_> = (0..FLIPS).map(|_| place(&mut chance, &files)).collect();
    let is_long = std::env::var_os("ANNALS_LONG").is_some();
    for (file, (path, content)) in files.iter().enumerate() {
        if is_long || path.starts_with("ledger/") {
            places.extend((0..content.len()).map(|at| (file, at * 8 + at % 8)));
        }
    }
    assert!(places.len() > FLIPS + 1_000, "only {} flips", places.len());
    let half = places.len() / 2;
    std::thread::scope(|scope| {
        for places in [&places[..half], &places[half..]] {
            let (store, files) = (store.snapshot(), &files);
            scope.spawn(move || turn_bits(&store, files, places.iter().copied()));
        }
    });
}
