//! The signatures of a ledger's heads. If a key is configured, Annals signs the head of every commit.
//!
//! The file `<day>.heads` stands beside the ledger file of the same day, with one line for each signed ledger line: the line's
//! number, its `sha256`, the public key, and the signature as in the note of that head. A rotation line, signed by the
//! old key and the new key, replaces the key.

use std::sync::Arc;

use crate::model::path::{ArchivePath, ledger_of};
use crate::model::{Digest, Instant, LedgerSeq, TeamId, TeamKey};
use crate::store::{Store, StoreError, Tail};

use super::ArchiveError;
use super::ledger_files::{LedgerEnd, ledger_days, lines_of};
use super::note::{Head, NoteSignature, PublicKey, SecretKey};
use super::replay::Replay;
use super::text_lines::{TextLine, TextLines};

const ROTATION: &str = "rotation";

/// One line of a file of signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadLine {
    Signed {
        seq: LedgerSeq,
        hash: Digest,
        key: PublicKey,
        signature: NoteSignature,
    },
    /// From the line after `after` on, `new` signs instead of `old`. Both keys have signed this.
    Rotation {
        after: LedgerSeq,
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
            HeadLine::Rotation { after, old, new, signatures: [by_old, by_new] } => {
                format!("{ROTATION} {after} {old} {new} {} {}\n", by_old.encoded(), by_new.encoded())
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
            [ROTATION, after, old, new, by_old, by_new] => {
                let (old, new): (PublicKey, PublicKey) = (old.parse()?, new.parse()?);
                let signatures =
                    [NoteSignature::decode(old.name(), by_old)?, NoteSignature::decode(new.name(), by_new)?];
                HeadLine::Rotation { after: number(after)?, old, new, signatures }
            }
            [seq, hash, key, signature] => {
                let key: PublicKey = key.parse()?;
                let signature = NoteSignature::decode(key.name(), signature)?;
                HeadLine::Signed { seq: number(seq)?, hash: hash.parse()?, key, signature }
            }
            _ => return Err("the line is neither a signature nor a key rotation".to_owned()),
        };
        if line.encode().trim_end_matches('\n') == text {
            Ok(line)
        } else {
            Err("the line is not in canonical form".to_owned())
        }
    }

    /// The newest ledger line that is signed up to here.
    pub fn seq(&self) -> LedgerSeq {
        match self {
            HeadLine::Signed { seq, .. } => *seq,
            HeadLine::Rotation { after, .. } => *after,
        }
    }

    /// The key that signs after this line.
    pub fn key(&self) -> &PublicKey {
        match self {
            HeadLine::Signed { key, .. } => key,
            HeadLine::Rotation { new, .. } => new,
        }
    }
}

/// The text that both keys sign at a rotation.
pub fn rotation_text(archive_id: &str, team: &TeamKey, after: LedgerSeq, old: &PublicKey, new: &PublicKey) -> String {
    format!("annals key rotation\nannals/{archive_id}/team={team}\n{after}\n{old}\n{new}\n")
}

/// The key that signs an archive's heads.
#[derive(Debug)]
pub struct Signer {
    pub key: SecretKey,
    /// The previous key, if this key takes over from it.
    pub previous: Option<SecretKey>,
}

/// Writes a team's signatures.
pub struct HeadsWriter {
    signer: Arc<Signer>,
    archive_id: String,
    team: TeamKey,
    end: LedgerEnd,
}

