//! The SQL engine: its limits, what a query may use, its own functions, and how to ask it.

pub(super) mod bound_query;
pub(super) mod engine;
pub(super) mod exact_types;
pub mod lexer;
pub(super) mod one_spelling;
pub(super) mod query_policy;
pub(super) mod sink;
pub(super) mod spill;
pub(super) mod visitor;
pub(super) mod zone;
