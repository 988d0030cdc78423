//! Charts: draws the rows of a report as SVG without external parts.
//!
//! A drawing needs no script. Every mark has a `<title>` as a tooltip. Series differ by hatching or dashes as well as by colour, and
//! each drawing has a text description. Colours are custom properties of the page (`--c0` to `--c5`, `--cx` for all other
//! series), so that a chart follows the page's dark mode. Each drawing has two widths; the page shows the one that fits. The size
//! of a drawing is bounded for any rows.

mod areas;
mod bars;
mod calendar;
mod columns;
mod dots;
mod frame;
mod heat;
mod histogram;
mod input;
mod lanes;
mod lines;
mod number;
mod punchcard;
mod scale;
mod series;
mod svg;
mod text;
mod time;
mod value;

use super::catalog::{Chart, ChartKind};
use input::Input;
use svg::{Anchor, Canvas};

pub use calendar::{Strip, StripCell, StripState};
pub use svg::Svg;
pub use value::Rows;
#[cfg(test)]
use value::Value;

/// Maximum number of rows that a chart reads.
pub const CHART_ROWS_MAX: usize = 10_000;

/// Widths of a drawing in units of about one pixel.
const WIDE: f64 = 800.0;
const NARROW: f64 = 350.0;

/// A finished chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    pub wide: Svg,
    pub narrow: Svg,
    /// A one-sentence description.
    pub summary: String,
    /// Notes on joined and omitted data.
    pub notes: Vec<String>,
}

/// The result of drawing on a canvas.
struct Sketch {
    height: f64,
    summary: String,
    notes: Vec<String>,
}

/// Draws `rows` as `chart` describes; `None` if nothing is to be drawn. `unseen` is the number of further rows.
///
/// # Errors
/// When the chart names a column that the rows lack.
pub fn draw(chart: &Chart, rows: &Rows, unseen: u64) -> Result<Option<Drawing>, String> {
    if chart.kind == ChartKind::None {
        return Ok(None);
    }
    if let Some(missing) = chart.columns.values().find(|name| rows.column(name).is_none()) {
        return Err(format!("the chart needs the column {missing:?}, which the rows lack"));
    }
    let input = Input { chart, rows };
    let (wide, sketch) = on(Canvas::new(WIDE), &input);
    let (narrow, _) = on(Canvas::new(NARROW), &input);
    let mut notes = sketch.notes;
    if unseen > 0 {
        notes.push(format!("the chart shows the first {CHART_ROWS_MAX} rows; {unseen} more are left out"));
    }
    Ok(Some(Drawing { wide, narrow, summary: sketch.summary, notes }))
}

fn on(mut canvas: Canvas, input: &Input<'_>) -> (Svg, Sketch) {
    let mut sketch = sketch(&mut canvas, input);
    // Both can contain names from the data.
    sketch.summary = text::clean(&sketch.summary);
    sketch.notes.iter_mut().for_each(|note| *note = text::clean(note));
    let title = if input.chart.title.is_empty() { "chart" } else { &input.chart.title };
    let label = format!("{title}: {}", sketch.summary);
    (canvas.finish(sketch.height, &label), sketch)
}

fn sketch(canvas: &mut Canvas, input: &Input<'_>) -> Sketch {
    if input.rows.is_empty() {
        return nothing(canvas);
    }
    match input.chart.kind {
        ChartKind::Columns => columns::draw(input, canvas),
        ChartKind::Bars => bars::draw(input, canvas),
        ChartKind::Line => lines::draw(input, canvas, false),
        ChartKind::Step => lines::draw(input, canvas, true),
        ChartKind::Area => areas::draw(input, canvas, false),
        ChartKind::Area100 => areas::draw(input, canvas, true),
        ChartKind::Heatmap => heat::draw(input, canvas),
        ChartKind::Dots => dots::draw(input, canvas),
        ChartKind::Histogram => histogram::draw(input, canvas),
        ChartKind::Timeline => lanes::draw_timeline(input, canvas),
        ChartKind::Strip => lanes::draw_strip(input, canvas),
        ChartKind::Punchcard => punchcard::draw(input, canvas),
        ChartKind::None => nothing(canvas),
    }
}

/// The description of a chart without rows.
pub const NOTHING_DRAWN: &str = "no rows to draw";

/// An explicit picture for no rows, so that it does not look broken.
fn nothing(canvas: &mut Canvas) -> Sketch {
    const HEIGHT: f64 = 72.0;
    canvas.rect([0.5, 0.5, canvas.width - 1.0, HEIGHT - 1.0], "rx=\"6\" class=\"void\"", "");
    canvas.text([canvas.width / 2.0, HEIGHT / 2.0 + 4.0], Anchor::Middle, "label", NOTHING_DRAWN);
    Sketch { height: HEIGHT, summary: NOTHING_DRAWN.to_owned(), notes: Vec::new() }
}

#[cfg(test)]
mod tests;
