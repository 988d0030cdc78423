//! Finds rows that expired although a hold of the whole archive covered them. Only the ledger of another team records such a
//! hold, because this team was added later.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::path::month_of;
use crate::model::{LedgerSeq, Retained, TeamRetention};

use super::super::HoldScope;
use super::super::expired::retained;
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport};

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

/// Reports each expired month that such a hold covers. The replay checks the holds of the team's own ledger.
pub fn check(walks: &[Walk], report: &mut VerifyReport) {
    for walk in walks {
        let Some(state) = &walk.state else { continue };
        for (seq, record) in state.expired.values() {
            let others = walks.iter().filter(|other| other.key != walk.key).filter_map(|other| other.state.as_ref());
            let holds = others.flat_map(|other| other.holds.values());
            let was_active = |hold: &&super::super::Hold| {
                let is_released = hold.released.as_ref().is_some_and(|release| release.at <= record.at);
                hold.added.scope == HoldScope::All
                    && !state.holds.contains_key(&hold.added.id)
                    && hold.added.at.plus(CLOCKS_APART_MAX) <= record.at
                    && !is_released
                    && hold.spans(record.dataset, month_of(record.month))
            };
            for hold in holds.filter(was_active) {
                let object = format!("{} seq {seq}", report.teams[walk.at].ledger);
                let (dataset, month, id) = (record.dataset, record.month.month(), &hold.added.id);
                let detail =
                    format!("{dataset} of {month} expired although hold {id} of the whole archive protects them");
                report.fault(FaultCode::PolicyViolation, object, detail);
            }
        }
    }
}
