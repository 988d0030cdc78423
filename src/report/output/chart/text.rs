//! The words of a drawing: numbers for people, and text that is cleaned, measured and cut. Every string of a chart passes through here.

use indicatif::{HumanCount, HumanFloatCount};
use unicode_width::UnicodeWidthChar as _;

use crate::report::printable;

/// Maximum number of combining marks on a character: more would draw over neighbours.
const COMBINING_MAX: usize = 2;

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
    // Adding zero removes the sign of a negative zero.
    format!("{:.decimals$}", HumanFloatCount(value + 0.0))
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
    HumanCount(count).to_string()
}

/// `1 event`, `1,204 events`
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", counted(count), if count == 1 { "" } else { "s" })
}

/// Removes control characters and excess combining marks, for one line.
pub fn clean(text: &str) -> String {
    let mut piled = 0;
    let is_shown = |c: &char| {
        piled = if c.width() == Some(0) { piled + 1 } else { 0 };
        piled <= COMBINING_MAX
    };
    printable(text).chars().filter(is_shown).collect()
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

/// A small whole number; 0 for a negative one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
pub fn whole(value: f64) -> usize {
    value as usize
}
