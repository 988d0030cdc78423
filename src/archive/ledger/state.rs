//! The state of a team after a ledger line. A replay builds it line by line. A commit advances it as a whole, and is checked
//! before anything changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::path::{DataPath, month_of};
use crate::model::{Dataset, DeviceId, Digest, Instant, InventoryPart, LedgerSeq, Stream, TeamId, TeamKey};

use super::line::{GENESIS, KIND_COMMIT, LedgerLine};
use super::rows_sum::RowsSum;
use super::state_error::StateError;
use crate::archive::deletion::hold::{apply_hold, check_holds};
use crate::archive::{
    Body, DeviceDelta, ErasedRecord, Expired, FileEntry, Finding, FindingKind, Holds, InventoryRead, ReviewRecord,
    SaltRecord, SessionsMark, SessionsRecord, StreamRecord, WindowRecord,
};

/// Everything that the ledger says about a team up to one of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamState {
    pub archive_id: String,
    pub team_id: TeamId,
    /// The number of the last line; 0 before the first.
    pub seq: LedgerSeq,
    /// The hash of the last line.
    pub head: Digest,
    /// The time of the last line.
    pub at: Option<Instant>,
    /// Live files by path.
    pub files: BTreeMap<String, FileEntry>,
    /// Windows by stream and start.
    #[serde(with = "crate::archive::ledger::pairs")]
    pub windows: BTreeMap<(Stream, Instant), WindowRecord>,
    pub streams: BTreeMap<Stream, StreamRecord>,
    /// The team's computers in the last list.
    pub devices: BTreeSet<DeviceId>,
    /// Computers that read connections name and that no list has shown, with the last read point before these connections.
    pub unlisted: BTreeMap<DeviceId, Option<Instant>>,
    /// Every computer that any list or event has named.
    pub devices_ever: BTreeSet<DeviceId>,
    /// Findings with their lines, without gaps that a later line withdrew.
    pub findings: Vec<(LedgerSeq, Finding)>,
    pub reviews: Vec<(LedgerSeq, ReviewRecord)>,
    /// Legal holds by id, including released ones.
    pub holds: Holds,
    /// Expired months, by dataset.
    #[serde(with = "crate::archive::ledger::pairs")]
    pub expired: Expired,
    /// Erasure orders, with the line that carried out each.
    pub erased: Vec<(LedgerSeq, ErasedRecord)>,
    /// The first instants of the sealed months.
    pub sealed_months: BTreeSet<(Stream, Instant)>,
    /// The first instants of the sealed days in months that are not sealed.
    pub sealed_days: BTreeSet<(Stream, Instant)>,
    /// The mark of the sessions; `None` before the first sessions.
    pub sessions: Option<SessionsMark>,
    /// The reads of each part of the inventory, oldest first.
    pub inventory: BTreeMap<InventoryPart, Vec<InventoryRead>>,
    /// The SHA-256 of each month's salt file, by the month's first instant.
    pub salts: BTreeMap<Instant, Digest>,
    /// The digest of the last line's draft.
    pub draft: Option<Digest>,
}

impl TeamState {
    /// The state before the first line.
    pub fn genesis(archive_id: impl Into<String>, team_id: TeamId) -> Self {
        Self { archive_id: archive_id.into(), team_id, head: GENESIS, ..Self::default() }
    }

    /// The paths of the salts that lines name.
    pub fn salt_paths(&self) -> impl Iterator<Item = String> {
        let key = TeamKey::of(&self.team_id);
        self.named_salts().map(move |salt| salt.path(&key))
    }

    /// The salts that lines name, by month.
    pub fn named_salts(&self) -> impl Iterator<Item = SaltRecord> {
        self.salts.iter().map(|(month, sha256)| SaltRecord { month: *month, sha256: *sha256 })
    }

    pub(in crate::archive) fn removed_files<'a>(&'a self, body: &'a Body) -> impl Iterator<Item = &'a FileEntry> {
        body.removes.iter().filter_map(|path| self.files.get(path))
    }

    /// Live files of a dataset, sorted by path.
    pub fn files_of(&self, dataset: Dataset) -> impl Iterator<Item = &FileEntry> {
        self.files.values().filter(move |file| file.dataset == dataset)
    }

    /// Gaps that no later line withdrew.
    pub fn gaps(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().map(|(_, finding)| finding).filter(|finding| finding.kind == FindingKind::Gap)
    }

