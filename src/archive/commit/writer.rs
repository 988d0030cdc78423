//! A team's only writer, and the two steps of a commit.
//!
//! 1. The files get their final names, become durable, and are read back. No reader sees a file that no line names.
//! 2. One ledger line is appended and becomes durable, on condition that the ledger still ends where the writer expects. This
//!    append is the commit. If a key is configured, the line's head is signed.
//!
//! A failure in step 1 leaves orphan files, which `vacuum` removes later. After a failure in step 2, the writer refuses commits.

use std::time::Duration;

use crate::model::path::ledger_of;
use crate::model::{Instant, LedgerSeq, TeamId, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Guard, Store, StoreError, Tail, put};

use super::draft_rows::{NewWindows, draft_digest, new_windows};
use super::plan::{dropped_paths, plan, released};
use super::stage::write_all;
use crate::archive::ledger::heads::HeadsWriter;
use crate::archive::ledger::ledger_files::{LedgerEnd, ledger_path};
use crate::archive::ledger::line::{KIND_COMMIT, LINE_BYTES_MAX, LINE_VERSION, LedgerLine, day_of_line};
use crate::archive::ledger::replay::{Replay, ReplayFiles};
use crate::archive::ledger::snapshot;
use crate::archive::ledger::state::TeamState;
use crate::archive::manifest::read_manifest;
use crate::archive::reader::TeamRows;
use crate::archive::salts::Salts;
use crate::archive::sessions::Lookup;
use crate::archive::{Archive, ArchiveError, Body, Draft, FileEntry, Finding, FindingKind};

/// The writer refuses a commit that takes longer, and the next round repeats it. So `vacuum` never removes files of a running commit.
pub const COMMIT_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// The outcome of a commit without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Committed {
    /// The writer appended a line.
    Committed { seq: LedgerSeq, files: usize, rows: u64, bytes: u64 },
    /// The last line already holds this draft.
    AlreadyCommitted { seq: LedgerSeq },
    /// The draft was empty, so the writer wrote nothing.
    Nothing,
}

/// Writes one team. On a local disk, a lock keeps other writers out. A bucket has no lock: the conditional append lets one
/// of two writers win, and refuses the other.
pub struct TeamWriter {
    pub(in crate::archive) archive: Archive,
    key: TeamKey,
    state: TeamState,
    end: LedgerEnd,
    heads: Option<HeadsWriter>,
    lookup: Lookup,
    /// The line of the newest snapshot.
    snapshot: LedgerSeq,
    pub(in crate::archive) salts: Salts,
    /// An earlier commit failed in step 2: only opening the team again shows the state of the ledger.
    is_poisoned: bool,
    _guard: Box<dyn Guard>,
}

impl Archive {
    /// Opens the team's only writer, which cuts off a torn line of an earlier writer.
    ///
    /// # Errors
    /// [`ArchiveError::Locked`] when another writer exists; when the store fails or the ledger is invalid.
    pub fn writer(&self, team: &TeamId) -> Result<TeamWriter, ArchiveError> {
        let (store, id) = (self.store().as_ref(), self.id());
        let (key, guard) = (TeamKey::of(team), self.lock(team)?);
        let files = ReplayFiles::list(store, id, team)?;
        let snapshot = snapshot::newest(&files.snapshots);
        let replay = files.replay_for_writing()?;
        if replay.state.seq.0 == 0 {
            if snapshot.0 > 0 {
                return Err(ArchiveError::LedgerLost { path: ledger_of(&key), line: snapshot });
            }
            // The archive can have been moved away: a second ledger would begin in its place.
            read_manifest(store)?.filter(|manifest| manifest.id == id).ok_or(ArchiveError::NotAnArchive)?;
        } else if replay.state.seq < snapshot {
            // No error: somebody can have restored an older ledger, and verify names it.
            tracing::warn!(%team, "{}", snapshot::ahead_of(replay.state.seq, snapshot));
        }
        recover(store, &key, &replay)?;
        let heads = HeadsWriter::open(store, self.signer(), &replay.state)?;
        let Replay { state, last, .. } = replay;
        let salts = Salts::for_writing(store, &state, self.random())?;
        Ok(TeamWriter {
            archive: self.clone(),
            key,
            end: last.map_or_else(LedgerEnd::default, |last| last.end()),
            heads,
            lookup: Lookup::default(),
            snapshot: snapshot.min(state.seq),
            state,
            salts,
            is_poisoned: false,
            _guard: guard,
        })
    }
}

impl TeamWriter {
    pub fn state(&self) -> &TeamState {
        &self.state
    }

    /// The number of lines that have no signature, although a key is configured.
    pub fn unsigned_lines(&self) -> u64 {
        self.heads.as_ref().and_then(|heads| heads.unsigned_from).map_or(0, |first| self.state.seq.0 + 1 - first.0)
    }

