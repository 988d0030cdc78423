//! The only room that writes the lake: store, schema, parquet, ledger, commit, recover, seal, verify.

mod dataset;
mod draft;
mod record;

pub use dataset::Dataset;
pub use draft::{Draft, WindowRows};
pub use record::{
    Body, DeviceDelta, FileEntry, FileRole, Finding, FindingKind, READ_POINTS_MAX, ReadPoint, SnapshotEntry,
    StreamRecord, WalkPoint, WindowRecord, WindowState,
};
