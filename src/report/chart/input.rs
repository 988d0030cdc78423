//! A chart description with its rows.

use crate::report::catalog::{Chart, ChartRole};

use super::text::words;
use super::value::{Rows, Value};

pub struct Input<'a> {
    pub chart: &'a Chart,
    pub rows: &'a Rows,
}

impl<'a> Input<'a> {
    pub fn has(&self, role: ChartRole) -> bool {
        self.chart.column(role).is_some()
    }

    /// The values of a role's column, one for each row; empty if the role has no column.
    pub fn values(&self, role: ChartRole) -> &'a [Value] {
        self.chart.column(role).and_then(|name| self.rows.column(name)).unwrap_or(&[])
    }

    /// The column's name as words.
    pub fn word(&self, role: ChartRole) -> String {
        self.chart.column(role).map_or_else(|| "rows".to_owned(), words)
    }

    /// The number of each row that the chart adds up, `None` for NULL. A row counts as 1 if the chart has no column of numbers.
    pub fn weights(&self) -> impl Iterator<Item = Option<f64>> + use<'a> {
        let values = self.values(if self.has(ChartRole::Value) { ChartRole::Value } else { ChartRole::Y });
        let is_counted = !values.iter().any(|value| matches!(value, Value::Number(_)));
        (0..self.rows.len()).map(move |row| if is_counted { Some(1.0) } else { values[row].number() })
    }
}
