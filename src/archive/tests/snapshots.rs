//! Snapshots: a reader always sees the result of a whole replay, whatever happened to the snapshots.

use super::super::{FaultCode, Finding, FindingKind, TeamState, VerifyOptions, verify};
use super::*;
use crate::archive::ledger::ledger_files::LedgerEnd;
use crate::archive::ledger::line::LINE_BYTES_MAX;
use crate::archive::ledger::replay::{ReplayFiles, replay};
use crate::archive::ledger::snapshot::{self, SNAPSHOT_LINES, keep};
use crate::model::path::{ArchivePath, SNAPSHOTS};
use crate::model::{LedgerSeq, TeamKey};
use crate::store::{Fault, FaultyStore, MemoryStore};

const ID: &str = "archive-1";

/// The newest snapshot that fits the ledger.
fn before_the_end(store: &dyn Store, archive_id: &str, team: &TeamId) -> Option<(TeamState, LedgerEnd)> {
    let files = ReplayFiles::list(store, archive_id, team).unwrap();
    snapshot::before_the_end(store, &files.snapshots, &files.ledger, archive_id, team)
}

fn end_of(store: &Arc<dyn Store>) -> LedgerEnd {
    replay(store.as_ref(), ID, &team()).unwrap().end
}

/// The history up to a step, with a snapshot after each commit.
fn kept(steps: usize) -> MemoryStore {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let mut writer = writer(&open(&store));
    for draft in history().into_iter().take(steps) {
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
        keep(store.as_ref(), writer.state(), end_of(&store)).unwrap();
    }
    disk
}

fn without(disk: &MemoryStore) -> MemoryStore {
    let bare = disk.snapshot();
    let store: Arc<dyn Store> = Arc::new(bare.clone());
    files_under(&store, SNAPSHOTS).iter().for_each(|path| store.remove(&[path]).unwrap());
    bare
}

/// A reader's result for the team: its state, or the error.
fn seen(disk: &MemoryStore) -> Result<TeamState, String> {
    let reader = Archive::open(Arc::new(disk.clone())).map_err(|e| e.to_string())?.read(&team());
    let reader = reader.map_err(|e| e.to_string())?;
    Ok(reader.state().clone())
}

fn put(disk: &MemoryStore, path: &str, bytes: &[u8]) {
    crate::store::put(disk, path, bytes).unwrap();
}

fn get(disk: &MemoryStore, path: &str) -> Vec<u8> {
    disk.read(path).unwrap().to_bytes().unwrap().to_vec()
}

fn path_of(seq: u64) -> String {
    ArchivePath::Snapshot { team: TeamKey::of(&team()), seq: LedgerSeq(seq) }.to_string()
}

#[test]
fn a_reader_continues_from_the_newest_snapshot_that_has_later_lines() {
    for steps in 1..=history().len() {
        let disk = kept(steps);
        let store: Arc<dyn Store> = Arc::new(disk.clone());
        let used = before_the_end(store.as_ref(), ID, &team()).map(|(state, _)| state.seq.0);
        assert_eq!(used, (steps > 1).then_some(steps as u64 - 1));
        let expected: Vec<String> = (steps.saturating_sub(1).max(1)..=steps).map(|n| path_of(n as u64)).collect();
        assert_eq!(files_under(&store, SNAPSHOTS), expected, "the last two are kept");
        let program = concat!("\"annals ", env!("CARGO_PKG_VERSION"), "\"");
        assert!(String::from_utf8(get(&disk, &path_of(steps as u64))).unwrap().contains(program), "says who wrote it");
        assert_eq!(seen(&disk), seen(&without(&disk)));
        let files = ReplayFiles::list(&disk, ID, &team()).unwrap();
        let (short, whole) = (files.replay_for_reading().unwrap(), replay(&disk, ID, &team()).unwrap());
        let writing = files.replay_for_writing().unwrap();
        assert_eq!(writing.snapshot.map(|seq| seq.0), used, "a writer goes on from the same one");
        assert_eq!((&writing.state, writing.end), (&whole.state, whole.end));
        assert_eq!((short.state, short.end), (whole.state, whole.end));
        assert!(verify(&disk, &VerifyOptions::default()).unwrap().is_clean());
    }
}