    /// The beginning of a stream's archive; `None` before the backfill. It can lie inside the first window: the plan's span
    /// reaches only a part of that window.
    pub fn begins(&self, stream: Stream) -> Option<Instant> {
        let first = self.streams.get(&stream)?.begins?;
        let begins = self.findings.iter().map(|(_, finding)| finding);
        let begins = begins.filter(|found| found.kind == FindingKind::ArchiveBegins && found.stream == Some(stream));
        Some(begins.filter_map(|found| found.from).min().map_or(first, |from| from.max(first)))
    }

    /// The time from which sessions lack archived events; `None`: they lack none.
    pub fn sessions_lack(&self) -> Option<Instant> {
        match self.sessions {
            Some(mark) => mark.through,
            None => self.files_of(Dataset::Connections).filter_map(|file| file.first).min(),
        }
    }

    pub fn last_scan(&self, part: InventoryPart) -> Option<&InventoryRead> {
        self.inventory.get(&part)?.last()
    }

    /// The number of entries at the last scan that the service did not refuse.
    pub fn entities(&self, part: InventoryPart) -> u64 {
        let shown = self.inventory.get(&part).and_then(|scans| scans.iter().rev().find(|scan| scan.visible));
        shown.map_or(0, |scan| scan.entities)
    }

    /// Applies a ledger line, or returns the broken rule and changes nothing.
    ///
    /// # Errors
    /// When the line is not the next one of this team's chain, or its body breaks a rule.
    pub fn try_follow(&mut self, line: LedgerLine, hash: Digest) -> Result<(), StateError> {
        self.check_link(&line)?;
        self.check_expiry_times(&line)?;
        self.check(&line.body)?;
        self.follow(line, hash);
        Ok(())
    }

    /// Applies a ledger line even if it is invalid, so that verification can continue after damage.
    pub fn follow(&mut self, line: LedgerLine, hash: Digest) {
        self.apply(line.body, line.seq);
        self.seq = line.seq;
        self.head = hash;
        self.at = Some(line.at);
    }

    pub fn check_link(&self, line: &LedgerLine) -> Result<(), StateError> {
        self.broken_links(line).next().map_or(Ok(()), Err)
    }

    /// The rules of the chain that `line` breaks as its next line.
    pub(in crate::archive) fn broken_links(&self, line: &LedgerLine) -> impl Iterator<Item = StateError> + use<> {
        let (seq, next) = (line.seq, self.seq.next());
        let (archive, team) = (|| line.archive_id.clone(), || line.team_id.clone());
        let rules = [
            (line.archive_id != self.archive_id)
                .then(|| StateError::ArchiveId { found: archive(), expected: self.archive_id.clone() }),
            (line.team_id != self.team_id)
                .then(|| StateError::TeamId { found: team(), expected: self.team_id.clone() }),
            (seq != next).then_some(StateError::Seq { found: seq, expected: next }),
            (line.prev != self.head).then_some(StateError::Chain { seq, found: line.prev, expected: self.head }),
            (line.kind != KIND_COMMIT).then(|| StateError::Kind { seq, kind: line.kind.clone() }),
        ];
        rules.into_iter().flatten()
    }

    /// Checks a whole body against the rules of [`StateError`].
    pub fn check(&self, body: &Body) -> Result<(), StateError> {
        let changed = self.check_windows(body)?;
        self.check_files(body)?;
        self.check_salts(body)?;
        check_holds(&self.holds, &body.holds).map_err(StateError::Hold)?;
        self.check_expired(body)?;
        match &body.erased {
            Some(record) => self.check_erased(body, record)?,
            None => check_rows(self, body)?,
        }
        self.check_seals(body, &changed)?;
        self.check_inventory_scans(body)
    }

