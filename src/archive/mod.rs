//! The only room that writes the ledger and its data files: schema, parquet, ledger, commit, seal, vacuum, verify.
//!
//! # The format, for the authors of other readers and verifiers
//! `tests/second_verifier.py` is a verifier written from this text alone.
//! ```text
//! archive.json                                                  {"format": "annals archive", "version": 3, "id": …}, and perhaps "ledger": "elsewhere"
//! ledger/archive.json                                           only if the ledger lies elsewhere: {"format": "annals ledger", "version": 3, "id": …}
//! ledger/team=<T>/<YYYY-MM-DD>.jsonl                            one line for each commit
//! ledger/team=<T>/<YYYY-MM-DD>.heads                            signatures of that day's lines, if a key is configured
//! salts/team=<T>/<YYYY-MM>-<hash>.json                          the salt of a month's row digests
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-part-<hash>.parquet       polled rows; a day's changes of the inventory
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-window-<hash>.parquet     rows of one settled window, or of several
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-day-<hash>.parquet        all rows of a sealed day
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-month-<hash>.parquet      all rows of a sealed month, except those of its sealed days
//! tables/<dataset>/team=<T>/month=<YYYY-MM>/<time>-amendment-<hash>.parquet  rows that a sealed month or day gained later
//! tables/sessions/team=<T>/month=<YYYY>-01/<time>-month-<hash>.parquet       sessions of a past year: see below
//! tables/sessions/team=<T>/month=<YYYY-MM>/<time>-open-<hash>.parquet        sessions that can still receive events
//! scratch/<any name>                                            unfinished files without a final name
//! scratch/erasure-<hash>.json                                   the key of an erasure order, until the order is complete
//! tables/<table>/metadata/<name>                                the open table of a dataset, of `coverage` or `findings`; derived, never the truth
//! tables/<table>/data/<month>-<hash>.parquet                    rows of `coverage` or `findings` for that table; derived
//! snapshots/team=<T>/<seq>.json                                 the state of the ledger after line `seq`; never the truth. The first line has one
//! locks/<name>.lock                                             writers hold these; empty; never the truth
//! locks/alerts.json                                             the sent alerts and the last check of the daemon; not part of the archive
//! ```
//! `<T>` is the team's id: each byte outside `[a-z0-9_-]` becomes `.` and two hexadecimal digits, and an empty id becomes `.`. A
//! result of more than 120 bytes becomes its first 80 bytes, `..` and the first 32 digits of the id's SHA-256. `<time>` is the
//! start of the window as `20261120t000000z`. For sealed files it is the start of the year, month or day; for
//! `quarantine` it is the day when Annals first saw the event. A window belongs to the day and month of its start. `<hash>`
//! is the first 16 digits of the file's SHA-256. All digits are lower case.
//!
//! **A ledger elsewhere.** With `"ledger": "elsewhere"` in `archive.json`, everything under `ledger/` lies in another place, under the same
//! paths, so that an object lock can protect it and not the data. No file names that place: it can move. `ledger/archive.json` has the
//! archive's id. A reader without that place, or with the place of another archive, must refuse, because it would see no line.
//!
//! **A ledger line** is a JSON object without spaces, followed by a newline; it has 64 MiB at most. Its members, in this order:
//! `v` (1), `archive_id`, `team_id`, `seq` (from 1), `prev`, `at` (RFC 3339), `nonce` (16 random hexadecimal digits, so that equal
//! lines of two writers differ), `kind` (`commit`), `body`, `sha256`. `sha256` is the SHA-256, in hexadecimal, of two
//! parts: the 22 bytes `annals ledger line v1` + newline, and the exact bytes of the line before `,"sha256"`. `prev` is the
//! `sha256` of the previous line, and 64 zeros in the first line. A line is in the file of the day of its `at`, or in
//! the file of the previous line if that day is later. The bytes after the last newline of the newest file are a torn
//! line, which an interrupted append left. A last line that begins with a zero byte, or holds 512 of them, is torn,
//! too. A torn line does not count, and neither does a file without lines.
//!
//! **Columns** have a Parquet `field_id` each: their position in the dataset's schema (`table/schema.rs`), from 1 on.
//!
//! **A body** ([`Body`]) names added files and removed files. It holds records of windows, streams and computers, which replace
//! earlier records. The added files hold the rows of the removed files. The live files are all added files, minus all removed
//! files. A file's `sha256` is the digest of its bytes. Its `rows_digest` is the digest of its rows in any order and encoding: the
//! sum, modulo 2^256, of the SHA-256 of each row's salt and values. The first lines of `table/digest.rs` define these bytes. The
//! footer of each file holds 16 random hexadecimal digits (`annals.nonce`), so that no file hash confirms a guess of its rows.
//!
//! **Salts** keep the digests of rows from confirming a guess of a row. Each team has 32 random bytes for each month, in a file `{"archive_id": …,
//! "team_id": …, "month": "2026-11", "salt": 64 hexadecimal digits}`. The member `salts` of a body names the file by the month's
//! first instant and by its `sha256`. It does so once, at the latest in the first line with digests of that month's
//! rows. If the file is missing, only the file hashes attest these rows. The salt of 1970-01 is the key of a body's `draft`.
//! A writer that lost the answer to its commit recognises the commit in the last line by `draft`. Nobody else can check `draft`.
//!
//! **An empty body**, perhaps with a finding about the clock, changes nothing. In a store without locks, `vacuum` appends such a line before it
//! removes files that no line has named. The line refuses the commit of a writer that has stalled.
//!
//! **Settled windows** have one file each. When no re-scan is due for them any more, small files of one month become one file. It
//! takes the path of the first window. Later rows of these windows are in their own file.
//!
//! **Sealed** rows do not change by re-scans. After a line with `sealed_months`, the rows of the stream's windows that
//! begin in that month are only in one file of the month, in files of its sealed days, and in amendments. `sealed_days` seals days:
//! a busy day in the line that adds all its rows, if it is final by then. With `partition = "day"`, it seals every day when the
//! day becomes final. A month that is sealed later takes the rows that its days do not hold, if there are any. No line removes a
//! sealed file of events, except that an erasure puts another in its place.
//!
//! **A head** has three lines, each with a newline: `annals/<archive_id>/team=<T>`, the number of a ledger line, and the line's
//! `sha256` in base64. This is the text of a checkpoint (c2sp.org/tlog-checkpoint; the hash belongs to a chain, not to a
//! tree). A signed head is a note (c2sp.org/signed-note, Ed25519). A line of `<day>.heads` is `<seq> <sha256> <key> <signature>`:
//! the public key as `name+id+base64`, and the signature in base64, as in the note. After the first signed line, every line
//! is signed; the last line can be unsigned for a moment. `rotation <after> <sha256> <old key> <new key> <signature> <signature>`
//! says that `new` signs the lines after line `after`, which is the last signed line and has that `sha256`. Both keys
//! have signed the text `annals key rotation`, the three lines of that head, `old` and `new`, each with a newline. An archive
//! without these files is not signed. The archive does not hold the key. A public key inside the archive would prove nothing: a
//! verifier must have it from another place.
//!
//! **Sessions** are derived from events, and a line can replace them. The member `sessions` of a body gives the numbers of `replaced`
//! and `added` rows, with the sums of their digests. The added files hold the rows of the removed files, minus the
//! replaced rows, plus the added rows. With `through`, the sessions lack the events from that time on, up to `until` if
//! it is given. A line without `through` says that the sessions include all events. Session files are sorted by
//! `first_event_at`, which is the time of a session in paths and records. When a month is sealed, its large session files remain,
//! and its small ones become one file. When the last month of a calendar year is sealed, the files of the year's sealed months
//! become one. The line that does this adds that file, removes the others, and says nothing else. The file has the path, role
//! and time of the January file, and its `first` and `last` give the range of its rows. Rows that the year gains later
//! are in amendments. Files of 131,072 rows or more are not joined. So the path of a session file does not bound the times of its rows.
//!
//! **Quarantine** holds events that do not fit the schema. If a later version can make rows of them, a line gives their number
//! in `released`, with the sum of their digests. The added quarantine files hold the rows of the removed ones, minus these.
//! The line adds the events to their streams.
//!
//! **Holds** protect rows from expiry and erasure. A body's `holds` is a list of records, in order. `{"add": {…}}` has an
//! `id` (new in this ledger), a `reason`, `by` (the requester, optional), `at`, the bounds `from` (inclusive) and `to` (exclusive) of
//! the period of event time (both optional), and `scope`: `team`, or `all` for the whole archive, in every team's ledger. A hold on
//! one person or thing also has a `subject`. `{"release": {…}}` has the `id` of an active hold, a `reason`, `by` and `at`. `subject`
//! is the HMAC-SHA256 of `annals subject v1` + newline + the subject without white space, U+00AD, U+200B-200F, U+202A-202E, U+2060-2069 and
//! U+FEFF at its ends. An IP address is in its canonical form (RFC 5952), without a zone (`%en0`), and as an IPv4 address if it is mapped to
//! IPv6. Any other subject is in lower case, then in the Unicode form NFC. The key is the bytes of the team's salt of 1970-01. No file contains
//! the subject itself. A hold covers the rows of its period, and all of quarantine, because times in quarantine can be wrong. A row of the
//! inventory counts from its time to the first row of a later month of the same dataset, or without an end if there is none. No line removes or
//! erases rows that a hold covers.
//!
//! **Expired** rows are older than their retention class. A body's `expired` is a list of `{policy, at, dataset, month, files,
//! rows, rows_digest}`. The line removes all live files in the folder of that month (given by its first instant), and adds none in
//! their place. `files`, `rows` and `rows_digest` give their number, their rows and the sum of their digests. `policy` is
//! `<dataset> = <class>`: activity, connections, billing, inventory or quarantine; a number and `d`, `w`, `mo` or `y`. The month is
//! due at its end plus the class. If a window ends after the month, the last row counts as the end. For inventory, the time of the
//! first row of a later month of the same dataset counts as the end, and there must be one. A class adds calendar months and years;
//! if the target month lacks the day, its last day counts. The month is due no later than `at`, and `at` is no later than the
//! line's `at`. All recorded windows of the month are sealed. No hold that is active before the line covers the month. Later lines
//! add no file of events to the month. A session expires with the connections of the month in which the window of its first event
//! begins: the line's `sessions` counts it in `replaced`, and a record of dataset `sessions` with the same month and policy gives the
//! number of such sessions.
//!
//! **Erasure** replaces values in rows. A body's `erased` holds the name of the order, and keyed digests of the subject's values:
//! HMAC-SHA256 of `annals subject v1` + newline + the value, in the form of a hold's subject. The key is the salt of 1970-01. For each
//! removed file the line adds one with the same dataset, role, time and number of rows. `parts` gives sums by dataset: the digest of the removed rows, minus
//! `erased_digest`, plus `replaced_digest`, is the digest of the added rows. So all other rows stay. An order that takes
//! long has several lines. `parts` is empty if the line changes no row: such a line only fences other writers, before the order
//! removes files that no line names. The line does nothing else, and the order removes the replaced files at once. Rewritten rows of events, quarantine and inventory name the orders in `erased`. The identity of such
//! an event is its `served_digest`: HMAC-SHA256, with the same key, of `annals served text v1` + newline + the SHA-256 of its served
//! text. If its `event_id` was a hash of the text, the event gets another id. An order can replace salts: then `salts` names new
//! salts of months that earlier lines named (never 1970-01), and `resalted` is a list of `{path, rows_digest}`. It gives the new
//! row digest of each live file with rows of these months, after the line. These files keep their bytes and hashes. The order
//! removes the old salts, so only hashes and signatures attest the row digests of these months in earlier lines and in the line itself.
//!
//! **Events without text.** With `[privacy] raw = "columns-only"`, `raw` and `payload` of a new row are null, and `served_digest` is the keyed
//! digest of the text, as after an erasure. An `event_id` that would be made of a hash of the text is made of that keyed digest. The record of a
//! window counts such rows in `without_text`; the count never falls. Quarantine keeps its bytes, because its events have no columns.
//!
//! **Inventory files** hold changes: one row for each thing that a read (`seen_at`) found new, changed or gone (`present`
//! false). The first rows of a month repeat (`repeats`) everything that existed, so that one month alone gives the current state.
//!
//! # What always holds
//! - The files that a line adds and the salts that it names are durable before the line is written. A file that no line names is
//!   an orphan file of a failed commit, and holds no data of the archive. A file that a line removes remains for a grace (at least a
//!   day on a local disk), so that readers can finish. It also remains while a version of an open table names it. Then `vacuum`
//!   removes it; its remains are no damage unless a later line erases. So a glob can match more files than are live.
//! - A line is appended on condition that the ledger ends where its writer expects: the last file has the length
//!   that the writer knows, and no file of a later day exists.
//! - The rules of [`TeamState::check`]: windows of a stream never overlap, states never go back, counts never fall,
//!   no row is lost, and a sealed month or day has only sealed files.

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
pub use hold::{
    Hold, HoldAdded, HoldRecord, HoldReleased, HoldScope, Holds, check_hold_id, check_hold_text, covering,
    normal_subject,
};
pub use ledger::{LedgerLine, LineError};
pub use manifest::ARCHIVE_VERSION;
pub use note::{HEADS_BYTES_MAX, Head, NoteSignature, PublicKey, SecretKey, check_key_name};
pub use published::{LEDGERS, LinesFile, TeamHead, version_of, version_path};
pub use reader::{StoredEvent, StoredReject, TeamReader, TeamRows};
pub use record::{
    Body, DeviceDelta, FileEntry, InventoryRead, READ_POINTS_MAX, ReadPoint, ReleasedRecord, SaltRecord, SessionsMark,
    SessionsRecord, SnapshotEntry, StreamRecord, WalkPoint, WindowRecord, WindowState,
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
