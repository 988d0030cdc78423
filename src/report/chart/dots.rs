//! Dots: two numbers or times against each other, or a number for each name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::{self, Area, Frame, Outline, lane_width, time_span};
use super::input::Input;
use super::number::count;
use super::scale::{self, Linear, Unit};
use super::series::{counted, fold};
use super::svg::{Anchor, Canvas, Mark, SMALL};
use super::value::Value;

const HEIGHT: f64 = 240.0;
const LANES_MAX: usize = 24;
const LANE: f64 = 24.0;
const RADIUS: f64 = 4.0;
/// Maximum number of single dots; beyond it, close dots are merged.
const DOTS_MAX: usize = 1_500;
const CELL: f64 = 4.0;
/// The maximum size of the cells in which dots are merged.
const CELLS_MAX: f64 = 40.0;

struct Dot {
    x: f64,
    y: f64,
    slot: usize,
    title: String,
}

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let mut notes = Vec::new();
    let series = fold(input.values(ChartRole::Series), input.weights(), &mut notes, input.word(ChartRole::Series));
    let are_names = input.values(ChartRole::Y).iter().any(|y| matches!(y, Value::Text(_)));
    let (dots, lost, height) =
        if are_names { by_name(input, canvas, &series, &mut notes) } else { by_value(input, canvas, &series) };
    if lost > 0 {
        notes.push(format!("{} without both values left out", counted(lost, "row")));
    }
    let total = dots.len();
    for dot in merged(dots, &mut notes) {
        canvas.dot([dot.x, dot.y], dot.slot, &dot.title);
    }
    let summary =
        format!("{} of {} against {}", counted(total, "dot"), input.word(ChartRole::Y), input.word(ChartRole::X));
    Sketch { height, summary, notes }
}

type Folded = (Vec<(String, usize)>, Vec<usize>);

/// The x axis: its scale, and the form of its values.
fn axis_below(input: &Input<'_>, canvas: &mut Canvas, area: Area) -> (Linear, impl Fn(&Value) -> String) {
    let xs = input.values(ChartRole::X);
    let unit = Unit::of(input.name(ChartRole::X), xs);
    let (start, end) = (area.left + RADIUS + 2.0, area.right - RADIUS - 2.0);
    let axis = if xs.iter().any(|x| matches!(x, Value::Time(_))) {
        let (low, high) = time_span(xs.iter().filter_map(Value::number));
        let axis = Linear { low, high, start, end };
        frame::time_labels(canvas, area, &axis);
        axis
    } else {
        let low = xs.iter().filter_map(Value::number).fold(0.0, f64::min);
        let high = xs.iter().filter_map(Value::number).fold(0.0, f64::max);
        let ticks = scale::ticks(low, high, frame::tick_count(area), unit);
        let edge = |tick: Option<&super::time::Tick>, other| tick.map_or(other, |tick| tick.at);
        let axis = Linear { low: edge(ticks.first(), low), high: edge(ticks.last(), high), start, end };
        for tick in &ticks {
            canvas.line([axis.place(tick.at), area.top, axis.place(tick.at), area.bottom], "grid", "");
        }
        frame::number_labels(canvas, area, &axis, &ticks);
        canvas.text([area.right, area.bottom + 32.0], Anchor::End, "small", &input.word(ChartRole::X));
        axis
    };
    (axis, move |value: &Value| match value {
        Value::Number(n) => unit.full(*n),
        other => other.name(),
    })
}

fn by_value(input: &Input<'_>, canvas: &mut Canvas, (names, series_of): &Folded) -> (Vec<Dot>, usize, f64) {
    let (xs, ys) = (input.values(ChartRole::X), input.values(ChartRole::Y));
    let unit = Unit::of(input.name(ChartRole::Y), ys);
    let title = input.word(ChartRole::Y);
    let outline = Outline {
        title: &title,
        unit,
        low: ys.iter().filter_map(Value::number).fold(0.0, f64::min),
        high: ys.iter().filter_map(Value::number).fold(0.0, f64::max),
        legend: names,
        mark: Mark::Dot,
        right: 0.0,
        height: HEIGHT,
    };
    let frame = Frame::draw(canvas, &outline);
    let (below, written) = axis_below(input, canvas, frame.area);
    let mut dots = Vec::new();
    for (row, (x, y)) in xs.iter().zip(ys).enumerate() {
        let (Some(at), Some(value)) = (x.number(), y.number()) else { continue };
        let (name, slot) = name_of(names, series_of, row);
        let title = format!("{name}{} {}, {} {}", input.word(ChartRole::X), written(x), title, unit.full(value));
        dots.push(Dot { x: below.place(at), y: frame.values.place(value), slot, title });
    }
    let lost = xs.len() - dots.len();
    (dots, lost, frame.height() + 14.0)
}

