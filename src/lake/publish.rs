//! Updates the tables to the ends of the ledgers. A snapshot is the difference between the live files and the files
//! that the table named before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rayon::prelude::*;

use bytes::Bytes;

use crate::archive::{Archive, LEDGERS, LinesFile, version_path};
use crate::model::path::{data_of, metadata_of};
use crate::model::{Digest, Instant, saturating_sum};
use crate::store::{Store, put};

use super::bounds::read_footer;
use super::expire::{drop_replaced_versions, vacuum};
use super::group::{Grouped, group};
use super::ledgers::Ledgers;
use super::manifest::{DataFile, ManifestFile, encode_list, encode_manifest};
use super::metadata::{Snapshot, TableMetadata, millis};
use super::reader_root::ReaderRoot;
use super::schema::TableSchema;
use super::table::{Table, hint_path, read_hint};
use super::{LakeError, TableId};

/// The digest of the paths of the live files. An equal digest means that nothing changed.
pub(super) const FILES_DIGEST: &str = "annals.files-digest";
pub(super) const TOTAL_FILES: &str = "total-data-files";
pub(super) const TOTAL_ROWS: &str = "total-records";
/// The most tries of a publisher that loses against others.
const TRIES_MAX: usize = 8;
/// A publisher that takes longer starts again: vacuum can have freed the number of its version.
const TIME_MAX: Duration = Duration::from_secs(3_600);

/// The result of publishing a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub table: String,
    pub version: u64,
    /// Whether this run made the version.
    pub is_new: bool,
    pub files_added: u64,
    pub files_removed: u64,
    /// Live files of the table, and their rows.
    pub files: u64,
    pub rows: u64,
}

/// The files that a table must name.
#[derive(Debug, Clone)]
pub struct TargetFiles {
    pub table: String,
    pub schema: TableSchema,
    /// Rows and bytes by path.
    pub files: BTreeMap<String, (u64, u64)>,
    /// Files that the publisher writes itself, by path. A dataset has none.
    pub contents: BTreeMap<String, Bytes>,
}

impl TargetFiles {
    /// The files that the ledgers name for a table.
    ///
    /// # Errors
    /// [`LakeError::Column`] where a dataset has a column that no table can have.
    pub fn of(table: TableId, ledgers: &Ledgers) -> Result<Self, LakeError> {
        let (mut files, mut contents) = (BTreeMap::new(), BTreeMap::new());
        match table {
            TableId::Dataset(dataset) => {
                let live = ledgers.files(dataset).into_iter();
                files.extend(live.map(|(path, file)| (path.to_owned(), (file.rows, file.bytes))));
            }
            TableId::LedgerTable(table) => {
                for (path, (rows, content)) in ledgers.ledger_rows.files(table)? {
                    files.insert(path.clone(), (rows, content.len() as u64));
                    contents.insert(path, content);
                }
            }
        }
        Ok(Self { table: table.as_str().to_owned(), schema: TableSchema::of(&table.schema())?, files, contents })
    }

    fn digest(&self) -> String {
        digest_of(self.files.keys().map(String::as_str))
    }

    fn rows(&self) -> u64 {
        saturating_sum(self.files.values().map(|(rows, _)| *rows))
    }
}

/// Publishes tables of an archive for readers at a place.
#[derive(Debug)]
pub struct Publisher<'a> {
    archive: &'a Archive,
    place: ReaderRoot,
}

impl<'a> Publisher<'a> {
    pub fn new(archive: &'a Archive, place: ReaderRoot) -> Self {
        Self { archive, place }
    }

    /// As [`Publisher::publish_each`], for callers that need all tables.
    ///
    /// # Errors
    /// When the store fails, a ledger is invalid, another program wrote a table, or other publishers won every attempt.
    pub fn publish(&self, tables: &[TableId]) -> Result<Vec<Published>, LakeError> {
        let (published, ended) = self.publish_each(tables);
        ended.map(|()| published)
    }

