//! The description of the archive's format is enough to write another verifier. A verifier in Python, without our code,
//! finds the same faults as `annals verify`, on intact and damaged archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use annals::archive::{Archive, Body, Draft, TeamState, WindowRecord, WindowState};
use annals::model::TeamId;
use annals::store::LocalStore;
use sha2::{Digest, Sha256};

use crate::common;
use crate::damage;

use common::python::python_with_duckdb;
use common::query_archive::Place;
use damage::forge;
use damage::world::{HONEST, World, at};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/second_verifier.py");
const LEFT_OUT: &str = "the second verifier";

fn second_output(python: &str, archive: &Path) -> std::process::Output {
    Command::new(python).arg(SCRIPT).arg(archive).output().expect("Python runs")
}

/// The second verifier's output, and whether it found no fault.
fn second(python: &str, archive: &Path) -> (bool, String) {
    let output = second_output(python, archive);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it does not fail itself");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(!said.contains("rows not read"), "{said}");
    (output.status.success(), said)
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn of_kind(root: &Path, ending: &str) -> Vec<PathBuf> {
    files(root).into_iter().filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    let mut permissions = fs::metadata(path).expect("a file").permissions();
    #[allow(clippy::permissions_set_readonly_false, reason = "a temporary copy of the test's own")]
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions).expect("changed");
    std::io::Write::write_all(&mut fs::File::create(path).expect("a file"), &bytes).expect("written");
}

/// The ledger's only line has another digest of its first file's rows, and a matching hash.
fn forge_rows_digest(line: &mut Vec<u8>) {
    let text = String::from_utf8(line.clone()).expect("text");
    let at = text.find("\"rows_digest\":\"").expect("a digest") + "\"rows_digest\":\"".len();
    let end = text.rfind(",\"sha256\"").expect("a hash");
    let body = format!("{}{}{}", &text[..at], "0".repeat(64), &text[at + 64..end]);
    let hash = Sha256::new().chain_update(b"annals ledger line v1\n").chain_update(&body).finalize();
    *line = format!("{body},\"sha256\":\"{}\"}}\n", hex::encode(hash)).into_bytes();
}

/// Each kind of damage, and the code that both verifiers report.
type Damage = (&'static str, &'static str, fn(&Path));
const DAMAGES: [Damage; 15] = [
    ("a flipped bit in a file", "FILE_HASH", |root| {
        rewrite(&of_kind(root, "parquet")[0], |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        });
    }),
    ("a file gone", "FILE_MISSING", |root| fs::remove_file(&of_kind(root, "parquet")[0]).expect("removed")),
    ("a file that no line names", "ORPHAN_FILE", |root| {
        let path = &of_kind(root, "parquet")[0];
        let _ =
            fs::copy(path, path.with_file_name("20261118t000000z-window-0000000000000000.parquet")).expect("copied");
    }),
    ("a file that is a link", "UNREADABLE", |root| {
        let (path, other) = (&of_kind(root, "parquet")[0], root.with_file_name("other.parquet"));
        fs::rename(path, &other).expect("moved");
        std::os::unix::fs::symlink(&other, path).expect("linked");
    }),
    ("a foreign file beside the ledger", "ORPHAN_FILE", |root| {
        drop(fs::File::create(root.join("ledger/team=acme/2026-11-18.jsonl.bak")).expect("a file"));
    }),
    ("a flipped bit in a line", "CHAIN_BREAK", |root| rewrite(&of_kind(root, "jsonl")[0], |bytes| bytes[200] ^= 1)),
    ("a line gone", "SEQ_GAP", |root| {
        let ledger = &of_kind(&root.join("ledger/team=acme"), "jsonl")[0];
        fs::remove_file(ledger).expect("removed");
    }),
    ("the ledger gone", "SEQ_GAP", |root| fs::remove_dir_all(root.join("ledger")).expect("removed")),
    ("bytes behind the last line", "TORN_TAIL", |root| {
        rewrite(of_kind(root, "jsonl").last().expect("a ledger"), |bytes| bytes.extend(b"{\"v\":1"));
    }),
    ("a line in the file of another day", "PATH_MISMATCH", |root| {
        let ledgers = of_kind(&root.join("ledger/team=acme"), "jsonl");
        let last = ledgers.last().expect("a ledger");
        fs::rename(last, last.with_file_name("2100-01-01.jsonl")).expect("renamed");
    }),
    ("a salt gone", "SALT", |root| fs::remove_file(&of_kind(&root.join("salts"), "json")[0]).expect("removed")),
    ("a foreign file among the salts", "ORPHAN_FILE", |root| {
        drop(fs::File::create(root.join("salts/team=acme/notes.json")).expect("a file"));
    }),
    ("another salt", "SALT", |root| {
        rewrite(&of_kind(&root.join("salts"), "json")[0], |bytes| {
            let digit = bytes.len() - 10;
            bytes[digit] = if bytes[digit] == b'0' { b'1' } else { b'0' };
        });
    }),
    ("another team's ledger", "ARCHIVE_ID", |root| {
        let ledger = &of_kind(&root.join("ledger/team=acme"), "jsonl")[0];
        let (name, foreign) = (ledger.file_name().expect("a name"), root.join("ledger/team=foreign"));
        fs::create_dir(&foreign).expect("made");
        let _ = fs::copy(ledger, foreign.join(name)).expect("copied");
    }),
    ("other rows than the line says", "ROW_ROOT", |root| {
        rewrite(&of_kind(&root.join("ledger/team=.4f.27.42rien.20.26.20s.c3.b6hne"), "jsonl")[0], forge_rows_digest);
    }),
];

