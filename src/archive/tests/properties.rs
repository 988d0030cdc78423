//! Properties of any rows and any order of commits.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::super::table::{digest_rows, event_batch, event_batches, event_rows, reject_batch, reject_rows};
use super::*;
use crate::model::{Digest, Text};
use crate::store::MemoryStore;

fn time() -> impl Strategy<Value = Instant> {
    (Instant::EARLIEST.nanos()..Instant::LATEST.nanos()).prop_map(Instant::from_nanos)
}

fn detail(stream: Stream) -> BoxedStrategy<Detail> {
    let maybe = || option::of(any::<String>());
    match stream {
        Stream::Activity => {
            (maybe(), maybe()).prop_map(|(token_info, payload)| Detail::Activity { token_info, payload }).boxed()
        }
        Stream::Billing => maybe().prop_map(|payload| Detail::Billing { payload }).boxed(),
        Stream::Connections => vec(maybe(), 10)
            .prop_map(|texts| {
                let mut texts = texts.into_iter();
                let mut next = || texts.next().flatten().map(Text::from);
                let detail = ConnectionDetail {
                    connection_id: next().map(|t| t.as_str().into()),
                    device_id: next().map(|t| t.as_str().into()),
                    computer_host_name: next(),
                    tunnel_id: next(),
                    source_type: next(),
                    peer_email: next(),
                    peer_ip: next(),
                    direct_ip: next(),
                    local_user_name: next(),
                    failure_reason: next(),
                };
                Detail::Connections(detail.into())
            })
            .boxed(),
    }
}

fn row(stream: Stream) -> impl Strategy<Value = EventRow> {
    let texts = (any::<String>(), any::<String>(), any::<String>());
    (texts, time(), time(), 0..i32::MAX, any::<[bool; 2]>(), detail(stream)).prop_map(
        |((id, kind, raw), time, seen, revision, [redacted, keeps_text], detail)| {
            let row = EventRow {
                team_id: team(),
                event_id: id.as_str().into(),
                time,
                event_type: kind.into(),
                revision: revision.unsigned_abs(),
                first_seen_at: Instant::from_nanos(seen.micros() * 1_000),
                redacted,
                raw: raw.into(),
                detail,
                served_digest: None,
            };
            if keeps_text { row } else { row.without_text(|digest| Digest::of(&digest.0)) }
        },
    )
}

fn rows_of_a_stream() -> impl Strategy<Value = (Stream, Vec<EventRow>)> {
    (0..3usize).prop_flat_map(|at| (Just(Stream::ALL[at]), vec(row(Stream::ALL[at]), 0..20)))
}

fn key(row: &EventRow) -> (Instant, String, u32) {
    (row.time, row.event_id.to_string(), row.revision)
}

proptest! {
    #[test]
    fn rows_become_columns_and_rows_again((stream, rows) in rows_of_a_stream()) {
        let batch = event_batch(stream, &rows).unwrap();
        prop_assert_eq!(event_rows(stream, &batch).unwrap(), rows);
    }

    #[test]
    fn rejects_keep_their_bytes(raws in vec(vec(any::<u8>(), 0..40), 0..10), times in vec(option::of(time()), 10)) {
        let make = |(raw, time): (Vec<u8>, &Option<Instant>)| RejectRow { time: *time, ..reject("r", &raw) };
        let rows: Vec<RejectRow> = raws.into_iter().zip(&times).map(make).collect();
        prop_assert_eq!(reject_rows(&reject_batch(&rows).unwrap()).unwrap(), rows);
    }

    #[test]
    fn the_digest_of_rows_ignores_only_their_order(
        (stream, rows) in rows_of_a_stream(),
        at in any::<usize>(),
    ) {
        let digest = |rows: &[EventRow]| digest_rows(&event_batch(stream, rows).unwrap(), &salts()).unwrap();
        let mut other = rows.clone();
        other.reverse();
        prop_assert_eq!(digest(&rows), digest(&other));
        let many: Vec<EventRow> = rows.iter().cycle().take(rows.len() * 300).cloned().collect();
        prop_assert_eq!(digest(&many), event_batches(stream, &many, &salts()).unwrap().1);
        if let Some(row) = other.len().checked_sub(1).map(|last| &mut other[at % (last + 1)]) {
            row.event_type = format!("{}x", row.event_type).into();
            prop_assert_ne!(digest(&rows), digest(&other));
        }
    }

    /// Rows come in any order and number of commits, settled or not; they are read back sorted, each once.
    #[test]
    fn rows_are_archived_once_for_any_order_of_commits(
        events in vec((0..3u64, 0..86_400u64, 0..4usize, any::<bool>()), 1..40),
        order in vec(any::<bool>(), 4),
    ) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let archive = open(&store);
        let mut writer = writer(&archive);
        let first = day("2026-11-01").start;
        let mut all = Vec::new();
        for (step, may_seal) in order.into_iter().enumerate() {
            let mine = events.iter().enumerate().filter(|(_, event)| event.2 == step);
            let mut draft = Draft::default();
            for (number, (day_number, second, _, compact)) in mine {
                let start = first.plus(Duration::from_secs(day_number * 86_400));
                let window = Range::new(start, start.plus(Duration::from_secs(86_400)));
                let row = event(&number.to_string(), start.plus(Duration::from_secs(*second)));
                all.push(row.clone());
                let rows = vec![row];
                draft.rows.push(WindowRows::new(Stream::Connections, window, rows, *compact));
            }
            if may_seal && step == 1 {
                draft.body.sealed_days.push((Stream::Connections, day("2026-11-02")));
            }
            if may_seal && step == 2 {
                draft.body.sealed_months.push((Stream::Connections, november()));
                draft.body.sealed_days.push((Stream::Connections, day("2026-11-03")));
            }
            let _ = commit(&mut writer, draft).unwrap();
            let reader = archive.read(&team()).unwrap();
            prop_assert_eq!(reader.state(), writer.state());
            let mut found = Vec::new();
            let everything = Range::new(Instant::EARLIEST, Instant::LATEST);
            reader.rows().rows_in(Stream::Connections, everything, &mut |row| { found.push(row); Ok(()) }).unwrap();
            found.sort_by_key(key);
            all.sort_by_key(key);
            prop_assert_eq!(&found, &all);
        }
        drop(writer);
        let (again, reader) = (archive.writer(&team()).unwrap(), archive.read(&team()).unwrap());
        prop_assert_eq!(again.state(), reader.state());
    }
}
