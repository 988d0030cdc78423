//! Charts: rows of a report drawn as SVG, made here and complete in itself.
//!
//! A drawing needs no script: every mark has a `<title>` that a pointer shows, series differ by hatching or dashes as well
//! as by colour, and the whole has a text of its own for readers without eyes. Colours are custom properties of the page
//! (`--c0` to `--c5`, `--cx` for all other series together), so that it turns dark with it. Each drawing is made in two
//! widths; the page shows the one that fits. What is drawn is bounded, whatever the rows are.

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

/// Rows that a chart is drawn from, at most.
pub const CHART_ROWS_MAX: usize = 10_000;

/// Units of a drawing, about a pixel each where it is shown whole.
const WIDE: f64 = 800.0;
const NARROW: f64 = 350.0;

/// A chart, drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    pub wide: Svg,
    pub narrow: Svg,
    /// What it shows, in a sentence.
    pub summary: String,
    /// What was put together or left out.
    pub notes: Vec<String>,
}

/// What drawing on a canvas left to say.
struct Sketch {
    height: f64,
    summary: String,
    notes: Vec<String>,
}

/// Draws `rows` as `chart` says; `None` where it says that nothing is to be drawn. `unseen` is how many rows there are beyond those given.
///
/// # Errors
/// When the chart names a column that the rows do not have.
pub fn draw(chart: &Chart, rows: &Rows, unseen: u64) -> Result<Option<Drawing>, String> {
    if chart.kind == ChartKind::None {
        return Ok(None);
    }
    if let Some(missing) = chart.columns.values().find(|name| rows.column(name).is_none()) {
        return Err(format!("the chart wants a column {missing:?}, which the rows do not have"));
    }
    let input = Input { chart, rows };
    let (wide, sketch) = on(Canvas::new(WIDE), &input);
    let (narrow, _) = on(Canvas::new(NARROW), &input);
    let mut notes = sketch.notes;
    if unseen > 0 {
        notes.push(format!("drawn from the first {CHART_ROWS_MAX} rows; {unseen} more are not in the picture"));
    }
    Ok(Some(Drawing { wide, narrow, summary: sketch.summary, notes }))
}

fn on(mut canvas: Canvas, input: &Input<'_>) -> (Svg, Sketch) {
    let mut sketch = sketch(&mut canvas, input);
    // Names of data stand in both.
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

/// What is said of a chart without rows.
pub const NOTHING_DRAWN: &str = "no rows to draw";

/// A picture that says that there is nothing, rather than one that looks broken.
fn nothing(canvas: &mut Canvas) -> Sketch {
    const HEIGHT: f64 = 72.0;
    canvas.rect([0.5, 0.5, canvas.width - 1.0, HEIGHT - 1.0], "rx=\"6\" class=\"void\"", "");
    canvas.text([canvas.width / 2.0, HEIGHT / 2.0 + 4.0], Anchor::Middle, "label", NOTHING_DRAWN);
    Sketch { height: HEIGHT, summary: NOTHING_DRAWN.to_owned(), notes: Vec::new() }
}

#[cfg(test)]
mod tests;