#[test]
fn the_second_verifier_finds_the_same_faults() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    place.commit_another_day();
    assert_eq!(second(&python, &place.archive()), (true, "no fault\n".to_owned()));
    for (name, code, damage) in DAMAGES {
        let place = Place::new();
        place.commit_another_day();
        damage(&place.archive());
        let (status, ours, _) = place.run(&["verify"]);
        assert!(status == 1 && ours.contains(code), "{name}: {status}, {ours}");
        let (is_clean, theirs) = second(&python, &place.archive());
        assert!(!is_clean && theirs.contains(code), "{name}: {theirs}");
    }
}

#[test]
fn another_verifier_reads_a_ledger_elsewhere() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    let [data, ledger] = ["data", "ledger"].map(|name| place.directory.path().join(name));
    let (status, ours, _) =
        place.run(&["copy", "it's [an] archive", "data", "--archive", "data", "--ledger", "ledger"]);
    assert_eq!(status, 0, "{ours}");
    let both = || {
        let output =
            Command::new(&python).args([SCRIPT.as_ref(), data.as_path(), &ledger]).output().expect("Python runs");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(both(), "no fault\n");
    assert!(!second_output(&python, &data).status.success(), "it needs the ledger's place");
    // A file of the ledger in the wrong place.
    fs::create_dir_all(data.join("ledger/team=acme")).expect("made");
    let line = &of_kind(&ledger.join("ledger/team=acme"), "jsonl")[0];
    let stray = data.join("ledger/team=acme").join(line.file_name().expect("a name"));
    let _ = fs::copy(line, &stray).expect("copied");
    assert!(both().starts_with("ORPHAN_FILE ledger/team=acme/"), "{}", both());
    fs::remove_dir_all(data.join("ledger")).expect("removed");
    rewrite(line, |bytes| bytes[200] ^= 1);
    assert!(both().starts_with("CHAIN_BREAK "), "{}", both());
}

