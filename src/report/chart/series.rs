//! Groups rows by place and series, for columns, lines and areas.

use std::collections::HashMap;

use crate::report::catalog::ChartRole;

use super::input::Input;
use super::number::count;
use super::svg::{OTHERS, SLOTS};
use super::time::{self, DAY};
use super::value::Value;

/// Maximum number of columns side by side; more are joined.
const PLACES_MAX: usize = 124;
/// Maximum number of categories on an axis without an order.
const CATEGORIES_MAX: usize = 40;
/// The name for joined categories in reports, and for series without a colour in charts.
pub const REST: &str = "all others";
const HOUR: f64 = DAY / 24.0;
/// The lengths of time bins.
const BINS: [f64; 11] = [
    HOUR / 60.0,
    HOUR / 12.0,
    HOUR / 4.0,
    HOUR / 2.0,
    HOUR,
    2.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    7.0 * DAY,
    28.0 * DAY,
];
/// Weeks begin on Mondays.
const MONDAY: f64 = 4.0 * DAY;

/// One place of the x axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name in a tooltip.
    pub name: String,
    /// The time range, on a time axis.
    pub span: Option<(f64, f64)>,
}

/// One series, with a value or `None` for each place.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub slot: usize,
    pub values: Vec<Option<f64>>,
}

/// Places in the order of the axis, series in the order of the legend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid {
    pub places: Vec<Place>,
    pub series: Vec<Series>,
    /// Notes on joined and omitted data, as sentences.
    pub notes: Vec<String>,
    places_max: usize,
}

impl Grid {
    /// Sums y by place and series.
    pub fn of(input: &Input<'_>, is_narrow: bool) -> Self {
        let mut grid = Grid::for_width(is_narrow);
        let xs = input.values(ChartRole::X);
        let (places, place_of) = grid.place(xs);
        let (names, series_of) =
            fold(input.values(ChartRole::Series), input.weights(), &mut grid.notes, input.word(ChartRole::Series));
        grid.places = places;
        let mut cells: Vec<Vec<Option<f64>>> = vec![vec![None; grid.places.len()]; names.len().max(1)];
        for (row, weight) in input.weights().enumerate() {
            let (Some(place), Some(weight)) = (place_of.get(row).copied().flatten(), weight) else { continue };
            let series = series_of.get(row).copied().unwrap_or(0);
            *cells[series][place].get_or_insert(0.0) += weight;
        }
        let names = if names.is_empty() { vec![(input.word(ChartRole::Y), 0)] } else { names };
        let series = names.into_iter().zip(cells).map(|((name, slot), values)| Series { name, slot, values });
        grid.series = series.collect();
        grid
    }

    /// An empty grid; narrow ones allow fewer places.
    pub fn for_width(is_narrow: bool) -> Self {
        Grid { places_max: if is_narrow { PLACES_MAX / 2 } else { PLACES_MAX }, ..Grid::default() }
    }

    /// The places of an axis, and the place of each row.
    pub fn place(&mut self, xs: &[Value]) -> (Vec<Place>, Vec<Option<usize>>) {
        let times: Vec<f64> = xs.iter().filter_map(|x| if let Value::Time(t) = x { Some(*t) } else { None }).collect();
        let nulls = xs.iter().filter(|x| **x == Value::Null).count();
        if !times.is_empty() && times.len() + nulls == xs.len() {
            if nulls > 0 {
                self.notes.push(format!("{} without a time left out", counted(nulls, "row")));
            }
            return self.place_times(xs, &times);
        }
        let mut names: Vec<(String, f64)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut place_of = Vec::with_capacity(xs.len());
        for x in xs {
            let name = x.name();
            let at = *known.entry(name.clone()).or_insert_with(|| {
                names.push((name, x.number().unwrap_or(f64::MAX)));
                names.len() - 1
            });
            place_of.push(Some(at));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        if xs.iter().all(|x| matches!(x, Value::Number(_) | Value::Null)) {
            order.sort_by(|a, b| names[*a].1.total_cmp(&names[*b].1));
        }
        order.sort_by_key(|at| names[*at].0 == REST);
        if order.len() > CATEGORIES_MAX {
            self.notes.push(format!("the chart shows the first {CATEGORIES_MAX} of {}", order.len()));
            order.truncate(CATEGORIES_MAX);
        }
        let mut rank = vec![None; names.len()];
        for (at, held) in order.iter().enumerate() {
            rank[*held] = Some(at);
        }
        let places = order.iter().map(|at| Place { name: names[*at].0.clone(), span: None }).collect();
        (places, place_of.into_iter().map(|at| at.and_then(|at| rank[at])).collect())
    }

    fn place_times(&mut self, xs: &[Value], times: &[f64]) -> (Vec<Place>, Vec<Option<usize>>) {
        let spans = self.bins(times);
        let places = spans.iter().map(|(from, to)| Place { name: bin_name(*from, *to), span: Some((*from, *to)) });
        let place_of = |x: &Value| {
            let Value::Time(at) = x else { return None };
            let found = spans.partition_point(|(from, _)| from <= at);
            found.checked_sub(1)
        };
        (places.collect(), xs.iter().map(place_of).collect())
    }

    /// Equal parts of the axis from the first time to the last, without holes.
    fn bins(&mut self, times: &[f64]) -> Vec<(f64, f64)> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.fold(f64::INFINITY, f64::min);
        // The base unit: the largest bin that divides all times of the rows.
        let fits = |bin: f64| bin < 7.0 * DAY && sorted.iter().all(|at| at % bin == 0.0);
        let base = BINS.into_iter().rev().find(|bin| fits(*bin)).unwrap_or(BINS[0]);
        let room = |bin: f64| (last - first) / bin + 1.0 <= count(self.places_max);
        let monthly = step >= 27.0 * DAY && step.is_finite();
        let weekly =
            !monthly && step >= 7.0 * DAY && sorted.iter().all(|at| time::weekday(*at) == time::weekday(first));
        let least = if monthly {
            28.0 * DAY
        } else if weekly {
            7.0 * DAY
        } else {
            base
        };
        let bin = BINS.into_iter().find(|bin| *bin >= least && room(*bin)).unwrap_or(28.0 * DAY);
        if bin > least {
            self.notes.push(format!("each mark stands for {}", bin_length(bin)));
        }
        if bin >= 28.0 * DAY {
            return months(first, last, self.places_max);
        }
        let origin = if bin < 7.0 * DAY {
            0.0
        } else if weekly {
            first
        } else {
            MONDAY
        };
        let mut from = ((first - origin) / bin).floor() * bin + origin;
        let mut spans = Vec::new();
        while from <= last {
            spans.push((from, from + bin));
            from += bin;
        }
        spans
    }
}

