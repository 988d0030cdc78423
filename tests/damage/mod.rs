//! Archives to be damaged, and the hands that do it.

#[path = "../common/age.rs"]
pub mod age;
pub mod hands;
pub mod world;
