//! The conformance suite of all stores, and stores for the tests of other rooms.

pub(super) mod conformance;
mod list_hook;
mod pass_on;

pub use crate::simulation::faulty_store::{Fault, FaultyStore};
pub use list_hook::ListHookStore;
pub(crate) use pass_on::pass_on;
