//! Number formats for people.

/// With all significant digits and thousands separators: `1,234,567`, `0.25`, `1.2e21`.
pub fn number(value: f64) -> String {
    if value.abs() >= 1e15 || (value != 0.0 && value.abs() < 1e-4) {
        return format!("{value:.3e}").replace(".000e", "e");
    }
    let decimals = if value.fract() == 0.0 {
        0
    } else if value.abs() >= 100.0 {
        1
    } else if value.abs() >= 1.0 {
        2
    } else {
        4
    };
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    if value < 0.0 && out.chars().any(|c| matches!(c, '1'..='9')) { format!("-{out}") } else { out }
}

/// In few characters: `950`, `1,200`, `12k`, `3.4M`.
pub fn compact(value: f64) -> String {
    let size = value.abs();
    for (from, divisor, letter) in
        [(1e15, 0.0, ""), (1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")]
    {
        if size >= from {
            return if divisor > 0.0 {
                format!("{}{letter}", number((value / divisor * 100.0).round() / 100.0))
            } else {
                number(value)
            };
        }
    }
    number(value)
}

#[expect(clippy::cast_precision_loss, reason = "a count of what is drawn")]
pub fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (value, full, short) in [
            (0.0, "0", "0"),
            (-0.0, "0", "0"),
            (7.0, "7", "7"),
            (1_234_567.0, "1,234,567", "1.23M"),
            (-12_345.0, "-12,345", "-12.35k"),
            (0.25, "0.25", "0.25"),
            (1e21, "1e21", "1e21"),
            (-1e300, "-1e300", "-1e300"),
        ] {
            assert_eq!((number(value).as_str(), compact(value).as_str()), (full, short), "{value}");
        }
    }
}
