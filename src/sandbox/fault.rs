//! Faults of single requests, and the hook that decides them.

use std::sync::Arc;
use std::time::Duration;

/// A request as a fault hook sees it, without the token.
#[derive(Debug, Clone)]
pub struct RequestInfo {
    pub method: String,
    pub path: String,
    /// The query as the client sent it, without `?`.
    pub query: String,
}

/// A fault of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status with an error body, and a `Retry-After` header of this text.
    Status { status: u16, retry_after: Option<String> },
    /// Half of the JSON text, with a `Content-Length` that matches the half.
    Truncate,
    /// Half of the body; then the connection ends before the announced length.
    CutShort,
    /// Status 200 with this content type and body.
    Body { content_type: &'static str, body: &'static str },
    /// Status 200 with a page of HTML.
    Html,
    /// A reset connection without an answer.
    Reset,
    /// The correct answer after a delay.
    Delay(Duration),
}

/// Decides the fault of each request. The server's tasks call it, so it must be quick. It may use the sandbox's
/// handle, for example to add or remove events between two pages.
pub type FaultHook = Arc<dyn Fn(&RequestInfo) -> Option<Fault> + Send + Sync>;