fn by_name(
    input: &Input<'_>,
    canvas: &mut Canvas,
    (names, series_of): &Folded,
    notes: &mut Vec<String>,
) -> (Vec<Dot>, usize, f64) {
    let (xs, ys) = (input.values(ChartRole::X), input.values(ChartRole::Y));
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut lanes: Vec<String> = Vec::new();
    let lane_of: Vec<usize> = ys
        .iter()
        .map(|y| {
            let name = y.name();
            *known.entry(name.clone()).or_insert_with(|| {
                lanes.push(name);
                lanes.len() - 1
            })
        })
        .collect();
    if lanes.len() > LANES_MAX {
        notes.push(format!("the chart shows the first {LANES_MAX} of {} {}", lanes.len(), input.word(ChartRole::Y)));
        lanes.truncate(LANES_MAX);
    }
    let mut top = 4.0;
    if names.len() > 1 {
        top += canvas.legend(0.0, top, names, Mark::Dot);
    }
    let left = lane_width(canvas, lanes.iter().cloned());
    let area = Area { left, right: canvas.width - 6.0, top, bottom: top + count(lanes.len()) * LANE };
    for (at, name) in lanes.iter().enumerate() {
        let y = top + (count(at) + 0.5) * LANE;
        canvas.line([area.left, y, area.right, y], "grid", "");
        canvas.label([left - 8.0, y + 4.0], Anchor::End, left - 10.0, name);
    }
    let (below, written) = axis_below(input, canvas, area);
    let (mut dots, mut lost) = (Vec::new(), 0);
    for (row, x) in xs.iter().enumerate() {
        let Some(at) = x.number() else {
            lost += 1;
            continue;
        };
        let Some(lane) = lanes.get(lane_of[row]) else { continue };
        let (name, slot) = name_of(names, series_of, row);
        let title = format!("{name}{lane}: {}", written(x));
        dots.push(Dot { x: below.place(at), y: top + (count(lane_of[row]) + 0.5) * LANE, slot, title });
    }
    (dots, lost, area.bottom + 22.0 + SMALL)
}

fn name_of(names: &[(String, usize)], series_of: &[usize], row: usize) -> (String, usize) {
    let found = series_of.get(row).and_then(|at| names.get(*at));
    found.map_or_else(|| (String::new(), 0), |(name, slot)| (format!("{name}: "), *slot))
}

fn merged(dots: Vec<Dot>, notes: &mut Vec<String>) -> Vec<Dot> {
    if dots.len() <= DOTS_MAX {
        return dots;
    }
    let all = dots.len();
    let mut size = CELL;
    let place = |dot: &Dot, size: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "places in the picture")]
        let cell = |place: f64| (place / size).floor() as i64;
        (cell(dot.x), cell(dot.y), dot.slot)
    };
    while dots.iter().map(|dot| place(dot, size)).collect::<BTreeSet<_>>().len() > DOTS_MAX && size < CELLS_MAX {
        size *= 1.5;
    }
    let mut cells: BTreeMap<(i64, i64, usize), (Dot, usize)> = BTreeMap::new();
    for dot in dots {
        cells.entry(place(&dot, size)).and_modify(|held| held.1 += 1).or_insert((dot, 1));
    }
    notes.push(format!("close dots are merged: {} of {all}", cells.len()));
    let named = cells.into_values().map(|(dot, held)| match held {
        1 => dot,
        held => Dot { title: format!("{held} dots here, one of them {}", dot.title), ..dot },
    });
    named.collect()
}
