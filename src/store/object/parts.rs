//! Compares the objects of a ledger with its days as readers see them. Readers prefer the copies of a day to its objects, so an altered
//! object stays unseen as long as a copy has its line.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Rewritten, StoreError, Verb};
use super::bucket::Bucket;
use super::journal::Journal;
use super::names::{self, Extension};
use super::object_end::missing;

impl Journal {
    /// The objects that are missing, or that differ from their line. Reads every object.
    pub(super) fn altered_parts(&mut self, bucket: &Bucket) -> Result<Vec<Rewritten>, StoreError> {
        self.refresh(bucket, None)?;
        let Some(end) = self.end else { return Ok(Vec::new()) };
        let listed = bucket.list(&format!("{}/{}", self.directory, self.extension.place()), None)?;
        let listed: BTreeMap<String, u64> = listed.into_iter().map(|object| (object.path, object.bytes)).collect();
        let days: BTreeSet<_> = self.files.keys().copied().chain(self.parts.iter().map(|part| part.day)).collect();
        let (mut found, mut last) = (Vec::new(), 0);
        for day in days {
            let file = self.file_path(day);
            let Some(blob) = self.read(bucket, day, None)? else { continue };
            let content = blob.to_bytes().map_err(|e| StoreError::io(Verb::Read, &file, e))?;
            let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
            let first = match self.extension {
                Extension::Lines => lines.first().and_then(|line| names::number_in_line(line)).unwrap_or(last + 1),
                Extension::Heads => 1,
            };
            last = first + lines.len() as u64 - 1;
            // Lines after the list may have no object in it.
            let wanted = (first..).zip(lines).take_while(|(number, _)| (day, *number) <= end);
            let wanted = wanted.map(|(number, line)| (self.object_path(day, number), line));
            let (same, other): (Vec<_>, Vec<_>) =
                wanted.partition(|(path, line)| listed.get(path) == Some(&(line.len() as u64)));
            let what = |path: &String| match listed.contains_key(path) {
                true => format!("differs from its line in {file}"),
                false => format!("is missing, but {file} has its line"),
            };
            let paths: Vec<String> = same.iter().map(|(path, _)| path.clone()).collect();
            let contents = bucket.get_all(&paths)?.ok_or_else(|| missing(&paths[0], "the list"))?;
            let differing = same.into_iter().zip(contents).filter(|((_, line), (_, content))| content != line);
            let altered = other.into_iter().chain(differing.map(|(wanted, _)| wanted));
            found.extend(altered.map(|(path, _)| Rewritten { what: what(&path), path }));
        }
        Ok(found)
    }
}
