//! The only room that writes the lake: store, schema, parquet, ledger, commit, seal, vacuum, verify.
//!
//! # The format, for the authors of other readers and verifiers
//! `tests/second_verifier.py` is one, written from these lines alone.
//! ```text
//! archive.json                                                  {"format": "annals archive", "version": 3, "id": …}
//! ledger/team=<T>/<YYYY-MM-DD>.jsonl                            one line a commit
//! ledger/team=<T>/<YYYY-MM-DD>.heads                            signatures of that day's lines, where a key is configured
//! salts/team=<T>/<YYYY-MM>-<hash>.json                          the salt of the digests of a month's rows
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-part-<hash>.parquet       polled rows; what looks of a day changed
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-window-<hash>.parquet     rows of a settled window, or of several
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-day-<hash>.parquet        all rows of a sealed day
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-month-<hash>.parquet      all rows of a sealed month, less those of its sealed days
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-amendment-<hash>.parquet  rows that a sealed month or day gained later
//! tables/sessions/team=<T>/month=<YYYY>-01/<time>-month-<hash>.parquet       sessions of a year that is over: see below
//! tables/sessions/team=<T>/month=<YYYY-MM>/<time>-open-<hash>.parquet        sessions to which more events are waited for
//! scratch/<any name>                                            files that are being written, and have no name yet
//! snapshots/team=<T>/<seq>.json                                 what the ledger says up to line `seq`, and never truth
//! locks/<name>.lock                                             held by writers; empty, and never truth
//! locks/alerts.json                                             which warnings were sent; no part of the archive
//! ```
//! `<T>` is the team's id with every byte outside `[a-z0-9_-]` as `.` and two hexadecimal digits (an empty id: `.`); over
//! 120 bytes, the first 80 of that, `..` and the first 32 digits of the id's SHA-256. `<time>` is the start of the window
//! (of the year, month or day that is sealed; in `quarantine`, of the day first seen) as `20261120t000000z`; a window's date and
//! month are those of its start. `<hash>` is the first 16 digits of the file's SHA-256. Digits are lower-case throughout.
//!
//! **A ledger line** is a JSON object without spaces and a newline, of 64 MiB at most. Its members, in this order: `v` (1),
//! `archive_id`, `team_id`, `seq` (from 1), `prev`, `at` (RFC 3339), `nonce` (16 hexadecimal digits at random, so that
//! equal lines of two writers differ), `kind` (`commit`), `body`, `sha256`. `sha256` is the
//! SHA-256, in hexadecimal, of the 22 bytes `annals ledger line v1` + newline followed by the exact bytes of the line before
//! `,"sha256"`. `prev` is the `sha256` of the line before; of the first line, 64 zeros. A line
//! stands in the file of the day of its `at`, or of the line before it where that is later. What an interrupted append left
//! behind the last newline of the newest file (or a last line that begins with a zero byte or holds 512 of them) is no line.
//!
//! **Columns** have a Parquet `field_id` each: their place in the dataset's schema (`table/schema.rs`), from 1 on.
//!
//! **A body** ([`Body`]) names files added and removed, and records of windows, streams and computers that replace those
//! before them. Removed files' rows stand in added ones. Files live at the end: all added, less all removed. A file's
//! `sha256` is that of its bytes; its `rows_digest` is that of its rows in any order and encoding: the sum, modulo
//! 2^256, of the SHA-256 of each row's salt and values. The first lines of `table/digest.rs` give the bytes. The footer of
//! each file holds 16 hexadecimal digits at random (`annals.nonce`), so that no hash of a file confirms a guess of its rows.
//!
//! **Salts** do the same for the digests of rows. A month has 32 random bytes for each team, in a file `{"archive_id": …,
//! "team_id": …, "month": "2026-11", "salt": 64 hexadecimal digits}`. A body's `salts` names it by the month's first instant
//! and the file's `sha256`, once, in a line before or at the first that says digests of the month's rows. Without the file
//! these rows are attested by the hashes of their files alone. The salt of 1970-01 keys a body's `draft`, which tells a writer
//! whether the last line is the commit whose answer it lost; nobody else can check it.
//!
//! **Settled windows** have a file each. Small files of one month become one when no re-scan is due for them any more: it stands
//! where that of the first window did. What one of these windows gains later stands beside it.
//!
//! **Sealed** is what no re-scan changes any more: from a line on, the rows of the windows of a stream that begin in one of its
//! `sealed_months` stand in one file of the month and in what amends it, and in no other. With `partition = "day"` days are
//! sealed as they become final (`sealed_days`). A month that is sealed later takes what its days have left, if anything. A
//! sealed file of events is never taken away.
//!
//! **A head** is `annals/<archive_id>/team=<T>`, the number of a line, and its `sha256` in base64, each with a newline: the
//! text of a checkpoint (c2sp.org/tlog-checkpoint; the hash is of a chain, not of a tree). Signed, it is a note
//! (c2sp.org/signed-note, Ed25519). A line of `<day>.heads` is `<seq> <sha256> <key> <signature>`: the public key as
//! `name+id+base64`, and the signature as it stands in the note, in base64. From the first signed line on every line is
//! signed; the last one may still wait. `rotation <after> <old key> <new key> <signature> <signature>` says that `new` signs
//! what follows line `after`; both have signed the text `annals key rotation`, the head's first line, `after`, `old` and
//! `new`, each with a newline. An archive without these files is not signed. The key stands nowhere in an archive; a public
//! key that stands there proves nothing by itself: whoever verifies must have it from elsewhere.
//!
//! **Sessions** are made of the events and may be replaced: a body's `sessions` says how many rows of them are `replaced` and
//! `added`, with the sums of their digests. Those of removed files, less the replaced, with the added, stand in added files.
//! With `through` it says that they are behind: the events from then on, to `until` where that is given, are still to be
//! made sessions of; a line without `through` says that they have caught up.
//! Their files are sorted by `first_event_at`, which is the time of a session in paths and records.
//! When a month is sealed, its large files of sessions stay as they are, and its small ones become one file. When a
//! calendar year's last month is sealed, the files of its sealed months become one, in a line that adds that file, removes
//! those, and says nothing else. It stands where the file of the year's January would, with its role and time, and holds what
//! `first` and `last` say; what the year gains later stands beside it as an amendment. Files of 131,072 rows and more are
//! not put together. So the path of a file of sessions does not bound the times of its rows.
//!
//! **Quarantine** holds events that could not be made rows. When they can be, a line says in `released` how many, with the
//! sum of their digests: the rows of removed files of quarantine, less these, stand in added ones, and the events stand among
//! the line's rows of their streams.
//!
//! **Inventory files** hold changes: a row for each thing that a look (`seen_at`) found new, changed or gone (`present`
//! false). The first rows of a month say again (`repeats`) all that was there, so that one month alone tells the standing.
//!
//! # What always holds
//! - The files that a line adds and the salts that it names are durable before the line is written. A file that no line names is
//!   nothing: a commit that failed left it. A file that a line removes stays for a grace (a day at least on a local disk),
//!   so that readers can finish; then `vacuum` removes it. So a glob may see more files than are live.
//! - A line is appended on condition that the ledger ends where its writer believes it ends: the last file has the length
//!   that the writer knows, and no later day's file is there.
//! - The rules of [`TeamState::try_advance`]: windows of a stream never overlap, states never go back, counts never fall,
//!   no row goes, and a sealed month or day holds no file but sealed ones.

