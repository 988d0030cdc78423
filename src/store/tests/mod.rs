//! The conformance suite of all stores, and a store for the tests of other rooms.

pub(super) mod conformance;
mod list_hook;

pub use list_hook::ListHookStore;
