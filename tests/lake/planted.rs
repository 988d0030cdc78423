//! Damage planted in open tables: `publish --check` and `verify` name it, and nothing else.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::Value;

use super::faulty_service::{HOUR, Program, SINCE};
use super::tables::{FIRST, directory, faults, json_of, newest, path_of, publish, put, read_on, read_once};

const TABLE: &str = "connections";
const SYNC_BYTES: usize = 16;

/// A variable-length number of Avro at the start of `bytes`, and the remaining bytes.
fn number(bytes: &[u8]) -> (i64, &[u8]) {
    let (mut value, mut shift) = (0_u64, 0);
    for (at, byte) in bytes.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return ((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), &bytes[at + 1..]);
        }
    }
    panic!("a number without an end");
}

fn encoded(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap();
        rest >>= 7;
        if rest == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Changes the only block of an Avro file. The header does not change.
fn change_block(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let file = fs::read(path).unwrap();
    let mut rest = &file[4..];
    loop {
        let (entries, after) = number(rest);
        rest = after;
        if entries == 0 {
            break;
        }
        for _ in 0..2 * entries {
            let (length, after) = number(rest);
            rest = &after[usize::try_from(length).unwrap()..];
        }
    }
    let (header, sync) = (&file[..file.len() - rest.len() + SYNC_BYTES], &rest[..SYNC_BYTES]);
    let (records, after) = number(&rest[SYNC_BYTES..]);
    let (length, after) = number(after);
    let block = &after[..usize::try_from(length).unwrap()];
    assert_eq!(&after[block.len()..], sync, "the file has one block");
    let mut body = Vec::new();
    DeflateDecoder::new(block).read_to_end(&mut body).unwrap();
    change(&mut body);
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
    deflate.write_all(&body).unwrap();
    let block = deflate.finish().unwrap();
    let length = encoded(i64::try_from(block.len()).unwrap());
    put(path, [header, &encoded(records), &length, &block, sync].concat());
}

fn replace(body: &mut [u8], old: &[u8], new: &[u8]) {
    let at = body.windows(old.len()).position(|found| found == old).expect("the block holds the value");
    body[at..at + old.len()].copy_from_slice(new);
}

/// The manifests of the newest version.
fn manifests(program: &Program) -> Vec<PathBuf> {
    let files = fs::read_dir(directory(program, TABLE)).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_str().unwrap().ends_with("-m0.avro")).collect()
}

/// Rewrites the newest version.
fn rewrite(program: &Program, change: impl FnOnce(&mut Value, &Value)) {
    rewrite_of(program, TABLE, change);
}

fn rewrite_of(program: &Program, table: &str, change: impl FnOnce(&mut Value, &Value)) {
    let path = newest(program, table);
    let before = json_of(&directory(program, table).join("v1.metadata.json"));
    let mut metadata = json_of(&path);
    change(&mut metadata, &before);
    put(path, metadata.to_string());
}

fn current(metadata: &mut Value) -> &mut Value {
    let id = metadata["current-snapshot-id"].clone();
    let snapshots = metadata["snapshots"].as_array_mut().unwrap();
    snapshots.iter_mut().find(|snapshot| snapshot["snapshot-id"] == id).unwrap()
}

fn loosen(program: &Program) {
    let [row] = &program.sql("select epoch_us(max(event_time))::bigint as t from connections")[..] else { panic!() };
    let greatest = row["t"].as_i64().unwrap();
    let is_it = |path: &&PathBuf| {
        let mut is_it = false;
        change_block(path, |body| is_it = body.windows(8).any(|found| found == greatest.to_le_bytes()));
        is_it
    };
    let manifests = manifests(program);
    let manifest = manifests.iter().find(is_it).expect("a manifest with the newest event");
    change_block(manifest, |body| replace(body, &greatest.to_le_bytes(), &(greatest + 1).to_le_bytes()));
}