#[test]
fn another_verifier_holds_an_erasure_to_what_it_declares() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    let (status, said, _) = place.run(&["erase", "--subject", "=cmd|' /C calc'!A0", "--order", "DPO-1", "--yes-all"]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(second(&python, &place.archive()), (true, "no fault\n".to_owned()));
    let erased = |path: &&PathBuf| fs::read_to_string(path).expect("a ledger").contains("\"erased\":{");
    let ledgers = of_kind(&place.archive().join("ledger"), "jsonl");
    change_last_line(ledgers.iter().find(erased).expect("the order's line"), |line| {
        line.find("\"erased_digest\":\"").expect("a digest") + "\"erased_digest\":\"".len()
    });
    let (status, ours, _) = place.run(&["verify"]);
    assert!(status == 1 && ours.contains("STATE"), "{ours}");
    let (is_clean, theirs) = second(&python, &place.archive());
    assert!(!is_clean && theirs.contains("STATE") && theirs.contains("than it declares"), "{theirs}");
}

#[test]
fn another_verifier_refuses_an_erasure_under_a_hold() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let (status, said, _) = place.run(arguments);
        assert_eq!(status, 0, "{said}");
    };
    run(&["hold", "add", "--id", "CASE-7", "--reason", "a claim"]);
    run(&["hold", "release", "CASE-7", "--reason", "settled"]);
    run(&["erase", "--subject", "=cmd|' /C calc'!A0", "--order", "DPO-1", "--yes-all"]);
    assert_eq!(second(&python, &place.archive()), (true, "no fault\n".to_owned()));
    let ledgers = of_kind(&place.archive().join("ledger"), "jsonl");
    ledgers.iter().for_each(|ledger| rewrite(ledger, |bytes| *bytes = without_release(bytes)));
    let (status, ours, _) = place.run(&["verify"]);
    assert!(status == 1 && ours.contains("POLICY_VIOLATION"), "{ours}");
    let (is_clean, theirs) = second(&python, &place.archive());
    assert!(!is_clean && theirs.contains("POLICY_VIOLATION"), "{theirs}");
}

/// The lines of a ledger file without the release of a hold, numbered and hashed again.
fn without_release(ledger: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(ledger).expect("text");
    let (mut made, mut removed, mut hash) = (String::new(), 0, String::new());
    for line in text.lines() {
        if line.contains("\"release\":{") {
            removed += 1;
            continue;
        }
        let end = line.rfind(",\"sha256\"").expect("a hash");
        let mut body = line[..end].to_owned();
        if removed > 0 {
            let number = |text: &str, name: &str| {
                let at = text.find(name).expect("a member") + name.len();
                (at, at + text[at..].find(',').expect("another member"))
            };
            let (from, to) = number(&body, "\"seq\":");
            let seq: u64 = body[from..to].parse().expect("a number");
            body.replace_range(from..to, &(seq - removed).to_string());
            let (from, to) = number(&body, "\"prev\":");
            body.replace_range(from..to, &format!("\"{hash}\""));
        }
        hash = hex::encode(Sha256::new().chain_update(b"annals ledger line v1\n").chain_update(&body).finalize());
        made += &format!("{body},\"sha256\":\"{hash}\"}}\n");
    }
    made.into_bytes()
}

/// A young file that no line names can belong to another writer, so the order writes a line that only fences writers.
#[test]
fn another_verifier_accepts_the_line_of_an_order_that_changes_no_row() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    let path = &of_kind(&place.archive().join("tables"), "parquet")[0];
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let (role, _) = name.rsplit_once('-').expect("a hash");
    let _ = fs::copy(path, path.with_file_name(format!("{role}-0000000000000000.parquet"))).expect("copied");
    let (status, said, _) = place.run(&["erase", "--subject", "=cmd|' /C calc'!A0", "--order", "DPO-1", "--yes-all"]);
    assert_eq!(status, 0, "{said}");
    let ledgers = of_kind(&place.archive().join("ledger"), "jsonl");
    let fences = |path: &PathBuf| fs::read_to_string(path).expect("a ledger").contains("\"parts\":[]");
    assert!(ledgers.iter().any(fences));
    assert_eq!(second(&python, &place.archive()), (true, "no fault\n".to_owned()));
}

