//! `v<N>.metadata.json`: a version of a table, and its snapshots.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::model::{Digest, Instant};

use super::LakeError;
use super::reader_root::ReaderRoot;
use super::schema::TableSchema;

const NAME_MAPPING: &str = "schema.name-mapping.default";
/// The number of earlier versions that the metadata names.
const METADATA_LOG_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    pub snapshot_id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_snapshot_id: Option<i64>,
    pub sequence_number: i64,
    pub timestamp_ms: i64,
    pub manifest_list: String,
    pub schema_id: i32,
    pub summary: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SnapshotLogEntry {
    timestamp_ms: i64,
    snapshot_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MetadataLogEntry {
    timestamp_ms: i64,
    metadata_file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableMetadata {
    format_version: u8,
    table_uuid: String,
    pub location: String,
    pub last_sequence_number: i64,
    pub last_updated_ms: i64,
    last_column_id: i32,
    current_schema_id: i32,
    schemas: Vec<TableSchema>,
    default_spec_id: i32,
    partition_specs: serde_json::Value,
    last_partition_id: i32,
    default_sort_order_id: i32,
    sort_orders: serde_json::Value,
    properties: BTreeMap<String, String>,
    pub current_snapshot_id: i64,
    refs: serde_json::Value,
    /// Oldest first.
    pub snapshots: Vec<Snapshot>,
    snapshot_log: Vec<SnapshotLogEntry>,
    metadata_log: Vec<MetadataLogEntry>,
}

impl TableMetadata {
    /// A table without a snapshot. The archive and the table's name determine its id, so a recreated table keeps its
    /// id.
    pub fn new(place: &ReaderRoot, archive_id: &str, table: &str) -> Self {
        Self {
            format_version: 2,
            table_uuid: uuid(archive_id, table),
            location: place.address(&format!("tables/{table}")),
            last_sequence_number: 0,
            last_updated_ms: 0,
            last_column_id: 0,
            current_schema_id: 0,
            schemas: Vec::new(),
            default_spec_id: 0,
            partition_specs: json!([{"spec-id": 0, "fields": []}]),
            last_partition_id: 999,
            default_sort_order_id: 0,
            sort_orders: json!([{"order-id": 0, "fields": []}]),
            properties: BTreeMap::new(),
            current_snapshot_id: -1,
            refs: json!({}),
            snapshots: Vec::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
        }
    }

    /// # Errors
    /// [`LakeError::Damaged`] for metadata of another program.
    pub fn decode(path: &str, content: &[u8]) -> Result<Self, LakeError> {
        let wrong = |reason: String| {
            let place = path.rsplit_once('/').map_or(path, |(place, _)| place);
            LakeError::damaged(path, format!("{reason}: delete {place}, and publish again"))
        };
        let metadata: Self = serde_json::from_slice(content).map_err(|e| wrong(e.to_string()))?;
        match metadata.current() {
            Some(_) if metadata.format_version == 2 => Ok(metadata),
            _ => Err(wrong("names no current snapshot, or is not of Iceberg's version 2".to_owned())),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: metadata has no map with odd keys")
    }

    pub fn current(&self) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.snapshot_id == self.current_snapshot_id)
    }

    /// The schema's number in this table. A schema with other columns than the newest one becomes the next. A publisher of an
    /// older program keeps the columns that a newer one added.
    pub fn take_schema(&mut self, schema: &TableSchema) -> i32 {
        if let Some(newest) = self.schemas.last().filter(|newest| newest.extends(schema)) {
            return newest.schema_id;
        }
        let schema_id = self.schemas.last().map_or(0, |newest| newest.schema_id + 1);
        self.schemas.push(TableSchema { schema_id, ..schema.clone() });
        self.current_schema_id = schema_id;
        self.last_column_id = self.last_column_id.max(schema.last_column_id());
        self.properties.insert(NAME_MAPPING.to_owned(), schema.name_mapping());
        schema_id
    }

    /// The newest schema.
    pub fn schema(&self) -> Option<&TableSchema> {
        self.schemas.last()
    }

    /// Makes `snapshot` the current one, and drops the snapshots that were replaced before the grace.
    pub fn advance(&mut self, snapshot: Snapshot, before: Option<String>, grace: Duration) {
        let (id, at) = (snapshot.snapshot_id, snapshot.timestamp_ms);
        if let Some(metadata_file) = before {
            self.metadata_log.push(MetadataLogEntry { timestamp_ms: self.last_updated_ms, metadata_file });
        }
        let surplus = self.metadata_log.len().saturating_sub(METADATA_LOG_MAX);
        self.metadata_log.drain(..surplus);
        self.last_sequence_number = snapshot.sequence_number;
        self.last_updated_ms = at;
        self.current_snapshot_id = id;
        self.refs = json!({"main": {"snapshot-id": id, "type": "branch"}});
        self.snapshots.push(snapshot);
        self.snapshot_log.push(SnapshotLogEntry { timestamp_ms: at, snapshot_id: id });
        let grace = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
        let replaced = |pair: &[Snapshot]| pair[1].timestamp_ms < at.saturating_sub(grace);
        let expired = self.snapshots.windows(2).take_while(|pair| replaced(pair)).count();
        self.snapshots.drain(..expired);
        self.snapshot_log.drain(..expired);
    }
}

/// Milliseconds since 1970.
pub fn millis(at: Instant) -> i64 {
    at.micros().div_euclid(1_000)
}

fn uuid(archive_id: &str, table: &str) -> String {
    let digest = Digest::of(format!("annals table\n{archive_id}\n{table}").as_bytes()).to_string();
    let part = |from: usize, to: usize| &digest[from..to];
    // Version 8 of a UUID allows any bits.
    format!("{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}
