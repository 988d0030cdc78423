//! Sessions of past years: when their files become one, which files remain, and later changes.

use crate::model::FileRole;
use crate::model::path::year_of;
use crate::store::MemoryStore;

use super::super::{FileEntry, StateError, VerifyOptions, verify};
use super::sessions::{change, files_of, finished, replaced, roles, sessions};
use super::*;
use crate::model::ConnectionId;

/// The sessions of a month.
const MANY: u64 = 5_000;

fn year(text: &str) -> Range {
    year_of(at(&format!("{text}-01-01T00:00:00Z")))
}

/// Seals the months of these days, with this many sessions each.
fn seal(writer: &mut TeamWriter, dates: impl IntoIterator<Item = String>, count: u64) {
    for date in dates {
        let sealed_months = vec![(Stream::Connections, month_of(day(&date).start))];
        let draft = SessionsDraft { finished: finished(&date, 0, count), ..change(&format!("{date}T00:00:00Z")) };
        let _ = commit(writer, Draft { body: Body { sealed_months, ..Body::default() }, ..sessions(draft) }).unwrap();
    }
}

fn fifths(year: &str, months: std::ops::RangeInclusive<u32>) -> Vec<String> {
    months.map(|month| format!("{year}-{month:02}-05")).collect()
}

fn join(writer: &mut TeamWriter, year: Range) -> Result<Committed, ArchiveError> {
    commit(writer, Draft { join_years: vec![year], ..Draft::default() })
}

fn held(writer: &mut TeamWriter, ids: &[String]) -> Vec<HeldSession> {
    let ids: Vec<ConnectionId> = ids.iter().map(|id| ConnectionId::from(id.as_str())).collect();
    writer.rows().finished_sessions(&ids.iter().collect::<Vec<_>>()).unwrap()
}

