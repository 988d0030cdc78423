//! Finds words and addresses in a text. Pure.

use std::net::{IpAddr, Ipv6Addr};

/// `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`
const IPV6_BYTES_MAX: usize = 45;

pub fn is_address(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok()
}

pub fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
}

/// The words of a text, with the characters between them.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || "\"'`()[]{},;<>=|/&\\".contains(c);
    text.split_inclusive(is_between).flat_map(move |piece| {
        let word = piece.trim_end_matches(|c: char| is_between(c) || ".:!?".contains(c));
        [word, &piece[word.len()..]].into_iter().filter(|part| !part.is_empty())
    })
}

/// The first run of ASCII letters and digits in a text that is not empty, or its first character.
pub fn first_run(text: &str) -> &str {
    let run = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..run.max(text.chars().next().map_or(0, char::len_utf8))]
}

/// Whether the position `at` divides a run of letters and digits, or a decimal number.
pub fn is_inside_run(text: &str, at: usize) -> bool {
    let (before, behind) = text.split_at(at);
    let (is_letter, is_digit) = (|c: char| c.is_ascii_alphanumeric(), |c: char| c.is_ascii_digit());
    let ends_number =
        before.ends_with(is_digit) && behind.strip_prefix('.').is_some_and(|text| text.starts_with(is_digit));
    let begins_fraction =
        before.strip_suffix('.').is_some_and(|text| text.ends_with(is_digit)) && behind.starts_with(is_digit);
    before.ends_with(is_letter) && behind.starts_with(is_letter) || ends_number || begins_fraction
}

/// The end of an IP address that begins at `at`, whatever surrounds it: a port, a zone, an arrow.
pub fn address_end(text: &str, at: usize) -> Option<usize> {
    let (before, rest) = text.split_at(at);
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let run =
        rest.bytes().take(IPV6_BYTES_MAX).take_while(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)).count();
    if !before.ends_with(is_letter) && rest[..run].contains(':') {
        let is_ipv6 = |end: &usize| {
            let (address, behind) = rest.split_at(*end);
            !behind.starts_with(is_letter) && address.parse::<Ipv6Addr>().is_ok_and(|ip| !ip.is_unspecified())
        };
        if let Some(end) = (2..=run).rev().find(is_ipv6) {
            return Some(at + end);
        }
    }
    let is_whole = !before.ends_with(|c: char| c.is_ascii_digit());
    ipv4_length(rest).filter(|_| is_whole).map(|length| at + length)
}

/// The length of the IPv4 address at the beginning of a text.
fn ipv4_length(text: &str) -> Option<usize> {
    let mut end = 0;
    for nth in 0..4 {
        if nth > 0 {
            end += usize::from(text[end..].starts_with('.'));
        }
        let digits = text[end..].bytes().take_while(u8::is_ascii_digit).count();
        text[end..end + digits].parse::<u8>().ok()?;
        end += digits;
    }
    Some(end)
}
