//! Horizontal bars, one for each name, stacked by series; the smallest are joined as "all others".

use std::collections::HashMap;

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::lane_width;
use super::input::Input;
use super::number::count;
use super::scale::{Linear, Unit};
use super::series::{REST, fold};
use super::svg::{Anchor, Canvas, Mark, OTHERS, SMALL};
use super::text::width;
use super::value::Value;

const BARS_MAX: usize = 20;
const ROW: f64 = 24.0;
const BAR: f64 = 15.0;

struct Bar {
    name: String,
    parts: Vec<f64>,
    /// The bar of all names that have no bar of their own.
    is_rest: bool,
}

impl Bar {
    fn total(&self) -> f64 {
        self.parts.iter().sum()
    }
}

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let (names, values) = roles(input);
    let weights: Vec<Option<f64>> = input.values(values).iter().map(Value::number).collect();
    let unit = Unit::of(input.name(values), input.values(values));
    let mut notes = Vec::new();
    let (series, series_of) =
        fold(input.values(ChartRole::Series), weights.iter().copied(), &mut notes, input.word(ChartRole::Series));
    let bars = stack(input.values(names), &weights, &series_of, series.len().max(1), &mut notes);
    let mut top = 4.0;
    if series.len() > 1 {
        top += canvas.legend(0.0, top, &series, Mark::Box);
    }
    canvas.text(
        [0.0, top + SMALL],
        Anchor::Start,
        "small",
        &format!("{} by {}", input.word(values), input.word(names)),
    );
    top += SMALL + 8.0;
    let left = lane_width(canvas, bars.iter().map(|bar| bar.name.clone()));
    let high = bars.iter().map(|bar| bar.parts.iter().map(|part| part.max(0.0)).sum()).fold(0.0, f64::max);
    let low = bars.iter().map(|bar| bar.parts.iter().map(|part| part.min(0.0)).sum()).fold(0.0, f64::min);
    let beside = bars.iter().map(|bar| width(&unit.short(bar.total()), SMALL)).fold(0.0, f64::max) + 10.0;
    let start = left + if low < 0.0 { beside } else { 0.0 };
    let high = if high == low { 1.0 } else { high };
    let axis = Linear { low, high, start, end: (canvas.width - beside).max(start + 20.0) };
    for (at, bar) in bars.iter().enumerate() {
        let y = top + count(at) * ROW;
        canvas.label([left - 8.0, y + BAR / 2.0 + 4.0], Anchor::End, left - 10.0, &bar.name);
        let (mut up, mut down) = (0.0, 0.0);
        for (part, value) in bar.parts.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            let base = if *value > 0.0 { &mut up } else { &mut down };
            let (from, to) = (axis.place(*base), axis.place(*base + value));
            *base += value;
            let name = series.get(part).map_or_else(String::new, |(name, _)| format!(", {name}"));
            let slot = series.get(part).map_or(if bar.is_rest { OTHERS } else { 0 }, |(_, slot)| *slot);
            let title = format!("{}{name}: {}", bar.name, unit.full(*value));
            canvas.bar([from.min(to), y, (to - from).abs().max(1.0), BAR], slot, &title);
        }
        let (x, anchor) = if up > 0.0 || down == 0.0 {
            (axis.place(up) + 6.0, Anchor::Start)
        } else {
            (axis.place(down) - 6.0, Anchor::End)
        };
        canvas.text([x, y + BAR / 2.0 + 4.0], anchor, "small", &unit.short(bar.total()));
    }
    let bottom = top + count(bars.len()) * ROW;
    let zero = axis.place(0.0);
    canvas.line([zero, top - 4.0, zero, bottom - 4.0], "axis", "");
    Sketch { height: bottom + 4.0, summary: summary(input, (names, values), &bars, unit), notes }
}

/// The role of the names and the role of the values: x and y in either order.
fn roles(input: &Input<'_>) -> (ChartRole, ChartRole) {
    let is_measure = |role| {
        let mut values = input.values(role).iter().filter(|value| **value != Value::Null).peekable();
        values.peek().is_some() && values.all(|value| matches!(value, Value::Number(_)))
    };
    if is_measure(ChartRole::X) && !is_measure(ChartRole::Y) {
        (ChartRole::Y, ChartRole::X)
    } else {
        (ChartRole::X, ChartRole::Y)
    }
}

/// The bars in the order of the rows. Beyond the maximum: the largest, and one bar for the others.
fn stack(
    names: &[Value],
    weights: &[Option<f64>],
    series_of: &[usize],
    series: usize,
    notes: &mut Vec<String>,
) -> Vec<Bar> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut bars: Vec<Bar> = Vec::new();
    for (row, name) in names.iter().enumerate() {
        let name = name.name();
        let at = *known.entry(name.clone()).or_insert_with(|| {
            bars.push(Bar { is_rest: name == REST, name, parts: vec![0.0; series] });
            bars.len() - 1
        });
        let part = series_of.get(row).copied().unwrap_or(0);
        bars[at].parts[part] += weights.get(row).copied().flatten().unwrap_or(0.0);
    }
    bars.sort_by_key(|bar| bar.is_rest);
    if bars.len() <= BARS_MAX {
        return bars;
    }
    let mut others = match bars.pop_if(|bar| bar.is_rest) {
        Some(bar) => bar,
        None => Bar { name: REST.to_owned(), parts: vec![0.0; series], is_rest: true },
    };
    let mut sizes: Vec<(usize, f64)> = bars.iter().enumerate().map(|(at, bar)| (at, bar.total().abs())).collect();
    sizes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut kept: Vec<usize> = sizes[..BARS_MAX - 1].iter().map(|(at, _)| *at).collect();
    kept.sort_unstable();
    let rest = bars.len() - kept.len();
    let mut shown = Vec::with_capacity(BARS_MAX);
    for (at, bar) in bars.into_iter().enumerate() {
        if kept.binary_search(&at).is_ok() {
            shown.push(bar);
        } else {
            others.parts.iter_mut().zip(bar.parts).for_each(|(sum, part)| *sum += part);
        }
    }
    shown.push(others);
    notes.push(format!("the chart shows the {} largest, and the other {rest} together as “{REST}”", BARS_MAX - 1));
    shown
}

fn summary(input: &Input<'_>, (names, values): (ChartRole, ChartRole), bars: &[Bar], unit: Unit) -> String {
    let mut text = format!("{} by {}", input.word(values), input.word(names));
    let mut order: Vec<&Bar> = bars.iter().collect();
    order.sort_by(|a, b| b.total().abs().total_cmp(&a.total().abs()));
    let largest = order.iter().take(3).map(|bar| format!("{} {}", bar.name, unit.full(bar.total())));
    let largest: Vec<String> = largest.collect();
    if !largest.is_empty() {
        text.push_str(&format!(": {}", super::text::listed(&largest)));
    }
    if bars.len() > 3 {
        text.push_str(&format!(", and {} more", bars.len() - 3));
    }
    text
}