#[test]
fn both_verifiers_say_what_an_unlinkable_order_leaves_to_hashes_and_signatures() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    let salts = of_kind(&place.archive().join("salts"), "json");
    let erase = ["erase", "--subject", "=cmd|' /C calc'!A0", "--order", "DPO-1", "--yes-all", "--unlinkable"];
    let (status, said, _) = place.run(&erase);
    assert_eq!(status, 0, "{said}");
    let replaced = of_kind(&place.archive().join("salts"), "json");
    assert!(replaced.len() == salts.len() && replaced != salts, "{replaced:?}");
    let (status, ours, _) = place.run(&["verify"]);
    assert!(status == 0 && ours.contains("SALT_REPLACED") && ours.contains("only hashes and signatures"), "{ours}");
    let (is_clean, theirs) = second(&python, &place.archive());
    assert!(
        is_clean && theirs.contains("note SALT_REPLACED") && theirs.contains("only hashes and signatures"),
        "{theirs}"
    );
    // A wrong new row digest is a fault for both.
    let resalted = |path: &&PathBuf| fs::read_to_string(path).expect("a ledger").contains("\"resalted\":[");
    let ledgers = of_kind(&place.archive().join("ledger"), "jsonl");
    change_last_line(ledgers.iter().find(resalted).expect("the order's line"), |line| {
        let resalted = line.find("\"resalted\":[").expect("new digests");
        resalted + line[resalted..].find("\"rows_digest\":\"").expect("a digest") + "\"rows_digest\":\"".len()
    });
    let (status, ours, _) = place.run(&["verify"]);
    assert!(status == 1 && ours.contains("ROW_ROOT"), "{ours}");
    let (is_clean, theirs) = second(&python, &place.archive());
    assert!(!is_clean && theirs.contains("ROW_ROOT"), "{theirs}");
}

/// Replaces the digest at a place of the last line by zeros, and hashes the line again.
fn change_last_line(ledger: &Path, place: impl Fn(&str) -> usize) {
    rewrite(ledger, |bytes| {
        let text = String::from_utf8(bytes.clone()).expect("text");
        let (before, line) = text.trim_end().rsplit_once('\n').map_or(("", text.trim_end()), |(b, l)| (b, l));
        let (at, end) = (place(line), line.rfind(",\"sha256\"").expect("a hash"));
        let body = format!("{}{}{}", &line[..at], "0".repeat(64), &line[at + 64..end]);
        let hash = Sha256::new().chain_update(b"annals ledger line v1\n").chain_update(&body).finalize();
        let newline = if before.is_empty() { "" } else { "\n" };
        *bytes = format!("{before}{newline}{body},\"sha256\":\"{}\"}}\n", hex::encode(hash)).into_bytes();
    });
}

/// Seals each day of a team into its own file.
fn seal_days(root: &Path) {
    let archive = Archive::open(std::sync::Arc::new(LocalStore::new(root))).expect("an archive");
    let mut writer = archive.writer(&TeamId::from("acme")).expect("a writer");
    let sealed = |window: &WindowRecord| WindowRecord { state: WindowState::Sealed, ..window.clone() };
    let windows: Vec<WindowRecord> = writer.state().windows.values().map(sealed).collect();
    let sealed_days = windows.iter().map(|window| (window.stream, window.range)).collect();
    let now = writer.state().at.expect("a commit");
    let _ = writer.commit(Draft::from(Body { windows, sealed_days, ..Body::default() }), now).expect("a commit");
}

#[test]
fn the_second_verifier_knows_sealed_days() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    seal_days(&place.archive());
    let mut days = of_kind(&place.archive().join("tables/connections/team=acme"), "parquet");
    days.retain(|path| path.to_string_lossy().contains("z-day-"));
    assert_eq!(days.len(), 2, "{days:?}");
    assert_eq!(second(&python, &place.archive()), (true, "no fault\n".to_owned()));
}

