//! Archives to be damaged, and the hands that do it.

pub mod hands;
pub mod world;
