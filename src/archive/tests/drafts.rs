//! Invalid drafts: each is refused with a sentence, and changes nothing.

use super::*;
use crate::store::MemoryStore;

/// A writer whose archive holds two quarantined events, a window with two files and a window with one.
fn held() -> (Arc<dyn Store>, TeamWriter) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    for draft in history().into_iter().take(2) {
        let _ = commit(&mut writer, draft).unwrap();
    }
    (store, writer)
}

fn of_rows(rows: Vec<WindowRows>) -> Draft {
    Draft { rows, ..Draft::default() }
}

#[test]
fn rows_outside_their_window_or_team_are_refused() {
    let (store, mut writer) = held();
    let (before, files) = (writer.state().clone(), files_under(&store, ""));
    let (date, window) = ("2026-11-03", day("2026-11-03"));
    let last_moment = Instant::from_nanos(window.end.nanos() - 1);
    let one = |time| of_rows(vec![rows(date, vec![event("e", time)], false)]);
    let stranger = EventRow { team_id: "other".into(), ..event("e", window.start) };
    let (half, _) = window.halves().unwrap();
    let other_end = WindowRows::new(Stream::Connections, half, Vec::new(), false);
    let twice = [events(date, 0, 1), events(date, 0, 1)];
    let again = EventRow { revision: 2, ..events(date, 0, 1).remove(0) };
    let foreign = RejectRow { team_id: "other".into(), ..reject("r", b"{}") };
    for (draft, reason) in [
        (one(window.end), "event e of 2026-11-04T00:00:00Z lies outside window connections[2026-11-03"),
        (one(Instant::from_nanos(window.start.nanos() - 1)), "event e of 2026-11-02T23:59:59.999999999Z lies outside"),
        (of_rows(vec![rows(date, vec![stranger], false)]), "event e belongs to team other"),
        (of_rows(vec![rows(date, events(date, 0, 1), false), other_end]), "with the same start"),
        (of_rows(vec![rows(date, twice.concat(), false)]), "event 2026-11-03-0000 revision 1 is in the draft twice"),
        (
            of_rows(twice.map(|twice| rows(date, twice, false)).to_vec()),
            "event 2026-11-03-0000 revision 1 is in the draft twice",
        ),
        (Draft { rejects: vec![foreign], ..Draft::default() }, "event r belongs to team other"),
    ] {
        let error = commit(&mut writer, draft).unwrap_err();
        assert!(matches!(&error, ArchiveError::Draft { .. }) && error.to_string().contains(reason), "{error}");
        assert_eq!((writer.state(), &files_under(&store, "")), (&before, &files), "{reason}");
    }
    let fine = [event("e", window.start), event("f", last_moment), again, events(date, 0, 1).remove(0)];
    let _ = commit(&mut writer, of_rows(vec![rows(date, fine.to_vec(), false)])).unwrap();
}

/// If one part of a window asks for compaction, all its files are joined.
#[test]
fn one_compacting_part_joins_all_files_of_a_window() {
    let date = "2026-11-03";
    for asks in [[false, false], [true, false], [false, true], [true, true]] {
        let (_store, mut writer) = held();
        let start = day(date).start;
        for first in [0, 2] {
            let piece = |at: u64| rows(date, events(date, first + at, 1), asks[usize::from(at == 1)]);
            let draft = Draft::from(Body {
                windows: vec![record(day(date), WindowState::Provisional, first + 2)],
                ..Body::default()
            });
            let _ = commit(&mut writer, Draft { rows: vec![piece(0), piece(1)], ..draft }).unwrap();
        }
        let files = writer.state().files_of(Dataset::Connections).filter(|file| file.first >= Some(start)).count();
        assert_eq!(files, if asks.contains(&true) { 1 } else { 2 }, "{asks:?}");
    }
}

