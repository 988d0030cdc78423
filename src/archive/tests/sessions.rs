//! Session files: their places, their replacement, and their records in the ledger.

use super::super::{FileEntry, StateError, VerifyOptions, verify};
use super::*;
use crate::model::{ConnectionId, FileRole};
use crate::store::MemoryStore;

/// A session that begins at `time`.
fn at_time(id: &str, time: Instant) -> SessionRow {
    session(&event(id, time))
}

pub fn sessions(draft: SessionsDraft) -> Draft {
    Draft { sessions: Some(draft), ..Draft::default() }
}

pub fn change(through: &str) -> SessionsDraft {
    let mark = SessionsMark { rules: 1, through: Some(at(through)), until: None };
    SessionsDraft { mark, is_anew: false, open: Vec::new(), finished: Vec::new(), replaced: BTreeMap::new() }
}

/// This many finished sessions of a day, numbered from `first`.
pub fn finished(date: &str, first: u64, count: u64) -> Vec<SessionRow> {
    let start = day(date).start;
    (first..first + count).map(|n| at_time(&format!("{date}-{n}"), start.plus(Duration::from_secs(n)))).collect()
}

pub fn files_of(writer: &TeamWriter) -> Vec<(FileRole, u64, String)> {
    let files = writer.state().files_of(Dataset::Sessions);
    files.map(|file| (file.role, file.rows, file.path.clone())).collect()
}

pub fn roles(writer: &TeamWriter) -> Vec<(FileRole, u64)> {
    files_of(writer).into_iter().map(|(role, rows, _)| (role, rows)).collect()
}

pub fn replaced(held: Vec<HeldSession>) -> BTreeMap<String, Vec<SessionRow>> {
    let mut replaced: BTreeMap<String, Vec<SessionRow>> = BTreeMap::new();
    for held in held {
        replaced.entry(held.path).or_default().push(held.row);
    }
    replaced
}

#[test]
fn small_files_are_merged_into_the_next_and_a_sealed_month_is_one_file() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    for n in 0..20 {
        let finished = finished("2026-11-03", n * 10, 10);
        let draft = SessionsDraft { finished, ..change(&format!("2026-11-03T{n:02}:00:00Z")) };
        let _ = commit(&mut writer, sessions(draft)).unwrap();
        let files = roles(&writer);
        assert!(files.iter().all(|(role, _)| *role == FileRole::Part) && files.len() <= 6, "{files:?}");
        assert_eq!(files.iter().map(|(_, rows)| rows).sum::<u64>(), (n + 1) * 10);
    }
    let seal = Draft::from(Body { sealed_months: vec![(Stream::Connections, november())], ..Body::default() });
    let _ = commit(&mut writer, seal).unwrap();
    assert_eq!(roles(&writer), [(FileRole::Month, 200)]);
    assert!(files_of(&writer)[0].2.starts_with("tables/sessions/team=acme/month=2026-11/20261101t000000z-month-"));
    // Later sessions of the month have their own file until the next month is sealed.
    let draft = SessionsDraft { finished: finished("2026-11-04", 0, 3), ..change("2026-11-04T00:00:00Z") };
    let _ = commit(&mut writer, sessions(draft)).unwrap();
    assert_eq!(roles(&writer), [(FileRole::Amendment, 3), (FileRole::Month, 200)]);
    let december = month_of(at("2026-12-01T00:00:00Z"));
    let seal = Draft::from(Body { sealed_months: vec![(Stream::Connections, december)], ..Body::default() });
    let _ = commit(&mut writer, seal).unwrap();
    assert_eq!(roles(&writer), [(FileRole::Month, 203)]);
    assert_eq!(sessions_in(&archive).len(), 203);
}

