//! Local times: an SQL function over our own time-zone library, because some builds of the engine have none.

use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use duckdb::vscalar::{ArrowFunctionSignature, VArrowScalar};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::report::catalog::{nearest, or_near};

/// `local_time(at TIMESTAMP, zone VARCHAR) -> TIMESTAMP`: the local time of `zone` at the UTC time `at`.
pub const ZONE_FUNCTION: &str = "local_time";

/// A named time zone of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }

    /// `Europe/Berlin`
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn rules(&self) -> &TimeZone {
        &self.zone
    }
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match TimeZone::get(text) {
            Ok(zone) => Ok(Self { name: zone.iana_name().unwrap_or(text).to_owned(), zone }),
            Err(_) => {
                let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
                // Users often leave out the continent before a city.
                let is_place =
                    |name: &&String| name.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(text));
                let near = match names.iter().filter(is_place).cloned().collect::<Vec<_>>() {
                    places if places.is_empty() => nearest(text, names.iter().map(String::as_str)),
                    places => places,
                };
                Err(format!(
                    "unknown time zone {text:?}{}; expected a name such as Europe/Berlin or UTC",
                    or_near(&near)
                ))
            }
        }
    }
}

pub struct LocalTime;

impl VArrowScalar for LocalTime {
    type State = ();

    fn invoke(_: &(), input: RecordBatch) -> Result<ArrayRef, Box<dyn Error>> {
        let times = input.column(0).as_any().downcast_ref::<TimestampMicrosecondArray>();
        let zones = input.column(1).as_any().downcast_ref::<StringArray>();
        let (Some(times), Some(zones)) = (times, zones) else {
            return Err(format!("{ZONE_FUNCTION} needs a timestamp and the name of a time zone").into());
        };
        let mut last: Option<(&str, TimeZone)> = None;
        let mut local = Vec::with_capacity(times.len());
        for row in 0..times.len() {
            if times.is_null(row) || zones.is_null(row) {
                local.push(None);
                continue;
            }
            let name = zones.value(row);
            if last.as_ref().is_none_or(|(known, _)| *known != name) {
                let zone = TimeZone::get(name).map_err(|_| format!("unknown time zone {name:?}"))?;
                last = Some((name, zone));
            }
            let (_, zone) = last.as_ref().expect("BUG: a row with a zone has set it");
            local.push(Some(local_micros(times.value(row), zone)?));
        }
        Ok(Arc::new(TimestampMicrosecondArray::from(local)))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        vec![ArrowFunctionSignature::exact(vec![timestamp.clone(), DataType::Utf8], timestamp)]
    }
}

/// A UTC time has exactly one local time, even when summer time begins or ends.
fn local_micros(utc_micros: i64, zone: &TimeZone) -> Result<i64, Box<dyn Error>> {
    let at = Timestamp::from_microsecond(utc_micros)?;
    let offset = i64::from(zone.to_offset(at).seconds()) * 1_000_000;
    utc_micros.checked_add(offset).ok_or_else(|| format!("time {utc_micros} has no local time").into())
}
