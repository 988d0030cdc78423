//! The only room that writes the ledger and its data files: schema, parquet, ledger, commit, seal, vacuum, verify.
//!
#![doc = include_str!("../../docs/format.md")]

mod active_holds;
mod cache;
mod commit;
mod commit_history;
mod copy;
mod draft;
mod draft_rows;
mod due_months;
mod erase;
mod error;
mod event_key;
mod expiry_record;
mod expiry_rules;
mod finding;
mod heads;
mod hold;
mod ledger;
mod ledger_files;
mod manifest;
mod note;
mod pairs;
mod plan;
mod planned_file;
mod published;
mod random;
mod reader;
mod record;
mod replay;
mod review;
mod root;
mod rows_sum;
mod salts;
mod seals;
mod sessions;
mod snapshot;
mod stage;
mod state;
mod state_error;
mod table;
mod team_name;
mod text_lines;
mod vacuum;
mod verify;

pub use active_holds::active_holds;
pub use cache::{Cache, CacheError, CacheExtent, FetchProgress, PinnedFiles};
pub use commit::{Committed, TeamWriter};
pub use commit_history::{AddedFile, CommitHistory, CommitSummary};
pub use copy::{Copied, Copy, CopyStep};
pub use draft::{Draft, Release, SessionsDraft, WindowRows};
pub use due_months::DueMonth;
pub use erase::{ErasedPart, ErasedRecord, Erasure, FoundRow, Order, PendingOrder, ResaltedFile, Subject, check_order};
pub use error::{ArchiveError, LostSalt};
pub use event_key::EventKey;
pub use expiry_record::{Expired, ExpiredRecord};
pub use expiry_rules::KeptBy;
pub use finding::{Finding, FindingKind};
pub use heads::{HeadLine, SIGN_ALL, Signer};
pub use hold::{Hold, HoldAdded, HoldRecord, HoldReleased, HoldScope, Holds, check_hold_id, covering, normal_subject};
pub use ledger::{LedgerLine, LineError};
pub use manifest::ARCHIVE_VERSION;
pub use note::{HEADS_BYTES_MAX, Head, NoteSignature, PublicKey, SecretKey, check_key_name};
pub use published::{LEDGERS, LinesFile, TeamHead, version_of, version_path};
pub use reader::{StoredEvent, StoredReject, TeamReader, TeamRows};
pub use record::{
    Body, DeviceDelta, FileEntry, InventoryRead, READ_POINTS_MAX, ReadPoint, SaltRecord, SessionsMark, SessionsRecord,
    SnapshotEntry, StreamRecord, WalkPoint, WindowRecord, WindowState,
};
pub use review::{REVIEW_TEXT_BYTES_MAX, ReviewOutcome, ReviewRecord, check_ledger_text};
pub use root::{Archive, LedgerExtent};
pub use salts::Salts;
pub use sessions::HeldSession;
pub use state::TeamState;
pub use state_error::StateError;
pub use table::{ConnectionColumns, schema_of};
pub use team_name::team_name;
pub use vacuum::ObsoleteFiles;

pub use verify::{
    Anchored, Counts, Damage, FaultCode, KnownHead, Signed, TeamReport, Verdict, VerifyFault, VerifyOptions,
    VerifyReport, verify,
};

#[cfg(test)]
mod tests;
