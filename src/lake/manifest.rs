//! Manifests, which name data files, and manifest lists, which name the manifests of a snapshot.

use crate::model::saturating_sum;

use super::avro::{Decoder, Encoder, container, records};
use super::reader_root::ReaderRoot;

/// The columns that Iceberg 2 requires, and the bounds, with the specification's field ids.
const ENTRY_SCHEMA: &str = concat!(
    r#"{"type":"record","name":"manifest_entry","fields":["#,
    r#"{"name":"status","type":"int","field-id":0},"#,
    r#"{"name":"snapshot_id","type":["null","long"],"default":null,"field-id":1},"#,
    r#"{"name":"sequence_number","type":["null","long"],"default":null,"field-id":3},"#,
    r#"{"name":"file_sequence_number","type":["null","long"],"default":null,"field-id":4},"#,
    r#"{"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":["#,
    r#"{"name":"content","type":"int","field-id":134},"#,
    r#"{"name":"file_path","type":"string","field-id":100},"#,
    r#"{"name":"file_format","type":"string","field-id":101},"#,
    r#"{"name":"partition","type":{"type":"record","name":"r102","fields":[]},"field-id":102},"#,
    r#"{"name":"record_count","type":"long","field-id":103},"#,
    r#"{"name":"file_size_in_bytes","type":"long","field-id":104},"#,
    r#"{"name":"lower_bounds","type":["null",{"type":"array","logicalType":"map","items":{"type":"record","#,
    r#""name":"k126_v127","fields":[{"name":"key","type":"int","field-id":126},"#,
    r#"{"name":"value","type":"bytes","field-id":127}]}}],"default":null,"field-id":125},"#,
    r#"{"name":"upper_bounds","type":["null",{"type":"array","logicalType":"map","items":{"type":"record","#,
    r#""name":"k129_v130","fields":[{"name":"key","type":"int","field-id":129},"#,
    r#"{"name":"value","type":"bytes","field-id":130}]}}],"default":null,"field-id":128}"#,
    r#"]}}]}"#
);
const LIST_SCHEMA: &str = concat!(
    r#"{"type":"record","name":"manifest_file","fields":["#,
    r#"{"name":"manifest_path","type":"string","field-id":500},"#,
    r#"{"name":"manifest_length","type":"long","field-id":501},"#,
    r#"{"name":"partition_spec_id","type":"int","field-id":502},"#,
    r#"{"name":"content","type":"int","field-id":517},"#,
    r#"{"name":"sequence_number","type":"long","field-id":515},"#,
    r#"{"name":"min_sequence_number","type":"long","field-id":516},"#,
    r#"{"name":"added_snapshot_id","type":"long","field-id":503},"#,
    r#"{"name":"added_files_count","type":"int","field-id":504},"#,
    r#"{"name":"existing_files_count","type":"int","field-id":505},"#,
    r#"{"name":"deleted_files_count","type":"int","field-id":506},"#,
    r#"{"name":"added_rows_count","type":"long","field-id":512},"#,
    r#"{"name":"existing_rows_count","type":"long","field-id":513},"#,
    r#"{"name":"deleted_rows_count","type":"long","field-id":514}"#,
    r#"]}"#
);
const FORMAT: &str = "PARQUET";

/// The status of a file in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Existing = 0,
    Added = 1,
    Deleted = 2,
}

/// The least and the greatest value of columns, by field id, in Iceberg's single-value encoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    pub lower: Vec<(i32, Vec<u8>)>,
    pub upper: Vec<(i32, Vec<u8>)>,
}

/// A data file's entry in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Within the archive.
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    pub bounds: Bounds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub status: Status,
    /// The snapshot that added the file, or deleted it.
    pub snapshot_id: i64,
    /// The sequence number of the snapshot that added the file.
    pub sequence: i64,
    pub file: DataFile,
}

impl Entry {
    pub fn is_live(&self) -> bool {
        self.status != Status::Deleted
    }
}

/// A manifest's entry in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Within the archive.
    pub path: String,
    pub bytes: u64,
    pub sequence: i64,
    pub min_sequence: i64,
    pub snapshot_id: i64,
    /// Files added, existing and deleted.
    pub files: [u64; 3],
    /// Their rows.
    pub rows: [u64; 3],
}

impl ManifestFile {
    /// The entry of a new manifest of `entries`.
    pub fn of(path: String, bytes: u64, sequence: i64, snapshot_id: i64, entries: &[Entry]) -> Self {
        let of = |status: Status| entries.iter().filter(move |entry| entry.status == status);
        let each = [Status::Added, Status::Existing, Status::Deleted];
        Self {
            path,
            bytes,
            sequence,
            min_sequence: entries.iter().map(|entry| entry.sequence).min().unwrap_or(sequence),
            snapshot_id,
            files: each.map(|status| of(status).count() as u64),
            rows: each.map(|status| saturating_sum(of(status).map(|entry| entry.file.rows))),
        }
    }

