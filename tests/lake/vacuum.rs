//! `annals vacuum` with open tables: it expires old metadata, and keeps every file that a reader of a version can still
//! open.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use annals::model::Dataset;
use serde_json::Value;

use super::age::age;
use super::faulty_service::Program;
use super::faulty_service::program::{files_below, live_files};
use super::readers::Readers;
use super::tables::{DATASETS, directory, faults, job, json_of, newest, publish, put, read_on, read_once};

const TABLE: &str = "connections";
const TEN_DAYS_MS: i64 = 10 * 86_400_000;

/// The files of a table's metadata.
fn metadata(program: &Program) -> BTreeSet<String> {
    let files = fs::read_dir(directory(program, TABLE)).unwrap();
    files.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect()
}

/// Makes the files of an archive ten days older, and the snapshots of its tables, too.
fn ten_days_pass(program: &Program) {
    for table in annals::lake::TableId::all() {
        let path = newest(program, table.as_str());
        let mut version = json_of(&path);
        make_older(&mut version);
        put(path, version.to_string());
    }
    age(&program.archive());
}

fn make_older(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                match name.as_str() {
                    "timestamp-ms" | "last-updated-ms" => *value = (value.as_i64().unwrap() - TEN_DAYS_MS).into(),
                    _ => make_older(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_older),
        _ => {}
    }
}

fn snapshots(program: &Program) -> Vec<Value> {
    json_of(&newest(program, TABLE))["snapshots"].as_array().unwrap().clone()
}

fn is_whole(program: &Program) {
    assert_eq!(faults(program, 0), []);
    program.run(&["verify"]).ended(0);
}

#[test]
fn old_metadata_expires_and_a_snapshot_within_the_grace_stays() {
    let (service, program) = read_once();
    publish(&program, &[]);
    for hours in [30, 60, 90] {
        read_on(&service, &program, hours);
        publish(&program, &[]);
    }
    assert_eq!(snapshots(&program).len(), 4);
    // The files look old, but the snapshots were replaced a moment ago: vacuum removes only versions before the newest.
    age(&program.archive());
    let before = metadata(&program);
    program.run(&["vacuum", "--dry-run"]).ended(0).says(&["table connections: 3 metadata files would be removed"]);
    assert_eq!(metadata(&program), before);
    program.run(&["vacuum"]).ended(0).says(&["table connections: 3 metadata files removed"]);
    let gone: Vec<String> = before.difference(&metadata(&program)).cloned().collect();
    assert_eq!(gone, ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json"]);
    is_whole(&program);
    // Ten days later, the next version drops the old snapshots, and vacuum removes their files.
    ten_days_pass(&program);
    read_on(&service, &program, 120);
    publish(&program, &[]);
    let left = snapshots(&program);
    assert_eq!(left.len(), 2, "the newest version, and the version that was current until now");
    program.run(&["vacuum"]).ended(0);
    let lists = metadata(&program).into_iter().filter(|name| name.starts_with("snap-"));
    let named = left.iter().map(|snapshot| snapshot["manifest-list"].as_str().unwrap().rsplit_once('/').unwrap().1);
    assert_eq!(lists.collect::<BTreeSet<_>>(), named.map(str::to_owned).collect());
    is_whole(&program);
}

/// The live files of all datasets, and the data files that no ledger line names.
fn data_files(program: &Program) -> (usize, usize) {
    let of = |dataset: &Dataset| live_files(program, dataset.as_str());
    let live: BTreeSet<PathBuf> = Dataset::ALL.iter().flat_map(of).collect();
    let all = files_below(&program.archive().join("tables"));
    let data = all.iter().filter(|path| path.to_str().is_some_and(|path| path.contains("/month=")));
    (live.len(), data.filter(|path| !live.contains(*path)).count())
}

/// Publishing pauses for a long time while the program keeps reading. The newest version of a table can still be read.
#[test]
fn vacuum_keeps_the_files_of_the_newest_version_while_publishing_is_paused() {
    let (service, program) = read_once();
    publish(&program, &[]);
    let copy = program.home().join("copy");
    let jobs = DATASETS.map(|dataset| job(&program, dataset, &["pyiceberg", "duckdb"]));
    let published = jobs.map(|job| with_copies(job, &copy));
    let (first, _) = data_files(&program);
    for hours in [30, 60, 90] {
        read_on(&service, &program, hours);
        ten_days_pass(&program);
        program.run(&["vacuum"]).ended(0);
        is_whole(&program);
    }
    let (live, kept) = data_files(&program);
    assert!(
        kept > 0 && kept <= first,
        "{kept} files of the version are kept, and no file that was never in it: {live}"
    );
    if let Some(mut readers) = Readers::start("other engines on a table published long ago") {
        published.iter().for_each(|job| readers.agree(job, "long after the last publication"));
    }
    // Readers of the old version can finish within the grace after the next one.
    publish(&program, &[]);
    program.run(&["vacuum"]).ended(0);
    assert_eq!(data_files(&program), (live, kept));
    ten_days_pass(&program);
    program.run(&["vacuum"]).ended(0);
    assert_eq!(data_files(&program), (live, 0));
    is_whole(&program);
}

/// The same job, with the expected rows from copies of the files.
fn with_copies(mut job: Value, directory: &std::path::Path) -> Value {
    fs::create_dir_all(directory).unwrap();
    for path in job["files"].as_array_mut().unwrap() {
        let from = PathBuf::from(path.as_str().unwrap());
        let to = directory.join(from.file_name().unwrap());
        fs::copy(from, &to).unwrap();
        *path = to.to_str().unwrap().into();
    }
    job
}

/// A publisher was killed between the version and the hint. Readers without a catalog open the previous version.
#[test]
fn a_version_that_the_hint_names_is_kept() {
    let (service, program) = read_once();
    publish(&program, &[]);
    read_on(&service, &program, 30);
    publish(&program, &[]);
    put(directory(&program, TABLE).join("version-hint.text"), "1");
    age(&program.archive());
    program.run(&["vacuum"]).ended(0);
    assert!(newest(&program, TABLE).ends_with("v1.metadata.json") && newest(&program, TABLE).is_file());
    publish(&program, &[]);
    program.run(&["vacuum"]).ended(0);
    assert!(!metadata(&program).contains("v1.metadata.json"));
    is_whole(&program);
}
