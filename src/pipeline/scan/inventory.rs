//! Scans of a team's people and computers: once a day, and when activity reports a change. Scans run after the streams,
//! and their failures do not stop the streams.
//!
//! The ledger records the last scan of each part, and whether the token may see the part. A hidden part does not count as deleted.

use std::collections::BTreeMap;

use crate::api::{ApiError, Computers};
use crate::archive::{ArchiveError, TeamState};
use crate::inventory::{Malformed, ShownParts, computers, sso_users, team, users};
use crate::model::{Dataset, Instant, InventoryPart, InventoryValue, Range, Stream};

use crate::pipeline::error::RoundError;
use crate::pipeline::scan::record::{Scanned, unexpected};
use crate::pipeline::scan::sign_in::ask_users;
use crate::pipeline::scan::{ScanRound, is_old};
use crate::pipeline::settings::ScanMode;
use crate::pipeline::team::TeamContext;

/// A request, and the parts that its answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanRequest {
    Team,
    Computers,
    Users,
    SsoUsers,
}

impl ScanRequest {
    pub const ALL: [ScanRequest; 4] =
        [ScanRequest::Team, ScanRequest::Computers, ScanRequest::Users, ScanRequest::SsoUsers];

    pub const fn parts(self) -> &'static [InventoryPart] {
        match self {
            ScanRequest::Team => &[InventoryPart::Team, InventoryPart::Groups, InventoryPart::Memberships],
            ScanRequest::Computers => &[InventoryPart::Computers, InventoryPart::Grants],
            ScanRequest::Users => &[InventoryPart::Users],
            ScanRequest::SsoUsers => &[InventoryPart::SsoUsers],
        }
    }
}

/// Scans the parts that are due, and commits them. `listed`: the last list of computers of this round.
pub async fn scan_inventory(ctx: &TeamContext, listed: Option<Computers>) -> ScanRound {
    let mut round = ScanRound::default();
    if let Err(error) = scan_due_parts(ctx, listed, &mut round).await {
        round.failures.push(error);
    }
    round
}

async fn scan_due_parts(ctx: &TeamContext, listed: Option<Computers>, round: &mut ScanRound) -> Result<(), RoundError> {
    let settings = &ctx.settings.inventory;
    if settings.scan == ScanMode::Never {
        return Ok(());
    }
    let now = ctx.service().now();
    let has_change = activity_shows_change(ctx, now).await?;
    let are_all_due = settings.scan == ScanMode::Now || has_change;
    let due_of = |state: &TeamState| -> Vec<ScanRequest> {
        let is_due = |ask: &ScanRequest| are_all_due || ask.parts().iter().any(|part| is_old(state, *part, now));
        ScanRequest::ALL.into_iter().filter(is_due).collect()
    };
    let due = ctx.with_state(due_of).await;
    let has_scanned = !due.is_empty();
    if has_scanned {
        let scanned = send_requests(ctx, &due, listed, round).await;
        round.changes += scanned.commit(ctx, now).await?;
    }
    if settings.user_info {
        ask_users(ctx, has_scanned, round).await?;
    }
    Ok(())
}

/// Whether activity since the oldest of the last scans reports more than sign-ins.
async fn activity_shows_change(ctx: &TeamContext, now: Instant) -> Result<bool, ArchiveError> {
    let since = ctx
        .with_state(|state| {
            let asked = ScanRequest::ALL.iter().flat_map(|ask| ask.parts());
            let since = asked.map(|part| state.last_scan(*part).map(|scan| scan.read_at)).min().flatten()?;
            state.files_of(Dataset::Activity).any(|file| file.last.is_some_and(|last| last > since)).then_some(since)
        })
        .await;
    let Some(since) = since else { return Ok(false) };
    let after = |at: Instant| Instant::from_nanos(at.nanos().saturating_add(1));
    // An event with a future date counts when its time comes.
    let range = Range { start: after(since), end: after(now) };
    let types = ctx.with_writer(move |writer| writer.rows().event_types_in(Stream::Activity, range)).await?;
    Ok(types.iter().any(|event_type| may_change_inventory(event_type)))
}

