//! Parses Rust source as far as the checks of its form need.

/// The source with spaces for comments and for the contents of strings and characters; lines stay in place.
pub fn blank(source: &str) -> Vec<u8> {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped_until(bytes, at);
        if end == at {
            out.push(bytes[at]);
            at += 1;
        } else {
            out.extend(bytes[at..end].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment or literal that begins at `at`; `at` if none begins here.
fn skipped_until(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let in_word = at > 0 && is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        return find(bytes, at, b"\n");
    }
    if rest.starts_with(b"/*") {
        return block_comment_end(bytes, at);
    }
    match rest[0] {
        b'"' => string_end(bytes, at + 1),
        b'r' | b'b' | b'c' if !in_word => raw_string_end(bytes, at).unwrap_or(at),
        b'\'' => character_end(bytes, at).unwrap_or(at),
        _ => at,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// `at` is after the opening quote; returns the position after the closing one.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"…"`, `r#"…"#`, `br"…"`, `cr#"…"#`; not `r#name`.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + usize::from(bytes[start] != b'r');
    (bytes.get(at) == Some(&b'r')).then_some(())?;
    at += 1;
    let hashes = bytes[at..].iter().take_while(|&&b| b == b'#').count();
    at += hashes;
    (bytes.get(at) == Some(&b'"')).then_some(())?;
    let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    Some((find(bytes, at + 1, &close) + close.len()).min(bytes.len()))
}

/// A character literal, not a lifetime.
fn character_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start + 1) == Some(&b'\\') {
        return Some((find(bytes, start + 3, b"'") + 1).min(bytes.len()));
    }
    let text = std::str::from_utf8(&bytes[start + 1..]).ok()?;
    let width = text.chars().next()?.len_utf8();
    (bytes.get(start + 1 + width) == Some(&b'\'')).then_some(start + 2 + width)
}

pub fn find(bytes: &[u8], from: usize, what: &[u8]) -> usize {
    (from..bytes.len()).find(|&at| bytes[at..].starts_with(what)).unwrap_or(bytes.len())
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub fn word_at(bytes: &[u8], at: usize) -> &str {
    let length = bytes[at.min(bytes.len())..].iter().take_while(|&&b| is_word(b)).count();
    std::str::from_utf8(&bytes[at.min(bytes.len())..][..length]).expect("BUG: words are ASCII")
}

pub fn skip_space(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..].iter().take_while(|b| b.is_ascii_whitespace()).count()
}

pub fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at].iter().filter(|&&b| b == b'\n').count()
}

/// Every position of `word` as a whole word.
pub fn places_of(code: &[u8], word: &str) -> Vec<usize> {
    (0..code.len())
        .filter(|&at| code[at..].starts_with(word.as_bytes()))
        .filter(|&at| (at == 0 || !is_word(code[at - 1])) && word_at(code, at) == word)
        .collect()
}
