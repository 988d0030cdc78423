//! The handover from one key to the next: it vouches for the lines before it, and joins the two keys.

use super::super::{FaultCode, Head, KnownHead, Signer, Verdict, VerifyOptions, verify};
use super::heads::{FIRST_DAY, check, faults, lines, put};
use super::signing::{key, signer};
use super::snapshots::said;
use super::*;
use crate::model::{LedgerSeq, TeamKey};

/// Three lines that the first key signs, the handover to the second key, and a line that the second key signs.
fn handed_over() -> MemoryStore {
    let disk = MemoryStore::new();
    let archive = open(&(Arc::new(disk.clone()) as Arc<dyn Store>)).with_signer(Some(Arc::new(signer(1))));
    let mut writer = writer(&archive);
    for (step, draft) in history().into_iter().take(4).enumerate() {
        if step == 3 {
            archive.set_signer(Some(Arc::new(Signer { previous: Some(key(1)), ..signer(2) })));
        }
        let _ = writer.commit(draft, now()).unwrap();
    }
    disk
}

/// A forger who has the old key cannot put another history before the handover to the new key.
#[test]
fn a_handover_vouches_for_the_lines_before_it() {
    let disk = handed_over();
    let ledger = FIRST_DAY.replace("heads", "jsonl");
    let (written, signatures) = (lines(&disk, &ledger), lines(&disk, FIRST_DAY));
    let signed_by = |seed: u8| {
        let report = check(&disk, &[2]);
        let signed = report.teams[0].signed.as_ref().unwrap();
        assert_eq!((faults(&report), signed.is_self_asserted), (vec![], false));
        assert_eq!(signed.key, key(seed).public().to_string());
        signed.seq.0
    };
    assert_eq!(signed_by(2), 4);
    // The verdict names the key that signed the last line, not the key that may sign the next one.
    put(&disk, &ledger, &written[..3]);
    put(&disk, FIRST_DAY, &signatures[..4]);
    assert_eq!(signed_by(1), 3);
    let archive = |signer: Option<u8>| {
        let signer = signer.map(|seed| Arc::new(self::signer(seed)));
        Archive::open(Arc::new(disk.clone())).unwrap().with_signer(signer)
    };
    let say = |signer, n| {
        let draft = Draft::from(Body { findings: vec![said(n)], ..Body::default() });
        let _ = writer(&archive(signer)).commit(draft, now()).unwrap();
    };
    put(&disk, &ledger, &written[..2]);
    put(&disk, FIRST_DAY, &signatures[..2]);
    say(Some(1), 7);
    assert_eq!(faults(&check(&disk, &[1])), []);
    put(&disk, FIRST_DAY, &[lines(&disk, FIRST_DAY), signatures[3..4].to_vec()].concat());
    let refused = "the key rotation does not follow the signatures before it";
    // The forger can also add a line that looks like one that an interruption left without its signature.
    for line in [3, 4] {
        for keys in [&[2][..], &[1, 2]] {
            assert_eq!(faults(&check(&disk, keys)), [(FaultCode::BadSig, refused)], "line {line}, keys {keys:?}");
        }
        let refused = archive(Some(2)).writer(&team()).err().unwrap().to_string();
        assert!(refused.contains("the signed line 3 differs from the ledger's line"), "line {line}: {refused}");
        say(None, line);
    }
}

/// Either key of a handover confirms a kept head, but the old key confirms no line after the handover.
#[test]
fn a_kept_head_is_confirmed_with_each_key_of_a_handover() {
    let disk = handed_over();
    let ledger = Archive::open(Arc::new(disk.clone())).unwrap().lines(&team(), LedgerSeq(4)).unwrap().lines;
    let unsigned = |seq: u64| {
        let hash = ledger[usize::try_from(seq).unwrap() - 1].sha256;
        Head::new("archive-1", &TeamKey::of(&team()), LedgerSeq(seq), hash)
    };
    let codes = |head: Head, given: u8| {
        let (heads, keys) = (vec![KnownHead::Note(head)], vec![key(given).public().clone()]);
        let report = verify(&disk, &VerifyOptions { heads, keys, ..VerifyOptions::default() }).unwrap();
        assert_eq!(report.verdict == Verdict::Anchored, report.faults.is_empty(), "{:#?}", report.faults);
        report.faults.iter().map(|fault| fault.code).collect::<Vec<_>>()
    };
    for (seq, by, given, expected) in [
        (3, 1, 1, vec![]),
        (3, 1, 2, vec![]),
        (3, 2, 1, vec![]),
        (4, 2, 1, vec![]),
        (4, 2, 2, vec![]),
        (4, 1, 2, vec![FaultCode::UnknownKey]),
        (3, 3, 2, vec![FaultCode::UnknownKey]),
        (3, 1, 3, vec![FaultCode::KeyMismatch, FaultCode::UnknownKey]),
    ] {
        let found = codes(unsigned(seq).signed(&key(by)), given);
        assert_eq!(found, expected, "a head of line {seq} by key {by}, key {given} given");
    }
    let signatures = unsigned(3).signed(&key(2)).signatures;
    assert_eq!(codes(Head { signatures, ..unsigned(4) }, 1), [FaultCode::BadSig]);
}
