//! The proof that a bucket can be trusted with an archive, made on the bucket itself.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;

use crate::model::{BucketLocation, Instant};

use super::super::StoreError;
use super::ObjectStore;
use super::bucket::Bucket;

/// Creates of one key at the same time.
const CREATES: usize = 24;
/// Clocks that are further apart are said to be.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(3600);

/// What was found of a bucket that can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Proof {
    /// Creates of one key at the same time, of which one won.
    pub creates: usize,
    /// How far the store's clock stands from ours, either way.
    pub clocks_apart: Duration,
}

impl Proof {
    /// Whether the clocks are so far apart that it must be said.
    pub fn are_clocks_apart(&self) -> bool {
        self.clocks_apart > CLOCKS_APART_MAX
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { creates, clocks_apart } = self;
        write!(f, "of {creates} creates of one key at the same time one won, clocks {} s apart", clocks_apart.as_secs())
    }
}

/// As [`prove`], of the bucket at a place.
///
/// # Errors
/// As [`ObjectStore::open`] and [`prove`].
pub fn prove_store(location: &BucketLocation, number: u64, now: Instant) -> Result<Proof, StoreError> {
    prove(&ObjectStore::open(location)?, number, now)
}

/// Proves that of 24 creates of one key at the same time exactly one wins, that a list shows what was just written and that a
/// read shows who won, and compares the clocks. `number` makes the key a fresh one; `now` is this machine's time.
///
/// # Errors
/// [`StoreError::Unfit`] with what was seen, for a store that lets none or several win, or whose lists are behind;
/// [`StoreError::Io`] when it cannot be asked.
pub fn prove(store: &ObjectStore, number: u64, now: Instant) -> Result<Proof, StoreError> {
    let bucket = store.bucket();
    let key = format!("scratch/proof-{number:016x}");
    let unfit = |what: String| Err(StoreError::Unfit { location: bucket.location().to_string(), what });
    let content = |writer: usize| Bytes::from(format!("writer {writer} of {number:016x}\n"));
    let tries = (0..CREATES).map(|writer| Bucket::try_create(bucket.client(), bucket.key(&key), content(writer)));
    let answers = bucket.run(join_all(tries.collect::<Vec<_>>()));
    let found = bucket.get(&key)?;
    let won = |writer: usize| answers[writer].is_ok() || found.as_ref() == Some(&content(writer));
    let winners = (0..CREATES).filter(|writer| won(*writer)).count();
    let listed = bucket.list("scratch", None)?.into_iter().any(|object| object.path == key);
    let their_time = store.bucket().now(&key)?;
    let failed = answers.iter().find_map(|answer| answer.as_ref().err());
    bucket.delete_all(&[&key])?;
    match (winners, failed) {
        (1, _) => {}
        (0, Some(error)) if found.is_none() => return Err(bucket.fail(super::Verb::Create, &key, error)),
        _ => return unfit(format!("of {CREATES} creates of {key} at the same time {winners} won, where one may")),
    }
    if !listed {
        return unfit(format!("its list does not show {key}, which was just written"));
    }
    Ok(Proof { creates: CREATES, clocks_apart: their_time.since(now).max(now.since(their_time)) })
}
