//! Parsed values of parameters, with their forms for the engine and for people.

use duckdb::types::{TimeUnit, Value};
use serde_json::json;

use crate::model::Instant;

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamValue {
    Null,
    Integer(i64),
    Number(f64),
    Text(String),
    Boolean(bool),
    Seconds(u64),
    At(Instant),
    /// Microseconds since midnight.
    Time(i64),
    List(Vec<String>),
}

impl ParamValue {
    /// The value for binding; it never becomes part of the query's text.
    pub(in crate::report) fn bound(&self) -> Value {
        match self {
            ParamValue::Null => Value::Null,
            ParamValue::Integer(number) => Value::BigInt(*number),
            ParamValue::Number(number) => Value::Double(*number),
            ParamValue::Text(text) => Value::Text(text.clone()),
            ParamValue::Boolean(flag) => Value::Boolean(*flag),
            ParamValue::Seconds(seconds) => Value::BigInt(i64::try_from(*seconds).unwrap_or(i64::MAX)),
            ParamValue::At(at) => Value::Timestamp(TimeUnit::Microsecond, at.micros()),
            ParamValue::Time(micros) => Value::Time64(TimeUnit::Microsecond, *micros),
            ParamValue::List(items) => Value::Text(json!(items).to_string()),
        }
    }

    /// The value in the statement about a report: durations in seconds, times in RFC 3339, times of day as `07:00`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            ParamValue::Null => json!(null),
            ParamValue::Integer(number) => json!(number),
            ParamValue::Number(number) => json!(number),
            ParamValue::Text(text) => json!(text),
            ParamValue::Boolean(flag) => json!(flag),
            ParamValue::Seconds(seconds) => json!(seconds),
            ParamValue::At(at) => json!(at),
            ParamValue::Time(micros) => json!(clock(*micros)),
            ParamValue::List(items) => json!(items),
        }
    }
}

fn clock(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let end = if second == 0 { String::new() } else { format!(":{second:02}") };
    format!("{hour:02}:{minute:02}{end}")
}
