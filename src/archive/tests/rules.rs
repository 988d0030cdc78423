//! The rules of a team's state: each is broken by the smallest possible change, and kept by a similar one.

use super::super::{Body, FileEntry, InventoryRead, SessionsRecord, StateError, TeamState, WindowState::*};
use super::*;
use crate::archive::ledger::rows_sum::RowsSum;
use crate::model::path::{ArchivePath, DataPath, SealUnit};
use crate::model::{Digest, FileRole, InventoryPart, TeamKey};

/// A row digest that adds up like the number.
pub fn sum(number: u8) -> Digest {
    let mut bytes = [0; 32];
    bytes[31] = number;
    Digest(bytes)
}

/// A file with this many rows; its digest is ten times the number.
pub fn file(dataset: impl Into<Dataset>, role: FileRole, start: &str, rows: u8, number: u64) -> FileEntry {
    let (dataset, team) = (dataset.into(), TeamKey::of(&team()));
    let place = DataPath { dataset, team, role, start: at(start), hash: format!("{number:016x}") };
    FileEntry {
        path: ArchivePath::Data(place).to_string(),
        dataset,
        role,
        rows: rows.into(),
        bytes: 1,
        sha256: sum(0),
        rows_digest: sum(rows * 10),
        first: None,
        last: None,
    }
}

pub const FIRST: &str = "2026-11-01T00:00:00Z";
pub const THIRD: &str = "2026-11-03T00:00:00Z";

pub fn part() -> FileEntry {
    file(Stream::Connections, FileRole::Part, FIRST, 5, 1)
}

pub fn window_file() -> FileEntry {
    file(Stream::Connections, FileRole::Window, THIRD, 3, 2)
}

pub fn quarantined() -> FileEntry {
    file(Dataset::Quarantine, FileRole::Part, "2026-11-20T00:00:00Z", 2, 3)
}

fn inventory_read(part: InventoryPart, hour: u32) -> InventoryRead {
    InventoryRead { part, read_at: at(&format!("2026-11-20T{hour:02}:00:00Z")), visible: true, entities: 1 }
}

/// Two windows of connections with a day between them, a file for each, two quarantined events, and an inventory scan.
pub fn state() -> TeamState {
    let body = Body {
        adds: vec![part(), window_file(), quarantined()],
        windows: vec![record(day("2026-11-01"), Settled, 5), record(day("2026-11-03"), Provisional, 3)],
        inventory: vec![inventory_read(InventoryPart::Users, 10)],
        ..Body::default()
    };
    TeamState::genesis("archive-1", team()).try_advance(body).unwrap()
}

fn range(from: &str, to: &str) -> Range {
    Range::new(at(&format!("2026-11-{from}:00:00Z")), at(&format!("2026-11-{to}:00:00Z")))
}

fn windows(windows: Vec<WindowRecord>) -> Body {
    Body { windows, ..Body::default() }
}

pub fn files(adds: Vec<FileEntry>, removes: &[FileEntry]) -> Body {
    Body { adds, removes: removes.iter().map(|file| file.path.clone()).collect(), ..Body::default() }
}

/// Checks the result for each body: no error, or the broken rule.
fn assert_results(state: &TeamState, cases: Vec<(&str, Body, Option<StateError>)>) {
    for (case, body, expected) in cases {
        assert_eq!(state.check(&body).err(), expected, "{case}");
        assert_eq!(state.try_advance(body).is_err(), expected.is_some(), "{case}");
    }
}

#[test]
fn window_states_only_advance_and_windows_never_overlap() {
    let stream = Stream::Connections;
    let (first, third, fifth) = (day("2026-11-01"), day("2026-11-03"), day("2026-11-05"));
    let fresh = |range: Range| record(range, Provisional, 0);
    let overlap = |new: Range, held: Range| Some(StateError::Overlap { stream, new, held });
    let half = range("01T00", "01T12");
    let (into_first, into_third) = (range("01T12", "02T12"), range("02T12", "03T01"));
    let across = range("05T12", "06T12");
    let other_stream = WindowRecord { stream: Stream::Activity, ..fresh(range("01T12", "03T12")) };
    let (from, to) = (Settled, Provisional);
    assert_results(
        &state(),
        vec![
            ("as it stands", windows(vec![record(first, Settled, 5)]), None),
            ("further", windows(vec![record(first, Sealed, 6)]), None),
            (
                "back",
                windows(vec![record(first, Provisional, 5)]),
                Some(StateError::Back { stream, window: first, from, to }),
            ),
            (
                "fewer events",
                windows(vec![record(first, Settled, 4)]),
                Some(StateError::FewerEvents { stream, window: first, from: 5, to: 4 }),
            ),
            (
                "another end",
                windows(vec![record(half, Settled, 5)]),
                Some(StateError::Resized { stream, new: half, held: first }),
            ),
            (
                "empty",
                windows(vec![fresh(Range::new(fifth.start, fifth.start))]),
                Some(StateError::EmptyWindow { stream, new: Range::new(fifth.start, fifth.start) }),
            ),
            ("twice", windows(vec![fresh(fifth), fresh(fifth)]), Some(StateError::Twice { stream, window: fifth })),
            ("between", windows(vec![fresh(day("2026-11-02"))]), None),
            ("into the one before", windows(vec![fresh(into_first)]), overlap(into_first, first)),
            ("into the one after", windows(vec![fresh(into_third)]), overlap(into_third, third)),
            ("two new ones", windows(vec![fresh(fifth), fresh(across)]), overlap(fifth, across)),
            ("side by side", windows(vec![fresh(fifth), fresh(day("2026-11-06"))]), None),
            ("of another stream", windows(vec![other_stream]), None),
        ],
    );
}

