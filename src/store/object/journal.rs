//! A team's ledger, or its signatures, in a bucket: each append is an object of its own ([`super::names`]). The journal joins
//! these objects to the day files that the other code reads and appends to.
//!
//! Objects never change, so cached parts remain valid, and a refresh needs one list from the last known number on. Whole days, and
//! copies of the newest day so far, are stored beside the parts, so that readers fetch few objects. They are always a prefix of
//! the truth: they can be missing, and no reader depends on them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::model::Instant;

use super::super::{Blob, Listed, StoreError, Tail};
use super::bucket::{Bucket, Created};
use super::names::{self, Extension, LedgerFile};
use super::object_end::{last_number, missing};

/// A reader that has more parts looks for a newer copy.
const PARTS_MAX: usize = 400;
/// A bucket keeps up to this many bytes of parts in memory, for all teams.
const KEPT_BYTES_MAX: u64 = 32 << 20;
/// Number of attempts to join a day whose copies another process replaces meanwhile.
const READS_MAX: usize = 4;

/// An object after the day files: an append, or the copy of several.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The number of its last append.
    pub(super) number: u64,
    pub(super) day: Instant,
    /// Number of appends: a copy has more than one.
    pub(super) appends: usize,
    pub(super) bytes: u64,
    pub(super) modified: Instant,
    pub(super) content: Option<Bytes>,
}

#[derive(Debug)]
pub(super) struct Journal {
    pub(super) directory: String,
    pub(super) extension: Extension,
    is_known: bool,
    /// Past days.
    pub(super) files: BTreeMap<Instant, Listed>,
    /// The parts after the day files. Only the first one can be a copy.
    pub(super) parts: Vec<Part>,
    /// The day and number of the last append. Lines are numbered across all days, signatures from 1 each day.
    pub(super) end: Option<(Instant, u64)>,
    /// Bytes of parts in memory.
    kept: u64,
}

impl Part {
    fn is_copy(&self) -> bool {
        self.appends > 1
    }
}

impl Journal {
    pub(super) fn new(directory: &str, extension: Extension) -> Self {
        let (files, parts) = (BTreeMap::new(), Vec::new());
        Self { directory: directory.to_owned(), extension, is_known: false, files, parts, end: None, kept: 0 }
    }

    /// Marks the cached state as stale: the next use reads it again.
    pub(super) fn forget(&mut self) {
        self.is_known = false;
    }

    /// Whether a directory with these objects and subdirectories can hold parts of this journal.
    pub(super) fn may_exist(&self, objects: &[Listed], below: &[String]) -> bool {
        self.has_place(below, self.extension.place()) || objects.iter().any(|object| self.day_of_file(object).is_some())
    }

    pub(super) fn has_place(&self, below: &[String], place: &str) -> bool {
        let place = format!("{}/{place}", self.directory);
        below.contains(&place)
    }

    fn day_of_file(&self, object: &Listed) -> Option<Instant> {
        LedgerFile::parse(&object.path).filter(|file| file.extension == self.extension).map(|file| file.day)
    }

    pub(super) fn newest(&self) -> Option<Instant> {
        let of_files = self.files.keys().next_back().copied();
        let of_parts = self.parts.last().map(|part| part.day);
        of_files.max(of_parts)
    }

    pub(super) fn length(&self, day: Instant) -> u64 {
        let behind: u64 = self.parts.iter().filter(|part| part.day == day).map(|part| part.bytes).sum();
        self.files.get(&day).map_or(0, |file| file.bytes) + behind
    }

    /// The object of an append.
    pub(super) fn object_path(&self, day: Instant, number: u64) -> String {
        match self.extension {
            Extension::Lines => names::line(&self.directory, number),
            Extension::Heads => names::head(&self.directory, day, number),
        }
    }

    /// Number of appends in the copy of the newest day.
    pub(super) fn copied(&self) -> usize {
        self.parts.first().filter(|part| part.is_copy()).map_or(0, |copy| copy.appends)
    }