#[test]
fn an_interrupted_commit_does_not_change_the_result_of_a_reader() {
    for step in 1..history().len() {
        let stage = kept(step);
        for fault in [Fault::Failed, Fault::FailedUndone, Fault::FailedButDone] {
            for verb in 0..60 {
                let disk = stage.snapshot();
                let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::new(disk.clone()), verb, true, fault));
                let attempt = || -> Result<(), ArchiveError> {
                    let mut writer = Archive::open(faulty)?.writer(&team())?;
                    let draft = with_sessions(&mut writer, history().swap_remove(step))?;
                    let _ = writer.commit(draft, now())?;
                    Ok(())
                };
                let _ = attempt();
                assert_eq!(seen(&disk), seen(&without(&disk)), "step {step}, verb {verb}, {fault:?}");
            }
        }
    }
}

#[test]
fn a_damaged_or_foreign_snapshot_is_ignored() {
    let disk = kept(3);
    let whole = seen(&without(&disk)).unwrap();
    let good = get(&disk, &path_of(2));
    disk.remove(&[&path_of(3)]).unwrap();
    assert!(before_the_end(&disk, ID, &team()).is_some());
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        put(&disk, &path_of(2), &bytes);
        assert!(before_the_end(&disk, ID, &team()).is_none(), "byte {at}");
        put(&disk, &path_of(2), &good[..at]);
        assert!(before_the_end(&disk, ID, &team()).is_none(), "{at} bytes");
    }
    assert_eq!(seen(&disk).unwrap(), whole);
    put(&disk, &path_of(2), &good);
    assert!(before_the_end(&disk, "archive-2", &team()).is_none());
    assert!(before_the_end(&disk, ID, &TeamId::from("other")).is_none());
    assert_eq!(seen(&disk).unwrap(), whole);
}

/// A changed text of a ledger, given the end of a number of lines.
type Change = fn(Vec<u8>, &dyn Fn(&[u8], usize) -> usize) -> Vec<u8>;

#[test]
fn a_changed_ledger_is_refused_with_a_snapshot_too() {
    let ledger = "ledger/team=acme/2026-11-20.jsonl";
    let cut_at = |text: &[u8], lines: usize| {
        text.split_inclusive(|byte| *byte == b'\n').take(lines).map(<[u8]>::len).sum::<usize>()
    };
    let cases: [(&str, Change); 4] = [
        ("a bit of the last line", |mut text, cut| {
            let begin = cut(&text, 4);
            text[begin + 100] ^= 1;
            text
        }),
        ("the end cut off", |text, cut| text[..cut(&text, 3)].to_vec()),
        ("half a line", |text, cut| text[..cut(&text, 4) + 50].to_vec()),
        ("a line taken out", |text, cut| {
            let (begin, end) = (cut(&text, 1), cut(&text, 2));
            [&text[..begin], &text[end..]].concat()
        }),
    ];
    for (what, change) in cases {
        let disk = kept(5);
        put(&disk, ledger, &change(get(&disk, ledger), &cut_at));
        assert_eq!(seen(&disk), seen(&without(&disk)), "{what}");
    }
    // An older copy that continued differently: its snapshots belong to lines that this ledger never had.
    let (older, newer) = (kept(3), kept(5));
    for seq in 4..=5 {
        put(&older, &path_of(seq), &get(&newer, &path_of(seq)));
    }
    assert_eq!(seen(&older), seen(&without(&older)));
    let store: Arc<dyn Store> = Arc::new(older.clone());
    let mut writer = writer(&open(&store));
    for n in 0..3 {
        let rows = vec![rows("2026-11-03", events("2026-11-03", n, 1), false)];
        let draft = with_sessions(&mut writer, Draft { rows, ..Draft::default() }).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
        assert_eq!(seen(&older), seen(&without(&older)));
    }
    keep(store.as_ref(), writer.state(), end_of(&store)).unwrap();
    assert_eq!(files_under(&store, SNAPSHOTS), [path_of(5), path_of(6)]);
    // Lines before the snapshot are checked by `verify` and by writers.
    let disk = kept(5);
    let mut text = get(&disk, ledger);
    text[100] ^= 1;
    put(&disk, ledger, &text);
    assert!(seen(&disk).is_ok() && seen(&without(&disk)).is_err());
    assert!(Archive::open(Arc::new(disk.clone())).unwrap().writer(&team()).is_err());
    let faults = verify(&disk, &VerifyOptions::default()).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.code == FaultCode::ChainBreak), "{faults:?}");
}