#[test]
fn added_files_are_new_and_removed_files_are_live() {
    let fresh = || file(Stream::Connections, FileRole::Part, THIRD, 1, 9);
    let lie = |file: &FileEntry| Some(StateError::Path { path: file.path.clone(), dataset: file.dataset });
    let dataset = FileEntry { dataset: Dataset::Activity, ..fresh() };
    let role = FileEntry { role: FileRole::Window, ..fresh() };
    let team = FileEntry { path: fresh().path.replace("team=acme", "team=other"), ..fresh() };
    let nowhere = FileEntry { path: "../x.parquet".to_owned(), ..fresh() };
    let (first, last) = (at("2026-11-03T01:00:00Z"), at("2026-11-03T00:59:59Z"));
    let timed = |first, last| FileEntry { first: Some(first), last: Some(last), ..fresh() };
    let (path, part_path) = (fresh().path, part().path);
    assert_results(
        &state(),
        vec![
            ("new", files(vec![fresh()], &[]), None),
            ("of another dataset", files(vec![dataset.clone()], &[]), lie(&dataset)),
            ("of another role", files(vec![role.clone()], &[]), lie(&role)),
            ("of another team", files(vec![team.clone()], &[]), lie(&team)),
            ("of no archive", files(vec![nowhere.clone()], &[]), lie(&nowhere)),
            ("live already", files(vec![part()], &[]), Some(StateError::NotNew { path: part_path.clone() })),
            ("twice", files(vec![fresh(), fresh()], &[]), Some(StateError::NotNew { path: path.clone() })),
            ("one moment", files(vec![timed(first, first)], &[]), None),
            (
                "backwards",
                files(vec![timed(first, last)], &[]),
                Some(StateError::Times { path: path.clone(), first, last }),
            ),
            ("not live", files(Vec::new(), &[fresh()]), Some(StateError::NotLive { path })),
            (
                "removed twice",
                files(vec![file(Stream::Connections, FileRole::Window, FIRST, 10, 9)], &[part(), part()]),
                Some(StateError::NotLive { path: part_path }),
            ),
        ],
    );
}

#[test]
fn rows_of_removed_files_are_in_the_added_files() {
    let new = |rows: u8| file(Stream::Connections, FileRole::Window, FIRST, rows, 9);
    let dataset = Dataset::Connections;
    let lost = |added| Some(StateError::RowsLost { dataset, removed: 5, added });
    let other = FileEntry { rows_digest: sum(51), ..new(5) };
    let changed = StateError::RowsChanged { dataset, rows: 5, removed: sum(50), added: sum(51) };
    let elsewhere = file(Stream::Activity, FileRole::Window, FIRST, 5, 9);
    assert_results(
        &state(),
        vec![
            ("the same", files(vec![new(5)], &[part()]), None),
            ("more", files(vec![new(6)], &[part()]), None),
            ("in two files", files(vec![new(2), file(dataset, FileRole::Part, FIRST, 3, 8)], &[part()]), None),
            ("fewer", files(vec![new(4)], &[part()]), lost(4)),
            ("none", files(Vec::new(), &[part()]), lost(0)),
            ("other ones", files(vec![other], &[part()]), Some(changed)),
            ("of another dataset", files(vec![elsewhere], &[part()]), lost(0)),
        ],
    );
}