    /// The object of a past day, if no part follows it.
    pub(super) fn whole_day(&self, day: Instant) -> Option<&Listed> {
        self.files.get(&day).filter(|_| self.is_known && !self.parts.iter().any(|part| part.day == day))
    }

    pub(super) fn file_path(&self, day: Instant) -> String {
        names::file(&self.directory, self.extension, day)
    }

    /// Every day as a file entry.
    pub(super) fn days(&self) -> Vec<Listed> {
        let mut days: BTreeMap<Instant, Instant> = self.files.iter().map(|(day, file)| (*day, file.modified)).collect();
        for part in &self.parts {
            let newest = days.entry(part.day).or_insert(part.modified);
            *newest = part.modified.max(*newest);
        }
        let listed = |(day, modified)| Listed::new(self.file_path(day), self.length(day), modified);
        days.into_iter().map(listed).collect()
    }

    /// Reads the appends since the last refresh. `seen` is a fresh list of the directory.
    pub(super) fn refresh(&mut self, bucket: &Bucket, seen: Option<(&[Listed], &[String])>) -> Result<(), StoreError> {
        if self.parts.len() > PARTS_MAX {
            self.forget();
        }
        if !self.is_known {
            match seen {
                Some((objects, below)) => self.open(bucket, objects, below)?,
                None => {
                    let (objects, below) = bucket.list_directory(&self.directory)?;
                    self.open(bucket, &objects, &below)?;
                }
            }
        }
        let found = match self.extension {
            Extension::Lines => self.new_lines(bucket),
            Extension::Heads => self.new_heads(bucket),
        };
        self.parts.extend(found.inspect_err(|_| self.is_known = false)?);
        self.end = self.parts.last().map(|part| (part.day, part.number)).or(self.end);
        self.keep_within_bounds(bucket);
        Ok(())
    }

    /// Finds the whole days and the newest copy, which give the number after which the parts are listed.
    fn open(&mut self, bucket: &Bucket, objects: &[Listed], below: &[String]) -> Result<(), StoreError> {
        let days = objects.iter().filter_map(|object| Some((self.day_of_file(object)?, object.clone())));
        self.files = days.collect();
        self.end = None;
        self.parts.clear();
        if let Some((day, file)) = self.files.last_key_value() {
            let number = last_number(bucket, self.extension, file)?;
            self.end = Some((*day, number));
        }
        if self.extension == Extension::Lines && self.has_place(below, "copy") {
            self.parts.extend(self.newest_copy(bucket)?);
            self.end = self.parts.last().map(|copy| (copy.day, copy.number)).or(self.end);
        }
        self.is_known = true;
        Ok(())
    }

    fn new_lines(&self, bucket: &Bucket) -> Result<Vec<Part>, StoreError> {
        let last = self.end.map_or(0, |(_, number)| number);
        let after = (last > 0).then(|| names::line(&self.directory, last));
        let objects = bucket.list(&format!("{}/line", self.directory), after.as_deref())?;
        let number = |object: &Listed| names::line_number(&self.directory, "line", &object.path);
        let objects: Vec<(u64, Listed)> =
            objects.into_iter().filter_map(|object| Some((number(&object)?, object))).collect();
        for (expected, (number, object)) in (last + 1..).zip(&objects) {
            if *number != expected {
                return Err(missing(&names::line(&self.directory, expected), &object.path));
            }
        }
        let all: Vec<&Listed> = objects.iter().map(|(_, object)| object).collect();
        let Some(contents) = bucket.get_all_listed(&all)? else { return Err(missing(&all[0].path, "the list")) };
        let (mut newest, mut parts) = (self.newest(), Vec::new());
        for ((number, Listed { path, modified, .. }), content) in objects.into_iter().zip(contents) {
            let day =
                day_of(&content, newest).ok_or_else(|| StoreError::irregular(&path, "its content names no day"))?;
            let bytes = content.len() as u64;
            parts.push(Part { number, day, appends: 1, bytes, modified, content: Some(content) });
            newest = Some(day);
        }
        Ok(parts)
    }

