//! Charts with a cell for each pair of names: a heat map and a punch card.

use crate::report::catalog::ChartRole;

use super::axis::{Axis, extent};
use super::group::{Cell, Groups, NAMES_MAX, REST};
use super::input::{Input, Value};
use super::plot::{LANE, Plot, legend};
use super::svg::Canvas;
use super::text::{number, short, whole, width};

/// The last of six shades; each has its own opacity.
const SHADE_MAX: f64 = 5.0;
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;

/// The place of a cell in the picture.
pub fn cell_box(plot: &Plot, place: usize, lane: usize) -> [f64; 4] {
    let step = plot.x.step();
    let gap = if step > 6.0 { 2.0 } else { 0.4 };
    let (x, y) = (plot.x.place(place as f64), plot.y.place(lane as f64));
    [x, y + 1.0, (step - gap).max(0.5), LANE - 2.0]
}

/// A value for each place and lane; larger values are darker.
pub fn draw_heatmap(input: &Input<'_>, canvas: &mut Canvas) -> String {
    let places = Groups::places(input, canvas);
    let lanes = Groups::of(input, canvas, ChartRole::Y, NAMES_MAX);
    let cells = places.cells(input, &lanes);
    // The sums of joined names would hide the differences between all others.
    let is_rest = |cell: &Cell| places.names[cell.place] == REST || lanes.names[cell.part] == REST;
    let (low, high) = extent(cells.iter().filter(|cell| !is_rest(cell)).filter_map(|cell| cell.sum).chain([0.0]));
    let title = input.word(ChartRole::Value);
    let shades = [short(low), String::new(), String::new(), String::new(), String::new(), short(high)];
    legend(canvas, &shades, |canvas, at, place| canvas.rect(place, &format!("heat q{at}"), ""));
    let plot = Plot { x: places.axis.clone(), y: lanes.axis.clone(), title, ..Plot::default() }.draw(canvas);
    for cell in &cells {
        let [x, y, w, h] = cell_box(&plot, cell.place, cell.part);
        let Some(sum) = cell.sum else {
            canvas.rect([x, y, w, h], "void", "");
            continue;
        };
        let shade = ((sum - low) / (high - low).max(f64::MIN_POSITIVE) * SHADE_MAX).ceil().clamp(0.0, SHADE_MAX);
        let title = format!("{}, {}: {}", lanes.names[cell.part], places.names[cell.place], number(sum));
        let class = if is_rest(cell) { "f6".to_owned() } else { format!("heat q{shade}") };
        canvas.rect([x, y, w, h], &class, &title);
        if w > width(&short(sum)) + 8.0 {
            let class = if shade >= 4.0 || is_rest(cell) { "small on" } else { "small in" };
            canvas.text([x + w / 2.0, y + 15.0], "middle", class, &short(sum));
        }
    }
    let what = format!("{} by {} and {}", plot.title, input.word(ChartRole::Y), input.word(ChartRole::X));
    places.summary(&what, &cells, &lanes)
}

/// Hours of a day by weekdays; larger values have larger dots.
pub fn draw_punchcard(input: &Input<'_>, canvas: &mut Canvas) -> String {
    let names = (0..HOURS).map(|hour| format!("{hour:02}:00")).collect();
    let hours = Groups::new(names, input.values(ChartRole::X).iter().map(hour_of).collect());
    let days = Groups::new(DAYS.map(str::to_owned).into(), input.values(ChartRole::Y).iter().map(day_of).collect());
    let placed = hours.of_row.iter().zip(&days.of_row).filter(|(hour, day)| hour.is_some() && day.is_some());
    canvas.note_lost(input.rows.len() - placed.count(), "without an hour and a weekday");
    let cells = hours.cells(input, &days);
    let largest = cells.iter().filter_map(|cell| cell.sum).fold(0.0, f64::max);
    let title = format!("{}, the largest dot {}", input.word(ChartRole::Value), short(largest));
    let y = Axis { has_grid: true, ..days.axis.clone() };
    let plot = Plot { x: hours.axis.clone(), y, title, ..Plot::default() }.draw(canvas);
    for Cell { place: hour, part: day, sum } in &cells {
        let (hour, day, Some(sum)) = (*hour, *day, sum.filter(|sum| *sum > 0.0)) else { continue };
        // The eye compares the areas of dots.
        let radius = (sum / largest).sqrt() * (plot.x.step().min(LANE) / 2.0 - 0.5);
        let (x, y) = (plot.x.place(hour as f64 + 0.5), plot.y.place(day as f64 + 0.5));
        let (from, to) = (&hours.names[hour], &hours.names[(hour + 1) % HOURS]);
        canvas.circle([x, y, radius.max(1.2)], 0, &format!("{} {from} to {to}: {}", DAYS[day], number(sum)));
    }
    let what = format!("{} by weekday and hour", input.word(ChartRole::Value));
    hours.summary(&what, &cells, &days)
}

pub fn hour_of(value: &Value) -> Option<usize> {
    value.number().filter(|hour| (0.0..HOURS as f64).contains(hour)).map(whole)
}

/// Monday is 0. A weekday is its English name, or a number: 1 is Monday and 6 Saturday; Sunday is 7 or 0.
pub fn day_of(value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => DAYS.iter().position(|day| day.eq_ignore_ascii_case(text)),
        value => value.number().filter(|day| (0.0..8.0).contains(day)).map(|day| (whole(day) + 6) % 7),
    }
}
