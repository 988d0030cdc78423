//! The rules of expiry, each with its smallest violation; the plan; and the expiry of whole months of a real archive.

use object_server::ObjectServer;

use super::super::{
    Body, DueMonth, ExpiredRecord, FileEntry, HoldAdded, HoldRecord, HoldReleased, HoldScope, KeptBy, SessionsRecord,
    StateError, TeamState, VerifyOptions, verify,
};
use super::rules::{file, sum};
use super::*;
use crate::model::{FileRole, InventoryPart, LedgerSeq, Retained, Retention};
use crate::store::s3;

const MONTH: &str = "2025-03-01T00:00:00Z";
const NOW: &str = "2026-11-20T12:00:00Z";

fn march(role: FileRole, rows: u8, number: u64) -> FileEntry {
    let mut file = file(Stream::Connections, role, MONTH, rows, number);
    (file.first, file.last) = (Some(at("2025-03-02T00:00:00Z")), Some(at("2025-03-30T00:00:00Z")));
    file
}

fn april() -> FileEntry {
    file(Stream::Connections, FileRole::Window, "2025-04-01T00:00:00Z", 2, 3)
}

fn users(month: &str, first: &str, number: u64) -> FileEntry {
    let dataset = Dataset::Inventory(InventoryPart::Users);
    let mut file = file(dataset, FileRole::Month, &format!("{month}-01T00:00:00Z"), 1, number);
    (file.first, file.last) = (Some(at(first)), Some(at(first)));
    file
}

/// A month with two files, one file after it, and two months of users.
fn state() -> TeamState {
    let windows =
        vec![record(day("2025-03-01"), WindowState::Sealed, 7), record(day("2025-04-01"), WindowState::Sealed, 2)];
    let people = [users("2025-03", "2025-03-01T03:00:00Z", 5), users("2025-04", "2025-04-01T03:00:00Z", 6)];
    let adds = vec![march(FileRole::Month, 5, 1), march(FileRole::Amendment, 2, 2), april()];
    let sessions = Some(SessionsRecord {
        mark: SessionsMark { rules: 1, through: None, until: None },
        replaced: 0,
        replaced_digest: sum(0),
        added: 0,
        added_digest: sum(0),
    });
    let body = Body { adds: [adds, people.to_vec()].concat(), windows, sessions, ..Body::default() };
    TeamState::genesis("archive-1", team()).try_advance(body).unwrap()
}

fn expired() -> ExpiredRecord {
    ExpiredRecord {
        policy: "connections = 1y".to_owned(),
        at: at(NOW),
        dataset: Dataset::Connections,
        month: at(MONTH),
        files: 2,
        rows: 7,
        rows_digest: sum(70),
    }
}

fn removes() -> Vec<String> {
    vec![march(FileRole::Month, 5, 1).path, march(FileRole::Amendment, 2, 2).path]
}

fn expiring(change: impl FnOnce(&mut Body)) -> Body {
    let mut body = Body { removes: removes(), expired: vec![expired()], ..Body::default() };
    change(&mut body);
    body
}

fn hold(id: &str, from: Option<&str>, to: Option<&str>) -> HoldRecord {
    HoldRecord::Add(HoldAdded {
        id: id.to_owned(),
        reason: "a case".to_owned(),
        by: None,
        at: at(NOW),
        from: from.map(at),
        to: to.map(at),
        scope: HoldScope::Team,
        subject: None,
    })
}

fn release(id: &str) -> HoldRecord {
    HoldRecord::Release(HoldReleased { id: id.to_owned(), reason: "over".to_owned(), by: None, at: at(NOW) })
}

fn broken_rule(state: &TeamState, body: Body) -> Option<StateError> {
    state.check(&body).err()
}

/// Whether the line contradicts itself or earlier lines, for this reason.
fn contradicts(rule: Option<StateError>, reason: &str) -> bool {
    matches!(rule, Some(StateError::Expiry(text)) if text.contains(reason))
}

/// Whether a policy or a hold protects the rows, for this reason.
fn is_protected(rule: Option<StateError>, reason: &str) -> bool {
    matches!(rule, Some(StateError::Protected(text)) if text.contains(reason))
}