#[test]
fn the_second_verifier_accepts_an_archive_of_real_syncs() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let place = Place::new();
    let archive = place.directory.path().join("demo");
    let output = place.command(&["demo", "--archive"]).arg(&archive).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(second(&python, &archive), (true, "no fault\n".to_owned()));
    // The archive holds connections, sessions and people.
    for part in ["connections", "sessions", "inventory_users"] {
        assert!(archive.join("tables").join(part).is_dir(), "{part}");
    }
    assert!(fs::read_to_string(SCRIPT).expect("the script").lines().count() <= 400);
}

/// An archive in which October expires as `body` says, by a line that the program may never write.
fn with_october_gone(change: impl FnOnce(&Path, &mut Body)) -> World {
    let world = World::new(&HONEST);
    let mut body = forge::october(&world.archive(), "connections = 1d", at("2026-11-03T00:06:00Z"));
    change(&world.archive(), &mut body);
    forge::append(&world.archive(), body);
    world
}

#[test]
fn another_verifier_holds_expiry_to_its_policy_its_rows_and_the_holds() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    let world = with_october_gone(|_, _| {});
    assert_eq!(second(&python, &world.archive()), (true, "no fault\n".to_owned()));
    type Change = fn(&Path, &mut Body);
    let cases: [(&str, &str, Change); 4] = [
        ("a longer class", "POLICY_VIOLATION", |_, body| body.expired[0].policy = "connections = 1mo".to_owned()),
        ("another class", "POLICY_VIOLATION", |_, body| body.expired[0].policy = "activity = 1d".to_owned()),
        ("other rows", "STATE", |_, body| body.expired[0].rows += 1),
        ("a hold", "POLICY_VIOLATION", |root, body| {
            forge::append(root, forge::hold());
            body.expired[0].at = at("2026-11-03T00:07:00Z");
        }),
    ];
    for (name, code, change) in cases {
        let world = with_october_gone(change);
        let (exit, ours, _) = world.run(&["verify"]);
        assert!(exit == 1 && ours.contains(code), "{name}: {ours}");
        let (is_clean, theirs) = second(&python, &world.archive());
        assert!(!is_clean && theirs.contains(code), "{name}: {theirs}");
    }
}

#[test]
fn another_verifier_holds_a_line_to_the_rules_of_files_rows_windows_and_salts() {
    let Some(python) = python_with_duckdb(LEFT_OUT) else { return };
    type Forgery = fn(&TeamState) -> Body;
    let cases: [(&str, Forgery); 5] = [
        ("rows lost", |state| Body { removes: state.files.keys().take(1).cloned().collect(), ..Body::default() }),
        ("a live file added", |state| Body {
            adds: state.files.values().take(1).cloned().collect(),
            ..Body::default()
        }),
        ("a window resized", |state| {
            let mut window = state.windows.values().next().expect("a window").clone();
            window.range.end = window.range.start.plus(std::time::Duration::from_secs(1));
            Body { windows: vec![window], ..Body::default() }
        }),
        ("a salt replaced", |state| Body { salts: state.named_salts().take(1).collect(), ..Body::default() }),
        ("a hold twice", |_| Body { holds: [forge::hold().holds, forge::hold().holds].concat(), ..Body::default() }),
    ];
    for (name, forgery) in cases {
        let world = World::new(&HONEST);
        let archive = Archive::open(std::sync::Arc::new(LocalStore::new(world.archive()))).expect("an archive");
        let body = forgery(archive.read(&TeamId::from("acme")).expect("a team").state());
        forge::append(&world.archive(), body);
        let (exit, ours, _) = world.run(&["verify"]);
        assert!(exit == 1 && ours.contains("STATE"), "{name}: {ours}");
        let (is_clean, theirs) = second(&python, &world.archive());
        assert!(!is_clean && theirs.contains("STATE"), "{name}: {theirs}");
    }
}
