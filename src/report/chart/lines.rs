//! Lines and steps, one for each series; a few lines have their names at their ends.

use std::collections::BTreeMap;

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::{self, Area, Frame, Outline, time_span};
use super::input::Input;
use super::number::count;
use super::scale::{self, Linear, Unit};
use super::series::{Place, counted, fold};
use super::svg::{Anchor, Canvas, Mark, SMALL, TEXT, through};
use super::text::{cut, width};
use super::value::Value;

const HEIGHT: f64 = 200.0;
/// Maximum number of points in a line; beyond it, the lowest and highest point of each part are drawn.
const POINTS_MAX: usize = 600;
/// Maximum number of points with a visible mark for the tooltip.
const DOTS_MAX: usize = 60;
/// Up to this number of lines have their names at their ends instead of in a legend.
const NAMED_MAX: usize = 4;

/// One line: its points sorted by x; `None` interrupts it.
struct Line {
    name: String,
    slot: usize,
    points: Vec<(f64, Option<f64>)>,
}

/// The x axis: times, numbers, or names.
enum Axis {
    Times,
    Numbers(Unit),
    Names(Vec<Place>),
}

pub fn draw(input: &Input<'_>, canvas: &mut Canvas, is_step: bool) -> Sketch {
    let mut notes = Vec::new();
    let (axis, xs) = axis_of(input);
    let lines = lines_of(input, &xs, &mut notes);
    let unit = Unit::of(input.name(ChartRole::Y), input.values(ChartRole::Y));
    let values = || lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let legend: Vec<(String, usize)> = lines.iter().map(|line| (line.name.clone(), line.slot)).collect();
    let named = (2..=NAMED_MAX).contains(&lines.len()) && !canvas.is_narrow();
    let room = legend.iter().map(|(name, _)| width(&cut(name, 150.0, TEXT), TEXT)).fold(0.0, f64::max);
    let title = input.word(ChartRole::Y);
    let outline = Outline {
        title: &title,
        unit,
        low,
        high,
        legend: if named { &[] } else { &legend },
        mark: Mark::Line,
        right: if named { room + 14.0 } else { 8.0 },
        height: HEIGHT,
    };
    let frame = Frame::draw(canvas, &outline);
    let span = time_span(xs.iter().copied().flatten());
    let places = match &axis {
        Axis::Names(names) => (-0.5, count(names.len()) - 0.5),
        _ => span,
    };
    let below = Linear { low: places.0, high: places.1, start: frame.area.left + 4.0, end: frame.area.right - 4.0 };
    for line in &lines {
        line.draw(canvas, &frame, &below, &axis, unit, is_step);
    }
    if named {
        name_ends(canvas, &frame, &lines);
    }
    match &axis {
        Axis::Times => frame::time_labels(canvas, frame.area, &below),
        Axis::Numbers(unit) => {
            let ticks = scale::ticks(below.low, below.high, frame::tick_count(frame.area), *unit);
            let inside: Vec<_> = ticks.into_iter().filter(|t| t.at >= below.low && t.at <= below.high).collect();
            frame::number_labels(canvas, frame.area, &below, &inside);
        }
        Axis::Names(names) => frame::place_labels(canvas, frame.area, names),
    }
    Sketch { height: frame.height(), summary: summary(input, &lines, unit), notes }
}

