//! The rows of a chart, as plain values.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::report::cell;

use super::number::number;
use super::time::{DAY, moment};

/// Larger numbers are drawn as this one, so that sums and spans remain finite.
const MAGNITUDE_MAX: f64 = 1e300;
/// Later and earlier times are drawn as this one: 4000 years before or after the epoch.
const TIME_MAX: f64 = 4_000.0 * 365.0 * DAY;

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

    fn bounded(self) -> Self {
        match self {
            Value::Number(n) | Value::Time(n) if n.is_nan() => Value::Null,
            Value::Number(n) => Value::Number(n.clamp(-MAGNITUDE_MAX, MAGNITUDE_MAX)),
            Value::Time(t) => Value::Time(t.clamp(-TIME_MAX, TIME_MAX)),
            other => other,
        }
    }

    fn of(array: &dyn Array, row: usize) -> Result<Self, ArrowError> {
        if array.is_null(row) {
            return Ok(Value::Null);
        }
        let value = match array.data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Value::Time(array.as_primitive::<TimestampMicrosecondType>().value(row) as f64)
            }
            DataType::Date32 => Value::Time(f64::from(array.as_primitive::<Date32Type>().value(row)) * DAY),
            kind => match cell::text(array, row)? {
                None => Value::Null,
                Some(text) if cell::is_number(kind) => text.parse().map_or(Value::Null, Value::Number),
                Some(text) => Value::Text(text),
            },
        };
        Ok(value.bounded())
    }
}

/// A chart's rows: the name and the values of each column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows(Vec<(String, Vec<Value>)>);

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

    /// Adds one row.
    #[cfg(test)]
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        for ((_, values), value) in self.0.iter_mut().zip(row) {
            values.push(value.bounded());
        }
    }

    pub fn len(&self) -> usize {
        self.0.first().map_or(0, |(_, values)| values.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column with the name, in any case.
    pub fn column(&self, name: &str) -> Option<&[Value]> {
        self.0.iter().find(|(held, _)| held.eq_ignore_ascii_case(name)).map(|(_, values)| &**values)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn numbers_stay_finite_and_nulls_are_named() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(f64::MAX), None]))),
            ("i", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(7), None]))),
            ("t", Arc::new(StringArray::from(vec![Some(""), Some("a"), None]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut rows = Rows::new(["n", "i", "t"].map(String::from));
        rows.extend(&batch).unwrap();
        assert_eq!(rows.column("N").unwrap(), [Value::Null, Value::Number(MAGNITUDE_MAX), Value::Null]);
        assert_eq!(rows.column("i").unwrap()[1], Value::Number(7.0));
        let names: Vec<String> = rows.column("t").unwrap().iter().map(Value::name).collect();
        assert_eq!(names, ["(empty)", "a", "(none)"]);
        assert!(rows.column("x").is_none() && rows.len() == 3);
    }
}
