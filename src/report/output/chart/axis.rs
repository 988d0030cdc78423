//! Axes: each maps values to positions, and has ticks at round values.

use super::text::{short, whole};
use super::time;

/// Values from `low` to `high` at positions from `start` to `end`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub start: f64,
    pub end: f64,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
    /// Whether the axis is a list of names; the name number `n` has the values from `n` to `n + 1`.
    pub is_names: bool,
    pub has_grid: bool,
}

impl Axis {
    /// About `wanted` round ticks around the numbers; the axis reaches from the first tick to the last.
    pub fn numbers(numbers: impl Iterator<Item = f64> + Clone, wanted: f64) -> Self {
        let (low, high) = extent(numbers.clone());
        let (low, high) = if low < high { (low, high) } else { (low.min(0.0), high.max(0.0)) };
        let high = if low < high { high } else { 1.0 };
        // Between two whole numbers is nothing.
        let least = if numbers.clone().all(|n| n.fract() == 0.0) { 1.0 } else { 0.0 };
        let step = round_step((high - low) / wanted).max(least);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let values = (0..=whole(last - first).min(100)).map(|nth| (first + nth as f64) * step);
        let ticks = values.map(|at| (at, short(at))).collect();
        Self { low: first * step, high: last * step, ticks, has_grid: true, ..Self::default() }
    }

    pub fn times(times: impl Iterator<Item = f64>, wanted: f64) -> Self {
        let (low, high) = extent(times);
        let (low, high) = if low > high { (0.0, time::DAY) } else { (low, high) };
        let (low, high) = if low == high { (low - time::DAY / 2.0, high + time::DAY / 2.0) } else { (low, high) };
        Self { low, high, ticks: time::ticks(low, high, wanted), has_grid: true, ..Self::default() }
    }

    pub fn names(names: &[String]) -> Self {
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64 + 0.5, name.clone()));
        Self::places(names.len(), ticks.collect())
    }

    /// Places side by side. `ticks` labels some of them.
    pub fn places(count: usize, ticks: Vec<(f64, String)>) -> Self {
        Self { high: count as f64, ticks, is_names: true, ..Self::default() }
    }

    pub fn place(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }

    /// The distance of two names.
    pub fn step(&self) -> f64 {
        (self.end - self.start).abs() / self.high.max(1.0)
    }
}

/// The lowest and the highest value; infinite if there is none.
pub fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    [power, 2.0 * power, 5.0 * power].into_iter().find(|step| *step >= rough * 0.999_999).unwrap_or(power * 10.0)
}
