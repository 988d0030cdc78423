//! The signatures of a ledger's heads. If a key is configured, Annals signs the head of every commit.
//!
//! The file `<day>.heads` stands beside the ledger file of the same day, with one line for each signed ledger line: the line's
//! number, its `sha256`, the public key, and the signature as in the note of that head. A rotation line, signed by the
//! old key and the new key, replaces the key.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::model::path::{ArchivePath, ledger_of};
use crate::model::{Digest, Instant, LedgerSeq, TeamKey};
use crate::store::{Store, StoreError, Tail};

use super::ledger_files::{LedgerEnd, ledger_days, lines_of};
use super::line::{GENESIS, LedgerLine, is_zeroed};
use super::note::{Head, NoteSignature, PublicKey, SecretKey};
use super::state::TeamState;
use super::text_lines::{TextLine, TextLines};
use crate::archive::ArchiveError;

const ROTATION: &str = "rotation";
/// What an administrator does about unsigned lines.
pub const SIGN_ALL: &str = "check that only Annals wrote them, stop `annals run`, then run `annals anchor --sign`";

/// One line of a file of signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadLine {
    Signed {
        seq: LedgerSeq,
        hash: Digest,
        key: PublicKey,
        signature: NoteSignature,
    },
    /// From the line after `after` on, `new` signs instead of `old`. Both keys have signed this, with the hash of line `after`.
    Rotation {
        after: LedgerSeq,
        hash: Digest,
        old: PublicKey,
        new: PublicKey,
        signatures: [NoteSignature; 2],
    },
}

impl HeadLine {
    /// The line's text with its newline.
    pub fn encode(&self) -> String {
        match self {
            HeadLine::Signed { seq, hash, key, signature } => {
                format!("{seq} {hash} {key} {}\n", signature.encoded())
            }
            HeadLine::Rotation { after, hash, old, new, signatures: [by_old, by_new] } => {
                format!("{ROTATION} {after} {hash} {old} {new} {} {}\n", by_old.encoded(), by_new.encoded())
            }
        }
    }

    /// Parses a line without its newline.
    ///
    /// # Errors
    /// When the bytes differ from the output of [`HeadLine::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "not text".to_owned())?;
        let parts: Vec<&str> = text.split(' ').collect();
        let number = |text: &str| text.parse().map(LedgerSeq).map_err(|_| "the line number is invalid".to_owned());
        let line = match parts.as_slice() {
            [ROTATION, after, hash, old, new, by_old, by_new] => {
                let (old, new): (PublicKey, PublicKey) = (old.parse()?, new.parse()?);
                let signatures =
                    [NoteSignature::decode(old.name(), by_old)?, NoteSignature::decode(new.name(), by_new)?];
                HeadLine::Rotation { after: number(after)?, hash: hash.parse()?, old, new, signatures }
            }
            [seq, hash, key, signature] => {
                let key: PublicKey = key.parse()?;
                let signature = NoteSignature::decode(key.name(), signature)?;
                HeadLine::Signed { seq: number(seq)?, hash: hash.parse()?, key, signature }
            }
            _ => return Err("the line is neither a signature nor a key rotation".to_owned()),
        };
        match line.encode().trim_end_matches('\n') == text {
            true => Ok(line),
            false => Err("the line is not in canonical form".to_owned()),
        }
    }

    /// The newest ledger line that is signed up to here, and its hash.
    pub fn signed(&self) -> (LedgerSeq, Digest) {
        match self {
            HeadLine::Signed { seq, hash, .. } | HeadLine::Rotation { after: seq, hash, .. } => (*seq, *hash),
        }
    }

    /// The key that signs after this line.
    pub fn key(&self) -> &PublicKey {
        match self {
            HeadLine::Signed { key, .. } | HeadLine::Rotation { new: key, .. } => key,
        }
    }
}

/// The text that both keys sign at a rotation after `head`.
pub fn rotation_text(head: &Head, old: &PublicKey, new: &PublicKey) -> String {
    format!("annals key rotation\n{}{old}\n{new}\n", head.text())
}