impl HeadsWriter {
    /// Opens a team's signatures, and signs all unsigned lines: the last line after an interruption, and all lines that
    /// were written without a key since the last signature.
    ///
    /// # Errors
    /// When the store fails, a signed line differs from the ledger, or another key has signed and did not hand over.
    pub fn open(
        store: &dyn Store,
        signer: Arc<Signer>,
        archive_id: &str,
        team: &TeamId,
        replay: &Replay,
    ) -> Result<Self, ArchiveError> {
        let key = TeamKey::of(team);
        let (last, end) = recover(store, &key)?;
        let mut writer = Self { signer, archive_id: archive_id.to_owned(), team: key, end };
        let signed = last.as_ref().map(HeadLine::seq);
        let head = replay.last.as_ref();
        let is_held = match (&last, head) {
            (Some(HeadLine::Signed { seq, hash, .. }), Some(head)) if *seq == head.seq => *hash == head.hash,
            _ => signed <= head.map(|head| head.seq),
        };
        if !is_held {
            let seq = signed.unwrap_or_default();
            return Err(writer.refused(seq.0, format!("the signed line {seq} differs from the ledger's line")));
        }
        let Some(head) = head else { return Ok(writer) };
        let Some(last) = last else {
            writer.sign(store, head.seq, head.hash, head.day)?;
            return Ok(writer);
        };
        if last.key() != writer.signer.key.public() {
            writer.rotate(store, last.seq(), last.key(), writer.end.day.unwrap_or(head.day))?;
        }
        if last.seq() < head.seq {
            for (seq, hash, day) in lines_after(store, &writer.team, last.seq())? {
                writer.sign(store, seq, hash, day)?;
            }
        }
        Ok(writer)
    }

    pub fn key(&self) -> &PublicKey {
        self.signer.key.public()
    }

    /// Signs a line of the ledger.
    ///
    /// # Errors
    /// When the store fails; the next opening signs the line.
    pub fn sign(&mut self, store: &dyn Store, seq: LedgerSeq, hash: Digest, day: Instant) -> Result<(), StoreError> {
        let text = Head::new(&self.archive_id, &self.team, seq, hash).text();
        let key = &self.signer.key;
        let line = HeadLine::Signed { seq, hash, key: key.public().clone(), signature: key.sign(&text) };
        self.append(store, &line, day)
    }

    fn rotate(
        &mut self,
        store: &dyn Store,
        after: LedgerSeq,
        old: &PublicKey,
        day: Instant,
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
        let text = rotation_text(&self.archive_id, &self.team, after, old, new.public());
        let signatures = [previous.sign(&text), new.sign(&text)];
        let line = HeadLine::Rotation { after, old: old.clone(), new: new.public().clone(), signatures };
        Ok(self.append(store, &line, day)?)
    }

    fn append(&mut self, store: &dyn Store, line: &HeadLine, day: Instant) -> Result<(), StoreError> {
        let day = self.end.day.map_or(day, |held| held.max(day));
        let keep = if self.end.day == Some(day) { self.end.len } else { 0 };
        let bytes = line.encode().into_bytes();
        let path = ArchivePath::Heads { team: self.team.clone(), day }.to_string();
        store.append(&path, Tail { keep, torn: 0 }, &bytes)?;
        self.end = LedgerEnd { day: Some(day), len: keep + bytes.len() as u64, torn: 0 };
        Ok(())
    }

    fn refused(&self, line: u64, reason: String) -> ArchiveError {
        ArchiveError::Damaged { path: format!("{}/*.heads", ledger_of(&self.team)), line, reason }
    }
}

/// The days that have signatures, oldest first.
pub fn heads_days(store: &dyn Store, key: &TeamKey) -> Result<Vec<Instant>, StoreError> {
    let listed = store.list(&ledger_of(key))?;
    let days = listed.iter().filter_map(|entry| match ArchivePath::parse(&entry.path) {
        Some(ArchivePath::Heads { day, .. }) => Some(day),
        _ => None,
    });
    Ok(days.collect())
}

