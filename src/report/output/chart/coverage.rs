//! The calendar of coverage: a lane for each stream, a cell for each range of time, in one state.

use super::axis::Axis;
use super::cells::cell_box;
use super::plot::{Plot, legend};
use super::svg::{Canvas, n};
use super::text::plural;
use super::{Drawing, in_both_widths, nothing, time};

/// The coverage of a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellState {
    Settled,
    Provisional,
    Before,
    Waiting,
    Missing,
    Gap,
}

/// Each state, its class, its words, and a sign that makes it independent of colour.
const STATES: [(CellState, &str, &str, &str); 6] = [
    (CellState::Settled, "settled", "settled", ""),
    (CellState::Provisional, "provisional", "read, not settled yet", "m-3 0h6"),
    (CellState::Before, "before", "before the archive begins", ""),
    (CellState::Waiting, "waiting", "not yet read", ""),
    (CellState::Missing, "missing", "never read", "m-3-3l6 6"),
    (CellState::Gap, "gap", "a gap is recorded", "m-3-3l6 6m0-6l-6 6"),
];

/// Lanes by name, each with a state for every cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageCalendar {
    /// The start of each range of time, in microseconds of the page's local time, and its name.
    pub cells: Vec<(f64, String)>,
    pub lanes: Vec<(String, Vec<CellState>)>,
}

impl CoverageCalendar {
    pub fn draw(&self) -> Drawing {
        in_both_widths("Coverage", |canvas| match (self.cells.first(), self.cells.last()) {
            (Some(first), Some(last)) if !self.lanes.is_empty() => self.sketch(canvas, first.0, last.0),
            _ => nothing(canvas),
        })
    }

    fn sketch(&self, canvas: &mut Canvas, first: f64, last: f64) -> String {
        let occurs = |state| self.lanes.iter().any(|(_, states)| states.contains(&state));
        let held: Vec<_> = STATES.iter().filter(|(state, ..)| occurs(*state)).collect();
        let words: Vec<String> = held.iter().map(|(_, _, words, _)| words.to_string()).collect();
        legend(canvas, &words, |canvas, at, place| mark(canvas, place, held[at].0, ""));
        let names: Vec<String> = self.lanes.iter().map(|(name, _)| name.clone()).collect();
        let place = |at: f64| self.cells.partition_point(|(from, _)| *from <= at).saturating_sub(1) as f64 + 0.5;
        let ticks = time::ticks(first, last, canvas.ticks_wanted());
        let ticks = ticks.into_iter().map(|(at, label)| (place(at), label)).collect();
        let (x, y) = (Axis::places(self.cells.len(), ticks), Axis::names(&names));
        let plot = Plot { x, y, ..Plot::default() }.draw(canvas);
        for (lane, (name, states)) in self.lanes.iter().enumerate() {
            for (at, ((_, range), state)) in self.cells.iter().zip(states).enumerate() {
                mark(canvas, cell_box(&plot, at, lane), *state, &format!("{name}, {range}: "));
            }
        }
        self.summary()
    }

    /// One part for all fully settled lanes, and one for each other lane.
    fn summary(&self) -> String {
        let (mut settled, mut parts) = (0, Vec::new());
        for (name, states) in &self.lanes {
            let number = |state| states.iter().filter(|held| **held == state).count();
            let found = STATES.iter().filter(|(state, ..)| number(*state) > 0);
            let found: Vec<String> = found.map(|(state, _, words, _)| format!("{} {words}", number(*state))).collect();
            match number(CellState::Settled) == states.len() {
                true => settled += 1,
                false => parts.push(format!("; {name}: {} of {} cells", found.join(", "), states.len())),
            }
        }
        format!("{settled} of {} settled throughout{}", plural(self.lanes.len() as u64, "stream"), parts.concat())
    }
}

/// A cell with its state in the tooltip, after `name`.
fn mark(canvas: &mut Canvas, [x, y, w, h]: [f64; 4], state: CellState, name: &str) {
    let Some((_, class, words, sign)) = STATES.iter().find(|(known, ..)| *known == state) else { return };
    canvas.rect([x, y, w, h], class, &format!("{name}{words}"));
    if w >= 4.0 && !sign.is_empty() {
        canvas.path(&format!("M{} {}{sign}", n(x + w / 2.0), n(y + h / 2.0)), "cross", "");
    }
}
