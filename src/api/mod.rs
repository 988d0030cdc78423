//! The only room that knows HTTP: the event source's contract, wire types, client, retry policy, limits.
//!
//! [`EventSource`] is the contract. [`HttpSource`] speaks to the service. [`Retrying`] adds the retry policy to any source, so that
//! the simulation runs the real policy. No secret leaves this room: it replaces strings under a key named `secret`, and the
//! credential if the service repeats it.

mod client;
mod contract;
mod freshness;
pub mod json;
mod known_tokens;
pub mod outline;
mod network_error;
mod pause;
mod rate;
mod redact;
mod retry;
pub mod roster;
mod served_time;
mod setup_error;
mod token;
mod transport;
pub mod wire;

pub use client::{BODY_BYTES_MAX, HttpOptions, HttpSource, REQUEST_DEADLINE, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND};
pub use contract::{
    Answer, ApiError, BillingSnapshot, Computers, DEVICE_PAGE_EVENTS_MAX, EventSource, PAGE_EVENTS_MAX, Page,
    PageComparison, PageQuery, Served, TeamView, UnfilteredJson,
};
pub use known_tokens::TOKEN_BYTES_MIN;
pub use pause::Pause;
pub use rate::scans_per_second;
pub use retry::{
    FIRST_CONTACT_SECONDS_MAX, Listener, Notice, RETRY_ATTEMPTS_MAX, RETRY_DELAY_MS_MAX, RETRY_DELAY_MS_MIN,
    RETRY_TOTAL_SECONDS_MAX, RequestCounts, RequestCountsSnapshot, RetryPolicy, Retrying,
};
pub use setup_error::SetupError;
pub use token::{CurrentToken, TokenSource};
pub use transport::RETRY_AFTER_SECONDS_MAX;
