//! Sealing: a final month becomes one file. Before that, each of its days can become one file.

use std::collections::BTreeMap;

use crate::archive::{ArchiveError, Body, Draft, FileEntry, TeamState, TeamWriter, WindowState};
use crate::config::Partition;
use crate::correlate::SESSION_RULES;
use crate::model::path::{DataPath, SealUnit, month_of};
use crate::model::ranges::merge;
use crate::model::{FileRole, Instant, Range, Stream, saturating_sum};
use crate::pipeline::plan::{edge, windows_in_a_row};
use crate::pipeline::sessions::are_stale;
use crate::pipeline::team::TeamEdges;

/// The most months that one commit seals.
const MONTHS_SEALED_AT_ONCE: usize = 4;
/// The most days that one commit seals.
const DAYS_SEALED_AT_ONCE: usize = 31;
/// The most events of the days that one commit seals: until vacuum, the disk holds old and new files.
const DAYS_EVENTS_MAX: u64 = 1_000_000;
/// The number of files of final windows that triggers a merge: a week, if windows are days.
const JOINED_FILES_MIN: usize = 7;
/// Larger files wait until their month is sealed: reading such a file takes longer than opening it.
const SMALL_FILE_ROWS: u64 = 20_000;
/// A day with this number of rows has a file of its own.
const BUSY_DAY_ROWS: usize = 4_096;

/// Seals final windows at the end of a round: days if the configuration asks for them, then months. A month also takes
/// windows that no day has sealed, so the setting may change at any time. The sessions of a past year become one file.
pub async fn seal(edges: &TeamEdges) -> Result<(), ArchiveError> {
    for stream in Stream::ALL {
        if edges.settings.partition == Partition::Day {
            for days in edges.with_state(|state| days(state, stream)).await {
                let sealed_days = days.iter().map(|day| (stream, *day)).collect();
                commit(edges, Draft::from(Body { sealed_days, ..Body::default() })).await?;
            }
        }
        for months in
            edges.with_state(|state| final_units(state, stream, SealUnit::Month)).await.chunks(MONTHS_SEALED_AT_ONCE)
        {
            let sealed_months = months.iter().map(|month| (stream, *month)).collect();
            commit(edges, Draft::from(Body { sealed_months, ..Body::default() })).await?;
        }
        if edges.settings.partition == Partition::Month {
            for paths in edges.with_state(|state| small_files(state, stream)).await {
                commit(edges, Draft { join_windows: vec![(stream, paths)], ..Draft::default() }).await?;
            }
        }
    }
    // Lagging sessions are written to files of months first.
    let years = edges.with_state(|state| if are_stale(state) { Vec::new() } else { state.years_to_join() }).await;
    for year in years {
        commit(edges, Draft { join_years: vec![year], ..Draft::default() }).await?;
    }
    Ok(())
}

async fn commit(edges: &TeamEdges, draft: Draft) -> Result<(), ArchiveError> {
    let now = edges.clock.now();
    let (body, years) = (draft.body.clone(), draft.join_years.clone());
    let done = edges.with_writer(move |writer| writer.commit(draft, now)).await?;
    tracing::debug!(team = %edges.team, days = ?body.sealed_days, months = ?body.sealed_months, ?years, ?done, "sealed");
    Ok(())
}

/// Seals the first final month during a backfill. After a failure, the end of the round tries again and reports it.
///
/// # Errors
/// When the writer cannot be used any more.
pub fn seal_final_month(writer: &mut TeamWriter, partition: Partition, now: Instant) -> Result<(), ArchiveError> {
    let Some(month) = final_month(writer.state(), partition) else { return Ok(()) };
    let team = writer.state().team_id.clone();
    match writer.commit(Draft::from(Body { sealed_months: vec![month], ..Body::default() }), now) {
        Ok(done) => tracing::debug!(%team, ?month, ?done, "sealed"),
        Err(error) if error.needs_reopen() => return Err(error),
        Err(error) => tracing::warn!(%team, ?month, %error, "not sealed; the end of the round tries again"),
    }
    Ok(())
}

/// The first final month of a backfill with complete sessions. Days are sealed at the end of the round.
fn final_month(state: &TeamState, partition: Partition) -> Option<(Stream, Range)> {
    let through = state.sessions.filter(|mark| mark.rules == SESSION_RULES && mark.until.is_some())?.through?;
    let months = || final_units(state, Stream::Connections, SealUnit::Month);
    let month = (partition == Partition::Month).then(months)?.into_iter().find(|month| month.end <= through)?;
    Some((Stream::Connections, month))
}

