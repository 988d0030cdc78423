//! Text in a drawing: cleaned, measured and cut. Every string of a chart passes through here.

use unicode_width::UnicodeWidthChar as _;

use crate::report::printable;

/// Maximum width of a tooltip, about 300 characters; the rows have the whole text.
const TOOLTIP_ROOM: f64 = 2_200.0;
/// Maximum number of combining marks on a character: more would draw over neighbours.
const COMBINING_MAX: usize = 2;

/// Removes control characters and excess combining marks, for one line.
pub fn clean(text: &str) -> String {
    let mut piled = 0;
    let is_shown = |c: &char| {
        piled = if c.width() == Some(0) { piled + 1 } else { 0 };
        piled <= COMBINING_MAX
    };
    printable(text).chars().filter(is_shown).collect()
}

/// Cleans and cuts text for a `<title>`; does not escape it.
pub fn tooltip(text: &str) -> String {
    cut(text, TOOLTIP_ROOM)
}

/// Estimated width of the text in a system font of 12 units; more often too large than too small.
pub fn width(text: &str) -> f64 {
    text.chars().map(char_width).sum()
}

/// Cuts the text to `room` with an ellipsis. The result is cleaned, but not escaped.
pub fn cut(text: &str, room: f64) -> String {
    let text = clean(text);
    if width(&text) <= room {
        return text;
    }
    let mut used = char_width('…');
    let fitting = text.chars().take_while(|c| {
        used += char_width(*c);
        used <= room
    });
    format!("{}…", fitting.collect::<String>().trim_end())
}

fn char_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '!' | '|' | '.' | ',' | ':' | ';' | '\'' | ' ' => 3.6,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' => 4.8,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 11.8,
        'A'..='Z' | '<' | '>' | '=' | '+' | '~' | '^' | '_' | '#' | '&' => 9.0,
        c => [0.0, 7.8, 14.4][c.width().unwrap_or(0).min(2)],
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
    fn hostile_text_is_cut_and_cleaned() {
        let piled = format!("a{}b", "\u{0301}".repeat(50));
        assert_eq!(clean(&piled).chars().count(), 4);
        assert_eq!(clean("a\u{1b}[31m\u{202e}b\nc"), "a[31mb c");
        let long = "x".repeat(1_000);
        assert!(width(&cut(&long, 100.0)) <= 100.0 && cut(&long, 100.0).ends_with('…'));
        assert_eq!(cut("short", 100.0), "short");
        assert_eq!(cut("anything", 1.0), "…");
        assert!((200..500).contains(&tooltip(&long).chars().count()));
    }
}
