//! Local times: a scalar function over our own time-zone library, since not every build of the engine has one.

use std::error::Error;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use duckdb::vscalar::{ArrowFunctionSignature, VArrowScalar};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `local_time(at TIMESTAMP, zone VARCHAR) -> TIMESTAMP`: what the clocks of `zone` showed at the UTC time `at`.
pub const ZONE_FUNCTION: &str = "local_time";

pub(super) struct LocalTime;

impl VArrowScalar for LocalTime {
    type State = ();

    fn invoke(_: &(), input: RecordBatch) -> Result<ArrayRef, Box<dyn Error>> {
        let times = input.column(0).as_any().downcast_ref::<TimestampMicrosecondArray>();
        let zones = input.column(1).as_any().downcast_ref::<StringArray>();
        let (Some(times), Some(zones)) = (times, zones) else {
            return Err(format!("{ZONE_FUNCTION} takes a timestamp and a zone's name").into());
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
            let (_, zone) = last.as_ref().expect("BUG: set just above");
            local.push(Some(local_micros(times.value(row), zone)?));
        }
        Ok(Arc::new(TimestampMicrosecondArray::from(local)))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        vec![ArrowFunctionSignature::exact(vec![timestamp.clone(), DataType::Utf8], timestamp)]
    }
}

/// From UTC to local is always one moment, also where summer time begins or ends.
fn local_micros(utc_micros: i64, zone: &TimeZone) -> Result<i64, Box<dyn Error>> {
    let at = Timestamp::from_microsecond(utc_micros)?;
    let offset = i64::from(zone.to_offset(at).seconds()) * 1_000_000;
    utc_micros.checked_add(offset).ok_or_else(|| format!("time {utc_micros} has no local time").into())
}
