//! New rows as columns give the same archive, or the same refusal, as the same rows one by one.

use std::slice::from_ref;

use super::super::draft_digest::row_digests;
use super::super::plan::{Content, plan};
use super::super::{ColumnsBuilder, EncodedTable, EventColumns, FileEntry, MemoryStore, VerifyOptions, verify};
use super::*;
use crate::model::LedgerSeq;

const STREAM: Stream = Stream::Connections;

fn columns(rows: &[EventRow]) -> EventColumns {
    let bytes = rows.iter().map(|row| row.raw.len()).sum();
    let mut builder = ColumnsBuilder::new(&Salts::of_test(rows[0].team_id.clone()), STREAM, (rows.len(), bytes));
    rows.iter().for_each(|row| row.with_ref(|row| builder.add(&row)).unwrap());
    builder.finish().unwrap().unwrap()
}

/// The same draft, with the file of these rows encoded earlier.
fn with_file_of(mut draft: Draft, pieces: &[&[EventRow]]) -> Draft {
    let table = EncodedTable::of_window(pieces.iter().map(|rows| columns(rows)).collect(), &salts()).unwrap();
    draft.rows[0].encoded = Some(table.expect("columns in order make a file"));
    draft
}

/// The encoded file of a window with these rows.
pub fn encoded_before_of(rows: &[EventRow]) -> EncodedTable {
    EncodedTable::of_window(vec![columns(rows)], &salts()).unwrap().unwrap()
}

/// A settled day's rows, whose file was encoded earlier.
pub fn encoded_before(date: &str) -> Draft {
    let all = events(date, 0, 9);
    with_file_of(mixed(date, Vec::new(), &[&all], true), &[&all])
}

/// The rows of a window, some as rows and some as columns.
fn mixed(date: &str, rows: Vec<EventRow>, pieces: &[&[EventRow]], compact: bool) -> Draft {
    let columns = pieces.iter().map(|rows| columns(rows)).collect();
    let window = WindowRows { stream: STREAM, window: day(date), rows, columns, encoded: None, compact };
    Draft { rows: vec![window], ..Draft::default() }
}

/// The live files after the drafts.
fn archived(drafts: Vec<Draft>) -> BTreeMap<String, FileEntry> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open_same(&store));
    for draft in drafts {
        let _ = commit(&mut writer, draft).unwrap();
    }
    let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
    writer.state().files.clone()
}

#[test]
fn an_archive_does_not_tell_columns_from_rows() {
    let date = "2026-11-03";
    let all = events(date, 0, 9);
    let (first, second, third) = (&all[..3], &all[3..5], &all[5..]);
    let every_other = |from: usize| all.iter().skip(from).step_by(2).cloned().collect::<Vec<_>>();
    let (even, odd) = (every_other(0), every_other(1));
    for compact in [false, true] {
        let as_rows = archived(vec![mixed(date, all.clone(), &[], compact)]);
        assert_eq!(as_rows.values().map(|file| file.rows).collect::<Vec<_>>(), [9]);
        for (what, draft) in [
            ("one piece", mixed(date, Vec::new(), &[&all], compact)),
            ("pieces in order", mixed(date, Vec::new(), &[first, second, third], compact)),
            ("pieces out of order", mixed(date, Vec::new(), &[third, first, second], compact)),
            ("pieces among one another", mixed(date, Vec::new(), &[&even, &odd], compact)),
            ("rows after columns", mixed(date, third.to_vec(), &[first, second], compact)),
            ("rows among columns", mixed(date, even.clone(), &[&odd], compact)),
        ] {
            assert_eq!(archived(vec![draft]), as_rows, "{what}, {compact}");
        }
    }
    // The window already has rows; its month is sealed together with new rows.
    let steps = |rows: &[EventRow], pieces: &[&[EventRow]], seal_months: Vec<(Stream, Range)>| {
        let before = mixed(date, first.to_vec(), &[], false);
        let windows = vec![record(day(date), WindowState::Sealed, 9)];
        let last = Draft { windows, seal_months, ..mixed(date, rows.to_vec(), pieces, true) };
        archived(vec![before, last])
    };
    for seal in [Vec::new(), vec![(STREAM, november())]] {
        let as_rows = steps(&all[3..], &[], seal.clone());
        assert_eq!(as_rows.len(), 1);
        assert_eq!(steps(&[], &[second, third], seal.clone()), as_rows);
        assert_eq!(steps(third, &[second], seal), as_rows);
    }
}

