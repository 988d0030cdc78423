//! The parts around the marks: the legend and a title above, the y axis on the left, the x axis below.

use super::axis::Axis;
use super::svg::Canvas;
use super::text::width;

/// The height of the marks over a value axis, and of one lane.
const HEIGHT: f64 = 200.0;
pub const LANE: f64 = 24.0;
/// Minimum room for the label of a tick.
const TICK_ROOM: f64 = 90.0;
/// The space between the frame and the marks. It keeps a mark at an edge inside the drawing.
const EDGE: f64 = 6.0;

/// A frame for marks.
#[derive(Default)]
pub struct Plot {
    pub x: Axis,
    pub y: Axis,
    /// The title of the values, above.
    pub title: String,
    /// The title of the x axis, below.
    pub below: String,
    /// The space on the right for text beside marks.
    pub right: f64,
}

impl Plot {
    /// Draws the title, the axes and the grid below the legend, and gives the axes their positions.
    pub fn draw(mut self, canvas: &mut Canvas) -> Self {
        if !self.title.is_empty() {
            canvas.text([0.0, canvas.height + 14.0], "start", "small", &self.title);
            canvas.height += 20.0;
        }
        let left =
            self.y.ticks.iter().map(|(_, label)| width(label)).fold(0.0, f64::max).min(canvas.width * 0.3) + 10.0;
        let (top, right) = (canvas.height + 4.0, canvas.width - self.right - EDGE);
        let bottom = top + if self.y.is_names { self.y.high * LANE } else { HEIGHT };
        let edge = if self.x.is_names { 0.0 } else { EDGE };
        (self.x.start, self.x.end) = (left + edge, right - edge);
        (self.y.start, self.y.end) = if self.y.is_names { (top, bottom) } else { (bottom, top) };
        for (at, label) in &self.y.ticks {
            let (y, class) = (self.y.place(*at), if self.y.is_names { "label" } else { "small" });
            if self.y.has_grid {
                canvas.line([left, y, right, y], grid_class(&self.y, *at));
            }
            canvas.label([left - 8.0, y + 4.0], "end", class, left - 8.0, label);
        }
        self.draw_x(canvas, top, bottom);
        self
    }

    /// Labels of the x axis, as many as fit.
    fn draw_x(&self, canvas: &mut Canvas, top: f64, bottom: f64) {
        let room = (self.x.step() - 8.0).max(TICK_ROOM);
        let mut free = f64::NEG_INFINITY;
        for (at, label) in &self.x.ticks {
            let x = self.x.place(*at);
            if self.x.has_grid {
                canvas.line([x, top, x, bottom], grid_class(&self.x, *at));
            }
            // A label at the edge moves inwards.
            let half = width(label).min(room) / 2.0;
            let middle = x.clamp(half, (canvas.width - half).max(half));
            if middle - half > free && half > 0.0 {
                canvas.line([x, bottom, x, bottom + 4.0], "axis");
                canvas.label([middle, bottom + 16.0], "middle", "small", room, label);
                free = middle + half + 8.0;
            }
        }
        canvas.text([self.x.end, bottom + 32.0], "end", "small", &self.below);
        canvas.height = bottom + if self.below.is_empty() { 22.0 } else { 36.0 };
    }
}

fn grid_class(axis: &Axis, at: f64) -> &'static str {
    if at == 0.0 && !axis.is_names { "axis" } else { "grid" }
}

/// Draws names side by side, each with the key that `draw` makes in a box.
pub fn legend(canvas: &mut Canvas, names: &[String], draw: impl Fn(&mut Canvas, usize, [f64; 4])) {
    let room = canvas.width * 0.6;
    let (mut x, mut y) = (0.0, 4.0);
    for (at, name) in names.iter().enumerate() {
        let takes = 35.0 + width(name).min(room);
        if x > 0.0 && x + takes > canvas.width {
            (x, y) = (0.0, y + 18.0);
        }
        draw(canvas, at, [x, y + 1.0, 14.0, 11.0]);
        canvas.label([x + 21.0, y + 11.0], "start", "label", room, name);
        x += takes;
    }
    canvas.height = if x > 0.0 { y + 20.0 } else { 0.0 };
}
