//! The only room that writes the lake.
