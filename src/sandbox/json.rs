//! Writes JSON text directly into a buffer, because the sandbox serves millions of events a second.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a string with quotes. Non-ASCII characters stay UTF-8.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..=0x1f => push_escape(out, u16::from(byte)),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Writes a string with quotes, and escapes all non-ASCII characters and `<`, `>`, `&`. This is another spelling of
/// the same string, which a reader must keep byte for byte.
pub(super) fn push_escaped_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut units = [0u16; 2];
    for letter in text.chars() {
        match letter {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            ' '..='~' if !matches!(letter, '<' | '>' | '&') => out.push(letter as u8),
            _ => letter.encode_utf16(&mut units).iter().for_each(|&unit| push_escape(out, unit)),
        }
    }
    out.push(b'"');
}

fn push_escape(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    push_hex(out, u64::from(unit), 4);
}

pub(super) fn push_int(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes the lowest `digits` hexadecimal digits of `value`.
pub(super) fn push_hex(out: &mut Vec<u8>, value: u64, digits: u32) {
    for place in (0..digits).rev() {
        out.push(HEX[((value >> (place * 4)) & 0xf) as usize]);
    }
}

pub(super) fn push_ipv4(out: &mut Vec<u8>, address: u32) {
    for (place, octet) in address.to_be_bytes().into_iter().enumerate() {
        if place > 0 {
            out.push(b'.');
        }
        push_int(out, i64::from(octet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_completely() {
        for value in [0, 7, -1, 1_700_000_000_123, i64::MAX, i64::MIN] {
            assert_eq!(written(|out| push_int(out, value)), value.to_string());
        }
        assert_eq!(written(|out| push_ipv4(out, 0xC000_02FF)), "192.0.2.255");
        assert_eq!(written(|out| push_hex(out, 0x0123_4567_89ab_cdef, 16)), "0123456789abcdef");
    }

    #[test]
    fn both_spellings_read_back_as_the_same_string() {
        for text in ["", "plain", "a\"b\\c\nd\u{0}\u{1b}[31m", "<b>&</b>", "東京 \u{202e} 😀 \u{7f}"] {
            for spelling in [push_string, push_escaped_string] {
                let json = written(|out| spelling(out, text));
                assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}");
            }
        }
        assert_eq!(written(|out| push_escaped_string(out, "é<")), "\"\\u00e9\\u003c\"");
    }
}
