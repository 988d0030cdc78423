//! Answers: the SQL engine, the views over the ledger's list of live files, and how results are written.
//!
//! [`ViewData`] says what the archive holds; [`views_sql`] makes it the SQL text of the views, the same for the engine
//! inside ([`Engine`]) and for any client outside. No view has a zoned timestamp and none uses a function of the ICU
//! extension, so an engine built without it gives the same answers.

mod cell;
mod columns;
mod data;
mod engine;
mod error;
mod render;
mod sink;
mod views;
mod zone;

pub use columns::{Column, View};
pub use data::{CoverageRow, FindingRow, LiveFile, ViewData};
pub use engine::{Engine, Limits};
pub use error::ReportError;
pub use render::{Format, Look, printable, sink_for};
pub use sink::{Flow, Sink};
pub use views::{client_sql, views_sql};
pub use zone::ZONE_FUNCTION;

#[cfg(test)]
mod tests;
