//! The archive's answers about itself: its teams, the lines and the end of a ledger, and a reader's view.

use super::super::CommitSummary;
use super::signing::{signer, signer_of_all};
use super::*;
use crate::model::LedgerSeq;
use crate::store::{MemoryStore, StoreError, Tail};

const FIRST_DAY: &str = "ledger/team=acme/2026-11-20.jsonl";
const SECOND_DAY: &str = "ledger/team=acme/2026-11-21.jsonl";

fn disk() -> (MemoryStore, Arc<dyn Store>) {
    let disk = MemoryStore::new();
    (disk.clone(), Arc::new(disk))
}

/// Six lines of the history, three of them a day later and signed; and the team's state after each line.
fn of_two_days(store: &Arc<dyn Store>) -> (Archive, Vec<super::super::TeamState>) {
    let archive = open(store);
    let mut writer = writer(&archive);
    let mut states = Vec::new();
    for (step, draft) in history().into_iter().take(6).enumerate() {
        if step == 3 {
            archive.set_signer(Some(Arc::new(signer_of_all(1))));
        }
        let time = if step < 3 { now() } else { now().plus(Duration::from_secs(86_400)) };
        let _ = writer.commit(draft, time).unwrap();
        states.push(writer.state().clone());
    }
    (archive, states)
}

#[test]
fn the_lines_up_to_a_number_give_the_live_files_at_that_line() {
    let (_, store) = disk();
    let (archive, states) = of_two_days(&store);
    let sum = |lines: &[CommitSummary], of: fn(&CommitSummary) -> u64| lines.iter().map(of).sum::<u64>();
    for (state, count) in states.iter().zip(1_usize..) {
        let read = archive.lines(&team(), state.seq).unwrap();
        let last = read.lines.last().unwrap();
        assert_eq!((read.lines.len(), last.seq, last.sha256), (count, state.seq, state.head));
        assert_eq!((Some(last.at), last.kind.as_str()), (state.at, "commit"));
        assert!(read.lines.windows(2).all(|pair| pair[1].prev == pair[0].sha256 && pair[1].seq == pair[0].seq.next()));
        assert!(read.files.values().map(|file| &file.entry).eq(state.files.values()), "line {count}");
        for file in read.files.values() {
            let first = states.iter().find(|state| state.files.contains_key(&file.entry.path)).unwrap();
            assert_eq!(file.added_seq, first.seq, "{}", file.entry.path);
        }
        let live = sum(&read.lines, |line| line.files_added) - sum(&read.lines, |line| line.files_removed);
        assert_eq!(live, state.files.len() as u64, "line {count}");
        let rows = state.files.values().map(|file| file.rows).sum::<u64>();
        assert_eq!(sum(&read.lines, |line| line.rows_added), rows, "line {count}");
    }
    assert_eq!(archive.lines(&TeamId::from("nobody"), LedgerSeq(9)).unwrap().lines, []);
}

#[test]
fn reading_an_invalid_line_names_it() {
    let (disk, store) = disk();
    let (archive, _) = of_two_days(&store);
    let whole = archive.lines(&team(), LedgerSeq(6)).unwrap();
    let keep = disk.read(SECOND_DAY).unwrap().size();
    disk.append(SECOND_DAY, Tail { keep, torn: 0 }, b"{\"v\":1,").unwrap();
    assert_eq!(archive.lines(&team(), LedgerSeq(6)).unwrap(), whole, "the lines end at the requested one");
    let error = archive.lines(&team(), LedgerSeq(7)).unwrap_err();
    assert!(matches!(&error, ArchiveError::Damaged { path, line: 4, .. } if path == SECOND_DAY), "{error}");
    let mut text = disk.read(FIRST_DAY).unwrap().to_bytes().unwrap().to_vec();
    let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    text[second] = b'x';
    disk.tamper(FIRST_DAY, Some(text.into()));
    for error in [archive.read(&team()).err().unwrap(), archive.writer(&team()).err().unwrap()] {
        assert!(matches!(&error, ArchiveError::Damaged { path, line: 2, .. } if path == FIRST_DAY), "{error}");
    }
}

