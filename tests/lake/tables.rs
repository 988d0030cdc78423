//! An archive of the program with open tables, and readers of its files.

use std::fs;
use std::path::{Path, PathBuf};

use annals::archive::schema_of;
use annals::model::{Dataset, InventoryPart};
use serde_json::{Value, json};

use super::faulty_service::program::{self, live_files};
use super::faulty_service::{DAY, HOUR, Program, SINCE, Service, scene};

/// The time of the backfill of [`scene`].
pub const FIRST: i64 = DAY + 84 * HOUR;
/// Datasets with rows, each with its time column.
pub const DATASETS: [(Dataset, &str); 7] = [
    (Dataset::Connections, "event_time"),
    (Dataset::Activity, "event_time"),
    (Dataset::Sessions, "first_event_at"),
    (Dataset::Billing, "event_time"),
    (Dataset::Inventory(InventoryPart::Team), "seen_at"),
    (Dataset::Inventory(InventoryPart::Users), "seen_at"),
    (Dataset::Inventory(InventoryPart::Computers), "seen_at"),
];

/// A service, and a program that has read it once.
pub fn read_once() -> (Service, Program) {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    program.sync(&SINCE).ended(0);
    (service, program)
}

/// Adds events, and reads them `hours` after the backfill. The new files replace some of the old ones.
pub fn read_on(service: &Service, program: &Program, hours: i64) {
    for n in 0..5 {
        let mut world = service.world();
        world.connection(FIRST + (hours - 2) * HOUR + n * 60, n);
        world.activity(FIRST + (hours - 2) * HOUR + n * 60, n);
        world.billing(FIRST + (hours - 2) * HOUR + n * 60);
    }
    service.set_clock(FIRST + hours * HOUR);
    program.sync(&SINCE).ended(0);
}

/// The rows that `publish` prints.
#[track_caller]
pub fn publish(program: &Program, arguments: &[&str]) -> Vec<Value> {
    let run = program.run(&[&["publish", "--format", "json"], arguments].concat()).ended(0);
    serde_json::from_str(&run.stdout).unwrap()
}

/// The faults that `publish --check` prints, each with its table.
pub fn faults(program: &Program, code: i32) -> Vec<(String, String)> {
    let run = program.run(&["publish", "--check", "--format", "json"]).ended(code);
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "table"), text(row, "fault"))).collect()
}

pub fn directory(program: &Program, table: &str) -> PathBuf {
    program.archive().join("tables").join(table).join("metadata")
}

/// The number of the newest version, from the hint.
pub fn newest(program: &Program, table: &str) -> PathBuf {
    let directory = directory(program, table);
    let version = fs::read_to_string(directory.join("version-hint.text")).unwrap();
    directory.join(format!("v{version}.metadata.json"))
}

/// Replaces a file's content.
pub fn put(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    program::put(path.as_ref(), content.as_ref());
}

pub fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The local path of an address in the metadata.
pub fn path_of(address: &Value) -> PathBuf {
    PathBuf::from(address.as_str().unwrap().strip_prefix("file://").unwrap())
}

/// A job for the readers: the rows of a dataset's live files.
pub fn job(program: &Program, (dataset, time): (Dataset, &str), readers: &[&str]) -> Value {
    let schema = schema_of(dataset);
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let files = live_files(program, dataset.as_str());
    assert!(!files.is_empty(), "{dataset} has no rows");
    json!({
        "metadata": newest(program, dataset.as_str()), "files": files, "snapshot": null,
        "table": dataset.as_str(), "time": time, "columns": columns, "readers": readers,
    })
}
