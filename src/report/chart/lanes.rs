//! Events in lanes: spans from a start to an end, or single moments.

use std::collections::{BTreeMap, HashMap};

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::frame::{self, Area, lane_width, time_span};
use super::input::Input;
use super::number::count;
use super::scale::Linear;
use super::series::{counted, fold};
use super::svg::{Anchor, Canvas, Mark, n};
use super::time;
use super::value::Value;

const LANES_MAX: usize = 24;
const LANE: f64 = 24.0;
/// Maximum number of single marks.
const MARKS_MAX: usize = 1_500;
/// Moments closer than this share one mark.
const MARK_WIDTH: f64 = 1.5;

/// A span, or a moment if `to` equals `from`.
struct Event {
    lane: usize,
    from: f64,
    /// `None` if the span has not ended.
    to: Option<f64>,
    slot: usize,
    name: String,
}

struct Lanes {
    names: Vec<String>,
    marks: Vec<Event>,
    series: Vec<(String, usize)>,
    notes: Vec<String>,
    all: usize,
}

/// Draws spans in lanes.
pub fn draw_timeline(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let lanes = Lanes::of(input, ChartRole::Start, Some(ChartRole::End), ChartRole::Lane);
    let (area, axis) = lanes.frame(canvas);
    for mark in &lanes.marks {
        let y = area.top + count(mark.lane) * LANE + 5.0;
        let (x, h) = (axis.place(mark.from), LANE - 10.0);
        let until = mark
            .to
            .map_or_else(|| format!("from {}, not ended", time::moment(mark.from)), |to| time::span(mark.from, to));
        let title = format!("{}{}: {until}", mark.name, lanes.names[mark.lane]);
        let end = axis.place(mark.to.unwrap_or(axis.high));
        canvas.bar([x, y, (end - x).max(1.5), h], mark.slot, &title);
        if mark.to.is_none() {
            let tip = format!("M{} {}l5 {}l-5 {}z", n(end), n(y), n(h / 2.0), n(h / 2.0));
            canvas.path(&tip, &format!("class=\"f{}\"", mark.slot), &title);
        }
    }
    let open = lanes.marks.iter().filter(|mark| mark.to.is_none()).count();
    let open = if open > 0 { format!(", {open} of them not ended") } else { String::new() };
    lanes.sketch(area, &format!("{}{open}", input.word(ChartRole::Start)))
}

/// Draws moments in lanes; moments at the same position share one mark.
pub fn draw_strip(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    // Series without lanes of their own get one lane each.
    let lanes = [ChartRole::Lane, ChartRole::Y, ChartRole::Series];
    let role = lanes.into_iter().find(|role| input.chart.column(*role).is_some()).unwrap_or(ChartRole::Lane);
    let lanes = Lanes::of(input, ChartRole::X, None, role);
    let (area, axis) = lanes.frame(canvas);
    let mut width = MARK_WIDTH;
    let mut places = lanes.places(&axis, width);
    while places.len() > MARKS_MAX && width < axis.end - axis.start {
        width *= 1.5;
        places = lanes.places(&axis, width);
    }
    for (mark, held) in places.into_values() {
        let y = area.top + count(mark.lane) * LANE + 4.0;
        let more = if held > 1 { format!(", and {} close by", held - 1) } else { String::new() };
        let title = format!("{}{}: {}{more}", mark.name, lanes.names[mark.lane], time::moment(mark.from));
        canvas.rect([axis.place(mark.from) - 0.9, y, 1.8, LANE - 8.0], &format!("class=\"f{}\"", mark.slot), &title);
    }
    lanes.sketch(area, &input.word(ChartRole::X))
}

