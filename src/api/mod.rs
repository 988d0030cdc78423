//! The only room that knows HTTP: the event source's contract, wire types, client, retry policy, limits.
//!
//! [`EventSource`] is the contract. `HttpSource` speaks to the service; `Retrying` wraps any source with the retry
//! policy, so that the simulation runs the real one. Secrets never pass this room's door: a string under a key named
//! `secret` is replaced before anyone else sees the event.

mod contract;

pub use contract::{
    Answer, ApiError, BillingSnapshot, DEVICE_PAGE_EVENTS_MAX, EventSource, PAGE_EVENTS_MAX, Page, PageQuery, Served,
    TeamView,
};
