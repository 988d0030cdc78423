//! Maps values to positions: linear and logarithmic axes with round ticks.

use super::number::{compact, number};
use super::time::{self, Tick};
use super::value::Value;

/// The unit of a column's numbers, derived from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Plain,
    /// Whole numbers: no tick between two of them.
    Count,
    Millis,
    Seconds,
    Share,
}

impl Unit {
    pub fn of<'a>(column: &str, values: impl IntoIterator<Item = &'a Value>) -> Self {
        let column = column.to_ascii_lowercase();
        if column.ends_with("_ms") {
            Unit::Millis
        } else if column.ends_with("_s") || column.ends_with("seconds") {
            Unit::Seconds
        } else if values.into_iter().filter_map(Value::number).all(|n| n.fract() == 0.0) {
            Unit::Count
        } else {
            Unit::Plain
        }
    }

    /// The full value for a tooltip.
    pub fn full(self, value: f64) -> String {
        match self {
            Unit::Plain | Unit::Count => number(value),
            Unit::Millis => time::duration(value),
            Unit::Seconds => time::duration(value * 1_000.0),
            Unit::Share => format!("{} %", number((value * 1_000.0).round() / 10.0)),
        }
    }

    /// The value in few characters.
    pub fn short(self, value: f64) -> String {
        match self {
            Unit::Plain | Unit::Count => compact(value),
            other => other.full(value),
        }
    }

    /// The next round step of a duration axis, in the column's unit.
    fn step(self, rough: f64) -> f64 {
        const LENGTHS_S: [f64; 18] = [
            1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0,
            21_600.0, 43_200.0, 86_400.0,
        ];
        let scale = match self {
            Unit::Millis => 1_000.0,
            Unit::Seconds => 1.0,
            Unit::Plain | Unit::Share => return nice(rough),
            Unit::Count => return nice(rough).max(1.0),
        };
        let seconds = rough / scale;
        match LENGTHS_S.into_iter().find(|length| *length >= seconds) {
            Some(length) if seconds > 0.5 => length * scale,
            Some(_) => nice(rough),
            None => nice(seconds / 86_400.0) * 86_400.0 * scale,
        }
    }
}

/// A linear axis: values from `low` to `high` at positions from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    pub low: f64,
    pub high: f64,
    pub start: f64,
    pub end: f64,
}

impl Linear {
    pub fn place(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        if span <= 0.0 {
            return f64::midpoint(self.start, self.end);
        }
        self.start + ((value - self.low) / span).clamp(0.0, 1.0) * (self.end - self.start)
    }
}

/// The ticks of a number axis from `low` to `high`: the axis reaches from the first tick to the last.
pub fn ticks(low: f64, high: f64, wanted: usize, unit: Unit) -> Vec<Tick> {
    let (low, high) = if low < high { (low, high) } else { (low.min(0.0), high.max(low.min(0.0) + 1.0)) };
    #[expect(clippy::cast_precision_loss, reason = "a few ticks")]
    let step = unit.step((high - low) / wanted.max(1) as f64);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let mut ticks = Vec::new();
    let mut at = first;
    while at <= last && ticks.len() <= 2 * wanted + 2 {
        ticks.push(Tick { at: at * step, label: unit.short(clean_zero(at * step, step)) });
        at += 1.0;
    }
    ticks
}

/// Rounds `0.30000000000000004` to 0.3.
fn clean_zero(value: f64, step: f64) -> f64 {
    if step >= 1.0 { value.round() } else { (value / step).round() * step }
}

/// The next of 1, 2, 2.5 and 5 times a power of ten; whole numbers from 1 on.
pub fn nice(rough: f64) -> f64 {
    if rough.is_nan() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(rough.log10().floor());
    let steps: &[f64] = if power < 10.0 { &[1.0, 2.0, 5.0, 10.0] } else { &[1.0, 2.0, 2.5, 5.0, 10.0] };
    let found = steps.iter().map(|step| step * power).find(|step| *step >= rough * (1.0 - 1e-9));
    found.unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_data() {
        for (low, high, unit, expected) in [
            (0.0, 0.0, Unit::Plain, vec!["0", "0.2", "0.4", "0.6", "0.8", "1"]),
            (0.0, 4.0, Unit::Plain, vec!["0", "1", "2", "3", "4"]),
            (0.0, 97.0, Unit::Plain, vec!["0", "20", "40", "60", "80", "100"]),
            (-30.0, 60.0, Unit::Plain, vec!["-40", "-20", "0", "20", "40", "60"]),
            (0.0, 5_400_000.0, Unit::Millis, vec!["0 ms", "30 min", "1 h", "1 h 30 min"]),
        ] {
            let found: Vec<String> = ticks(low, high, 5, unit).into_iter().map(|tick| tick.label).collect();
            assert_eq!(found, expected, "{low} to {high}");
        }
        for high in [1e-300, 1e300, 3.3e7, f64::MIN_POSITIVE] {
            let found = ticks(0.0, high, 5, Unit::Plain);
            assert!(found.len() <= 12 && found.last().is_some_and(|tick| tick.at >= high), "{high}: {found:?}");
        }
    }
}
