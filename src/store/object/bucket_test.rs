//! The test that a bucket is fit for an archive, run on the bucket itself.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;

use crate::model::{BucketLocation, Instant};

use super::super::StoreError;
use super::ObjectStore;
use super::bucket::Bucket;

/// Number of concurrent creates of one key.
const CREATES: usize = 24;
/// A larger clock difference is reported.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(3600);

/// The result of a passed test.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct BucketTest {
    /// The difference between the store's clock and this machine's clock.
    pub clocks_apart: Duration,
}

impl BucketTest {
    /// Whether the clock difference must be reported.
    pub fn are_clocks_apart(&self) -> bool {
        self.clocks_apart > CLOCKS_APART_MAX
    }
}

impl fmt::Display for BucketTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let apart = self.clocks_apart.as_secs();
        write!(f, "of {CREATES} concurrent creates of one key, exactly one won; the clocks are {apart} s apart")
    }
}

/// The first name directly at a place that `is_known` refuses.
///
/// # Errors
/// [`StoreError::Io`] when the bucket does not show its objects.
pub fn foreign_name(location: &BucketLocation, is_known: impl Fn(&str) -> bool) -> Result<Option<String>, StoreError> {
    let (objects, places) = ObjectStore::open(location, false)?.bucket().list_directory("")?;
    let names = places.into_iter().chain(objects.into_iter().map(|object| object.path));
    Ok(names.into_iter().find(|name| !is_known(name)))
}

/// Like [`test_store`], for the bucket at a location; `is_ledger`: it holds a ledger apart from its data.
pub fn test_bucket(
    location: &BucketLocation,
    is_ledger: bool,
    number: u64,
    now: Instant,
) -> Result<BucketTest, StoreError> {
    test_store(&ObjectStore::open(location, is_ledger)?, number, now)
}

/// Tests that exactly one of 24 concurrent creates of one key wins. A list must show a new object at once, and a read must
/// show the winner. Compares the clocks. `number` makes a fresh key; `now` is this machine's time.
///
/// # Errors
/// [`StoreError::Unfit`] with the observation, if none or several creates win or a list is stale; [`StoreError::Io`] when a
/// request fails.
pub fn test_store(store: &ObjectStore, number: u64, now: Instant) -> Result<BucketTest, StoreError> {
    let bucket = store.bucket();
    let key = format!("scratch/test-{number:016x}");
    let unfit = |what: String| Err(StoreError::Unfit { location: bucket.location.to_string(), what });
    let content = |writer: usize| Bytes::from(format!("writer {writer} of {number:016x}\n"));
    let tries = (0..CREATES).map(|writer| Bucket::try_create(bucket.client.clone(), bucket.key(&key), content(writer)));
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
        _ => return unfit(format!("of {CREATES} concurrent creates of {key}, {winners} won, but only one may win")),
    }
    if !listed {
        return unfit(format!("its list does not show {key}, which Annals has just written"));
    }
    Ok(BucketTest { clocks_apart: their_time.since(now).max(now.since(their_time)) })
}
