//! Queries on a range of time, down to a nanosecond: all matching rows, in any file and row group.

use std::collections::HashMap;

use super::*;
use crate::model::{ConnectionId, ConnectionTexts};
use crate::store::MemoryStore;

/// Events of two days in three files, with the last moments of a window and the first of the next.
fn held() -> (TeamWriter, Vec<EventRow>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let (first, second) = (day("2026-11-01"), day("2026-11-02"));
    let edge = Instant::from_nanos(first.end.nanos() - 1);
    let typed = |id: &str, time: Instant| EventRow { event_type: format!("type of {id}").into(), ..event(id, time) };
    let early = vec![typed("a", first.start), typed("b", first.start.plus(Duration::from_secs(60)))];
    let late = vec![typed("c", first.start.plus(Duration::from_secs(60))), typed("d", edge)];
    let next = vec![typed("e", second.start), typed("f", second.start.plus(Duration::from_secs(1)))];
    for rows in [rows("2026-11-01", early.clone(), false), rows("2026-11-01", late.clone(), false)] {
        let _ = commit(&mut writer, Draft { rows: vec![rows], ..Draft::default() }).unwrap();
    }
    let rows = vec![rows("2026-11-02", next.clone(), true)];
    let _ = commit(&mut writer, Draft { rows, ..Draft::default() }).unwrap();
    (writer, [early, late, next].concat())
}

#[test]
fn every_range_query_finds_its_events() {
    let (writer, all) = held();
    let mut ends: Vec<i64> = all.iter().flat_map(|row| (-1..=1).map(|by| row.time.nanos() + by)).collect();
    ends.sort_unstable();
    ends.dedup();
    let stretches = ends.iter().flat_map(|from| ends.iter().map(move |to| (*from, *to))).filter(|(from, to)| from < to);
    for (from, to) in stretches {
        let range = Range::new(Instant::from_nanos(from), Instant::from_nanos(to));
        let expected: Vec<&EventRow> = all.iter().filter(|row| range.owns(row.time)).collect();
        let names = || expected.iter().map(|row| row.event_id.to_string()).collect::<Vec<_>>();
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let found = writer.rows().events_in(Stream::Connections, range).unwrap();
        assert_eq!(sorted(found.iter().map(|event| event.event_id.to_string()).collect()), names(), "{range}");
        let mut found = Vec::new();
        writer
            .rows()
            .rows_in(Stream::Connections, range, &mut |row| {
                found.push(row.event_id.to_string());
                Ok(())
            })
            .unwrap();
        assert_eq!(sorted(found), names(), "{range}");
        let types = writer.rows().event_types_in(Stream::Connections, range).unwrap();
        assert_eq!(types, expected.iter().map(|row| row.event_type.to_string()).collect(), "{range}");
        let columns = writer.rows().connection_columns(range).unwrap();
        assert_eq!(columns.iter().map(super::super::ConnectionColumns::len).sum::<usize>(), expected.len(), "{range}");
    }
    let all_time = Range::new(Instant::EARLIEST, Instant::LATEST);
    assert!(writer.rows().events_in(Stream::Activity, all_time).unwrap().is_empty());
}

/// Each connection is searched in its own range; a file is read if a range touches it.
#[test]
fn a_connection_is_found_at_the_edge_of_its_range() {
    let (writer, all) = held();
    for row in &all {
        let Detail::Connections(texts) = &row.detail else { panic!("not a connection") };
        let id = ConnectionId::from(texts.connection_id().unwrap());
        let moment = Range::new(row.time, Instant::from_nanos(row.time.nanos() + 1));
        let found = writer.rows().connection_rows(&HashMap::from([(id.clone(), moment)])).unwrap();
        assert_eq!(found.len(), 1, "{}", row.event_id);
        assert!(found[0].raw.is_empty() && found[0].event_id == row.event_id);
        let before = Range::new(Instant::EARLIEST, day("2026-11-01").start);
        assert!(writer.rows().connection_rows(&HashMap::from([(id, before)])).unwrap().is_empty());
    }
    assert!(writer.rows().connection_rows(&HashMap::new()).unwrap().is_empty());
}

/// A row group outside the range is not decoded.
#[test]
fn row_groups_outside_the_range_are_skipped() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let rows = vec![rows("2026-11-01", events("2026-11-01", 0, 3), false)];
    let _ = commit(&mut writer, Draft { rows, ..Draft::default() }).unwrap();
    let file = writer.state().files_of(Dataset::Connections).next().unwrap();
    let (first, last) = (file.first.unwrap(), file.last.unwrap());
    let nanos = |at: Instant, by: i64| Instant::from_nanos(at.nanos() + by);
    for (from, to, expected) in [
        (nanos(first, -2), first, 0),
        (nanos(first, -2), nanos(first, 1), 3),
        (last, nanos(last, 1), 3),
        (nanos(last, 1), nanos(last, 2), 0),
    ] {
        let selection = Selection { range: Some(Range::new(from, to)), ..Selection::default() };
        let batches = TableReader::open(store.as_ref(), &file.path, file.dataset, selection).unwrap();
        let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, expected, "[{from}..{to})");
    }
}

/// Columns and rows give the same events for sessions.
#[test]
fn events_as_columns_equal_events_as_rows() {
    use crate::model::ConnectionEvent;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let mut bare = event("bare", day("2026-11-01").start);
    bare.detail = Detail::Connections(ConnectionTexts::default());
    let all = [vec![bare], events("2026-11-01", 1, 3)].concat();
    let draft = Draft { rows: vec![rows("2026-11-01", all.clone(), false)], ..Draft::default() };
    let _ = commit(&mut writer, draft).unwrap();
    let columns = writer.rows().connection_columns(day("2026-11-01")).unwrap().remove(0);
    assert_eq!(columns.len(), all.len());
    for (place, row) in all.iter().enumerate() {
        let (found, expected) = (columns.get(place), ConnectionEvent::from(row));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}
