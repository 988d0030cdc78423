//! Another engine reads the archive's files.

use crate::age;

use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Body, Draft, WindowRows};
use annals::model::path::month_of;
use annals::model::{ConnectionDetail, Detail, EventRow, Instant, Stream, TeamId, WindowGrid};
use annals::store::{LocalStore, Store};

const EVENTS: u64 = 6_000;

fn event(number: u64, start: Instant) -> EventRow {
    let detail = ConnectionDetail {
        connection_id: Some(format!("connection-{}", number / 3).as_str().into()),
        peer_email: number.is_multiple_of(2).then(|| "someone@example.com".into()),
        ..ConnectionDetail::default()
    };
    EventRow {
        team_id: TeamId::from("acme"),
        event_id: format!("event-{number:05}").as_str().into(),
        time: start.plus(Duration::from_nanos(number * 10_000_000_001)),
        event_type: "connectionClosedEvent".into(),
        revision: 1,
        first_seen_at: start,
        redacted: false,
        raw: format!("{{\"id\":\"event-{number:05}\",\"ü\":\"\u{1F980}\"}}").into(),
        detail: Detail::Connections(detail.into()),
        served_digest: None,
    }
}

#[test]
fn a_plain_glob_over_sealed_files_is_exact_for_any_engine_after_a_vacuum() {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(directory.path()));
    let archive = Archive::open_or_create(store, || "outside".to_owned()).unwrap();
    let start: Instant = "2026-11-01T00:00:00Z".parse().unwrap();
    let mut writer = archive.writer(&TeamId::from("acme")).unwrap();
    let window = WindowGrid::new(Duration::from_secs(86_400)).window_of(start);
    for (part, rows) in (0..EVENTS).map(|n| event(n, start)).collect::<Vec<_>>().chunks(2_000).enumerate() {
        let rows = vec![WindowRows::new(Stream::Connections, window, rows.to_vec(), part == 2)];
        let _ = writer.commit(Draft { rows, ..Draft::default() }, start).unwrap();
    }
    let sealed_months = vec![(Stream::Connections, month_of(start))];
    let _ = writer.commit(Draft::from(Body { sealed_months, ..Body::default() }), start).unwrap();

    assert_eq!(writer.vacuum(start).unwrap().expired, [], "recently replaced files are kept for the grace");
    age::age(directory.path());
    assert_eq!(writer.vacuum(start).unwrap().expired.len(), 3);

    let engine = duckdb::Connection::open_in_memory().unwrap();
    let from = format!("read_parquet('{}/tables/connections/*/*/*.parquet')", directory.path().display());
    let text = |query: &str| {
        let query = query.replace("FROM it", &format!("FROM {from}"));
        engine.query_row(&query, [], |row| row.get::<_, String>(0)).unwrap()
    };
    for (query, answer) in [
        ("SELECT count(*)::VARCHAR FROM it", "6000"),
        ("SELECT count(DISTINCT event_id)::VARCHAR FROM it", "6000"),
        (
            "SELECT min(event_id) || max(event_id) FROM it WHERE connection_id = 'connection-1234'",
            "event-03702event-03704",
        ),
        ("SELECT count(*)::VARCHAR FROM it WHERE connection_id = 'connection-none'", "0"),
        ("SELECT count(peer_email)::VARCHAR FROM it", "3000"),
        ("SELECT raw FROM it WHERE event_id = 'event-00007'", "{\"id\":\"event-00007\",\"ü\":\"\u{1F980}\"}"),
        (
            "SELECT typeof(event_time) || ' ' || event_time FROM it WHERE event_id = 'event-01000'",
            "TIMESTAMP 2026-11-01 02:46:40.000001",
        ),
        ("SELECT (event_time_ns % 1000000000)::VARCHAR FROM it WHERE event_id = 'event-01000'", "1000"),
        (
            "SELECT bool_and(ok)::VARCHAR FROM (SELECT event_time_ns >= lag(event_time_ns, 1, 0::BIGINT) OVER () AS ok FROM it)",
            "true",
        ),
    ] {
        assert_eq!(text(query), answer, "{query}");
    }
}
