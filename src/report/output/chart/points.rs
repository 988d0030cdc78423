//! Marks at positions of two axes: lines and steps, dots, moments in a strip, and spans in a timeline.

use std::collections::BTreeMap;

use crate::report::catalog::{ChartKind, ChartRole};

use super::axis::{Axis, extent};
use super::group::{self, Groups};
use super::input::{Input, Value};
use super::plot::{LANE, Plot, legend};
use super::svg::{Canvas, n};
use super::text::{number, plural, whole};
use super::time;

/// Maximum number of marks; beyond it, close marks are merged, and further spans are left out.
const MARKS_MAX: usize = 1_500;
/// Maximum number of points of a line with a visible mark for the tooltip.
const MARKED_MAX: usize = 60;

/// A mark at a place of the picture.
struct Mark {
    x: f64,
    y: f64,
    slot: usize,
    title: String,
    /// The number of marks that were merged into this one.
    merged: usize,
}

/// Dots of two numbers or times against each other, or of a number or time for each name; a strip has moments in lanes.
pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> String {
    let is_strip = input.chart.kind == ChartKind::Strip;
    let draw_mark = |canvas: &mut Canvas, [x, y]: [f64; 2], slot: usize, title: &str| match is_strip {
        true => canvas.rect([x - 0.9, y - LANE / 2.0 + 4.0, 1.8, LANE - 8.0], &format!("f{slot}"), title),
        false => canvas.dot([x, y], slot, title),
    };
    let (x, xs) = group::column(input, canvas, ChartRole::X);
    let lanes = if input.has(ChartRole::Y) { ChartRole::Y } else { ChartRole::Series };
    let of_y = if is_strip { group::lanes } else { group::column };
    let (y, ys) = of_y(input, canvas, lanes);
    let series = Groups::series(input, canvas);
    legend(canvas, series.legend(), |canvas, at, [x, y, w, h]| {
        draw_mark(canvas, [x + w / 2.0, y + h / 2.0], series.slot(at), "");
    });
    let title = if y.is_names { String::new() } else { input.word(ChartRole::Y) };
    let plot = Plot { x, y, title, below: input.word(ChartRole::X), ..Plot::default() }.draw(canvas);
    let mut marks = Vec::new();
    // Equal values of several series would hide each other, so each series has its own height in a lane.
    let has_heights = !is_strip && plot.y.is_names && input.word(ChartRole::Series) != input.word(ChartRole::Y);
    let (heights, room) = (series.names.len() as f64, if has_heights { LANE - 10.0 } else { 0.0 });
    for (row, (x, y)) in xs.iter().zip(&ys).enumerate() {
        let (Some(x), Some(y), Some(name)) = (*x, *y, series.of_row[row]) else { continue };
        let lane = if plot.y.is_names { plot.y.ticks[whole(y)].1.clone() } else { number(y) };
        let prefix = if lanes == ChartRole::Series { String::new() } else { series.prefix(name) };
        let title = format!("{prefix}{lane}: {}", input.values(ChartRole::X)[row].name());
        let y = plot.y.place(y) + ((name as f64 + 0.5) / heights - 0.5) * room;
        marks.push(Mark { x: plot.x.place(x), y, slot: series.slot(name), title, merged: 0 });
    }
    let count = marks.len();
    canvas.note_lost(xs.len() - count, "without a position");
    for mark in merged(canvas, marks) {
        let more = if mark.merged > 0 { format!(", and {} close by", mark.merged) } else { String::new() };
        draw_mark(canvas, [mark.x, mark.y], mark.slot, &(mark.title + &more));
    }
    let words = [ChartRole::X, ChartRole::Y].into_iter().filter(|role| input.has(*role)).map(|role| input.word(role));
    format!("{} by {}", plural(count as u64, "mark"), words.collect::<Vec<_>>().join(" and "))
}

/// Joins marks of a series that are close to each other, until there are few enough.
fn merged(canvas: &mut Canvas, mut marks: Vec<Mark>) -> Vec<Mark> {
    let (all, mut size) = (marks.len(), 1.0);
    while marks.len() > MARKS_MAX && size < canvas.width {
        size *= 1.5;
        let mut cells: BTreeMap<(usize, usize, usize), Mark> = BTreeMap::new();
        for mark in marks {
            let (cell, more) = ((whole(mark.x / size), whole(mark.y / size), mark.slot), mark.merged + 1);
            cells.entry(cell).and_modify(|held| held.merged += more).or_insert(mark);
        }
        marks = cells.into_values().collect();
    }
    if marks.len() < all {
        canvas.note(format!("close marks are merged: {} of {all}", marks.len()));
    }
    marks
}

/// A point of a line; a point without `y` interrupts the line.
#[derive(Clone, Copy)]
struct Point {
    series: usize,
    row: usize,
    x: f64,
    y: Option<f64>,
}

