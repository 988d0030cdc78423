//! The sign-in info of each user: one request a user, at the rate of scans, committed in small batches.
//!
//! Each user's row has the time of its last reading, so an interrupted scan continues with the remaining users.

use std::collections::BTreeSet;

use crate::archive::ArchiveError;
use crate::inventory::{ShownParts, user_info};
use crate::model::InventoryPart;

use crate::pipeline::error::RoundError;
use crate::pipeline::scan::record::{Scanned, archived_parts, unexpected};
use crate::pipeline::scan::{SCAN_AGE, ScanRound, is_old};
use crate::pipeline::team::TeamContext;

/// After this number of refusals without an answer, the scan assumes that the token may not see any user's sign-in info.
pub const REFUSALS_MAX: usize = 3;
const PARTS: [InventoryPart; 2] = [InventoryPart::SignIn, InventoryPart::Tokens];
/// Answers per commit.
const USERS_A_COMMIT: usize = 50;
/// After this number of failures in a row, the scan stops until the next round.
const FAILURES_MAX: usize = 3;

/// The end of the requests about users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    All,
    /// The token may not see the info.
    Hidden,
    /// Interrupted. The next round continues.
    Cut,
}

/// Reads the sign-in info of the users that are due. `has_scanned`: the list of users is new.
///
/// # Errors
/// When the archive cannot be written. Failures of the service are in the round.
pub async fn ask_users(ctx: &TeamContext, has_scanned: bool, round: &mut ScanRound) -> Result<(), RoundError> {
    let now = ctx.service().now();
    let is_due = ctx.with_state(|state| is_old(state, InventoryPart::SignIn, now)).await;
    let is_hidden =
        ctx.with_state(|state| state.last_scan(InventoryPart::SignIn).is_some_and(|scan| !scan.visible)).await;
    if !is_due && (!has_scanned || is_hidden) {
        return Ok(());
    }
    // If nobody's info was visible, the scan begins with other users each day: the service may refuse the same users for ever.
    let day = usize::try_from(now.seconds() / 86_400).unwrap_or(0);
    let first = if is_hidden { day } else { 0 };
    let (users, waiting) = ctx
        .with_writer(move |writer| {
            let held = archived_parts(writer, [InventoryPart::Users, InventoryPart::SignIn])?;
            let users: BTreeSet<String> =
                held[&InventoryPart::Users].keys().filter_map(|key| key.first().cloned()).collect();
            let waiting = held[&InventoryPart::SignIn].users_due(&users, now.minus(SCAN_AGE), (REFUSALS_MAX, first));
            Ok((users, waiting))
        })
        .await?;
    if users.is_empty() || (waiting.is_empty() && !is_due) {
        return Ok(());
    }
    // A user without an answer says nothing about the others. A user with a new row shows that the token may see the info.
    let enough = if waiting.len() < users.len() { usize::MAX } else { REFUSALS_MAX.min(users.len()) };
    let end = ask_each(ctx, waiting, enough, round).await?;
    if end != End::Cut {
        commit(ctx, Vec::new(), Some(end)).await?;
    }
    Ok(())
}

/// Requests each user of `waiting`. After `enough` refusals without an answer, it assumes that the token may not see the info.
async fn ask_each(
    ctx: &TeamContext,
    waiting: Vec<String>,
    enough: usize,
    round: &mut ScanRound,
) -> Result<End, RoundError> {
    let mut answers = Vec::new();
    let (mut answered, mut refusals, mut failures, mut is_cut) = (0, 0, 0, false);
    let mut waiting = waiting.into_iter();
    let end = loop {
        let Some(user) = waiting.next() else { break if is_cut { End::Cut } else { End::All } };
        match ask(ctx, &user).await {
            Ok(snapshot) => {
                answers.push((Some(user), snapshot));
                (answered, failures) = (answered + 1, 0);
            }
            Err(error) if !error.is_transient() => {
                tracing::debug!(team = %ctx.team, %error, "no authentication info of a user");
                refusals += 1;
            }
            Err(error) => {
                round.failures.push(error.into());
                (failures, is_cut) = (failures + 1, true);
            }
        }
        if answered == 0 && refusals >= enough {
            break End::Hidden;
        } else if failures >= FAILURES_MAX {
            break End::Cut;
        } else if !waiting.as_slice().is_empty() && ctx.is_out_of_time() {
            // The next run continues: the team's events must not wait.
            ctx.leave_rest(None);
            break End::Cut;
        }
        if answers.len() >= USERS_A_COMMIT {
            round.changes += commit(ctx, std::mem::take(&mut answers), None).await?;
        }
    };
    round.changes += commit(ctx, answers, None).await?;
    Ok(end)
}

async fn ask(ctx: &TeamContext, user: &str) -> Result<ShownParts, crate::api::ApiError> {
    let served = ctx.source.user_info(&ctx.team, user).await?;
    ctx.service().observe(served.at);
    user_info(user, served.body.text()).map_err(|malformed| unexpected("a user's authentication info", &malformed))
}

/// Commits answers. With `end`, it also commits the record of a complete scan.
async fn commit(
    ctx: &TeamContext,
    answers: Vec<(Option<String>, ShownParts)>,
    end: Option<End>,
) -> Result<u64, ArchiveError> {
    let scanned = match end {
        Some(End::Hidden) => Scanned { hidden: PARTS.into(), ..Scanned::default() },
        _ => Scanned { answers, shown: PARTS.into(), is_complete: end == Some(End::All), ..Scanned::default() },
    };
    scanned.commit(ctx, ctx.service().now()).await
}
