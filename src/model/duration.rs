//! Durations as people write them: `15m`, `1d`, `1h30m`.

use std::time::Duration;

/// Parses and adds whole numbers with units (`s`, `m`, `h`, `d`, `w`), in any order.
///
/// # Errors
/// A sentence that names the text if it is invalid or longer than a century.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("{text:?} is not a duration such as 15m, 1h30m or 1d");
    let mut total: u64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(refused());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| refused())?;
        let unit = rest[digits..].chars().next().ok_or_else(refused)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(refused()),
        };
        total = number.checked_mul(seconds).and_then(|part| total.checked_add(part)).ok_or_else(refused)?;
        rest = &rest[digits + unit.len_utf8()..];
    }
    if total > 100 * 366 * 86_400 { Err(refused()) } else { Ok(Duration::from_secs(total)) }
}

/// The shortest text of whole seconds that [`parse_duration`] accepts: `2h`, `366d`.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let fits = |(length, _): &(u64, char)| seconds >= *length && seconds.is_multiple_of(*length);
    let (length, unit) = units.into_iter().find(fits).unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_whole_numbers_with_units() {
        for (text, seconds) in
            [("15m", 900), ("1d", 86_400), ("1h", 3_600), ("1h30m", 5_400), ("2w", 1_209_600), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["0s", "59s", "1m", "61s", "2h", "90m", "1d", "366d"] {
            assert_eq!(duration_text(parse_duration(text).unwrap()), text);
        }
        for text in
            ["", " ", "15", "m", "-1d", "1.5h", "1 d", "1y", "1µ", "99999999999999999999s", "18446744073709551615w"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
