//! Checks the laws of the store at every operation. S1: a line's files are durable before the line, and stay. S2: of two writers,
//! one appends each line. S3: `vacuum` removes no file that a line within the grace or an unfinished commit names. S4: a reader
//! can finish.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use annals::archive::LedgerLine;
use annals::model::{Digest, Instant};
use annals::store::{MemoryStore, Store};
use bytes::Bytes;

use super::faults::{Coverage, Rare};

/// The files that the lines name, and how far the check has read each ledger file.
#[derive(Default)]
pub struct StoreLaws {
    /// How long `vacuum` keeps files.
    grace: Duration,
    /// An order of erasure is carried out, which removes files at once.
    pub is_erasing: bool,
    /// Every file that a line names, with its digest and, if a line removes it, that line's time.
    named: BTreeMap<String, (Digest, Option<Instant>)>,
    /// The sealed files of events, with their content when a line named them.
    sealed: BTreeMap<String, Bytes>,
    followed: BTreeMap<String, usize>,
    /// The numbers of the lines that were read, with the directories of their ledgers.
    numbers: BTreeSet<(String, u64)>,
}

impl StoreLaws {
    pub fn new(grace: Duration) -> Self {
        Self { grace, ..Self::default() }
    }

    /// Reads the new lines of a ledger file after an acknowledged append.
    pub fn follow(&mut self, files: &MemoryStore, path: &str, broken: &mut Vec<String>) {
        let content = content(files, path).unwrap_or_default();
        let at = modified(files, path).expect("it was written just now");
        let begin = *self.followed.get(path).unwrap_or(&0);
        let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if !path.ends_with(".jsonl") || end <= begin {
            return;
        }
        for text in content[begin..end].split_inclusive(|byte| *byte == b'\n') {
            let Ok((line, _)) = LedgerLine::decode(text.strip_suffix(b"\n").unwrap_or(text)) else { continue };
            let ledger = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
            if !self.numbers.insert((ledger, line.seq.0)) {
                broken.push(format!("S2: {path} has a second line {}", line.seq));
            }
            for file in &line.body.adds {
                let found = self::content(files, &file.path);
                if found.as_ref().map(|found| Digest::of(found)) != Some(file.sha256) {
                    broken.push(format!("S1: line {} names {}, which is not there as it says", line.seq, file.path));
                }
                if is_sealed(&file.path) {
                    self.sealed.insert(file.path.clone(), found.unwrap_or_default());
                }
                self.named.insert(file.path.clone(), (file.sha256, None));
            }
            for removed in &line.body.removes {
                if let Some((_, gone)) = self.named.get_mut(removed) {
                    *gone = Some(at);
                }
                if !line.body.expired.is_empty() || line.body.erased.is_some() {
                    self.sealed.remove(removed);
                }
            }
            if line.body.erased.is_some() {
                self.named.retain(|_, (_, gone)| gone.is_none());
            }
        }
        self.followed.insert(path.to_owned(), end);
    }

    /// Checks a file before its removal.
    pub fn remove(&self, files: &MemoryStore, path: &str, coverage: &mut Coverage, seed: u64) -> Option<String> {
        let (now, written) = (files.now().expect("memory has a clock"), modified(files, path)?);
        let is_young = |at: Instant| now.since(at) < self.grace;
        if !path.starts_with("tables/") {
            return None;
        }
        match self.named.get(path) {
            Some((_, None)) => Some(format!("S3: {path} is live, and is removed")),
            _ if self.is_erasing => None,
            Some((_, Some(at))) if is_young(*at) => Some(format!("S4: {path} is removed within the grace")),
            Some(_) => {
                coverage.rare(Rare::Retired, seed);
                None
            }
            None if is_young(written) => Some(format!("S3: {path} may be of a commit under way, and is removed")),
            None => {
                coverage.rare(Rare::Orphan, seed);
                None
            }
        }
    }

    /// Checks that every live file, and every removed file within the grace, is there and unchanged.
    pub fn check(&self, files: &MemoryStore) -> Vec<String> {
        let now = files.now().expect("memory has a clock");
        let is_due = |gone: &Option<Instant>| gone.is_none_or(|at| now.since(at) < self.grace);
        let due = self.named.iter().filter(|(_, (_, gone))| is_due(gone));
        let is_lost =
            |path: &str, digest: &Digest| content(files, path).map(|found| Digest::of(&found)) != Some(*digest);
        let lost = due.filter(|(path, (digest, _))| is_lost(path, digest));
        let mut broken: Vec<String> =
            lost.map(|(path, _)| format!("S1: {path} is not there as its line says")).collect();
        for (path, bytes) in &self.sealed {
            if content(files, path).as_ref() != Some(bytes) {
                broken.push(format!("I7: {path} was sealed, and has changed"));
            }
        }
        broken
    }
}

/// The store's clock differs from ours by up to an hour.
pub fn store_time(truth: Instant, seed: u64) -> Instant {
    let hour = Duration::from_secs(3_600);
    match seed % 3 {
        0 => truth,
        1 => truth.plus(hour),
        _ => truth.minus(hour),
    }
}

/// Whether a file is a sealed file of events, which never changes.
fn is_sealed(path: &str) -> bool {
    let is_of_events =
        ["activity", "connections", "billing"].iter().any(|of| path.starts_with(&format!("tables/{of}/")));
    is_of_events && ["-day-", "-month-", "-amendment-"].iter().any(|role| path.contains(role))
}

pub fn content(files: &MemoryStore, path: &str) -> Option<Bytes> {
    files.read(path).ok().and_then(|blob| blob.to_bytes().ok())
}

fn modified(files: &MemoryStore, path: &str) -> Option<Instant> {
    let (directory, _) = path.rsplit_once('/')?;
    files.list(directory).ok()?.into_iter().find(|entry| entry.path == path).map(|entry| entry.modified)
}
