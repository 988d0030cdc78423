//! Looks at a team's people and computers: once a day, and when activity tells of a change. They come after the streams, and
//! nothing that fails here holds those up.
//!
//! When a look is due is decided from the ledger: it says when each part was looked at last, and whether the token may see
//! it. What was not shown is never taken for gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::{ApiError, Computers, EventSource, Unread};
use crate::archive::{ArchiveError, Dataset, Draft, Finding, FindingKind, InventoryRead, TeamState, TeamWriter};
use crate::inventory::{Look, Malformed, Scope, Standing, computers, sso_users, team, users};
use crate::model::{Instant, InventoryPart, InventoryRow, InventoryValue, Range, Stream, TeamId};

use super::RoundError;
use super::context::TeamContext;
use super::settings::{InventorySettings, Looks, Settings};
use super::user_info::{REFUSALS_MAX, ask_users};

/// A look this old is made again: a day, less what a day's run may begin earlier or end later than the one before.
pub const LOOK_AGE: Duration = Duration::from_secs(23 * 3_600);
/// Undocumented fields that are announced of one team.
const UNKNOWN_FIELDS_MAX: usize = 200;

/// What the looks of a round came to.
#[derive(Debug, Default)]
pub struct LookRound {
    /// Rows that tell of something new, changed or gone.
    pub changes: u64,
    /// What could not be looked at; the next round tries again.
    pub failures: Vec<RoundError>,
}

/// What is asked for, and the parts that its answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Team,
    Computers,
    Users,
    SsoUsers,
}

impl Ask {
    const ALL: [Ask; 4] = [Ask::Team, Ask::Computers, Ask::Users, Ask::SsoUsers];

    const fn parts(self) -> &'static [InventoryPart] {
        match self {
            Ask::Team => &[InventoryPart::Team, InventoryPart::Groups, InventoryPart::Memberships],
            Ask::Computers => &[InventoryPart::Computers, InventoryPart::Grants],
            Ask::Users => &[InventoryPart::Users],
            Ask::SsoUsers => &[InventoryPart::SsoUsers],
        }
    }
}

/// Looks at what is due, and commits it.
pub async fn look(ctx: &TeamContext) -> LookRound {
    let mut round = LookRound::default();
    if let Err(error) = look_at_all(ctx, &mut round).await {
        round.failures.push(error);
    }
    round
}

async fn look_at_all(ctx: &TeamContext, round: &mut LookRound) -> Result<(), RoundError> {
    let settings = &ctx.settings.inventory;
    if settings.looks == Looks::Never {
        return Ok(());
    }
    let now = ctx.service().now();
    let is_told = change_told(ctx, now).await?;
    let is_due = |ask: &Ask| {
        settings.looks == Looks::Now
            || is_told
            || ctx.with_state(|state| ask.parts().iter().any(|part| is_old(state, *part, now)))
    };
    let due: Vec<Ask> = Ask::ALL.into_iter().filter(is_due).collect();
    let has_looked = !due.is_empty();
    if has_looked {
        let seen = ask_for(ctx, &due, round).await;
        round.changes += commit_looks(ctx, seen, now).await?;
    }
    if settings.user_info {
        ask_users(ctx, has_looked, round).await?;
    }
    Ok(())
}

/// Requests that the looks of a round would take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LooksPlanned {
    /// About people: these keep to the rate of the looks.
    pub people: u64,
    /// About the team and its computers.
    pub others: u64,
}

/// What the looks of a round would ask for, as far as the ledger tells; `users` where the ledger does not know how many there
/// are.
pub fn looks_planned(state: Option<&TeamState>, users: Option<u64>, settings: &Settings, now: Instant) -> LooksPlanned {
    let inventory = &settings.inventory;
    let is_due = |part| state.is_none_or(|state| is_old(state, part, now));
    let is_asked = |ask: Ask| inventory.looks == Looks::Now || ask.parts().iter().any(|part| is_due(*part));
    if inventory.looks == Looks::Never {
        return LooksPlanned::default();
    }
    let lists = [Ask::Users, Ask::SsoUsers].into_iter().filter(|ask| is_asked(*ask)).count() as u64;
    let told = if inventory.user_info && is_due(InventoryPart::SignIn) { users_to_ask(state, users) } else { 0 };
    // A reading of the connections lists the computers anyway.
    let lists_computers = is_asked(Ask::Computers) && !settings.reads(Stream::Connections);
    let is_any = Ask::ALL.into_iter().any(is_asked);
    LooksPlanned { people: lists + told, others: u64::from(is_any) + u64::from(lists_computers) }
}

/// Users whom a look asks about one by one; where the token may not see the answers, it ends after a few.
fn users_to_ask(state: Option<&TeamState>, listed: Option<u64>) -> u64 {
    let held = state.and_then(|state| state.last_look(InventoryPart::Users)).map(|look| look.entities);
    let is_hidden = state.and_then(|state| state.last_look(InventoryPart::SignIn)).is_some_and(|look| !look.visible);
    let users = held.or(listed).unwrap_or(0);
    if is_hidden { users.min(REFUSALS_MAX as u64) } else { users }
}

