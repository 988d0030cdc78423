//! Hostile content in an archive, notices about its own times, and the extent of damage.

use crate::model::path::{ArchivePath, DataPath};
use crate::store::MemoryStore;

use super::super::{FaultCode, FileEntry, Verdict, VerifyFault, VerifyOptions, verify};
use super::damage::{Directory, Disk, LEDGER, check, edit_lines, file_with, flip, forge, get, month};
use super::*;

const SIGNATURES: &str = "ledger/team=acme/2026-11-20.heads";

/// Hostile content is named, not followed, and not read into memory.
#[test]
fn hostile_archives_are_named_and_not_followed() {
    let disk = Directory(tempfile::tempdir().unwrap());
    let _ = committed(&disk.store());
    let secret = tempfile::NamedTempFile::new().unwrap();
    let outside = secret.path().to_str().unwrap().to_owned();
    // Paths that lead out of the archive, and a line with the largest numbers.
    for path in ["../../../../etc/passwd", "/etc/passwd", &outside, "tables/../../x", "tables//x", ""] {
        edit_lines(&disk, |lines| {
            lines[5] = forge(&lines[5], |line| {
                line.body.adds[0].path = path.to_owned();
                (line.body.adds[0].rows, line.body.adds[0].bytes) = (u64::MAX, u64::MAX);
                line.seq = crate::model::LedgerSeq(u64::MAX);
            });
        });
        let report = check(&disk);
        let fault = report.faults.iter().find(|f| f.object == path && f.code == FaultCode::PathMismatch);
        assert!(fault.is_some(), "{path}: {:#?}", report.faults);
        assert!(!report.faults.iter().any(|f| f.object == path && f.code == FaultCode::FileHash), "{path} was read");
    }
    // Sparse files: larger than any memory, and created in no time.
    let hole = |path: &str, bytes: u64| {
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(disk.0.path().join(path));
        let file = file.unwrap();
        file.set_len(bytes).unwrap();
    };
    let month = month(&disk);
    hole(&month, 1 << 40);
    hole(LEDGER, 1 << 40);
    hole(SIGNATURES, 1 << 40);
    hole("archive.json", 1 << 40);
    let report = check(&disk);
    for (object, code) in
        [(LEDGER, FaultCode::Unreadable), (SIGNATURES, FaultCode::Unreadable), ("archive.json", FaultCode::Manifest)]
    {
        let is_named = |f: &VerifyFault| f.object.starts_with(object) && f.code == code;
        assert!(report.faults.iter().any(is_named), "{object}: {:#?}", report.faults);
    }
}

/// No sum of the numbers in a ledger overflows.
#[test]
fn the_largest_numbers_of_a_ledger_are_added_up() {
    let disk = Directory(tempfile::tempdir().unwrap());
    let archive = committed(&disk.store());
    let last = archive.read(&team()).unwrap().state().seq;
    edit_lines(&disk, |lines| {
        lines[5] = forge(&lines[5], |line| {
            let file = line.body.adds[0].clone();
            line.body.adds.push(FileEntry { path: format!("{}2", file.path), ..file });
            line.body.adds.iter_mut().for_each(|file| (file.rows, file.bytes) = (u64::MAX, u64::MAX));
        });
    });
    assert!(!check(&disk).is_clean());
    let lines = archive.lines(&team(), last).unwrap();
    assert!(lines.lines[5].rows_added > u64::MAX / 2);
}

#[test]
fn an_archive_without_a_team_fails_a_given_head() {
    let disk = MemoryStore::new();
    let _ = open(&disk.store());
    let report = check(&disk);
    assert!(report.is_clean() && report.verdict == Verdict::SelfConsistent, "{:?}", report.verdict);
}

/// A moved file is recognised by its content, even if it is the only file.
#[test]
fn a_moved_file_is_recognised() {
    let disk = MemoryStore::new();
    let first = Draft {
        body: Body { windows: vec![record(day("2026-11-01"), WindowState::Provisional, 3)], ..Body::default() },
        rows: vec![rows("2026-11-01", events("2026-11-01", 0, 3), false)],
        ..Draft::default()
    };
    let _ = commit(&mut writer(&open(&disk.store())), first).unwrap();
    let held = file_with(&disk, "20261101t");
    let moved = held.replace("20261101t", "20261102t");
    disk.put(&moved, &get(&disk, &held));
    let detail_of = |code: FaultCode| {
        let report = check(&disk);
        let fault = report.faults.iter().find(|fault| fault.object == moved && fault.code == code);
        fault.unwrap_or_else(|| panic!("no {code:?} in {:#?}", report.faults)).detail.clone()
    };
    assert_eq!(detail_of(FaultCode::DupFile), format!("the file is a copy of {held}"));
    disk.take(&held);
    assert_eq!(detail_of(FaultCode::PathMismatch), format!("the file has the content of the missing file {held}"));
}