/// The days to seal, by commit.
fn days(state: &TeamState, stream: Stream) -> Vec<Vec<Range>> {
    let mut commits: Vec<Vec<Range>> = Vec::new();
    let mut events = 0;
    for day in final_units(state, stream, SealUnit::Day) {
        let windows = state.windows.range((stream, day.start)..(stream, day.end));
        let of_day = saturating_sum(windows.map(|(_, window)| window.events));
        events = of_day.saturating_add(events);
        match commits.last_mut() {
            Some(days) if days.len() < DAYS_SEALED_AT_ONCE && events <= DAYS_EVENTS_MAX => days.push(day),
            _ => {
                commits.push(vec![day]);
                events = of_day;
            }
        }
    }
    commits
}

/// Small files of final windows, by month, for months with several of them. They become one file until their month is sealed.
fn small_files(state: &TeamState, stream: Stream) -> Vec<Vec<String>> {
    let is_small = |file: &&FileEntry| file.role == FileRole::Window && file.rows <= SMALL_FILE_ROWS;
    let files: Vec<&FileEntry> = state.files_of(stream.into()).filter(is_small).collect();
    if files.len() < JOINED_FILES_MIN {
        return Vec::new();
    }
    let Some(begins) = state.streams.get(&stream).and_then(|record| record.begins) else { return Vec::new() };
    let edge = sealed_edge(state, stream, begins);
    let mut months: BTreeMap<Instant, Vec<String>> = BTreeMap::new();
    for file in files {
        let start = DataPath::parse(&file.path).map(|data| data.start);
        if let Some(start) = start.filter(|start| *start < edge) {
            months.entry(month_of(start).start).or_default().push(file.path.clone());
        }
    }
    months.into_values().filter(|paths| paths.len() >= JOINED_FILES_MIN).collect()
}

/// The final busy days that a draft reads as a whole. Their commit seals them, so no month writes them again.
pub fn busy_days(state: &TeamState, draft: &Draft) -> Vec<(Stream, Range)> {
    let mut days: BTreeMap<(Stream, Range), usize> = BTreeMap::new();
    for new in &draft.rows {
        *days.entry((new.stream, SealUnit::Day.of(new.window.start))).or_default() += new.rows.len();
    }
    days.retain(|(stream, day), rows| {
        let windows = draft.body.windows.iter().filter(|new| new.stream == *stream && day.owns(new.range.start));
        let is_final = windows.clone().all(|window| window.state == WindowState::Sealed);
        let is_whole = merge(windows.map(|window| window.range)) == [*day];
        let is_new = state.windows.range((*stream, day.start)..(*stream, day.end)).next().is_none();
        *rows >= BUSY_DAY_ROWS && is_final && is_whole && is_new && !state.is_sealed(SealUnit::Day, *stream, day.start)
    });
    days.into_keys().collect()
}

/// Unsealed months or days before the first window that is not sealed. A day that shares a file with other days is
/// sealed with its month.
fn final_units(state: &TeamState, stream: Stream, unit: SealUnit) -> Vec<Range> {
    let Some(begins) = state.streams.get(&stream).and_then(|record| record.begins) else { return Vec::new() };
    let edge = sealed_edge(state, stream, begins);
    let all = windows_in_a_row(state, stream, begins).map(|window| unit.of(window.range.start));
    let mut units: Vec<Range> = all.take_while(|range| range.end <= edge).collect();
    units.dedup();
    let is_shared = |range: &Range| unit == SealUnit::Day && is_shared(state, stream, *range);
    units.retain(|range| !state.is_sealed(unit, stream, range.start) && !is_shared(range));
    units
}

/// The end of the consecutive sealed windows from `begins` on.
fn sealed_edge(state: &TeamState, stream: Stream, begins: Instant) -> Instant {
    edge(state, stream, begins, |window| window.state == WindowState::Sealed)
}

/// Whether windows of this day share a file with windows of another day.
fn is_shared(state: &TeamState, stream: Stream, day: Range) -> bool {
    let windows = state.files_of(stream.into()).filter(|file| file.role == FileRole::Window);
    let mut times = windows.filter_map(|file| Some((SealUnit::Day.of(DataPath::parse(&file.path)?.start), file.last?)));
    times.any(|(first, last)| {
        first.start <= day.start
            && day.start <= last
            && first.end <= last
            && state.windows.range((stream, first.end)..=(stream, last)).next().is_some()
    })
}

#[cfg(test)]
mod tests;