#[test]
fn released_and_kept_rows_are_all_rows_of_the_file() {
    let (_store, mut writer) = held();
    let path = writer.state().files_of(Dataset::Quarantine).next().unwrap().path.clone();
    let data = writer.state().files_of(Dataset::Connections).next().unwrap().path.clone();
    let all = writer.rows().rejects_of(&path).unwrap();
    let release = |path: &str, released: &[RejectRow], kept: &[RejectRow]| Draft {
        releases: vec![Release { path: path.to_owned(), released: released.to_vec(), kept: kept.to_vec() }],
        ..of_rows(vec![rows("2026-11-03", events("2026-11-03", 0, 2), false)])
    };
    let before = writer.state().clone();
    for (draft, reason) in [
        (release("tables/none.parquet", &all[..1], &all[1..]), "tables/none.parquet: not a live file of quarantine"),
        (release(&data, &all[..1], &all[1..]), "not a live file of quarantine"),
        (release(&path, &[], &all), "0 released and 2 kept rows are not the 2 rows of the file"),
        (release(&path, &all[..1], &[]), "1 released and 0 kept rows are not the 2 rows of the file"),
        (release(&path, &all, &all[..1]), "2 released and 1 kept rows are not the 2 rows of the file"),
    ] {
        let error = commit(&mut writer, draft).unwrap_err();
        assert!(matches!(&error, ArchiveError::Draft { .. }) && error.to_string().contains(reason), "{error}");
        assert_eq!(writer.state(), &before, "{reason}");
    }
    let _ = commit(&mut writer, release(&path, &all[..1], &all[1..])).unwrap();
    assert_eq!(writer.rows().rejects(Stream::Connections).unwrap().len(), 1);
    let rest = writer.state().files_of(Dataset::Quarantine).next().unwrap().path.clone();
    let last = release(&rest, &all[1..], &[]);
    let last = Draft { rows: vec![rows("2026-11-04", events("2026-11-04", 0, 1), false)], ..last };
    let _ = commit(&mut writer, last).unwrap();
    assert_eq!(writer.state().files_of(Dataset::Quarantine).count(), 0, "a file without rows is not added");
}

/// The files of a window after new rows, settled or not, with and without existing files.
#[test]
fn a_settled_window_with_several_files_becomes_one_file() {
    let files_after = |settle: &[bool], rows_each: u64| {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut writer = writer(&open(&store));
        let mut counts = Vec::new();
        for (n, compact) in (0..).zip(settle) {
            let rows = vec![rows("2026-11-03", events("2026-11-03", n * rows_each, rows_each), *compact)];
            let _ = commit(&mut writer, Draft { rows, ..Draft::default() }).unwrap();
            counts.push(writer.state().files_of(Dataset::Connections).count());
        }
        (counts, writer.state().seq.0)
    };
    for (settle, rows_each, expected) in [
        (&[false, false, true][..], 1, (vec![1, 2, 1], 3)),
        (&[true, true, false, true], 1, (vec![1, 1, 2, 1], 4)),
        (&[false, true], 0, (vec![0, 0], 0)),
    ] {
        assert_eq!(files_after(settle, rows_each), expected, "{settle:?}, {rows_each}");
    }
    // A single part becomes the window's file without a new row; a single window file remains.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let date = "2026-11-03";
    let _ = commit(&mut writer, of_rows(vec![rows(date, events(date, 0, 2), false)])).unwrap();
    let settle = || of_rows(vec![rows(date, Vec::new(), true)]);
    assert!(matches!(commit(&mut writer, settle()).unwrap(), Committed::Committed { files: 1, rows: 2, .. }));
    let findings = |n| Draft {
        body: Body { read_points: vec![(Stream::Activity, records::point(n))], ..Body::default() },
        ..settle()
    };
    assert!(matches!(commit(&mut writer, findings(1)).unwrap(), Committed::Committed { files: 0, rows: 0, .. }));
    assert_eq!(writer.state().files_of(Dataset::Connections).count(), 1);
    // The rows of one window can come in several entries: the window settles if one of them says so.
    for settles in [[false, false], [true, false], [false, true]] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut writer = super::writer(&open(&store));
        let _ = commit(&mut writer, of_rows(vec![rows(date, events(date, 0, 2), false)])).unwrap();
        let apart = [2, 3].into_iter().zip(settles).map(|(n, settle)| rows(date, events(date, n, 1), settle));
        let _ = commit(&mut writer, of_rows(apart.collect())).unwrap();
        let files = writer.state().files_of(Dataset::Connections).count();
        assert_eq!(files, if settles.contains(&true) { 1 } else { 2 }, "{settles:?}");
    }
}
