//! Replaces every string under a key named `secret`. This and the credential are the only exceptions to keeping events byte
//! for byte.

use std::ops::Range;

use memchr::memmem;

use crate::planted::{self, Bug};

use super::json;

/// The replacement of a secret string, with its quotes.
pub const REDACTED: &[u8] = b"\"[redacted]\"";

/// A range of bytes, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub place: Range<usize>,
    pub by: &'static [u8],
}

/// The strings with their quotes under a key `secret` in `text`, at any depth below it. `text` must be valid JSON; for any
/// other text, the result is arbitrary, but the function does not panic.
pub fn secrets(text: &str) -> Vec<Edit> {
    let bytes = text.as_bytes();
    // Without the word, and without an escape that could spell one of its letters, no key has this name.
    if planted::is(Bug::SecretsKept)
        || memmem::find(bytes, b"secret").is_none() && memmem::find(bytes, b"\\u").is_none()
    {
        return Vec::new();
    }
    Scan { text, at: 0, stack: Vec::new(), key_next: false, below: false, found: Vec::new() }.run()
}

/// Applies all edits to `original`; they are in order and do not overlap.
pub fn replace(original: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut text = Vec::with_capacity(original.len() + edits.len() * REDACTED.len());
    let mut kept = 0;
    for Edit { place, by } in edits {
        text.extend_from_slice(&original[kept..place.start]);
        text.extend_from_slice(by);
        kept = place.end;
    }
    text.extend_from_slice(&original[kept..]);
    text
}

struct Frame {
    object: bool,
    below: bool,
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    stack: Vec<Frame>,
    /// The next string is a key.
    key_next: bool,
    /// The next value is below a key `secret`, at any depth.
    below: bool,
    found: Vec<Edit>,
}

impl Scan<'_> {
    fn run(mut self) -> Vec<Edit> {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'"' => self.string(),
                b'{' | b'[' => {
                    self.stack.push(Frame { object: byte == b'{', below: self.below });
                    self.key_next = byte == b'{';
                    self.at += 1;
                }
                b'}' | b']' => {
                    self.stack.pop();
                    self.key_next = false;
                    self.at += 1;
                }
                b',' => {
                    let frame = self.stack.last();
                    self.key_next = frame.is_some_and(|f| f.object);
                    self.below = frame.is_some_and(|f| f.below);
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.found
    }

    fn string(&mut self) {
        let token = self.at..json::string_end(self.text.as_bytes(), self.at);
        self.at = token.end;
        if self.key_next {
            let above = self.stack.last().is_some_and(|f| f.below);
            self.below = above || json::string(&self.text[token]).is_some_and(|key| key == "secret");
            self.key_next = false;
        } else if self.below {
            self.found.push(Edit { place: token, by: REDACTED });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        String::from_utf8(replace(text.as_bytes(), &secrets(text))).unwrap()
    }

    #[test]
    fn only_strings_under_a_key_secret_are_replaced() {
        for (scenario, text, expected) in [
            ("at the top", r#"{"secret":"s3"}"#, r#"{"secret":"[redacted]"}"#),
            ("empty", r#"{"secret":""}"#, r#"{"secret":"[redacted]"}"#),
            ("space is kept", "{ \"secret\" :\t\"s3\" , \"a\":1 }", "{ \"secret\" :\t\"[redacted]\" , \"a\":1 }"),
            ("escaped key", r#"{"\u0073ecre\u0074":"s3"}"#, r#"{"\u0073ecre\u0074":"[redacted]"}"#),
            ("escapes in the value", r#"{"secret":"a\"b\\"}"#, r#"{"secret":"[redacted]"}"#),
            ("deep below objects", r#"{"a":[{"b":{"secret":"s3"}}]}"#, r#"{"a":[{"b":{"secret":"[redacted]"}}]}"#),
            ("a list of secrets", r#"{"secret":["a",1,"b"]}"#, r#"{"secret":["[redacted]",1,"[redacted]"]}"#),
            (
                "an object of secrets keeps its keys",
                r#"{"secret":{"x":"a","y":[{"z":"b"}]},"after":"kept"}"#,
                r#"{"secret":{"x":"[redacted]","y":[{"z":"[redacted]"}]},"after":"kept"}"#,
            ),
            ("after a nested secret", r#"[{"secret":{"a":"b"}},"kept"]"#, r#"[{"secret":{"a":"[redacted]"}},"kept"]"#),
            ("twice the key", r#"{"secret":"a","secret":"b"}"#, r#"{"secret":"[redacted]","secret":"[redacted]"}"#),
        ] {
            assert_eq!(redacted(text), expected, "{scenario}");
        }
    }

    #[test]
    fn strings_under_other_keys_stay() {
        for text in [
            r#"{"secret":null,"a":1}"#,
            r#"{"secret":12}"#,
            r#"{"Secret":"a","secrets":"b","my_secret":"c"}"#,
            r#"{"name":"secret","b":"\u0073ecret"}"#,
            r#"["secret","a"]"#,
            r#"{"a":"{\"secret\":\"b\"}"}"#,
            r#"{"secret":{},"a":"kept"}"#,
            r#"{"secret":[],"a":"kept"}"#,
            r#""secret""#,
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