#[test]
fn only_events_that_become_rows_leave_quarantine() {
    let rest = |rows: u8| file(Dataset::Quarantine, FileRole::Part, "2026-11-20T00:00:00Z", rows, 9);
    let gained = |rows: u8| file(Stream::Connections, FileRole::Part, FIRST, rows, 9);
    let body = |adds: Vec<FileEntry>, removes: &[FileEntry], rows: u8| Body {
        released: Some(RowsSum::new(rows.into(), sum(rows * 10))),
        ..files(adds, removes)
    };
    let refused = |rows, gained, left| Some(StateError::Released { rows, gained, left });
    let dataset = Dataset::Quarantine;
    let of_users = file(Dataset::Inventory(InventoryPart::Users), FileRole::Part, FIRST, 2, 9);
    assert_results(
        &state(),
        vec![
            ("one of two", body(vec![rest(1), gained(1)], &[quarantined()], 1), None),
            ("both", body(vec![gained(2)], &[quarantined()], 2), None),
            ("more rows are released than are added", body(vec![gained(1)], &[quarantined()], 2), refused(2, 1, 2)),
            ("more rows are released than the file held", body(vec![gained(3)], &[quarantined()], 3), refused(3, 3, 2)),
            (
                "rewritten rows do not count as released rows",
                body(vec![gained(6)], &[part(), quarantined()], 2),
                refused(2, 1, 2),
            ),
            ("the added rows are no events", body(vec![of_users], &[quarantined()], 2), refused(2, 0, 2)),
            ("a released row, but no quarantine file is removed", body(vec![gained(1)], &[], 1), refused(1, 1, 0)),
            (
                "one row of the file is released, and the other row is lost",
                body(vec![gained(1)], &[quarantined()], 1),
                Some(StateError::RowsLost { dataset, removed: 1, added: 0 }),
            ),
        ],
    );
}

/// If sessions exist, new connection events change them, or the line says that the sessions lack these events.
#[test]
fn a_line_with_events_includes_their_sessions() {
    let mark = SessionsMark { rules: 1, through: None, until: None };
    let says = |(replaced, replaced_digest), (added, added_digest)| {
        Some(SessionsRecord { mark, replaced, replaced_digest, added, added_digest })
    };
    let nothing = says((0, sum(0)), (0, sum(0)));
    let held = file(Dataset::Sessions, FileRole::Open, FIRST, 4, 5);
    let begun = Body { sessions: says((0, sum(0)), (4, sum(40))), ..files(vec![held.clone()], &[]) };
    let state = state().try_advance(begun).unwrap();
    let new = |rows: u8| file(Stream::Connections, FileRole::Part, THIRD, rows, 9);
    let rewritten = file(Stream::Connections, FileRole::Window, FIRST, 5, 9);
    let more = file(Stream::Connections, FileRole::Window, FIRST, 7, 9);
    let next = |rows: u8| file(Dataset::Sessions, FileRole::Open, FIRST, rows, 6);
    let swap = |rows: u8, sessions| Body { sessions, ..files(vec![next(rows)], std::slice::from_ref(&held)) };
    let dataset = Dataset::Sessions;
    assert_results(
        &state,
        vec![
            ("new rows", files(vec![new(2)], &[]), Some(StateError::SessionsBehind { rows: 2 })),
            ("new rows of a rewrite", files(vec![more], &[part()]), Some(StateError::SessionsBehind { rows: 2 })),
            ("rows as they were", files(vec![rewritten], &[part()]), None),
            ("activity", files(vec![file(Stream::Activity, FileRole::Part, THIRD, 2, 9)], &[]), None),
            ("new rows, and the record declares them", Body { sessions: nothing, ..files(vec![new(2)], &[]) }, None),
            ("one more", swap(5, says((0, sum(0)), (1, sum(10)))), None),
            ("one for another", swap(4, says((1, sum(9)), (1, sum(9)))), None),
            ("one more than it says", swap(5, nothing), Some(StateError::RowsLost { dataset, removed: 4, added: 5 })),
            (
                "one less than it says",
                swap(4, says((0, sum(0)), (1, sum(10)))),
                Some(StateError::RowsLost { dataset, removed: 5, added: 4 }),
            ),
            (
                "more replaced than there are",
                swap(1, says((5, sum(40)), (2, sum(10)))),
                Some(StateError::RowsLost { dataset, removed: 1, added: 1 }),
            ),
            (
                "other ones",
                swap(4, says((1, sum(9)), (1, sum(8)))),
                Some(StateError::RowsChanged { dataset, rows: 4, removed: sum(39), added: sum(40) }),
            ),
        ],
    );
}

fn sealing(windows: Vec<WindowRecord>, adds: Vec<FileEntry>, removes: &[FileEntry]) -> Body {
    Body { windows, sealed_months: vec![(Stream::Connections, november())], ..files(adds, removes) }
}