    fn new_heads(&self, bucket: &Bucket) -> Result<Vec<Part>, StoreError> {
        let after = self.end.map(|(day, number)| names::head(&self.directory, day, number));
        let objects = bucket.list(&format!("{}/head", self.directory), after.as_deref())?;
        let mut last = self.end;
        let mut parts = Vec::new();
        for object in objects {
            let Some((day, number)) = names::head_number(&self.directory, &object.path) else { continue };
            let expected = last.filter(|(of, _)| *of == day).map_or(1, |(_, number)| number + 1);
            if number != expected {
                return Err(missing(&names::head(&self.directory, day, expected), &object.path));
            }
            last = Some((day, number));
            let Listed { bytes, modified, .. } = object;
            parts.push(Part { number, day, appends: 1, bytes, modified, content: None });
        }
        Ok(parts)
    }

    /// The current content of a day's file. With `listed`, appends after a list that showed this length may be missing.
    pub(super) fn read(
        &mut self,
        bucket: &Bucket,
        day: Instant,
        listed: Option<u64>,
    ) -> Result<Option<Blob>, StoreError> {
        for _ in 0..READS_MAX {
            // A day before the newest one gets no more appends.
            let is_past = self.newest().is_some_and(|newest| day < newest);
            if !self.is_known || !is_past && listed.is_none_or(|listed| self.length(day) < listed) {
                self.refresh(bucket, None)?;
            }
            if !self.days().iter().any(|listed| listed.path == self.file_path(day)) {
                return Ok(None);
            }
            if let Some(blob) = self.assemble(bucket, day)? {
                self.keep_within_bounds(bucket);
                return Ok(Some(blob));
            }
            self.forget();
        }
        Err(StoreError::irregular(
            &self.file_path(day),
            "another process replaces it faster than this process reads it",
        ))
    }

    /// `None` if an object of the cached state no longer exists.
    fn assemble(&mut self, bucket: &Bucket, day: Instant) -> Result<Option<Blob>, StoreError> {
        if !self.parts.iter().any(|part| part.day == day) {
            return match self.files.get(&day).filter(|file| bucket.keeps(file)) {
                Some(file) => Ok(bucket.get_listed(file)?.map(Blob::Bytes)),
                None => bucket.read(&self.file_path(day)),
            };
        }
        let fetch = |path: &str, bytes: u64| -> Result<Option<Bytes>, StoreError> {
            Ok(bucket.get(path)?.filter(|content| content.len() as u64 == bytes))
        };
        let mut whole = Vec::new();
        if let Some(file) = self.files.get(&day) {
            let Some(content) = fetch(&file.path, file.bytes)? else { return Ok(None) };
            whole.extend_from_slice(&content);
        }
        let is_wanted = |part: &Part| part.day == day && part.content.is_none();
        if let Some(copy) = self.parts.first_mut().filter(|part| part.is_copy() && is_wanted(part)) {
            copy.content = fetch(&names::copy(&self.directory, copy.number), copy.bytes)?;
            if copy.content.is_none() {
                return Ok(None);
            }
        }
        let wanted: Vec<usize> = (0..self.parts.len()).filter(|at| is_wanted(&self.parts[*at])).collect();
        let paths: Vec<String> = wanted.iter().map(|at| self.object_path(day, self.parts[*at].number)).collect();
        let Some(contents) = bucket.get_all(&paths)? else { return Err(missing(&paths[0], "the list")) };
        for (at, (_, content)) in wanted.into_iter().zip(contents) {
            self.parts[at].content = Some(content);
        }
        let contents = self.parts.iter().filter(|part| part.day == day).filter_map(|part| part.content.as_ref());
        contents.for_each(|content| whole.extend_from_slice(content));
        Ok(Some(Blob::Bytes(whole.into())))
    }

