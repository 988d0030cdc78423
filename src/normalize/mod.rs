//! Room: normalize.
