//! Groups rows by name or by bin of time, and adds them up.

use std::collections::HashMap;

use crate::report::catalog::ChartRole;

use super::axis::{Axis, extent};
use super::input::{Input, Value};
use super::svg::{Canvas, OTHERS};
use super::text::number;
use super::time::{self, Step};

/// The name for joined groups, in reports and in charts.
pub const REST: &str = "all others";
/// Minimum width of a bin of time; narrower ones are joined.
const BIN_WIDTH_MIN: f64 = 6.5;
/// Maximum number of names on an axis; the others are joined.
pub const NAMES_MAX: usize = 24;
/// Maximum number of names side by side.
const COLUMNS_MAX: usize = 40;

/// Groups side by side on an axis, and the number of each row's group; a row without one is not drawn.
pub struct Groups {
    pub names: Vec<String>,
    pub of_row: Vec<Option<usize>>,
    pub axis: Axis,
}

struct Name {
    text: String,
    /// The number or time, or the first row of a text.
    rank: f64,
    weight: f64,
}

impl Groups {
    pub fn new(names: Vec<String>, of_row: Vec<Option<usize>>) -> Self {
        Self { axis: Axis::names(&names), names, of_row }
    }

    /// At most as many series as there are colours, heaviest first; without such a column, one series has all rows.
    pub fn series(input: &Input<'_>, canvas: &mut Canvas) -> Self {
        Self::of(input, canvas, ChartRole::Series, OTHERS + 1)
    }

    /// The names of a column. If there are more than `most`, the lightest are joined as [`REST`], which always comes last.
    pub fn of(input: &Input<'_>, canvas: &mut Canvas, role: ChartRole, most: usize) -> Self {
        if !input.has(role) {
            let named = if input.has(ChartRole::Y) { ChartRole::Y } else { ChartRole::X };
            return Self::new(vec![input.word(named)], vec![Some(0); input.rows.len()]);
        }
        let values = input.values(role);
        let mut known: HashMap<String, Name> = HashMap::new();
        for (row, (value, weight)) in values.iter().zip(input.weights()).enumerate() {
            let rank = if let Value::Text(_) = value { row as f64 } else { value.number().unwrap_or(f64::MAX) };
            let name = known.entry(value.name()).or_insert(Name { text: value.name(), rank, weight: 0.0 });
            name.weight += weight.unwrap_or(0.0).abs();
        }
        let mut names: Vec<Name> = known.into_values().collect();
        let is_rest = |name: &Name| name.text == REST;
        names.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.text.cmp(&b.text)));
        names.sort_by_key(is_rest);
        let joined = if names.len() > most { names.split_off(most - 1) } else { Vec::new() };
        if role != ChartRole::Series {
            names.sort_by(|a, b| a.rank.total_cmp(&b.rank));
            names.sort_by_key(is_rest);
        }
        if !joined.is_empty() {
            let smallest = joined.iter().filter(|name| !is_rest(name)).count();
            canvas.note(format!("of {}, the {smallest} smallest are joined as “{REST}”", input.word(role)));
            names.push(Name { text: REST.to_owned(), rank: 0.0, weight: 0.0 });
        }
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (&*name.text, at)).collect();
        let place = |value: &Value| places.get(&*value.name()).copied().or(Some(names.len() - 1));
        Self::new(names.iter().map(|name| name.text.clone()).collect(), values.iter().map(place).collect())
    }

    /// The places of an x axis side by side: names, or bins of time without holes.
    pub fn places(input: &Input<'_>, canvas: &mut Canvas) -> Self {
        let xs = input.values(ChartRole::X);
        let is_time = |x: &&Value| matches!(x, Value::Time(_));
        let times: Vec<f64> = xs.iter().filter(is_time).filter_map(Value::number).collect();
        if times.is_empty() {
            return Self::of(input, canvas, ChartRole::X, COLUMNS_MAX);
        }
        canvas.note_lost(xs.len() - times.len(), "without a time");
        let (first, last) = extent(times.iter().copied());
        let step = bin_of(&times, [first, last], canvas);
        let spans = step.spans(first, last);
        let place = |at: f64| spans.partition_point(|(from, _)| *from <= at).checked_sub(1);
        let ticks = time::ticks(first, last, canvas.ticks_wanted().min(spans.len() as f64));
        let ticks = ticks.into_iter().filter_map(|(at, label)| Some((place(at)? as f64 + 0.5, label)));
        Self {
            axis: Axis::places(spans.len(), ticks.collect()),
            names: spans.iter().map(|span| step.name(*span)).collect(),
            of_row: xs.iter().map(|x| x.number().and_then(place)).collect(),
        }
    }

    /// The names that need a legend.
    pub fn legend(&self) -> &[String] {
        if self.names.len() > 1 { &self.names } else { &[] }
    }

    /// The colour of a group.
    pub fn slot(&self, at: usize) -> usize {
        if self.names[at] == REST { OTHERS } else { at.min(OTHERS) }
    }

    /// The name of a group as the beginning of a tooltip; empty if there is only one group.
    pub fn prefix(&self, at: usize) -> String {
        if self.names.len() > 1 { format!("{}, ", self.names[at]) } else { String::new() }
    }

    /// A cell for each of these groups and each of `parts`.
    pub fn cells(&self, input: &Input<'_>, parts: &Groups) -> Vec<Cell> {
        let width = parts.names.len();
        let cell = |at: usize| Cell { place: at / width, part: at % width, sum: None };
        let mut cells: Vec<Cell> = (0..self.names.len() * width).map(cell).collect();
        for (row, weight) in input.weights().enumerate() {
            if let (Some(place), Some(part), Some(weight)) = (self.of_row[row], parts.of_row[row], weight) {
                *cells[place * width + part].sum.get_or_insert(0.0) += weight;
            }
        }
        cells
    }

    /// The text description of cells: their sum, the largest one, and the sum of each part.
    pub fn summary(&self, what: &str, cells: &[Cell], parts: &Groups) -> String {
        let sum = |part: Option<usize>| cells.iter().filter(move |cell| part.is_none_or(|part| part == cell.part));
        let sum = |part| number(sum(part).map(Cell::value).sum());
        let mut text = format!("{what}: {} in all", sum(None));
        if let Some(most) = cells.iter().max_by(|a, b| a.value().total_cmp(&b.value())) {
            let (part, place) = (parts.prefix(most.part), &self.names[most.place]);
            text.push_str(&format!(", most at {part}{place} with {}", number(most.value())));
        }
        // Longer lists are in the table.
        let named = parts.legend().iter().enumerate().filter(|_| parts.names.len() <= OTHERS + 1);
        let sums: Vec<String> = named.map(|(at, name)| format!("{name} {}", sum(Some(at)))).collect();
        if sums.is_empty() { text } else { format!("{text}; {}", sums.join(", ")) }
    }
}

