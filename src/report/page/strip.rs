//! The calendar of what was read: a lane a stream, a cell a day.

use crate::archive::WindowState;
use crate::model::{Instant, Range};
use crate::report::Zone;
use crate::report::chart::{Drawing, Strip, StripCell, StripState};
use crate::report::coverage::StreamCoverage;
use crate::report::data::ViewData;

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;
/// Cells of a lane, at most.
const CELLS_MAX: i64 = 124;

/// Draws the coverage of `period`.
pub fn strip(data: &ViewData, coverage: &[StreamCoverage], period: Range, zone: &Zone) -> Drawing {
    let cells = cells(period);
    let has_teams = coverage.iter().any(|line| line.team != coverage[0].team);
    let lanes = coverage.iter().filter(|line| line.stream.is_some()).map(|line| {
        let stream = line.stream.map_or("", |stream| stream.as_str());
        let name = if has_teams { format!("{stream}, {}", line.team) } else { stream.to_owned() };
        let states = cells.iter().map(|cell| state_of(data, line, *cell)).collect();
        (name, states)
    });
    let lanes = lanes.collect();
    let cells = cells.iter().map(|cell| StripCell {
        from: local_micros(cell.start, zone),
        name: format!("{} to {}", local(cell.start, zone), local(cell.end, zone)),
    });
    Strip { cells: cells.collect(), lanes }.draw()
}

/// The period in equal parts: hours where it is short, days, or as many days together as keep the lane readable.
fn cells(period: Range) -> Vec<Range> {
    let seconds = period.end.seconds().saturating_sub(period.start.seconds()).max(1);
    let each = if seconds <= 4 * DAY_S { HOUR_S } else { DAY_S * (seconds / (DAY_S * CELLS_MAX) + 1) };
    let mut cells = Vec::new();
    let mut at = period.start.seconds();
    while Instant::from_seconds(at) < period.end {
        let end = Instant::from_seconds(at + each).min(period.end);
        cells.push(Range { start: Instant::from_seconds(at).max(period.start), end });
        at += each;
    }
    cells
}

/// The worst that is so anywhere in the cell.
fn state_of(data: &ViewData, line: &StreamCoverage, cell: Range) -> StripState {
    let touches = |span: &super::Span| span.from < cell.end && cell.start < span.to;
    let is_gap = line.gaps.iter().any(|gap| {
        gap.from.is_none_or(|from| from < cell.end) && gap.to.is_none_or(|to| cell.start < to)
            || gap.from == gap.to && gap.from.is_some_and(|at| cell.owns(at))
    });
    if is_gap {
        return StripState::Gap;
    }
    if line.missing.iter().any(touches) {
        return StripState::Missing;
    }
    if line.not_yet_read.iter().any(touches) {
        return StripState::Waiting;
    }
    if line.before_archive.iter().any(touches) {
        return StripState::Before;
    }
    let windows = data.coverage.iter().filter(|row| {
        Some(row.window.stream) == line.stream && row.team_id.as_str() == line.team && row.window.range.overlaps(&cell)
    });
    let mut worst = StripState::Settled;
    for row in windows {
        if row.window.state == WindowState::Provisional {
            worst = StripState::Provisional;
        }
    }
    worst
}

fn local_micros(at: Instant, zone: &Zone) -> f64 {
    let stamp = jiff::Timestamp::from_microsecond(at.micros());
    let offset = stamp.map_or(0, |stamp| zone.rules().to_offset(stamp).seconds());
    #[expect(clippy::cast_precision_loss, reason = "a drawing is not finer than that")]
    let micros = at.micros() as f64;
    micros + f64::from(offset) * 1e6
}

/// What the clocks of the zone showed: `2026-11-20 09:00`.
pub fn local(at: Instant, zone: &Zone) -> String {
    let Ok(stamp) = jiff::Timestamp::from_microsecond(at.micros()) else { return at.to_string() };
    let time = zone.rules().to_datetime(stamp);
    let form = if time.second() == 0 { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" };
    time.strftime(form).to_string()
}
