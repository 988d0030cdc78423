//! A histogram: values counted in bins of equal width, or of equal ratio for values of very different sizes.

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::{Frame, Outline};
use super::input::Input;
use super::number::count;
use super::scale::{self, Unit};
use super::series::counted;
use super::svg::{Anchor, Canvas, Mark, SMALL};
use super::text::width;
use super::value::Value;

const HEIGHT: f64 = 190.0;
const BINS_WANTED: usize = 18;
/// The lower ends of the bins in each power of ten.
const LOG_STEPS: [f64; 3] = [1.0, 2.0, 5.0];
/// The same for durations, in seconds, because powers of ten mean little there.
const LENGTHS_S: [f64; 20] = [
    0.1,
    0.3,
    1.0,
    3.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    900.0,
    1_800.0,
    3_600.0,
    7_200.0,
    14_400.0,
    28_800.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_592_000.0,
];

/// From the lower edge, included, to the upper edge.
struct Bin {
    from: f64,
    to: f64,
    held: f64,
}

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let xs = input.values(ChartRole::X);
    let unit = match Unit::of(input.name(ChartRole::X), xs) {
        Unit::Count if xs.iter().any(|x| matches!(x, Value::Time(_))) => Unit::Plain,
        unit => unit,
    };
    let known: Vec<(f64, f64)> =
        xs.iter().zip(input.weights()).filter_map(|(x, weight)| Some((x.number()?, weight?))).collect();
    let mut notes = Vec::new();
    if known.len() < xs.len() {
        notes.push(format!("{} without {} left out", counted(xs.len() - known.len(), "row"), input.word(ChartRole::X)));
    }
    let mut bins = edges(&known, unit, input.chart.is_log);
    for (x, weight) in &known {
        let at = bins.partition_point(|bin| bin.from <= *x).saturating_sub(1);
        if let Some(bin) = bins.get_mut(at) {
            bin.held += weight;
        }
    }
    let counts = input.chart.column(ChartRole::Y).map_or_else(|| "rows".to_owned(), |_| input.word(ChartRole::Y));
    let outline = Outline {
        title: &counts,
        unit: Unit::Count,
        low: 0.0,
        high: bins.iter().map(|bin| bin.held).fold(0.0, f64::max),
        legend: &[],
        mark: Mark::Box,
        right: 0.0,
        height: HEIGHT,
    };
    let frame = Frame::draw(canvas, &outline);
    let step = frame.area.width() / count(bins.len().max(1));
    let mut free = f64::NEG_INFINITY;
    for (at, bin) in bins.iter().enumerate() {
        let x = frame.area.left + count(at) * step;
        if bin.held > 0.0 {
            let y = frame.values.place(bin.held);
            let title = format!("{}: {}", name(bin, unit), Unit::Count.full(bin.held));
            canvas.bar([x + 0.5, y, (step - 1.0).max(0.6), frame.area.bottom - y], 0, &title);
        }
        let label = unit.short(bin.from);
        let half = width(&label, SMALL) / 2.0;
        if bin.from.is_finite() && x - half > free && x + half < canvas.width {
            canvas.line([x, frame.area.bottom, x, frame.area.bottom + 4.0], "axis", "");
            canvas.text([x, frame.area.bottom + 16.0], Anchor::Middle, "small", &label);
            free = x + half + 8.0;
        }
    }
    canvas.text([frame.area.right, frame.area.bottom + 32.0], Anchor::End, "small", &input.word(ChartRole::X));
    let most = bins.iter().max_by(|a, b| a.held.total_cmp(&b.held));
    let most = most
        .map_or_else(String::new, |bin| format!(", most from {} with {}", name(bin, unit), Unit::Count.full(bin.held)));
    let summary = format!("{} of {} counted{most}", counted(known.len(), "row"), input.word(ChartRole::X));
    Sketch { height: frame.height() + 14.0, summary, notes }
}

fn name(bin: &Bin, unit: Unit) -> String {
    if bin.from == f64::NEG_INFINITY {
        return format!("up to {}", unit.full(bin.to));
    }
    format!("{} to under {}", unit.full(bin.from), unit.full(bin.to))
}

fn edges(known: &[(f64, f64)], unit: Unit, is_log: bool) -> Vec<Bin> {
    let low = known.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let high = known.iter().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return Vec::new();
    }
    let bin = |pair: &[f64]| Bin { from: pair[0], to: pair[1], held: 0.0 };
    if is_log {
        return log_edges(known, unit, high).windows(2).map(bin).collect();
    }
    let wanted = known.len().isqrt().clamp(6, BINS_WANTED);
    let ticks = scale::ticks(low, high, wanted, unit);
    let mut edges: Vec<f64> = ticks.iter().map(|tick| tick.at).collect();
    // A value on the last edge needs a bin of its own.
    if let [.., before, last] = edges[..]
        && last <= high
    {
        edges.push(last + (last - before));
    }
    edges.windows(2).map(bin).collect()
}

fn log_edges(known: &[(f64, f64)], unit: Unit, high: f64) -> Vec<f64> {
    let least = known.iter().map(|(x, _)| *x).filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    if least > high {
        return vec![f64::NEG_INFINITY, 1.0];
    }
    let scale = if unit == Unit::Millis { 1_000.0 } else { 1.0 };
    let mut edges: Vec<f64> = match unit {
        Unit::Millis | Unit::Seconds => LENGTHS_S.iter().map(|length| length * scale).collect(),
        Unit::Plain | Unit::Count | Unit::Share => {
            #[expect(clippy::cast_possible_truncation, reason = "the exponent of a float")]
            let (first, last) = (least.log10().floor() as i32, high.log10().ceil() as i32);
            // More than ten powers of ten do not fit: then each has one bin.
            let steps: &[f64] = if last - first > 10 { &LOG_STEPS[..1] } else { &LOG_STEPS };
            (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power))).collect()
        }
    };
    let first = edges.partition_point(|edge| *edge <= least).saturating_sub(1);
    let last = (edges.partition_point(|edge| *edge <= high) + 1).min(edges.len());
    edges = edges[first..last].to_vec();
    if edges.first().is_some_and(|edge| *edge > least) || known.iter().any(|(x, _)| *x <= 0.0) {
        edges.insert(0, f64::NEG_INFINITY);
    }
    if edges.last().is_some_and(|edge| *edge <= high) {
        edges.push(high * 1.000_001);
    }
    edges
}
