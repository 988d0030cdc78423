//! The salts of row digests: each month and team has its own, sums remain sums, and a lost salt is named.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::salts::DRAFTS_MONTH;
use super::super::table::{digest_rows, event_batches, reject_batch};
use super::super::{FaultCode, SaltRecord, VerifyOptions, VerifyReport, verify};
use super::damage::{Disk, LEDGER, edit_lines, file_with, flip, forge, get};
use super::*;
use crate::archive::ledger::line::LedgerLine;
use crate::archive::ledger::rows_sum::RowsSum;
use crate::model::{Digest, TeamKey};

fn sum(rows: &[EventRow], salts: &Salts) -> RowsSum {
    event_batches(Stream::Connections, rows, salts).unwrap().1
}

#[test]
fn each_month_of_a_team_has_its_own_salt_and_digests_add_up() {
    let ours = salts();
    let of = |at: &str| ours.of(self::at(at)).unwrap().1;
    let (first, last) = (of("2026-11-01T00:00:00Z"), of("2026-11-30T23:59:59.999999999Z"));
    assert_eq!(first, last);
    assert!(first != of("2026-12-01T00:00:00Z") && first != of("2025-11-01T00:00:00Z"));
    let archive = Archive::open_or_create(Arc::new(MemoryStore::new()), || "archive-1".to_owned()).unwrap();
    let (one, other) = (archive.writer(&team()).unwrap(), archive.writer(&"other".into()).unwrap());
    let rows = [event("a", at("2026-11-30T23:59:59Z")), event("b", at("2026-12-01T00:00:00Z"))];
    let digests = [one.salts(), other.salts(), &ours].map(|salts| {
        let both = sum(&rows, salts);
        assert_eq!(both, sum(&rows[..1], salts).plus(sum(&rows[1..], salts)));
        both
    });
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
}

#[test]
fn a_row_without_a_time_belongs_to_the_month_of_its_first_sight() {
    let salts = salts();
    let months = |rows: &[RejectRow]| {
        let fresh = Salts::of_test(team());
        assert_eq!(
            digest_rows(&reject_batch(rows).unwrap(), &fresh).unwrap(),
            digest_rows(&reject_batch(rows).unwrap(), &salts).unwrap()
        );
        let store = MemoryStore::new();
        let written = fresh.write_new(&store).unwrap();
        written.into_iter().map(|record| record.month.month()).collect::<Vec<_>>()
    };
    let timeless = reject("odd", b"{}");
    let timed = RejectRow { time: Some(at("2025-03-04T05:06:07Z")), ..timeless.clone() };
    assert_eq!(months(std::slice::from_ref(&timeless)), ["2026-11"]);
    assert_eq!(months(std::slice::from_ref(&timed)), ["2025-03"]);
    assert_eq!(months(&[timed, timeless]), ["2025-03", "2026-11"]);
}

proptest! {
    /// For any distribution of rows over files and merges, the sum of the digests is the same.
    #[test]
    fn merging_keeps_the_sum_of_the_rows(
        events in vec((0..60u64, 0..86_400u64, 0..3usize), 1..24),
        seals in any::<[bool; 3]>(),
    ) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut writer = writer(&open(&store));
        let first = day("2026-10-10").start;
        let mut all = Vec::new();
        for (step, may_seal) in seals.into_iter().enumerate() {
            let mut draft = Draft::default();
            for (number, (day_number, second, _)) in events.iter().enumerate().filter(|(_, event)| event.2 == step) {
                let start = first.plus(Duration::from_secs(day_number * 86_400));
                let window = Range::new(start, start.plus(Duration::from_secs(86_400)));
                let row = event(&number.to_string(), start.plus(Duration::from_secs(*second)));
                all.push(row.clone());
                draft.rows.push(WindowRows::new(Stream::Connections, window, vec![row], number % 2 == 0));
            }
            if may_seal && step > 0 {
                let month = if step == 1 { month_of(first) } else { november() };
                draft.body.sealed_months.push((Stream::Connections, month));
            }
            let _ = commit(&mut writer, draft).unwrap();
        }
        let archived = RowsSum::of_files(writer.state().files_of(Dataset::Connections));
        prop_assert_eq!(archived, sum(&all, writer.salts()));
        let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.faults);
    }
}

fn disk() -> MemoryStore {
    let disk = MemoryStore::new();
    disk.set_now(now());
    let _ = committed(&(Arc::new(disk.clone()) as _));
    disk
}

fn salt_of(disk: &MemoryStore, month: &str) -> String {
    file_with(disk, &format!("salts/team=acme/{month}-"))
}

fn report(disk: &MemoryStore) -> VerifyReport {
    verify(disk, &VerifyOptions::default()).unwrap()
}

fn faults(disk: &MemoryStore) -> Vec<(FaultCode, String)> {
    report(disk).faults.into_iter().map(|fault| (fault.code, fault.object)).collect()
}

