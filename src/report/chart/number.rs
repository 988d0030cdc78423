//! Numbers for people.

/// The number with its significant digits and thousands separators: `1,234,567`, `0.25`, `1.2e21`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 1e-4) {
        return format!("{value:.3e}").replace(".000e", "e");
    }
    let decimals = match size {
        100.0.. => 1,
        1.0.. => 2,
        _ => 4,
    };
    let text = format!("{size:.decimals$}");
    let (whole, fraction) = text.trim_end_matches('0').split_once('.').unwrap_or((&text, ""));
    let thousands: Vec<_> = whole.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    let (sign, point) = (if value < 0.0 { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
    format!("{sign}{}{point}{fraction}", thousands.join(","))
}

/// The number in few characters: `950`, `1,200`, `12k`, `3.4M`.
pub fn short(value: f64) -> String {
    let (divisor, letter) = match value.abs() {
        1e12..1e15 => (1e12, "T"),
        1e9..1e12 => (1e9, "G"),
        1e6..1e9 => (1e6, "M"),
        1e4..1e6 => (1e3, "k"),
        _ => return number(value),
    };
    format!("{}{letter}", number((value / divisor * 100.0).round() / 100.0))
}

/// A count with thousands separators: `1,204`.
pub fn counted(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 event`, `1,204 events`
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", counted(count), if count == 1 { "" } else { "s" })
}

/// A small whole number; 0 for a negative one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
pub fn whole(value: f64) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (value, full, compact) in [
            (0.0, "0", "0"),
            (-0.0, "0", "0"),
            (7.0, "7", "7"),
            (1_234_567.0, "1,234,567", "1.23M"),
            (-12_345.0, "-12,345", "-12.35k"),
            (0.25, "0.25", "0.25"),
            (1e21, "1e21", "1e21"),
            (-1e300, "-1e300", "-1e300"),
        ] {
            assert_eq!((number(value).as_str(), short(value).as_str()), (full, compact), "{value}");
        }
    }
}