/// How many users the team has, asked for where a look will ask about each and the ledger does not know them. `None` where
/// that is no question, or where the token may not see them.
///
/// # Errors
/// When the service does not answer.
pub async fn count_users(
    source: &dyn EventSource,
    team: &TeamId,
    state: Option<&TeamState>,
    settings: &InventorySettings,
) -> Result<Option<u64>, ApiError> {
    let is_known = state.is_some_and(|state| state.last_look(InventoryPart::Users).is_some());
    if settings.looks == Looks::Never || !settings.user_info || is_known {
        return Ok(None);
    }
    let listed = match source.users(team).await {
        Ok(listed) => listed.body,
        Err(error) if error.is_transient() => return Err(error),
        Err(_) => return Ok(None),
    };
    let look = users(listed.text()).map_err(|malformed| unexpected("the team's users", &malformed))?;
    Ok(look.parts.get(&InventoryPart::Users).map(|users| users.len() as u64))
}

/// Whether a part was never looked at, or too long ago. A look that is dated far into the future was made by a clock that
/// nobody believes any more.
pub fn is_old(state: &TeamState, part: InventoryPart, now: Instant) -> bool {
    let is_far = |at: Instant| at.since(now).max(now.since(at)) >= LOOK_AGE;
    state.last_look(part).is_none_or(|look| is_far(look.read_at))
}

/// Whether activity since the oldest of the last looks tells of more than people who signed in.
async fn change_told(ctx: &TeamContext, now: Instant) -> Result<bool, ArchiveError> {
    let since = ctx.with_state(|state| {
        let asked = Ask::ALL.iter().flat_map(|ask| ask.parts());
        let since = asked.map(|part| state.last_look(*part).map(|look| look.read_at)).min().flatten()?;
        state.files_of(Dataset::Activity).any(|file| file.last.is_some_and(|last| last > since)).then_some(since)
    });
    let Some(since) = since else { return Ok(false) };
    let after = |at: Instant| Instant::from_nanos(at.nanos().saturating_add(1));
    // An event dated into the future tells of a change when its time has come.
    let range = Range { start: after(since), end: after(now) };
    let types = ctx.with_writer(move |writer| writer.event_types_in(Stream::Activity, range)).await?;
    Ok(types.iter().any(|event_type| tells_of_change(event_type)))
}

/// Whether an activity event of this type may tell of a change of people, computers, groups or settings. The list of types
/// is not documented, so everything does but what is plainly someone who signs in or out.
fn tells_of_change(event_type: &str) -> bool {
    let name = event_type.to_ascii_lowercase();
    !["loggedin", "loggedout", "login", "logout", "signedin", "signedout", "signin", "signout"]
        .iter()
        .any(|word| name.contains(word))
}

/// What was shown, and the parts that were asked for and not shown.
struct Seen {
    look: Look,
    hidden: BTreeSet<InventoryPart>,
}

async fn ask_for(ctx: &TeamContext, due: &[Ask], round: &mut LookRound) -> Seen {
    let mut seen = Seen { look: Look::default(), hidden: BTreeSet::new() };
    let mut is_whole = true;
    // The team is asked in any case: it tells whether the token sees all.
    for ask in Ask::ALL.into_iter().filter(|ask| *ask == Ask::Team || due.contains(ask)) {
        match ask_one(ctx, ask, is_whole).await {
            Ok(look) => {
                let shown = look.parts.keys().copied().collect::<BTreeSet<_>>();
                seen.hidden.extend(ask.parts().iter().filter(|part| !shown.contains(part)));
                is_whole &= ask != Ask::Team || !is_limited(&look);
                seen.look = std::mem::take(&mut seen.look).with(look);
            }
            Err(error) if !error.is_transient() => {
                tracing::debug!(team = %ctx.team, ?ask, %error, "the token may not see this part of the inventory");
                seen.hidden.extend(ask.parts());
                is_whole &= ask != Ask::Team;
            }
            Err(error) => round.failures.push(error.into()),
        }
    }
    seen
}

async fn ask_one(ctx: &TeamContext, ask: Ask, is_whole: bool) -> Result<Look, ApiError> {
    let read = |what: &str, look: Result<Look, Malformed>| look.map_err(|malformed| unexpected(what, &malformed));
    match ask {
        Ask::Team => {
            let view = ctx.source.team(&ctx.team).await?;
            ctx.service().hear(view.at);
            read("the team", team(view.body.whole.text()))
        }
        Ask::Computers => {
            let listed: Computers = match ctx.take_computers() {
                Some(listed) => listed,
                None => ctx.source.devices(&ctx.team).await?.body,
            };
            read("the team's computers", computers(listed.whole.text(), is_whole))
        }
        Ask::Users => {
            let listed: Unread = ctx.source.users(&ctx.team).await?.body;
            read("the team's users", users(listed.text()))
        }
        Ask::SsoUsers => {
            let listed = ctx.source.sso_users(&ctx.team).await?.body;
            read("the team's SSO users", sso_users(listed.text()))
        }
    }
}

