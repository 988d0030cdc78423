//! Signatures and remembered heads that do not fit the ledger: the report describes each correctly.

use super::super::{FaultCode, Head, HeadLine, KnownHead, Signer, Verdict, VerifyOptions, VerifyReport, verify};
use super::signing::{key, signer, signer_of_all};
use super::snapshots::said;
use super::*;
use crate::archive::ledger::heads::{SIGN_ALL, rotation_text};
use crate::model::{Digest, LedgerSeq, TeamKey};
use crate::store::MemoryStore;

pub const FIRST_DAY: &str = "ledger/team=acme/2026-11-20.heads";
const SECOND_DAY: &str = "ledger/team=acme/2026-11-21.heads";

/// Three lines of one day and three of the next, signed by the first key except those in `without`.
fn signed_without(without: std::ops::Range<usize>) -> MemoryStore {
    let disk = MemoryStore::new();
    let archive = open(&(Arc::new(disk.clone()) as Arc<dyn Store>)).with_signer(Some(Arc::new(signer(1))));
    let mut writer = writer(&archive);
    for (step, draft) in history().into_iter().take(6).enumerate() {
        let time = if step < 3 { now() } else { now().plus(Duration::from_secs(86_400)) };
        archive.set_signer((!without.contains(&step)).then(|| Arc::new(signer(1))));
        let _ = writer.commit(draft, time).unwrap();
    }
    disk
}

fn signed() -> MemoryStore {
    signed_without(0..0)
}

pub fn check(disk: &MemoryStore, keys: &[u8]) -> VerifyReport {
    let keys = keys.iter().map(|seed| key(*seed).public().clone()).collect();
    verify(disk, &VerifyOptions { keys, ..VerifyOptions::default() }).unwrap()
}

pub fn faults(report: &VerifyReport) -> Vec<(FaultCode, &str)> {
    report.faults.iter().map(|fault| (fault.code, fault.detail.as_str())).collect()
}

fn content(disk: &MemoryStore, path: &str) -> Vec<u8> {
    disk.read(path).unwrap().to_bytes().unwrap().to_vec()
}

pub fn lines(disk: &MemoryStore, path: &str) -> Vec<Vec<u8>> {
    content(disk, path).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn decoded(line: &[u8]) -> HeadLine {
    HeadLine::decode(line.strip_suffix(b"\n").unwrap()).unwrap()
}

pub fn put(disk: &MemoryStore, path: &str, lines: &[Vec<u8>]) {
    disk.tamper(path, Some(lines.concat().into()));
}

/// The remains of a signature after a power loss are not trusted, and the line is signed again.
#[test]
fn a_torn_signature_is_written_again() {
    let zeros = || [[0; 600].as_slice(), b"\n"].concat();
    for (what, path, written, keep, left) in [
        ("half a line", SECOND_DAY, 3, 2, b"6 0123".to_vec()),
        ("a line of zeros", SECOND_DAY, 3, 2, zeros()),
        ("a line, and zeros behind it", SECOND_DAY, 3, 3, zeros()),
        ("half a line of a new day", SECOND_DAY, 1, 0, b"4 ".to_vec()),
        ("a line of zeros of a new day", SECOND_DAY, 1, 0, zeros()),
        ("nothing of a new day", SECOND_DAY, 1, 0, Vec::new()),
        ("half a line as the only line", FIRST_DAY, 1, 0, b"1 0123".to_vec()),
    ] {
        let disk = signed();
        let ledger = |path: &str| path.replace("heads", "jsonl");
        if path == FIRST_DAY {
            disk.tamper(SECOND_DAY, None);
            disk.tamper(&ledger(SECOND_DAY), None);
        }
        put(&disk, &ledger(path), &lines(&disk, &ledger(path))[..written]);
        put(&disk, path, &[&lines(&disk, path)[..keep], &[left]].concat());
        let last = written as u64 + if path == FIRST_DAY { 1 } else { 4 };
        let archive = Archive::open(Arc::new(disk.clone())).unwrap().with_signer(Some(Arc::new(signer(1))));
        let _ =
            writer(&archive).commit(Draft::from(Body { findings: vec![said(7)], ..Body::default() }), now()).unwrap();
        let report = check(&disk, &[1]);
        assert_eq!(faults(&report), [], "{what}");
        assert_eq!(report.teams[0].signed.as_ref().unwrap().seq, LedgerSeq(last), "{what}");
        let files = files_under(&(Arc::new(disk.clone()) as Arc<dyn Store>), "ledger");
        let heads = files.iter().filter(|path| path.ends_with(".heads"));
        let text: Vec<_> = heads.flat_map(|path| lines(&disk, path)).collect();
        assert!(
            !text.is_empty() && text.iter().all(|line| HeadLine::decode(&line[..line.len() - 1]).is_ok()),
            "{what}"
        );
    }
}

/// For verify, a torn signature is an interruption at the very end, and damage elsewhere.
#[test]
fn a_torn_signature_is_damage_except_at_the_end() {
    let zeros = [[0; 600].as_slice(), b"\n"].concat();
    let half = b"4 0123".to_vec();
    let (torn, bad) = (FaultCode::TornTail, FaultCode::BadSig);
    for (what, path, at, left, expected) in [
        ("half a line", SECOND_DAY, 3, &half, torn),
        ("half a line of an earlier day", FIRST_DAY, 3, &half, bad),
        ("zeros", SECOND_DAY, 3, &zeros, torn),
        ("zeros of an earlier day", FIRST_DAY, 3, &zeros, bad),
        ("zeros before a line", SECOND_DAY, 2, &zeros, bad),
        ("text", SECOND_DAY, 3, &b"text\n".to_vec(), bad),
    ] {
        let disk = signed();
        let mut text = lines(&disk, path);
        text.insert(at, left.clone());
        put(&disk, path, &text);
        let report = check(&disk, &[1]);
        assert_eq!(report.faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), [expected], "{what}");
        assert_eq!(report.faults[0].object, format!("{path}:{}", at + 1), "{what}");
    }
}

