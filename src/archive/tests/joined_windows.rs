//! Small files of settled windows become one: no row is lost or doubled, and the month's file takes in the joined one.

use crate::model::FileRole;
use crate::store::MemoryStore;

use super::super::{StateError, VerifyOptions, verify};
use super::*;

const CONNECTIONS: Stream = Stream::Connections;

fn paths(writer: &TeamWriter, role: FileRole) -> Vec<String> {
    let files = writer.state().files_of(Dataset::Connections).filter(|file| file.role == role);
    files.map(|file| file.path.clone()).collect()
}

fn join(paths: Vec<String>) -> Draft {
    Draft { join_windows: vec![(CONNECTIONS, paths)], ..Draft::default() }
}

/// Sealed windows with five events each.
fn days(dates: &[&str]) -> (MemoryStore, TeamWriter) {
    let store = MemoryStore::new();
    let mut writer = writer(&open(&(Arc::new(store.clone()) as Arc<dyn Store>)));
    for date in dates {
        let _ = commit(&mut writer, of_day(date, 0, 5)).unwrap();
    }
    (store, writer)
}

fn of_day(date: &str, first: u64, count: u64) -> Draft {
    Draft {
        body: Body { windows: vec![record(day(date), WindowState::Sealed, first + count)], ..Body::default() },
        rows: vec![rows(date, events(date, first, count), true)],
        ..Draft::default()
    }
}

fn check(store: &MemoryStore, writer: &TeamWriter, events: usize) {
    let archive = open(&(Arc::new(store.clone()) as Arc<dyn Store>));
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
    let ids = ids_in(&archive);
    assert!(ids.len() == events && ids.values().all(|count| *count == 1), "{ids:?}");
    assert!(verify(store, &VerifyOptions::default()).unwrap().is_clean());
}

#[test]
fn joined_windows_are_one_file_and_later_rows_another() {
    let (store, mut writer) = days(&["2026-11-01", "2026-11-02", "2026-11-03"]);
    let held = paths(&writer, FileRole::Window);
    assert_eq!(held.len(), 3);
    let _ = commit(&mut writer, join(held.iter().rev().cloned().collect())).unwrap();
    let [joined] = &paths(&writer, FileRole::Window)[..] else { panic!("one file") };
    let place = "tables/connections/team=acme/month=2026-11/20261101t000000z-window-";
    assert!(joined.starts_with(place), "{joined}");
    check(&store, &writer, 15);
    // Late rows for the first of the windows and for another one.
    let _ = commit(&mut writer, of_day("2026-11-01", 5, 1)).unwrap();
    let _ = commit(&mut writer, of_day("2026-11-02", 5, 2)).unwrap();
    check(&store, &writer, 18);
    let held = paths(&writer, FileRole::Window);
    assert!(held.len() == 2 && held[0].starts_with(place), "{held:?}");
    let _ = commit(&mut writer, join(held)).unwrap();
    assert_eq!(paths(&writer, FileRole::Window).len(), 1);
    check(&store, &writer, 18);
    let _ = commit(&mut writer, of_day("2026-11-03", 5, 1)).unwrap();
    let sealed_months = vec![(CONNECTIONS, november())];
    let _ = commit(&mut writer, Draft::from(Body { sealed_months, ..Body::default() })).unwrap();
    assert_eq!([FileRole::Window, FileRole::Month].map(|role| paths(&writer, role).len()), [0, 1]);
    check(&store, &writer, 19);
}

#[test]
fn only_settled_windows_of_one_month_are_joined() {
    let (store, mut writer) = days(&["2026-10-31", "2026-11-01", "2026-11-02"]);
    let held = paths(&writer, FileRole::Window);
    let gone = held[0].replace("20261031", "20261030");
    let twice = vec![held[1].clone(), held[1].clone()];
    for (what, paths, said) in [
        ("of two months", held.clone(), "not in the month"),
        ("not there", vec![gone, held[0].clone()], "not a live file"),
        ("none", Vec::new(), "the list of files to join is empty"),
    ] {
        let refused = commit(&mut writer, join(paths)).unwrap_err();
        assert!(matches!(&refused, ArchiveError::Draft { reason, .. } if reason.contains(said)), "{what}: {refused}");
    }
    let refused = commit(&mut writer, join(twice)).unwrap_err();
    assert!(!refused.needs_reopen(), "{refused}");
    let both = Draft {
        body: Body { sealed_months: vec![(CONNECTIONS, november())], ..Body::default() },
        ..join(held[1..].to_vec())
    };
    let refused = commit(&mut writer, both).unwrap_err();
    assert!(matches!(&refused, ArchiveError::State { source: StateError::NotLive { .. }, .. }), "{refused}");
    check(&store, &writer, 15);
}
