//! Dots, and marks in lanes: single moments in a strip, spans in a timeline.

use std::collections::BTreeMap;

use crate::report::catalog::{ChartKind, ChartRole};

use super::Sketch;
use super::axis::Axis;
use super::group::{self, Groups};
use super::input::Input;
use super::number::{number, plural, whole};
use super::plot::{LANE, Plot, legend};
use super::svg::{Canvas, n};
use super::time;
use super::value::Value;

/// Maximum number of marks; beyond it, close marks are merged, and further spans are left out.
const MARKS_MAX: usize = 1_500;

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
pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let is_strip = input.chart.kind == ChartKind::Strip;
    let draw_mark = |canvas: &mut Canvas, [x, y]: [f64; 2], slot: usize, title: &str| match is_strip {
        true => canvas.rect([x - 0.9, y - LANE / 2.0 + 4.0, 1.8, LANE - 8.0], &format!("f{slot}"), title),
        false => canvas.dot([x, y], slot, title),
    };
    let (x, xs) = group::column(input, canvas, ChartRole::X);
    let (y, ys) = match is_strip {
        true if !input.has(ChartRole::Y) => group::lanes(input, canvas, ChartRole::Series),
        true => group::lanes(input, canvas, ChartRole::Y),
        false => group::column(input, canvas, ChartRole::Y),
    };
    let series = Groups::series(input, canvas);
    let top = legend(canvas, series.legend(), |canvas, at, [x, y, w, h]| {
        draw_mark(canvas, [x + w / 2.0, y + h / 2.0], series.slot(at), "");
    });
    let title = if y.is_names { String::new() } else { input.word(ChartRole::Y) };
    let plot = Plot { x, y, title, below: input.word(ChartRole::X), top, ..Plot::default() }.draw(canvas);
    let mut marks = Vec::new();
    for (row, (x, y)) in xs.iter().zip(&ys).enumerate() {
        let (Some(x), Some(y), Some(name)) = (*x, *y, series.of_row[row]) else { continue };
        let lane = if plot.y.is_names { plot.y.ticks[whole(y)].1.clone() } else { number(y) };
        let title = format!("{}{lane}: {}", series.prefix(name), input.values(ChartRole::X)[row].name());
        marks.push(Mark { x: plot.x.place(x), y: plot.y.place(y), slot: series.slot(name), title, merged: 0 });
    }
    let count = marks.len();
    canvas.note_lost(xs.len() - count, "without a position");
    for mark in merged(canvas, marks) {
        let more = if mark.merged > 0 { format!(", and {} close by", mark.merged) } else { String::new() };
        draw_mark(canvas, [mark.x, mark.y], mark.slot, &(mark.title + &more));
    }
    let words = [ChartRole::X, ChartRole::Y].into_iter().filter(|role| input.has(*role)).map(|role| input.word(role));
    plot.sketch(format!("{} by {}", plural(count as u64, "mark"), words.collect::<Vec<_>>().join(" and ")))
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

/// Spans in lanes, from a start to an end; a span without an end has not ended.
pub fn draw_timeline(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let (y, lanes) = group::lanes(input, canvas, ChartRole::Lane);
    let series = Groups::series(input, canvas);
    let times = |role| input.values(role).iter().map(Value::number);
    let x = Axis::times(times(ChartRole::Start).chain(times(ChartRole::End)).flatten(), canvas.ticks_wanted());
    let top = legend(canvas, series.legend(), |canvas, at, place| canvas.bar(place, series.slot(at), ""));
    let plot = Plot { x, y, top, ..Plot::default() }.draw(canvas);
    let mut drawn = 0;
    for (row, (start, end)) in times(ChartRole::Start).zip(times(ChartRole::End)).enumerate() {
        let (Some(start), Some(lane), Some(name)) = (start, lanes[row], series.of_row[row]) else { continue };
        if drawn == MARKS_MAX {
            break;
        }
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
    plot.sketch(format!("{}, {}", plural(drawn as u64, "span"), time::span(plot.x.low, plot.x.high)))
}
