//! Seven years of publishing, in memory: the size of the metadata, and the number of files that a reader opens.

#![allow(clippy::print_stdout, reason = "a measurement prints its figures")]

use super::*;
use crate::archive::{LEDGERS, schema_of};
use crate::lake::group::{Grouped, group};
use crate::lake::manifest::{Bounds, DataFile, ManifestFile, encode_list, encode_manifest};
use crate::lake::metadata::{Snapshot, TableMetadata};
use crate::lake::schema::TableSchema;
use crate::lake::table::Manifest;

const QUARTER: i64 = 900_000;
const DAY: i64 = 96 * QUARTER;
/// The bytes of a `connections` event in a sealed file.
const BYTES_AN_EVENT: u64 = 58;

/// Files of the metadata that still exist, with the time of writing and the bytes of each.
#[derive(Default)]
struct Kept {
    versions: Vec<(i64, u64)>,
    lists: Vec<(i64, u64)>,
    /// By path: the last time at which a snapshot named it.
    manifests: std::collections::BTreeMap<String, (i64, u64)>,
}

impl Kept {
    fn expire(&mut self, now: i64, grace: i64) {
        self.versions.retain(|(at, _)| now - at <= 2 * 4 * QUARTER);
        self.lists.retain(|(at, _)| now - at <= grace);
        self.manifests.retain(|_, (named, _)| now - *named <= grace);
    }

    fn bytes(&self) -> u64 {
        let both = self.versions.iter().chain(&self.lists).map(|(_, bytes)| bytes).sum::<u64>();
        both + self.manifests.values().map(|(_, bytes)| bytes).sum::<u64>()
    }
}

struct World {
    metadata: TableMetadata,
    manifests: Vec<Manifest>,
    kept: Kept,
    schema: String,
    grace: i64,
}

impl World {
    fn new(grace: Duration) -> Self {
        let schema = TableSchema::of(&schema_of(Dataset::Connections)).unwrap();
        let mut metadata = TableMetadata::new(&place(), "archive", "connections");
        metadata.take_schema(&schema);
        let grace = i64::try_from(grace.as_millis()).unwrap();
        let schema = serde_json::to_string(&schema).unwrap();
        Self { metadata, manifests: Vec::new(), kept: Kept::default(), schema, grace }
    }

    fn publish(&mut self, now: i64, gone: &BTreeSet<&str>, added: Vec<DataFile>) {
        let sequence = self.metadata.last_sequence_number + 1;
        let Grouped { mut kept, entries } = group(self.manifests.clone(), gone, added, sequence, sequence);
        let bytes = encode_manifest(&place(), &self.schema, 0, &entries);
        let path = format!("tables/connections/metadata/{sequence:016x}-m0.avro");
        self.manifests.retain(|manifest| kept.contains(&manifest.file));
        let file = ManifestFile::of(path, bytes.len() as u64, sequence, sequence, &entries);
        kept.push(file.clone());
        self.manifests.push(Manifest { file, entries });
        let list = encode_list(&place(), sequence, Some(sequence - 1), sequence, &kept);
        let address = |name: &str| place().address(&format!("tables/connections/metadata/{name}-{sequence:016x}.avro"));
        let summary = [("operation", "overwrite".to_owned()), (LEDGERS, address("lines")), ("digest", "0".repeat(64))];
        let snapshot = Snapshot {
            snapshot_id: i64::MAX - sequence,
            parent_snapshot_id: Some(i64::MAX - sequence + 1),
            sequence_number: sequence,
            timestamp_ms: now,
            manifest_list: address("snap"),
            schema_id: 0,
            summary: summary.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        };
        let grace = Duration::from_millis(self.grace.unsigned_abs());
        self.metadata.advance(snapshot, Some(address("v")), grace);
        self.kept.versions.push((now, self.metadata.encode().len() as u64));
        self.kept.lists.push((now, list.len() as u64 + 200));
        for manifest in &self.manifests {
            self.kept.manifests.insert(manifest.file.path.clone(), (now, manifest.file.bytes));
        }
        self.kept.expire(now, self.grace);
    }
}

