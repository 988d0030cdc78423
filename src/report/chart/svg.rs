//! The drawing as text. Every chart writes through [`Canvas`], which escapes all data.

use std::fmt::{self, Write as _};

use super::text::{clean, cut, escape, tooltip, width};

/// A finished drawing: its text is markup, and every string of data in it is escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Svg(String);

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Svg {}

/// Sizes of small text and of normal text.
pub const SMALL: f64 = 11.0;
pub const TEXT: f64 = 12.0;
/// Number of series colours; one more slot is for all other series.
pub const SLOTS: usize = 6;
pub const OTHERS: usize = SLOTS;

/// Line patterns over the fills of series, for readers who cannot distinguish the colours and for print. They are drawn as single
/// lines, because SVG patterns make printed pages huge. Each has a direction and a distance.
const HATCHES: [&[(Direction, f64)]; SLOTS + 1] = [
    &[],
    &[(Direction::Rising, 7.0)],
    &[(Direction::Falling, 7.0)],
    &[(Direction::Level, 5.0)],
    &[(Direction::Upright, 5.0)],
    &[(Direction::Rising, 9.0), (Direction::Falling, 9.0)],
    &[(Direction::Level, 3.5)],
];
/// Smaller shapes have no room for lines.
const HATCHED_MIN: f64 = 3.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Rising,
    Falling,
    Level,
    Upright,
}

/// The anchor of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that is being made.
pub struct Canvas {
    out: String,
    pub width: f64,
    /// The line patterns of each series.
    hatches: [String; SLOTS + 1],
}

impl Canvas {
    pub fn new(width: f64) -> Self {
        Self { out: String::new(), width, hatches: Default::default() }
    }

    /// Whether there is little room, as on a phone held upright.
    pub fn is_narrow(&self) -> bool {
        self.width < 500.0
    }

    /// Finishes the drawing; `label` is its text description.
    pub fn finish(self, height: f64, label: &str) -> Svg {
        let mut svg = format!(
            "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {} {}\" aria-label=\"{}\">",
            n(self.width),
            n(height),
            escape(&clean(label))
        );
        svg.push_str(&self.out);
        for lines in self.hatches.iter().filter(|lines| !lines.is_empty()) {
            let _ = write!(svg, "<path d=\"{lines}\" class=\"hatch\"/>");
        }
        svg.push_str("</svg>");
        Svg(svg)
    }

    /// A filled rectangle of a series, with a tooltip.
    pub fn bar(&mut self, place: [f64; 4], slot: usize, title: &str) {
        self.rect(place, &format!("class=\"f{}\"", slot.min(OTHERS)), title);
        self.hatch(place, slot);
    }

    /// Draws the line pattern of a series over a rectangle.
    pub fn hatch(&mut self, [x, y, w, h]: [f64; 4], slot: usize) {
        if w < HATCHED_MIN || h < HATCHED_MIN {
            return;
        }
        let slot = slot.min(OTHERS);
        for (direction, distance) in HATCHES[slot] {
            let (first, last) = match direction {
                Direction::Rising => (x + y, x + w + y + h),
                Direction::Falling => (x - y - h, x + w - y),
                Direction::Level => (y, y + h),
                Direction::Upright => (x, x + w),
            };
            let mut at = (first / distance).ceil() * distance;
            while at < last {
                let [x1, y1, x2, y2] = match direction {
                    Direction::Rising => {
                        let (left, right) = (x.max(at - y - h), (x + w).min(at - y));
                        [left, at - left, right, at - right]
                    }
                    Direction::Falling => {
                        let (left, right) = (x.max(at + y), (x + w).min(at + y + h));
                        [left, left - at, right, right - at]
                    }
                    Direction::Level => [x, at, x + w, at],
                    Direction::Upright => [at, y, at, y + h],
                };
                let _ = write!(self.hatches[slot], "M{} {}L{} {}", n(x1), n(y1), n(x2), n(y2));
                at += distance;
            }
        }
    }

