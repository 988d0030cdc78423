//! The damage table: each way of damaging an archive from outside, and the fault codes that must name it.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::random::Nonce;
use super::super::{FaultCode, KnownHead, Verdict, VerifyOptions, VerifyReport, verify};
use super::*;
use crate::archive::ledger::line::{LINE_VERSION, LedgerLine};
use crate::model::Digest;
use crate::store::{Blob, LocalStore, MemoryStore};

const TEN_DAYS: Duration = Duration::from_secs(10 * 86_400);

/// An archive to damage: a store, and direct access to its files.
pub trait Disk {
    fn store(&self) -> Arc<dyn Store>;
    fn put(&self, path: &str, content: &[u8]);
    fn take(&self, path: &str);
    /// Lets ten days pass.
    fn age(&self);
}

impl Disk for MemoryStore {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn put(&self, path: &str, content: &[u8]) {
        self.tamper(path, Some(Bytes::copy_from_slice(content)));
    }

    fn take(&self, path: &str) {
        self.tamper(path, None);
    }

    fn age(&self) {
        self.set_now(self.now().unwrap().plus(TEN_DAYS));
    }
}

pub struct Directory(pub tempfile::TempDir);

impl Disk for Directory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(LocalStore::new(self.0.path()))
    }

    fn put(&self, path: &str, content: &[u8]) {
        let full = self.0.path().join(path);
        std::fs::create_dir_all(full.parent().unwrap_or(Path::new("/"))).unwrap();
        let mut file = std::fs::File::create(full).unwrap();
        std::io::Write::write_all(&mut file, content).unwrap();
    }

    fn take(&self, path: &str) {
        std::fs::remove_file(self.0.path().join(path)).unwrap();
    }

    fn age(&self) {
        for entry in self.store().list("").unwrap().into_iter().filter(|entry| entry.irregular.is_none()) {
            let file = std::fs::File::options().append(true).open(self.0.path().join(entry.path)).unwrap();
            let modified = file.metadata().unwrap().modified().unwrap();
            file.set_modified(modified - TEN_DAYS).unwrap();
        }
    }
}

pub fn get(disk: &dyn Disk, path: &str) -> Vec<u8> {
    disk.store().read(path).map(|blob: Blob| blob.to_bytes().unwrap()).unwrap().to_vec()
}

pub fn file_with(disk: &dyn Disk, part: &str) -> String {
    let found = files_under(&disk.store(), "").into_iter().find(|path| path.contains(part));
    found.unwrap_or_else(|| panic!("no file with {part}"))
}

pub fn month(disk: &dyn Disk) -> String {
    file_with(disk, "-month-")
}

pub fn flip(disk: &dyn Disk, path: &str, at: impl Fn(usize) -> usize) {
    let mut content = get(disk, path);
    let at = at(content.len());
    content[at] ^= 0x10;
    disk.put(path, &content);
}

fn rename(disk: &dyn Disk, from: &str, to: &str) {
    let content = get(disk, from);
    disk.take(from);
    disk.put(to, &content);
}

pub const LEDGER: &str = "ledger/team=acme/2026-11-20.jsonl";

pub fn edit_lines(disk: &dyn Disk, edit: impl Fn(&mut Vec<Vec<u8>>)) {
    let content = get(disk, LEDGER);
    let mut lines: Vec<Vec<u8>> = content.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    edit(&mut lines);
    disk.put(LEDGER, &lines.concat());
}

/// The same line with another body or head, and a fitting hash.
pub fn forge(line: &[u8], change: impl Fn(&mut LedgerLine)) -> Vec<u8> {
    let (mut line, _) = LedgerLine::decode(&line[..line.len() - 1]).unwrap();
    change(&mut line);
    line.encode().0
}

