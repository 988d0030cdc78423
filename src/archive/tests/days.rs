//! Days that are sealed before their month: the place of their rows, the rules of sealing, and the view of older programs.

use crate::model::FileRole;
use crate::model::path::SealUnit;
use crate::store::MemoryStore;

use super::super::{StateError, TeamState, VerifyOptions, verify};
use super::*;

const CONNECTIONS: Stream = Stream::Connections;

fn seal_days(dates: &[&str]) -> Draft {
    Draft::from(Body { sealed_days: dates.iter().map(|date| (CONNECTIONS, day(date))).collect(), ..Body::default() })
}

fn seal_november() -> Draft {
    Draft::from(Body { sealed_months: vec![(CONNECTIONS, november())], ..Body::default() })
}

/// `count` events of a sealed window.
fn of_day(date: &str, first: u64, count: u64) -> Draft {
    Draft {
        body: Body { windows: vec![record(day(date), WindowState::Sealed, first + count)], ..Body::default() },
        rows: vec![rows(date, events(date, first, count), true)],
        ..Draft::default()
    }
}

/// The first three days of November: sealed windows with five events each.
fn three_days() -> (MemoryStore, TeamWriter) {
    let store = MemoryStore::new();
    let mut writer = writer(&open(&(Arc::new(store.clone()) as Arc<dyn Store>)));
    for date in ["2026-11-01", "2026-11-02", "2026-11-03"] {
        let _ = commit(&mut writer, of_day(date, 0, 5)).unwrap();
    }
    (store, writer)
}

/// Role, first day and rows of the event files, sorted by path.
fn held(state: &TeamState) -> Vec<(FileRole, String, u64)> {
    let files = state.files_of(Dataset::Connections);
    let mut held: Vec<_> = files.map(|file| (file.role, file.first.unwrap().day(), file.rows)).collect();
    held.sort_by_key(|(role, day, _)| (format!("{role:?}"), day.clone()));
    held
}

/// Checks that all events exist once, for the writer and a new reader, and that `verify` finds no fault.
fn check(store: &MemoryStore, writer: &TeamWriter, events: usize) {
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let archive = open(&shared);
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
    let ids = ids_in(&archive);
    assert!(ids.len() == events && ids.values().all(|count| *count == 1), "{ids:?}");
    assert!(verify(store, &VerifyOptions::default()).unwrap().is_clean());
}

#[test]
fn a_sealed_day_is_one_file_with_amendments() {
    let (store, mut writer) = three_days();
    let _ = commit(&mut writer, seal_days(&["2026-11-01", "2026-11-02"])).unwrap();
    let entry = |role, day: &str, rows| (role, day.to_owned(), rows);
    let sealed = [
        entry(FileRole::Day, "2026-11-01", 5),
        entry(FileRole::Day, "2026-11-02", 5),
        entry(FileRole::Window, "2026-11-03", 5),
    ];
    assert_eq!(held(writer.state()), sealed);
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let mut before = files_under(&shared, "tables/connections");
    before.retain(|path| path.contains("-day-"));
    let names: Vec<&str> = before.iter().map(|path| &path[..path.len() - "0123456789abcdef.parquet".len()]).collect();
    let place = |name: &str| format!("tables/connections/team=acme/month=2026-11/{name}");
    assert_eq!(names, [place("20261101t000000z-day-"), place("20261102t000000z-day-")]);
    check(&store, &writer, 15);
    // Late rows for a sealed day and for an unsealed day.
    let _ = commit(&mut writer, of_day("2026-11-02", 5, 2)).unwrap();
    let _ = commit(&mut writer, of_day("2026-11-03", 5, 1)).unwrap();
    let more = [
        entry(FileRole::Amendment, "2026-11-02", 2),
        entry(FileRole::Day, "2026-11-01", 5),
        entry(FileRole::Day, "2026-11-02", 5),
        entry(FileRole::Window, "2026-11-03", 6),
    ];
    assert_eq!(held(writer.state()), more);
    let after = files_under(&shared, "tables/connections");
    assert!(before.iter().all(|path| after.contains(path)), "a sealed file changed: {after:?}");
    assert!(after.iter().any(|path| path.contains("20261102t000000z-amendment-")), "{after:?}");
    check(&store, &writer, 18);
}

