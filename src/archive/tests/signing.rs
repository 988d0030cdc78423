//! Signed heads: the signed lines, the effect of interruptions, and the handover between keys.

use crate::model::TeamKey;
use crate::store::{Fault, FaultyStore, MemoryStore};

use super::super::{
    FaultCode, Head, KnownHead, PublicKey, SecretKey, Signer, Verdict, VerifyOptions, VerifyReport, verify,
};
use super::fencing::without_locks;
use super::*;
use crate::archive::ledger::heads::HeadsWriter;
use crate::archive::ledger::replay::ReplayFiles;

pub fn key(seed: u8) -> SecretKey {
    SecretKey::of_seed(Some(&format!("annals-test-{seed}")), [seed; 32]).unwrap()
}

pub fn signer(seed: u8) -> Signer {
    Signer { key: key(seed), previous: None, signs_all: false }
}

/// The signer of an administrator who vouches for all unsigned lines.
pub fn signer_of_all(seed: u8) -> Signer {
    Signer { signs_all: true, ..signer(seed) }
}

fn check(store: &Arc<dyn Store>, keys: &[u8]) -> VerifyReport {
    let keys: Vec<PublicKey> = keys.iter().map(|seed| key(*seed).public().clone()).collect();
    verify(store.as_ref(), &VerifyOptions { keys, ..VerifyOptions::default() }).unwrap()
}

fn codes(report: &VerifyReport) -> Vec<FaultCode> {
    report.faults.iter().map(|fault| fault.code).collect()
}