    fn check_windows<'a>(&self, body: &'a Body) -> Result<BTreeMap<(Stream, Instant), &'a WindowRecord>, StateError> {
        let mut changed = BTreeMap::new();
        for record in &body.windows {
            let (stream, window) = (record.stream, record.range);
            if window.is_empty() {
                return Err(StateError::EmptyWindow { stream, new: window });
            }
            if let Some(held) = self.windows.get(&(stream, window.start)) {
                check_progress(held, record)?;
            }
            if changed.insert((stream, window.start), record).is_some() {
                return Err(StateError::Twice { stream, window });
            }
        }
        for (&key, record) in &changed {
            let held = neighbours(&self.windows, key).map(|r| r.range);
            let new = neighbours(&changed, key).map(|r| r.range);
            if let Some(other) = held.chain(new).find(|other| other.overlaps(&record.range)) {
                return Err(StateError::Overlap { stream: record.stream, new: record.range, held: other });
            }
        }
        Ok(changed)
    }

    fn check_files(&self, body: &Body) -> Result<(), StateError> {
        let mut added = BTreeSet::new();
        for file in &body.adds {
            let path = || file.path.clone();
            let is_ours = DataPath::parse(&file.path).is_some_and(|p| {
                p.dataset == file.dataset && p.role == file.role && p.team == TeamKey::of(&self.team_id)
            });
            if !is_ours {
                return Err(StateError::Path { path: path(), dataset: file.dataset });
            }
            if self.files.contains_key(&file.path) || !added.insert(&file.path) {
                return Err(StateError::NotNew { path: path() });
            }
            if let (Some(first), Some(last)) = (file.first, file.last)
                && first > last
            {
                return Err(StateError::Times { path: path(), first, last });
            }
        }
        let mut removed = BTreeSet::new();
        for path in &body.removes {
            if !self.files.contains_key(path) || !removed.insert(path) {
                return Err(StateError::NotLive { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Checks that the times of one part's reads increase.
    fn check_inventory_scans(&self, body: &Body) -> Result<(), StateError> {
        let mut last: BTreeMap<InventoryPart, Instant> = BTreeMap::new();
        for scan in &body.inventory {
            let held = self.last_scan(scan.part).map(|held| held.read_at);
            let before = last.insert(scan.part, scan.read_at).or(held);
            if let Some(from) = before.filter(|from| scan.read_at <= *from) {
                return Err(StateError::ScanBackwards { part: scan.part, from, to: scan.read_at });
            }
        }
        Ok(())
    }

    fn check_salts(&self, body: &Body) -> Result<(), StateError> {
        let mut named = BTreeSet::new();
        for SaltRecord { month, .. } in &body.salts {
            let month = *month;
            // Only an erasure replaces a salt, and its own rule checks that.
            let is_named = self.salts.contains_key(&month) && body.erased.is_none();
            if month_of(month).start != month || is_named || !named.insert(month) {
                return Err(StateError::Salt { month });
            }
        }
        Ok(())
    }

    /// The computers that exist as far as the ledger knows.
    pub fn computers(&self) -> impl Iterator<Item = &DeviceId> {
        self.devices.iter().chain(self.unlisted.keys())
    }

    fn apply_devices(&mut self, delta: DeviceDelta) {
        self.devices_ever.extend(delta.added.iter().chain(&delta.named).chain(delta.unlisted.keys()).cloned());
        self.unlisted.extend(delta.unlisted);
        self.unlisted.retain(|device, _| !delta.added.contains(device) && !delta.removed.contains(device));
        self.devices.extend(delta.added);
        self.devices.retain(|device| !delta.removed.contains(device));
    }

    pub(in crate::archive) fn apply(&mut self, body: Body, seq: LedgerSeq) {
        for path in &body.removes {
            self.files.remove(path);
        }
        self.files.extend(body.adds.into_iter().map(|file| (file.path.clone(), file)));
        self.windows.extend(body.windows.into_iter().map(|w| ((w.stream, w.range.start), w)));
        self.streams.extend(body.streams);
        let points = body.read_points.into_iter();
        points.for_each(|(stream, point)| self.streams.entry(stream).or_default().push_point(point));
        self.apply_devices(body.devices);
        for finding in body.findings {
            if finding.kind == FindingKind::GapClosed {
                self.findings.retain(|(_, held)| !finding.closes(held));
            }
            self.findings.push((seq, finding));
        }
        self.reviews.extend(body.reviews.into_iter().map(|review| (seq, review)));
        let expired = body.expired.into_iter().map(|record| ((record.dataset, record.month), (seq, record)));
        self.expired.extend(expired);
        body.holds.into_iter().for_each(|record| apply_hold(&mut self.holds, record, seq));
        for resalted in body.erased.iter().flat_map(|record| &record.resalted) {
            if let Some(file) = self.files.get_mut(&resalted.path) {
                file.rows_digest = resalted.rows_digest;
            }
        }
        self.erased.extend(body.erased.map(|record| (seq, record)));
        self.seal(body.sealed_days, body.sealed_months);
        self.sessions = body.sessions.map(|record| record.mark).or(self.sessions);
        for read in body.inventory {
            self.inventory.entry(read.part).or_default().push(read);
        }
        self.salts.extend(body.salts.into_iter().map(|record| (record.month, record.sha256)));
        self.draft = body.draft;
    }
}

/// The stream of a dataset's events; `None` for quarantine, which holds events of all streams.
pub fn stream_of(dataset: Dataset) -> Option<Stream> {
    Stream::ALL.into_iter().find(|stream| Dataset::from(*stream) == dataset)
}

/// The entries of the same stream directly before and after `key`.
fn neighbours<V>(map: &BTreeMap<(Stream, Instant), V>, key: (Stream, Instant)) -> impl Iterator<Item = &V> {
    let before = map.range(..key).next_back();
    let after = map.range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded)).next();
    before.into_iter().chain(after).filter(move |((stream, _), _)| *stream == key.0).map(|(_, v)| v)
}

fn check_progress(held: &WindowRecord, new: &WindowRecord) -> Result<(), StateError> {
    let (stream, window) = (new.stream, new.range);
    if held.range != window {
        return Err(StateError::Resized { stream, new: window, held: held.range });
    }
    if new.state < held.state {
        return Err(StateError::Back { stream, window, from: held.state, to: new.state });
    }
    if new.events < held.events {
        return Err(StateError::FewerEvents { stream, window, from: held.events, to: new.events });
    }
    if new.without_text < held.without_text || new.without_text > new.events {
        let (from, to, events) = (held.without_text, new.without_text, new.events);
        return Err(StateError::WithoutText { stream, window, from, to, events });
    }
    Ok(())
}

/// Rows are never lost: the added files hold all rows of the removed files.
fn check_rows(state: &TeamState, body: &Body) -> Result<(), StateError> {
    let released = check_released(state, body)?;
    for dataset in Dataset::ALL {
        let removed = state.removed_files(body).filter(|file| file.dataset == dataset && !state.expires(body, file));
        let before = RowsSum::of_files(removed);
        let after = RowsSum::of_files(body.adds.iter().filter(|file| file.dataset == dataset));
        let kept = match dataset {
            Dataset::Sessions => {
                check_sessions(body, before, after)?;
                continue;
            }
            Dataset::Quarantine => before.less(released),
            _ => before,
        };
        let (removed, added) = (kept.rows, after.rows);
        if dataset == Dataset::Connections && added > removed && state.sessions.is_some() && body.sessions.is_none() {
            return Err(StateError::SessionsBehind { rows: added - removed });
        }
        if before.rows > 0 && added < removed {
            return Err(StateError::RowsLost { dataset, removed, added });
        }
        if before.rows > 0 && added == removed {
            check_same(dataset, kept, after)?;
        }
    }
    Ok(())
}

fn check_same(dataset: Dataset, before: RowsSum, after: RowsSum) -> Result<(), StateError> {
    if before.digest == after.digest {
        return Ok(());
    }
    let (removed, added) = (before.digest, after.digest);
    Err(StateError::RowsChanged { dataset, rows: after.rows, removed, added })
}

/// Checks released events: the line must gain at least as many rows, and remove the quarantine files that held them.
fn check_released(state: &TeamState, body: &Body) -> Result<RowsSum, StateError> {
    let Some(released) = body.released else { return Ok(RowsSum::default()) };
    let is_event = |file: &&FileEntry| stream_of(file.dataset).is_some();
    let gone = || state.removed_files(body);
    let gained = RowsSum::of_files(body.adds.iter().filter(is_event)).less(RowsSum::of_files(gone().filter(is_event)));
    let left = RowsSum::of_files(gone().filter(|file| file.dataset == Dataset::Quarantine));
    let (rows, gained, left) = (released.rows, gained.rows, left.rows);
    match rows > gained.min(left) {
        true => Err(StateError::Released { rows, gained, left }),
        false => Ok(released),
    }
}

/// Checks that a line replaces only the session rows that it declares as replaced.
fn check_sessions(body: &Body, before: RowsSum, after: RowsSum) -> Result<(), StateError> {
    let (replaced, added) = body.sessions.as_ref().map(SessionsRecord::sums).unwrap_or_default();
    let expected = before.plus(added).less(replaced);
    if replaced.rows > before.rows || expected.rows != after.rows {
        let dataset = Dataset::Sessions;
        return Err(StateError::RowsLost { dataset, removed: expected.rows, added: after.rows });
    }
    check_same(Dataset::Sessions, expected, after)
}
