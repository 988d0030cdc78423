//! The terminal: its size, and a writer that removes control sequences.

use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

use crate::report::printable;

/// Columns and rows of the terminal on standard output; `None` if it is no terminal, or does not tell its size.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Writes untrusted text to a terminal, without its control sequences.
pub struct SanitizedWriter<W> {
    out: W,
    /// The first bytes of a character whose other bytes have not arrived.
    rest: Vec<u8>,
}

impl<W: Write> SanitizedWriter<W> {
    pub fn new(out: W) -> Self {
        Self { out, rest: Vec::new() }
    }
}

impl<W: Write> Write for SanitizedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text = String::from_utf8_lossy(&self.rest[..whole]);
        let shown = text.split('\n').map(printable).collect::<Vec<_>>().join("\n");
        self.out.write_all(shown.as_bytes())?;
        self.rest.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_control_sequences_are_removed() {
        let text = "a\u{1b}[31mred\u{7}\nč\u{202e}x\u{9b}2J\n".as_bytes();
        for size in [1, 2, 3, text.len()] {
            let mut shown = SanitizedWriter::new(Vec::new());
            for part in text.chunks(size) {
                shown.write_all(part).unwrap();
            }
            assert_eq!(String::from_utf8(shown.out).unwrap(), "a[31mred\nčx2J\n", "in parts of {size}");
        }
        let mut shown = SanitizedWriter::new(Vec::new());
        shown.write_all(b"\xff\x1b[2Jx").unwrap();
        assert_eq!(String::from_utf8(shown.out).unwrap(), "\u{fffd}[2Jx");
    }
}