#[test]
fn rows_expire_only_with_a_record() {
    let state = state();
    assert_eq!(broken_rule(&state, expiring(|_| {})), None);
    // Without an expiry record, the removed rows count as lost.
    let lost = state.check(&Body { removes: removes(), ..Body::default() });
    assert!(matches!(lost, Err(StateError::RowsLost { removed: 7, added: 0, .. })), "{lost:?}");
    let one = |change: fn(&mut ExpiredRecord)| broken_rule(&state, expiring(|body| change(&mut body.expired[0])));
    assert!(contradicts(one(|record| record.rows = 6), "the line records 2 files with 6 rows"));
    assert!(contradicts(one(|record| record.files = 3), "the line records 3 files"));
    assert!(contradicts(one(|record| record.rows_digest = sum(71)), "but removes 2 files with 7 rows"));
    assert!(is_protected(one(|record| record.policy = "activity = 1y".to_owned()), "is not a policy"));
    assert!(is_protected(one(|record| record.policy = "connections = 7 parsecs".to_owned()), "is not a policy"));
    assert!(is_protected(one(|record| record.policy = "connections = 2y".to_owned()), "lets the rows expire at 2027-"));
    assert!(is_protected(one(|record| record.at = at("2026-03-31T23:59:59Z")), "lets the rows expire at 2026-04-01"));
    assert_eq!(one(|record| record.at = at("2026-04-01T00:00:00Z")), None, "to the second");
    assert!(contradicts(one(|record| record.month = at("2025-03-02T00:00:00Z")), "expire twice, or"));
    let stays = expiring(|body| body.removes.truncate(1));
    assert!(contradicts(broken_rule(&state, stays), "but the line does not remove it"));
    let twice = expiring(|body| body.expired.push(expired()));
    assert!(contradicts(broken_rule(&state, twice), "expire twice, or"));
    let back = expiring(|body| body.adds.push(march(FileRole::Amendment, 2, 9)));
    assert!(contradicts(broken_rule(&state, back), "adds the file to an expired month"));
    // Sessions expire with their connections, and the line replaces them.
    let sessions = expiring(|body| {
        body.expired.push(ExpiredRecord { dataset: Dataset::Sessions, rows: 1, files: 0, ..expired() });
    });
    assert!(contradicts(broken_rule(&state, sessions), "1 session rows expire, but the line replaces 0"));
    let gone = state.try_advance(expiring(|_| {})).unwrap();
    assert_eq!(gone.expired_month(Dataset::Connections, at("2025-03-31T23:00:00Z")), Some(&(LedgerSeq(1), expired())));
    assert!(!gone.has_expired(Stream::Connections, at("2025-04-01T00:00:00Z")));
    let back = Body { adds: vec![march(FileRole::Amendment, 2, 9)], ..Body::default() };
    assert!(contradicts(broken_rule(&gone, back), "adds the file to an expired month"), "nor later");
}

#[test]
fn rows_under_a_hold_do_not_expire() {
    let held = |records: Vec<HoldRecord>| state().try_advance(Body { holds: records, ..Body::default() }).unwrap();
    for (case, records, is_refused) in [
        ("of everything", vec![hold("H", None, None)], true),
        ("of one day of it", vec![hold("H", Some("2025-03-31T00:00:00Z"), Some("2025-04-01T00:00:00Z"))], true),
        ("of the month after", vec![hold("H", Some("2025-04-01T00:00:00Z"), None)], false),
        ("of the month before", vec![hold("H", None, Some("2025-03-01T00:00:00Z"))], false),
        ("released", vec![hold("H", None, None), release("H")], false),
    ] {
        let rule = broken_rule(&held(records), expiring(|_| {}));
        assert_eq!(rule.is_some(), is_refused, "{case}: {rule:?}");
        assert!(!is_refused || is_protected(rule, "hold H protects the rows"), "{case}");
    }
    // One line cannot release a hold and expire its rows.
    let at_once = expiring(|body| body.holds = vec![release("H")]);
    assert!(is_protected(broken_rule(&held(vec![hold("H", None, None)]), at_once), "hold H protects the rows"));
}

#[test]
fn the_plan_lists_due_months_and_the_holds_that_keep_them() {
    let classes =
        |of: &[(Retained, &str)]| Retention(of.iter().map(|(of, text)| (*of, text.parse().unwrap())).collect());
    let plan = |state: &TeamState, of: &[(Retained, &str)], now: &str| {
        let holds: Vec<_> = state.holds.values().cloned().collect();
        let due = state.due(&classes(of), &holds, at(now));
        due.into_iter().map(|due| (due.dataset, due.month.month(), due.rows, due.kept_by)).collect::<Vec<_>>()
    };
    let connections = [(Retained::Connections, "1y")];
    let state = state();
    let (of_march, of_april) = ("2025-03".to_owned(), "2025-04".to_owned());
    assert_eq!(plan(&state, &[], NOW), []);
    assert_eq!(plan(&state, &connections, "2026-03-31T23:59:59Z"), []);
    let march = (Dataset::Connections, of_march.clone(), 7, None);
    assert_eq!(plan(&state, &connections, "2026-04-01T00:00:00Z"), std::slice::from_ref(&march));
    assert_eq!(plan(&state, &connections, NOW), [march, (Dataset::Connections, of_april, 2, None)]);
    // A month of users expires when the next month's first row is older than the class.
    let users = Dataset::Inventory(InventoryPart::Users);
    assert_eq!(plan(&state, &[(Retained::Inventory, "1y")], "2026-04-01T02:59:59Z"), []);
    assert_eq!(plan(&state, &[(Retained::Inventory, "1y")], "2030-04-01T03:00:00Z"), [(users, of_march, 1, None)]);
    // The reasons that keep a month.
    let held = state.try_advance(Body { holds: vec![hold("H", None, None)], ..Body::default() }).unwrap();
    let kept = plan(&held, &connections, NOW);
    assert!(kept.iter().all(|(.., by)| *by == Some(KeptBy::Holds(vec!["H".to_owned()]))), "{kept:?}");
    let open = Body { windows: vec![record(day("2025-03-02"), WindowState::Settled, 0)], ..Body::default() };
    let kept = plan(&state.try_advance(open).unwrap(), &connections, "2026-04-01T00:00:00Z");
    assert_eq!(kept[0].3, Some(KeptBy::OpenWindows));
    let mut behind = state;
    behind.sessions = Some(SessionsMark { rules: 1, through: Some(at(MONTH)), until: None });
    assert_eq!(plan(&behind, &connections, "2026-04-01T00:00:00Z")[0].3, Some(KeptBy::SessionsBehind));
}

