//! Room: collect.
