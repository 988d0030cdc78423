//! Inventory files: one a day, one a month, and the current state from the newest two months alone.

use std::sync::Arc;

use crate::model::{Dataset, FileRole, InventoryPart, InventoryRow, InventoryValue};
use crate::store::{MemoryStore, Store};

use super::super::{ArchiveError, Body, Draft, InventoryRead, TeamWriter, VerifyOptions, verify};
use super::{at, commit, open, team, writer};

pub fn computer(id: &str, seen_at: &str, name: &str) -> InventoryRow {
    let mut values = vec![InventoryValue::Text(name.to_owned()), InventoryValue::Time(7)];
    values.resize(InventoryPart::Computers.columns().len(), InventoryValue::Unknown);
    InventoryRow { key: vec![id.to_owned()], seen_at: at(seen_at).micros(), present: true, repeats: false, values }
}

pub fn inventory_read(part: InventoryPart, read_at: &str, entities: u64) -> InventoryRead {
    InventoryRead { part, read_at: at(read_at), visible: true, entities }
}

fn draft(rows: Vec<InventoryRow>) -> Draft {
    Draft { inventory: vec![(InventoryPart::Computers, rows)], ..Draft::default() }
}

fn live(writer: &TeamWriter) -> Vec<(FileRole, String, u64)> {
    let files = writer.state().files_of(Dataset::Inventory(InventoryPart::Computers));
    files.map(|file| (file.role, file.first.unwrap().day(), file.rows)).collect()
}

#[test]
fn a_day_has_one_file_and_a_past_month_one_final_file() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let mut all = Vec::new();
    for (seen_at, files) in [
        ("2026-10-30T10:00:00Z", vec![(FileRole::Part, "2026-10-30", 1)]),
        ("2026-10-30T10:00:00.000001Z", vec![(FileRole::Part, "2026-10-30", 2)]),
        ("2026-10-31T23:59:59Z", vec![(FileRole::Part, "2026-10-30", 2), (FileRole::Part, "2026-10-31", 1)]),
        ("2026-11-01T00:00:00Z", vec![(FileRole::Month, "2026-10-30", 3), (FileRole::Part, "2026-11-01", 1)]),
        (
            "2027-02-01T00:00:00Z",
            vec![
                (FileRole::Month, "2026-10-30", 3),
                (FileRole::Month, "2026-11-01", 1),
                (FileRole::Part, "2027-02-01", 1),
            ],
        ),
    ] {
        let row = computer("d1", seen_at, seen_at);
        all.push(row.clone());
        let _ = commit(&mut writer, draft(vec![row])).unwrap();
        let files: Vec<_> = files.into_iter().map(|(role, day, rows)| (role, day.to_owned(), rows)).collect();
        assert_eq!(live(&writer), files, "{seen_at}");
        let expected = if files.len() == 3 { &all[3..] } else { &all };
        assert_eq!(writer.rows().inventory(InventoryPart::Computers).unwrap(), expected, "{seen_at}");
    }
    let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!(open(&store).read(&team()).unwrap().state().files.len(), 3);
}

#[test]
fn rows_and_scans_with_earlier_times_are_refused() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    let first = Draft {
        body: Body {
            inventory: vec![inventory_read(InventoryPart::Computers, "2026-11-01T10:00:00Z", 1)],
            ..Body::default()
        },
        ..draft(vec![computer("d1", "2026-11-01T10:00:00Z", "one")])
    };
    let _ = commit(&mut writer, first).unwrap();
    let before = writer.state().clone();
    let short = InventoryRow { values: Vec::new(), ..computer("d1", "2026-11-02T10:00:00Z", "x") };
    let mut odd = computer("d1", "2026-11-02T10:00:00Z", "x");
    odd.values[0] = InventoryValue::Flag(true);
    let twice = computer("d1", "2026-11-02T10:00:00Z", "x");
    for (scenario, draft) in [
        ("the same moment", draft(vec![computer("d1", "2026-11-01T10:00:00Z", "two")])),
        ("an earlier moment", draft(vec![computer("d2", "2026-10-01T10:00:00Z", "two")])),
        ("without its columns", draft(vec![short])),
        ("a value of another kind", draft(vec![odd])),
        ("one thing twice at one moment", draft(vec![twice.clone(), twice])),
        (
            "a scan of the same moment",
            Draft::from(Body {
                inventory: vec![inventory_read(InventoryPart::Computers, "2026-11-01T10:00:00Z", 1)],
                ..Body::default()
            }),
        ),
    ] {
        let error = commit(&mut writer, draft).expect_err(scenario);
        assert!(!error.needs_reopen(), "{scenario}: {error}");
        assert!(!matches!(error, ArchiveError::Poisoned { .. }), "{scenario}");
        assert_eq!(*writer.state(), before, "{scenario}");
    }
}

/// Every part with every kind of value of its columns, and with missing values.
#[test]
fn rows_of_every_part_round_trip() {
    use crate::model::InventoryKind;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    for part in InventoryPart::ALL {
        let value = |kind| match kind {
            InventoryKind::Text => InventoryValue::Text("text".to_owned()),
            InventoryKind::Int => InventoryValue::Int(-5),
            InventoryKind::Flag => InventoryValue::Flag(true),
            InventoryKind::Time => InventoryValue::Time(7),
        };
        let row = |seen_at, present, values| InventoryRow {
            key: part.keys().iter().map(|name| format!("key {name}")).collect(),
            seen_at: at(seen_at).micros(),
            present,
            repeats: !present,
            values,
        };
        let known = part.columns().iter().map(|column| value(column.kind)).collect();
        let unknown = vec![InventoryValue::Unknown; part.columns().len()];
        let rows = vec![row("2026-11-01T10:00:00Z", true, known), row("2026-11-01T11:00:00Z", false, unknown)];
        let _ = commit(&mut writer, Draft { inventory: vec![(part, rows.clone())], ..Draft::default() }).unwrap();
        assert_eq!(archive.read(&team()).unwrap().rows().inventory(part).unwrap(), rows, "{part}");
    }
}
