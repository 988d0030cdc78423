//! A heat map: a value for each pair of two lists of names or times; larger values are darker.

use std::collections::HashMap;

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::{self, Area, lane_width};
use super::input::Input;
use super::number::count;
use super::scale::Unit;
use super::series::{Grid, Place};
use super::svg::{Anchor, Canvas, SMALL};
use super::text::width;
use super::value::Value;

const ROWS_MAX: usize = 24;
const ROW: f64 = 22.0;
/// Number of shades; each has its own opacity.
pub const SHADES: usize = 6;

struct Lanes {
    names: Vec<String>,
    cells: Vec<Vec<Option<f64>>>,
}

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let mut grid = Grid::for_width(canvas.is_narrow());
    let (places, place_of) = grid.place(input.values(ChartRole::X));
    let mut notes = grid.notes;
    let lanes = lanes(input, places.len(), &place_of, &mut notes);
    let unit = Unit::of(input.name(ChartRole::Value), input.values(ChartRole::Value));
    let cells = || lanes.cells.iter().flatten().flatten().copied();
    let (low, high) = (cells().fold(0.0, f64::min), cells().fold(0.0, f64::max));
    let left = lane_width(canvas, lanes.names.iter().cloned());
    let top = 4.0 + scale_legend(canvas, &input.word(ChartRole::Value), low, high, unit);
    let bottom = top + count(lanes.names.len()) * ROW;
    let area = Area { left, right: canvas.width - 6.0, top, bottom };
    let step = area.width() / count(places.len().max(1));
    let gap = if step > 6.0 { 2.0 } else { 0.4 };
    for (lane, name) in lanes.names.iter().enumerate() {
        let y = top + count(lane) * ROW;
        canvas.label([left - 8.0, y + ROW / 2.0 + 4.0], Anchor::End, left - 10.0, name);
        for (at, place) in places.iter().enumerate() {
            let place_x = area.left + count(at) * step;
            let cell = [place_x, y + 1.0, (step - gap).max(0.5), ROW - 2.0];
            match lanes.cells[lane][at] {
                None => canvas.rect(cell, "class=\"void\"", ""),
                Some(value) => {
                    let title = format!("{name}, {}: {}", place.name, unit.full(value));
                    let shade = shade(value, low, high);
                    canvas.rect(cell, &format!("class=\"heat q{shade}\""), &title);
                    let text = unit.short(value);
                    if step > width(&text, SMALL) + 6.0 && places.len() * lanes.names.len() <= 400 {
                        let class = if shade >= 4 { "small on" } else { "small in" };
                        canvas.text([place_x + (step - gap) / 2.0, y + 15.0], Anchor::Middle, class, &text);
                    }
                }
            }
        }
    }
    frame::place_labels(canvas, area, &places);
    Sketch { height: bottom + 22.0, summary: summary(input, &lanes, &places, unit), notes }
}

/// The rows of the map: times and numbers sorted, names in the order of the rows; only the heaviest if there are many.
fn lanes(input: &Input<'_>, places: usize, place_of: &[Option<usize>], notes: &mut Vec<String>) -> Lanes {
    let ys = input.values(ChartRole::Y);
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut found: Vec<(String, f64, f64, Vec<Option<f64>>)> = Vec::new();
    for (row, (y, weight)) in ys.iter().zip(input.weights()).enumerate() {
        let name = y.name();
        let at = *known.entry(name.clone()).or_insert_with(|| {
            found.push((name, y.number().unwrap_or(f64::MAX), 0.0, vec![None; places]));
            found.len() - 1
        });
        let (Some(place), Some(weight)) = (place_of.get(row).copied().flatten(), weight) else { continue };
        found[at].2 += weight.abs();
        *found[at].3[place].get_or_insert(0.0) += weight;
    }
    if found.len() > ROWS_MAX {
        notes.push(format!("the chart shows the {ROWS_MAX} largest of {} {}", found.len(), input.word(ChartRole::Y)));
        let mut totals: Vec<f64> = found.iter().map(|lane| lane.2).collect();
        totals.sort_by(|a, b| b.total_cmp(a));
        let least = totals[ROWS_MAX - 1];
        found.retain(|lane| lane.2 >= least);
        found.truncate(ROWS_MAX);
    }
    if ys.iter().all(|y| !matches!(y, Value::Text(_))) {
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
    }
    let (names, cells) = found.into_iter().map(|lane| (lane.0, lane.3)).unzip();
    Lanes { names, cells }
}

/// 0 for nothing, else a shade.
pub fn shade(value: f64, low: f64, high: f64) -> usize {
    let share = if high > low { (value - low) / (high - low) } else { 1.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the number of shades")]
    let shade = (share * count(SHADES - 1)).ceil().clamp(0.0, count(SHADES - 1)) as usize;
    shade
}

/// Draws the shades with the values at both ends, and returns the height.
pub fn scale_legend(canvas: &mut Canvas, title: &str, low: f64, high: f64, unit: Unit) -> f64 {
    let text = unit.short(low);
    canvas.text([0.0, SMALL], Anchor::Start, "small", title);
    let mut x = width(title, SMALL) + 14.0;
    canvas.text([x, SMALL], Anchor::Start, "small", &text);
    x += width(&text, SMALL) + 5.0;
    for shade in 0..SHADES {
        canvas.rect([x, 1.0, 16.0, 11.0], &format!("class=\"heat q{shade}\""), "");
        x += 17.0;
    }
    canvas.text([x + 4.0, SMALL], Anchor::Start, "small", &unit.short(high));
    SMALL + 12.0
}

fn summary(input: &Input<'_>, lanes: &Lanes, places: &[Place], unit: Unit) -> String {
    let cells = lanes.cells.iter().enumerate().flat_map(|(lane, cells)| {
        cells.iter().enumerate().filter_map(move |(at, value)| value.map(|value| (lane, at, value)))
    });
    let most = cells.max_by(|a, b| a.2.total_cmp(&b.2));
    let what =
        format!("{} by {} and {}", input.word(ChartRole::Value), input.word(ChartRole::Y), input.word(ChartRole::X));
    match most {
        Some((lane, at, value)) => {
            format!("{what}: most at {}, {} with {}", lanes.names[lane], places[at].name, unit.full(value))
        }
        None => what,
    }
}