fn file(kind: &str, at: i64, number: i64) -> DataFile {
    let hash = format!("{:016x}", (at ^ (number << 40)).unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (low, high) = ((at * 1_000).to_le_bytes().to_vec(), ((at + QUARTER) * 1_000).to_le_bytes().to_vec());
    let bounds = |time: Vec<u8>| vec![(1, b"01234567".to_vec()), (3, time.clone()), (4, time.clone()), (7, time)];
    DataFile {
        path: format!("tables/connections/team=t-{number}/month=2026-11/20261120t000000z-{kind}-{hash}.parquet"),
        rows: 50,
        bytes: 5_000,
        bounds: Bounds { lower: bounds(low), upper: bounds(high) },
    }
}

/// Simulates a team with this number of events a day: it polls, settles days, seals months, and publishes at each of
/// `moments`. Returns the highest share of metadata in the data, and the highest number of files that a reader opens.
fn seven_years(events_a_day: u64, grace: Duration, is_published: impl Fn(i64) -> bool) -> (f64, usize) {
    let mut world = World::new(grace);
    let (mut named, mut live): (BTreeSet<String>, Vec<DataFile>) = (BTreeSet::new(), Vec::new());
    let (mut parts, mut days) = (0, 0);
    let mut opened = 0;
    for quarter in 0..7 * 365 * 96 {
        let now = quarter * QUARTER;
        live.push(file("part", now, quarter));
        parts += 1;
        if now % DAY == DAY - QUARTER {
            live.truncate(live.len() - parts);
            live.push(file("window", now, quarter));
            (parts, days) = (0, days + 1);
            if days == 30 {
                live.truncate(live.len() - days);
                live.push(file("month", now, quarter));
                days = 0;
            }
        }
        if is_published(quarter) {
            let now_named: BTreeSet<String> = live.iter().map(|file| file.path.clone()).collect();
            let gone: BTreeSet<&str> = named.difference(&now_named).map(String::as_str).collect();
            let added = live.iter().filter(|file| !named.contains(&file.path)).cloned().collect();
            world.publish(now, &gone, added);
            named = now_named;
            // The version, the list, and the manifests.
            opened = opened.max(2 + world.manifests.len());
        }
    }
    let data = events_a_day * 7 * 365 * BYTES_AN_EVENT;
    #[allow(clippy::cast_precision_loss, reason = "a share needs no more than some digits")]
    let share = world.kept.bytes() as f64 / data as f64;
    (share, opened)
}

/// The last days are published every 15 minutes, the years before every day. Only the manifests of the years remain.
#[test]
fn after_seven_years_the_metadata_is_small_and_few_files_are_opened() {
    let last = 7 * 365 * 96 - 10 * 96;
    let is_published = |quarter: i64| quarter % 96 == 95 || quarter >= last;
    for (what, events_a_day, grace) in
        [("on a local disk", 2_000, crate::model::GRACE_LOCAL), ("in a bucket", 8_000, crate::model::GRACE_BUCKET)]
    {
        let (share, opened) = seven_years(events_a_day, grace, is_published);
        println!(
            "{what}: metadata {:.3} % of the data of {events_a_day} events a day, {opened} files opened",
            share * 100.0
        );
        assert!(share < 0.01, "{what}: {share}");
        assert!(opened < 16, "{what}: {opened} files");
    }
}

#[test]
#[ignore = "of the long run: a minute"]
fn every_quarter_of_an_hour_for_seven_years() {
    let (share, opened) = seven_years(8_000, crate::model::GRACE_BUCKET, |_| true);
    println!("metadata {:.3} % of the data, {opened} files opened", share * 100.0);
    assert!(share < 0.01 && opened < 16, "{share}, {opened}");
}