/// One line expires all files of a month, of every kind, and no other file: on a disk and in a bucket.
#[test]
fn a_whole_month_expires_and_the_other_data_verifies() {
    let server = ObjectServer::start();
    for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(s3(&server))] {
        expire_whole_month(&store);
    }
}

fn expire_whole_month(store: &Arc<dyn Store>) {
    let archive = open(store);
    let mut writer = writer(&archive);
    let of = |date: &str, state: WindowState| Draft {
        body: Body { windows: vec![record(day(date), state, 5)], ..Body::default() },
        rows: vec![rows(date, events(date, 0, 5), true)],
        sessions: Some(sessions_of(date)),
        ..Draft::default()
    };
    for date in ["2025-02-27", "2025-02-28", "2025-03-01"] {
        let _ = commit(&mut writer, of(date, WindowState::Sealed)).unwrap();
    }
    let february = month_of(at("2025-02-01T00:00:00Z"));
    let seal = Draft::from(Body { sealed_months: vec![(Stream::Connections, february)], ..Body::default() });
    let _ = commit(&mut writer, seal).unwrap();
    let classes = Retention([(Retained::Connections, "1y".parse().unwrap())].into());
    let mut due = writer.state().due(&classes, &[], now());
    due.retain(|month| month.month == february.start);
    assert_eq!(archive.read(&team()).unwrap().would_expire(&due, now()).unwrap().len(), 2);
    let said = writer.expire(&due, now(), now()).unwrap();
    let rows_of = |dataset| said.iter().find(|record| record.dataset == dataset).map(|record| record.rows);
    assert_eq!((rows_of(Dataset::Connections), rows_of(Dataset::Sessions)), (Some(10), Some(2)));
    let left: Vec<String> = ids_in(&archive).into_keys().collect();
    assert!(left.len() == 5 && left.iter().all(|id| id.starts_with("2025-03-01")), "{left:?}");
    let sessions = writer.state().files_of(Dataset::Sessions).map(|file| file.rows).sum::<u64>();
    assert_eq!(sessions, 1);
    let nothing = writer.state().due(&classes, &[], at("2026-02-15T00:00:00Z"));
    assert_eq!(writer.expire(&nothing, now(), now()).unwrap(), []);
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
    assert!(verify(store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
    // The archive refuses every draft with rows of the expired month.
    let back = commit(&mut writer, Draft { sessions: None, ..of("2025-02-26", WindowState::Sealed) });
    assert!(matches!(back, Err(ArchiveError::State { .. })), "{back:?}");
}

/// The events of a window are in the folder of the month in which it begins, and their sessions expire with them.
#[test]
fn sessions_of_a_window_that_ends_in_the_next_month_expire_with_their_events() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let week = Range::new(day("2025-02-27").start, day("2025-03-05").end);
    for (window, date) in [(week, "2025-03-02"), (day("2025-03-06"), "2025-03-06")] {
        let draft = Draft {
            rows: vec![WindowRows::new(Stream::Connections, window, events(date, 0, 1), true)],
            sessions: Some(sessions_of(date)),
            ..Draft::from(Body { windows: vec![record(window, WindowState::Sealed, 1)], ..Body::default() })
        };
        let _ = commit(&mut writer, draft).unwrap();
    }
    let classes = Retention([(Retained::Connections, "1y".parse().unwrap())].into());
    let sessions = |writer: &TeamWriter| writer.state().files_of(Dataset::Sessions).map(|file| file.rows).sum::<u64>();
    let due = writer.state().due(&classes, &[], now());
    for (month, left) in [("2025-02-01T00:00:00Z", 1), ("2025-03-01T00:00:00Z", 0)] {
        let of_month: Vec<DueMonth> = due.iter().filter(|due| due.month == at(month)).cloned().collect();
        let said = writer.expire(&of_month, now(), now()).unwrap();
        let said: Vec<_> = said.iter().map(|record| (record.dataset, record.rows)).collect();
        assert_eq!(said, [(Dataset::Connections, 1), (Dataset::Sessions, 1)], "{month}");
        assert_eq!(sessions(&writer), left, "{month}");
    }
    assert!(verify(store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

/// One finished session of the day.
fn sessions_of(date: &str) -> SessionsDraft {
    let row = session(&event(&format!("{date}-0000"), day(date).start));
    SessionsDraft {
        mark: SessionsMark { rules: 1, through: None, until: None },
        is_anew: false,
        open: Vec::new(),
        finished: vec![row],
        replaced: BTreeMap::new(),
    }
}
