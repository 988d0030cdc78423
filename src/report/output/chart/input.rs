//! What a chart draws: its description, and its rows as plain values.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::report::TeamNames;
use crate::report::catalog::{Chart, ChartRole};
use crate::report::output::cell;
use crate::report::output::team_name_sink::TEAM_ID;

use super::text::{number, words};
use super::time::{DAY, moment};

/// Larger numbers are drawn as this one, so that sums and spans remain finite.
pub const MAGNITUDE_MAX: f64 = 1e300;
/// Later and earlier times are drawn as this one: 4000 years before or after the epoch.
pub const TIME_MAX: f64 = 4_000.0 * 365.0 * DAY;

/// One value of a chart's row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    /// Finite.
    Number(f64),
    /// Microseconds since the epoch, in the report's local time.
    Time(f64),
    Text(String),
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(n) | Value::Time(n) => Some(*n),
            Value::Null | Value::Text(_) => None,
        }
    }

    /// The value as the name of a series, lane or category; NULL has a name of its own.
    pub fn name(&self) -> String {
        match self {
            Value::Null => "(none)".to_owned(),
            Value::Number(n) => number(*n),
            Value::Time(t) => moment(*t),
            Value::Text(text) if text.trim().is_empty() => "(empty)".to_owned(),
            Value::Text(text) => text.clone(),
        }
    }

    fn of(array: &dyn Array, row: usize) -> Result<Self, ArrowError> {
        let Some(text) = cell::text(array, row)? else { return Ok(Value::Null) };
        let time = |micros: f64| Value::Time(micros.clamp(-TIME_MAX, TIME_MAX));
        Ok(match array.data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                time(array.as_primitive::<TimestampMicrosecondType>().value(row) as f64)
            }
            DataType::Date32 => time(f64::from(array.as_primitive::<Date32Type>().value(row)) * DAY),
            kind if cell::is_number(kind) => match text.parse::<f64>() {
                Ok(n) if !n.is_nan() => Value::Number(n.clamp(-MAGNITUDE_MAX, MAGNITUDE_MAX)),
                _ => Value::Null,
            },
            _ => Value::Text(text),
        })
    }
}

/// A chart's rows: the name and the values of each column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows(pub Vec<(String, Vec<Value>)>);

impl Rows {
    /// Columns without rows.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| (name, Vec::new())).collect())
    }

    /// Adds rows of a result with the same columns.
    ///
    /// # Errors
    /// When a value has no text form.
    pub fn extend(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        for ((_, values), column) in self.0.iter_mut().zip(batch.columns()) {
            for row in 0..column.len() {
                values.push(Value::of(column, row)?);
            }
        }
        Ok(())
    }

    /// Replaces the ids of teams by their names: a picture is for people.
    pub fn name_teams(&mut self, names: &TeamNames) {
        let of_teams = self.0.iter_mut().filter(|(name, _)| name == TEAM_ID);
        for value in of_teams.flat_map(|(_, values)| values) {
            if let Value::Text(id) = value {
                *id = names.label(id);
            }
        }
    }

    /// Adds a column for each role that names several, such as `series=what,team_id`: their values with commas between.
    pub fn join_columns(&mut self, chart: &Chart) {
        for several in chart.columns.values().filter(|several| several.contains(',')) {
            let Some(parts) = several.split(',').map(|name| self.column(name)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let text = |row: usize| {
                let known = parts.iter().map(|part| &part[row]).filter(|value| **value != Value::Null);
                Value::Text(known.map(Value::name).collect::<Vec<_>>().join(", "))
            };
            let joined = (0..self.len()).map(text).collect();
            self.0.push((several.clone(), joined));
        }
    }

    pub fn len(&self) -> usize {
        self.0.first().map_or(0, |(_, values)| values.len())
    }

    /// The column with the name, in any case.
    pub fn column(&self, name: &str) -> Option<&[Value]> {
        self.0.iter().find(|(held, _)| held.eq_ignore_ascii_case(name)).map(|(_, values)| &**values)
    }
}

/// A chart's description with its rows.
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

    /// The name of the column, or of the first of several, as words.
    pub fn word(&self, role: ChartRole) -> String {
        self.chart
            .column(role)
            .map_or_else(|| "rows".to_owned(), |names| words(names.split(',').next().unwrap_or(names)))
    }

    /// The number of each row that the chart adds up, `None` for NULL. A row counts as 1 if the chart has no column of numbers.
    pub fn weights(&self) -> impl Iterator<Item = Option<f64>> + use<'a> {
        let values = self.values(if self.has(ChartRole::Value) { ChartRole::Value } else { ChartRole::Y });
        let is_counted = !values.iter().any(|value| matches!(value, Value::Number(_)));
        (0..self.rows.len()).map(move |row| if is_counted { Some(1.0) } else { values[row].number() })
    }
}