/// The key that signs an archive's heads.
#[derive(Debug)]
pub struct Signer {
    pub key: SecretKey,
    /// The previous key, if this key takes over from it.
    pub previous: Option<SecretKey>,
    /// Signs every unsigned line, because an administrator vouches for them. If false: signs only the last line, which an
    /// interruption can leave unsigned.
    pub signs_all: bool,
}

/// Writes a team's signatures.
pub struct HeadsWriter {
    signer: Arc<Signer>,
    archive_id: String,
    team: TeamKey,
    end: LedgerEnd,
    /// The first of several unsigned lines: somebody wrote without the key, so all later lines stay unsigned, too.
    pub(in crate::archive) unsigned_from: Option<LedgerSeq>,
}

impl HeadsWriter {
    /// Opens a team's signatures, if a key is configured. Signs the last line if only this one is unsigned: an interruption leaves no
    /// more. Signs all unsigned lines for [`Signer::signs_all`]. If a line is signed, every line before it is signed, too.
    ///
    /// # Errors
    /// When the store fails, a signed line differs from the ledger, or another key has signed and did not hand over.
    pub fn open(
        store: &dyn Store,
        signer: Option<Arc<Signer>>,
        state: &TeamState,
    ) -> Result<Option<Self>, ArchiveError> {
        let (team, key, seq, head) = (&state.team_id, TeamKey::of(&state.team_id), state.seq, state.head);
        let Some(signer) = signer else {
            if !heads_days(store, &key)?.is_empty() {
                tracing::warn!(
                    %team,
                    "this ledger is signed, but this process has no key: its lines wait for `annals anchor --sign`"
                );
            }
            return Ok(None);
        };
        let (last, end) = recover(store, &key)?;
        let archive_id = state.archive_id.clone();
        let mut writer = Self { signer, archive_id, team: key, end, unsigned_from: None };
        let (signed, hash) = last.as_ref().map_or((LedgerSeq(0), GENESIS), HeadLine::signed);
        // The last line can be unsigned, and another writer of a bucket can have signed a line after the replay.
        let is_held = match end.day.filter(|_| (signed, hash) != (seq, head)) {
            Some(day) if ledger_days(store, &writer.team)?.contains(&day) => {
                lines_of(store, &writer.team, day)?.iter().any(|(line, found)| (line.seq, *found) == (signed, hash))
            }
            other => other.is_none(),
        };
        if !is_held {
            return Err(writer.refused(signed.0, format!("the signed line {signed} differs from the ledger's line")));
        }
        // After a line of another writer, the next append is refused.
        if let Some(last) = last.as_ref().filter(|last| signed <= seq && last.key() != writer.key()) {
            writer.rotate(store, signed, hash, last.key())?;
        }
        writer.unsigned_from = Some(signed.next()).filter(|first| *first < seq && !writer.signer.signs_all);
        if let Some(first) = writer.unsigned_from {
            tracing::error!(%team, "lines {first} to {seq} are not signed, so no later line is signed: {SIGN_ALL}");
        } else if signed < seq {
            writer.sign_lines(store, signed.next()..=seq)?;
        }
        Ok(Some(writer))
    }

    /// Signs lines after the last signature, all lines of a day at once. The caller has replayed and checked them.
    fn sign_lines(&mut self, store: &dyn Store, asked: RangeInclusive<LedgerSeq>) -> Result<(), ArchiveError> {
        let end = self.end.day;
        for day in ledger_days(store, &self.team)?.into_iter().filter(|day| Some(*day) >= end) {
            let lines = lines_of(store, &self.team, day)?;
            let lines: Vec<_> = lines.iter().filter(|(line, _)| asked.contains(&line.seq)).collect();
            if let [(LedgerLine { seq: first, team_id, .. }, _), ..] = lines.as_slice() {
                let signed: String = lines.iter().map(|(line, hash)| self.line(line.seq, *hash).encode()).collect();
                self.append(store, &signed, day)?;
                tracing::warn!(team = %team_id, count = lines.len(), "lines from {first} on had no signature, and are signed now");
            }
        }
        Ok(())
    }

    pub fn key(&self) -> &PublicKey {
        self.signer.key.public()
    }

    /// Signs a line of the ledger, unless earlier ones are unsigned.
    ///
    /// # Errors
    /// When the store fails; the next opening signs the line.
    pub fn sign(&mut self, store: &dyn Store, seq: LedgerSeq, hash: Digest, day: Instant) -> Result<(), StoreError> {
        if self.unsigned_from.is_some() {
            return Ok(());
        }
        self.append(store, &self.line(seq, hash).encode(), day)
    }

