//! Checks the signatures of a ledger against its lines.

use std::collections::BTreeMap;

use crate::model::{Digest, Instant, LedgerSeq, TeamKey};
use crate::store::{Listed, Store, StoreError};

use super::super::ArchiveError;
use super::report::Signed;
use super::{FaultCode, TeamReport, VerifyReport};
use crate::archive::ledger::heads::{HeadLine, SIGN_ALL, rotation_text};
use crate::archive::ledger::line::is_zeroed;
use crate::archive::ledger::note::{Head, PublicKey};
use crate::archive::ledger::text_lines::TextLines;

/// Opens a day's file of a ledger or of its signatures. It can have any size: a line's length is limited, and after a wrong clock,
/// the file of one day gets the lines of many.
pub fn lines_of_day<'f>(
    store: &dyn Store,
    file: &'f Listed,
    report: &mut VerifyReport,
) -> Result<TextLines<'f>, StoreError> {
    if let Some(what) = &file.irregular {
        report.fault(FaultCode::Unreadable, &file.path, what);
    }
    Ok(TextLines::new(&file.path, store.read(&file.path)?, 0))
}

/// Why a line cannot be read, without its place: the report names the place.
pub fn reason_of(error: ArchiveError) -> String {
    match error {
        ArchiveError::Damaged { reason, .. } => reason,
        other => other.to_string(),
    }
}

/// A valid line of the ledger.
pub struct Signable {
    pub object: String,
    pub seq: LedgerSeq,
    pub hash: Digest,
    pub is_signed: bool,
}

/// One pass over the signatures of a team, day by day.
#[derive(Default)]
pub struct Signatures {
    archive_id: String,
    team: TeamKey,
    /// The keys that signed, in order; each key but the first came by a handover after the line.
    chain: Vec<(LedgerSeq, PublicKey)>,
    /// The newest signed line, and its key.
    signed_to: Option<(Head, PublicKey)>,
    /// Signatures of lines that are missing in the ledger of their day.
    unmatched: Vec<(LedgerSeq, String)>,
    /// Runs of unsigned lines, each with the place of its first line.
    unsigned: Vec<(LedgerSeq, LedgerSeq, String)>,
}

impl Signatures {
    pub fn new(archive_id: &str, team: &TeamKey) -> Self {
        Self { archive_id: archive_id.to_owned(), team: team.clone(), ..Self::default() }
    }

    /// Checks the signatures of one day against the ledger's lines of that day.
    pub fn day(
        &mut self,
        store: &dyn Store,
        file: Option<&Listed>,
        mut lines: Vec<Signable>,
        is_last: bool,
        report: &mut VerifyReport,
    ) {
        if let Some(file) = file {
            self.file(store, file, &mut lines, is_last, report);
        }
        for line in lines.iter().filter(|line| !line.is_signed) {
            match self.unsigned.last_mut() {
                Some((_, last, _)) if last.next() == line.seq => *last = line.seq,
                _ => self.unsigned.push((line.seq, line.seq, line.object.clone())),
            }
        }
    }

    fn file(
        &mut self,
        store: &dyn Store,
        file: &Listed,
        lines: &mut [Signable],
        is_last: bool,
        report: &mut VerifyReport,
    ) {
        let text_lines = match lines_of_day(store, file, report) {
            Ok(text_lines) => text_lines,
            Err(reason) => return report.fault(FaultCode::Unreadable, &file.path, reason),
        };
        let places = lines.iter().enumerate().map(|(at, line)| (line.seq, at)).collect();
        for (line, number) in text_lines.zip(1..) {
            let object = format!("{}:{number}", file.path);
            let line = match line {
                Ok(line) => line,
                Err(error) => return report.fault(FaultCode::Unreadable, object, reason_of(error)),
            };
            if !line.has_newline {
                let code = if is_last { FaultCode::TornTail } else { FaultCode::BadSig };
                return report.fault(code, object, format!("{} bytes of a torn line", line.text.len()));
            }
            match HeadLine::decode(&line.text) {
                Ok(line) => self.line(line, &object, (lines, &places), report),
                Err(_) if is_last && line.is_last && is_zeroed(&line.text, line.offset) => {
                    report.fault(FaultCode::TornTail, &object, "a loss of power left a torn line");
                }
                Err(reason) => report.fault(FaultCode::BadSig, &object, reason),
            }
        }
    }