/// The axis, and the position of each row on it.
fn axis_of(input: &Input<'_>) -> (Axis, Vec<Option<f64>>) {
    let xs = input.values(ChartRole::X);
    let all = |is: fn(&Value) -> bool| xs.iter().any(is) && xs.iter().all(|x| *x == Value::Null || is(x));
    if all(|x| matches!(x, Value::Time(_))) {
        return (Axis::Times, xs.iter().map(Value::number).collect());
    }
    if all(|x| matches!(x, Value::Number(_))) {
        let unit = Unit::of(input.name(ChartRole::X), xs);
        return (Axis::Numbers(unit), xs.iter().map(Value::number).collect());
    }
    let mut names: Vec<String> = Vec::new();
    let mut places = Vec::with_capacity(xs.len());
    for x in xs {
        let name = x.name();
        let at = names.iter().position(|held| *held == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        places.push(Some(count(at)));
    }
    (Axis::Names(names.into_iter().map(|name| Place { name, span: None }).collect()), places)
}

fn lines_of(input: &Input<'_>, xs: &[Option<f64>], notes: &mut Vec<String>) -> Vec<Line> {
    let (names, series_of) =
        fold(input.values(ChartRole::Series), input.weights(), notes, input.word(ChartRole::Series));
    let names = if names.is_empty() { vec![(input.word(ChartRole::Y), 0)] } else { names };
    // Add up rows of one place and series only if several series were joined.
    let mut points: Vec<BTreeMap<i64, (f64, Option<f64>)>> = vec![BTreeMap::new(); names.len()];
    let mut lost = 0;
    for (row, weight) in input.weights().enumerate() {
        let Some(x) = xs.get(row).copied().flatten() else {
            lost += 1;
            continue;
        };
        let series = series_of.get(row).copied().unwrap_or(0);
        let held = points[series].entry(order_of(x)).or_insert((x, None));
        held.1 = match (held.1, weight) {
            (Some(sum), Some(weight)) if names[series].1 == super::svg::OTHERS => Some(sum + weight),
            (held, weight) => weight.or(held),
        };
    }
    if lost > 0 {
        notes.push(format!("{} without {} left out", counted(lost, "row"), input.word(ChartRole::X)));
    }
    let lines = names.into_iter().zip(points);
    lines.map(|((name, slot), points)| Line { name, slot, points: points.into_values().collect() }).collect()
}

/// Maps floats to whole numbers in the same order.
fn order_of(x: f64) -> i64 {
    let bits = x.to_bits().cast_signed();
    bits ^ (((bits >> 63).cast_unsigned() >> 1).cast_signed())
}

impl Line {
    fn draw(&self, canvas: &mut Canvas, frame: &Frame, below: &Linear, axis: &Axis, unit: Unit, is_step: bool) {
        let class = format!("class=\"l l{}\"", self.slot);
        for stretch in self.points.split(|(_, y)| y.is_none()).filter(|stretch| !stretch.is_empty()) {
            let known = stretch.iter().filter_map(|(x, y)| y.map(|y| (below.place(*x), frame.values.place(y))));
            let mut known: Vec<(f64, f64)> = known.collect();
            if known.len() > POINTS_MAX {
                known = thinned(&known, frame.area);
            }
            if is_step {
                known = stepped(&known);
            }
            if known.len() > 1 {
                canvas.path(&through(known), &class, &self.name);
            }
        }
        if self.points.len() <= DOTS_MAX {
            for (x, y) in self.points.iter().filter_map(|(x, y)| y.map(|y| (*x, y))) {
                let name = match axis {
                    Axis::Times => super::time::moment(x),
                    Axis::Numbers(unit) => unit.full(x),
                    Axis::Names(names) => names
                        .iter()
                        .enumerate()
                        .find(|(at, _)| count(*at) == x)
                        .map_or_else(String::new, |(_, p)| p.name.clone()),
                };
                let title = format!("{}, {name}: {}", self.name, unit.full(y));
                canvas.circle(
                    [below.place(x), frame.values.place(y), 2.6],
                    &format!("class=\"f{}\"", self.slot),
                    &title,
                );
            }
        }
    }
}

/// Makes each value last until the next one.
fn stepped(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut steps = Vec::with_capacity(points.len() * 2);
    for (x, y) in points {
        if let Some((_, before)) = steps.last().copied() {
            steps.push((*x, before));
        }
        steps.push((*x, *y));
    }
    steps
}

/// The first, lowest, highest and last point of each part of the axis, so that no peak is lost.
fn thinned(points: &[(f64, f64)], area: Area) -> Vec<(f64, f64)> {
    let stretch = area.width() / count(POINTS_MAX) * 4.0;
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for some in points.chunk_by(|a, b| (a.0 / stretch).floor() == (b.0 / stretch).floor()) {
        let lowest = (0..some.len()).min_by(|a, b| some[*a].1.total_cmp(&some[*b].1)).unwrap_or(0);
        let highest = (0..some.len()).max_by(|a, b| some[*a].1.total_cmp(&some[*b].1)).unwrap_or(0);
        let mut at = [0, lowest, highest, some.len() - 1];
        at.sort_unstable();
        let mut last = None;
        for at in at.into_iter().filter(|at| last.replace(*at) != Some(*at)) {
            kept.push(some[at]);
        }
    }
    kept
}

/// Names beside the last points, moved apart if they would touch.
fn name_ends(canvas: &mut Canvas, frame: &Frame, lines: &[Line]) {
    let end = |line: &Line| line.points.iter().rev().find_map(|(_, y)| *y).map(|y| frame.values.place(y));
    let mut ends: Vec<(f64, &Line)> = lines.iter().filter_map(|line| Some((end(line)?, line))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = frame.area.top - 4.0;
    for (y, line) in ends {
        let y = y.max(free + SMALL);
        free = y + 3.0;
        canvas.line([frame.area.right - 2.0, y, frame.area.right + 6.0, y], &format!("l l{}", line.slot), "");
        canvas.label([frame.area.right + 9.0, y + 4.0], Anchor::Start, 150.0, &line.name);
    }
}

fn summary(input: &Input<'_>, lines: &[Line], unit: Unit) -> String {
    let of = |line: &Line| {
        let known: Vec<f64> = line.points.iter().filter_map(|(_, y)| *y).collect();
        match (known.first(), known.last()) {
            (Some(first), Some(last)) => format!("{} from {} to {}", line.name, unit.full(*first), unit.full(*last)),
            _ => format!("{} without values", line.name),
        }
    };
    let lines: Vec<String> = lines.iter().map(of).collect();
    format!("{} by {}: {}", input.word(ChartRole::Y), input.word(ChartRole::X), super::text::listed(&lines))
}