mod root;
mod cache;
mod checked;
mod commit;
mod copy;
mod dataset;
mod draft;
mod draft_digest;
mod error;
mod gathered;
mod grace;
mod heads;
mod ledger;
mod lines;
mod inventory_scans;
mod note;
mod path;
mod plan;
mod random;
mod reader;
mod record;
mod recover;
mod replay;
mod review;
mod rules;
mod salts;
mod seals;
mod sessions;
mod snapshot;
mod stage;
mod state;
mod store;
mod table;
mod team_key;
mod team_name;
mod text_lines;
mod vacuum;
mod verify;

pub use cache::{Cache, CacheError, CacheExtent, FetchProgress, Loan};
pub use commit::{Committed, TeamWriter};
pub use copy::{Copied, Copy};
pub use dataset::Dataset;
pub use draft::{Draft, Release, SessionsDraft, WindowRows};
pub use error::ArchiveError;
pub use heads::{HeadLine, Signer};
pub use ledger::{Line, LineError};
pub use lines::{AddedFile, LedgerLine, LedgerLines};
pub use note::{Head, NoteSignature, PublicKey, SecretKey, check_key_name};
pub use path::{ArchivePath, DataPath, month_of};
pub use reader::{StoredEvent, StoredReject, TeamReader};
pub use record::{
    Body, DeviceDelta, FileEntry, FileRole, Finding, FindingKind, InventoryRead, READ_POINTS_MAX, ReadPoint,
    ReleasedRecord, SaltRecord, SessionsMark, SessionsRecord, SnapshotEntry, StreamRecord, WalkPoint, WindowRecord,
    WindowState,
};
pub use recover::Recovery;
pub use review::{REVIEW_TEXT_BYTES_MAX, ReviewOutcome, ReviewRecord, check_review_text};
pub use root::{ARCHIVE_VERSION, Archive, LedgerExtent};
pub use rules::StateError;
pub use salts::Salts;
pub use seals::SealUnit;
pub use sessions::{HeldSession, LentSessions, SessionColumns, SessionsReader};
pub use state::TeamState;
pub use store::{
    Blob, Fault, FaultyStore, FileWriter, Guard, Listed, LocalStore, MemoryStore, ObjectStore, Proof, Store,
    StoreError, Tail, open_store, prove_store,
};
pub use table::{ColumnsBuilder, ColumnsRow, ConnectionColumns, EncodedTable, EventColumns};
pub use team_key::TeamKey;
pub use team_name::team_name;
pub use vacuum::{Leftover, Leftovers};

pub use verify::{
    Anchored, Asked, Counts, Damage, FaultCode, HeadGiven, Signed, TeamReport, Verdict, VerifyFault, VerifyOptions,
    VerifyReport, verify,
};

#[cfg(test)]
mod tests;
