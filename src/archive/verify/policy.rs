//! Rows that went although a hold of the whole archive covered them, which stands in the ledger of another team alone: the
//! team at hand came later.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::{LedgerSeq, Retained, TeamRetention};

use super::super::HoldScope;
use super::super::expired::retained;
use super::super::path::month_of;
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport};

/// Two machines' clocks may differ by this much: the lines of two ledgers are in no other order.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);

/// Says where the configuration has another class than the one by which rows of a team went last. A notice: who changes a
/// policy may have the right to, and nobody but the ledger remembers the one before.
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
                let said = now.unwrap_or_else(|| format!("no class for {of}"));
                let object = format!("{} seq {seq}", report.teams[walk.at].ledger);
                let detail = format!(
                    "rows went under {policy:?}, and the configuration says {said}: the policy was changed since"
                );
                report.notice(FaultCode::PolicyChanged, object, detail);
            }
        }
    }
}

/// Names each expired month that such a hold covered. Holds of the team's own ledger are checked line by line.
pub fn check(walks: &[Walk], report: &mut VerifyReport) {
    for walk in walks {
        let Some(state) = &walk.state else { continue };
        for (seq, record) in state.expired.values() {
            let others = walks.iter().filter(|other| other.key != walk.key).filter_map(|other| other.state.as_ref());
            let holds = others.flat_map(|other| other.holds.values());
            let stood = |hold: &&super::super::Hold| {
                let is_released = hold.released.as_ref().is_some_and(|release| release.at <= record.at);
                hold.added.scope == HoldScope::All
                    && !state.holds.contains_key(&hold.added.id)
                    && hold.added.at.plus(CLOCKS_APART_MAX) <= record.at
                    && !is_released
                    && hold.spans(record.dataset, month_of(record.month))
            };
            for hold in holds.filter(stood) {
                let object = format!("{} seq {seq}", report.teams[walk.at].ledger);
                let (dataset, month, id) = (record.dataset, record.month.month(), &hold.added.id);
                let detail = format!("{dataset} of {month} expired under the hold {id} of the whole archive");
                report.fault(FaultCode::PolicyViolation, object, detail);
            }
        }
    }
}
