//! Parses times whose unit the document does not name.

use crate::api::json::{self, Object};
use crate::model::{Instant, InventoryValue, TimeUnit};

/// The time in a JSON text: a number whose size tells its unit, a text of such a number or in RFC 3339, or an object with exactly one
/// of these. A fraction of the unit is cut off. Times outside 2000 to 2100 are unknown.
pub fn read(text: &str) -> InventoryValue {
    let object = Object::parse(text).filter(|_| text.starts_with('{'));
    let found = match object {
        Some(object) => of_object(&object),
        None => scalar(text),
    };
    found.map_or(InventoryValue::Unknown, |at| InventoryValue::Time(at.micros()))
}

/// `seconds` gives the time if `nanos` is beside it.
fn of_object(object: &Object<'_>) -> Option<Instant> {
    if let Some(at) = object.get("seconds").and_then(scalar) {
        return Some(at);
    }
    let mut times = object.fields().filter_map(|(_, text)| scalar(text));
    times.next().filter(|_| times.next().is_none())
}

fn scalar(text: &str) -> Option<Instant> {
    let owned = json::string(text);
    let plain = owned.as_deref().unwrap_or(text);
    match whole(plain).parse::<i64>() {
        Ok(number) => of_number(number),
        Err(_) if owned.is_some() => {
            let at: Instant = plain.parse().ok()?;
            (Instant::EARLIEST..Instant::LATEST).contains(&at).then_some(at)
        }
        Err(_) => None,
    }
}

/// A number without its decimal fraction; other texts stay as they are.
fn whole(text: &str) -> &str {
    let is_fraction = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').filter(|(_, digits)| is_fraction(digits)).map_or(text, |(whole, _)| whole)
}

/// The years 2000 to 2100 in seconds, milliseconds, microseconds and nanoseconds are four disjoint ranges.
fn of_number(number: i64) -> Option<Instant> {
    let micros = || number.checked_mul(1_000).and_then(|nanos| Instant::from_unit(nanos, TimeUnit::Nanos).ok());
    let unit = |unit| Instant::from_unit(number, unit).ok();
    unit(TimeUnit::Seconds).or_else(|| unit(TimeUnit::Millis)).or_else(micros).or_else(|| unit(TimeUnit::Nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_time_gives_its_unit() {
        let expected = InventoryValue::Time(1_763_640_000_000_000);
        for text in [
            "1763640000",
            "1763640000000",
            "1763640000000000",
            "1763640000000000000",
            "1763640000.5",
            "1763640000000.123",
            "\"1763640000\"",
            "\"1763640000.999\"",
            "\"2025-11-20T12:00:00Z\"",
            "\"2025-11-20T13:00:00+01:00\"",
            r#"{"unixMilli":1763640000000}"#,
            r#"{"seconds":1763640000,"nanos":999999999}"#,
            r#"{"seconds":"1763640000"}"#,
            r#"{"zone":"UTC","at":"2025-11-20T12:00:00Z"}"#,
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn times_outside_the_valid_years_are_unknown() {
        for text in [
            "0",
            "-1",
            "1",
            "946684799",
            "4102444800",
            "5000000000",
            "9223372036854775807",
            "99999999999999999999",
            "1763640000.",
            "1763640000.5e1",
            "1e9",
            "true",
            "[1763640000]",
            "\"\"",
            "\"yesterday\"",
            "\"1999-12-31T23:59:59Z\"",
            "{}",
            r#"{"from":1763640000,"to":1763640001}"#,
            r#"{"deep":{"seconds":1763640000}}"#,
        ] {
            assert_eq!(read(text), InventoryValue::Unknown, "{text}");
        }
    }
}
