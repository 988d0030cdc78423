//! Checks heads that were kept elsewhere against the ledgers.

use crate::model::{Digest, LedgerSeq};

use super::ledgers::Walk;
use super::options::{KnownHead, VerifyOptions};
use super::{Anchored, FaultCode, VerifyReport};
use crate::archive::ledger::note::{Head, PublicKey};

impl VerifyOptions {
    /// Checks every given head against the ledgers.
    pub(super) fn check_heads(&self, walks: &[Walk], report: &mut VerifyReport) {
        for head in &self.heads {
            match head {
                KnownHead::Hash(hash) => check_hash(hash, walks, report),
                KnownHead::Note(head) => self.check_note(head, walks, report),
            }
        }
    }

    fn check_note(&self, head: &Head, walks: &[Walk], report: &mut VerifyReport) {
        let object = head.origin();
        if let Some(id) = report.archive_id.as_ref().filter(|id| **id != head.archive_id) {
            let detail = format!("the head belongs to another archive, this is archive {id}");
            return report.fault(FaultCode::ArchiveId, object, detail);
        }
        let walk = walks.iter().find(|walk| walk.key == head.team);
        let signed = walk.and_then(|walk| report.teams[walk.at].signed.clone());
        self.check_signatures(head, &signed.map_or_else(Vec::new, |signed| signed.chain), report);
        let Some(walk) = walk else {
            return report.fault(FaultCode::HeadRollback, object, "the archive has no ledger of that team");
        };
        let last = walk.state.as_ref().map_or(LedgerSeq(0), |state| state.seq);
        match walk.anchored_lines.get(&head.hash) {
            Some(found) if found.seq == head.seq => anchor(walk, *found, report),
            _ if last < head.seq => {
                let detail = format!(
                    "the head names seq {}, but the ledger ends with {last}: somebody cut off its end",
                    head.seq
                );
                report.fault(FaultCode::HeadRollback, object, detail);
            }
            _ => {
                let other = walk.anchored_lines.iter().find(|(_, found)| found.seq == head.seq).map(|(hash, _)| *hash);
                let other = other.map_or_else(|| "invalid".to_owned(), |hash| hash.to_string());
                let detail =
                    format!("line {} was {} when the head was taken, but now it is {other}", head.seq, head.hash);
                report.fault(FaultCode::Fork, object, detail);
            }
        }
    }

    /// Checks that a trusted key signed the head: a given key, or a key of its chain that had not handed over before that line.
    fn check_signatures(&self, head: &Head, chain: &[(LedgerSeq, PublicKey)], report: &mut VerifyReport) {
        let object = head.origin();
        if self.keys.is_empty() {
            if !head.signatures.is_empty() {
                let detail = "the head is signed, but no public key was given to check it (--key)";
                report.notice(FaultCode::UnknownKey, object, detail);
            }
            return;
        }
        let mut is_signed = false;
        let given = &self.keys;
        let ended = chain.partition_point(|(after, _)| *after < head.seq).saturating_sub(1);
        let joined = chain[ended..].iter().map(|(_, key)| key).filter(|key| !given.contains(key));
        let pairs = given.iter().chain(joined).flat_map(|key| head.signatures.iter().map(move |s| (key, s)));
        for (key, signature) in pairs.filter(|(key, signature)| signature.is_of(key)) {
            is_signed = true;
            if !key.verifies(&head.text(), signature) {
                let detail = format!("the signature of line {} by {} is wrong", head.seq, key.name());
                report.fault(FaultCode::BadSig, &object, detail);
            }
        }
        match (is_signed, head.signatures.first()) {
            (true, _) => {}
            (false, None) => {
                report.fault(FaultCode::BadSig, object, "the head is not signed, but a public key was given");
            }
            (false, Some(other)) => {
                let detail =
                    format!("signed by {} with key {:08x}, which is not among the given keys", other.name, other.id);
                report.fault(FaultCode::UnknownKey, object, detail);
            }
        }
    }
}

fn check_hash(hash: &Digest, walks: &[Walk], report: &mut VerifyReport) {
    let found = walks.iter().find_map(|walk| walk.anchored_lines.get(hash).map(|found| (walk, *found)));
    match found {
        Some((walk, found)) => anchor(walk, found, report),
        None => {
            let detail = "no ledger line has this hash: somebody removed the line and all lines after it";
            report.fault(FaultCode::HeadRollback, hash, detail);
        }
    }
}

fn anchor(walk: &Walk, found: Anchored, report: &mut VerifyReport) {
    let held = &mut report.teams[walk.at].anchored;
    if held.is_none_or(|held| held.seq < found.seq) {
        *held = Some(found);
    }
}