#[test]
fn a_directory_that_is_a_link_is_not_followed() {
    let disk = Directory(tempfile::tempdir().unwrap());
    let _ = committed(&disk.store());
    let elsewhere = tempfile::tempdir().unwrap();
    let (held, moved) = (disk.0.path().join("tables/connections"), elsewhere.path().join("connections"));
    std::fs::rename(&held, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &held).unwrap();
    let report = check(&disk);
    let month = report.faults.iter().find(|f| f.object.contains("-month-") && f.code == FaultCode::Unreadable);
    assert!(month.is_some_and(|f| f.detail.contains("symbolic link")), "{:#?}", report.faults);
    assert_eq!(report.verdict, Verdict::Broken);
}

/// Two notices: the clock was set back, and the archive records a loss.
#[test]
fn recorded_losses_and_clock_changes_are_notices() {
    let disk = MemoryStore::new();
    let archive = open(&disk.store());
    let mut writer = writer(&archive);
    let mut steps = history().into_iter();
    let _ = writer.commit(steps.next().unwrap(), now()).unwrap();
    let mut second = steps.next().unwrap();
    second.body.findings.push(super::super::Finding {
        stream: Some(Stream::Connections),
        kind: super::super::FindingKind::Gap,
        subject: "device-1".to_owned(),
        from: Some(at("2026-11-01T00:00:00Z")),
        to: None,
        reason: "computer removed".to_owned(),
        count: 0,
        found_at: now(),
    });
    let _ = writer.commit(second, at("2026-11-19T00:00:00Z")).unwrap();
    let checked = |now: Option<Instant>| {
        let report = verify(&disk, &VerifyOptions { now, ..VerifyOptions::default() }).unwrap();
        assert!(report.is_clean() && report.verdict == Verdict::SelfConsistent, "{:#?}", report.faults);
        report.notices.iter().map(|notice| notice.code).collect::<Vec<_>>()
    };
    use FaultCode::{CoverageGap, StaleHead, TimeFuture, TimeRegression};
    assert_eq!(checked(None), [TimeRegression, CoverageGap]);
    assert_eq!(checked(Some(now())), [TimeRegression, CoverageGap]);
    assert_eq!(checked(Some(at("2026-11-19T12:00:00Z"))), [TimeFuture, TimeRegression, CoverageGap]);
    assert_eq!(checked(Some(at("2026-11-28T00:00:00Z"))), [TimeRegression, CoverageGap, StaleHead]);
}

#[test]
fn notices_about_time_begin_beyond_their_limits() {
    let disk = MemoryStore::new();
    let mut writer = writer(&open(&disk.store()));
    let mut steps = history().into_iter();
    for _ in 0..2 {
        let _ = writer.commit(steps.next().unwrap(), now()).unwrap();
    }
    let notices_at = |now: Instant| {
        let report = verify(&disk, &VerifyOptions { now: Some(now), ..VerifyOptions::default() }).unwrap();
        report.notices.iter().map(|notice| notice.code).collect::<Vec<_>>()
    };
    let moment = |seconds: i64, nanos: i64| Instant::from_nanos(now().nanos() + seconds * 1_000_000_000 + nanos);
    assert!(notices_at(now()).is_empty(), "two lines of one moment");
    assert!(notices_at(moment(-300, 0)).is_empty());
    assert_eq!(notices_at(moment(-300, -1)), [FaultCode::TimeFuture; 2]);
    assert!(notices_at(moment(3 * 86_400, 0)).is_empty());
    assert_eq!(notices_at(moment(3 * 86_400, 1)), [FaultCode::StaleHead]);
}