    /// Like [`super::super::Store::append`], for a day's file.
    pub(super) fn append(&mut self, bucket: &Bucket, day: Instant, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let mut is_fresh = !self.is_known;
        if is_fresh {
            self.refresh(bucket, None)?;
        }
        loop {
            match self.check(bucket, day, tail, bytes) {
                Ok(true) => return Ok(()),
                Ok(false) => break,
                Err(refused) if is_fresh => return Err(refused),
                Err(_) => self.refresh(bucket, None)?,
            }
            is_fresh = true;
        }
        if self.extension == Extension::Lines && day_of(bytes, self.newest()) != Some(day) {
            return Err(StoreError::irregular(&self.file_path(day), "refuses a line of another day"));
        }
        let is_counted = |of: Instant| self.extension == Extension::Lines || of == day;
        let number = 1 + self.end.filter(|(of, _)| is_counted(*of)).map_or(0, |(_, number)| number);
        let (content, bytes) = (Bytes::copy_from_slice(bytes), bytes.len() as u64);
        let mut part = Part { number, day, appends: 1, bytes, modified: Instant::EARLIEST, content: None };
        let created = bucket.create(&self.object_path(day, number), &content).inspect_err(|_| self.is_known = false)?;
        if created == Created::Taken {
            self.refresh(bucket, None)?;
            self.check_order(day)?;
            return Err(self.conflict(day, tail));
        }
        (part.modified, part.content) = (bucket.newest_time(), Some(content));
        self.parts.push(part);
        self.end = Some((day, number));
        if let Err(error) = self.copy_days(bucket, day) {
            tracing::info!(directory = %self.directory, %error, "cannot write a copy of the ledger; the next append tries again");
        }
        self.keep_within_bounds(bucket);
        Ok(())
    }

    /// Whether the append is done already; an error if the day has another end than expected.
    fn check(&self, bucket: &Bucket, day: Instant, tail: Tail, bytes: &[u8]) -> Result<bool, StoreError> {
        self.check_order(day)?;
        let length = self.length(day);
        if tail.torn == 0 && length == tail.keep {
            return Ok(bytes.is_empty());
        }
        let last = self.parts.last().filter(|part| part.day == day && part.bytes == bytes.len() as u64);
        let is_done = match last.filter(|part| length == tail.keep + part.bytes) {
            Some(Part { content: Some(content), .. }) => content == bytes,
            Some(part) => bucket.get(&self.object_path(day, part.number))?.is_some_and(|content| content == bytes),
            None => false,
        };
        if is_done { Ok(true) } else { Err(self.conflict(day, tail)) }
    }

    fn check_order(&self, day: Instant) -> Result<(), StoreError> {
        match self.newest().filter(|newest| *newest > day) {
            Some(newest) => Err(StoreError::Later { path: self.file_path(day), later: self.file_path(newest) }),
            None => Ok(()),
        }
    }

    fn conflict(&self, day: Instant, tail: Tail) -> StoreError {
        StoreError::conflict(&self.file_path(day), tail, self.length(day))
    }

    pub(super) fn content(&mut self, bucket: &Bucket, day: Instant) -> Result<Option<Bytes>, StoreError> {
        let path = self.file_path(day);
        let content = self.assemble(bucket, day)?.map(|blob| blob.to_bytes());
        content.transpose().map_err(|e| StoreError::io(super::super::Verb::Read, &path, e))
    }

    fn keep_within_bounds(&mut self, bucket: &Bucket) {
        let parts = self.parts.iter().filter_map(|part| part.content.as_ref());
        let kept: u64 = parts.map(|content| content.len() as u64).sum();
        bucket.kept.fetch_sub(self.kept, Ordering::SeqCst);
        self.kept = kept;
        if bucket.kept.fetch_add(kept, Ordering::SeqCst) + kept > KEPT_BYTES_MAX {
            bucket.kept.fetch_sub(kept, Ordering::SeqCst);
            self.kept = 0;
            self.parts.iter_mut().for_each(|part| part.content = None);
        }
    }
}

/// The day of a line: its own day, or the day of the line before if that is later.
fn day_of(line: &[u8], before: Option<Instant>) -> Option<Instant> {
    before.max(names::day_in_line(line))
}
