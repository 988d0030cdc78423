//! The calendar of coverage: a lane for each stream, a cell for each day.

use std::time::Duration;

use jiff::ToSpan;

use crate::archive::WindowState;
use crate::model::{Instant, Range};
use crate::report::output::chart::{CellState, CoverageCalendar, Drawing};
use crate::report::statement::coverage::StreamCoverage;
use crate::report::views::data::ViewData;
use crate::report::{About, Zone};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY_S: i64 = 86_400;
/// Maximum number of cells in a lane.
const CELLS_MAX: i64 = 124;

/// Draws the coverage of `period`.
pub fn coverage_calendar(data: &ViewData, about: &About, period: Range, zone: &Zone) -> Drawing {
    let (cells, coverage) = (cells(period, zone), &about.coverage);
    let has_teams = coverage.iter().any(|line| line.team != coverage[0].team);
    let lanes = coverage.iter().filter(|line| line.stream.is_some()).map(|line| {
        let stream = line.stream.map_or("", |stream| stream.as_str());
        let name = if has_teams { format!("{stream}, {}", about.names.label(&line.team)) } else { stream.to_owned() };
        let states = cells.iter().map(|cell| state_of(data, line, *cell)).collect();
        (name, states)
    });
    let lanes = lanes.collect();
    let cells = cells.iter().map(|cell| {
        (local_micros(cell.start, zone), format!("{} to {}", local(cell.start, zone), local(cell.end, zone)))
    });
    CoverageCalendar { cells: cells.collect(), lanes }.draw()
}

/// Splits the period into cells: hours for a short period, else days or several days of the time zone.
fn cells(period: Range, zone: &Zone) -> Vec<Range> {
    let seconds = period.end.seconds().saturating_sub(period.start.seconds()).max(1);
    let days = seconds / (DAY_S * CELLS_MAX) + 1;
    let mut cells = Vec::new();
    let mut start = period.start;
    while start < period.end {
        let hour_later = start.plus(HOUR);
        let next = if seconds <= 4 * DAY_S { hour_later } else { days_later(start, days, zone).unwrap_or(hour_later) };
        let end = next.max(hour_later).min(period.end);
        cells.push(Range { start, end });
        start = end;
    }
    cells
}

/// The start of the day that is `days` after the day of `at`, in the time zone.
fn days_later(at: Instant, days: i64, zone: &Zone) -> Option<Instant> {
    let stamp = jiff::Timestamp::from_microsecond(at.micros()).ok()?;
    let begins = stamp.to_zoned(zone.rules().clone()).start_of_day().ok()?;
    let later = begins.checked_add(days.days()).ok()?;
    Some(Instant::from_seconds(later.timestamp().as_second()))
}

/// The worst state in the cell.
fn state_of(data: &ViewData, line: &StreamCoverage, cell: Range) -> CellState {
    let touches = |span: &super::Span| span.from < cell.end && cell.start < span.to;
    let is_gap = line.gaps.iter().any(|gap| {
        gap.from.is_none_or(|from| from < cell.end) && gap.to.is_none_or(|to| cell.start < to)
            || gap.from == gap.to && gap.from.is_some_and(|at| cell.owns(at))
    });
    if is_gap {
        return CellState::Gap;
    }
    if line.missing.iter().any(touches) {
        return CellState::Missing;
    }
    if line.not_yet_read.iter().any(touches) {
        return CellState::Waiting;
    }
    if line.before_archive.iter().any(touches) {
        return CellState::Before;
    }
    let mut windows = data.coverage.iter().filter(|row| {
        Some(row.window.stream) == line.stream && row.team_id.as_str() == line.team && row.window.range.overlaps(&cell)
    });
    let is_provisional = windows.any(|row| row.window.state == WindowState::Provisional);
    if is_provisional { CellState::Provisional } else { CellState::Settled }
}

fn local_micros(at: Instant, zone: &Zone) -> f64 {
    let stamp = jiff::Timestamp::from_microsecond(at.micros());
    let offset = stamp.map_or(0, |stamp| zone.rules().to_offset(stamp).seconds());
    #[expect(clippy::cast_precision_loss, reason = "a drawing is not finer than that")]
    let micros = at.micros() as f64;
    micros + f64::from(offset) * 1e6
}

/// The local time in the zone: `2026-11-20 09:00`.
pub fn local(at: Instant, zone: &Zone) -> String {
    let Ok(stamp) = jiff::Timestamp::from_microsecond(at.micros()) else { return at.to_string() };
    let time = zone.rules().to_datetime(stamp);
    let form = if time.second() == 0 { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" };
    time.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_local_days_at_the_end_of_summer_time() {
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        let at = |text: &str| text.parse::<Instant>().unwrap();
        let october = Range { start: at("2026-09-30T22:00:00Z"), end: at("2026-10-31T23:00:00Z") };
        let days = cells(october, &zone);
        assert_eq!(days.len(), 31);
        assert!(days.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(days[24].length(), HOUR * 25, "the 25th is an hour longer");
        let years = Range { start: at("2020-01-01T00:00:00Z"), end: at("2026-10-31T23:00:00Z") };
        assert!(cells(years, &zone).len() <= 130);
        let hours = Range { start: at("2026-10-31T00:30:00Z"), end: at("2026-10-31T03:00:00Z") };
        assert_eq!(cells(hours, &zone).len(), 3);
    }
}
