//! Snapshots of a team's state, kept beside the ledger, so that readers need not replay years of it. A snapshot is never the
//! truth: if it is missing or does not fit the ledger, the reader replays everything. A writer hashes the chain up to the
//! snapshot; `verify` replays everything and compares.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::path::{ArchivePath, SNAPSHOTS, snapshots_of};
use crate::model::{Digest, Instant, LedgerSeq, TeamId, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Listed, Store, StoreError, put, read_listed};

use super::ledger_files::{LedgerEnd, ledger_files};
use super::line::LINE_VERSION;
use super::state::TeamState;

/// Lines between two snapshots, unless [`Archive::snapshots_every`](crate::archive::Archive::snapshots_every) sets another number.
/// A query over a thousand teams replays the lines after a thousand snapshots.
pub const SNAPSHOT_LINES: u64 = 100;
/// A snapshot helps only if lines follow it. So the last but one is kept, too.
const KEPT: usize = 2;
/// Larger files are not read: the state of a team after many years has some megabytes.
const BYTES_MAX: u64 = 256 << 20;
const DIGEST_DOMAIN: &str = "annals snapshot v1\n";
const DIGITS: usize = 64;

/// The state after a line, and the end of that line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapshot {
    /// The program that wrote it: another version can derive another state from the same lines.
    program: String,
    line_version: u32,
    state: TeamState,
    day: Instant,
    /// Bytes of the day's file up to the end of the line.
    len: u64,
    /// Bytes of all ledger files of earlier days.
    bytes_before: u64,
}

fn program() -> String {
    concat!("annals ", env!("CARGO_PKG_VERSION")).to_owned()
}

impl Snapshot {
    /// The digest of the content, then the content.
    fn encode(&self) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("BUG: a snapshot has no map with odd keys");
        let digest = Digest::with_domain(DIGEST_DOMAIN, &[&text]);
        [digest.to_string().as_bytes(), b"\n", &text].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (digest, rest) = bytes.split_at_checked(DIGITS)?;
        let text = rest.strip_prefix(b"\n")?;
        let is_whole = digest == Digest::with_domain(DIGEST_DOMAIN, &[text]).to_string().as_bytes()
            || planted::is(Bug::SnapshotUnchecked);
        let snapshot: Self = serde_json::from_slice(text).ok().filter(|_| is_whole)?;
        Some(snapshot).filter(|snapshot| snapshot.program == program() && snapshot.line_version == LINE_VERSION)
    }
}

/// A team's snapshots by the number of their line, oldest first.
pub type Snapshots = BTreeMap<LedgerSeq, Listed>;

pub fn listed(store: &dyn Store, key: &TeamKey) -> Result<Snapshots, StoreError> {
    Ok(by_team(store.list(&snapshots_of(key))?).remove(key).unwrap_or_default())
}

/// The snapshots of every team.
pub fn all_listed(store: &dyn Store) -> Result<BTreeMap<TeamKey, Snapshots>, StoreError> {
    Ok(by_team(store.list(SNAPSHOTS)?))
}

/// The line of the newest snapshot; 0 if none exists.
pub fn newest(snapshots: &Snapshots) -> LedgerSeq {
    snapshots.keys().next_back().copied().unwrap_or(LedgerSeq(0))
}

fn by_team(files: Vec<Listed>) -> BTreeMap<TeamKey, Snapshots> {
    let mut found: BTreeMap<TeamKey, Snapshots> = BTreeMap::new();
    for file in files {
        if let Some(ArchivePath::Snapshot { team, seq }) = ArchivePath::parse(&file.path) {
            found.entry(team).or_default().insert(seq, file);
        }
    }
    found
}

/// Says that a ledger ends before the line of a snapshot.
pub fn ahead_of(last: LedgerSeq, snapshot: LedgerSeq) -> String {
    format!(
        "the ledger ends with line {last}, but a snapshot of line {snapshot} exists: if a copy began here, run annals copy again, else \
         restore the newest ledger, or, if this older one is meant, remove the snapshot"
    )
}

