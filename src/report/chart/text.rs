//! Text in a drawing: cleaned, escaped, measured and cut. Every string of a chart passes through here.

use crate::report::printable;

/// Maximum number of characters in a tooltip; the rows have the whole text.
const TOOLTIP_CHARS_MAX: usize = 300;
/// Maximum number of combining marks on a character: more would draw over neighbours.
const COMBINING_MAX: usize = 2;

/// Removes control characters and excess combining marks, for one line.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut piled = 0;
    for c in printable(text).chars() {
        piled = if is_combining(c) { piled + 1 } else { 0 };
        if piled <= COMBINING_MAX {
            out.push(c);
        }
    }
    out
}

/// Escapes text for an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Cleans and cuts text for a `<title>`; does not escape it.
pub fn tooltip(text: &str) -> String {
    let text = clean(text);
    if text.chars().count() <= TOOLTIP_CHARS_MAX {
        return text;
    }
    text.chars().take(TOOLTIP_CHARS_MAX - 1).chain(['…']).collect()
}

/// Estimated width of the text in a system font of `size`; more often too large than too small.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(ems).sum::<f64>() * size
}

/// Cuts the text to `room` with an ellipsis. The result is cleaned, but not escaped.
pub fn cut(text: &str, room: f64, size: f64) -> String {
    let text = clean(text);
    if width(&text, size) <= room {
        return text;
    }
    let (mut out, mut used) = (String::new(), ems('…') * size);
    for c in text.chars() {
        used += ems(c) * size;
        if used > room {
            break;
        }
        out.push(c);
    }
    format!("{}…", out.trim_end())
}

fn ems(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '!' | '|' | '.' | ',' | ':' | ';' | '\'' | ' ' => 0.3,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' => 0.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.98,
        '<' | '>' | '=' | '+' | '~' | '^' => 0.85,
        'A'..='Z' | '_' | '#' | '&' => 0.7,
        '0'..='9' => 0.64,
        c if is_combining(c) => 0.0,
        c if c.is_ascii() => 0.62,
        '\u{0080}'..='\u{10ff}' => 0.7,
        _ => 1.2,
    }
}

fn is_combining(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036f}' | '\u{0483}'..='\u{0489}' | '\u{0591}'..='\u{05bd}' | '\u{0610}'..='\u{061a}'
        | '\u{064b}'..='\u{065f}' | '\u{0e31}' | '\u{0e34}'..='\u{0e3a}' | '\u{0e47}'..='\u{0e4e}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200b}'..='\u{200d}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Joins words as in a sentence: `a`, `a and b`, `a, b and c`.
pub fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// A column's name as words, without the suffix for local times: the page explains the zone.
pub fn words(name: &str) -> String {
    clean(&name.strip_suffix("_local").unwrap_or(name).replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_cut_cleaned_and_escaped() {
        let piled = format!("a{}b", "\u{0301}".repeat(50));
        assert_eq!(clean(&piled).chars().count(), 4);
        assert_eq!(clean("a\u{1b}[31m\u{202e}b\nc"), "a[31mb c");
        assert_eq!(escape("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        let long = "x".repeat(1_000);
        assert!(width(&cut(&long, 100.0, 10.0), 10.0) <= 100.0 && cut(&long, 100.0, 10.0).ends_with('…'));
        assert_eq!(cut("short", 100.0, 10.0), "short");
        assert_eq!(cut("anything", 1.0, 10.0), "…");
        assert_eq!(tooltip(&long).chars().count(), TOOLTIP_CHARS_MAX);
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