impl Lanes {
    /// The events by lane, position and series: the first event, and the number of events.
    fn places(&self, axis: &Linear, width: f64) -> BTreeMap<(usize, i64, usize), (&Event, usize)> {
        let mut places: BTreeMap<(usize, i64, usize), (&Event, usize)> = BTreeMap::new();
        for mark in &self.marks {
            #[expect(clippy::cast_possible_truncation, reason = "a place in the picture")]
            let place = (axis.place(mark.from) / width).floor() as i64;
            places.entry((mark.lane, place, mark.slot)).and_modify(|held| held.1 += 1).or_insert((mark, 1));
        }
        places
    }

    fn of(input: &Input<'_>, start: ChartRole, end: Option<ChartRole>, lane: ChartRole) -> Self {
        let mut notes = Vec::new();
        let (series, series_of) =
            fold(input.values(ChartRole::Series), input.weights(), &mut notes, input.word(ChartRole::Series));
        let mut known: HashMap<String, usize> = HashMap::new();
        let (mut names, mut marks): (Vec<String>, Vec<Event>) = (Vec::new(), Vec::new());
        let (mut lost, mut beyond) = (0, 0);
        let lanes = input.values(lane);
        for (row, from) in input.values(start).iter().enumerate() {
            let Value::Time(from) = from else {
                lost += 1;
                continue;
            };
            let name = lanes.get(row).map_or_else(|| input.word(start), Value::name);
            let held = names.len();
            let at = *known.entry(name.clone()).or_insert(held);
            if at == held {
                names.push(name);
            }
            let to = match end.map(|end| input.values(end).get(row)) {
                None => Some(*from),
                Some(to) => to.and_then(Value::number).map(|to| to.max(*from)),
            };
            if at >= LANES_MAX || marks.len() >= MARKS_MAX && end.is_some() {
                beyond += 1;
                continue;
            }
            let found = series_of.get(row).and_then(|at| series.get(*at));
            let (name, slot) = found.map_or((String::new(), 0), |(name, slot)| (format!("{name}, "), *slot));
            marks.push(Event { lane: at, from: *from, to, slot, name });
        }
        if lost > 0 {
            notes.push(format!("{} without a time left out", counted(lost, "row")));
        }
        if beyond > 0 {
            notes.push(format!(
                "{} more left out; {} {} in all",
                counted(beyond, "row"),
                names.len(),
                input.word(lane)
            ));
        }
        names.truncate(LANES_MAX);
        let all = marks.len() + beyond;
        Self { names, marks, series, notes, all }
    }

    /// Draws legend, lanes and axis; returns the area of the marks.
    fn frame(&self, canvas: &mut Canvas) -> (Area, Linear) {
        let mut top = 4.0;
        if self.series.len() > 1 {
            top += canvas.legend(0.0, top, &self.series, Mark::Box);
        }
        let left = lane_width(canvas, self.names.iter().cloned());
        let area = Area { left, right: canvas.width - 10.0, top, bottom: top + count(self.names.len()) * LANE };
        for (at, name) in self.names.iter().enumerate() {
            let y = area.top + count(at) * LANE;
            canvas.line([area.left, y + LANE, area.right, y + LANE], "grid", "");
            canvas.label([left - 8.0, y + LANE / 2.0 + 4.0], Anchor::End, left - 10.0, name);
        }
        let times = self.marks.iter().flat_map(|mark| [Some(mark.from), mark.to]).flatten();
        let (low, high) = time_span(times);
        let axis = Linear { low, high, start: area.left + 3.0, end: area.right - 3.0 };
        frame::time_labels(canvas, area, &axis);
        (area, axis)
    }

    fn sketch(self, area: Area, what: &str) -> Sketch {
        let first = self.marks.iter().map(|mark| mark.from).fold(f64::INFINITY, f64::min);
        let last = self.marks.iter().map(|mark| mark.to.unwrap_or(mark.from)).fold(f64::NEG_INFINITY, f64::max);
        let when = if first <= last { format!(", {}", time::span(first, last)) } else { String::new() };
        let summary = format!("{} of {what} in {}{when}", counted(self.all, "mark"), counted(self.names.len(), "lane"));
        Sketch { height: area.bottom + 22.0, summary, notes: self.notes }
    }
}
