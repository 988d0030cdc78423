//! Archives to be damaged, and the hands that do it.

pub(crate) use crate::age;

pub mod hands;
pub mod world;
