//! Lines and steps, one for each series.

use crate::report::catalog::{ChartKind, ChartRole};

use super::Sketch;
use super::axis::{Axis, extent};
use super::group::{self, Groups};
use super::input::Input;
use super::number::number;
use super::plot::{Plot, legend};
use super::svg::{Canvas, n};

/// Maximum number of points with a visible mark for the tooltip.
const MARKED_MAX: usize = 60;

/// A row of the chart: its number, its x, and its y; NULL interrupts the line.
struct Point {
    row: usize,
    x: f64,
    y: Option<f64>,
}

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let (x, places) = group::column(input, canvas, ChartRole::X);
    let series = Groups::series(input, canvas);
    let lines = lines_of(input, canvas, &series, &places);
    let y = Axis::numbers(lines.iter().flatten().filter_map(|point| point.y).chain([0.0]), 5.0);
    let top = legend(canvas, series.legend(), |canvas, at, [x, y, w, h]| {
        canvas.line([x, y + h / 2.0, x + w + 2.0, y + h / 2.0], &format!("l l{}", series.slot(at)));
    });
    let plot = Plot { x, y, title: input.word(ChartRole::Y), top, ..Plot::default() }.draw(canvas);
    for (at, line) in lines.iter().enumerate() {
        let mut data = String::new();
        let mut is_open = false;
        for point in line {
            let (x, y) = (n(plot.x.place(point.x)), point.y.map(|y| n(plot.y.place(y))));
            data.push_str(&match y {
                None => String::new(),
                Some(y) if !is_open => format!("M{x} {y}h0"),
                // A step keeps its value until the next point.
                Some(y) if input.chart.kind == ChartKind::Step => format!("H{x}V{y}"),
                Some(y) => format!("L{x} {y}"),
            });
            is_open = y.is_some();
        }
        canvas.path(&data, &format!("l l{}", series.slot(at)), &series.names[at]);
        for (point, y) in line.iter().filter_map(|point| Some((point, point.y?))).filter(|_| line.len() <= MARKED_MAX) {
            let x = input.values(ChartRole::X)[point.row].name();
            let title = format!("{}{x}: {}", series.prefix(at), number(y));
            canvas.dot([plot.x.place(point.x), plot.y.place(y)], series.slot(at), &title);
        }
    }
    let (low, high) = extent(lines.iter().flatten().filter_map(|point| point.y));
    let range = if low <= high { format!(", from {} to {}", number(low), number(high)) } else { String::new() };
    let (y, x, names) = (input.word(ChartRole::Y), input.word(ChartRole::X), series.names.join(", "));
    plot.sketch(format!("{y} by {x}: {names}{range}"))
}

/// The points of each series by x; rows of one place are added up.
fn lines_of(input: &Input<'_>, canvas: &mut Canvas, series: &Groups, places: &[Option<f64>]) -> Vec<Vec<Point>> {
    let mut lines: Vec<Vec<Point>> = series.names.iter().map(|_| Vec::new()).collect();
    for (row, (x, y)) in places.iter().zip(input.weights()).enumerate() {
        if let (Some(x), Some(line)) = (*x, series.of_row[row]) {
            lines[line].push(Point { row, x, y });
        }
    }
    let lost = places.len() - lines.iter().map(Vec::len).sum::<usize>();
    canvas.note_lost(lost, &format!("without {}", input.word(ChartRole::X)));
    for line in &mut lines {
        line.sort_by(|a, b| a.x.total_cmp(&b.x));
        line.dedup_by(|later, held| {
            let is_same = later.x == held.x;
            if is_same {
                held.y = later.y.map_or(held.y, |y| Some(held.y.unwrap_or(0.0) + y));
            }
            is_same
        });
    }
    lines
}
