//! The notices of `verify`, and facts that are no faults.

use crate::model::TeamKey;
use crate::store::MemoryStore;

use super::super::{FaultCode, Finding, FindingKind, Head, KnownHead, VerifyOptions, VerifyReport, verify};
use super::signing::key;
use super::*;

fn check(disk: &MemoryStore) -> VerifyReport {
    verify(disk, &VerifyOptions::default()).unwrap()
}

fn codes(report: &VerifyReport) -> Vec<FaultCode> {
    report.faults.iter().map(|fault| fault.code).collect()
}

fn disk() -> (MemoryStore, Arc<dyn Store>) {
    let disk = MemoryStore::new();
    (disk.clone(), Arc::new(disk))
}

fn content(disk: &MemoryStore, path: &str) -> Bytes {
    disk.read(path).unwrap().to_bytes().unwrap()
}

#[test]
fn only_gaps_among_findings_are_notices() {
    let (disk, store) = disk();
    let found = |kind, subject: &str| Finding {
        stream: Some(Stream::Billing),
        kind,
        subject: subject.to_owned(),
        from: None,
        to: Some(now()),
        reason: "why".to_owned(),
        count: 1,
        found_at: now(),
    };
    let findings = vec![found(FindingKind::Late, "late"), found(FindingKind::Gap, "gap")];
    let _ = commit(&mut writer(&open(&store)), Draft::from(Body { findings, ..Body::default() })).unwrap();
    let notices = check(&disk).notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!((notices[0].code, notices[0].object.as_str()), (FaultCode::CoverageGap, "ledger/team=acme seq 1"));
    assert_eq!(notices[0].detail, "billing [?..2026-11-20T12:00:00Z), gap: why");
}

/// If every line of every team names the same other archive, the manifest is wrong.
#[test]
fn a_manifest_that_contradicts_every_line_is_named() {
    let (disk, store) = disk();
    let archive = committed(&store);
    let one = Draft { rows: vec![rows("2026-11-03", Vec::new(), false)], ..history().remove(3) };
    let _ = archive.writer(&TeamId::from("other")).unwrap().commit(one.clone(), now()).unwrap();
    let lies = |disk: &MemoryStore| {
        let manifest = String::from_utf8(content(disk, "archive.json").to_vec()).unwrap();
        disk.tamper("archive.json", Some(manifest.replace("archive-1", "archive-9").into()));
        check(disk).faults.iter().filter(|fault| fault.code == FaultCode::Manifest).map(|f| f.detail.clone()).collect()
    };
    let details: Vec<String> = lies(&disk.snapshot());
    assert_eq!(details, ["names archive archive-9, but every ledger line names archive-1"]);
    // If the lines of two teams name two archives, they say nothing about the manifest.
    let (strange, _) = self::disk();
    let second = Archive::open_or_create(Arc::new(strange.clone()), || "archive-2".to_owned()).unwrap();
    let _ = second.writer(&TeamId::from("third")).unwrap().commit(one, now()).unwrap();
    let path = "ledger/team=third/2026-11-20.jsonl";
    disk.tamper(path, Some(content(&strange, path)));
    let details: Vec<String> = lies(&disk);
    assert_eq!(details, Vec::<String>::new());
}

#[test]
fn a_signed_head_without_a_known_key_is_a_notice() {
    let (disk, store) = disk();
    let archive = committed(&store);
    let state = archive.read(&team()).unwrap().state().clone();
    let head = Head::new(archive.id(), &TeamKey::of(&team()), state.seq, state.head);
    let notices_on = |head: &Head| {
        let options = VerifyOptions { heads: vec![KnownHead::Note(head.clone())], ..VerifyOptions::default() };
        let report = verify(&disk, &options).unwrap();
        assert_eq!(codes(&report), []);
        report.notices.iter().map(|notice| notice.code).collect::<Vec<_>>()
    };
    assert!(notices_on(&head).is_empty());
    assert_eq!(notices_on(&head.signed(&key(1))), [FaultCode::UnknownKey]);
}

/// Half a line is an interruption at the ledger's very end, and damage elsewhere.
#[test]
fn half_a_line_in_the_middle_is_damage() {
    let (disk, store) = disk();
    let archive = open(&store);
    let mut writer = writer(&archive);
    let mut steps = history().into_iter();
    let _ = commit(&mut writer, steps.next().unwrap()).unwrap();
    let first = "ledger/team=acme/2026-11-20.jsonl";
    let len = content(&disk, first).len() as u64;
    let _ = writer.commit(steps.next().unwrap(), at("2026-11-21T00:00:00Z")).unwrap();
    drop(writer);
    let half = |path: &str, len: u64| {
        let disk = disk.snapshot();
        let whole = content(&disk, path).slice(..usize::try_from(len).unwrap());
        disk.tamper(path, Some([whole.as_ref(), b"{\"v\":1,\"archive_id\":\"archive-1\""].concat().into()));
        disk
    };
    let second = "ledger/team=acme/2026-11-21.jsonl";
    let torn = half(second, content(&disk, second).len() as u64);
    let reopened = Archive::open(Arc::new(torn)).unwrap().writer(&team()).unwrap();
    assert_eq!(reopened.state().seq.0, 2);
    let damaged = half(first, len);
    assert!(codes(&check(&damaged)).contains(&FaultCode::ChainBreak));
    let archive = Archive::open(Arc::new(damaged)).unwrap();
    for error in [archive.writer(&team()).err().unwrap(), archive.read(&team()).err().unwrap()] {
        assert!(error.to_string().contains("ends in the middle of a line"), "{error}");
    }
}

#[test]
fn the_totals_are_the_sums_of_the_teams() {
    let (disk, store) = disk();
    let archive = committed(&store);
    let later = now().plus(Duration::from_secs(3_600));
    let mut writer = archive.writer(&TeamId::from("other")).unwrap();
    for (draft, time) in history().into_iter().map(of_other).zip([later, later, now(), later, later, later]) {
        let _ = writer.commit(draft, time).unwrap();
    }
    let path = disk.list("tables").unwrap().into_iter().find(|file| file.path.contains("-month-")).unwrap().path;
    disk.tamper(&path, None);
    let report = check(&disk);
    let [one, two] = report.teams.as_slice() else { panic!("{:?}", report.teams) };
    for (whole, parts) in [
        (report.commits, [one.commits, two.commits]),
        (report.files, [one.files, two.files]),
        (report.rows, [one.rows, two.rows]),
    ] {
        assert_eq!((whole.good, whole.total), (parts[0].good + parts[1].good, parts[0].total + parts[1].total));
    }
    assert_eq!((report.commits.to_string(), report.files.good + 1), ("13/13".to_owned(), report.files.total));
    assert!(report.rows.good < report.rows.total && report.rows.good > 0, "{}", report.rows);
    assert_eq!((report.found_from, report.found_to), (Some(now()), Some(later)));
}

fn of_other(mut draft: Draft) -> Draft {
    let team = || TeamId::from("other");
    draft.rows.iter_mut().flat_map(|window| &mut window.rows).for_each(|row| row.team_id = team());
    draft.rejects.iter_mut().for_each(|row| row.team_id = team());
    draft
}