/// The extent changes with each further file or byte of lines, and with nothing else.
#[test]
fn the_extent_of_a_ledger_changes_only_with_its_lines() {
    let (disk, store) = disk();
    let (archive, _) = of_two_days(&store);
    let extent = || archive.extent(&team()).unwrap();
    let heads = files_under(&store, "ledger").into_iter().find(|path| path.ends_with(".heads")).unwrap();
    let whole = extent();
    disk.tamper(&heads, None);
    assert_eq!(extent(), whole);
    let content = disk.read(SECOND_DAY).unwrap().to_bytes().unwrap();
    disk.tamper(SECOND_DAY, Some(content.slice(1..)));
    let shorter = extent();
    disk.tamper(SECOND_DAY, Some(Bytes::new()));
    let of_nothing = extent();
    disk.tamper(SECOND_DAY, None);
    let of_one_file = extent();
    disk.tamper(FIRST_DAY, None);
    let all = [whole, shorter, of_nothing, of_one_file, extent()];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(one), "{all:?}");
    }
    assert_eq!((extent(), archive.extent(&TeamId::from("nobody")).unwrap()), Default::default());
}

/// A team exists from its first whole line on; a ledger with a damaged first line is not skipped.
#[test]
fn a_team_exists_from_its_first_whole_line() {
    let (disk, store) = disk();
    let (archive, _) = of_two_days(&store);
    let _ = archive.writer(&TeamId::from("other")).unwrap().commit(history().swap_remove(3), now()).unwrap();
    let line = disk.read(FIRST_DAY).unwrap().to_bytes().unwrap();
    let zeros = [[0; 700].as_slice(), b"\n"].concat();
    let both = || Ok(vec![team(), TeamId::from("other")]);
    let path = "ledger/team=more/2026-11-20.jsonl";
    for (what, content, expected) in [
        ("nothing", Vec::new(), both()),
        ("half a line", line[..100].to_vec(), both()),
        ("the zeros of a power loss", zeros.clone(), both()),
        ("zeros, and more text behind them", [&zeros, line.as_ref()].concat(), Err(path)),
        ("text", b"text\n".to_vec(), Err(path)),
    ] {
        disk.tamper(path, Some(content.into()));
        let found = archive.teams();
        match (&found, expected) {
            (Ok(teams), Ok(expected)) => assert_eq!(*teams, expected, "{what}"),
            (Err(ArchiveError::Damaged { path, line: 1, .. }), Err(expected)) => assert_eq!(path, expected, "{what}"),
            _ => panic!("{what}: {found:?}"),
        }
    }
}

#[test]
fn a_reader_knows_the_names_of_computers() {
    let (_, store) = disk();
    let (archive, states) = of_two_days(&store);
    let reader = archive.read(&team()).unwrap();
    assert_eq!(reader.state(), &states[5]);
    let names: Vec<_> =
        reader.rows().inventory(Computers).unwrap().into_iter().map(|row| row.values[0].clone()).collect();
    assert_eq!(names, ["one", "two", "three"].map(|name| crate::model::InventoryValue::Text(name.to_owned())));
}

#[test]
fn the_archive_returns_its_current_signer() {
    let (_, store) = disk();
    let archive = open(&store);
    assert!(archive.signer().is_none());
    archive.set_signer(Some(Arc::new(signer(1))));
    assert_eq!(archive.signer().map(|held| held.key.public().clone()), Some(signer(1).key.public().clone()));
}

#[test]
fn temporary_errors_are_distinguished_from_permanent_ones() {
    let source = || StoreError::NotFound { path: "x".to_owned() };
    for (error, is_transient, needs_reopen) in [
        (ArchiveError::Store(source()), true, false),
        (ArchiveError::Reopen { team: team(), seq: LedgerSeq(1), source: source() }, true, true),
        (ArchiveError::Fenced { team: team(), seq: LedgerSeq(1), source: source() }, true, true),
        (ArchiveError::Poisoned { team: team() }, true, true),
        (ArchiveError::Stalled { team: team(), minutes: 61 }, true, false),
        (ArchiveError::NotAnArchive, false, false),
        (ArchiveError::Manifest { path: "archive.json", reason: "why".to_owned() }, false, false),
    ] {
        assert_eq!((error.is_transient(), error.needs_reopen()), (is_transient, needs_reopen), "{error}");
    }
    // An operation changed nothing if its error says so, or if it was refused.
    let io = |undone| {
        let source = std::io::Error::from_raw_os_error(28);
        StoreError::Io { verb: crate::store::Verb::Append, path: "x".to_owned(), source, undone }
    };
    assert_eq!([io(true), io(false), source()].map(|error| error.is_undone()), [true, false, true]);
}