#[test]
fn a_month_is_sealed_once_with_all_its_files() {
    let stream = Stream::Connections;
    let both = || vec![record(day("2026-11-01"), Sealed, 5), record(day("2026-11-03"), Sealed, 3)];
    let month = || file(stream, FileRole::Month, FIRST, 8, 9);
    let all = [part(), window_file()];
    let open = |date, state| Some(StateError::Open { stream, range: november(), window: day(date), state });
    let outside =
        |file: &FileEntry| Some(StateError::LeftOutside { stream, range: november(), path: file.path.clone() });
    let half = Range::new(november().start, day("2026-11-15").start);
    let no_month = Body { sealed_months: vec![(stream, half)], ..Body::default() };
    let first_of_december = record(day("2026-12-01"), Provisional, 0);
    let of_activity = WindowRecord { stream: Stream::Activity, ..record(day("2026-11-02"), Provisional, 0) };
    let late = file(stream, FileRole::Part, THIRD, 1, 8);
    let lone = file(stream, FileRole::Month, FIRST, 5, 9);
    let only_first = vec![record(day("2026-11-01"), Sealed, 5)];
    assert_results(
        &state(),
        vec![
            ("whole", sealing(both(), vec![month()], &all), None),
            (
                "beside open ones",
                sealing([both(), vec![first_of_december, of_activity]].concat(), vec![month()], &all),
                None,
            ),
            ("no month", no_month, Some(StateError::NotAUnit { stream, range: half, unit: SealUnit::Month })),
            ("held open", sealing(Vec::new(), vec![month()], &all), open("2026-11-01", Settled)),
            ("one held open", sealing(only_first, vec![month()], &all), open("2026-11-03", Provisional)),
            (
                "one left open",
                sealing(
                    vec![record(day("2026-11-01"), Sealed, 5), record(day("2026-11-03"), Settled, 3)],
                    vec![month()],
                    &all,
                ),
                open("2026-11-03", Settled),
            ),
            ("a file stays outside", sealing(both(), vec![lone], &[part()]), outside(&window_file())),
            ("a file comes outside", sealing(both(), vec![month(), late.clone()], &all), outside(&late)),
        ],
    );
    let sealed = state().try_advance(sealing(both(), vec![month()], &all)).unwrap();
    assert!(sealed.is_month_sealed(stream, at(THIRD)) && !sealed.is_month_sealed(Stream::Activity, at(THIRD)));
    assert!(!sealed.is_month_sealed(stream, november().end));
    let add = |dataset: Dataset, role, start| files(vec![file(dataset, role, start, 1, 7)], &[]);
    assert_results(
        &sealed,
        vec![
            ("again", sealing(Vec::new(), Vec::new(), &[]), Some(StateError::Sealed { stream, range: november() })),
            ("a part of it", files(vec![late.clone()], &[]), outside(&late)),
            ("an amendment", add(stream.into(), FileRole::Amendment, FIRST), None),
            ("the next month", add(stream.into(), FileRole::Part, "2026-12-01T00:00:00Z"), None),
            ("another stream", add(Dataset::Activity, FileRole::Part, THIRD), None),
            ("sessions", add(Dataset::Inventory(InventoryPart::Users), FileRole::Part, THIRD), None),
        ],
    );
}

#[test]
fn scan_times_of_a_part_only_advance() {
    use InventoryPart::{Groups, Users};
    let scans = |inventory: Vec<InventoryRead>| Body { inventory, ..Body::default() };
    let back = |from: u32, to: u32| {
        let time = |hour| inventory_read(Users, hour).read_at;
        Some(StateError::ScanBackwards { part: Users, from: time(from), to: time(to) })
    };
    assert_results(
        &state(),
        vec![
            ("later", scans(vec![inventory_read(Users, 11)]), None),
            ("another part, earlier", scans(vec![inventory_read(Groups, 1)]), None),
            ("at the same time", scans(vec![inventory_read(Users, 10)]), back(10, 10)),
            ("earlier", scans(vec![inventory_read(Users, 9)]), back(10, 9)),
            ("two, one after the other", scans(vec![inventory_read(Users, 11), inventory_read(Users, 12)]), None),
            ("two, the other way", scans(vec![inventory_read(Users, 12), inventory_read(Users, 11)]), back(12, 11)),
        ],
    );
    let later = state().try_advance(scans(vec![inventory_read(Users, 11)])).unwrap();
    assert_eq!(later.last_scan(Users), Some(&inventory_read(Users, 11)));
    assert_eq!(later.last_scan(Groups), None);
}
