//! Columns, stacked by series; negative values go down.

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::{self, Frame, Outline, legend_of};
use super::input::Input;
use super::number::count;
use super::scale::Unit;
use super::series::Grid;
use super::svg::{Canvas, Mark};

const HEIGHT: f64 = 210.0;
const NARROW_HEIGHT: f64 = 190.0;

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let grid = Grid::of(input, canvas.is_narrow());
    let unit = Unit::of(input.name(ChartRole::Y), input.values(ChartRole::Y));
    let (low, high) = extent(&grid);
    let title = input.word(ChartRole::Y);
    let outline = Outline {
        title: &title,
        unit,
        low,
        high,
        legend: &legend_of(&grid.series),
        mark: Mark::Box,
        right: 0.0,
        height: if canvas.is_narrow() { NARROW_HEIGHT } else { HEIGHT },
    };
    let frame = Frame::draw(canvas, &outline);
    let step = frame.area.width() / count(grid.places.len().max(1));
    let (gap, most) = (if step > 8.0 { step * 0.2 } else { step * 0.1 }, 64.0);
    let wide = (step - gap).min(most).max(0.6);
    for (at, place) in grid.places.iter().enumerate() {
        let x = frame.area.left + count(at) * step + (step - wide) / 2.0;
        let (mut up, mut down) = (0.0, 0.0);
        for series in &grid.series {
            let Some(value) = series.values[at].filter(|value| *value != 0.0) else { continue };
            let base = if value > 0.0 { &mut up } else { &mut down };
            let (from, to) = (frame.values.place(*base), frame.values.place(*base + value));
            *base += value;
            let name = if grid.series.len() > 1 { format!("{}, ", series.name) } else { String::new() };
            let title = format!("{}: {name}{}", place.name, unit.full(value));
            canvas.bar([x, from.min(to), wide, (from - to).abs().max(0.5)], series.slot, &title);
        }
    }
    frame::place_labels(canvas, frame.area, &grid.places);
    Sketch { height: frame.height(), summary: summary(input, &grid, unit), notes: grid.notes }
}

/// The lowest and the highest stack, and zero.
fn extent(grid: &Grid) -> (f64, f64) {
    let (mut low, mut high) = (0.0_f64, 0.0_f64);
    for at in 0..grid.places.len() {
        let values = grid.series.iter().filter_map(|series| series.values[at]);
        let (up, down) = values.fold((0.0, 0.0), |(up, down), v| if v > 0.0 { (up + v, down) } else { (up, down + v) });
        (low, high) = (low.min(down), high.max(up));
    }
    (low, high)
}

/// The text description of columns and areas.
pub fn summary(input: &Input<'_>, grid: &Grid, unit: Unit) -> String {
    let total: f64 = grid.series.iter().flat_map(|series| &series.values).flatten().sum();
    let at_place = |at: usize| grid.series.iter().filter_map(|series| series.values[at]).sum::<f64>();
    let highest = (0..grid.places.len()).max_by(|a, b| at_place(*a).total_cmp(&at_place(*b)));
    let mut text = format!("{} by {}: {} in all", input.word(ChartRole::Y), input.word(ChartRole::X), unit.full(total));
    if let Some(at) = highest {
        text.push_str(&format!(", most at {} with {}", grid.places[at].name, unit.full(at_place(at))));
    }
    if grid.series.len() > 1 {
        let of = |series: &super::series::Series| {
            format!("{} {}", series.name, unit.full(series.values.iter().flatten().sum()))
        };
        text.push_str(&format!("; {}", super::text::listed(&grid.series.iter().map(of).collect::<Vec<_>>())));
    }
    text
}
