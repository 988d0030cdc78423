//! The possible ends of a ledger's files: the remains of a power loss are no damage at the very end, but damage elsewhere.

use super::super::FaultCode;
use super::damage::{Disk, LEDGER, check, forge, get};
use super::*;
use crate::archive::ledger::replay::{ReplayFiles, replay};
use crate::model::Digest;
use crate::store::MemoryStore;

const NEXT: &str = "ledger/team=acme/2026-11-21.jsonl";

/// Three lines of one day and two of the next.
fn two_days() -> MemoryStore {
    let disk = MemoryStore::new();
    let mut writer = writer(&open(&disk.store()));
    for (step, draft) in history().into_iter().take(5).enumerate() {
        let moment = if step < 3 { now() } else { at("2026-11-21T12:00:00Z") };
        let _ = writer.commit(draft, moment).unwrap();
    }
    disk
}

fn edit(disk: &MemoryStore, file: &str, edit: impl Fn(&mut Vec<Vec<u8>>)) {
    let content = get(disk, file);
    let mut lines: Vec<Vec<u8>> = content.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    edit(&mut lines);
    disk.put(file, &lines.concat());
}

/// Replaces the line by zeros; its newline remains.
fn zero(line: &mut [u8]) {
    let end = line.len() - 1;
    line[..end].fill(0);
}

/// The same line with a wrong `prev`.
fn unlink(line: &[u8]) -> Vec<u8> {
    forge(line, |line| line.prev = Digest([7; 32]))
}

type Edit = fn(&mut Vec<Vec<u8>>);

struct Case {
    what: &'static str,
    edit: (&'static str, Edit),
    /// The object and the message of the fault.
    object: &'static str,
    said: &'static [(FaultCode, &'static str)],
}

fn case(
    what: &'static str,
    edit: (&'static str, Edit),
    object: &'static str,
    said: &'static [(FaultCode, &'static str)],
) -> Case {
    Case { what, edit, object, said }
}

/// The possible remains of an interrupted append: a replay stops before them.
fn left() -> Vec<Case> {
    use FaultCode::TornTail;
    vec![
        case(
            "the last line is zeros",
            (NEXT, |lines| zero(&mut lines[1])),
            "ledger/team=acme/2026-11-21.jsonl:2",
            &[(TornTail, "bytes of a torn line")],
        ),
        case(
            "the last file ends within a line",
            (NEXT, |lines| lines.push(b"{\"v\":1".to_vec())),
            "ledger/team=acme/2026-11-21.jsonl:3",
            &[(TornTail, "6 bytes of a torn line")],
        ),
    ]
}

/// Ends that only damage can leave: a replay fails there.
fn damages() -> Vec<Case> {
    use FaultCode::{ChainBreak, TornTail};
    vec![
        case(
            "zeros before the last line",
            (NEXT, |lines| zero(&mut lines[0])),
            "ledger/team=acme/2026-11-21.jsonl:1",
            &[(ChainBreak, "not a ledger line")],
        ),
        case(
            "zeros at the end of an earlier file",
            (LEDGER, |lines| zero(&mut lines[2])),
            "ledger/team=acme/2026-11-20.jsonl:3",
            &[(ChainBreak, "not a ledger line")],
        ),
        case(
            "the last line was altered",
            (NEXT, |lines| lines[1][20] ^= 1),
            "ledger/team=acme/2026-11-21.jsonl:2",
            &[(ChainBreak, "the line's digest is")],
        ),
        case(
            "an earlier file ends within a line",
            (LEDGER, |lines| lines.push(b"{\"v\":1".to_vec())),
            "ledger/team=acme/2026-11-20.jsonl:4",
            &[(ChainBreak, "the file ends in the middle of a line, but later files exist")],
        ),
        case(
            "the last newline was altered",
            (NEXT, |lines| *lines[1].last_mut().unwrap() = 0x0b),
            "ledger/team=acme/2026-11-21.jsonl:2",
            &[(ChainBreak, "somebody altered its newline")],
        ),
        case(
            "the last line has no newline and follows another one",
            (NEXT, |lines| {
                lines[1] = unlink(&lines[1]);
                lines[1].pop();
            }),
            "ledger/team=acme/2026-11-21.jsonl:2",
            &[(TornTail, "the last line is whole, but its newline is missing"), (ChainBreak, "but that line is")],
        ),
        case(
            "the first line follows another one",
            (LEDGER, |lines| lines[0] = unlink(&lines[0])),
            "ledger/team=acme/2026-11-20.jsonl:1",
            &[(ChainBreak, "a first line must name")],
        ),
        case(
            "the second line follows another one",
            (LEDGER, |lines| lines[1] = unlink(&lines[1])),
            "ledger/team=acme/2026-11-20.jsonl:2",
            &[(ChainBreak, "but that line is")],
        ),
    ]
}