/// A reader does not read what is before the snapshot. A writer extends the chain, so it checks every byte.
#[test]
fn a_writer_refuses_a_chain_with_damage_at_any_line() {
    let ledger = "ledger/team=acme/2026-11-20.jsonl";
    let good = get(&kept(5), ledger);
    for at in (0..good.len()).step_by(61).chain([good.len() - 2]) {
        let disk = kept(5);
        let mut text = good.clone();
        text[at] ^= 1;
        put(&disk, ledger, &text);
        let opened = Archive::open(Arc::new(disk.clone())).unwrap().writer(&team());
        assert!(matches!(opened.err(), Some(ArchiveError::Damaged { .. })), "byte {at}");
    }
}

/// The snapshot is intact and of this ledger, but includes a commit that never happened.
#[test]
fn verify_names_a_snapshot_that_differs_from_the_ledger() {
    let disk = kept(5);
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let mut state = before_the_end(store.as_ref(), ID, &team()).unwrap().0;
    assert_eq!(state.seq, LedgerSeq(4));
    state.windows.clear();
    let end = LedgerEnd { torn: 0, len: ledger_length(&disk, 4), ..end_of(&store) };
    keep(store.as_ref(), &state, end).unwrap();
    let faults = verify(&disk, &VerifyOptions::default()).unwrap().faults;
    let objects: Vec<_> = faults.iter().map(|fault| (fault.code, fault.object.clone())).collect();
    assert_eq!(objects, [(FaultCode::State, path_of(4))]);
    disk.remove(&[&path_of(4)]).unwrap();
    assert!(verify(&disk, &VerifyOptions::default()).unwrap().is_clean());
}

/// A writer that begins the team again would let vacuum remove the team's files.
#[test]
fn a_team_with_a_snapshot_and_no_line_is_refused() {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = open(&store);
    let _ = commit(&mut writer(&archive), Draft::from(Body { findings: vec![said(1)], ..Body::default() })).unwrap();
    let [ledger] = &files_under(&store, "ledger")[..] else { panic!("one day") };
    for content in [None, Some(""), Some("{")] {
        let disk = disk.snapshot();
        match content {
            Some(content) => put(&disk, ledger, content.as_bytes()),
            None => disk.remove(&[ledger]).unwrap(),
        }
        let archive = Archive::open(Arc::new(disk.clone())).unwrap();
        let is_lost =
            |error: Option<ArchiveError>| matches!(error, Some(ArchiveError::LedgerLost { line: LedgerSeq(1), .. }));
        assert!(is_lost(archive.writer(&team()).err()), "{content:?}");
        assert!(is_lost(archive.teams().err()), "{content:?}");
        assert!(is_lost(archive.read_each(&|_| true, |_| ()).err()), "{content:?}");
        if content != Some("{") {
            let faults = verify(&disk, &VerifyOptions::default()).unwrap().faults;
            let named =
                faults.iter().any(|found| found.code == FaultCode::SeqGap && found.object == "ledger/team=acme");
            assert!(named, "{content:?}: {faults:?}");
        }
        // Without a snapshot, the files can be of a first commit that was interrupted before its line.
        disk.remove(&[&path_of(1)]).unwrap();
        assert!(archive.writer(&team()).is_ok(), "{content:?}");
    }
}

/// The length of this many lines.
fn ledger_length(disk: &MemoryStore, lines: usize) -> u64 {
    let text = get(disk, "ledger/team=acme/2026-11-20.jsonl");
    text.split_inclusive(|byte| *byte == b'\n').take(lines).map(<[u8]>::len).sum::<usize>() as u64
}