pub fn unexpected(what: &str, malformed: &Malformed) -> ApiError {
    ApiError::Unexpected { what: what.to_owned(), detail: malformed.to_string() }
}

fn is_limited(look: &Look) -> bool {
    let team = look.parts.get(&InventoryPart::Team).and_then(|team| team.values().next());
    team.is_some_and(|values| values.last() == Some(&InventoryValue::Flag(true)))
}

async fn commit_looks(ctx: &TeamContext, seen: Seen, now: Instant) -> Result<u64, ArchiveError> {
    let at = ctx.clock.now();
    ctx.with_writer(move |writer| {
        let standings = standings(writer, seen.look.parts.keys().copied())?;
        let parts = seen.look.parts.keys().chain(&seen.hidden).copied();
        let seen_at = next_moment(writer.state(), parts, standings.values(), now);
        let mut draft = Draft { findings: unknown_fields(writer.state(), &seen.look, seen_at), ..Draft::default() };
        for (part, things) in &seen.look.parts {
            let rows = standings[part].changes(*part, Scope::Whole, things, seen_at.micros());
            draft.inventory.extend((!rows.is_empty()).then_some((*part, rows)));
            draft.inventory_reads.push(looked(*part, seen_at, Some(things.len())));
        }
        draft.inventory_reads.extend(seen.hidden.iter().map(|part| looked(*part, seen_at, None)));
        let changes = changes_in(&draft);
        let _done = writer.commit(draft, at)?;
        Ok(changes)
    })
    .await
}

/// What the archive holds of parts.
///
/// # Errors
/// When a file cannot be read.
pub fn standings(
    writer: &TeamWriter,
    parts: impl IntoIterator<Item = InventoryPart>,
) -> Result<BTreeMap<InventoryPart, Standing>, ArchiveError> {
    parts.into_iter().map(|part| Ok((part, Standing::of(writer.inventory(part)?)))).collect()
}

/// The service's time, or the first microsecond after all that is held, should a clock have been set back.
pub fn next_moment<'a>(
    state: &TeamState,
    parts: impl Iterator<Item = InventoryPart>,
    standings: impl Iterator<Item = &'a Standing>,
    now: Instant,
) -> Instant {
    let looks = parts.filter_map(|part| state.last_look(part)).map(|look| look.read_at.micros());
    let held = looks.chain(standings.filter_map(Standing::seen_to)).max();
    let micros = held.map_or(now.micros(), |held| now.micros().max(held.saturating_add(1)));
    Instant::from_nanos(micros.saturating_mul(1_000))
}

/// The record of a look; `entities`: none where the token may not see the part.
pub fn looked(part: InventoryPart, read_at: Instant, entities: Option<usize>) -> InventoryRead {
    InventoryRead { part, read_at, visible: entities.is_some(), entities: entities.unwrap_or(0) as u64 }
}

pub fn changes_in(draft: &Draft) -> u64 {
    let rows = draft.inventory.iter().flat_map(|(_, rows)| rows);
    rows.filter(|row: &&InventoryRow| !row.repeats).count() as u64
}

/// Fields that are met for the first time.
pub fn unknown_fields(state: &TeamState, look: &Look, found_at: Instant) -> Vec<Finding> {
    let known: BTreeSet<&str> = state
        .findings
        .iter()
        .filter(|(_, finding)| finding.kind == FindingKind::UnknownField)
        .map(|(_, finding)| finding.subject.as_str())
        .collect();
    let finding = |(path, kind, count): (&str, &str, u64)| Finding {
        stream: None,
        kind: FindingKind::UnknownField,
        subject: format!("{path}: {kind}"),
        from: None,
        to: None,
        reason: "not documented, or of another kind than documented: counted, not kept".to_owned(),
        count,
        found_at,
    };
    let new = look.unknown.counts().map(finding).filter(|finding| !known.contains(finding.subject.as_str()));
    new.take(UNKNOWN_FIELDS_MAX.saturating_sub(known.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_plainly_a_sign_in_may_tell_of_a_change() {
        for told in ["teamUserAddedEvent", "teamSettingsChangedEvent", "teamDeviceRemovedEvent", "somethingNew", ""] {
            assert!(tells_of_change(told), "{told}");
        }
        for sign_in in ["teamUserLoggedInEvent", "teamUserLoggedOutEvent", "userSignInFailedEvent", "LoginEvent"] {
            assert!(!tells_of_change(sign_in), "{sign_in}");
        }
    }
}