/// Rewrites the month's file after `change` to its rows.
fn rewrite_month(disk: &dyn Disk, change: impl Fn(&mut Vec<EventRow>)) {
    use super::super::table::{Selection, TableReader, TableWriter, event_batch, event_rows};
    let (path, dataset, stream) = (month(disk), Dataset::Connections, Stream::Connections);
    let store = disk.store();
    let mut rows = Vec::new();
    for batch in TableReader::open(store.as_ref(), &path, dataset, Selection::default()).unwrap() {
        rows.extend(event_rows(stream, &batch.unwrap()).unwrap());
    }
    change(&mut rows);
    let aside = MemoryStore::new();
    // Announcing more rows adds bloom filters: other bytes for the same rows.
    let mut table = TableWriter::create(&aside, dataset, 1_000_000, Nonce(7)).unwrap();
    table.write(&event_batch(stream, &rows).unwrap()).unwrap();
    table.finish(|_| "new".to_owned()).unwrap();
    disk.put(&path, &aside.read("new").unwrap().to_bytes().unwrap());
}

type Damage = fn(&dyn Disk);

/// By the numbers of the published table: the damage, and the codes that the report must contain.
const TABLE: &[(&str, Damage, &[FaultCode])] = {
    use FaultCode::*;
    &[
        ("1 a bit in a data page", |d| flip(d, &month(d), |len| len / 3), &[FileHash]),
        ("2 a bit in the footer", |d| flip(d, &month(d), |len| len - 40), &[FileHash]),
        ("3 a file deleted", |d| d.take(&month(d)), &[FileMissing]),
        ("4 two files swapped", swap, &[FileHash, FileHash]),
        (
            "5 a file moved to another partition",
            |d| rename(d, &month(d), &other_month(d, true)),
            &[FileMissing, OrphanFile],
        ),
        ("6 only the partition's key changed", |d| rename(d, &month(d), &other_month(d, false)), &[PathMismatch]),
        ("7 a file copied under a new name", |d| d.put(&copied(d), &get(d, &month(d))), &[OrphanFile, DupFile]),
        ("8 a foreign file in the tree", |d| d.put("tables/connections/x.parquet", b"PAR1"), &[OrphanFile]),
        (
            "9 a row removed and the file rewritten",
            |d| rewrite_month(d, |rows| drop(rows.pop())),
            &[FileHash, RowCount, RowRoot],
        ),
        (
            "9b a row edited and the file rewritten",
            |d| rewrite_month(d, |rows| rows[0].redacted = true),
            &[FileHash, RowRoot],
        ),
        ("10 a line edited, its hash made to fit", forged_line, &[ChainBreak]),
        ("11 the same rows encoded again", |d| rewrite_month(d, |_| ()), &[FileHash]),
        ("12 a line deleted", |d| edit_lines(d, |lines| drop(lines.remove(2))), &[SeqGap, ChainBreak]),
        ("13 two lines reordered", |d| edit_lines(d, |lines| lines.swap(1, 2)), &[ChainBreak]),
        ("14 a line repeated", |d| edit_lines(d, |lines| lines.insert(2, lines[1].clone())), &[SeqGap, ChainBreak]),
        ("15 a line inserted", inserted_line, &[ChainBreak]),
        ("16 the tail cut off, its files left", |d| edit_lines(d, |lines| drop(lines.pop())), &[OrphanFile]),
        ("25 lines of another archive", other_archive, &[ArchiveId]),
        ("25b lines of another team", |d| rename(d, LEDGER, "ledger/team=rival/2026-11-20.jsonl"), &[ArchiveId]),
        ("35 a file cut short", |d| d.put(&month(d), &get(d, &month(d))[..100]), &[FileSize, FileHash]),
        ("a bit in a ledger line", |d| flip(d, LEDGER, |len| len / 2), &[ChainBreak]),
        ("the last newline altered", |d| flip(d, LEDGER, |len| len - 1), &[ChainBreak]),
        ("half a line at the end", |d| edit_lines(d, |lines| lines.push(b"{\"v\":1,".to_vec())), &[TornTail]),
        ("a ledger file of another day", |d| rename(d, LEDGER, "ledger/team=acme/2026-11-21.jsonl"), &[PathMismatch]),
        ("a line of a later version", later_version, &[Version]),
        ("an impossible record", impossible, &[State]),
        ("no manifest", |d| d.take("archive.json"), &[Manifest]),
        ("a foreign file in the ledger", |d| d.put("ledger/team=acme/notes.txt", b"x"), &[OrphanFile]),
    ]
};

fn swap(disk: &dyn Disk) {
    let (first, second) = (month(disk), file_with(disk, "-amendment-"));
    let (a, b) = (get(disk, &first), get(disk, &second));
    disk.put(&first, &b);
    disk.put(&second, &a);
}

