//! The only room that writes the lake: store, schema, parquet, ledger, commit, recover, seal, verify.

mod archive;
mod commit;
mod dataset;
mod draft;
mod error;
mod ledger;
mod path;
mod plan;
mod publish;
mod reader;
mod record;
mod replay;
mod stage;
mod state;
mod store;
mod table;
mod verify;

pub use archive::{ARCHIVE_VERSION, Archive};
pub use commit::{Committed, Recovery, TeamWriter};
pub use dataset::Dataset;
pub use draft::{Draft, WindowRows};
pub use error::ArchiveError;
pub use path::month_of;
pub use reader::{StoredEvent, StoredReject, TeamReader};
pub use record::{
    Body, DeviceDelta, FileEntry, FileRole, Finding, FindingKind, READ_POINTS_MAX, ReadPoint, SnapshotEntry,
    StreamRecord, WalkPoint, WindowRecord, WindowState,
};
pub use state::{StateError, TeamState};
pub use store::{
    Blob, Fault, FaultyStore, FileWriter, Guard, Listed, LocalStore, MemoryStore, Store, StoreError, Tail,
};

pub use verify::{Counts, FaultCode, TeamReport, Verdict, VerifyFault, VerifyOptions, VerifyReport, verify};

#[cfg(test)]
mod tests;