/// Whether an activity event of this type may report a change of people, computers, groups or settings. The types are
/// not documented, so every type does, except plain sign-ins and sign-outs.
fn may_change_inventory(event_type: &str) -> bool {
    let name = event_type.to_ascii_lowercase();
    !["loggedin", "loggedout", "login", "logout", "signedin", "signedout", "signin", "signout"]
        .iter()
        .any(|word| name.contains(word))
}

async fn send_requests(
    ctx: &TeamContext,
    due: &[ScanRequest],
    mut listed: Option<Computers>,
    round: &mut ScanRound,
) -> Scanned {
    let mut scanned = Scanned { is_complete: true, ..Scanned::default() };
    let mut is_whole = true;
    // The team is always read: its answer shows whether the token sees everything.
    for ask in ScanRequest::ALL.into_iter().filter(|ask| *ask == ScanRequest::Team || due.contains(ask)) {
        match send(ctx, ask, is_whole, &mut listed).await {
            Ok(snapshot) => {
                scanned.hidden.extend(ask.parts().iter().filter(|part| !snapshot.parts.contains_key(part)));
                scanned.shown.extend(snapshot.parts.keys());
                is_whole &= ask != ScanRequest::Team || !is_limited(&snapshot);
                scanned.answers.push((None, snapshot));
            }
            Err(error) if !error.is_transient() => {
                tracing::debug!(team = %ctx.team, ?ask, %error, "the token may not see this part of the inventory");
                scanned.hidden.extend(ask.parts());
                is_whole &= ask != ScanRequest::Team;
            }
            Err(error) => round.failures.push(error.into()),
        }
    }
    scanned
}

async fn send(
    ctx: &TeamContext,
    ask: ScanRequest,
    is_whole: bool,
    listed: &mut Option<Computers>,
) -> Result<ShownParts, ApiError> {
    let read = |what: &str, read: Result<ShownParts, Malformed>| read.map_err(|malformed| unexpected(what, &malformed));
    match ask {
        ScanRequest::Team => {
            let view = ctx.source.team(&ctx.team).await?;
            ctx.service().observe(view.at);
            read("the team", team(view.body.whole.text()))
        }
        ScanRequest::Computers => {
            let listed = match listed.take() {
                Some(listed) => listed,
                None => ctx.source.devices(&ctx.team).await?.body,
            };
            read("the team's computers", computers(listed.whole.text(), is_whole))
        }
        ScanRequest::Users => {
            let (what, part) = ("the team's users", InventoryPart::Users);
            let shown = read(what, users(ctx.source.users(&ctx.team).await?.body.text()))?;
            // Every team has an admin. An empty list would make each user look removed.
            let had = ctx.with_state(|state| state.entities(part)).await;
            if had > 0 && shown.parts.get(&part).is_some_and(BTreeMap::is_empty) {
                let detail = format!("an empty list, though the team had {had} users at the last scan");
                return Err(ApiError::Unexpected { what: what.to_owned(), detail });
            }
            Ok(shown)
        }
        ScanRequest::SsoUsers => {
            read("the team's SSO users", sso_users(ctx.source.sso_users(&ctx.team).await?.body.text()))
        }
    }
}

fn is_limited(snapshot: &ShownParts) -> bool {
    let team = snapshot.parts.get(&InventoryPart::Team).and_then(|team| team.values().next());
    team.is_some_and(|values| values.last() == Some(&InventoryValue::Flag(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activity_type_except_plain_sign_ins_may_report_a_change() {
        for name in ["teamUserAddedEvent", "teamSettingsChangedEvent", "teamDeviceRemovedEvent", "somethingNew", ""] {
            assert!(may_change_inventory(name), "{name}");
        }
        for sign_in in ["teamUserLoggedInEvent", "teamUserLoggedOutEvent", "userSignInFailedEvent", "LoginEvent"] {
            assert!(!may_change_inventory(sign_in), "{sign_in}");
        }
    }
}