#[test]
fn sealing_a_month_keeps_its_large_files() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    for (n, count) in [(0, 20_000), (20_000, 20_000), (40_000, 300)] {
        let finished = finished("2026-11-03", n, count);
        let draft = SessionsDraft { finished, ..change(&format!("2026-11-03T00:00:{:02}Z", n / 1_000)) };
        let _ = commit(&mut writer, sessions(draft)).unwrap();
    }
    let large: Vec<_> = files_of(&writer).into_iter().filter(|(_, rows, _)| *rows == 20_000).collect();
    // A sealed month's amendments join its small file when the next month is sealed; a single file remains.
    let months = [("2026-11-01", 300, 2), ("2026-12-01", 302, 3), ("2027-01-01", 305, 0), ("2027-02-01", 305, 0)];
    for (date, expected, gained) in months {
        let sealed_months = vec![(Stream::Connections, month_of(day(date).start))];
        let seal = Draft::from(Body { sealed_months, ..Body::default() });
        let _ = commit(&mut writer, seal).unwrap();
        let files = files_of(&writer);
        assert!(large.iter().all(|file| files.contains(file)), "{files:?}");
        let small: Vec<u64> = files.iter().map(|(_, rows, _)| *rows).filter(|rows| *rows < 20_000).collect();
        assert_eq!(small, [expected]);
        let finished = finished("2026-11-04", expected, gained);
        let _ =
            commit(&mut writer, sessions(SessionsDraft { finished, ..change(&format!("{date}T00:00:00Z")) })).unwrap();
    }
    assert_eq!(sessions_in(&archive).len(), 40_305);
    assert!(verify(store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

#[test]
fn replacing_sessions_of_large_files_does_not_join_the_files() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    for n in [0, 20_000] {
        let draft = SessionsDraft {
            finished: finished("2026-11-03", n, 20_000),
            ..change(&format!("2026-11-03T00:00:{:02}Z", n / 1_000))
        };
        let _ = commit(&mut writer, sessions(draft)).unwrap();
    }
    let ids = ["c-2026-11-03-7", "c-2026-11-03-30000"].map(ConnectionId::from);
    let held = writer.rows().finished_sessions(&ids.iter().collect::<Vec<_>>()).unwrap();
    let later: Vec<SessionRow> = held.iter().map(|held| SessionRow { event_count: 9, ..held.row.clone() }).collect();
    assert_eq!(later.len(), 2);
    let draft = SessionsDraft { finished: later.clone(), replaced: replaced(held), ..change("2026-11-06T00:00:00Z") };
    let _ = commit(&mut writer, sessions(draft)).unwrap();
    let mut rows: Vec<u64> = files_of(&writer).iter().map(|(_, rows, _)| *rows).collect();
    rows.sort_unstable();
    assert_eq!(rows, [2, 19_999, 19_999]);
    let found = writer.rows().finished_sessions(&ids.iter().collect::<Vec<_>>()).unwrap();
    assert!(found.len() == 2 && found.iter().all(|held| later.contains(&held.row)), "{found:?}");
    assert_eq!(sessions_in(&archive).len(), 40_000);
    assert!(verify(store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

#[test]
fn replacing_a_session_changes_no_other_row() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    for date in ["2026-09-05", "2026-10-05", "2026-11-05"] {
        let sealed_months = vec![(Stream::Connections, month_of(day(date).start))];
        let draft = SessionsDraft { finished: finished(date, 0, 50), ..change(&format!("{date}T00:00:00Z")) };
        let _ =
            commit(&mut writer, Draft { body: Body { sealed_months, ..Body::default() }, ..sessions(draft) }).unwrap();
    }
    let before = files_of(&writer);
    let ids: Vec<ConnectionId> =
        ["c-2026-10-05-7", "c-2026-10-05-8", "c-nobody"].map(ConnectionId::from).into_iter().collect();
    let held = writer.rows().finished_sessions(&ids.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(
        held.iter().map(|held| held.row.connection_id.as_str()).collect::<Vec<_>>(),
        ["c-2026-10-05-7", "c-2026-10-05-8"]
    );
    assert!(held.iter().all(|held| held.path.contains("month=2026-10")));
    // One session continues; another turns out to have begun a month earlier.
    let later = SessionRow { event_count: 9, ..held[0].row.clone() };
    let earlier = SessionRow { first_event_at: at("2026-09-30T00:00:00Z"), ..held[1].row.clone() };
    let draft = SessionsDraft {
        open: vec![later.clone()],
        finished: vec![earlier.clone()],
        replaced: replaced(held),
        ..change("2026-11-06T00:00:00Z")
    };
    let _ = commit(&mut writer, sessions(draft)).unwrap();
    let expected = [
        (FileRole::Amendment, 1),
        (FileRole::Month, 50),
        (FileRole::Month, 48),
        (FileRole::Month, 50),
        (FileRole::Open, 1),
    ];
    let mut found = roles(&writer);
    found.sort_by_key(|(role, rows)| (format!("{role:?}"), *rows));
    let mut expected = expected.to_vec();
    expected.sort_by_key(|(role, rows)| (format!("{role:?}"), *rows));
    assert_eq!(found, expected);
    assert_eq!(files_of(&writer).iter().filter(|file| before.contains(file)).count(), 2, "months not touched stay");
    assert_eq!(
        writer.rows().open_sessions(|_| true).unwrap().into_iter().map(|held| held.row).collect::<Vec<_>>(),
        [later]
    );
    let found = writer.rows().finished_sessions(&[&earlier.connection_id]).unwrap();
    assert_eq!(found.into_iter().map(|held| held.row).collect::<Vec<_>>(), [earlier]);
    assert!(sessions_in(&archive).values().all(|count| *count == 1) && sessions_in(&archive).len() == 150);
}

#[test]
fn a_line_cannot_lose_or_change_a_session_without_a_record() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let mut body = None;
    for hour in ["01", "02"] {
        let open = vec![at_time(hour, at(&format!("2026-11-03T{hour}:00:00Z")))];
        let replaced = replaced(writer.rows().open_sessions(|_| true).unwrap());
        let draft = SessionsDraft { open, replaced, ..change(&format!("2026-11-03T{hour}:00:00Z")) };
        let _ = commit(&mut writer, sessions(draft)).unwrap();
        let ledger = store.read("ledger/team=acme/2026-11-20.jsonl").unwrap().to_bytes().unwrap();
        let last = ledger.split(|b| *b == b'\n').rfind(|line| !line.is_empty()).unwrap().to_vec();
        body = Some(crate::archive::ledger::line::LedgerLine::decode(&last).unwrap().0.body);
    }
    let (state, body) = (archive.read(&team()).unwrap().state().clone(), body.unwrap());
    // The second line is applied again to a state that still has its first file.
    let mut before = state.clone();
    before.files.clear();
    for path in &body.removes {
        let entry = FileEntry { path: path.clone(), ..body.adds[0].clone() };
        before.files.insert(path.clone(), FileEntry { rows_digest: body.sessions.unwrap().replaced_digest, ..entry });
    }
    assert_eq!(before.check(&body), Ok(()));
    let record = body.sessions.unwrap();
    let unsaid = Body { sessions: None, ..body.clone() };
    assert!(matches!(before.check(&unsaid), Err(StateError::RowsChanged { .. })));
    let fewer = super::super::SessionsRecord { replaced: 2, ..record };
    let fewer = Body { sessions: Some(fewer), ..body.clone() };
    assert!(matches!(before.check(&fewer), Err(StateError::RowsLost { .. })));
    let other = super::super::SessionsRecord { added_digest: record.replaced_digest, ..record };
    let other = Body { sessions: Some(other), ..body };
    assert!(matches!(before.check(&other), Err(StateError::RowsChanged { .. })));
}

#[test]
fn events_without_sessions_are_refused_once_the_archive_has_sessions() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let mut steps = history().into_iter();
    let first = with_sessions(&mut writer, steps.next().unwrap()).unwrap();
    let _ = commit(&mut writer, first).unwrap();
    let error = commit(&mut writer, steps.next().unwrap()).unwrap_err();
    let ArchiveError::State { source: StateError::SessionsBehind { rows: 3 }, .. } = error else { panic!("{error}") };
}

#[test]
fn a_rebuild_replaces_all_sessions() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let draft = SessionsDraft {
        open: finished("2026-11-03", 0, 5),
        finished: finished("2026-10-03", 0, 5),
        ..change("2026-11-04T00:00:00Z")
    };
    let _ = commit(&mut writer, sessions(draft)).unwrap();
    let mark = SessionsMark { rules: 2, through: None, until: None };
    let anew =
        SessionsDraft { mark, is_anew: true, finished: finished("2026-11-03", 3, 4), ..change("2026-11-05T00:00:00Z") };
    let _ = commit(&mut writer, sessions(anew)).unwrap();
    assert_eq!((roles(&writer), writer.state().sessions), (vec![(FileRole::Part, 4)], Some(mark)));
    assert_eq!(live_under(&store, "tables").len(), 1);
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
}

/// In any order of the input, rows of a file are sorted by time, and a connection has one session.
#[test]
fn sessions_of_a_draft_are_sorted_and_unique() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let [first, second, third] = ["b", "a", "c"].map(|id| at_time(id, at("2026-11-03T10:00:00Z")));
    let earliest = at_time("d", at("2026-11-03T09:00:00Z"));
    let again = SessionRow { event_count: 2, ..first.clone() };
    let draft = |finished| sessions(SessionsDraft { finished, ..change("2026-11-03T12:00:00Z") });
    let refused = commit(&mut writer, draft(vec![first.clone(), third.clone(), again])).unwrap_err();
    assert!(refused.to_string().contains("session c-b occurs twice"), "{refused}");
    let _ = commit(&mut writer, draft(vec![third.clone(), first.clone(), earliest.clone(), second.clone()])).unwrap();
    let ids: Vec<ConnectionId> = ["c-a", "c-b", "c-c", "c-d"].map(ConnectionId::from).into_iter().collect();
    let held = writer.rows().finished_sessions(&ids.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(held.into_iter().map(|held| held.row).collect::<Vec<_>>(), [earliest, second, first, third]);
}