/// The planted damage, and the kinds of faults that it causes.
type Case = (&'static str, fn(&Program), &'static [&'static str]);

const CASES: [Case; 7] = [
    (
        // The newest version lists the files of the first version.
        "a file is missing",
        |program| {
            rewrite(program, |version, first| {
                current(version)["manifest-list"] = first["snapshots"][0]["manifest-list"].clone();
            });
        },
        &["TABLE_FILE_MISSING"],
    ),
    (
        // The newest version names the lines of the first version.
        "a file is one too many",
        |program| {
            rewrite(program, |version, first| {
                current(version)["summary"] = first["snapshots"][0]["summary"].clone();
            });
        },
        &["TABLE_FILE_SURPLUS"],
    ),
    ("a bound is a microsecond loose", loosen, &["TABLE_BOUND"]),
    (
        "a version does not continue the previous one",
        |program| {
            fs::copy(newest(program, TABLE), directory(program, TABLE).join("v3.metadata.json")).unwrap();
        },
        &["TABLE_FORKED"],
    ),
    (
        "a version names a line that no ledger has",
        |program| {
            let lines = path_of(&current(&mut json_of(&newest(program, TABLE)))["summary"]["annals.ledgers"]);
            let text = fs::read_to_string(&lines).unwrap();
            let mut stands_for: Value = serde_json::from_str(&text).unwrap();
            stands_for["teams"][0]["head"] = "0".repeat(64).into();
            put(lines, stands_for.to_string());
        },
        &["TABLE_FORKED"],
    ),
    (
        "a list that a snapshot needs is missing",
        |program| {
            let list = path_of(&json_of(&newest(program, TABLE))["snapshots"][0]["manifest-list"]);
            fs::remove_file(list).unwrap();
        },
        &["TABLE_METADATA"],
    ),
    ("a version is not metadata", |program| put(newest(program, TABLE), "nothing"), &["TABLE_METADATA"]),
];

#[test]
fn each_planted_damage_is_named_by_the_check_and_by_verify() {
    let (service, program) = read_once();
    publish(&program, &[]);
    read_on(&service, &program, 30);
    publish(&program, &[]);
    let whole = program.home().join("whole");
    copy(&program.archive(), &whole);
    for (what, plant, kinds) in CASES {
        fs::remove_dir_all(program.archive()).unwrap();
        copy(&whole, &program.archive());
        assert_eq!(faults(&program, 0), [], "before: {what}");
        program.run(&["verify"]).ended(0);
        plant(&program);
        let found = faults(&program, 1);
        assert!(found.iter().all(|(table, _)| table == TABLE), "{what}: {found:?}");
        let mut found: Vec<&str> = found.iter().map(|(_, fault)| fault.as_str()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, kinds, "{what}");
        let verified = program.run(&["verify"]).ended(1);
        for kind in kinds {
            assert!(verified.stdout.contains(&format!(": {kind}: ")), "{what}: {}", verified.stdout);
        }
        let named: Vec<&str> = verified.stdout.lines().filter(|line| line.starts_with("TABLE ")).collect();
        assert!(
            !named.is_empty() && named.iter().all(|line| line.contains("tables/connections/")),
            "{what}: {named:?}"
        );
    }
}

/// The ledgers name no files of `coverage` and `findings`.
#[test]
fn the_check_compares_the_ledger_tables_with_their_summaries() {
    let (service, program) = read_once();
    publish(&program, &[]);
    // A removed computer leaves a finding, and the exit code reports it.
    service.world().remove_computer("team-one-computer-2", FIRST + HOUR, true);
    service.set_clock(FIRST + 30 * HOUR);
    program.sync(&SINCE).ended(3);
    publish(&program, &[]);
    assert_eq!(faults(&program, 0), []);
    for table in ["coverage", "findings"] {
        let path = newest(&program, table);
        assert!(path.ends_with("v2.metadata.json"), "{table} changed");
        let whole = fs::read(&path).unwrap();
        for (entry, fault) in [("manifest-list", "TABLE_FILE_MISSING"), ("summary", "TABLE_FILE_SURPLUS")] {
            rewrite_of(&program, table, |version, first| {
                current(version)[entry] = first["snapshots"][0][entry].clone();
            });
            assert_eq!(faults(&program, 1), [(table.to_owned(), fault.to_owned())], "{entry}");
            program.run(&["verify"]).ended(1).says(&[fault, table]);
            put(&path, &whole);
        }
    }
}

#[test]
fn a_missing_data_file_is_named_by_both_and_blocks_publishing() {
    let (_service, program) = read_once();
    publish(&program, &[]);
    let gone = super::faulty_service::program::live_files(&program, TABLE).remove(0);
    let whole = fs::read(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    assert_eq!(faults(&program, 1), [(TABLE.to_owned(), "TABLE_FILE_GONE".to_owned())]);
    program.run(&["verify"]).ended(1).says(&["FILE_MISSING", "TABLE_FILE_GONE", "restore it from a back-up"]);
    fs::remove_dir_all(directory(&program, TABLE)).unwrap();
    program.run(&["publish"]).ended(1).says(&[gone.file_name().unwrap().to_str().unwrap()]);
    put(&gone, whole);
    publish(&program, &[]);
    assert_eq!(faults(&program, 0), []);
}

/// The only fault, which the check names with this remedy, and `verify` and its view too.
#[track_caller]
fn names(program: &Program, fault: &str, remedy: &str) {
    assert_eq!(faults(program, 1), [("coverage".to_owned(), fault.to_owned())]);
    program.run(&["publish", "--check", "--format", "json"]).ended(1).says(&[remedy]);
    program.run(&["verify"]).ended(1).says(&[fault, remedy]);
    let named = program.sql(&format!("SELECT code, starts_with(detail, '{fault}') AS is_named FROM verification"));
    assert_eq!(named, [serde_json::json!({"code": "TABLE", "is_named": true})]);
}

#[test]
fn a_damaged_ledger_table_is_repaired_as_the_check_says() {
    const AGAIN: &str = "delete this file, and publish again";
    let (_service, program) = read_once();
    publish(&program, &[]);
    let data = directory(&program, "coverage").with_file_name("data");
    let file = fs::read_dir(&data).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&file).unwrap();
    let is_repaired = || {
        publish(&program, &[]);
        assert_eq!(faults(&program, 0), []);
        assert_eq!(fs::read(&file).unwrap(), whole);
    };
    fs::remove_file(&file).unwrap();
    names(&program, "TABLE_FILE_GONE", "is missing: publish again");
    is_repaired();
    put(&file, &whole[1..]);
    names(&program, "TABLE_COUNT", AGAIN);
    let pack = ["report", "pack", "-o", "pack", "--from", "2026-11-01", "--to", "2026-11-20"];
    program.run(&pack).ended(1).says(&["verify found 1 fault"]);
    is_repaired();
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    put(&file, altered);
    names(&program, "TABLE_COUNT", AGAIN);
    fs::remove_file(&file).unwrap();
    is_repaired();
    rewrite_of(&program, "coverage", |version, _| current(version)["summary"]["total-records"] = "999999".into());
    names(&program, "TABLE_FILE_MISSING", "delete tables/coverage/metadata, and publish again");
    fs::remove_dir_all(directory(&program, "coverage")).unwrap();
    is_repaired();
    let foreign = data.join("2026-11-ffffffffffffffff.parquet");
    put(&foreign, "of somebody else");
    names(&program, "TABLE_FILE_SURPLUS", AGAIN);
    fs::remove_file(foreign).unwrap();
    is_repaired();
}

#[test]
fn verify_names_files_that_no_publisher_writes() {
    let (_service, program) = read_once();
    publish(&program, &[]);
    program.run(&["verify"]).ended(0);
    for name in [
        "activity/metadata/v0.metadata.json",
        "activity/metadata/v007.metadata.json",
        "activity/metadata/v-1.metadata.json",
        "activity/metadata/v5.6.metadata.json",
        "activity/metadata/v18446744073709551615.metadata.json",
        "activity/metadata/notes.txt",
        "coverage/metadata/snap-1.avro",
        "coverage/data/notes.txt",
    ] {
        let path = program.archive().join("tables").join(name);
        put(&path, "{}");
        program.run(&["verify"]).ended(1).says(&["ORPHAN_FILE", name]);
        fs::remove_file(path).unwrap();
    }
    program.run(&["verify"]).ended(0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &place),
            false => {
                fs::copy(entry.path(), place).unwrap();
            }
        }
    }
}
