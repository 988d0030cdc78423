//! Stacked areas, as values or as shares.

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::columns::summary;
use super::frame::{self, Frame, Outline, legend_of};
use super::input::Input;
use super::number::count;
use super::scale::Unit;
use super::series::Grid;
use super::svg::{Canvas, Mark, through};

const HEIGHT: f64 = 200.0;

pub fn draw(input: &Input<'_>, canvas: &mut Canvas, is_share: bool) -> Sketch {
    let grid = Grid::of(input, canvas.is_narrow());
    let unit = Unit::of(input.name(ChartRole::Y), input.values(ChartRole::Y));
    // An area below zero has no meaning, so such a value counts as zero.
    let value = |series: usize, at: usize| grid.series[series].values[at].unwrap_or(0.0).max(0.0);
    let total = |at: usize| (0..grid.series.len()).map(|series| value(series, at)).sum::<f64>();
    let height_of = |at: usize, sum: f64| match (is_share, total(at)) {
        (false, _) => sum,
        (true, 0.0) => 0.0,
        (true, total) => sum / total,
    };
    let most = (0..grid.places.len()).map(total).fold(0.0, f64::max);
    let title = if is_share { format!("share of {}", input.word(ChartRole::Y)) } else { input.word(ChartRole::Y) };
    let outline = Outline {
        title: &title,
        unit: if is_share { Unit::Share } else { unit },
        low: 0.0,
        high: if is_share { 1.0 } else { most },
        legend: &legend_of(&grid.series),
        mark: Mark::Box,
        right: 0.0,
        height: HEIGHT,
    };
    let frame = Frame::draw(canvas, &outline);
    let step = frame.area.width() / count(grid.places.len().max(1));
    // The edges of a stack stand between the places. So even a single place has an area.
    let x = |edge: usize| frame.area.left + count(edge) * step;
    let mut below = vec![0.0; grid.places.len()];
    for (nth, series) in grid.series.iter().enumerate() {
        let above: Vec<f64> = below.iter().enumerate().map(|(at, base)| base + value(nth, at)).collect();
        let edge = |at: usize, sum: f64| {
            let y = frame.values.place(height_of(at, sum));
            [(x(at), y), (x(at + 1), y)]
        };
        let upper = above.iter().enumerate().flat_map(|(at, sum)| edge(at, *sum));
        let lower = below.iter().enumerate().rev().flat_map(|(at, sum)| {
            let [left, right] = edge(at, *sum);
            [right, left]
        });
        let shape = format!("{}z", through(upper.chain(lower)));
        let sum: f64 = (0..grid.places.len()).map(|at| value(nth, at)).sum();
        canvas.path(
            &shape,
            &format!("class=\"f{}\"", series.slot),
            &format!("{}: {} in all", series.name, unit.full(sum)),
        );
        for (at, (low, high)) in below.iter().zip(&above).enumerate() {
            let (up, down) = (frame.values.place(height_of(at, *high)), frame.values.place(height_of(at, *low)));
            canvas.hatch([x(at), up, step, down - up], series.slot);
        }
        below = above;
    }
    frame::place_labels(canvas, frame.area, &grid.places);
    Sketch { height: frame.height(), summary: summary(input, &grid, unit), notes: grid.notes }
}