/// Writes a snapshot of the state after the line that ends at `end`, and removes the oldest one.
///
/// # Errors
/// When the store fails; the archive needs no snapshot.
pub fn keep(store: &dyn Store, state: &TeamState, end: LedgerEnd) -> Result<(), StoreError> {
    let key = TeamKey::of(&state.team_id);
    let Some(day) = end.day else { return Ok(()) };
    let bytes_before = bytes_before(&ledger_files(store, &key)?, day);
    let (program, line_version, state) = (program(), LINE_VERSION, state.clone());
    let snapshot = Snapshot { program, line_version, day, len: end.len, bytes_before, state };
    let seq = snapshot.state.seq;
    let path = ArchivePath::Snapshot { team: key.clone(), seq }.to_string();
    put(store, &path, &snapshot.encode())?;
    // A snapshot of a later line belongs to another history: the archive was restored from a copy.
    let (older, later): (Snapshots, Snapshots) = listed(store, &key)?.into_iter().partition(|(of, _)| *of <= seq);
    let surplus = older.len().saturating_sub(KEPT);
    let gone: Vec<&str> = older.values().take(surplus).chain(later.values()).map(|file| file.path.as_str()).collect();
    store.remove(&gone)
}

/// The newest snapshot that fits the ledger's file list and has lines after it: the state, and the end of its line.
pub fn before_the_end(
    store: &dyn Store,
    snapshots: &Snapshots,
    files: &[(Instant, u64)],
    archive_id: &str,
    team: &TeamId,
) -> Option<(TeamState, LedgerEnd)> {
    snapshots.values().rev().take(KEPT).find_map(|file| {
        let snapshot = read(store, file)?;
        let end = LedgerEnd { day: Some(snapshot.day), len: snapshot.len, torn: 0 };
        let is_of_it = snapshot.state.archive_id == archive_id && snapshot.state.team_id == *team;
        let fits = bytes_before(files, snapshot.day) == snapshot.bytes_before
            && continues(files, snapshot.day, snapshot.len)
            || planted::is(Bug::SnapshotAhead);
        (is_of_it && fits).then_some((snapshot.state, end))
    })
}

/// The newest intact snapshots with their paths. Does not check whether they fit the ledger.
pub fn newest_intact(store: &dyn Store, key: &TeamKey) -> Vec<(String, TeamState)> {
    let newest = listed(store, key).unwrap_or_default().into_values().rev().take(KEPT);
    newest.filter_map(|listed| read(store, &listed).map(|found| (listed.path, found.state))).collect()
}

fn read(store: &dyn Store, listed: &Listed) -> Option<Snapshot> {
    let blob = read_listed(store, listed).ok().filter(|blob| blob.size() <= BYTES_MAX)?;
    Snapshot::decode(&blob.to_bytes().ok()?)
}

fn bytes_before(lengths: &[(Instant, u64)], day: Instant) -> u64 {
    lengths.iter().filter(|(of, _)| *of < day).map(|(_, bytes)| bytes).sum()
}

/// Whether the ledger continues after a place in it.
fn continues(lengths: &[(Instant, u64)], day: Instant, len: u64) -> bool {
    let of_day = lengths.iter().find(|(of, _)| *of == day).map(|(_, bytes)| *bytes);
    of_day.is_some_and(|bytes| bytes > len || bytes == len && lengths.iter().any(|(of, _)| *of > day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_continues_after_a_place_if_bytes_or_files_follow() {
        let [first, second, third] = [1, 2, 3].map(|day| Instant::from_seconds(day * 86_400));
        let lengths = [(first, 100), (second, 50)];
        for (day, len, expected) in [
            (first, 99, true),
            (first, 100, true),
            (first, 101, false),
            (second, 49, true),
            (second, 50, false),
            (second, 51, false),
            (third, 0, false),
        ] {
            assert_eq!(continues(&lengths, day, len), expected, "{len} bytes of {}", day.day());
        }
        assert_eq!([first, second, third].map(|day| bytes_before(&lengths, day)), [0, 100, 150]);
    }
}
