//! Room: pipeline.
