//! Formats times, durations and amounts for people.

use std::time::Duration;

use crate::model::Instant;
use crate::report::{Zone, local_time_text, plural, printable};

/// `3 minutes`, `2 hours`, `89 days`: in the largest useful unit.
pub fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..90 => (seconds, "second"),
        90..5_400 => ((seconds + 30) / 60, "minute"),
        5_400..172_800 => ((seconds + 1_800) / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    plural(count, unit)
}

/// The length of a session: `1:02:03` hours, or `0.214 s`.
pub fn length(milliseconds: i64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => {
            let seconds = milliseconds / 1_000;
            format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
        }
    }
}

/// `4.2 GiB`
pub fn bytes(count: u64) -> String {
    let (mut whole, mut unit) = (count, 0);
    let mut tenths = 0;
    while whole >= 1_024 && unit < 4 {
        (whole, tenths, unit) = (whole / 1_024, whole % 1_024 * 10 / 1_024, unit + 1);
    }
    let name = ["bytes", "KiB", "MiB", "GiB", "TiB"][unit];
    if unit == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenths} {name}") }
}

/// `40 seconds ago`
pub fn ago(at: Instant, now: Instant) -> String {
    if at > now.plus(Duration::from_secs(1)) {
        return format!("in {}", span(at.since(now).as_secs()));
    }
    match now.since(at).as_secs() {
        0..2 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// A moment on a page: in the chosen time zone, and exact in UTC as a tooltip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    /// `2026-11-20 09:00:12`
    pub text: String,
    /// RFC 3339, UTC.
    pub utc: String,
}

pub fn time(at: Instant, zone: &Zone) -> Time {
    Time { text: local_time_text(at.floor_second(), zone), utc: at.to_string() }
}

/// The same, but always with seconds, so that a list can tell events apart.
pub fn exact(at: Instant, zone: &Zone) -> Time {
    const TO_THE_MINUTE: usize = "2026-11-20 09:00".len();
    let mut shown = time(at, zone);
    if shown.text.len() == TO_THE_MINUTE {
        shown.text.push_str(":00");
    }
    shown
}

/// JSON text with one indented line for each member; the tokens remain byte for byte. Control characters and marks that change the
/// text direction are removed, because they could mislead the reader.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut chars = json.chars().filter(|c| !matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')).peekable();
    while let Some(c) = chars.next() {
        if in_text {
            push_clean(&mut out, c);
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '"' => (in_text, _) = (true, out.push(c)),
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| c.is_whitespace()).is_some() {}
                if let Some(close) = chars.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(close);
                } else {
                    depth = (depth + 1).min(DEPTH_MAX);
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => push_clean(&mut out, c),
        }
    }
    out
}

/// The maximum depth of indentation.
const DEPTH_MAX: usize = 24;

fn push_clean(out: &mut String, c: char) {
    out.push_str(&printable(c.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_amounts_are_readable() {
        let spans = [0, 1, 89, 90, 3_600, 5_400, 86_400, 172_800, 7_776_000].map(span);
        let expected = [
            "0 seconds",
            "1 second",
            "89 seconds",
            "2 minutes",
            "60 minutes",
            "2 hours",
            "24 hours",
            "2 days",
            "90 days",
        ];
        assert_eq!(spans, expected);
        assert_eq!([0, 999, 1_500, 3_723_456].map(length), ["0 ms", "999 ms", "1.5 s", "1:02:03"]);
        assert_eq!(
            [0, 1_023, 1_024, 1_572_864, 1 << 33].map(bytes),
            ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "8.0 GiB"]
        );
    }

    #[test]
    fn a_moment_can_keep_zero_seconds() {
        let (at, zone) = (Instant::from_seconds(1_800_000_000), Zone::utc());
        assert_eq!(
            (time(at, &zone).text, exact(at, &zone).text),
            ("2027-01-15 08:00".into(), "2027-01-15 08:00:00".into())
        );
        let later = at.plus(Duration::from_secs(7));
        assert_eq!((time(later, &zone), exact(later, &zone).text), (exact(later, &zone), "2027-01-15 08:00:07".into()));
    }

    #[test]
    fn json_is_indented_and_its_tokens_are_unchanged() {
        let raw = r#"{"a":{"b":[],"c":[1,2.50e10]},"d":"x\"{,}:\\","e":{ }}"#;
        let shown = pretty(raw);
        assert_eq!(
            shown,
            "{\n  \"a\": {\n    \"b\": [],\n    \"c\": [\n      1,\n      2.50e10\n    ]\n  },\n  \"d\": \"x\\\"{,}:\\\\\",\n  \"e\": {}\n}"
        );
        assert!(!pretty("\"\u{202e}\u{1b}[31m\"").contains(['\u{202e}', '\u{1b}']));
        assert!(pretty(&"[".repeat(100_000)).len() < 100_000 * (2 * DEPTH_MAX + 3));
    }
}
