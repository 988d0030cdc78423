//! The coverage strip: a lane for each stream, a cell for each range of time, in one state.

use super::frame::{Area, lane_width, time_ticks};
use super::number::count;
use super::svg::{Anchor, Canvas, n};
use super::text::width;
use super::{Drawing, NARROW, Sketch, Svg, WIDE};

const LANE: f64 = 26.0;

/// The coverage of a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StripState {
    Settled,
    Provisional,
    Before,
    Waiting,
    Missing,
    Gap,
}

impl StripState {
    const ALL: [StripState; 6] = [
        StripState::Settled,
        StripState::Provisional,
        StripState::Before,
        StripState::Waiting,
        StripState::Missing,
        StripState::Gap,
    ];

    const fn words(self) -> &'static str {
        match self {
            StripState::Settled => "settled",
            StripState::Provisional => "read, not settled yet",
            StripState::Before => "before the archive begins",
            StripState::Waiting => "not yet read",
            StripState::Missing => "never read",
            StripState::Gap => "a gap is recorded",
        }
    }

    const fn class(self) -> &'static str {
        match self {
            StripState::Settled => "class=\"settled\"",
            StripState::Provisional => "class=\"provisional\"",
            StripState::Before => "class=\"before\"",
            StripState::Waiting => "class=\"waiting\"",
            StripState::Missing => "class=\"missing\"",
            StripState::Gap => "class=\"gap\"",
        }
    }
}

/// A range of time: its start, in microseconds of the page's local time, and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct StripCell {
    pub from: f64,
    pub name: String,
}

/// Lanes by name, each with a state for every cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    pub cells: Vec<StripCell>,
    pub lanes: Vec<(String, Vec<StripState>)>,
}

impl Strip {
    pub fn draw(&self) -> Drawing {
        let (wide, sketch) = self.on(Canvas::new(WIDE));
        let (narrow, _) = self.on(Canvas::new(NARROW));
        Drawing { wide, narrow, summary: sketch.summary, notes: sketch.notes }
    }

    fn on(&self, mut canvas: Canvas) -> (Svg, Sketch) {
        let mut sketch = if self.cells.is_empty() || self.lanes.is_empty() {
            super::nothing(&mut canvas)
        } else {
            self.sketch(&mut canvas)
        };
        sketch.summary = super::text::clean(&sketch.summary);
        (canvas.finish(sketch.height, &format!("Coverage: {}", sketch.summary)), sketch)
    }

    fn sketch(&self, canvas: &mut Canvas) -> Sketch {
        let top = self.legend(canvas);
        let left = lane_width(canvas, self.lanes.iter().map(|(name, _)| name.clone()));
        let bottom = top + count(self.lanes.len()) * LANE;
        let area = Area { left, right: canvas.width - 4.0, top, bottom };
        let step = area.width() / count(self.cells.len());
        let gap = if step > 5.0 { 1.5 } else { 0.0 };
        for (lane, (name, states)) in self.lanes.iter().enumerate() {
            let y = top + count(lane) * LANE;
            canvas.label([left - 8.0, y + LANE / 2.0 + 3.0], Anchor::End, left - 10.0, name);
            for (at, (cell, state)) in self.cells.iter().zip(states).enumerate() {
                let title = format!("{name}, {}: {}", cell.name, state.words());
                let x = area.left + count(at) * step;
                mark(canvas, [x, y + 3.0, step - gap, LANE - 7.0], *state, &title);
            }
        }
        let place = |at: f64| self.cells.partition_point(|cell| cell.from <= at).saturating_sub(1);
        let (first, last) = (self.cells[0].from, self.cells[self.cells.len() - 1].from);
        time_ticks(canvas, area, first, last, |at| area.left + count(place(at)) * step);
        Sketch { height: bottom + 22.0, summary: self.summary(), notes: Vec::new() }
    }

    /// The states that occur.
    fn legend(&self, canvas: &mut Canvas) -> f64 {
        let (mut x, mut y) = (0.0, 4.0);
        for state in StripState::ALL.into_iter().filter(|state| self.holds(*state)) {
            let takes = 20.0 + width(state.words(), 12.0) + 14.0;
            if x > 0.0 && x + takes > canvas.width {
                (x, y) = (0.0, y + 18.0);
            }
            mark(canvas, [x, y + 1.0, 14.0, 12.0], state, state.words());
            canvas.text([x + 20.0, y + 11.0], Anchor::Start, "label", state.words());
            x += takes;
        }
        y + 22.0
    }

    fn holds(&self, state: StripState) -> bool {
        self.lanes.iter().any(|(_, states)| states.contains(&state))
    }

    /// One sentence for all fully settled lanes, and one for each other lane.
    fn summary(&self) -> String {
        let is_settled = |states: &[StripState]| states.iter().all(|state| *state == StripState::Settled);
        let settled = self.lanes.iter().filter(|(_, states)| is_settled(states)).count();
        let mut parts =
            vec![format!("{settled} of {} settled throughout", super::series::counted(self.lanes.len(), "stream"))];
        for (name, states) in self.lanes.iter().filter(|(_, states)| !is_settled(states)) {
            let of = |state: StripState| states.iter().filter(|held| **held == state).count();
            let found = StripState::ALL.into_iter().filter(|state| of(*state) > 0);
            let found: Vec<String> = found.map(|state| format!("{} {}", of(state), state.words())).collect();
            parts.push(format!("{name}: {} of {} cells", found.join(", "), states.len()));
        }
        parts.join("; ")
    }
}

/// A cell. A gap is red and crossed out, so that it does not depend on colour.
fn mark(canvas: &mut Canvas, [x, y, w, h]: [f64; 4], state: StripState, title: &str) {
    canvas.rect([x, y, w, h], state.class(), title);
    if matches!(state, StripState::Gap | StripState::Missing) && w >= 4.0 {
        let (left, right, up, down) = (x + w * 0.2, x + w * 0.8, y + h * 0.25, y + h * 0.75);
        let mut cross = format!("M{} {}L{} {}", n(left), n(up), n(right), n(down));
        if state == StripState::Gap {
            cross.push_str(&format!("M{} {}L{} {}", n(right), n(up), n(left), n(down)));
        }
        canvas.path(&cross, "class=\"cross\"", "");
    }
    if state == StripState::Provisional && w >= 4.0 {
        let y = y + h / 2.0;
        canvas.path(&format!("M{} {}h{}", n(x + 1.0), n(y), n(w - 2.0)), "class=\"cross\"", "");
    }
}
