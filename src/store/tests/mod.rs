//! The conformance suite of all stores, and stores for the tests of other rooms.

pub(super) mod conformance;
#[path = "../../../tests/common/faulty_store.rs"]
mod faulty_store;
mod list_hook;

pub use faulty_store::{Fault, FaultyStore};
pub use list_hook::ListHookStore;
