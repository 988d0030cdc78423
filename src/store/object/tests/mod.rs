//! The store in a bucket, against our own server with every fault, and against third-party servers.

mod costs;
mod days;
mod faults;
mod kept_objects;
mod parts;
mod real;
mod refusals;
mod uploads;
mod versions;

use std::time::Duration;

use bytes::Bytes;
use object_server::{ACCESS_KEY, BEARER_TOKEN, BUCKET, ObjectServer, REGION, SECRET_KEY};
use object_store::{BackoffConfig, RetryConfig};

pub(crate) use real::ministack;

use super::super::tests::conformance::conforms;
use super::super::{Store, StoreError, Tail};
use super::profile::Settings;
use super::{Bucket, ObjectStore};
use crate::model::Location;

const TEAM: &str = "ledger/team=a";

/// Retries at once, and few times.
fn impatient() -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(4));
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 2.0 };
    RetryConfig { backoff, max_retries: 5, retry_timeout: Duration::from_secs(60) }
}

fn settings(server: &ObjectServer) -> Settings {
    let endpoint = server.endpoint();
    [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("GOOGLE_BASE_URL", &endpoint),
        ("GOOGLE_BEARER_TOKEN", BEARER_TOKEN),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn open(location: &str, settings: &Settings) -> Result<ObjectStore, StoreError> {
    let Ok(Location::Bucket(location)) = location.parse() else { panic!("{location}") };
    Ok(ObjectStore::over(Bucket::open(&location, settings, impatient())?))
}

/// A new client for the archive in the server's bucket.
pub(crate) fn s3(server: &ObjectServer) -> ObjectStore {
    open(&format!("s3://{BUCKET}/an/archive"), &settings(server)).unwrap()
}

fn gcs(server: &ObjectServer) -> ObjectStore {
    open(&format!("gs://{BUCKET}/an/archive"), &settings(server)).unwrap()
}

/// Opens a client for the archive in a server's bucket.
type Open = fn(&ObjectServer) -> ObjectStore;

/// A new server for each kind of client.
fn both() -> [(ObjectServer, Open); 2] {
    [(ObjectServer::start(), s3), (ObjectServer::start(), gcs)]
}

fn day(day: u32) -> String {
    format!("{TEAM}/2026-11-{day}.jsonl")
}

fn line(number: u64, day: u32, writer: &str) -> Bytes {
    let at = format!("2026-11-{day}T12:00:00Z");
    format!("{{\"v\":1,\"seq\":{number},\"at\":\"{at}\",\"writer\":\"{writer}\"}}\n").into()
}

/// The end of the ledger that a writer expects.
#[derive(Clone, Copy, Default)]
struct End {
    number: u64,
    day: u32,
    length: u64,
}

impl End {
    /// Appends the next line, of the given day.
    fn append(&mut self, store: &ObjectStore, of: u32, writer: &str) -> Result<(), StoreError> {
        let next = line(self.number + 1, of, writer);
        let keep = if of == self.day { self.length } else { 0 };
        store.append(&day(of), Tail { keep, torn: 0 }, &next)?;
        *self = Self { number: self.number + 1, day: of, length: keep + next.len() as u64 };
        Ok(())
    }
}

/// Appends lines of one day.
fn fill(store: &ObjectStore, end: &mut End, of: u32, lines: u64) {
    for _ in 0..lines {
        end.append(store, of, "first").unwrap();
    }
}

fn read(store: &ObjectStore, path: &str) -> String {
    String::from_utf8(store.read(path).unwrap().to_bytes().unwrap().to_vec()).unwrap()
}

/// The numbers of a day's lines.
fn numbers(store: &ObjectStore, of: u32) -> Vec<u64> {
    read(store, &day(of)).lines().map(|line| super::names::number_in_line(line.as_bytes()).unwrap()).collect()
}

fn key(path: &str) -> String {
    format!("an/archive/{path}")
}

#[test]
fn the_store_in_a_bucket_conforms() {
    for (scheme, server) in [("s3", ObjectServer::start()), ("gs", ObjectServer::start())] {
        let archives = std::cell::Cell::new(0);
        conforms(|| {
            archives.set(archives.get() + 1);
            let hand = || open(&format!("{scheme}://{BUCKET}/archive-{}", archives.get()), &settings(&server)).unwrap();
            [Box::new(hand()), Box::new(hand())]
        });
        // The archive can be the whole bucket.
        let server = ObjectServer::start();
        let store = open(&format!("{scheme}://{BUCKET}"), &settings(&server)).unwrap();
        End::default().append(&store, 20, "first").unwrap();
        assert_eq!(store.list("").unwrap()[0].path, day(20));
    }
}

#[test]
fn the_store_works_inside_another_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let server = ObjectServer::start();
        let store = s3(&server);
        fill(&store, &mut End::default(), 20, 2);
        assert_eq!(numbers(&store, 20), [1, 2]);
    });
}

#[test]
fn a_large_file_is_uploaded_in_parts_and_read_back() {
    for (server, open) in both() {
        let store = open(&server);
        let content: Vec<u8> = (0..40_u32 << 20).map(|n| (n >> 12).to_le_bytes()[0]).collect();
        let mut file = store.create().unwrap();
        file.write_all(&content).unwrap();
        file.finish("tables/large").unwrap();
        assert_eq!((server.count(object_server::Kind::Part), server.count(object_server::Kind::Put)), (3, 0));
        let blob = store.read("tables/large").unwrap();
        assert!(matches!(blob, super::Blob::File { .. }) && blob.to_bytes().unwrap() == content);
    }
}
