//! The requests that the next scan of people and computers needs.

use crate::api::{ApiError, EventSource};
use crate::archive::TeamState;
use crate::inventory::users;
use crate::model::{Instant, InventoryPart, Stream, TeamId};
use crate::pipeline::{InventorySettings, REFUSALS_MAX, ScanMode, ScanRequest, Settings, is_old};

/// Requests that belong to no stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherRequests {
    /// About people: the limit of scans applies to them.
    pub people: u64,
    /// About the teams and their computers.
    pub rest: u64,
}

/// Plans the scan of a round from the ledger. `users`: their number, if the ledger does not know it.
pub fn planned_scan(state: Option<&TeamState>, users: Option<u64>, settings: &Settings, now: Instant) -> OtherRequests {
    let inventory = &settings.inventory;
    let is_due = |part| state.is_none_or(|state| is_old(state, part, now));
    let is_asked = |ask: ScanRequest| inventory.scan == ScanMode::Now || ask.parts().iter().any(|part| is_due(*part));
    if inventory.scan == ScanMode::Never {
        return OtherRequests::default();
    }
    let lists = [ScanRequest::Users, ScanRequest::SsoUsers].into_iter().filter(|ask| is_asked(*ask)).count() as u64;
    let users = if inventory.user_info && is_due(InventoryPart::SignIn) { users_to_ask(state, users) } else { 0 };
    // A reading of connections lists the computers anyway.
    let lists_computers = is_asked(ScanRequest::Computers) && !settings.reads(Stream::Connections);
    let is_any = ScanRequest::ALL.into_iter().any(is_asked);
    OtherRequests { people: lists + users, rest: u64::from(is_any) + u64::from(lists_computers) }
}

/// Users that a scan asks about one by one. If the token may not see the answers, the scan ends after a few.
fn users_to_ask(state: Option<&TeamState>, listed: Option<u64>) -> u64 {
    let held = state.and_then(|state| state.last_scan(InventoryPart::Users)).map(|scan| scan.entities);
    let is_hidden = state.and_then(|state| state.last_scan(InventoryPart::SignIn)).is_some_and(|scan| !scan.visible);
    let users = held.or(listed).unwrap_or(0);
    if is_hidden { users.min(REFUSALS_MAX as u64) } else { users }
}

/// Reads the number of users if a scan will need it and the ledger does not know it. `None` if no scan needs it, or if
/// the token may not see the users.
pub async fn count_users(
    source: &dyn EventSource,
    team: &TeamId,
    state: Option<&TeamState>,
    settings: &InventorySettings,
) -> Result<Option<u64>, ApiError> {
    let is_known = state.is_some_and(|state| state.last_scan(InventoryPart::Users).is_some());
    if settings.scan == ScanMode::Never || !settings.user_info || is_known {
        return Ok(None);
    }
    let listed = match source.users(team).await {
        Ok(listed) => listed.body,
        Err(error) if error.is_transient() => return Err(error),
        Err(_) => return Ok(None),
    };
    let scan = users(listed.text()).map_err(|malformed| ApiError::Unexpected {
        what: "the team's users".to_owned(),
        detail: malformed.to_string(),
    })?;
    Ok(scan.parts.get(&InventoryPart::Users).map(|users| users.len() as u64))
}
