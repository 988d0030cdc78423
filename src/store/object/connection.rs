//! The HTTP client of a bucket, which reads the store's clock from every answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use parking_lot::Mutex;

use crate::model::Instant;

/// The time in the newest answer.
#[derive(Debug, Default)]
pub(super) struct Clock(AtomicI64);

impl Clock {
    /// `None` before the first answer.
    pub(super) fn newest(&self) -> Option<Instant> {
        Some(self.0.load(Ordering::SeqCst)).filter(|seconds| *seconds != 0).map(Instant::from_seconds)
    }

    fn read(&self, answer: &HttpResponse) {
        let date = answer.headers().get("date").and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        let since = date.and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
        if let Some(seconds) = since.and_then(|since| i64::try_from(since.as_secs()).ok()) {
            self.0.store(seconds, Ordering::SeqCst);
        }
    }
}

/// Makes clients whose answers set the clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Connector {
    pub(super) clock: Arc<Clock>,
    newest: Arc<Mutex<Option<HttpClient>>>,
}

impl Connector {
    /// The client that was made last.
    pub(super) fn newest(&self) -> Option<HttpClient> {
        self.newest.lock().clone()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        // Only the first call of a process decides. Another provider, which the program has installed, works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let inner = ReqwestConnector::default().connect(options)?;
        let client = HttpClient::new(Connection { inner, clock: self.clock.clone() });
        *self.newest.lock() = Some(client.clone());
        Ok(client)
    }
}

#[derive(Debug)]
struct Connection {
    inner: HttpClient,
    clock: Arc<Clock>,
}

impl HttpService for Connection {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let answer = self.inner.execute(request).await?;
            self.clock.read(&answer);
            Ok(answer)
        })
    }
}