/// The times, numbers or names of a column, and the value of each row.
pub fn column(input: &Input<'_>, canvas: &mut Canvas, role: ChartRole) -> (Axis, Vec<Option<f64>>) {
    let values = input.values(role);
    if values.iter().any(|value| matches!(value, Value::Text(_))) {
        return lanes(input, canvas, role);
    }
    let known = values.iter().filter_map(Value::number);
    let wanted = if role == ChartRole::X { canvas.ticks_wanted() } else { 5.0 };
    let axis = if values.iter().any(|value| matches!(value, Value::Time(_))) {
        Axis::times(known, wanted)
    } else {
        // The axis contains zero, unless zero is far from all numbers.
        let (low, high) = extent(known.clone());
        let zero = (low > 0.0 && low < high / 2.0).then_some(0.0);
        Axis::numbers(known.chain(zero), wanted)
    };
    (axis, values.iter().map(Value::number).collect())
}

/// The names of a column in lanes, and the middle of each row's lane.
pub fn lanes(input: &Input<'_>, canvas: &mut Canvas, role: ChartRole) -> (Axis, Vec<Option<f64>>) {
    let lanes = Groups::of(input, canvas, role, NAMES_MAX);
    let middles = lanes.of_row.into_iter().map(|lane| lane.map(|lane| lane as f64 + 0.5));
    (Axis { has_grid: true, ..lanes.axis }, middles.collect())
}

/// The sum of the rows of two groups; `None` without rows.
#[derive(Clone, Copy)]
pub struct Cell {
    pub place: usize,
    pub part: usize,
    pub sum: Option<f64>,
}

impl Cell {
    pub fn value(&self) -> f64 {
        self.sum.unwrap_or(0.0)
    }
}

/// The length of a bin: the unit in which the rows count, or a longer one if the bins are too many.
fn bin_of(times: &[f64], [first, last]: [f64; 2], canvas: &mut Canvas) -> Step {
    // A single time says nothing about weeks and months.
    let units = if first < last { &Step::UNITS[..] } else { &Step::UNITS[2..] };
    let counts = |step: &&Step| times.iter().all(|at| step.floor(*at) == *at);
    let unit = *units.iter().find(counts).unwrap_or(&Step::Seconds(60));
    let room = (last - first) / (canvas.width / BIN_WIDTH_MIN - 1.0);
    if room <= unit.length() {
        return unit;
    }
    let step = Step::at_least(room);
    canvas.note(format!("each mark stands for a longer time, such as {}", step.name(step.spans(first, first)[0])));
    step
}
