//! The drawing as text. Every chart writes through [`Canvas`], which escapes all data.

use std::fmt::{self, Write as _};

use quick_xml::escape::escape;

use super::text::{clean, cut, plural};

/// A finished drawing: its text is markup, and every string of data in it is escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Svg(String);

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Svg {}

/// Number of series colours, which is also the number of the grey colour for all other series.
pub const OTHERS: usize = 6;

/// Line patterns over the fills of series, for readers who cannot distinguish the colours and for print: the slope of each line,
/// as its way to the left for each unit down, and the distance between lines. SVG patterns would make printed pages huge.
const HATCHES: [&[(f64, f64)]; OTHERS + 1] = [
    &[],
    &[(1.0, 7.0)],
    &[(-1.0, 7.0)],
    &[(1_000.0, 5_000.0)],
    &[(0.0, 5.0)],
    &[(1.0, 9.0), (-1.0, 9.0)],
    &[(1_000.0, 3_500.0)],
];
/// Maximum width of a tooltip, about 300 characters; the rows have the whole text.
const TOOLTIP_ROOM: f64 = 2_200.0;
/// Smaller shapes have no room for lines.
const HATCHED_MIN: f64 = 3.0;
/// The dot of each series, drawn around its middle.
const DOTS: [&str; OTHERS + 1] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "m-3.8-3.8h7.6v7.6h-7.6",
    "m0-5l4.6 8.4h-9.2",
    "m0-5l5 5l-5 5l-5-5",
    "m0 5l4.6-8.4h-9.2",
    "m-5-1.7h3.3v-3.3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3",
    "m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0",
];

/// A drawing that is being made. Classes come from our code, never from data; texts and titles may be data.
#[derive(Default)]
pub struct Canvas {
    out: String,
    pub width: f64,
    /// The height that is in use.
    pub height: f64,
    /// Notes on joined and omitted data.
    pub notes: Vec<String>,
    /// The line patterns of each series.
    hatches: [String; OTHERS + 1],
}

impl Canvas {
    pub fn new(width: f64) -> Self {
        Self { width, ..Self::default() }
    }

    /// The number of ticks that an x axis may have; labels without room are left out.
    pub fn ticks_wanted(&self) -> f64 {
        (self.width / 55.0).floor()
    }

    pub fn note(&mut self, note: String) {
        self.notes.push(clean(&note));
    }

    /// Notes that rows are not drawn, if there are any.
    pub fn note_lost(&mut self, rows: usize, why: &str) {
        if rows > 0 {
            self.note(format!("left out: {} {why}", plural(rows as u64, "row")));
        }
    }

    /// Finishes the drawing; `label` is its text description.
    pub fn finish(self, label: &str) -> Svg {
        let (width, height, label) = (self.width, n(self.height), clean(label));
        let mut svg = format!("<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {width} {height}\" ");
        let _ = write!(svg, "aria-label=\"{}\">{}", escape(&label), self.out);
        for lines in self.hatches.iter().filter(|lines| !lines.is_empty()) {
            let _ = write!(svg, "<path d=\"{lines}\" class=\"hatch\"/>");
        }
        Svg(svg + "</svg>")
    }

    pub fn path(&mut self, data: &str, class: &str, title: &str) {
        let _ = write!(self.out, "<path d=\"{data}\" class=\"{class}\"");
        self.out.push_str(&if title.is_empty() { "/>".to_owned() } else { format!(">{}</path>", tooltip(title)) });
    }

    pub fn rect(&mut self, [x, y, w, h]: [f64; 4], class: &str, title: &str) {
        let (x, y, w, h) = (n(x), n(y), n(w), n(h));
        self.path(&format!("M{x} {y}h{w}v{h}h-{w}z"), class, title);
    }

    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        self.path(&format!("M{} {}L{} {}", n(x1), n(y1), n(x2), n(y2)), class, "");
    }

    /// Text at an `anchor` of SVG. Text is cut to `room`; the tooltip of a cut text shows all of it.
    pub fn label(&mut self, [x, y]: [f64; 2], anchor: &str, class: &str, room: f64, text: &str) {
        if text.is_empty() {
            return;
        }
        let (x, y, shown) = (n(x), n(y), cut(text, room));
        let _ = write!(self.out, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\" text-anchor=\"{anchor}\">");
        let whole = if shown == clean(text) { String::new() } else { tooltip(text) };
        let _ = write!(self.out, "{whole}{}</text>", escape(&shown));
    }

    /// Text that is never cut.
    pub fn text(&mut self, at: [f64; 2], anchor: &str, class: &str, text: &str) {
        self.label(at, anchor, class, f64::INFINITY, text);
    }

    /// A filled rectangle of a series, in its colour and with its line pattern.
    pub fn bar(&mut self, place: [f64; 4], slot: usize, title: &str) {
        self.rect(place, &format!("f{slot}"), title);
        let [x, y, w, h] = place;
        if w < HATCHED_MIN || h < HATCHED_MIN {
            return;
        }
        for (slope, distance) in HATCHES[slot] {
            let (low, high) = ((y * slope).min((y + h) * slope), (y * slope).max((y + h) * slope));
            let mut at = ((x + low) / distance).floor() * distance + distance;
            while at < x + w + high {
                // The line is x = at - slope * y; it begins and ends where it crosses an edge of the rectangle.
                let (left, right) = ((at - x) / slope, (at - x - w) / slope);
                let (top, bottom) = (y.max(left.min(right)), (y + h).min(left.max(right)));
                let (x1, y1, x2, y2) = (n(at - slope * top), n(top), n(at - slope * bottom), n(bottom));
                let _ = write!(self.hatches[slot], "M{x1} {y1}L{x2} {y2}");
                at += distance;
            }
        }
    }

    pub fn circle(&mut self, [x, y, r]: [f64; 3], slot: usize, title: &str) {
        let (left, y, r, wide) = (n(x - r), n(y), n(r), n(2.0 * r));
        let data = format!("M{left} {y}a{r} {r} 0 1 0 {wide} 0a{r} {r} 0 1 0-{wide} 0z");
        self.path(&data, &format!("f{slot}"), title);
    }

    /// A dot of a series, in its shape and colour.
    pub fn dot(&mut self, [x, y]: [f64; 2], slot: usize, title: &str) {
        self.path(&format!("M{} {}{}z", n(x), n(y), DOTS[slot]), &format!("dot f{slot}"), title);
    }
}

fn tooltip(text: &str) -> String {
    format!("<title>{}</title>", escape(cut(text, TOOLTIP_ROOM)))
}

/// A coordinate, to a tenth of a unit.
pub fn n(value: f64) -> f64 {
    // Adding zero removes the sign of a negative zero.
    if value.is_finite() { (value * 10.0).round() / 10.0 + 0.0 } else { 0.0 }
}