/// A month can always be sealed: the rows outside its sealed days become its file, and no row is written twice.
#[test]
fn a_month_takes_the_rows_outside_its_sealed_days() {
    for (days, is_rest) in [(vec![], true), (vec!["2026-11-02"], true), (vec!["2026-11-01", "2026-11-02"], true)]
        .into_iter()
        .chain([(vec!["2026-11-01", "2026-11-02", "2026-11-03"], false)])
    {
        let (store, mut writer) = three_days();
        if !days.is_empty() {
            let _ = commit(&mut writer, seal_days(&days)).unwrap();
            assert_eq!(writer.state().sealed_days.len(), days.len());
        }
        let _ = commit(&mut writer, seal_november()).unwrap();
        let rows = |role| writer.state().files_of(Dataset::Connections).filter(move |f| f.role == role).map(|f| f.rows);
        assert_eq!(rows(FileRole::Day).collect::<Vec<_>>(), vec![5; days.len()], "{days:?}");
        let rest: Vec<u64> = if is_rest { vec![15 - 5 * days.len() as u64] } else { Vec::new() };
        assert_eq!(rows(FileRole::Month).collect::<Vec<_>>(), rest, "{days:?}");
        assert!(writer.state().sealed_days.is_empty(), "the month says it of all its days");
        assert!(writer.state().is_sealed(SealUnit::Day, CONNECTIONS, at("2026-11-30T23:59:59Z")));
        let refused = commit(&mut writer, seal_days(&["2026-11-03"])).unwrap_err();
        assert!(matches!(&refused, ArchiveError::State { source: StateError::Sealed { .. }, .. }), "{refused}");
        let _ = commit(&mut writer, of_day("2026-11-01", 5, 1)).unwrap();
        assert_eq!(rows_of(&writer, FileRole::Amendment), 1);
        check(&store, &writer, 16);
    }
}

fn rows_of(writer: &TeamWriter, role: FileRole) -> u64 {
    writer.state().files_of(Dataset::Connections).filter(|file| file.role == role).map(|file| file.rows).sum()
}

/// After one day is sealed, one line seals another day and the month, with late rows of three days.
#[test]
fn one_line_can_seal_days_and_their_month() {
    let (store, mut writer) = three_days();
    let _ = commit(&mut writer, seal_days(&["2026-11-01"])).unwrap();
    let late = ["2026-11-01", "2026-11-02", "2026-11-03"].map(|date| of_day(date, 5, 1));
    let mut draft = Draft {
        body: Body { sealed_months: seal_november().body.sealed_months, ..seal_days(&["2026-11-02"]).body },
        ..Draft::default()
    };
    for mut one in late {
        draft.rows.append(&mut one.rows);
        draft.body.windows.append(&mut one.body.windows);
    }
    let _ = commit(&mut writer, draft).unwrap();
    let roles = [FileRole::Day, FileRole::Amendment, FileRole::Month];
    assert_eq!(roles.map(|role| rows_of(&writer, role)), [5 + 6, 1, 6]);
    assert!(writer.state().sealed_days.is_empty());
    check(&store, &writer, 18);
}

#[test]
fn each_stream_is_sealed_alone_and_an_empty_day_has_no_file() {
    let (store, mut writer) = three_days();
    let _ = commit(
        &mut writer,
        Draft::from(Body { sealed_days: vec![(Stream::Billing, day("2026-11-01"))], ..Body::default() }),
    );
    assert_eq!(rows_of(&writer, FileRole::Day), 0);
    assert!(writer.state().is_sealed(SealUnit::Day, Stream::Billing, now_of("2026-11-01")));
    assert!(!writer.state().is_sealed(SealUnit::Day, CONNECTIONS, now_of("2026-11-01")));
    assert!(!writer.state().is_sealed(SealUnit::Day, Stream::Billing, now_of("2026-11-02")));
    let _ = commit(&mut writer, seal_november()).unwrap();
    assert_eq!(writer.state().sealed_days.len(), 1, "of another stream");
    check(&store, &writer, 15);
}

fn now_of(date: &str) -> Instant {
    at(&format!("{date}T12:00:00Z"))
}

