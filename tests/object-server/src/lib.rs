//! A server of objects for tests. It speaks the interface of S3, and the XML interface of Google Cloud Storage, as far as a
//! client needs them that writes, reads, lists and deletes objects; it checks signatures and digests, keeps everything in
//! memory, has a clock that a test can turn, counts requests, and fails in the ways that a test asks for.
//!
//! ```no_run
//! use object_server::{Effect, Kind, ObjectServer, Rule};
//!
//! let server = ObjectServer::start();
//! server.fail(Rule::new(Effect::AnswerLost).on(Kind::Put).key("ledger/").nth(1));
//! println!("{} {}", server.endpoint(), object_server::BUCKET);
//! ```
#![allow(clippy::disallowed_methods, reason = "the server is the world: it has a clock and a network of its own")]

mod answer;
mod asked;
mod faults;
mod objects;
mod service;
mod signature;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub use faults::{Effect, Rule};

use faults::Faults;
use objects::{Late, Objects};

/// The one bucket that is there.
pub const BUCKET: &str = "bucket";
/// The region that S3's signatures must name.
pub const REGION: &str = "eu-central-1";
pub const ACCESS_KEY: &str = "AKIAOBJECTSERVER";
pub const SECRET_KEY: &str = "object-server-secret-key";
/// What a client of Google Cloud Storage shows.
pub const BEARER_TOKEN: &str = "object-server-bearer-token";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Put,
    Get,
    Head,
    List,
    /// Of one object, or of many at once.
    Delete,
    /// Begins an upload in parts.
    Start,
    Part,
    Complete,
    Abort,
}

/// Runs until it is dropped.
pub struct ObjectServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// Everything that a server stored at one moment, open uploads included.
#[derive(Clone)]
pub struct Stored(Objects);

pub(crate) struct Shared {
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    objects: Objects,
    faults: Faults,
    late: Vec<Late>,
    counts: BTreeMap<Kind, u64>,
    /// Each request as `PUT ledger/x`, in order.
    log: Vec<String>,
    /// Seconds that the server's clock is ahead of this machine's.
    ahead: i64,
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn now(&self) -> SystemTime {
        let by = Duration::from_secs(self.ahead.unsigned_abs());
        if self.ahead < 0 { SystemTime::now() - by } else { SystemTime::now() + by }
    }
}

impl ObjectServer {
    /// Starts an empty server without faults on a free port of this machine.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn start() -> Self {
        Self::start_on(0)
    }

    /// As [`ObjectServer::start`], on a given port.
    ///
    /// # Panics
    /// When the port is taken.
    pub fn start_on(port: u16) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("object-server")
            .enable_all()
            .build()
            .expect("a runtime starts");
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
        listener.set_nonblocking(true).expect("a listener can be made non-blocking");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared { inner: Mutex::default() });
        runtime.spawn(accept(listener, shared.clone()));
        Self { address, shared, runtime: Some(runtime) }
    }

    /// The address, as `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a rule; what it says holds from the next request on.
    pub fn fail(&self, rule: Rule) {
        self.shared.inner().faults.add(rule);
    }

    /// Takes all rules away.
    pub fn heal(&self) {
        self.shared.inner().faults.clear();
    }

    /// How often a rule has struck since the last [`ObjectServer::heal`].
    pub fn struck(&self) -> u64 {
        self.shared.inner().faults.struck()
    }

    /// Sets the server's clock so many seconds ahead of this machine's; behind it when negative.
    pub fn set_clock_ahead(&self, seconds: i64) {
        self.shared.inner().ahead = seconds;
    }

    /// Requests of a kind since the last [`ObjectServer::forget_requests`], those that failed included.
    pub fn count(&self, kind: Kind) -> u64 {
        self.shared.inner().counts.get(&kind).copied().unwrap_or(0)
    }

    /// Requests of every kind.
    pub fn counts(&self) -> BTreeMap<Kind, u64> {
        self.shared.inner().counts.clone()
    }

    /// Each request as its kind and key, in order.
    pub fn requests(&self) -> Vec<String> {
        self.shared.inner().log.clone()
    }

    pub fn forget_requests(&self) {
        let mut inner = self.shared.inner();
        inner.counts.clear();
        inner.log.clear();
    }

    /// Carries out the writes that [`Effect::Late`] held back, in order. Says of each whether it was applied.
    pub fn land(&self) -> Vec<bool> {
        let mut inner = self.shared.inner();
        let now = inner.now();
        let late = std::mem::take(&mut inner.late);
        late.into_iter().map(|write| inner.objects.put(&write.key, write.bytes, write.create, now).is_ok()).collect()
    }

    /// From now on older versions and deletions are kept, and shown to who asks for versions.
    pub fn keep_versions(&self) {
        self.shared.inner().objects.history = Some(Vec::new());
    }

    /// What is stored now.
    pub fn stored(&self) -> Stored {
        Stored(self.shared.inner().objects.clone())
    }

    /// Stores what was stored then, and nothing else. Writes that [`Effect::Late`] held back are given up.
    pub fn restore(&self, stored: &Stored) {
        let mut inner = self.shared.inner();
        inner.objects = stored.0.clone();
        inner.late.clear();
    }

    /// An object, past every rule.
    pub fn object(&self, key: &str) -> Option<Bytes> {
        self.shared.inner().objects.get(key).map(|object| object.bytes.clone())
    }

    /// Every key, in order.
    pub fn keys(&self) -> Vec<String> {
        self.shared.inner().objects.keys()
    }

    /// Puts an object there, or takes it away, behind every client's back.
    pub fn tamper(&self, key: &str, content: Option<Bytes>) {
        let mut inner = self.shared.inner();
        let now = inner.now();
        match content {
            Some(content) => drop(inner.objects.put(key, content, false, now)),
            None => inner.objects.delete(key, now),
        }
    }

    /// Uploads in parts that were begun and neither completed nor aborted.
    pub fn open_uploads(&self) -> usize {
        self.shared.inner().objects.open_uploads()
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a runtime takes the listener");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| service::answer(shared.clone(), request));
            // A connection that a rule cuts ends with an error here, as it is meant to.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