fn other_month(disk: &dyn Disk, rename: bool) -> String {
    let moved = month(disk).replace("month=2026-11", "month=2026-10");
    if rename { moved.replace("20261101t", "20261001t") } else { moved }
}

fn copied(disk: &dyn Disk) -> String {
    month(disk).replace("20261101t000000z", "20261101t000001z")
}

fn forged_line(disk: &dyn Disk) {
    edit_lines(disk, |lines| lines[1] = forge(&lines[1], |line| line.body.windows[0].events += 1));
}

fn later_version(disk: &dyn Disk) {
    edit_lines(disk, |lines| lines[5] = forge(&lines[5], |line| line.v = LINE_VERSION + 1));
}

fn inserted_line(disk: &dyn Disk) {
    edit_lines(disk, |lines| {
        let (_, head) = LedgerLine::decode(&lines[1][..lines[1].len() - 1]).unwrap();
        let change = |line: &mut LedgerLine| {
            (line.prev, line.body) = (head, Body::default());
        };
        lines.insert(2, forge(&lines[2], change));
    });
}

fn other_archive(disk: &dyn Disk) {
    edit_lines(disk, |lines| {
        let mut head = crate::archive::ledger::line::GENESIS;
        for line in lines {
            *line = forge(line, |l| (l.archive_id, l.prev) = ("archive-2".to_owned(), head));
            head = LedgerLine::decode(&line[..line.len() - 1]).unwrap().1;
        }
    });
}

/// A valid chain whose last line has impossible content.
fn impossible(disk: &dyn Disk) {
    let last = |line: &mut LedgerLine| line.body.windows[0].state = WindowState::Provisional;
    edit_lines(disk, |lines| lines[5] = forge(&lines[5], last));
}

fn codes(report: &VerifyReport) -> Vec<FaultCode> {
    report.faults.iter().map(|fault| fault.code).collect()
}

pub fn check(disk: &dyn Disk) -> VerifyReport {
    verify(disk.store().as_ref(), &VerifyOptions::default()).unwrap()
}

fn try_damage(disk: &dyn Disk, (name, damage, expected): &(&str, Damage, &[FaultCode])) {
    let archive = committed(&disk.store());
    disk.age();
    writer(&archive).vacuum(now()).unwrap();
    assert!(check(disk).is_clean(), "{name}: before");
    let before = files_under(&disk.store(), "");
    damage(disk);
    disk.age();
    let damaged = files_under(&disk.store(), "");
    let report = check(disk);
    let mut found = codes(&report);
    for code in *expected {
        let at = found.iter().position(|c| c == code).unwrap_or_else(|| panic!("{name}: {:#?}", report.faults));
        found.swap_remove(at);
    }
    let unverifiable = matches!(expected, [FaultCode::Version]);
    let verdict = if unverifiable { Verdict::Unverifiable } else { Verdict::Broken };
    assert!(report.verdict == verdict || unverifiable, "{name}: {:?}", report.verdict);
    assert_eq!(files_under(&disk.store(), ""), damaged, "{name}: verify changed something");
    assert!(!before.is_empty());
}

#[test]
fn every_damage_is_named_in_memory_and_on_disk() {
    for case in TABLE {
        try_damage(&MemoryStore::new(), case);
        try_damage(&Directory(tempfile::tempdir().unwrap()), case);
    }
    let tried: BTreeSet<FaultCode> = TABLE.iter().flat_map(|(_, _, codes)| codes.iter().copied()).collect();
    assert!(tried.len() >= 14, "{tried:?}");
}

#[test]
fn rewritten_rows_are_distinguished_from_lost_rows() {
    let disk = MemoryStore::new();
    let _ = committed(&disk.store());
    rewrite_month(&disk, |_| ());
    let report = check(&disk);
    assert_eq!(codes(&report).iter().filter(|c| **c == FaultCode::RowRoot).count(), 0);
    let hash = report.faults.iter().find(|f| f.code == FaultCode::FileHash).unwrap();
    assert!(hash.detail.ends_with("its rows are intact"), "{}", hash.detail);
    rewrite_month(&disk, |rows| rows[0].redacted = true);
    let report = check(&disk);
    let hash = report.faults.iter().find(|f| f.code == FaultCode::FileHash).unwrap();
    assert!(hash.detail.ends_with("its rows differ from the committed rows"), "{}", hash.detail);
}