    /// Publishes tables, each given once. Each table stands for the ledgers at one moment. A table that cannot be published
    /// does not stop the others. Returns the published tables, and an error that names the others.
    pub fn publish_each(&self, tables: &[TableId]) -> (Vec<Published>, Result<(), LakeError>) {
        let mut done: BTreeMap<TableId, Result<Published, LakeError>> = BTreeMap::new();
        let mut ended = Ok(());
        for tries in 1.. {
            let pending: Vec<TableId> = tables.iter().copied().filter(|it| !done.contains_key(it)).collect();
            if pending.is_empty() {
                break;
            }
            ended = match tries <= TRIES_MAX {
                true => self.try_each(&pending, &mut done),
                false => Err(LakeError::Contended { tries: TRIES_MAX }),
            };
            if ended.is_err() {
                break;
            }
        }
        let (mut published, mut failed, mut first) = (Vec::new(), Vec::new(), None);
        for (table, result) in done {
            match result {
                Ok(table) => published.push(table),
                Err(error) => {
                    failed.push(table.as_str());
                    first.get_or_insert(error);
                }
            }
        }
        let failure = first.map(|first| {
            let (all, source) = (tables.len(), Box::new(first));
            LakeError::NotPublished { tables: failed, all, source }
        });
        (published, ended.and(failure.map_or(Ok(()), Err)))
    }

    /// Adds the result of each table to `done`, except of those for which another publisher was faster.
    fn try_each(
        &self,
        pending: &[TableId],
        done: &mut BTreeMap<TableId, Result<Published, LakeError>>,
    ) -> Result<(), LakeError> {
        let store = self.archive.store().as_ref();
        let begun = store.now()?;
        // Read the tables before the ledgers: a version that another publisher creates in between is a conflict.
        let bases: Vec<_> = pending.iter().map(|table| Table::read(store, table.as_str())).collect();
        let ledgers =
            Ledgers::read(self.archive, pending.iter().any(|table| matches!(table, TableId::LedgerTable(_))))?;
        for (table, base) in pending.iter().zip(bases) {
            let update = |base| self.update_table(base, &TargetFiles::of(*table, &ledgers)?, &ledgers.lines, begun);
            let result = base.and_then(update);
            done.extend(result.transpose().map(|result| (*table, result)));
        }
        Ok(())
    }

    /// Publishes the target files of one table. `None`: another publisher created the version first.
    fn update_table(
        &self,
        base: Option<Table>,
        target: &TargetFiles,
        lines: &LinesFile,
        begun: Instant,
    ) -> Result<Option<Published>, LakeError> {
        let store = self.archive.store().as_ref();
        let version = base.as_ref().map_or(0, |table| table.version);
        let before = base.as_ref().filter(|table| table.place().is_ok_and(|place| place == self.place));
        let change = match before {
            Some(table) if is_same(table, target) => {
                write_contents(store, target, |_| true)?;
                self.point_to(&target.table, version)?;
                return Ok(Some(published(target, version, false, (0, 0))));
            }
            Some(table) => Change::stage(table, target, self, lines, begun)?,
            None => {
                let metadata = TableMetadata::new(&self.place, self.archive.id(), &target.table);
                let fresh = Table { name: target.table.clone(), version, metadata };
                Change::stage(&fresh, target, self, lines, begun)?
            }
        };
        if store.now()?.since(begun) > TIME_MAX {
            return Ok(None);
        }
        match store.create_new(&version_path(&target.table, version + 1), &change.metadata.encode()) {
            Err(e) if e.is_fenced() => return Ok(None),
            created => created?,
        }
        self.point_to(&target.table, version + 1)?;
        // The first publication of a day removes all metadata that no snapshot needs: nothing else does so without a daemon.
        match before.is_some_and(|table| day_of(table.metadata.last_updated_ms) != day_of(millis(begun))) {
            true => drop(vacuum(self.archive, &target.table)?),
            false => drop_replaced_versions(store, &target.table)?,
        }
        Ok(Some(published(target, version + 1, true, change.counts)))
    }

