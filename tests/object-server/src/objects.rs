//! The stored objects and the unfinished uploads.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;
use md5::{Digest as _, Md5};

/// The smallest size of every part of an upload except the last.
const PART_BYTES_MIN: usize = 5 << 20;
const PAGE_KEYS_MAX: usize = 1000;

#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) bytes: Bytes,
    pub(crate) modified: SystemTime,
    pub(crate) etag: String,
    /// The number of writes to the server.
    pub(crate) generation: u64,
}

/// A write that a rule holds back.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) key: String,
    pub(crate) bytes: Bytes,
    pub(crate) create: bool,
}

#[derive(Debug)]
pub(crate) struct Taken;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UploadFault {
    Unknown,
    InvalidPart,
    TooSmall,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Objects {
    stored: BTreeMap<String, Object>,
    uploads: BTreeMap<String, Upload>,
    /// Every write and deletion so far, if the bucket keeps versions.
    pub(crate) history: Option<Vec<Kept>>,
    written: u64,
    begun: u64,
    /// Versions so far.
    versioned: u64,
}

/// An unfinished upload.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    pub(crate) key: String,
    pub(crate) begun: SystemTime,
    parts: BTreeMap<usize, Bytes>,
}

/// A version of an object, or the marker of a deletion.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) key: String,
    pub(crate) id: u64,
    pub(crate) is_marker: bool,
    pub(crate) modified: SystemTime,
}

/// The request of a list.
pub(crate) struct ListRequest<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) delimiter: Option<&'a str>,
    pub(crate) after: &'a str,
    pub(crate) max: usize,
    /// How many of the newest writes the list omits.
    pub(crate) behind: u64,
}

#[derive(Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<(String, Object)>,
    pub(crate) prefixes: Vec<String>,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
}

pub(crate) fn etag_of(bytes: &[u8]) -> String {
    let digest = Md5::digest(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

impl Objects {
    pub(crate) fn get(&self, key: &str) -> Option<&Object> {
        self.stored.get(key)
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.stored.keys().cloned().collect()
    }

    pub(crate) fn open_uploads(&self) -> usize {
        self.uploads.len()
    }

    pub(crate) fn put(&mut self, key: &str, bytes: Bytes, create: bool, now: SystemTime) -> Result<Object, Taken> {
        if create && self.stored.contains_key(key) {
            return Err(Taken);
        }
        self.written += 1;
        let object = Object { etag: etag_of(&bytes), bytes, modified: now, generation: self.written };
        self.stored.insert(key.to_owned(), object.clone());
        self.keep(key, false, now);
        Ok(object)
    }

    pub(crate) fn delete(&mut self, key: &str, now: SystemTime) {
        self.stored.remove(key);
        self.keep(key, true, now);
    }

    fn keep(&mut self, key: &str, is_marker: bool, modified: SystemTime) {
        self.versioned += 1;
        if let Some(history) = &mut self.history {
            history.push(Kept { key: key.to_owned(), id: self.versioned, is_marker, modified });
        }
    }

    /// Deletes one version, or one marker. With its last version an object is gone.
    pub(crate) fn delete_version(&mut self, key: &str, id: u64) {
        let Some(history) = &mut self.history else { return };
        history.retain(|kept| kept.key != key || kept.id != id);
        if !history.iter().any(|kept| kept.key == key) {
            self.stored.remove(key);
        }
    }

    /// The versions of objects whose keys begin with `prefix`, sorted by key, after the first `skipped`. A bucket
    /// without versions shows each object as one version.
    pub(crate) fn versions(&self, prefix: &str, skipped: usize, max: usize) -> (Vec<Kept>, bool) {
        let current = |(key, object): (&String, &Object)| Kept {
            key: key.clone(),
            id: 0,
            is_marker: false,
            modified: object.modified,
        };
        let mut all = self.history.clone().unwrap_or_else(|| self.stored.iter().map(current).collect());
        all.retain(|kept| kept.key.starts_with(prefix));
        all.sort_by(|a, b| a.key.cmp(&b.key));
        let max = max.min(PAGE_KEYS_MAX);
        let is_truncated = all.len() > skipped + max;
        (all.into_iter().skip(skipped).take(max).collect(), is_truncated)
    }

    /// The unfinished uploads of keys that begin with `prefix`, with their ids.
    pub(crate) fn uploads(&self, prefix: &str) -> impl Iterator<Item = (&String, &Upload)> {
        self.uploads.iter().filter(move |(_, upload)| upload.key.starts_with(prefix))
    }

    pub(crate) fn begin(&mut self, key: &str, now: SystemTime) -> String {
        self.begun += 1;
        let id = format!("upload-{}", self.begun);
        let upload = Upload { key: key.to_owned(), begun: now, parts: BTreeMap::new() };
        self.uploads.insert(id.clone(), upload);
        id
    }

    pub(crate) fn part(&mut self, id: &str, number: usize, bytes: Bytes) -> Result<String, UploadFault> {
        let etag = etag_of(&bytes);
        self.uploads.get_mut(id).ok_or(UploadFault::Unknown)?.parts.insert(number, bytes);
        Ok(etag)
    }

    pub(crate) fn complete(
        &mut self,
        id: &str,
        key: &str,
        named: &[(usize, String)],
        now: SystemTime,
    ) -> Result<Object, UploadFault> {
        let parts = &self.uploads.get(id).ok_or(UploadFault::Unknown)?.parts;
        let mut whole = Vec::new();
        for (at, (number, etag)) in named.iter().enumerate() {
            let part = parts.get(number).ok_or(UploadFault::InvalidPart)?;
            if etag_of(part).trim_matches('"') != etag.trim_matches('"') {
                return Err(UploadFault::InvalidPart);
            }
            if at + 1 < named.len() && part.len() < PART_BYTES_MIN {
                return Err(UploadFault::TooSmall);
            }
            whole.extend_from_slice(part);
        }
        self.uploads.remove(id);
        Ok(self.put(key, whole.into(), false, now).expect("an overwrite is never refused"))
    }

    pub(crate) fn abort(&mut self, id: &str) -> Result<(), UploadFault> {
        self.uploads.remove(id).map(drop).ok_or(UploadFault::Unknown)
    }

    pub(crate) fn list(&self, request: &ListRequest<'_>) -> Page {
        let known = self.written.saturating_sub(request.behind);
        let mut page = Page::default();
        let max = request.max.min(PAGE_KEYS_MAX);
        let mut last = String::new();
        for (key, object) in self.stored.range(request.prefix.to_owned()..) {
            let Some(rest) = key.strip_prefix(request.prefix) else { break };
            let folded = request.delimiter.and_then(|by| rest.find(by).map(|at| at + by.len()));
            let folded = folded.map(|end| key[..request.prefix.len() + end].to_owned());
            let name = folded.as_ref().unwrap_or(key);
            let is_past = name.as_str() <= request.after
                || object.generation > known
                || page.prefixes.last() == folded.as_ref() && folded.is_some();
            if is_past {
                continue;
            }
            if page.objects.len() + page.prefixes.len() == max {
                page.next = Some(last);
                break;
            }
            last.clone_from(name);
            match folded {
                Some(folded) => page.prefixes.push(folded),
                None => page.objects.push((key.clone(), object.clone())),
            }
        }
        page
    }
}
