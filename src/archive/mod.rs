//! The only room that writes the ledger and its data files: schema, parquet, ledger, commit, seal, vacuum, verify.
//!
#![doc = include_str!("../../docs/format.md")]

mod cache;
mod commit;
mod copy;
mod deletion;
mod error;
mod event_key;
mod ledger;
mod manifest;
mod random;
mod reader;
mod root;
mod salts;
mod sessions;
mod table;
mod team_name;
mod verify;

pub use cache::{Cache, CacheError, CacheExtent, FetchProgress, PinnedFiles};
pub use commit::{
    draft::{Draft, Release, SessionsDraft, WindowRows},
    writer::{Committed, TeamWriter},
};
pub use copy::{Copied, Copy, CopyStep};
pub use deletion::{
    active_holds::active_holds,
    due_months::DueMonth,
    erase::{ErasedPart, ErasedRecord, Erasure, FoundRow, Order, PendingOrder, ResaltedFile, Subject, check_order},
    expiry_record::{Expired, ExpiredRecord},
    expiry_rules::KeptBy,
    hold::{Hold, HoldAdded, HoldRecord, HoldReleased, HoldScope, Holds, check_hold_id, covering, normal_subject},
    published::{LEDGERS, LinesFile, TeamHead, version_of, version_path},
    vacuum::ObsoleteFiles,
};
pub use error::{ArchiveError, LostSalt};
pub use event_key::EventKey;
pub use ledger::{
    commit_history::{AddedFile, CommitHistory, CommitSummary},
    finding::{Finding, FindingKind},
    heads::{HeadLine, SIGN_ALL, Signer},
    line::{LedgerLine, LineError},
    note::{HEADS_BYTES_MAX, Head, NoteSignature, PublicKey, SecretKey, check_key_name},
    record::{
        Body, DeviceDelta, FileEntry, InventoryRead, READ_POINTS_MAX, ReadPoint, SaltRecord, SessionsMark,
        SessionsRecord, SnapshotEntry, StreamRecord, WalkPoint, WindowRecord, WindowState,
    },
    review::{REVIEW_TEXT_BYTES_MAX, ReviewOutcome, ReviewRecord, check_ledger_text},
    state::TeamState,
    state_error::StateError,
};
pub use manifest::ARCHIVE_VERSION;
pub use reader::{StoredEvent, StoredReject, TeamReader, TeamRows};
pub use root::{Archive, LedgerExtent};
pub use salts::Salts;
pub use sessions::HeldSession;
pub use table::{ConnectionColumns, schema_of};
pub use team_name::team_name;
pub use verify::{
    Anchored, Counts, Damage, FaultCode, KnownHead, Signed, TeamReport, Verdict, VerifyFault, VerifyOptions,
    VerifyReport, lost_heads, verify,
};

#[cfg(test)]
mod tests;