    /// `attributes` come from our code, never from data.
    pub fn rect(&mut self, [x, y, w, h]: [f64; 4], attributes: &str, title: &str) {
        let (x, y, w, h) = (n(x), n(y), n(w.max(0.0)), n(h.max(0.0)));
        let _ = write!(self.out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {attributes}");
        self.close("rect", title);
    }

    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str, title: &str) {
        let (x1, y1, x2, y2) = (n(x1), n(y1), n(x2), n(y2));
        let _ = write!(self.out, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"");
        self.close("line", title);
    }

    pub fn circle(&mut self, [x, y, r]: [f64; 3], attributes: &str, title: &str) {
        let _ = write!(self.out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {attributes}", n(x), n(y), n(r));
        self.close("circle", title);
    }

    /// A dot of a series: each series has its own shape and colour.
    pub fn dot(&mut self, [x, y]: [f64; 2], slot: usize, title: &str) {
        let class = format!("class=\"dot f{slot}\"");
        let shape = |data: &str| format!("M{} {}{data}z", n(x), n(y));
        match slot {
            0 => self.circle([x, y, 4.0], &class, title),
            1 => self.path(&shape("m-3.8-3.8h7.6v7.6h-7.6"), &class, title),
            2 => self.path(&shape("m0-5l4.6 8.4h-9.2"), &class, title),
            3 => self.path(&shape("m0-5l5 5l-5 5l-5-5"), &class, title),
            4 => self.path(&shape("m0 5l4.6-8.4h-9.2"), &class, title),
            5 => self.path(&shape("m-5-1.7h3.3v-3.3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3"), &class, title),
            _ => self.circle([x, y, 2.6], &class, title),
        }
    }

    /// A shape; `attributes` come from our code, never from data.
    pub fn path(&mut self, data: &str, attributes: &str, title: &str) {
        let _ = write!(self.out, "<path d=\"{data}\" {attributes}");
        self.close("path", title);
    }

    /// Whole text; small if `class` contains `small`.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(&clean(text));
        let _ = write!(self.out, "<text x=\"{}\" y=\"{}\" class=\"{class}\"{anchor}>{text}</text>", n(x), n(y));
    }

    /// Text cut to `room`; the tooltip shows the whole text.
    pub fn label(&mut self, [x, y]: [f64; 2], anchor: Anchor, room: f64, text: &str) {
        let shown = cut(text, room, TEXT);
        if shown == clean(text) {
            return self.text([x, y], anchor, "label", text);
        }
        let _ = write!(self.out, "<g><title>{}</title>", escape(&tooltip(text)));
        self.text([x, y], anchor, "label", &shown);
        self.out.push_str("</g>");
    }

    fn close(&mut self, tag: &str, title: &str) {
        if title.is_empty() {
            self.out.push_str("/>");
        } else {
            let _ = write!(self.out, "><title>{}</title></{tag}>", escape(&tooltip(title)));
        }
    }

    /// Draws the names of series with their marks, and returns the height.
    pub fn legend(&mut self, left: f64, top: f64, entries: &[(String, usize)], mark: Mark) -> f64 {
        const MARK: f64 = 16.0;
        const LINE: f64 = 18.0;
        let room_max = (self.width - left) * 0.6;
        let (mut x, mut y) = (left, top + 12.0);
        for (name, slot) in entries {
            let shown = cut(name, room_max, TEXT);
            let takes = MARK + 5.0 + width(&shown, TEXT) + 14.0;
            if x > left && x + takes > self.width {
                (x, y) = (left, y + LINE);
            }
            match mark {
                Mark::Box => self.bar([x, y - 10.0, MARK - 2.0, 11.0], *slot, name),
                Mark::Line => self.line([x, y - 4.0, x + MARK, y - 4.0], &format!("l l{slot}"), name),
                Mark::Dot => self.dot([x + 7.0, y - 4.0], *slot, name),
            }
            self.label([x + MARK + 5.0, y], Anchor::Start, room_max, name);
            x += takes;
        }
        if entries.is_empty() { 0.0 } else { y - top + 8.0 }
    }
}

/// The mark of a series in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Box,
    Line,
    Dot,
}

/// A coordinate, to a tenth of a unit.
pub fn n(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A path through points: `M x y L …`.
pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut data = String::new();
    for (at, (x, y)) in points.into_iter().enumerate() {
        let _ = write!(data, "{}{} {}", if at == 0 { 'M' } else { 'L' }, n(x), n(y));
    }
    data
}