    /// Points readers to a version, or to a newer one that another publisher has created since.
    fn point_to(&self, table: &str, version: u64) -> Result<(), LakeError> {
        let store = self.archive.store().as_ref();
        let mut newest = version;
        loop {
            match store.read(&version_path(table, newest + 1)) {
                Ok(_) => newest += 1,
                Err(error) if error.is_not_found() => break,
                Err(error) => return Err(error.into()),
            }
        }
        if read_hint(store, table)? != Some(newest) {
            put(store, &hint_path(table), newest.to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// The digest of sorted paths, as [`FILES_DIGEST`] has it.
pub fn digest_of<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    Digest::of(paths.collect::<Vec<_>>().join("\n").as_bytes()).to_string()
}

fn is_same(table: &Table, target: &TargetFiles) -> bool {
    let recorded = table.metadata.current().and_then(|snapshot| snapshot.summary.get(FILES_DIGEST));
    recorded == Some(&target.digest()) && table.metadata.schema().is_some_and(|schema| schema.extends(&target.schema))
}

/// The number of the UTC day of a time in milliseconds.
fn day_of(millis: i64) -> i64 {
    millis.div_euclid(86_400_000)
}

fn published(target: &TargetFiles, version: u64, is_new: bool, (added, removed): (u64, u64)) -> Published {
    Published {
        table: target.table.clone(),
        version,
        is_new,
        files_added: added,
        files_removed: removed,
        files: target.files.len() as u64,
        rows: target.rows(),
    }
}

/// A version that is complete except for its last step: its creation.
struct Change {
    metadata: TableMetadata,
    /// Files added and removed.
    counts: (u64, u64),
}

impl Change {
    /// Writes the manifests of the next snapshot, and makes the metadata that names it.
    fn stage(
        table: &Table,
        target: &TargetFiles,
        by: &Publisher<'_>,
        lines: &LinesFile,
        begun: Instant,
    ) -> Result<Self, LakeError> {
        let store = by.archive.store().as_ref();
        let lines = serde_json::to_vec(lines).expect("BUG: texts and numbers");
        let parent = table.metadata.current().map(|snapshot| snapshot.snapshot_id);
        let id = snapshot_id(&target.table, table, &lines, begun);
        let sequence = table.metadata.last_sequence_number + 1;
        let manifests = table.manifests(store, &by.place)?;
        let named: BTreeMap<String, u64> = manifests
            .iter()
            .flat_map(|manifest| manifest.entries.iter().filter(|entry| entry.is_live()))
            .map(|entry| (entry.file.path.clone(), entry.file.rows))
            .collect();
        let gone: BTreeSet<&str> =
            named.keys().map(String::as_str).filter(|path| !target.files.contains_key(*path)).collect();
        let mut metadata = table.metadata.clone();
        let schema_id = metadata.take_schema(&target.schema);
        let schema = metadata.schema().expect("BUG: `take_schema` keeps it");
        let added = added_files(store, target, &named, schema)?;
        let rows_of_gone = saturating_sum(gone.iter().filter_map(|path| named.get(*path)).copied());
        let rows_of_added = saturating_sum(added.iter().map(|file| file.rows));
        let counts = (added.len() as u64, gone.len() as u64);
        let Grouped { mut kept, entries } = group(manifests, &gone, added, id, sequence);
        let directory = metadata_of(&target.table);
        if !entries.is_empty() {
            let schema = serde_json::to_string(schema).expect("BUG: a schema serialises");
            let path = format!("{directory}/{id:016x}-m0.avro");
            let bytes = encode_manifest(&by.place, &schema, schema_id, &entries);
            put(store, &path, &bytes)?;
            kept.push(ManifestFile::of(path, bytes.len() as u64, sequence, id, &entries));
        }
        let (list, lines_at) =
            (format!("{directory}/snap-{id:016x}.avro"), format!("{directory}/lines-{id:016x}.json"));
        put(store, &list, &encode_list(&by.place, id, parent, sequence, &kept))?;
        put(store, &lines_at, &lines)?;
        let summary = [
            ("operation", if counts.1 == 0 { "append" } else { "overwrite" }.to_owned()),
            ("added-data-files", counts.0.to_string()),
            ("deleted-data-files", counts.1.to_string()),
            ("added-records", rows_of_added.to_string()),
            ("deleted-records", rows_of_gone.to_string()),
            (TOTAL_FILES, target.files.len().to_string()),
            (TOTAL_ROWS, target.rows().to_string()),
            (LEDGERS, by.place.address(&lines_at)),
            (FILES_DIGEST, target.digest()),
        ];
        let snapshot = Snapshot {
            snapshot_id: id,
            parent_snapshot_id: parent,
            sequence_number: sequence,
            timestamp_ms: millis(begun).max(table.metadata.last_updated_ms),
            manifest_list: by.place.address(&list),
            schema_id,
            summary: summary.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        };
        let before = (table.version > 0).then(|| by.place.address(&table.path()));
        metadata.advance(snapshot, before, by.archive.grace());
        Ok(Self { metadata, counts })
    }
}

/// The files that the table does not name yet, with the bounds that their footers say.
fn added_files(
    store: &dyn Store,
    target: &TargetFiles,
    named: &BTreeMap<String, u64>,
    schema: &TableSchema,
) -> Result<Vec<DataFile>, LakeError> {
    write_contents(store, target, |path| named.contains_key(path))?;
    let new: Vec<_> = target.files.iter().filter(|(path, _)| !named.contains_key(*path)).collect();
    let file = |(path, (rows, bytes)): (&String, &(u64, u64))| {
        let footer = read_footer(store, path, schema)?;
        if (footer.rows, footer.bytes) != (*rows, *bytes) {
            let reason = format!(
                "{} rows in {} bytes, the ledger says {rows} in {bytes}: run `annals verify`",
                footer.rows, footer.bytes
            );
            return Err(LakeError::damaged(path, reason));
        }
        Ok(DataFile { path: path.clone(), rows: *rows, bytes: *bytes, bounds: footer.bounds })
    };
    new.into_par_iter().map(file).collect()
}

/// Writes the publisher's own files: those that the table does not name yet, and those that are missing or have another size.
fn write_contents(
    store: &dyn Store,
    target: &TargetFiles,
    is_named: impl Fn(&str) -> bool + Sync,
) -> Result<(), LakeError> {
    if target.contents.is_empty() {
        return Ok(());
    }
    let listed = store.list(&data_of(&target.table))?;
    let sizes: BTreeMap<&str, u64> = listed.iter().map(|entry| (entry.path.as_str(), entry.bytes)).collect();
    let is_whole = |path: &str, content: &Bytes| sizes.get(path) == Some(&(content.len() as u64));
    let pending = target.contents.par_iter().filter(|(path, content)| !is_named(path) || !is_whole(path, content));
    Ok(pending.try_for_each(|(path, content)| put(store, path, content))?)
}

/// The content of a snapshot determines its id, so that two publishers that write the same file write the same bytes.
fn snapshot_id(name: &str, table: &Table, lines: &[u8], begun: Instant) -> i64 {
    let text = format!("{name}\n{}\n{}\n{}\n", table.version, table.metadata.current_snapshot_id, begun.nanos());
    let digest = Digest::of(&[text.as_bytes(), lines].concat());
    let first: [u8; 8] = digest.0[..8].try_into().expect("BUG: a digest is longer");
    (i64::from_be_bytes(first) & i64::MAX).max(1)
}
