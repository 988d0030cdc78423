//! Error families.
