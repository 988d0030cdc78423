//! Copies of parts of a ledger in fewer objects: whole past days, and the newest day so far.

use crate::model::Instant;

use super::super::{Listed, StoreError};
use super::bucket::Bucket;
use super::journal::{Journal, Part};
use super::names::{self, Extension};

/// A copy is written after this many new lines, or after a quarter of the copied lines if that is more: so copies remain cheap.
const COPY_LINES: usize = 100;
impl Journal {
    /// The newest copy that continues where the day files end; other copies are useless.
    pub(super) fn newest_copy(&self, bucket: &Bucket) -> Result<Option<Part>, StoreError> {
        let place = format!("{}/copy", self.directory);
        let last = self.end.map_or(0, |(_, number)| number);
        let copies = bucket.list(&place, Some(&names::copy(&self.directory, last)))?;
        let Some(object) = copies.last() else { return Ok(None) };
        let Some(number) = names::line_number(&self.directory, "copy", &object.path) else { return Ok(None) };
        let Some(content) = bucket.get_listed(object)? else { return Ok(None) };
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let [first, .., newest] = lines[..] else { return Ok(None) };
        let follows = names::number_in_line(first) == Some(last + 1)
            && names::number_in_line(newest) == Some(number)
            && newest.ends_with(b"\n");
        let Some(day) = self.newest().max(names::day_in_line(first)).filter(|_| follows) else { return Ok(None) };
        let (appends, bytes, modified) = (lines.len(), content.len() as u64, object.modified);
        Ok(Some(Part { number, day, appends, bytes, modified, content: Some(content) }))
    }

    /// Writes past days in order, and a copy of the newest day when it is due. The copy leaves out the newest append, so that
    /// a repeated append can be recognised.
    pub(super) fn copy_days(&mut self, bucket: &Bucket, newest: Instant) -> Result<(), StoreError> {
        while let Some(day) = self.parts.first().map(|part| part.day).filter(|day| *day < newest) {
            let Some(whole) = self.content(bucket, day)? else { return Ok(()) };
            let bytes = whole.len() as u64;
            let path = self.file_path(day);
            bucket.put(&path, whole)?;
            self.files.insert(day, Listed::new(path, bytes, bucket.newest_time()));
            let (copied, before) = (self.copied(), self.parts.len());
            self.parts.retain(|part| part.day != day);
            // A copy that this writer does not know comes from another writer.
            if copied > 0 || before - self.parts.len() > COPY_LINES {
                self.delete_copies(bucket)?;
            }
        }
        let copied = self.copied();
        let new = self.parts.len() - usize::from(copied > 0);
        if self.extension == Extension::Lines && new > COPY_LINES.max(copied / 4) {
            self.copy_newest(bucket, newest)?;
        }
        Ok(())
    }

    fn copy_newest(&mut self, bucket: &Bucket, day: Instant) -> Result<(), StoreError> {
        let Some(whole) = self.content(bucket, day)? else { return Ok(()) };
        let in_file = self.files.get(&day).map_or(0, |file| usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let Some((last, before)) = self.parts.split_last() else { return Ok(()) };
        let (number, appends) = (last.number - 1, before.iter().map(|part| part.appends).sum());
        let in_last = usize::try_from(last.bytes).expect("BUG: a part fits the memory");
        let content = whole.slice(in_file..whole.len() - in_last);
        bucket.put(&names::copy(&self.directory, number), content.clone())?;
        let (bytes, modified) = (content.len() as u64, bucket.newest_time());
        let copy = Part { number, day, appends, bytes, modified, content: Some(content) };
        self.parts.splice(..self.parts.len() - 1, [copy]);
        Ok(())
    }

    /// Removes the copies of a past day. A reader that still needs one starts again.
    fn delete_copies(&self, bucket: &Bucket) -> Result<(), StoreError> {
        let copies = bucket.list(&format!("{}/copy", self.directory), None)?;
        let paths: Vec<&str> = copies.iter().map(|object| object.path.as_str()).collect();
        bucket.delete_all(&paths)
    }
}
