//! Room: cli.
pub mod sandbox;
