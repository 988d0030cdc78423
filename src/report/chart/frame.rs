//! The parts around the marks: the value axis on the left, the place axis below, the legend above.

use super::number::count;
use super::scale::{self, Linear, Unit};
use super::series::{Place, Series};
use super::svg::{Anchor, Canvas, Mark, SMALL, TEXT};
use super::text::{cut, width};
use super::time::{self, DAY, Tick};

/// Room below the marks for axis labels.
const BELOW: f64 = 22.0;
/// Minimum number of pixels between two ticks of the value axis.
const TICK_ROOM: f64 = 42.0;

/// The area of the marks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Area {
    pub fn width(&self) -> f64 {
        (self.right - self.left).max(1.0)
    }
}

/// A frame with a value axis on its left.
pub struct Frame {
    pub area: Area,
    pub values: Linear,
}

/// The content of the frame.
pub struct Outline<'a> {
    /// The title of the value axis.
    pub title: &'a str,
    pub unit: Unit,
    pub low: f64,
    pub high: f64,
    pub legend: &'a [(String, usize)],
    pub mark: Mark,
    /// Room on the right for the names of lines.
    pub right: f64,
    pub height: f64,
}

impl Frame {
    /// Draws the legend, the grid and the value axis, and returns the area of the marks.
    pub fn draw(canvas: &mut Canvas, outline: &Outline<'_>) -> Self {
        let mut top = 4.0;
        if outline.legend.len() > 1 {
            top += canvas.legend(0.0, top, outline.legend, outline.mark);
        }
        canvas.text([0.0, top + SMALL], Anchor::Start, "small", outline.title);
        top += SMALL + 10.0;
        let bottom = top + outline.height;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few ticks")]
        let wanted = (outline.height / TICK_ROOM).floor().max(2.0) as usize;
        let ticks = scale::ticks(outline.low, outline.high, wanted, outline.unit);
        let left = ticks.iter().map(|tick| width(&tick.label, SMALL)).fold(0.0, f64::max) + 8.0;
        let area = Area { left, right: canvas.width - outline.right.max(6.0), top, bottom };
        let (low, high) = (ticks.first().map_or(0.0, |t| t.at), ticks.last().map_or(1.0, |t| t.at));
        let values = Linear { low, high, start: bottom, end: top };
        for tick in &ticks {
            let y = values.place(tick.at);
            let class = if tick.at == 0.0 { "axis" } else { "grid" };
            canvas.line([area.left, y, area.right, y], class, "");
            canvas.text([area.left - 6.0, y + 4.0], Anchor::End, "small", &tick.label);
        }
        Self { area, values }
    }

    /// The height of the drawing, including the labels below.
    pub fn height(&self) -> f64 {
        self.area.bottom + BELOW
    }
}

/// Labels below places of equal width; as many as fit.
pub fn place_labels(canvas: &mut Canvas, area: Area, places: &[Place]) {
    if let (Some((first, _)), Some((_, last))) =
        (places.first().and_then(|p| p.span), places.last().and_then(|p| p.span))
    {
        let last_from = places.last().and_then(|p| p.span).map_or(last, |(from, _)| from);
        let wanted = tick_count(area);
        let ticks = time::ticks(first, last_from, wanted.min(places.len().max(1)));
        // Months differ in length, but places do not: a tick goes to the place that contains it.
        let place_of = |at: f64| places.partition_point(|place| place.span.is_some_and(|(from, _)| from <= at));
        let step = area.width() / count(places.len());
        let ticks = ticks.into_iter().map(|tick| {
            let at = place_of(tick.at).saturating_sub(1);
            let x = area.left + (count(at) + 0.5) * step;
            (x, tick)
        });
        return tick_labels(canvas, area, ticks.collect());
    }
    let step = area.width() / count(places.len());
    let widest = places.iter().map(|place| width(&place.name, TEXT)).fold(0.0, f64::max).min(110.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few labels")]
    let every = ((widest.min(step.max(70.0)) + 14.0) / step).ceil().max(1.0) as usize;
    for (at, place) in places.iter().enumerate().step_by(every) {
        let room = step * count(every) - 14.0;
        let half = room.min(width(&place.name, TEXT)) / 2.0;
        let x = (area.left + (count(at) + 0.5) * step).clamp(half, (canvas.width - half).max(half));
        canvas.label([x, area.bottom + 16.0], Anchor::Middle, room, &place.name);
    }
}

/// Labels of a time axis.
pub fn time_labels(canvas: &mut Canvas, area: Area, axis: &Linear) {
    let ticks = time::ticks(axis.low, axis.high, tick_count(area));
    tick_labels(canvas, area, ticks.into_iter().map(|tick| (axis.place(tick.at), tick)).collect());
}

/// Labels of a time axis whose positions come from `place`.
pub fn time_ticks(canvas: &mut Canvas, area: Area, first: f64, last: f64, place: impl Fn(f64) -> f64) {
    let ticks = time::ticks(first, last, tick_count(area));
    tick_labels(canvas, area, ticks.into_iter().map(|tick| (place(tick.at), tick)).collect());
}

/// Labels of a linear axis below the marks.
pub fn number_labels(canvas: &mut Canvas, area: Area, axis: &Linear, ticks: &[Tick]) {
    tick_labels(canvas, area, ticks.iter().map(|tick| (axis.place(tick.at), tick.clone())).collect());
}

/// The number of ticks that fit below an area.
pub fn tick_count(area: Area) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few ticks")]
    let wanted = (area.width() / 78.0).floor().max(2.0) as usize;
    wanted
}

fn tick_labels(canvas: &mut Canvas, area: Area, ticks: Vec<(f64, Tick)>) {
    let mut free = f64::NEG_INFINITY;
    for (x, tick) in ticks {
        canvas.line([x, area.bottom, x, area.bottom + 4.0], "axis", "");
        let half = width(&tick.label, SMALL) / 2.0;
        // A label at the edge moves inwards.
        let middle = x.clamp(half, (canvas.width - half).max(half));
        if middle - half > free {
            canvas.text([middle, area.bottom + 16.0], Anchor::Middle, "small", &tick.label);
            free = middle + half + 8.0;
        }
    }
}

/// The width of the names on the left.
pub fn lane_width(canvas: &Canvas, names: impl Iterator<Item = String>) -> f64 {
    let most = if canvas.is_narrow() { 120.0 } else { 220.0 };
    names.map(|name| width(&cut(&name, most, TEXT), TEXT)).fold(0.0, f64::max) + 10.0
}

/// The legend of several series; a single series has none.
pub fn legend_of(series: &[Series]) -> Vec<(String, usize)> {
    series.iter().map(|one| (one.name.clone(), one.slot)).collect()
}

/// The first and the last time; never equal.
pub fn time_span(times: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = times.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), t| (low.min(t), high.max(t)));
    if low > high {
        (0.0, DAY)
    } else if low == high {
        (low - DAY / 2.0, high + DAY / 2.0)
    } else {
        (low, high)
    }
}
