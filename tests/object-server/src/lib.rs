//! An object server for tests. It serves the parts of S3, and of the XML interface of Google Cloud Storage, that a
//! client needs to write, read, list and delete objects. It checks signatures and digests, keeps everything in
//! memory, has an adjustable clock, counts requests, and fails by rules that a test sets.
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
mod request_head;
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

/// The only bucket.
pub const BUCKET: &str = "bucket";
/// The region that S3's signatures must name.
pub const REGION: &str = "eu-central-1";
pub const ACCESS_KEY: &str = "AKIAOBJECTSERVER";
pub const SECRET_KEY: &str = "object-server-secret-key";
/// The token of a client of Google Cloud Storage.
pub const BEARER_TOKEN: &str = "object-server-bearer-token";

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Put,
    Get,
    Head,
    List,
    /// A deletion of one object or of several.
    Delete,
    /// The start of a multipart upload.
    Start,
    Part,
    Complete,
    Abort,
}

/// A server that runs until it is dropped.
pub struct ObjectServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// A server's whole content at one moment, with open uploads.
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
    /// Objects whose keys begin so are under an object lock.
    locked: Option<String>,
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
    /// When no port is free.
    pub fn start() -> Self {
        Self::start_on(0)
    }

    /// Like [`ObjectServer::start`], on a given port.
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

    /// Adds a rule. It applies from the next request on.
    pub fn fail(&self, rule: Rule) {
        self.shared.inner().faults.add(rule);
    }

    /// Removes all rules.
    pub fn heal(&self) {
        self.shared.inner().faults.clear();
    }

    /// How many effects have taken place since the last [`ObjectServer::heal`]. An answer that is held back counts when the request is
    /// carried out, or will never be.
    pub fn struck(&self) -> u64 {
        self.shared.inner().faults.struck()
    }

    /// Sets the server's clock this many seconds ahead of this machine's clock; a negative number sets it back.
    pub fn set_clock_ahead(&self, seconds: i64) {
        self.shared.inner().ahead = seconds;
    }

    /// The number of requests of a kind since the last [`ObjectServer::forget_requests`], failed ones included.
    pub fn count(&self, kind: Kind) -> u64 {
        self.shared.inner().counts.get(&kind).copied().unwrap_or(0)
    }

    /// The number of requests of each kind.
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

    /// Applies the writes that [`Effect::Late`] held back, in order. Returns for each whether it took effect.
    pub fn land(&self) -> Vec<bool> {
        let mut inner = self.shared.inner();
        let now = inner.now();
        let late = std::mem::take(&mut inner.late);
        late.into_iter().map(|write| inner.objects.put(&write.key, write.bytes, write.create, now).is_ok()).collect()
    }

    /// Turns versioning on: the server then keeps older versions and deletions, and lists them on request.
    pub fn keep_versions(&self) {
        self.shared.inner().objects.history = Some(Vec::new());
    }

    /// Locks the objects whose keys begin so, as a bucket with a default retention does: nobody removes a version, and an upload
    /// needs a checksum.
    pub fn lock_objects(&self, prefix: &str) {
        self.keep_versions();
        self.shared.inner().locked = Some(prefix.to_owned());
    }

    /// How many versions and markers of deletions there are of objects whose keys begin so.
    pub fn versions(&self, prefix: &str) -> usize {
        self.shared.inner().objects.versions(prefix, 0, usize::MAX).0.len()
    }

    /// The current content.
    pub fn stored(&self) -> Stored {
        Stored(self.shared.inner().objects.clone())
    }

    /// Restores an earlier content. Drops the writes that [`Effect::Late`] held back.
    pub fn restore(&self, stored: &Stored) {
        let mut inner = self.shared.inner();
        inner.objects = stored.0.clone();
        inner.late.clear();
    }

    /// Reads an object without any rule.
    pub fn object(&self, key: &str) -> Option<Bytes> {
        self.shared.inner().objects.get(key).map(|object| object.bytes.clone())
    }

    /// Every key, in order.
    pub fn keys(&self) -> Vec<String> {
        self.shared.inner().objects.keys()
    }

    /// Writes or deletes an object without any request.
    pub fn tamper(&self, key: &str, content: Option<Bytes>) {
        let mut inner = self.shared.inner();
        let now = inner.now();
        match content {
            Some(content) => drop(inner.objects.put(key, content, false, now)),
            None => inner.objects.delete(key, now),
        }
    }

    /// Begins an upload that nobody ends.
    pub fn leave_upload(&self, key: &str) {
        let mut inner = self.shared.inner();
        let now = inner.now();
        inner.objects.begin(key, now);
    }

    /// The number of unfinished multipart uploads.
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
            // A connection that a rule cuts ends with an error here; this is expected.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
