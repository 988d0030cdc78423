//! Reads the lines of a ledger file in blocks: a file of any size needs memory for one block and its longest line.

use std::io::{BufRead as _, BufReader, Read as _};

use crate::archive::ArchiveError;
use crate::store::{Blob, BlobReader, StoreError, Verb};

use super::line::LINE_BYTES_MAX;

const BLOCK_BYTES: usize = 256 << 10;

/// One line, or the bytes after the last newline.
#[derive(Debug, PartialEq, Eq)]
pub struct TextLine {
    /// The line's offset in its file.
    pub offset: u64,
    /// The text without its newline.
    pub text: Vec<u8>,
    pub has_newline: bool,
    /// The file ends after this line.
    pub is_last: bool,
}

impl TextLine {
    /// The line's length in the file.
    pub fn len(&self) -> u64 {
        self.text.len() as u64 + u64::from(self.has_newline)
    }

    /// The offset of the next line.
    pub fn end(&self) -> u64 {
        self.offset + self.len()
    }
}

/// The lines of a file from an offset on. The first fault is the last item.
pub struct TextLines<'a> {
    path: &'a str,
    blocks: BufReader<BlobReader>,
    size: u64,
    /// The offset of the next line.
    at: u64,
    /// The number of the newest line, counted from 1 at the first offset.
    number: u64,
    line_bytes_max: usize,
    is_over: bool,
}

impl<'a> TextLines<'a> {
    /// `begin` is the offset of a line.
    pub fn new(path: &'a str, blob: Blob, begin: u64) -> Self {
        let (size, blocks) = (blob.size(), BufReader::with_capacity(BLOCK_BYTES, blob.reader(begin)));
        Self { path, blocks, size, at: begin, number: 0, line_bytes_max: LINE_BYTES_MAX, is_over: false }
    }

    /// The error of a reader that must stop at the newest line.
    pub fn damaged(&self, reason: String) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.to_owned(), line: self.number, reason }
    }

    fn read(&mut self) -> Result<Option<TextLine>, ArchiveError> {
        let (offset, mut text) = (self.at, Vec::new());
        self.number += 1;
        let read = self.blocks.by_ref().take(self.line_bytes_max as u64).read_until(b'\n', &mut text);
        self.at += read.map_err(|e| StoreError::io(Verb::Read, self.path, e))? as u64;
        let has_newline = text.pop_if(|last| *last == b'\n').is_some();
        match () {
            () if self.at == offset => Ok(None),
            () if !has_newline && text.len() == self.line_bytes_max => Err(self.damaged(too_long())),
            () => Ok(Some(TextLine { offset, text, has_newline, is_last: self.at >= self.size })),
        }
    }
}

fn too_long() -> String {
    format!("longer than {LINE_BYTES_MAX} bytes, the maximum of a line")
}

impl Iterator for TextLines<'_> {
    type Item = Result<TextLine, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.read().transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset, text, whether it has a newline, whether it is the last.
    type ReadLine = Result<(u64, Vec<u8>, bool, bool), String>;

    fn lines(text: &[u8], begin: u64, line_bytes_max: usize) -> Vec<ReadLine> {
        let lines = TextLines { line_bytes_max, ..TextLines::new("f", Blob::Bytes(text.to_vec().into()), begin) };
        let parts = |line: TextLine| (line.offset, line.text, line.has_newline, line.is_last);
        lines.map(|line| line.map(parts).map_err(|fault| fault.to_string())).collect()
    }

    fn line(offset: u64, text: &str, has_newline: bool, is_last: bool) -> ReadLine {
        Ok((offset, text.as_bytes().to_vec(), has_newline, is_last))
    }

    #[test]
    fn a_file_is_split_at_its_newlines() {
        assert!(lines(b"", 0, 100).is_empty() && lines(b"ab\n", 9, 100).is_empty());
        let expected = [line(0, "ab", true, false), line(3, "", true, false), line(4, "c", false, true)];
        assert_eq!(lines(b"ab\n\nc", 0, 100), expected);
        assert_eq!(lines(b"ab\ncd\n", 3, 100), [line(3, "cd", true, true)]);
    }

    #[test]
    fn lines_can_span_several_blocks() {
        let lengths = [BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3, 0, 2 * BLOCK_BYTES + 7];
        let parts: Vec<Vec<u8>> = lengths.iter().zip(b'a'..).map(|(length, byte)| vec![byte; *length]).collect();
        let found = lines(&parts.join(&b'\n'), 0, LINE_BYTES_MAX);
        let texts: Vec<Vec<u8>> = found.into_iter().map(|line| line.unwrap().1).collect();
        assert!(texts == parts);
    }

    #[test]
    fn a_line_over_the_limit_is_a_fault_and_ends_the_iteration() {
        let fault = |number: u32| -> ReadLine { Err(format!("f line {number}: {}", too_long())) };
        assert_eq!(lines(b"abc\nabcd\nx\n", 0, 4), [line(0, "abc", true, false), fault(2)]);
        assert_eq!(lines(b"abcd", 0, 4), [fault(1)]);
        assert_eq!(lines(b"abc", 0, 4), [line(0, "abc", false, true)]);
    }
}