/// Cuts off a torn signature, which would count as damage before a line of another day, and removes later files without lines.
/// Returns the last line, and its end.
pub(super) fn recover(store: &dyn Store, key: &TeamKey) -> Result<(Option<HeadLine>, LedgerEnd), ArchiveError> {
    let path_of = |day| ArchivePath::Heads { team: key.clone(), day }.to_string();
    for day in heads_days(store, key)?.into_iter().rev() {
        let path = path_of(day);
        let blob = store.read(&path)?;
        let size = blob.size();
        let (mut before, mut last, mut number) = (None, None, 0);
        for line in TextLines::new(blob, 0) {
            let line = line.map_err(|fault| fault.at(&path, number + 1))?;
            if line.has_newline {
                (before, last, number) = (last, Some(line), number + 1);
            }
        }
        let decoded = |line: &Option<TextLine>| line.as_ref().map(|line| HeadLine::decode(&line.text));
        let mut found = decoded(&last);
        // A loss of power can leave any bytes in the last line.
        if let (Some(Err(_)), Some(line)) = (&found, &last)
            && super::ledger::is_zeroed(&line.text, line.offset)
        {
            last = before;
            found = decoded(&last);
        }
        let keep = last.as_ref().map_or(0, TextLine::end);
        let found = found.transpose().map_err(|reason| ArchiveError::Damaged { path, line: number, reason })?;
        let end = LedgerEnd { day: Some(day), len: keep, torn: size - keep };
        end.cut(store, path_of)?;
        if found.is_some() {
            return Ok((found, LedgerEnd { torn: 0, ..end }));
        }
    }
    Ok((None, LedgerEnd::default()))
}

/// The ledger lines after `seq`. The caller has replayed and checked all of them.
fn lines_after(
    store: &dyn Store,
    key: &TeamKey,
    seq: LedgerSeq,
) -> Result<Vec<(LedgerSeq, Digest, Instant)>, ArchiveError> {
    let mut found = Vec::new();
    for day in ledger_days(store, key)?.into_iter().rev() {
        let here = lines_of(store, key, day)?;
        let is_enough = here.first().is_some_and(|(first, _)| first.seq <= seq.next());
        let later = here.into_iter().filter(|(line, _)| line.seq > seq);
        found.extend(later.map(|(line, hash)| (line.seq, hash, day)));
        if is_enough {
            break;
        }
    }
    found.sort_by_key(|(seq, _, _)| *seq);
    Ok(found)
}

/// Opens a team's signatures, if a key is configured. After the first signed line, every later line needs a signature.
///
/// # Errors
/// When the store fails, or the existing signatures are invalid.
pub fn heads_of(
    store: &dyn Store,
    signer: Option<Arc<Signer>>,
    archive_id: &str,
    team: &TeamId,
    replay: &Replay,
) -> Result<Option<HeadsWriter>, ArchiveError> {
    if let Some(signer) = signer {
        return Ok(Some(HeadsWriter::open(store, signer, archive_id, team, replay)?));
    }
    if !heads_days(store, &TeamKey::of(team))?.is_empty() {
        tracing::warn!(%team, "the heads of this ledger are signed, and this process has no key: `verify` will say so");
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, history, open, team, writer};
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn the_lines_after_a_head_are_found_across_days() {
        let disk = MemoryStore::new();
        let mut writer = writer(&open(&(Arc::new(disk.clone()) as _)));
        let days = ["2026-11-20", "2026-11-20", "2026-11-21", "2026-11-23", "2026-11-23"];
        for (draft, day) in history().into_iter().zip(days) {
            let _ = writer.commit(draft, at(&format!("{day}T12:00:00Z"))).unwrap();
        }
        for seq in 0..=5 {
            let found = lines_after(&disk, &TeamKey::of(&team()), LedgerSeq(seq)).unwrap();
            let found: Vec<_> = found.into_iter().map(|(seq, _, day)| (seq.0, day)).collect();
            let expected = days.iter().zip(1..).map(|(day, number)| (number, at(&format!("{day}T00:00:00Z"))));
            assert_eq!(found, expected.filter(|(number, _)| *number > seq).collect::<Vec<_>>(), "behind {seq}");
        }
    }
}