/// Calendar months; several joined if there are too many.
fn months(first: f64, last: f64, places_max: usize) -> Vec<(f64, f64)> {
    let each = ((last - first) / (30.0 * DAY * count(places_max))).ceil().max(1.0);
    let mut spans = Vec::new();
    let mut from = time::month_floor(first);
    while from <= last && spans.len() <= 2 * places_max {
        // Surely a day in the next month, for any length of month.
        let to = time::month_floor(from + (each * 30.5 + 1.5) * DAY);
        spans.push((from, to));
        from = to;
    }
    spans
}

fn bin_length(bin: f64) -> String {
    match bin {
        bin if bin >= 28.0 * DAY => "a month or more".to_owned(),
        bin if bin >= 7.0 * DAY => "a week".to_owned(),
        bin => time::duration(bin / 1_000.0),
    }
}

fn bin_name(from: f64, to: f64) -> String {
    if to - from > 32.0 * DAY {
        return format!("{} to {}", time::month_name(from), time::month_name(to - DAY));
    }
    if to - from > 27.0 * DAY {
        return time::month_name(from);
    }
    if to - from == DAY { time::moment(from) } else { time::span(from, to) }
}

/// `1 row`, `2 rows`.
pub fn counted(count: usize, noun: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a number to read")]
    let number = super::number::number(count as f64);
    format!("{number} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Names with their colour slots, heaviest first; the lightest are joined as [`REST`], which comes last. Also the name of each row.
/// Empty if the chart has no series.
pub fn fold(
    values: &[Value],
    weights: impl Iterator<Item = Option<f64>>,
    notes: &mut Vec<String>,
    word: String,
) -> (Vec<(String, usize)>, Vec<usize>) {
    if values.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut totals: Vec<(String, f64)> = Vec::new();
    let mut held_of = Vec::with_capacity(values.len());
    for (value, weight) in values.iter().zip(weights) {
        let name = value.name();
        let at = *known.entry(name.clone()).or_insert_with(|| {
            totals.push((name, 0.0));
            totals.len() - 1
        });
        totals[at].1 += weight.unwrap_or(0.0).abs();
        held_of.push(at);
    }
    let is_rest = |at: usize| totals[at].0 == REST;
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by(|a, b| {
        let by_weight = || totals[*b].1.total_cmp(&totals[*a].1);
        is_rest(*a).cmp(&is_rest(*b)).then_with(by_weight).then_with(|| totals[*a].0.cmp(&totals[*b].0))
    });
    let named = order.iter().filter(|at| !is_rest(**at)).count();
    let kept = if order.len() > named || named > SLOTS + 1 { named.min(SLOTS) } else { named };
    let mut names: Vec<(String, usize)> =
        order.iter().take(kept).enumerate().map(|(slot, at)| (totals[*at].0.clone(), slot.min(OTHERS))).collect();
    if kept < order.len() {
        names.push((REST.to_owned(), OTHERS));
        if kept < named {
            let smallest = named - kept;
            notes.push(format!("of {word}, the {smallest} smallest are joined as “{REST}”"));
        }
    }
    let mut rank = vec![kept; totals.len()];
    for (at, held) in order.iter().take(kept).enumerate() {
        rank[*held] = at;
    }
    (names, held_of.into_iter().map(|held| rank[held]).collect())
}
