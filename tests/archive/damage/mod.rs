//! Archives for tests of damage, and the functions that damage them.

pub(crate) use crate::age;

pub mod forge;
pub mod tampering;
pub mod world;