    fn line(
        &mut self,
        line: HeadLine,
        object: &str,
        (lines, places): (&mut [Signable], &BTreeMap<LedgerSeq, usize>),
        report: &mut VerifyReport,
    ) {
        let (seq, hash) = line.signed();
        let head = Head::new(&self.archive_id, &self.team, seq, hash);
        let before = self.chain.last().map(|(_, key)| key);
        match line {
            HeadLine::Rotation { old, new, signatures: [by_old, by_new], .. } => {
                let text = rotation_text(&head, &old, &new);
                let is_next = self.signed_to.as_ref().is_some_and(|(signed, _)| *signed == head);
                if !is_next || before != Some(&old) {
                    let detail = "the key rotation does not follow the signatures before it";
                    report.fault(FaultCode::BadSig, object, detail);
                } else if !old.verifies(&text, &by_old) || !new.verifies(&text, &by_new) {
                    let detail = "the key rotation lacks a valid signature of both keys";
                    report.fault(FaultCode::BadSig, object, detail);
                }
                self.chain.push((seq, new));
            }
            HeadLine::Signed { key, signature, .. } => {
                if before != Some(&key) {
                    if let Some(before) = before {
                        let detail = format!("signed by {key}, but {} has not handed over to it", before.name());
                        report.fault(FaultCode::UnknownKey, object, detail);
                    }
                    self.chain.push((LedgerSeq(0), key.clone()));
                }
                if !key.verifies(&head.text(), &signature) {
                    let detail = format!("the signature by {} of line {seq} is wrong", key.name());
                    return report.fault(FaultCode::BadSig, object, detail);
                }
                if self.signed_to.as_ref().is_none_or(|(to, _)| to.seq <= seq) {
                    self.signed_to = Some((head, key));
                }
                let Some(found) = places.get(&seq).map(|at| &mut lines[*at]) else {
                    return self.unmatched.push((seq, object.to_owned()));
                };
                found.is_signed = true;
                if found.hash != hash {
                    let detail = format!("line {seq} is {}, but the signature is for {hash}", found.hash);
                    report.fault(FaultCode::BadSig, &found.object, detail);
                }
            }
        }
    }

    /// Draws the conclusions from all signatures. `last` is the number of the ledger's last line.
    pub fn finish(self, last: Option<LedgerSeq>, keys: &[PublicKey], team: &mut TeamReport, report: &mut VerifyReport) {
        for (seq, object) in self.unmatched {
            let (code, detail) = match last {
                Some(last) if seq <= last => (FaultCode::BadSig, format!("line {seq} is missing in its day's ledger")),
                last => {
                    let last = last.unwrap_or_default();
                    (FaultCode::HeadRollback, format!("line {seq} was signed, but the ledger ends with {last}"))
                }
            };
            report.fault(code, object, detail);
        }
        // A key signs every line from the first on, so no line is unsigned before a signed one.
        for (first, end, object) in self.unsigned.into_iter().filter(|_| self.signed_to.is_some()) {
            // The last line can be unsigned: a writer signs it after the append. No writer leaves an earlier line out.
            let (end, is_tail) = (end.0 - u64::from(Some(end) == last), Some(end) == last);
            if first.0 <= end {
                let why = if is_tail { SIGN_ALL } else { "somebody removed their signatures" };
                report.fault(FaultCode::BadSig, object, format!("lines {first} to {end} are not signed: {why}"));
            }
        }
        let given = || keys.iter().map(PublicKey::to_string).collect::<Vec<_>>().join(", ");
        let is_known = self.chain.iter().any(|(_, key)| keys.contains(key));
        let signed_to = self.signed_to.as_ref().map(|(head, _)| head.seq);
        match (self.chain.last(), last) {
            (None, Some(_)) if !keys.is_empty() => {
                let detail = format!("no line is signed, but a public key was given: {SIGN_ALL}");
                report.fault(FaultCode::BadSig, &team.ledger, detail);
            }
            (Some(_), Some(last)) if !keys.is_empty() && is_known && signed_to < Some(last) => {
                let detail = format!("the last line {last} is not signed: it is brand-new, or somebody altered it");
                report.notice(FaultCode::BadSig, &team.ledger, detail);
            }
            (Some((_, key)), _) if !keys.is_empty() && !is_known => {
                let detail = format!("signed by {key}, but the given key is {}", given());
                report.fault(FaultCode::KeyMismatch, &team.ledger, detail);
            }
            _ => {}
        }
        if let Some((head, key)) = self.signed_to {
            let chain = if is_known { self.chain } else { Vec::new() };
            team.signed = Some(Signed { seq: head.seq, key: key.to_string(), is_self_asserted: !is_known, chain });
        }
    }
}

/// The files of a team by day: the ledger file, and the signatures file.
pub type Days<'a> = BTreeMap<Instant, (Option<&'a Listed>, Option<&'a Listed>)>;