#[test]
fn an_archive_does_not_tell_whether_a_file_was_encoded_before() {
    let date = "2026-11-03";
    let all = events(date, 0, 9);
    let (first, second) = (&all[..5], &all[5..]);
    for compact in [false, true] {
        let draft = |pieces: &[&[EventRow]]| mixed(date, Vec::new(), pieces, compact);
        let as_rows = archived(vec![mixed(date, all.clone(), &[], compact)]);
        for (what, draft, file) in [
            ("one piece", draft(&[&all]), &[all.as_slice()][..]),
            ("pieces", draft(&[first, second]), &[first, second]),
            ("pieces out of order", draft(&[first, second]), &[second, first]),
            ("a file of other rows", draft(&[first, second]), &[second]),
            ("rows beside it", mixed(date, second.to_vec(), &[first], compact), &[first]),
        ] {
            assert_eq!(archived(vec![with_file_of(draft, file)]), as_rows, "{what}, {compact}");
        }
    }
    // If the window already has rows, its new file includes them.
    let after = |last: Draft| archived(vec![mixed(date, first.to_vec(), &[], false), last]);
    let last = mixed(date, Vec::new(), &[second], true);
    assert_eq!(after(with_file_of(last.clone(), &[second])), after(last));
    let every_other = |from: usize| columns(&all.iter().skip(from).step_by(2).cloned().collect::<Vec<_>>());
    assert_eq!(EncodedTable::of_window(vec![every_other(0), every_other(1)], &salts()).unwrap(), None, "not in order");
    assert_eq!(EncodedTable::of_window(Vec::new(), &salts()).unwrap(), None);
}

/// The committed file is the encoded one, byte for byte: nothing is encoded a second time.
#[test]
fn a_file_that_was_encoded_before_is_written_as_it_is() {
    let date = "2026-11-03";
    let is_encoded = |mut draft: Draft| {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let digests = row_digests(&draft, &salts()).unwrap();
        let (outputs, _) = plan(writer(&open(&store)).state(), &mut draft, &digests, &salts()).unwrap();
        outputs.iter().map(|output| matches!(output.content, Content::Encoded { .. })).collect::<Vec<_>>()
    };
    assert_eq!(is_encoded(encoded_before(date)), [true]);
    let mut parts = encoded_before(date);
    parts.rows[0].compact = false;
    assert_eq!(is_encoded(parts), [false], "a part lives briefly, and is encoded otherwise");
    let mut more = encoded_before(date);
    more.rows[0].columns.push(columns(&events(date, 9, 1)));
    assert_eq!(is_encoded(more), [false]);
}

#[test]
fn columns_belong_to_their_window_their_team_and_their_stream_and_no_row_stands_twice() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let date = "2026-11-03";
    let (inside, after) = (event("e", day(date).start), event("f", day(date).end));
    let stranger = EventRow { team_id: "other".into(), ..inside.clone() };
    let one = |rows: &[EventRow]| mixed(date, Vec::new(), &[rows], false);
    let mut activity = one(from_ref(&inside));
    activity.rows[0].stream = Stream::Activity;
    for (draft, reason) in [
        (one(&[inside.clone(), after.clone()]), "event f of 2026-11-04T00:00:00Z lies outside window connections"),
        (one(&[after]), "event f of 2026-11-04T00:00:00Z lies outside"),
        (one(&[stranger]), "holds events of connections of team other"),
        (activity, "holds events of connections of team"),
        (mixed(date, vec![inside.clone()], &[from_ref(&inside)], false), "event e revision 1 is in the draft twice"),
        (
            mixed(date, Vec::new(), &[from_ref(&inside), from_ref(&inside)], false),
            "event e revision 1 is in the draft twice",
        ),
    ] {
        let error = commit(&mut writer, draft).unwrap_err();
        assert!(matches!(&error, ArchiveError::Draft { .. }) && error.to_string().contains(reason), "{error}");
        assert_eq!(writer.state().seq, LedgerSeq(0), "{reason}");
    }
    let _ = commit(&mut writer, one(&[inside])).unwrap();
}

#[test]
fn a_row_that_does_not_fit_is_not_added() {
    let (first, second) = (event("b", now()), event("c", now()));
    let mut builder = ColumnsBuilder::new(&salts(), STREAM, (2, 0));
    let mut add = |row: &EventRow| row.with_ref(|row| builder.add(&row));
    add(&first).unwrap();
    let billing = EventRow { detail: Detail::Billing { payload: None }, ..second.clone() };
    for (row, reason) in [
        (EventRow { team_id: "other".into(), ..second.clone() }, "event c belongs to team other"),
        (first.clone(), "event b of 2026-11-20T12:00:00Z comes after one of 2026-11-20T12:00:00Z"),
        (event("a", now()), "event a of 2026-11-20T12:00:00Z comes after"),
        (event("c", Instant::from_nanos(now().nanos() - 1)), "event c of 2026-11-20T11:59:59.999999999Z comes after"),
        (EventRow { raw: Bytes::from_static(b"\xff"), ..second.clone() }, "event c: not UTF-8"),
        (EventRow { revision: u32::MAX, ..second.clone() }, "event c: revision 4294967295 is too large"),
        (billing, "event c: not an event of connections"),
    ] {
        let refused = add(&row).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    add(&second).unwrap();
    let columns = builder.finish().unwrap().unwrap();
    assert_eq!(columns.to_rows(), [first, second]);
    assert_eq!(columns.rows().map(|row| row.event_id).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(columns.times(), (now(), now()));
}