#[test]
fn unsigned_lines_are_reported_in_runs() {
    let unsigned = |runs: &[&'static str]| runs.iter().map(|run| (FaultCode::BadSig, *run)).collect::<Vec<_>>();
    let disk = signed();
    let [first, second] = [FIRST_DAY, SECOND_DAY].map(|path| lines(&disk, path));
    put(&disk, FIRST_DAY, &first[..1]);
    put(&disk, SECOND_DAY, &[second[0].clone(), second[2].clone()]);
    let runs = [
        "lines 2 to 3 are not signed: somebody removed their signatures",
        "lines 5 to 5 are not signed: somebody removed their signatures",
    ];
    assert_eq!(faults(&check(&disk, &[1])), unsigned(&runs));
    // A run of unsigned lines continues after midnight.
    put(&disk, SECOND_DAY, &second[1..]);
    assert_eq!(
        faults(&check(&disk, &[1])),
        unsigned(&["lines 2 to 4 are not signed: somebody removed their signatures"])
    );
    put(&disk, FIRST_DAY, &first[2..]);
    put(&disk, SECOND_DAY, &second);
    let of_first = "lines 1 to 2 are not signed: somebody removed their signatures";
    assert_eq!(faults(&check(&disk, &[1])), unsigned(&[of_first]));
    disk.tamper(FIRST_DAY, None);
    let of_day = "lines 1 to 3 are not signed: somebody removed their signatures";
    assert_eq!(faults(&check(&disk, &[1])), unsigned(&[of_day]));
}

/// A writer signs one unsigned line, which an interruption leaves. An administrator vouches for more, also on earlier days.
#[test]
fn several_unsigned_lines_wait_for_an_administrator() {
    let open_with = |disk: &MemoryStore, signer: Signer| {
        drop(writer(&Archive::open(Arc::new(disk.clone())).unwrap().with_signer(Some(Arc::new(signer)))));
        check(disk, &[1])
    };
    for without in [2..6, 3..6, 1..6, 5..6] {
        let disk = signed_without(without.clone());
        let before = check(&disk, &[1]);
        let after = open_with(&disk, signer(1));
        match without.len() {
            1 => assert_eq!((faults(&after), after.notices.len()), (vec![], 0)),
            _ => assert!(after == before && before.faults[0].code == FaultCode::BadSig, "{without:?}: {after:#?}"),
        }
        let report = open_with(&disk, signer_of_all(1));
        assert_eq!((faults(&report), report.notices.len()), (vec![], 0), "{without:?}");
        let signatures: usize = [FIRST_DAY, SECOND_DAY].map(|path| lines(&disk, path).len()).iter().sum();
        assert_eq!(signatures, 6, "{without:?}");
    }
}

/// The last line is signed after its append: a missing signature is a notice if the signing key was given.
#[test]
fn an_unsigned_last_line_is_a_notice_if_the_key_is_given() {
    let (all, but_last) = (signed(), signed_without(5..6));
    for (disk, keys, expected) in [
        (&all, &[1][..], vec![]),
        (&but_last, &[1], vec![FaultCode::BadSig]),
        (&but_last, &[2, 1], vec![FaultCode::BadSig]),
        (&but_last, &[], vec![]),
        (&but_last, &[2], vec![]),
    ] {
        let report = check(disk, keys);
        assert_eq!(report.notices.iter().map(|notice| notice.code).collect::<Vec<_>>(), expected, "keys {keys:?}");
        let is_known = keys.is_empty() || keys.contains(&1);
        assert_eq!(faults(&report).is_empty(), is_known, "keys {keys:?}");
    }
    let none = signed_without(0..6);
    let detail = format!("no line is signed, but a public key was given: {SIGN_ALL}");
    assert_eq!(faults(&check(&none, &[1])), [(FaultCode::BadSig, detail.as_str())]);
    assert_eq!(faults(&check(&none, &[])), []);
}

#[test]
fn a_signature_of_a_missing_line_is_named() {
    let disk = signed();
    let [first, second] = [FIRST_DAY, SECOND_DAY].map(|path| lines(&disk, path));
    put(&disk, FIRST_DAY, &[first.as_slice(), &second[1..2]].concat());
    let elsewhere = "line 5 is missing in its day's ledger";
    assert_eq!(faults(&check(&disk, &[1])), [(FaultCode::BadSig, elsewhere)]);
    put(&disk, FIRST_DAY, &first);
    let ledger = SECOND_DAY.replace("heads", "jsonl");
    put(&disk, &ledger, &lines(&disk, &ledger)[..2]);
    let cut = faults(&check(&disk, &[1])).iter().filter(|(code, _)| *code == FaultCode::HeadRollback).count();
    assert_eq!(cut, 1);
    disk.tamper(&ledger, None);
    let report = check(&disk, &[1]);
    let cut: Vec<&str> =
        report.faults.iter().filter(|f| f.code == FaultCode::HeadRollback).map(|f| f.detail.as_str()).collect();
    assert_eq!(cut, [4, 5, 6].map(|line| format!("line {line} was signed, but the ledger ends with 3")));
}

/// A key takes over by a line with both signatures, directly after the last line of the old key.
#[test]
fn a_key_rotation_follows_the_signatures_and_has_both_signatures() {
    let disk = signed_without(3..6);
    let hashes: Vec<Digest> = lines(&disk, FIRST_DAY).iter().map(|line| decoded(line).signed().1).collect();
    let change_on = |after: u64, hash: Digest, old: u8, by_old: u8, by_new: u8| {
        let head = Head::new("archive-1", &TeamKey::of(&team()), LedgerSeq(after), hash);
        let (old, new) = (key(old).public().clone(), key(2).public().clone());
        let text = rotation_text(&head, &old, &new);
        let signatures = [key(by_old).sign(&text), key(by_new).sign(&text)];
        HeadLine::Rotation { after: LedgerSeq(after), hash, old, new, signatures }
    };
    let change = |after: u64, old: u8, by_old: u8, by_new: u8| {
        let hash = hashes.get(usize::try_from(after).unwrap() - 1).copied().unwrap_or(Digest::of(b"line 4"));
        change_on(after, hash, old, by_old, by_new)
    };
    let (early, not_signed) = (
        "the key rotation does not follow the signatures before it",
        "the key rotation lacks a valid signature of both keys",
    );
    // The line says the truth, but the keys signed another text.
    let altered = |line: HeadLine, at: (LedgerSeq, Digest)| match line {
        HeadLine::Rotation { old, new, signatures, .. } => {
            HeadLine::Rotation { after: at.0, hash: at.1, old, new, signatures }
        }
        line @ HeadLine::Signed { .. } => line,
    };
    let third = (LedgerSeq(3), hashes[2]);
    let other_place = altered(change(2, 1, 1, 2), third);
    let other_history = change_on(3, Digest::of(b"other"), 1, 1, 2);
    let other_text = altered(other_history.clone(), third);
    for (line, expected) in [
        (change(3, 1, 1, 2), vec![]),
        (other_place, vec![(FaultCode::BadSig, not_signed)]),
        (other_text, vec![(FaultCode::BadSig, not_signed)]),
        (other_history, vec![(FaultCode::BadSig, early)]),
        (change(2, 1, 1, 2), vec![(FaultCode::BadSig, early)]),
        (change(4, 1, 1, 2), vec![(FaultCode::BadSig, early)]),
        (change(3, 3, 3, 2), vec![(FaultCode::BadSig, early)]),
        (change(3, 1, 2, 2), vec![(FaultCode::BadSig, not_signed)]),
        (change(3, 1, 1, 1), vec![(FaultCode::BadSig, not_signed)]),
        (change(3, 1, 3, 3), vec![(FaultCode::BadSig, not_signed)]),
    ] {
        let disk = disk.snapshot();
        put(&disk, FIRST_DAY, &[lines(&disk, FIRST_DAY), vec![line.encode().into_bytes()]].concat());
        let report = check(&disk, &[]);
        let found: Vec<_> =
            faults(&report).into_iter().filter(|(_, detail)| detail.starts_with("the key rotation")).collect();
        assert_eq!(found, expected, "{line:?}");
    }
}

/// Opening with a key: the signed lines must be in the ledger, else the archive was changed.
#[test]
fn a_writer_refuses_a_ledger_that_differs_from_its_signatures() {
    let ledger = SECOND_DAY.replace("heads", "jsonl");
    let disk = signed();
    put(&disk, &ledger, &lines(&disk, &ledger)[..2]);
    let open = |disk: &MemoryStore, signer: Signer| {
        Archive::open(Arc::new(disk.clone())).unwrap().with_signer(Some(Arc::new(signer))).writer(&team())
    };
    let refused = open(&disk, signer(1)).err().unwrap().to_string();
    assert!(refused.contains("the signed line 6 differs from the ledger's line"), "{refused}");
    assert!(open(&signed(), signer(1)).is_ok());
    let other = MemoryStore::new();
    let archive = super::open(&(Arc::new(other.clone()) as Arc<dyn Store>));
    let _ = writer(&archive).commit(history().swap_remove(1), now()).unwrap();
    put(&other, FIRST_DAY, &lines(&disk, FIRST_DAY)[..1]);
    let refused = open(&other, signer(1)).err().unwrap().to_string();
    assert!(refused.contains("the signed line 1 differs from the ledger's line"), "{refused}");
}

/// The verdict on each remembered head, for a ledger of six lines.
#[test]
fn each_remembered_head_is_confirmed_or_explained() {
    let disk = signed();
    let archive = Archive::open(Arc::new(disk.clone())).unwrap();
    let lines = archive.lines(&team(), LedgerSeq(6)).unwrap().lines;
    let key = TeamKey::of(&team());
    let head = |seq: u64, hash| Head::new("archive-1", &key, LedgerSeq(seq), hash);
    let held = |seq: u64| head(seq, lines[usize::try_from(seq).unwrap() - 1].sha256);
    let other = Digest::of(b"other");
    let verified = |heads: &[&Head]| {
        let heads = heads.iter().map(|head| KnownHead::Note((*head).clone())).collect();
        verify(&disk, &VerifyOptions { heads, ..VerifyOptions::default() }).unwrap()
    };
    for (what, head, code, detail) in [
        (
            "of another archive",
            Head { archive_id: "a2".to_owned(), ..held(6) },
            FaultCode::ArchiveId,
            "the head belongs to another archive",
        ),
        (
            "of another team",
            Head { team: TeamKey::of(&TeamId::from("b")), ..held(6) },
            FaultCode::HeadRollback,
            "no ledger of that team",
        ),
        (
            "of a line to come",
            head(7, other),
            FaultCode::HeadRollback,
            "the head names seq 7, but the ledger ends with 6",
        ),
        ("of another last line", head(6, other), FaultCode::Fork, lines[5].sha256.to_string().leak() as &str),
        ("of another line", head(2, other), FaultCode::Fork, lines[1].sha256.to_string().leak()),
        ("of a line under another number", head(2, lines[2].sha256), FaultCode::Fork, "line 2 was "),
    ] {
        let report = verified(&[&head]);
        assert_eq!(report.faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), [code], "{what}");
        assert!(report.faults[0].detail.contains(detail), "{what}: {}", report.faults[0].detail);
        assert_eq!((report.verdict, report.teams[0].anchored), (Verdict::Broken, None), "{what}");
    }
    // The newest valid head confirms all lines before it.
    for (given, newest) in [(vec![2], 2), (vec![2, 4], 4), (vec![4, 2], 4), (vec![3, 3], 3)] {
        let heads: Vec<Head> = given.into_iter().map(held).collect();
        let report = verified(&heads.iter().collect::<Vec<_>>());
        assert_eq!(report.teams[0].anchored.map(|anchored| anchored.seq), Some(LedgerSeq(newest)));
        assert_eq!(report.verdict, Verdict::Anchored);
    }
    let other = TeamId::from("other");
    let _ = archive
        .writer(&other)
        .unwrap()
        .commit(Draft::from(Body { findings: vec![said(7)], ..Body::default() }), now())
        .unwrap();
    let report = verified(&[&held(6)]);
    assert_eq!((report.faults.len(), report.verdict), (0, Verdict::SelfConsistent), "no head confirms the other team");
}
