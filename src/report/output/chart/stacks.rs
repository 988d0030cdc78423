//! Columns, bars, areas and histograms: at each place stand values that are stacked by series; negative values go down.

use crate::report::catalog::{ChartKind, ChartRole};

use super::axis::{Axis, extent};
use super::group::{Cell, Groups, REST};
use super::input::{Input, Value};
use super::plot::{Plot, legend};
use super::svg::{Canvas, OTHERS};
use super::text::{number, short, whole};

const BARS_MAX: usize = 20;
const HISTOGRAM_BINS: f64 = 18.0;
/// Room beside a bar for its sum.
const SUM_ROOM: f64 = 44.0;

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> String {
    let kind = input.chart.kind;
    let (x, y) = (input.word(ChartRole::X), input.word(ChartRole::Y));
    let places = match kind {
        ChartKind::Bars => Groups::of(input, canvas, ChartRole::X, BARS_MAX),
        ChartKind::Histogram => bins(input, canvas),
        _ => Groups::places(input, canvas),
    };
    let series = Groups::series(input, canvas);
    let mut cells = places.cells(input, &series);
    let summary = places.summary(&format!("{y} by {x}"), &cells, &series);
    for stack in cells.chunks_mut(series.names.len()).filter(|_| kind == ChartKind::Area100) {
        let total: f64 = stack.iter().map(|cell| cell.value().abs()).sum();
        stack.iter_mut().for_each(|cell| cell.sum = cell.sum.filter(|_| total > 0.0).map(|sum| sum * 100.0 / total));
    }
    let stacks = cells.chunks(series.names.len());
    let height =
        |stack: &[Cell], sign: f64| stack.iter().map(|cell| (cell.value() * sign).max(0.0)).sum::<f64>() * sign;
    let heights = stacks.clone().flat_map(|stack| [height(stack, 1.0), height(stack, -1.0)]);
    let numbers = Axis::numbers(heights.chain([0.0]), 5.0);
    let title = match kind {
        ChartKind::Bars => format!("{y} by {x}"),
        ChartKind::Area100 => format!("share of {y}, %"),
        _ => y,
    };
    let below = if kind == ChartKind::Histogram { x } else { String::new() };
    legend(canvas, series.legend(), |canvas, at, place| canvas.bar(place, series.slot(at), ""));
    let names = places.axis.clone();
    let (x, y, right) = if kind == ChartKind::Bars { (numbers, names, SUM_ROOM) } else { (names, numbers, 0.0) };
    let plot = Plot { x, y, title, below, right }.draw(canvas);
    for stack in stacks {
        draw_stack(canvas, &plot, kind, &places, &series, stack);
    }
    summary
}

/// Draws the values of one place on top of each other.
fn draw_stack(canvas: &mut Canvas, plot: &Plot, kind: ChartKind, places: &Groups, series: &Groups, stack: &[Cell]) {
    let is_bar = kind == ChartKind::Bars;
    let (across, along) = if is_bar { (&plot.y, &plot.x) } else { (&plot.x, &plot.y) };
    let thick = match kind {
        ChartKind::Bars => 15.0,
        ChartKind::Columns => (across.step() * 0.8).min(64.0),
        ChartKind::Histogram => across.step() - 1.0,
        // Areas overlap a little, so that no seam shows.
        _ => across.step() + 0.4,
    };
    let (name, middle) = (&places.names[stack[0].place], across.place(stack[0].place as f64 + 0.5));
    let (mut up, mut down) = (0.0, 0.0);
    for (cell, value) in stack.iter().map(|cell| (cell, cell.value())).filter(|(_, value)| *value != 0.0) {
        let base = if value > 0.0 { &mut up } else { &mut down };
        let (from, to) = (along.place(*base), along.place(*base + value));
        *base += value;
        let (edge, start, length) = (middle - thick / 2.0, from.min(to), (from - to).abs().max(0.5));
        let place = if is_bar { [start, edge, length, thick] } else { [edge, start, thick.max(0.6), length] };
        let slot = if series.names.len() == 1 && name == REST { OTHERS } else { series.slot(cell.part) };
        canvas.bar(place, slot, &format!("{name}: {}{}", series.prefix(cell.part), number(value)));
    }
    if is_bar {
        canvas.text([along.place(up) + 6.0, middle + 4.0], "start", "small", &short(up + down));
    }
}

/// The bins of a histogram, of equal width, or of about equal ratio for values of very different sizes.
fn bins(input: &Input<'_>, canvas: &mut Canvas) -> Groups {
    let xs = input.values(ChartRole::X).iter().map(Value::number);
    let known: Vec<f64> = xs.clone().flatten().collect();
    canvas.note_lost(input.rows.len() - known.len(), &format!("without {}", input.word(ChartRole::X)));
    let wanted = (known.len() as f64).sqrt().clamp(6.0, HISTOGRAM_BINS);
    let round = Axis::numbers(known.iter().copied(), wanted).ticks.into_iter().map(|(at, _)| at);
    let mut edges = if input.chart.is_log { log_edges(&known) } else { round.collect() };
    // A value on the last edge needs a bin of its own.
    let (before, last) = (edges[edges.len() - 2], edges[edges.len() - 1]);
    edges.extend(known.contains(&last).then_some(last + (last - before)));
    let bin = |x: f64| edges.partition_point(|edge| *edge <= x).clamp(1, edges.len() - 1) - 1;
    let name = |pair: &[f64]| format!("{} to under {}", number(pair[0]), number(pair[1]));
    let ticks = edges.iter().enumerate().map(|(at, edge)| (at as f64, short(*edge)));
    Groups {
        axis: Axis::places(edges.len() - 1, ticks.collect()),
        names: edges.windows(2).map(name).collect(),
        of_row: xs.map(|x| x.map(bin)).collect(),
    }
}

/// 1, 2 and 5 times each power of ten, around all values above zero; the first bin also has the values below.
fn log_edges(known: &[f64]) -> Vec<f64> {
    let (low, high) = extent(known.iter().copied().filter(|x| *x > 0.0));
    if low > high {
        return vec![0.0, 1.0];
    }
    let (first, last) = (low.log10().floor(), high.log10().floor());
    let powers = (0..=whole(last - first)).map(|nth| 10_f64.powf(first + nth as f64));
    let round = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]).chain([10_f64.powf(last + 1.0)]);
    let below = known.iter().any(|x| *x <= 0.0).then_some(0.0);
    below.into_iter().chain(round).collect()
}