    fn line(&self, seq: LedgerSeq, hash: Digest) -> HeadLine {
        let text = Head::new(&self.archive_id, &self.team, seq, hash).text();
        let key = &self.signer.key;
        HeadLine::Signed { seq, hash, key: key.public().clone(), signature: key.sign(&text) }
    }

    fn rotate(
        &mut self,
        store: &dyn Store,
        after: LedgerSeq,
        hash: Digest,
        old: &PublicKey,
    ) -> Result<(), ArchiveError> {
        let new = &self.signer.key;
        let Some(previous) = self.signer.previous.as_ref().filter(|previous| previous.public() == old) else {
            let reason = format!(
                "the heads are signed by {}, but the configured key is {}: name the old key's file in \
                 signing.previous_key_file, so that it hands over",
                old.name(),
                new.public().name()
            );
            return Err(self.refused(after.0, reason));
        };
        let text = rotation_text(&Head::new(&self.archive_id, &self.team, after, hash), old, new.public());
        let signatures = [previous.sign(&text), new.sign(&text)];
        let line = HeadLine::Rotation { after, hash, old: old.clone(), new: new.public().clone(), signatures };
        // It stands in the file of the last signature.
        Ok(self.append(store, &line.encode(), Instant::EARLIEST)?)
    }

    fn append(&mut self, store: &dyn Store, lines: &str, day: Instant) -> Result<(), StoreError> {
        let day = self.end.day.map_or(day, |held| held.max(day));
        let keep = if self.end.day == Some(day) { self.end.len } else { 0 };
        let bytes = lines.as_bytes();
        let path = ArchivePath::Heads { team: self.team.clone(), day }.to_string();
        store.append(&path, Tail { keep, torn: 0 }, bytes)?;
        self.end = LedgerEnd { day: Some(day), len: keep + bytes.len() as u64, torn: 0 };
        Ok(())
    }

    fn refused(&self, line: u64, reason: String) -> ArchiveError {
        ArchiveError::Damaged { path: format!("{}/*.heads", ledger_of(&self.team)), line, reason }
    }
}

/// The days that have signatures, oldest first.
pub fn heads_days(store: &dyn Store, key: &TeamKey) -> Result<Vec<Instant>, StoreError> {
    let days = store.list(&ledger_of(key))?.into_iter().filter_map(|entry| match ArchivePath::parse(&entry.path) {
        Some(ArchivePath::Heads { day, .. }) => Some(day),
        _ => None,
    });
    Ok(days.collect())
}

/// Cuts off a torn signature, which would count as damage before a line of another day, and removes later files without lines.
/// Returns the last line, and its end.
///
/// # Errors
/// When the store fails, or the last whole signature is invalid.
pub fn recover(store: &dyn Store, key: &TeamKey) -> Result<(Option<HeadLine>, LedgerEnd), ArchiveError> {
    let path_of = |day| ArchivePath::Heads { team: key.clone(), day }.to_string();
    for day in heads_days(store, key)?.into_iter().rev() {
        let path = path_of(day);
        let blob = store.read(&path)?;
        let size = blob.size();
        let (mut before, mut last, mut number) = (None, None, 0);
        for line in TextLines::new(&path, blob, 0) {
            let line = line?;
            if line.has_newline {
                (before, last, number) = (last, Some(line), number + 1);
            }
        }
        // A loss of power can leave any bytes in the last line.
        if last.as_ref().is_some_and(|line: &TextLine| is_zeroed(&line.text, line.offset)) {
            last = before;
        }
        let keep = last.as_ref().map_or(0, TextLine::end);
        let found = last.map(|line| HeadLine::decode(&line.text)).transpose();
        let found = found.map_err(|reason| ArchiveError::Damaged { path, line: number, reason })?;
        let end = LedgerEnd { day: Some(day), len: keep, torn: size - keep };
        end.cut(store, path_of)?;
        if found.is_some() {
            return Ok((found, LedgerEnd { torn: 0, ..end }));
        }
    }
    Ok((None, LedgerEnd::default()))
}
