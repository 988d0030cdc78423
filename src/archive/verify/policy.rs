//! Finds rows that expired or were erased although a hold of the whole archive covered them. Only the ledger of another team
//! records such a hold, because this team was added later.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::path::month_of;
use crate::model::{Digest, Instant, LedgerSeq, Retained, TeamRetention};

use super::super::{ErasedPart, Hold, HoldScope};
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport};
use crate::archive::deletion::expiry_record::retained;
use crate::archive::ledger::state::TeamState;

/// The maximum clock difference between two machines. Only the clocks order the lines of two ledgers.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);

/// Notes a policy in the configuration that differs from the policy of a team's last expiry. It is a notice, because the
/// change can be legitimate, and only the ledger records the earlier policy.
pub fn notice_changes(walks: &[Walk], retention: &TeamRetention, report: &mut VerifyReport) {
    if retention.is_empty() {
        return;
    }
    for walk in walks {
        let Some(state) = &walk.state else { continue };
        let mut last: BTreeMap<Retained, (LedgerSeq, &str)> = BTreeMap::new();
        for ((dataset, _), (seq, record)) in &state.expired {
            let held = last.entry(retained(*dataset)).or_insert((*seq, &record.policy));
            *held = (*held).max((*seq, &record.policy));
        }
        for (of, (seq, policy)) in last {
            let now = retention.of(&state.team_id).policy(of).map(|policy| policy.to_string());
            if now.as_deref() != Some(policy) {
                let configured = now.unwrap_or_else(|| format!("no class for {of}"));
                let object = format!("{} seq {seq}", report.teams[walk.at].ledger);
                let detail = format!(
                    "rows expired under {policy:?}, but the configuration now has {configured}: somebody changed the policy"
                );
                report.notice(FaultCode::PolicyChanged, object, detail);
            }
        }
    }
}

/// Reports the expired months and the erased rows that such a hold covers. The replay checks the holds of the team's own ledger.
pub fn check(walks: &[Walk], report: &mut VerifyReport) {
    for walk in walks {
        let Some(state) = &walk.state else { continue };
        let ledger = report.teams[walk.at].ledger.clone();
        let mut fault = |seq: LedgerSeq, what: String, hold: &Hold| {
            let detail = format!("{what} although hold {} of the whole archive protects them", hold.added.id);
            report.fault(FaultCode::PolicyViolation, format!("{ledger} seq {seq}"), detail);
        };
        for (seq, record) in state.expired.values() {
            let (dataset, month) = (record.dataset, record.month);
            // The rows can reach into the next month. No line says how far, once their files are gone.
            let holds = foreign_holds(walks, walk, record.at);
            for (_, hold) in holds.filter(|(_, hold)| hold.spans(dataset, month_of(month))) {
                fault(*seq, format!("{dataset} of {} expired", month.month()), hold);
            }
        }
        for (seq, record) in &state.erased {
            for (other, hold) in foreign_holds(walks, walk, record.at) {
                if hold.added.subject.is_some_and(|subject| !is_of_subject(other, &record.order, subject)) {
                    continue;
                }
                let covered = |part: &&ErasedPart| hold.spans(part.dataset, state.period_of_part(part));
                for part in record.parts.iter().filter(covered) {
                    fault(*seq, format!("order {} erased rows of {}", record.order, part.dataset), hold);
                }
            }
        }
    }
}

/// The holds of the whole archive that only other ledgers record, and that were active at this time, each with its ledger.
fn foreign_holds<'a>(
    walks: &'a [Walk],
    walk: &'a Walk,
    at: Instant,
) -> impl Iterator<Item = (&'a TeamState, &'a Hold)> {
    let others = walks.iter().filter(|other| other.key != walk.key).filter_map(|other| other.state.as_ref());
    let holds = others.flat_map(|other| other.holds.values().map(move |hold| (other, hold)));
    holds.filter(move |(_, hold)| {
        let is_own = walk.state.as_ref().is_some_and(|state| state.holds.contains_key(&hold.added.id));
        let is_released = hold.released.as_ref().is_some_and(|release| release.at <= at);
        hold.added.scope == HoldScope::All && !is_own && hold.added.at.plus(CLOCKS_APART_MAX) <= at && !is_released
    })
}

/// Whether an order is about the subject of a hold in the same ledger. Each ledger has its own key, and an order has the same
/// subject in every ledger.
fn is_of_subject(state: &TeamState, order: &str, subject: Digest) -> bool {
    state.erased.iter().any(|(_, record)| record.order == order && record.subjects.contains(&subject))
}
