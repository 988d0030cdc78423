//! Open tables: each dataset as an Apache Iceberg table of version 2, over the archive's own data files.
//!
//! ```text
//! tables/<dataset>/metadata/v<N>.metadata.json     a version of the table; creating it is the commit
//! tables/<dataset>/metadata/version-hint.text      the newest N, for readers without a catalog
//! tables/<dataset>/metadata/snap-<id>.avro         the manifests of a snapshot
//! tables/<dataset>/metadata/<id>-m0.avro           a manifest: data files with their rows, bytes and bounds
//! tables/<dataset>/metadata/lines-<id>.json        the last ledger line of each team that a snapshot stands for
//! ```
//! A table is derived data: the ledgers are the truth. You may delete the directory `metadata` and publish again. A
//! publisher writes each file once, except the hint. Addresses in the metadata are absolute: after an archive moves,
//! publish it again.

mod avro;
mod bounds;
mod catalog;
mod check;
mod error;
mod expire;
mod group;
mod ledger_tables;
mod ledgers;
mod manifest;
mod metadata;
mod publication_lag;
mod publish;
mod reader_root;
mod schema;
mod table;

pub use catalog::Catalog;
pub use check::{CheckedTable, Difference, TableFault, check, verify_tables};
pub use error::LakeError;
pub use expire::{obsolete_files, vacuum};
pub use publication_lag::{PublicationLag, TableLag};
pub use publish::{Published, Publisher};
pub use reader_root::ReaderRoot;
pub use schema::TableSchema;

use arrow::datatypes::SchemaRef;

use crate::archive::schema_of;
use crate::model::Dataset;

pub use ledger_tables::LedgerTable;

#[cfg(test)]
mod tests;

/// A table that can be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableId {
    /// Over the archive's own data files.
    Dataset(Dataset),
    LedgerTable(LedgerTable),
}

impl TableId {
    /// All of them.
    pub fn all() -> Vec<Self> {
        Dataset::ALL.map(Self::Dataset).into_iter().chain(LedgerTable::ALL.map(Self::LedgerTable)).collect()
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dataset(dataset) => dataset.as_str(),
            Self::LedgerTable(table) => table.as_str(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|table| table.as_str() == name)
    }

    /// The columns of its files.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Dataset(dataset) => schema_of(dataset),
            Self::LedgerTable(table) => table.schema(),
        }
    }
}