#[test]
fn the_extent_of_damage_is_reported() {
    let disk = MemoryStore::new();
    let state = committed(&disk.store()).read(&team()).unwrap().state().clone();
    let amended = state.files.values().find(|file| file.first == Some(at("2026-11-01T00:07:00Z"))).unwrap();
    flip(&disk, &amended.path, |len| len / 2);
    let damage = check(&disk).teams[0].damage.unwrap();
    assert_eq!((damage.first_seq.0, damage.last_seq.0), (6, 6));
    assert_eq!((damage.first_event, damage.last_event), (Some(at("2026-11-01T00:07:00Z")), damage.first_event));
    edit_lines(&disk, |lines| lines[2] = forge(&lines[2], |line| line.at = line.at.plus(Duration::from_nanos(1))));
    let report = check(&disk);
    let damage = report.teams[0].damage.unwrap();
    assert_eq!((damage.first_seq.0, damage.last_seq.0, report.teams[0].first_bad_line), (4, 7, Some(4)));
}

fn content_of(disk: &dyn Disk, path: &str) -> Vec<u8> {
    disk.store().read(path).unwrap().to_bytes().unwrap().to_vec()
}

/// Writes zeros at the end of a sector within the last line, if there is one: a power loss can leave that.
fn lose_power(content: &mut [u8]) -> bool {
    let begin = content[..content.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let ends = begin + 8..content.len() - 8;
    let Some(end) = ends.into_iter().find(|at| at % 512 == 511 && (at - begin) % 512 > 3) else { return false };
    // If sectors were counted from the start of the line, none would end here.
    let is_distinct = (begin..begin + content[begin..].len()).step_by(512).all(|from| from + 511 != end);
    content[end - 3..=end].fill(0);
    is_distinct
}

#[test]
fn zeros_of_a_power_loss_are_distinguished_from_damage() {
    for (path, is_signed) in [(LEDGER, false), ("ledger/team=acme/2026-11-20.heads", true)] {
        let mut tried = 0;
        for steps in 2..=history().len() {
            let disk = MemoryStore::new();
            let signer = is_signed.then(|| Arc::new(signing::signer(1)));
            let mut writer = writer(&open(&disk.store()).with_signer(signer));
            for draft in history().into_iter().take(steps) {
                let _ = commit(&mut writer, draft).unwrap();
            }
            let mut content = content_of(&disk, path);
            if !lose_power(&mut content) {
                continue;
            }
            disk.put(path, &content);
            tried += 1;
            let codes: Vec<FaultCode> = check(&disk).faults.iter().map(|fault| fault.code).collect();
            assert!(codes.contains(&FaultCode::TornTail), "{path}, {steps} lines: {codes:?}");
            let damage = [FaultCode::ChainBreak, FaultCode::BadSig];
            assert!(!codes.iter().any(|code| damage.contains(code)), "{path}, {steps} lines: {codes:?}");
        }
        assert!(tried > 0, "{path}: no last line holds the end of a sector");
    }
}

#[test]
fn a_committed_file_that_is_no_table_is_named() {
    let disk = MemoryStore::new();
    let _ = committed(&disk.store());
    let text = b"no Parquet file, and committed so";
    let path = std::cell::RefCell::new(String::new());
    edit_lines(&disk, |lines| {
        lines[5] = forge(&lines[5], |line| {
            let file = &mut line.body.adds[0];
            let Some(ArchivePath::Data(place)) = ArchivePath::parse(&file.path) else { panic!("{}", file.path) };
            (file.sha256, file.bytes) = (crate::model::Digest::of(text), text.len() as u64);
            file.path = DataPath { hash: file.sha256.short(), ..place }.to_string();
            path.borrow_mut().clone_from(&file.path);
        });
    });
    disk.put(&path.borrow(), text);
    let report = check(&disk);
    let of_file: Vec<FaultCode> =
        report.faults.iter().filter(|f| f.object == *path.borrow()).map(|fault| fault.code).collect();
    assert_eq!(of_file, [FaultCode::Unreadable], "{:#?}", report.faults);
}

/// A copied directory of a ledger would show every row of the team twice.
#[test]
fn a_copied_ledger_of_a_team_is_refused() {
    let disk = MemoryStore::new();
    let archive = committed(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let line = disk.read(LEDGER).unwrap().to_bytes().unwrap();
    let path = "ledger/team=acme-copy/2026-11-20.jsonl";
    disk.tamper(path, Some(line));
    let said = format!("{path} line 1: the line belongs to team acme, but stands in the ledger team=acme-copy");
    assert_eq!(archive.teams().unwrap_err().to_string(), said);
    assert_eq!(archive.read_each(&|_| true, |_| ()).unwrap_err().to_string(), said);
}