#[test]
fn remains_of_a_power_loss_are_damage_except_at_the_end() {
    let cases = left().into_iter().map(|case| (case, true)).chain(damages().into_iter().map(|case| (case, false)));
    for (Case { what, edit: (file, change), object, said }, is_accepted) in cases {
        let disk = two_days();
        edit(&disk, file, change);
        let report = check(&disk);
        let here: Vec<_> = report.faults.iter().filter(|fault| fault.object == object).collect();
        assert_eq!(here.len(), said.len(), "{what}: {:#?}", report.faults);
        for (code, text) in said {
            let is_said = here.iter().any(|fault| fault.code == *code && fault.detail.contains(text));
            assert!(is_said, "{what}: no {code:?} {text} in {here:#?}");
        }
        match replay(&disk, "archive-1", &team()) {
            Ok(replayed) => {
                assert!(is_accepted, "{what}");
                assert_eq!(replayed.end.len + replayed.end.torn, get(&disk, NEXT).len() as u64, "{what}");
                assert!(replayed.end.torn > 0, "{what}");
            }
            Err(ArchiveError::Damaged { path, line, .. }) => {
                assert!(!is_accepted, "{what}");
                assert_eq!(format!("{path}:{line}"), object, "{what}");
            }
            Err(e) => panic!("{what}: {e}"),
        }
    }
}

/// An append that failed on a later day leaves its file without a line. Then the clock is set back.
#[test]
fn a_later_file_without_lines_holds_no_line_back() {
    for (ending, left) in [("jsonl", ""), ("jsonl", "{\"v\":1"), ("heads", ""), ("heads", "3 0123")] {
        let what = format!("{left:?} in a file of .{ending}");
        let disk = MemoryStore::new();
        let archive = open(&disk.store()).with_signer(Some(Arc::new(signing::signer(1))));
        let mut history = history().into_iter();
        let mut first = writer(&archive);
        for draft in history.by_ref().take(2) {
            let _ = commit(&mut first, draft).unwrap();
        }
        drop(first);
        let path = format!("ledger/team=acme/2026-11-22.{ending}");
        disk.put(&path, left.as_bytes());
        // An append that failed leaves an empty file: no damage.
        let faults: Vec<FaultCode> = check(&disk).faults.iter().map(|fault| fault.code).collect();
        assert_eq!(faults, if left.is_empty() { vec![] } else { vec![FaultCode::TornTail] }, "{what}");
        assert_eq!(archive.read(&team()).unwrap().state().seq.0, 2, "{what}");
        let mut second = writer(&archive);
        let _ = commit(&mut second, history.next().unwrap()).unwrap();
        let files = files_under(&disk.store(), "ledger");
        assert_eq!(files, ["ledger/team=acme/2026-11-20.heads", LEDGER], "{what}");
        assert_eq!(check(&disk).faults, [], "{what}");
        assert_eq!(archive.read(&team()).unwrap().state(), second.state(), "{what}");
    }
}

/// A writer removes a file without lines after a reader has listed it.
#[test]
fn a_reader_accepts_that_a_listed_file_without_lines_is_gone() {
    let disk = two_days();
    let mut files = ReplayFiles::list(&disk, "archive-1", &team()).unwrap();
    files.ledger.push((at("2026-11-22T00:00:00Z"), 3));
    let read = files.replay_for_reading().unwrap();
    assert_eq!(read.state, replay(&disk, "archive-1", &team()).unwrap().state);
    disk.take(NEXT);
    files.ledger.swap(1, 2);
    assert!(files.replay_for_reading().is_err(), "a file before the last is gone");
}