#[test]
fn links_in_place_of_files_are_not_followed() {
    let disk = Directory(tempfile::tempdir().unwrap());
    let _ = committed(&disk.store());
    let root = disk.0.path();
    let (linked, second) = (root.join(month(&disk)), root.join(file_with(&disk, "-amendment-")));
    std::fs::rename(&linked, root.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(root.join("elsewhere"), &linked).unwrap();
    std::fs::hard_link(&second, root.join("second-name")).unwrap();
    let report = check(&disk);
    for path in [&linked, &second] {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        let is_named = report.faults.iter().any(|f| f.code == FaultCode::Unreadable && f.object == name);
        assert!(is_named, "{name}: {:#?}", report.faults);
    }
}

/// No failed commit leaves a link or such a name, so their age excuses nothing. The file system of macOS refuses such names.
#[cfg(target_os = "linux")]
#[test]
fn young_links_and_names_that_are_not_utf_8_are_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let disk = Directory(tempfile::tempdir().unwrap());
    let _ = committed(&disk.store());
    let live = disk.0.path().join(month(&disk));
    let beside = |name: &[u8]| live.with_file_name(std::ffi::OsStr::from_bytes(name));
    std::fs::copy(&live, beside(b"20261101t000000z-month-\xff.parquet")).unwrap();
    std::os::unix::fs::symlink(&live, beside(b"20261101t000000z-month-0123456789abcdef.parquet")).unwrap();
    std::fs::create_dir(beside(b"\xff")).unwrap();
    std::fs::copy(&live, beside(b"\xff").join("20261101t000000z-month-0123456789abcdef.parquet")).unwrap();
    let found = check(&disk).faults;
    let count = |code: FaultCode| found.iter().filter(|fault| fault.code == code).count();
    assert_eq!((found.len(), count(FaultCode::OrphanFile), count(FaultCode::Unreadable)), (6, 3, 3), "{found:#?}");
}

#[test]
fn only_a_remembered_head_reveals_a_cut_tail() {
    let disk = MemoryStore::new();
    let archive = open(&disk.store());
    let mut writer = writer(&archive);
    for draft in history().into_iter().take(3) {
        let _ = commit(&mut writer, draft).unwrap();
    }
    let old = disk.snapshot();
    let _ = commit(&mut writer, history().swap_remove(3)).unwrap();
    let options = VerifyOptions { heads: vec![KnownHead::Hash(writer.state().head)], ..VerifyOptions::default() };
    let new = verify(&disk, &options).unwrap();
    assert_eq!((new.verdict, codes(&new)), (Verdict::Anchored, vec![]));
    let rolled_back = verify(&old, &options).unwrap();
    assert_eq!(codes(&rolled_back), [FaultCode::HeadRollback]);
    assert!(verify(&old, &VerifyOptions::default()).unwrap().is_clean());
    let never = VerifyOptions { heads: vec![KnownHead::Hash(Digest::of(b"other"))], ..VerifyOptions::default() };
    assert_eq!(verify(&disk, &never).unwrap().verdict, Verdict::Broken);
}

#[test]
fn a_rewritten_file_is_classified_by_its_rows() {
    let detail_after = |change: fn(&mut Vec<EventRow>)| {
        let disk = MemoryStore::new();
        let _ = committed(&disk.store());
        let path = month(&disk);
        rewrite_month(&disk, change);
        let faults = check(&disk).faults;
        let fault = faults.iter().find(|fault| fault.object == path && fault.code == FaultCode::FileHash);
        fault.unwrap_or_else(|| panic!("{faults:#?}")).detail.clone()
    };
    let same = detail_after(|_| {});
    assert!(same.ends_with("somebody rewrote the file, but its rows are intact"), "{same}");
    for other in [detail_after(|rows| rows[0].raw = "{}".into()), detail_after(|rows| rows.truncate(rows.len() - 1))] {
        assert!(other.ends_with("its rows differ from the committed rows"), "{other}");
    }
}