/// Commits the steps of the history, signed by `signer`.
fn steps(store: &Arc<dyn Store>, range: std::ops::Range<usize>, signer: Option<Signer>) {
    let archive = open(store).with_signer(signer.map(Arc::new));
    let mut writer = writer(&archive);
    for draft in history().into_iter().skip(range.start).take(range.len()) {
        let _ = commit(&mut writer, draft).unwrap();
    }
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

#[test]
fn every_line_is_signed_and_a_head_confirms_the_lines_before() {
    let store = store();
    steps(&store, 0..6, Some(signer(1)));
    let report = check(&store, &[1]);
    let team = &report.teams[0];
    let signed = team.signed.as_ref().unwrap();
    assert_eq!((signed.seq, signed.is_self_asserted, codes(&report)), (team.last_seq, false, vec![]));
    assert!(check(&store, &[]).teams[0].signed.as_ref().unwrap().is_self_asserted);
    assert_eq!(codes(&check(&store, &[2])), [FaultCode::KeyMismatch]);
    let archive = open(&store);
    let state = archive.read(&super::team()).unwrap().state().clone();
    let head = Head::new(archive.id(), &TeamKey::of(&super::team()), state.seq, state.head).signed(&key(1));
    let heads = vec![KnownHead::Note(head)];
    let options = VerifyOptions { heads, keys: vec![key(1).public().clone()], ..VerifyOptions::default() };
    let report = verify(store.as_ref(), &options).unwrap();
    assert_eq!((report.verdict, codes(&report)), (Verdict::Anchored, vec![]));
    assert_eq!(report.verdict_text(), "ANCHORED up to seq 6 at 2026-11-20T12:00:00Z");
}

/// Asserts that one fault says this and names the command that heals it.
#[track_caller]
fn is_unsigned(store: &Arc<dyn Store>, what: &str) {
    let report = check(store, &[1]);
    assert_eq!(codes(&report), [FaultCode::BadSig]);
    let detail = &report.faults[0].detail;
    assert!(detail.starts_with(what) && detail.ends_with("`annals anchor --sign`"), "{detail}");
}

#[test]
fn unsigned_lines_are_named_until_an_administrator_vouches_for_them() {
    let store = store();
    steps(&store, 0..1, None);
    steps(&store, 1..2, Some(signer(1)));
    steps(&store, 2..4, None);
    is_unsigned(&store, "lines 3 to 3 are not signed: ");
    // A writer with the key would hide what somebody wrote without it.
    steps(&store, 4..6, Some(signer(1)));
    is_unsigned(&store, "lines 3 to 5 are not signed: ");
    steps(&store, 0..0, Some(signer_of_all(1)));
    let report = check(&store, &[1]);
    assert_eq!((codes(&report), report.teams[0].signed.as_ref().unwrap().seq.0), (vec![], 6));
    assert_eq!(codes(&check(&self::store(), &[1])), [FaultCode::Manifest]);
}

/// Without signatures, a rewritten archive looks like one that is older than the key.
#[test]
fn an_archive_that_is_older_than_the_key_is_signed_on_request_only() {
    let store = store();
    steps(&store, 0..3, None);
    steps(&store, 3..4, Some(signer(1)));
    is_unsigned(&store, "no line is signed, but a public key was given: ");
    assert_eq!(check(&store, &[]).teams[0].signed, None);
    steps(&store, 0..0, Some(signer_of_all(1)));
    steps(&store, 4..6, Some(signer(1)));
    let report = check(&store, &[1]);
    assert_eq!((codes(&report), report.teams[0].signed.as_ref().unwrap().seq.0), (vec![], 6));
}

#[test]
fn a_handover_does_not_cover_unsigned_lines() {
    let store = store();
    steps(&store, 0..2, Some(signer(1)));
    steps(&store, 2..4, None);
    let both = |signs_all| Signer { previous: Some(key(1)), signs_all, ..signer(2) };
    steps(&store, 4..5, Some(both(false)));
    is_unsigned(&store, "lines 3 to 4 are not signed: ");
    steps(&store, 0..0, Some(both(true)));
    for known in [1, 2] {
        assert_eq!(codes(&check(&store, &[known])), [], "key {known}");
    }
}

#[test]
fn a_new_key_needs_a_handover_from_the_old_key() {
    let store = store();
    steps(&store, 0..3, Some(signer(1)));
    let refused = open(&store).with_signer(Some(Arc::new(signer(2)))).writer(&team()).err().unwrap();
    assert!(refused.to_string().contains("previous_key_file"), "{refused}");
    let both = || Signer { previous: Some(key(1)), ..signer(2) };
    steps(&store, 3..5, Some(both()));
    steps(&store, 5..6, Some(signer(2)));
    for known in [1, 2] {
        assert_eq!(codes(&check(&store, &[known])), [], "key {known}");
    }
    assert_eq!(codes(&check(&store, &[3])), [FaultCode::KeyMismatch]);
    // After the handover, the old key cannot sign any more.
    assert!(open(&store).with_signer(Some(Arc::new(signer(1)))).writer(&team()).is_err());
}

#[test]
fn an_open_writer_uses_the_current_key() {
    let store = store();
    let archive = open(&store).with_signer(Some(Arc::new(signer(1))));
    let mut writer = writer(&archive);
    let mut steps = history().into_iter();
    let _ = commit(&mut writer, steps.next().unwrap()).unwrap();
    archive.set_signer(Some(Arc::new(signer(2))));
    let next = steps.next().unwrap();
    let refused = commit(&mut writer, next.clone()).unwrap_err();
    assert!(refused.to_string().contains("previous_key_file") && !refused.needs_reopen(), "{refused}");
    archive.set_signer(Some(Arc::new(Signer { previous: Some(key(1)), ..signer(2) })));
    let _ = commit(&mut writer, next).unwrap();
    // First no signer, then a signer again.
    archive.set_signer(None);
    let _ = commit(&mut writer, steps.next().unwrap()).unwrap();
    assert_eq!(check(&store, &[2]).teams[0].signed.as_ref().unwrap().seq.0, 2);
    archive.set_signer(Some(Arc::new(signer(2))));
    let _ = commit(&mut writer, steps.next().unwrap()).unwrap();
    for known in [1, 2] {
        let report = check(&store, &[known]);
        assert_eq!(codes(&report), [], "key {known}");
        assert_eq!(report.teams[0].signed.as_ref().unwrap().seq.0, 4);
    }
}

/// Without locks, as in a bucket: another writer appends and signs a line after this one has read the ledger.
#[test]
fn a_line_that_another_writer_signs_meanwhile_is_no_damage() {
    let disk = MemoryStore::new();
    let store = without_locks(&disk);
    steps(&store, 0..2, Some(signer(1)));
    let replay = ReplayFiles::list(store.as_ref(), "archive-1", &team()).unwrap().replay_for_writing().unwrap();
    steps(&store, 2..3, Some(signer(1)));
    let signatures = || store.read("ledger/team=acme/2026-11-20.heads").unwrap().to_bytes().unwrap();
    let before = signatures();
    for by in [signer(1), Signer { previous: Some(key(1)), ..signer(2) }] {
        let opened = HeadsWriter::open(store.as_ref(), Some(Arc::new(by)), &replay.state);
        assert!(opened.map(|heads| heads.is_some()).unwrap());
        assert_eq!(signatures(), before, "a writer that lost the race signs nothing");
    }
    assert_eq!(codes(&check(&store, &[1])), []);
}

#[test]
fn no_failed_operation_leaves_a_line_unsigned() {
    let before = MemoryStore::new();
    steps(&(Arc::new(before.clone()) as Arc<dyn Store>), 0..3, Some(signer(1)));
    let attempt = |store: Arc<dyn Store>| -> Result<(), ArchiveError> {
        let archive = Archive::open(store)?.with_signer(Some(Arc::new(signer(1))));
        let _ = archive.writer(&team())?.commit(history().swap_remove(3), now())?;
        Ok(())
    };
    let counting = FaultyStore::new(Arc::new(before.snapshot()), u64::MAX, false, Fault::Failed);
    attempt(Arc::new(counting.clone())).unwrap();
    let mut unsigned = 0;
    for (verb, fault) in (0..counting.verbs()).flat_map(|verb| [(verb, Fault::Failed), (verb, Fault::FailedButDone)]) {
        let disk = before.snapshot();
        let outcome = attempt(Arc::new(FaultyStore::new(Arc::new(disk.clone()), verb, true, fault)));
        let store: Arc<dyn Store> = Arc::new(disk.snapshot());
        let report = check(&store, &[1]);
        assert_eq!(codes(&report), [], "verb {verb}, {fault:?}, before recovery");
        unsigned += usize::from(report.teams[0].signed.as_ref().unwrap().seq < report.teams[0].last_seq);
        steps(&store, 0..0, Some(signer(1)));
        let report = check(&store, &[1]);
        assert_eq!(codes(&report), [], "verb {verb}, {fault:?}");
        assert_eq!(report.teams[0].signed.as_ref().unwrap().seq, report.teams[0].last_seq, "verb {verb}, {fault:?}");
        assert!(outcome.is_err() || report.teams[0].last_seq.0 == 4, "verb {verb}, {fault:?}");
    }
    assert!(unsigned > 0, "no fault fell between a line and its signature");
}