fn is_clean(store: &MemoryStore) -> bool {
    let report = verify(store, &VerifyOptions::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    report.is_clean()
}

/// An archive whose only year is joined, of twelve months.
fn joined() -> (MemoryStore, Archive, TeamWriter) {
    let store = MemoryStore::new();
    let archive = open(&(Arc::new(store.clone()) as Arc<dyn Store>));
    let mut writer = writer(&archive);
    seal(&mut writer, fifths("2025", 1..=12), MANY);
    let _ = join(&mut writer, year("2025")).unwrap();
    assert_eq!(roles(&writer), [(FileRole::Month, 12 * MANY)]);
    (store, archive, writer)
}

#[test]
fn a_year_of_sealed_months_becomes_one_file() {
    let store = MemoryStore::new();
    let archive = open(&(Arc::new(store.clone()) as Arc<dyn Store>));
    let mut writer = writer(&archive);
    seal(&mut writer, fifths("2024", 11..=12), 50);
    assert_eq!(writer.state().years_to_join(), [year("2024")]);
    seal(&mut writer, fifths("2025", 1..=11), 50);
    assert_eq!(writer.state().years_to_join(), [year("2024")], "2025 is not over");
    seal(&mut writer, [fifths("2025", 12..=12), fifths("2026", 1..=2)].concat(), 50);
    assert_eq!(writer.state().years_to_join(), [year("2024"), year("2025")]);
    let (before, mark) = (sessions_in(&archive), writer.state().sessions);
    for year in writer.state().years_to_join() {
        assert!(matches!(join(&mut writer, year).unwrap(), Committed::Committed { files: 1, .. }));
    }
    let place = |month: &str, start: &str| format!("tables/sessions/team=acme/month={month}/{start}t000000z-month-");
    let expected = [
        (place("2024-01", "20240101"), 100, "2024-11-05"),
        (place("2025-01", "20250101"), 600, "2025-01-05"),
        (place("2026-01", "20260101"), 50, "2026-01-05"),
        (place("2026-02", "20260201"), 50, "2026-02-05"),
    ];
    let files: Vec<&FileEntry> = writer.state().files_of(Dataset::Sessions).collect();
    assert_eq!(files.len(), expected.len());
    for (file, (place, rows, first)) in files.iter().zip(&expected) {
        assert!(file.path.starts_with(place) && file.role == FileRole::Month, "{file:?}");
        assert_eq!((file.rows, file.first.unwrap().day().as_str()), (*rows, *first));
    }
    assert_eq!((sessions_in(&archive), writer.state().sessions), (before, mark));
    assert!(writer.state().years_to_join().is_empty() && is_clean(&store));
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
    let ledger = store.read("ledger/team=acme/2026-11-20.jsonl").unwrap().to_bytes().unwrap();
    let last = String::from_utf8(ledger.to_vec()).unwrap().lines().last().unwrap().to_owned();
    let line: serde_json::Value = serde_json::from_str(&last).unwrap();
    let members: Vec<&str> = line["body"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((line["v"].as_u64(), members), (Some(1), vec!["adds", "draft", "removes"]));
}

#[test]
fn a_late_change_rewrites_its_year() {
    for (scenario, changes, expected) in [
        ("it continues", &[("2025-06-05-77", "2025-06-05T00:01:17Z")][..], 12 * MANY),
        ("it began earlier", &[("2025-06-05-77", "2025-06-04T00:00:00Z")][..], 12 * MANY),
        ("it began in another year", &[("2025-06-05-77", "2024-12-31T00:00:00Z")][..], 12 * MANY - 1),
        (
            "the first and the last",
            &[("2025-01-05-0", "2025-01-05T00:00:00Z"), ("2025-12-05-4999", "2025-12-05T01:23:19Z")][..],
            12 * MANY,
        ),
    ] {
        let (store, archive, mut writer) = joined();
        let ids: Vec<String> = changes.iter().map(|(id, _)| format!("c-{id}")).collect();
        let found = held(&mut writer, &ids);
        assert_eq!(found.len(), changes.len(), "{scenario}");
        let begun = |id: &str| at(changes.iter().find(|(of, _)| id.ends_with(of)).unwrap().1);
        let changed = |held: &HeldSession| SessionRow {
            event_count: 9,
            first_event_at: begun(held.row.connection_id.as_str()),
            ..held.row.clone()
        };
        let finished: Vec<SessionRow> = found.iter().map(changed).collect();
        let draft =
            SessionsDraft { finished: finished.clone(), replaced: replaced(found), ..change("2026-01-06T00:00:00Z") };
        let _ = commit(&mut writer, sessions(draft)).unwrap();
        let now: Vec<SessionRow> = held(&mut writer, &ids).into_iter().map(|held| held.row).collect();
        assert!(now.len() == finished.len() && finished.iter().all(|row| now.contains(row)), "{scenario}: {now:?}");
        let year = files_of(&writer).into_iter().find(|(_, rows, _)| *rows > MANY).unwrap();
        assert_eq!(year.1, expected, "{scenario}");
        assert_eq!(sessions_in(&archive).len() as u64, 12 * MANY, "{scenario}");
        assert!(sessions_in(&archive).values().all(|count| *count == 1) && is_clean(&store), "{scenario}");
        assert!(writer.state().years_to_join().is_empty(), "{scenario}");
    }
}

#[test]
fn later_sessions_of_a_year_are_in_few_amendments() {
    let (store, archive, mut writer) = joined();
    let year_file = files_of(&writer).remove(0);
    for (n, date) in fifths("2025", 1..=12).into_iter().enumerate() {
        let finished = finished(&date, MANY + 100 * n as u64, 40);
        let _ =
            commit(&mut writer, sessions(SessionsDraft { finished, ..change(&format!("2026-01-06T00:{n:02}:00Z")) }));
        let files = files_of(&writer);
        assert!(files.contains(&year_file) && files.len() <= 6, "{files:?}");
        let beside = |(role, _, path): &&(FileRole, u64, String)| {
            *role == FileRole::Amendment
                && path.starts_with("tables/sessions/team=acme/month=2025-01/20250101t000000z-amendment-")
        };
        assert_eq!(files.iter().filter(beside).count(), files.len() - 1, "{files:?}");
    }
    seal(&mut writer, fifths("2026", 1..=1), 10);
    let of_year = |(_, _, path): &(FileRole, u64, String)| path.contains("month=2025-");
    let files: Vec<_> = files_of(&writer).into_iter().filter(of_year).collect();
    assert!(files.len() == 2 && files.contains(&year_file), "{files:?}");
    assert_eq!(sessions_in(&archive).len() as u64, 12 * MANY + 12 * 40 + 10);
    assert!(writer.state().years_to_join().is_empty() && is_clean(&store));
    // A changed session rewrites the year's file, which takes in the amendment.
    let found = held(&mut writer, &["c-2025-03-05-1".to_owned()]);
    let finished = vec![SessionRow { event_count: 3, ..found[0].row.clone() }];
    let draft = SessionsDraft { finished, replaced: replaced(found), ..change("2026-01-07T00:00:00Z") };
    let _ = commit(&mut writer, sessions(draft)).unwrap();
    assert_eq!(files_of(&writer).into_iter().filter(of_year).count(), 1);
    assert!(is_clean(&store));
}

#[test]
fn an_altered_year_is_refused() {
    let (store, _, mut writer) = joined();
    let path = files_of(&writer).remove(0).2;
    let mut content = store.read(&path).unwrap().to_bytes().unwrap().to_vec();
    content[100] ^= 1;
    let found = held(&mut writer, &["c-2025-06-05-77".to_owned()]);
    store.tamper(&path, Some(content.into()));
    let finished = vec![SessionRow { event_count: 9, ..found[0].row.clone() }];
    let draft = SessionsDraft { finished, replaced: replaced(found), ..change("2026-01-06T00:00:00Z") };
    let refused = commit(&mut writer, sessions(draft));
    assert!(matches!(refused, Err(ArchiveError::ReadBack { .. } | ArchiveError::Table { .. })), "{refused:?}");
}

#[test]
fn a_year_is_joined_only_if_that_removes_files() {
    let (_, _, mut writer) = joined();
    let seq = writer.state().seq;
    assert_eq!(join(&mut writer, year("2025")).unwrap(), Committed::AlreadyCommitted { seq });
    assert_eq!(join(&mut writer, year("2024")).unwrap(), Committed::Nothing);
    let odd = Range::new(at("2025-01-01T00:00:00Z"), at("2025-12-01T00:00:00Z"));
    assert!(matches!(join(&mut writer, odd), Err(ArchiveError::Draft { .. })));
    let state = writer.state().clone();
    let file = state.files_of(Dataset::Sessions).next().unwrap().clone();
    let large = 131_072;
    for (scenario, roles, expected) in [
        ("months", vec![(FileRole::Month, 10), (FileRole::Month, 20)], true),
        ("one month", vec![(FileRole::Month, 10)], false),
        ("two months, one of them large", vec![(FileRole::Month, 10), (FileRole::Month, large)], false),
        ("large months", vec![(FileRole::Month, large), (FileRole::Month, large)], false),
        ("a small amendment", vec![(FileRole::Month, 10), (FileRole::Amendment, 8_191)], false),
        ("a large amendment", vec![(FileRole::Month, 10), (FileRole::Amendment, 8_192)], true),
        ("parts of a backfill", vec![(FileRole::Part, 9_000), (FileRole::Part, large - 1)], true),
        ("open sessions", vec![(FileRole::Month, 10), (FileRole::Open, 9_000)], false),
    ] {
        let mut state = state.clone();
        state.files.clear();
        for (n, (role, rows)) in roles.into_iter().enumerate() {
            let path = file.path.replace("20250101t000000z-month-", &format!("2025010{}t000000z-month-", n + 1));
            state.files.insert(path.clone(), FileEntry { role, rows, path, ..file.clone() });
        }
        assert_eq!(state.years_to_join().len(), usize::from(expected), "{scenario}");
    }
}

#[test]
fn recomputed_sessions_are_by_month_until_their_year_is_joined() {
    let (store, archive, mut writer) = joined();
    let mark = SessionsMark { rules: 2, through: None, until: None };
    let all: Vec<SessionRow> = fifths("2025", 1..=12).iter().flat_map(|date| finished(date, 0, 20)).collect();
    let draft = SessionsDraft { mark, is_anew: true, finished: all, ..change("2026-01-06T00:00:00Z") };
    let _ = commit(&mut writer, sessions(draft)).unwrap();
    assert_eq!(roles(&writer), vec![(FileRole::Month, 20); 12]);
    let _ = join(&mut writer, year("2025")).unwrap();
    assert_eq!((roles(&writer), sessions_in(&archive).len()), (vec![(FileRole::Month, 240)], 240));
    assert!(is_clean(&store));
}

#[test]
fn a_line_that_joins_a_year_cannot_lose_or_change_a_session() {
    let (store, _, writer) = joined();
    let ledger = store.read("ledger/team=acme/2026-11-20.jsonl").unwrap().to_bytes().unwrap();
    let lines: Vec<&[u8]> = ledger.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
    let body = crate::archive::ledger::line::LedgerLine::decode(lines.last().unwrap()).unwrap().0.body;
    let mut before = writer.state().clone();
    before.files.clear();
    for line in &lines[..lines.len() - 1] {
        let adds = crate::archive::ledger::line::LedgerLine::decode(line).unwrap().0.body.adds;
        before.files.extend(adds.into_iter().map(|file| (file.path.clone(), file)));
    }
    assert_eq!(before.check(&body), Ok(()));
    let with = |change: &dyn Fn(&mut FileEntry)| {
        let mut body = body.clone();
        change(&mut body.adds[0]);
        before.check(&body)
    };
    assert!(matches!(with(&|file| file.rows -= 1), Err(StateError::RowsLost { .. })));
    assert!(matches!(with(&|file| file.rows_digest = file.sha256), Err(StateError::RowsChanged { .. })));
}
