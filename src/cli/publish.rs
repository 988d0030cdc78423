//! `annals publish`: open tables over the archive's files, for other engines.

use arrow::array::RecordBatch;
use clap::Args;

use crate::archive::{Archive, ArchiveError};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::lake::{self, CheckedTable, Difference, Published, Publisher, ReaderRoot, TableId};
use crate::model::path::metadata_of;
use crate::model::saturating_sum;
use crate::store::StoreError;

use super::output::{Columns, OutputArgs, say};
use super::{Global, query};

/// Publish each dataset as an Apache Iceberg table, which other engines read without this program
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct PublishArgs {
    /// Only this dataset, or coverage or findings; repeatable [default: all]
    #[arg(long, value_name = "DATASET", value_parser = parse_table)]
    dataset: Vec<TableId>,
    /// Compare each table with the ledgers, file by file, and publish nothing
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER: &str = "\
A table is at tables/<dataset> in the archive: Iceberg metadata over the archive's own files, which Annals does not copy. Each run \
adds one snapshot to each table whose files changed, and nothing to the others. The addresses in a table are absolute: [publish] \
location is the archive's address for readers. Publish again after you move an archive. The daemon publishes by [publish] \
schedule. A table that cannot be published does not stop the others. With --check the rows are the differences between the \
tables and the ledgers, at the ledger lines that the tables name: a missing file, a file too many, a bound that is not exact, a \
version that does not continue the previous one.
Exit codes: 0 done; 1 a table could not be published, or differs; 2 wrong use.";

fn parse_table(name: &str) -> Result<TableId, String> {
    let all = || TableId::all().into_iter().map(TableId::as_str).collect::<Vec<_>>().join(", ");
    TableId::named(name).ok_or_else(|| format!("the tables are {}", all()))
}

pub fn run(global: &Global, args: &PublishArgs) -> Result<Exit, Error> {
    let config: Config = global.load()?;
    let root = if args.check { None } else { Some(reader_root(&config)?) };
    let archive = query::open(&config)?;
    let mut tables = if args.dataset.is_empty() { TableId::all() } else { args.dataset.clone() };
    tables.sort();
    tables.dedup();
    let Some(root) = root else { return check(&archive, &tables, &args.output) };
    let (published, ended) = Publisher::new(&archive, root).publish_each(&tables);
    args.output.batch(&table(&published))?;
    ended?;
    Ok(Exit::Done)
}

/// The tables that an archive has.
pub fn existing(archive: &Archive) -> Result<Vec<TableId>, StoreError> {
    let mut tables = Vec::new();
    for table in TableId::all() {
        if !archive.store().list(&metadata_of(table.as_str()))?.is_empty() {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Publishes the tables that an archive has, after a removal of files that they name.
pub fn again(config: &Config, archive: &Archive) -> Result<(), Error> {
    let tables = existing(archive).map_err(ArchiveError::from)?;
    if !tables.is_empty() {
        let _ = Publisher::new(archive, reader_root(config)?).publish(&tables)?;
    }
    Ok(())
}

fn check(archive: &Archive, tables: &[TableId], output: &OutputArgs) -> Result<Exit, Error> {
    let mut all = Vec::new();
    for table in tables {
        all.extend(lake::check(archive, *table)?);
    }
    let sum = |of: fn(&CheckedTable) -> u64| saturating_sum(all.iter().map(of));
    say(&format!("tables {}, files {}, rows {}", all.len(), sum(|table| table.files), sum(|table| table.rows)));
    output.batch(&differences(&all))?;
    Ok(if all.iter().all(|table| table.differences.is_empty()) { Exit::Done } else { Exit::Fault })
}

fn differences(all: &[CheckedTable]) -> RecordBatch {
    let all: Vec<(&str, &Difference)> = all
        .iter()
        .flat_map(|table| table.differences.iter().map(|difference| (table.table.as_str(), difference)))
        .collect();
    Columns::of(&all)
        .text("table", |(table, _)| table)
        .text("fault", |(_, difference)| difference.fault.into_str())
        .text("object", |(_, difference)| &difference.object)
        .text("detail", |(_, difference)| &difference.detail)
        .batch()
}

/// The address of the archive for readers of its tables.
///
/// # Errors
/// When the working directory does not exist, and when `[publish] location` is not set and engines cannot use the archive's
/// own address.
pub fn reader_root(config: &Config) -> Result<ReaderRoot, Error> {
    let archive = query::location(config)?;
    let root = ReaderRoot::new(config.publish.location.as_deref(), &archive);
    root.map_err(|reason| Error::Usage(format!("{archive}: {reason}")))
}

fn table(all: &[Published]) -> RecordBatch {
    Columns::of(all)
        .text("table", |table| table.table.as_str())
        .number("version", |table| table.version)
        .flag("is_new", |table| table.is_new)
        .number("files_added", |table| table.files_added)
        .number("files_removed", |table| table.files_removed)
        .number("files", |table| table.files)
        .number("rows", |table| table.rows)
        .batch()
}