#[test]
fn a_line_over_the_length_limit_is_not_written() {
    let disk = kept(3);
    let mut writer = writer(&open(&(Arc::new(disk.clone()) as Arc<dyn Store>)));
    let before = seen(&disk);
    let long = Finding { reason: "x".repeat(LINE_BYTES_MAX), ..said(1) };
    let refused = commit(&mut writer, Draft::from(Body { findings: vec![long], ..Body::default() })).unwrap_err();
    let ArchiveError::Draft { reason, .. } = &refused else { panic!("{refused}") };
    assert!(reason.starts_with("the commit's ledger line has ") && reason.contains("commit less at once"), "{reason}");
    assert_eq!(seen(&disk), before);
    let _ = commit(&mut writer, Draft::from(Body { findings: vec![said(1)], ..Body::default() })).unwrap();
}

/// A draft without rows.
pub fn said(n: u64) -> Finding {
    Finding {
        stream: Some(Stream::Activity),
        kind: FindingKind::NewEventType,
        subject: format!("type {n}"),
        from: None,
        to: None,
        reason: String::new(),
        count: 1,
        found_at: now(),
    }
}

#[test]
fn the_snapshot_interval_is_configurable_and_counts_across_reopening() {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = open(&store).snapshots_every(3);
    let mut kept = Vec::new();
    for n in 1..=8 {
        let mut writer = writer(&archive);
        let _ = commit(&mut writer, Draft::from(Body { findings: vec![said(n)], ..Body::default() })).unwrap();
        kept.push((files_under(&store, SNAPSHOTS).len(), archive.read(&team()).unwrap().snapshot().map(|seq| seq.0)));
    }
    let of = |files, line| (files, Some(line));
    let expected = [(1, None), of(1, 1), of(1, 1), of(2, 1), of(2, 4), of(2, 4), of(2, 4), of(2, 7)];
    assert_eq!(kept, expected);
}

#[test]
fn a_writer_writes_a_snapshot_every_hundred_lines() {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let mut writer = writer(&open(&store));
    for n in 1..=2 * SNAPSHOT_LINES + 2 {
        let _ = commit(&mut writer, Draft::from(Body { findings: vec![said(n)], ..Body::default() })).unwrap();
    }
    assert_eq!(files_under(&store, SNAPSHOTS), [path_of(SNAPSHOT_LINES + 1), path_of(2 * SNAPSHOT_LINES + 1)]);
    assert_eq!(before_the_end(&disk, ID, &team()).unwrap().0.seq.0, 2 * SNAPSHOT_LINES + 1);
    assert_eq!(seen(&disk), Ok(writer.state().clone()));
}

/// Somebody cut off whole lines, or restored an older ledger under newer snapshots. The operator's guide tells people to restore a
/// ledger, so a writer continues.
#[test]
fn verify_names_a_ledger_that_ends_before_its_newest_snapshot() {
    let disk = kept(5);
    let ledger = "ledger/team=acme/2026-11-20.jsonl";
    let text = get(&disk, ledger);
    put(&disk, ledger, &text[..usize::try_from(ledger_length(&disk, 3)).unwrap()]);
    let rollbacks = || {
        let faults = verify(&disk, &VerifyOptions::default()).unwrap().faults;
        faults.into_iter().filter(|fault| fault.code == FaultCode::HeadRollback).collect::<Vec<_>>()
    };
    let found = rollbacks();
    let [fault] = &found[..] else { panic!("{found:?}") };
    assert_eq!(fault.object, "ledger/team=acme");
    assert!(fault.detail.starts_with("the ledger ends with line 3, but a snapshot of line 5 exists"), "{fault:?}");
    let archive = Archive::open(Arc::new(disk.clone())).unwrap();
    assert_eq!(archive.writer(&team()).unwrap().state().seq, LedgerSeq(3));
    for seq in 4..=5 {
        disk.remove(&[&path_of(seq)]).unwrap();
    }
    assert_eq!(rollbacks(), []);
}