#[test]
fn a_missing_or_wrong_salt_is_reported_once_and_files_are_checked_by_hash() {
    type Damage = fn(&MemoryStore, &str);
    let hurts: [(&str, Damage); 4] = [
        ("gone", |disk, path| disk.take(path)),
        ("altered", |disk, path| flip(disk, path, |len| len - 10)),
        ("of another month", |disk, path| disk.put(path, &get(disk, &salt_of(disk, "1970-01")))),
        ("of another team", |disk, path| {
            let archive = open(&(Arc::new(disk.clone()) as _));
            let mut other = archive.writer(&"other".into()).unwrap();
            let row = EventRow { team_id: "other".into(), ..event("e", now()) };
            let rows = vec![WindowRows::new(Stream::Connections, day("2026-11-20"), vec![row], false)];
            let _ = commit(&mut other, Draft { rows, ..Draft::default() }).unwrap();
            let theirs = get(disk, &file_with(disk, "salts/team=other/2026-11-"));
            disk.put(path, &theirs);
        }),
    ];
    for (what, hurt) in hurts {
        let disk = disk();
        let path = salt_of(&disk, "2026-11");
        hurt(&disk, &path);
        assert_eq!(faults(&disk), [(FaultCode::Salt, path.clone())], "{what}");
        let report = report(&disk);
        assert!(report.faults[0].detail.contains("only the file hashes attest the rows"), "{report:?}");
        assert_eq!((report.files.good, report.rows.good), (report.files.total, report.rows.total), "{what}");
        // The file's hash still shows the change.
        flip(&disk, &file_with(&disk, "connections/team=acme/month=2026-11/20261101t000000z-month-"), |len| len / 3);
        assert!(faults(&disk).iter().any(|(code, _)| *code == FaultCode::FileHash), "{what}");
    }
}

#[test]
fn a_ledger_line_with_a_missing_or_wrong_salt_is_reported() {
    let disk = disk();
    edit_lines(&disk, |lines| lines[0] = forge(&lines[0], |line| line.body.salts.clear()));
    let found = faults(&disk);
    assert!(found.contains(&(FaultCode::Salt, "ledger/team=acme".to_owned())), "{found:?}");
    let disk = self::disk();
    let other = get(&disk, &salt_of(&disk, "1970-01"));
    let named = SaltRecord { month: november().start, sha256: Digest::of(&other) };
    disk.put(&named.path(&TeamKey::of(&team())), &other);
    edit_lines(&disk, |lines| {
        lines[0] = forge(&lines[0], |line| {
            line.body.salts.iter_mut().filter(|record| record.month == named.month).for_each(|record| *record = named);
        });
    });
    let is_of_salt = |fault: &&super::super::VerifyFault| fault.code == FaultCode::Salt;
    let report = report(&disk);
    let detail = &report.faults.iter().find(is_of_salt).expect("a salt").detail;
    assert!(detail.contains("the salt of 1970-01 of team acme"), "{detail}");
}

fn draft(date: &str) -> Draft {
    Draft { rows: vec![rows(date, events(date, 50, 1), false)], ..Draft::default() }
}

#[test]
fn a_writer_refuses_only_rows_of_months_with_a_lost_salt() {
    let disk = disk();
    let path = salt_of(&disk, "2026-11");
    let content = get(&disk, &path);
    disk.take(&path);
    let archive = open(&(Arc::new(disk.clone()) as _));
    let mut writer = writer(&archive);
    let with_sessions = |writer: &mut TeamWriter, date| with_sessions(writer, draft(date)).unwrap();
    let november = with_sessions(&mut writer, "2026-11-07");
    let error = commit(&mut writer, november.clone()).unwrap_err();
    assert!(!error.needs_reopen() && error.to_string().contains(&path), "{error}");
    // The sessions of the last line are in November, too.
    let reviews = vec![records::review("somebody")];
    let _ = commit(&mut writer, Draft::from(Body { reviews, ..Body::default() })).unwrap();
    drop(writer);
    disk.put(&path, &content);
    let mut writer = self::writer(&archive);
    let _ = commit(&mut writer, november).unwrap();
    assert_eq!(faults(&disk), []);
}

/// The first line decides the month's salt: the losing writer reads the ledger again and uses the named salt.
#[test]
fn two_concurrent_writers_agree_on_one_salt_for_a_month() {
    let disk = MemoryStore::new();
    disk.set_now(now());
    let store = fencing::without_locks(&disk);
    let archive = open(&store);
    let (mut one, mut other) = (writer(&archive), writer(&archive));
    let _ = commit(&mut one, draft("2026-11-07")).unwrap();
    let late =
        Draft { body: Body { reviews: vec![records::review("late")], ..Body::default() }, ..draft("2026-11-08") };
    assert!(commit(&mut other, late.clone()).unwrap_err().needs_reopen());
    let salts = || files_under(&store, "salts/team=acme");
    assert_eq!(salts().len(), 4, "two of each");
    let lost = other.salts().of(now()).unwrap();
    drop(other);
    let mut again = writer(&archive);
    let named = again.salts().of(now()).unwrap();
    assert!(named == one.salts().of(now()).unwrap() && named != lost);
    let _ = commit(&mut again, late).unwrap();
    // The salts and the file of the losing commit.
    assert_eq!((faults(&disk), report(&disk).unnamed), (vec![], 3));
    drop((one, again));
    vacuumed(&disk);
    assert_eq!(salts().len(), 2);
    assert_eq!(faults(&disk), []);
}

#[test]
fn a_salt_is_written_once_and_the_first_line_that_uses_it_names_it() {
    let disk = disk();
    let lines = get(&disk, LEDGER);
    let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let named = |line: &[u8]| {
        let (line, _) = LedgerLine::decode(line).unwrap();
        line.body.salts.into_iter().map(|record| record.month).collect::<Vec<_>>()
    };
    assert_eq!(named(lines.next().unwrap()), [DRAFTS_MONTH, november().start]);
    // A scan of computers in October.
    assert_eq!(named(lines.next().unwrap()), [at("2026-10-01T00:00:00Z")]);
    assert!(lines.all(|line| named(line).is_empty()));
    assert_eq!(files_under(&disk.store(), "salts").len(), 3);
}