    pub(in crate::archive) fn store(&self) -> &dyn Store {
        self.archive.store().as_ref()
    }

    /// The salts of the team's rows. A stage that encodes rows before their commit needs them.
    pub fn salts(&self) -> &Salts {
        &self.salts
    }

    pub fn rows(&self) -> TeamRows<'_> {
        TeamRows { store: self.store(), state: &self.state, lookup: &self.lookup }
    }

    /// Commits a draft as a whole, or not at all. `now` is the machine's clock.
    ///
    /// # Errors
    /// [`ArchiveError::needs_reopen`] tells whether this writer can continue; if it can, the archive is unchanged.
    pub fn commit(&mut self, mut draft: Draft, now: Instant) -> Result<Committed, ArchiveError> {
        if draft.is_empty() && !self.is_poisoned {
            return Ok(Committed::Nothing);
        }
        self.begin_commit()?;
        let team = self.state.team_id.clone();
        let refused = |reason| ArchiveError::Draft { team: team.clone(), reason };
        let windows = new_windows(&team, std::mem::take(&mut draft.rows), &self.salts).map_err(refused)?;
        let digest = draft_digest(&draft, &windows, self.salts.key()?);
        if self.state.draft == Some(digest) {
            return Ok(Committed::AlreadyCommitted { seq: self.state.seq });
        }
        let begun = self.store().now()?;
        let body = self.write_files(draft, windows)?;
        if body == Body::default() {
            return Ok(Committed::Nothing);
        }
        self.commit_files(Body { draft: Some(digest), ..body }, begun, now)
    }

    /// A finding if the clock is behind the last commit. The new line has the earlier time, so only one line reports the change.
    fn clock_regression(&self, now: Instant) -> Option<Finding> {
        let back = self.state.at.filter(|at| now < *at)?.since(now);
        let subject = format!("commit {}", self.state.seq);
        let reason = format!("this machine's clock was set back by at least {} s since this commit", back.as_secs());
        Some(Finding::new(None, FindingKind::ClockRegression, &subject, &reason, now))
    }

    /// The key may have changed since the last commit.
    fn follow_signer(&mut self) -> Result<(), ArchiveError> {
        let signer = self.archive.signer();
        if self.heads.as_ref().map(HeadsWriter::key) != signer.as_ref().map(|signer| signer.key.public()) {
            let (store, id, team) = (self.store(), &self.state.archive_id, &self.state.team_id);
            let replay = ReplayFiles::list(store, id, team)?.replay_for_writing()?;
            self.heads = HeadsWriter::open(store, signer, &replay.state)?;
        }
        Ok(())
    }

    /// Step 1.
    fn write_files(&self, mut draft: Draft, windows: NewWindows) -> Result<Body, ArchiveError> {
        let team = &self.state.team_id;
        let refused = |reason| ArchiveError::Draft { team: team.clone(), reason };
        let released = released(&draft.releases, &self.salts).map_err(refused)?;
        let removes = dropped_paths(&self.state, &draft);
        let (mut planned, sessions) = plan(&self.state, &mut draft, windows, &self.salts).map_err(refused)?;
        let mut body = Body { sessions, released, removes, ..draft.body };
        body.removes.extend(planned.iter().flat_map(|file| &file.inputs).map(|file| file.path.clone()));
        body.removes.sort();
        planned.retain(|file| file.sum().rows > 0);
        body.adds = write_all(self.store(), &self.salts, planned)?;
        Ok(body)
    }

    /// Commits files that were written since `begun`; errors are those of [`TeamWriter::commit`].
    pub(in crate::archive) fn commit_files(
        &mut self,
        body: Body,
        begun: Instant,
        now: Instant,
    ) -> Result<Committed, ArchiveError> {
        let team = self.state.team_id.clone();
        let mut body = Body { salts: self.salts.write_new(self.store())?, ..body };
        body.findings.extend(self.clock_regression(now));
        self.state.check(&body).map_err(|source| ArchiveError::State { team: team.clone(), source })?;
        let age = self.store().now()?.since(begun);
        if age > COMMIT_AGE_MAX {
            return Err(ArchiveError::Stalled { team, minutes: age.as_secs() / 60 });
        }
        self.append_line(body, now)
    }

    /// Refuses a commit after an earlier one failed in step 2, and uses the key that is configured now.
    pub(in crate::archive) fn begin_commit(&mut self) -> Result<(), ArchiveError> {
        if self.is_poisoned {
            return Err(ArchiveError::Poisoned { team: self.state.team_id.clone() });
        }
        self.follow_signer()
    }

    /// Step 2.
    fn append_line(&mut self, body: Body, now: Instant) -> Result<Committed, ArchiveError> {
        let line = LedgerLine {
            v: LINE_VERSION,
            archive_id: self.state.archive_id.clone(),
            team_id: self.state.team_id.clone(),
            seq: self.state.seq.next(),
            prev: self.state.head,
            at: now,
            nonce: self.salts.nonce(),
            kind: KIND_COMMIT.to_owned(),
            body,
        };
        let (bytes, hash) = line.encode();
        if bytes.len() > LINE_BYTES_MAX {
            let is = format!("the commit's ledger line has {} bytes", bytes.len());
            let reason = format!("{is}, more than the limit of {LINE_BYTES_MAX}: commit less at once");
            return Err(ArchiveError::Draft { team: line.team_id, reason });
        }
        let day = day_of_line(now, self.end.day);
        let keep = if self.end.day == Some(day) { self.end.len } else { 0 };
        let path = ledger_path(&self.key, day);
        let keep = match planted::is(Bug::AppendUnfenced) {
            true => self.store().read(&path).map_or(0, |held| held.size()),
            false => keep,
        };
        if planted::is(Bug::LineBeforeFiles) {
            line.body.adds.iter().try_for_each(|file| put(self.store(), &file.path, b""))?;
        }
        let appended = self.check_end(day).and_then(|()| self.store().append(&path, Tail { keep, torn: 0 }, &bytes));
        if let Err(source) = appended {
            return Err(match source.is_fenced() {
                true => self.poison(ArchiveError::Fenced { team: line.team_id, seq: line.seq, source }),
                false if source.is_undone() => source.into(),
                false => self.poison(ArchiveError::Reopen { team: line.team_id, seq: line.seq, source }),
            });
        }
        if planted::is(Bug::ReplacedFilesDeletedAtOnce) {
            line.body.removes.iter().try_for_each(|path| self.store().remove(&[path]))?;
        }
        if let Some(heads) = &mut self.heads
            && let Err(source) = heads.sign(self.archive.store().as_ref(), line.seq, hash, day)
        {
            return Err(self.poison(ArchiveError::Reopen { team: line.team_id, seq: line.seq, source }));
        }
        self.end = LedgerEnd { day: Some(day), len: keep + bytes.len() as u64, torn: 0 };
        self.salts.mark_named(&line.body.salts);
        let (seq, files) = (line.seq, line.body.adds.len());
        let sum = |get: fn(&FileEntry) -> u64| line.body.adds.iter().map(get).sum::<u64>();
        let committed = Committed::Committed { seq, files, rows: sum(|f| f.rows), bytes: sum(|f| f.bytes) };
        self.state.try_follow(line, hash).expect("BUG: the body was checked, and the line was made to follow");
        self.keep_snapshot();
        Ok(committed)
    }

    /// Before a commit begins a new day's file, checks that the last day's file still ends where this writer read it to end.
    fn check_end(&self, day: Instant) -> Result<(), StoreError> {
        let Some(last) = self.end.day.filter(|last| *last < day) else { return Ok(()) };
        let path = ledger_path(&self.key, last);
        let found = self.store().read(&path)?.size();
        match found == self.end.len {
            true => Ok(()),
            false => Err(StoreError::Conflict { path, expected: self.end.len, found }),
        }
    }

    /// Best effort: without a snapshot, readers replay more lines. The first line has one too: it shows that a ledger existed.
    fn keep_snapshot(&mut self) {
        if self.snapshot.0 > 0 && self.state.seq.0 < self.snapshot.0 + self.archive.snapshot_lines {
            return;
        }
        self.snapshot = self.state.seq;
        if let Err(error) = snapshot::keep(self.store(), &self.state, self.end) {
            tracing::info!(team = %self.state.team_id, %error, "cannot write a snapshot of the ledger");
        }
    }

    fn poison(&mut self, error: ArchiveError) -> ArchiveError {
        self.is_poisoned = true;
        error
    }
}

/// Cuts a torn line off the end of a ledger, and syncs the last line: the earlier writer can have died between write and sync.
/// Idempotent.
pub fn recover(store: &dyn Store, key: &TeamKey, replay: &Replay) -> Result<(), StoreError> {
    if !planted::is(Bug::TornLineKept) {
        replay.end.cut(store, |day| ledger_path(key, day))?;
        if replay.end.torn > 0 {
            tracing::warn!(team = %replay.state.team_id, bytes = replay.end.torn, "dropped an unfinished ledger line");
        }
    }
    match &replay.last {
        // A writer syncs a line before it begins a later file.
        Some(last) if replay.end.day == Some(last.day) => {
            let torn = if last.is_unended { last.bytes.len() as u64 - 1 } else { 0 };
            store.append(&ledger_path(key, last.day), Tail { keep: last.offset, torn }, &last.bytes)
        }
        _ => Ok(()),
    }
}
