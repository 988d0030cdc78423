//! A chart description with its rows.

use crate::report::catalog::{Chart, ChartKind, ChartRole};

use super::text::words;
use super::value::{Rows, Value};

#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub chart: &'a Chart,
    pub rows: &'a Rows,
}

impl<'a> Input<'a> {
    /// The values of a role's column, one for each row; empty if the role has no column.
    pub fn values(&self, role: ChartRole) -> &'a [Value] {
        self.chart.column(role).and_then(|name| self.rows.column(name)).unwrap_or(&[])
    }

    /// The column's name as words.
    pub fn word(&self, role: ChartRole) -> String {
        self.chart.column(role).map_or_else(|| "rows".to_owned(), words)
    }

    /// The column's name.
    pub fn name(&self, role: ChartRole) -> &'a str {
        self.chart.column(role).unwrap_or_default()
    }

    /// The role whose numbers are drawn.
    pub fn weight_role(&self) -> ChartRole {
        match self.chart.kind {
            ChartKind::Heatmap | ChartKind::Punchcard | ChartKind::Dots | ChartKind::Timeline | ChartKind::Strip => {
                ChartRole::Value
            }
            _ => ChartRole::Y,
        }
    }

    /// The weight of each row: 1 if the chart has no number column, `None` for NULL.
    pub fn weights(&self) -> impl Iterator<Item = Option<f64>> + use<'a> {
        let role = self.weight_role();
        let (values, is_counted) = (self.values(role), self.chart.column(role).is_none());
        (0..self.rows.len())
            .map(move |row| if is_counted { Some(1.0) } else { values.get(row).and_then(Value::number) })
    }
}
