//! The end of a round: what is final is sealed.

use crate::archive::{ArchiveError, Draft, SealUnit};
use crate::config::Partition;
use crate::model::Stream;

use super::commit::seal::{MONTHS_SEALED_AT_ONCE, days, final_units, small_files};
use super::sessions::update::are_stale;
use super::team::context::TeamContext;

/// Seals what is final: days where they are asked for, then months. A month takes what its days have left, so that the
/// setting may change at any time. Of years that are over, the sessions become one file.
pub async fn seal(ctx: &TeamContext) -> Result<(), ArchiveError> {
    for stream in Stream::ALL {
        if ctx.settings.partition == Partition::Day {
            for days in ctx.with_state(|state| days(state, stream)) {
                let seal_days = days.iter().map(|day| (stream, *day)).collect();
                commit(ctx, Draft { seal_days, ..Draft::default() }).await?;
            }
        }
        for months in ctx.with_state(|state| final_units(state, stream, SealUnit::Month)).chunks(MONTHS_SEALED_AT_ONCE)
        {
            let seal_months = months.iter().map(|month| (stream, *month)).collect();
            commit(ctx, Draft { seal_months, ..Draft::default() }).await?;
        }
        if ctx.settings.partition == Partition::Month {
            for paths in ctx.with_state(|state| small_files(state, stream)) {
                commit(ctx, Draft { join_windows: vec![(stream, paths)], ..Draft::default() }).await?;
            }
        }
    }
    // Sessions that are behind are going to come in files of months.
    let years = ctx.with_state(|state| if are_stale(state) { Vec::new() } else { state.years_to_join() });
    for year in years {
        commit(ctx, Draft { join_years: vec![year], ..Draft::default() }).await?;
    }
    Ok(())
}

async fn commit(ctx: &TeamContext, draft: Draft) -> Result<(), ArchiveError> {
    let now = ctx.clock.now();
    let (days, months, years) = (draft.seal_days.clone(), draft.seal_months.clone(), draft.join_years.clone());
    let done = ctx.with_writer(move |writer| writer.commit(draft, now)).await?;
    tracing::debug!(team = %ctx.team, ?days, ?months, ?years, ?done, "sealed");
    Ok(())
}