/// A window longer than a day, from before days were sealed, belongs to the day of its start.
#[test]
fn a_long_window_belongs_to_its_first_day() {
    let (store, mut writer) = three_days();
    let week = Range::new(day("2026-11-04").start, day("2026-11-11").start);
    let all = [events("2026-11-04", 0, 2), events("2026-11-09", 0, 2)].concat();
    let window = WindowRows::new(CONNECTIONS, week, all, true);
    let windows = vec![record(week, WindowState::Sealed, 4)];
    let _ = commit(
        &mut writer,
        Draft { body: Body { windows, ..Body::default() }, rows: vec![window], ..Draft::default() },
    )
    .unwrap();
    let _ = commit(&mut writer, seal_days(&["2026-11-09"])).unwrap();
    assert_eq!(rows_of(&writer, FileRole::Day), 0, "no window begins there");
    let _ = commit(&mut writer, seal_days(&["2026-11-04"])).unwrap();
    assert_eq!(rows_of(&writer, FileRole::Day), 4);
    let late = WindowRows::new(CONNECTIONS, week, events("2026-11-09", 2, 1), false);
    let _ = commit(&mut writer, Draft { rows: vec![late], ..Draft::default() }).unwrap();
    assert_eq!(rows_of(&writer, FileRole::Amendment), 1);
    check(&store, &writer, 20);
}

#[test]
fn only_final_days_are_sealed() {
    let (store, mut writer) = three_days();
    let open_day = Draft {
        body: Body { windows: vec![record(day("2026-11-04"), WindowState::Settled, 1)], ..Body::default() },
        rows: vec![rows("2026-11-04", events("2026-11-04", 0, 1), true)],
        ..Draft::default()
    };
    let _ = commit(&mut writer, open_day).unwrap();
    let _ = commit(&mut writer, seal_days(&["2026-11-02"])).unwrap();
    let (before, files) = (writer.state().clone(), live_under(&(Arc::new(store.clone()) as Arc<dyn Store>), ""));
    let half = day("2026-11-01").halves().unwrap().0;
    let backwards = Range { start: day("2026-11-01").end, end: day("2026-11-01").start };
    let two = Range::new(day("2026-11-01").start, day("2026-11-02").end);
    let ranges = |range| Draft::from(Body { sealed_days: vec![(CONNECTIONS, range)], ..Body::default() });
    let latest = Instant::from_nanos(i64::MAX);
    let ends = [Instant::from_nanos(i64::MIN), latest].map(|end| ranges(Range { start: end, end: latest }));
    let [earliest, latest] = ends;
    for (case, draft, said) in [
        ("half a day", ranges(half), "is not a day"),
        ("two days", ranges(two), "is not a day"),
        ("a day backwards", ranges(backwards), "is not a day"),
        ("the beginning of time", earliest, "is not a day"),
        ("the end of time", latest, "is not a day"),
        (
            "a day as a month",
            Draft::from(Body { sealed_months: ranges(day("2026-11-01")).body.sealed_days, ..Body::default() }),
            "calendar",
        ),
        ("once more", seal_days(&["2026-11-02", "2026-11-03"]), "sealed already"),
        ("a settled day", seal_days(&["2026-11-04"]), "is settled"),
        ("a settled day with others", seal_days(&["2026-11-01", "2026-11-04"]), "is settled"),
    ] {
        let error = commit(&mut writer, draft).unwrap_err();
        assert!(error.to_string().contains(said) && !error.needs_reopen(), "{case}: {error}");
        assert_eq!(writer.state(), &before, "{case}");
        assert_eq!(live_under(&(Arc::new(store.clone()) as Arc<dyn Store>), ""), files, "{case}");
    }
    check(&store, &writer, 16);
}

/// A line that seals a day and leaves or adds an unsealed file of it is invalid.
#[test]
fn a_sealed_day_has_only_sealed_files() {
    let (_, mut writer) = three_days();
    let before = writer.state().clone();
    let _ = commit(&mut writer, seal_days(&["2026-11-02"])).unwrap();
    let after = writer.state().clone();
    let sealed_days = seal_days(&["2026-11-02"]).body.sealed_days;
    let left = Body { sealed_days, ..Default::default() };
    assert!(matches!(before.try_advance(left), Err(StateError::LeftOutside { .. })));
    let window = before.files_of(Dataset::Connections).find(|file| file.first.unwrap().day() == "2026-11-02").unwrap();
    let put = Body { adds: vec![window.clone()], ..Default::default() };
    let refused = after.try_advance(put).unwrap_err();
    let said = "is not a sealed file, but connections[2026-11-02T00:00:00Z..2026-11-03T00:00:00Z) is sealed";
    assert!(refused.to_string().ends_with(said), "{refused}");
}