    /// The number of its live files.
    pub fn live(&self) -> u64 {
        self.files[0] + self.files[1]
    }
}

/// The bytes of a manifest. `schema` is that of the table, as JSON.
pub fn encode_manifest(place: &ReaderRoot, schema: &str, schema_id: i32, entries: &[Entry]) -> Vec<u8> {
    let schema_id = schema_id.to_string();
    let header = [
        ("schema", schema),
        ("schema-id", &schema_id),
        ("partition-spec", "[]"),
        ("partition-spec-id", "0"),
        ("format-version", "2"),
        ("content", "data"),
    ];
    container(ENTRY_SCHEMA, &header, entries, |out, entry| {
        out.long(entry.status as i64);
        for number in [entry.snapshot_id, entry.sequence, entry.sequence] {
            out.some();
            out.long(number);
        }
        out.long(0);
        out.bytes(place.address(&entry.file.path).as_bytes());
        out.bytes(FORMAT.as_bytes());
        out.count(entry.file.rows);
        out.count(entry.file.bytes);
        for bounds in [&entry.file.bounds.lower, &entry.file.bounds.upper] {
            out.some();
            out.array(bounds, |out, (id, value)| {
                out.long(i64::from(*id));
                out.bytes(value);
            });
        }
    })
}

/// The entries of a manifest that this program wrote.
pub fn decode_manifest(place: &ReaderRoot, content: &[u8]) -> Result<Vec<Entry>, String> {
    records(content, ENTRY_SCHEMA, |row| {
        let status = match row.long()? {
            0 => Status::Existing,
            1 => Status::Added,
            2 => Status::Deleted,
            other => return Err(format!("holds the status {other}")),
        };
        let mut number = || if row.is_some()? { row.long() } else { Err("leaves a number out".to_owned()) };
        let (snapshot_id, sequence, _) = (number()?, number()?, number()?);
        row.long()?;
        let path = place.path(&row.string()?)?;
        row.string()?;
        let (rows, bytes) = (row.count()?, row.count()?);
        let bounds = Bounds { lower: decode_bounds(row)?, upper: decode_bounds(row)? };
        Ok(Entry { status, snapshot_id, sequence, file: DataFile { path, rows, bytes, bounds } })
    })
}

fn decode_bounds(row: &mut Decoder<'_>) -> Result<Vec<(i32, Vec<u8>)>, String> {
    let bound = |row: &mut Decoder<'_>| {
        let id = row.long()?;
        Ok((i32::try_from(id).map_err(|_| format!("holds the field id {id}"))?, row.bytes()?.to_vec()))
    };
    if row.is_some()? { row.array(bound) } else { Ok(Vec::new()) }
}

/// The bytes of the list of a snapshot's manifests.
pub fn encode_list(
    place: &ReaderRoot,
    snapshot_id: i64,
    parent: Option<i64>,
    sequence: i64,
    manifests: &[ManifestFile],
) -> Vec<u8> {
    let parent = parent.map_or_else(|| "null".to_owned(), |id| id.to_string());
    let (id, sequence) = (snapshot_id.to_string(), sequence.to_string());
    let header: [(&str, &str); 4] = [
        ("snapshot-id", &id),
        ("parent-snapshot-id", &parent),
        ("sequence-number", &sequence),
        ("format-version", "2"),
    ];
    container(LIST_SCHEMA, &header, manifests, |out: &mut Encoder, manifest| {
        out.bytes(place.address(&manifest.path).as_bytes());
        out.count(manifest.bytes);
        out.long(0);
        out.long(0);
        out.long(manifest.sequence);
        out.long(manifest.min_sequence);
        out.long(manifest.snapshot_id);
        manifest.files.iter().chain(&manifest.rows).for_each(|count| out.count(*count));
    })
}

/// The manifests of a list that this program wrote.
pub fn decode_list(place: &ReaderRoot, content: &[u8]) -> Result<Vec<ManifestFile>, String> {
    records(content, LIST_SCHEMA, |row| {
        let path = place.path(&row.string()?)?;
        let bytes = row.count()?;
        row.long()?;
        row.long()?;
        let (sequence, min_sequence, snapshot_id) = (row.long()?, row.long()?, row.long()?);
        let mut three = || -> Result<[u64; 3], String> { Ok([row.count()?, row.count()?, row.count()?]) };
        let (files, rows) = (three()?, three()?);
        Ok(ManifestFile { path, bytes, sequence, min_sequence, snapshot_id, files, rows })
    })
}
