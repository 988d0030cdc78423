//! Charts: draws the rows of a report as SVG without external parts. [`draw`] names the function that draws each kind.
//!
//! | file | holds |
//! |---|---|
//! | `stacks` | columns, bars, areas, histograms |
//! | `points` | lines and steps, dots, strips, timelines |
//! | `cells` | heat maps, punch cards |
//! | `coverage` | the calendar of coverage, which no report asks for |
//! | `input`, `group` | rows, and their sums by name, series and bin of time |
//! | `axis`, `time`, `text` | positions, ticks, and the words of values |
//! | `plot`, `svg` | legend and axes around the marks, and the markup |
//!
//! A drawing needs no script. Every mark has a `<title>` as a tooltip. Series differ by hatching, dashes or shapes as well as by
//! colour, and each drawing has a text description. Colours are custom properties of the page (`--c0` to `--c5`, `--cx` for all
//! other series), so a chart follows the page's dark mode. Each drawing has two widths; the page shows the one that fits. The
//! size of a drawing is bounded for any rows.

mod axis;
mod cells;
mod coverage;
mod group;
mod input;
mod plot;
mod points;
mod stacks;
mod svg;
mod text;
mod time;

use crate::report::catalog::{Chart, ChartKind};
use input::Input;
use svg::Canvas;

pub use coverage::{CellState, CoverageCalendar};
pub use input::Rows;
pub use svg::Svg;
pub use text::{counted, plural};

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

/// Draws `rows` as `chart` describes. `unseen` is the number of further rows.
///
/// # Errors
/// When the chart names a column that the rows lack.
pub fn draw(chart: &Chart, rows: &Rows, unseen: u64) -> Result<Drawing, String> {
    if let Some(missing) = chart.columns.values().find(|name| rows.column(name).is_none()) {
        return Err(format!("the chart needs the column {missing:?}, which the rows lack"));
    }
    let input = &Input { chart, rows };
    let title = if chart.title.is_empty() { "chart" } else { &chart.title };
    let mut drawing = in_both_widths(title, |canvas| match chart.kind {
        _ if rows.len() == 0 => nothing(canvas),
        ChartKind::Columns | ChartKind::Bars | ChartKind::Histogram | ChartKind::Area | ChartKind::Area100 => {
            stacks::draw(input, canvas)
        }
        ChartKind::Line | ChartKind::Step => points::draw_lines(input, canvas),
        ChartKind::Dots | ChartKind::Strip => points::draw(input, canvas),
        ChartKind::Timeline => points::draw_timeline(input, canvas),
        ChartKind::Heatmap => cells::draw_heatmap(input, canvas),
        ChartKind::Punchcard => cells::draw_punchcard(input, canvas),
    });
    if unseen > 0 {
        drawing.notes.push(format!("the chart shows the first {CHART_ROWS_MAX} rows; {unseen} more are left out"));
    }
    Ok(drawing)
}

/// Draws with `sketch`, which returns a summary, once for each width.
fn in_both_widths(title: &str, sketch: impl Fn(&mut Canvas) -> String) -> Drawing {
    let [narrow, wide] = [NARROW, WIDE].map(|width| {
        let mut canvas = Canvas::new(width);
        let summary = text::clean(&sketch(&mut canvas));
        let notes = std::mem::take(&mut canvas.notes);
        (canvas.finish(&format!("{title}: {summary}")), summary, notes)
    });
    Drawing { wide: wide.0, narrow: narrow.0, summary: wide.1, notes: wide.2 }
}

/// The description of a chart without rows.
pub const NOTHING_DRAWN: &str = "no rows to draw";

/// An explicit picture for no rows, so that it does not look broken.
fn nothing(canvas: &mut Canvas) -> String {
    canvas.height = 72.0;
    canvas.rect([0.5, 0.5, canvas.width - 1.0, 71.0], "void", "");
    canvas.text([canvas.width / 2.0, 40.0], "middle", "label", NOTHING_DRAWN);
    NOTHING_DRAWN.to_owned()
}

#[cfg(test)]
mod tests;
