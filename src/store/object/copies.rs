//! Copies of parts of a ledger in fewer objects: whole past days, and the newest day so far.

use bytes::Bytes;

use crate::model::Instant;

use super::super::{Listed, StoreError};
use super::bucket::Bucket;
use super::journal::Journal;
use super::names::{self, Extension};
use super::stored::Copy;

/// A copy is written after this many new lines, or after a quarter of the copied lines if that is more: so copies remain cheap.
const COPY_LINES: usize = 100;
impl Journal {
    /// The newest copy that continues where the day files end; other copies are useless.
    pub(super) fn newest_copy(&self, bucket: &Bucket) -> Result<Option<(Copy, Bytes)>, StoreError> {
        let place = format!("{}/copy", self.directory);
        let last = self.end.map_or(0, |(_, number)| number);
        let copies = bucket.list(&place, Some(&names::copy(&self.directory, last)))?;
        let Some(object) = copies.last() else { return Ok(None) };
        let Some(number) = names::line_number(&self.directory, "copy", &object.path) else { return Ok(None) };
        let Some(content) = bucket.get_listed(&[object])?.and_then(|mut all| all.pop()) else { return Ok(None) };
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let [first, .., newest] = lines[..] else { return Ok(None) };
        let follows = names::number_in_line(first) == Some(last + 1)
            && names::number_in_line(newest) == Some(number)
            && newest.ends_with(b"\n");
        let Some(day) = self.newest().max(names::day_in_line(first)).filter(|_| follows) else { return Ok(None) };
        let bytes = content.len() as u64;
        let copy = Copy { day, number, lines: lines.len(), bytes, modified: object.modified };
        Ok(Some((copy, content)))
    }

    /// Writes past days in order, and a copy of the newest day when it is due. The copy leaves out the newest append, so that
    /// a repeated append can be recognised.
    pub(super) fn copy_days(&mut self, bucket: &Bucket, newest: Instant) -> Result<(), StoreError> {
        let first = |journal: &Self| journal.copy.map(|copy| copy.day).or(journal.parts.first().map(|part| part.day));
        while let Some(day) = first(self).filter(|day| *day < newest) {
            let Some(whole) = self.content(bucket, day)? else { return Ok(()) };
            let bytes = whole.len() as u64;
            let path = self.file_path(day);
            bucket.put(&path, whole)?;
            self.files.insert(day, Listed { path, bytes, modified: bucket.newest_time(), tag: None, irregular: None });
            let before = self.parts.len();
            self.parts.retain(|part| part.day != day);
            // A copy that this writer does not know comes from another writer.
            self.copied = None;
            if self.copy.take().is_some() || before - self.parts.len() > COPY_LINES {
                self.delete_copies(bucket)?;
            }
        }
        let copied = self.copy.map_or(0, |copy| copy.lines);
        if self.extension == Extension::Lines && self.parts.len() > COPY_LINES.max(copied / 4) {
            self.copy_newest(bucket, newest, copied)?;
        }
        Ok(())
    }

    fn copy_newest(&mut self, bucket: &Bucket, day: Instant, copied: usize) -> Result<(), StoreError> {
        let Some(whole) = self.content(bucket, day)? else { return Ok(()) };
        let in_file = self.files.get(&day).map_or(0, |file| usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let Some(last) = self.parts.pop() else { return Ok(()) };
        let (parts, number) = (self.parts.len(), last.number - 1);
        let end = whole.len() - last.len();
        self.parts.push(last);
        let content: Bytes = whole.slice(in_file..end);
        let bytes = content.len() as u64;
        bucket.put(&names::copy(&self.directory, number), content.clone())?;
        self.copied = Some(content);
        self.copy = Some(Copy { day, number, lines: copied + parts, bytes, modified: bucket.newest_time() });
        self.parts.drain(..parts);
        Ok(())
    }

    /// Removes the copies of a past day. A reader that still needs one starts again.
    fn delete_copies(&self, bucket: &Bucket) -> Result<(), StoreError> {
        let copies = bucket.list(&format!("{}/copy", self.directory), None)?;
        let paths: Vec<&str> = copies.iter().map(|object| object.path.as_str()).collect();
        bucket.delete_all(&paths)
    }
}