/// Lines and steps, one for each series.
pub fn draw_lines(input: &Input<'_>, canvas: &mut Canvas) -> String {
    let (x, xs) = group::column(input, canvas, ChartRole::X);
    let series = Groups::series(input, canvas);
    let points = points_of(input, canvas, &series, &xs);
    let ys = points.iter().filter_map(|point| point.y);
    let y = Axis::numbers(ys.clone().chain([0.0]), 5.0);
    legend(canvas, series.legend(), |canvas, at, [x, y, w, h]| {
        canvas.line([x, y + h / 2.0, x + w + 2.0, y + h / 2.0], &format!("l l{}", series.slot(at)));
    });
    let plot = Plot { x, y, title: input.word(ChartRole::Y), ..Plot::default() }.draw(canvas);
    for line in points.chunk_by(|a, b| a.series == b.series) {
        let (name, slot) = (line[0].series, series.slot(line[0].series));
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
        canvas.path(&data, &format!("l l{slot}"), &series.names[name]);
        for (point, y) in line.iter().filter_map(|point| Some((point, point.y?))).filter(|_| line.len() <= MARKED_MAX) {
            let x = input.values(ChartRole::X)[point.row].name();
            let title = format!("{}{x}: {}", series.prefix(name), number(y));
            canvas.dot([plot.x.place(point.x), plot.y.place(y)], slot, &title);
        }
    }
    let (low, high) = extent(ys);
    let range = if low <= high { format!(", from {} to {}", number(low), number(high)) } else { String::new() };
    let (y, x, names) = (input.word(ChartRole::Y), input.word(ChartRole::X), series.names.join(", "));
    format!("{y} by {x}: {names}{range}")
}

/// The points of the series by `x`; rows of one series and one `x` are added up.
fn points_of(input: &Input<'_>, canvas: &mut Canvas, series: &Groups, xs: &[Option<f64>]) -> Vec<Point> {
    let rows = input.weights().enumerate();
    let point = |(row, y)| Some(Point { series: series.of_row[row]?, row, x: xs[row]?, y });
    let mut points: Vec<Point> = rows.filter_map(point).collect();
    canvas.note_lost(xs.len() - points.len(), &format!("without {}", input.word(ChartRole::X)));
    points.sort_by(|a, b| a.series.cmp(&b.series).then(a.x.total_cmp(&b.x)));
    let sum = |same: &[Point]| same.iter().filter_map(|point| point.y).reduce(|sum, y| sum + y);
    let places = points.chunk_by(|a, b| (a.series, a.x) == (b.series, b.x));
    places.map(|same| Point { y: sum(same), ..same[0] }).collect()
}

/// Spans in lanes, from a start to an end; a span without an end has not ended.
pub fn draw_timeline(input: &Input<'_>, canvas: &mut Canvas) -> String {
    let (y, lanes) = group::lanes(input, canvas, ChartRole::Lane);
    let series = Groups::series(input, canvas);
    let times = |role| input.values(role).iter().map(Value::number);
    let x = Axis::times(times(ChartRole::Start).chain(times(ChartRole::End)).flatten(), canvas.ticks_wanted());
    legend(canvas, series.legend(), |canvas, at, place| canvas.bar(place, series.slot(at), ""));
    let plot = Plot { x, y, ..Plot::default() }.draw(canvas);
    let rows = times(ChartRole::Start).zip(times(ChartRole::End)).enumerate();
    let spans = rows.filter_map(|(row, (start, end))| Some((start?, end, lanes[row]?, series.of_row[row]?)));
    let mut drawn = 0;
    for (start, end, lane, name) in spans.take(MARKS_MAX) {
        drawn += 1;
        let until = match end {
            Some(end) => time::span(start, end),
            None => format!("from {}, not ended", time::moment(start)),
        };
        let title = format!("{}{}: {until}", series.prefix(name), plot.y.ticks[whole(lane)].1);
        let (left, right) = (plot.x.place(start), plot.x.place(end.map_or(plot.x.high, |end| end.max(start))));
        let (slot, top, height) = (series.slot(name), plot.y.place(lane) - LANE / 2.0 + 5.0, LANE - 10.0);
        canvas.bar([left, top, (right - left).max(1.5), height], slot, &title);
        if end.is_none() {
            let (right, top, half) = (n(right), n(top), n(height / 2.0));
            canvas.path(&format!("M{right} {top}l5 {half}l-5 {half}z"), &format!("f{slot}"), &title);
        }
    }
    canvas.note_lost(input.rows.len() - drawn, "that have no start, or are more than the chart can show");
    format!("{}, {}", plural(drawn as u64, "span"), time::span(plot.x.low, plot.x.high))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Rows, draw};
    use super::*;

    #[test]
    fn equal_values_of_several_series_hide_no_dot() {
        let column = |name: &str, values: [&str; 2]| {
            (name.to_owned(), values.map(|text| text.parse().map_or(Value::Text(text.into()), Value::Number)).into())
        };
        let rows = Rows(vec![column("n", ["1", "1"]), column("lane", ["a", "a"]), column("team", ["one", "two"])]);
        let drawing = draw(&"dots x=n y=lane series=team | Dots".parse().unwrap(), &rows, 0).unwrap();
        for svg in [drawing.wide.to_string(), drawing.narrow.to_string()] {
            let marks = svg.split("<path d=\"M").filter(|mark| mark.contains("<title>"));
            let is_place = |c: char| c.is_ascii_digit() || matches!(c, '.' | ' ');
            let places: BTreeSet<&str> = marks.map(|mark| mark.split(|c| !is_place(c)).next().unwrap()).collect();
            assert_eq!(places.len(), 2, "{svg}");
        }
    }
}
