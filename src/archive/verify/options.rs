//! The inputs of a verification from outside the archive: remembered heads, known keys and the time.

use std::time::Duration;

use crate::model::{Digest, GRACE_LOCAL, Instant, LedgerSeq, TeamKey, TeamRetention};

use super::{FaultCode, VerifyReport};
use crate::archive::ledger::note::{Head, PublicKey};

/// After this silence, either nobody reads the team, or the end of its ledger was cut off.
const STALE_AFTER: Duration = Duration::from_secs(3 * 86_400);

#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Heads kept elsewhere: the archive must still hold each of them.
    pub heads: Vec<KnownHead>,
    /// Trusted public keys: every signature must come from one of them, or from a key that they handed over to.
    pub keys: Vec<PublicKey>,
    /// The verifier's clock; without it, future times and silence are not reported.
    pub now: Option<Instant>,
    /// The grace for which `vacuum` keeps unnamed files.
    pub grace: Duration,
    /// The configured retention classes, for comparison with the policies of past expiries.
    pub retention: TeamRetention,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { heads: Vec::new(), keys: Vec::new(), now: None, grace: GRACE_LOCAL, retention: TeamRetention::default() }
    }
}

/// A head kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownHead {
    /// The hash of a ledger line.
    Hash(Digest),
    /// The full output of `annals anchor`.
    Note(Head),
}

impl VerifyOptions {
    /// Whether a head can name this line.
    pub(super) fn wants(&self, team: &TeamKey, seq: LedgerSeq, hash: &Digest) -> bool {
        self.heads.iter().any(|given| match given {
            KnownHead::Hash(given) => given == hash,
            KnownHead::Note(head) => head.seq == seq && head.team == *team,
        })
    }

    /// Reports every team whose last commit is long ago.
    pub(super) fn notice_stale_heads(&self, report: &mut VerifyReport) {
        let Some(now) = self.now else { return };
        let last = report.teams.iter().filter_map(|team| Some((team.ledger.clone(), team.last_at?)));
        let stale: Vec<(String, Instant)> = last.filter(|(_, last)| now > last.plus(STALE_AFTER)).collect();
        for (ledger, last) in stale {
            let detail = format!(
                "no commit since {last}: nobody reads the team, or somebody cut off the ledger; a head kept elsewhere shows which"
            );
            report.notice(FaultCode::StaleHead, ledger, detail);
        }
    }
}
