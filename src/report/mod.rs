//! Queries: the SQL engine, the views over the ledger's list of live files, and the output of results.
//!
//! [`ViewData`] is a snapshot of the archive. [`views_sql`] makes the SQL text of its views, the same for our engine
//! ([`Engine`]) and for other clients. No view has a timestamp with a zone, and none uses a function of the ICU extension. So an
//! engine without this extension gives the same results.

mod about;
mod bound_query;
mod catalog;
mod cell;
mod chart;
mod columns;
mod coverage;
mod data;
mod engine;
mod error;
mod exact_types;
pub mod lexer;
mod lookup;
mod needs;
mod one_spelling;
mod pack;
mod page;
mod pinning;
mod pruning;
mod pseudonyms;
mod query_policy;
mod remote;
mod render;
mod roster_reads;
mod run;
mod sessions_behind;
mod sink;
mod snapshot_source;
mod spill;
mod team_name_sink;
mod team_names;
mod views;
mod visitor;
mod without_text;
mod write;
mod zone;

pub use about::{About, LedgerHead, gaps_recorded};
pub use bound_query::JsonRows;
pub use catalog::{
    AllowedValues, Catalog, CatalogError, Chart, ChartKind, ChartRole, Origin, Param, ParamDefault, ParamKind,
    ParamValue, Report, Severity, SeverityRule,
};
pub use cell::printable;
pub use chart::{counted, plural};
pub use columns::{Column, View};
pub use coverage::{GapInside, Span, StreamCoverage};
pub use data::{CoverageRow, LiveFile, TeamSnapshot, ViewData};
pub use engine::{Engine, Interrupter, Limits};
pub use error::ReportError;
pub use needs::{COMPUTERS, Needs};
pub use pack::{CheckedPack, Manifest, PackError, Tree, check_pack, write_pack, zip_pack};
pub use page::{Cell, ColumnHead, Figure, FirstRows, Section, local as local_time_text};
pub use pinning::PinnedSnapshot;
pub use remote::Remote;
pub use render::{Format, Medium, sink_for};
pub use run::{ReportInput, Run};
pub use sessions_behind::{behind_sentence, sessions_behind};
pub use sink::{Flow, Sink};
pub use snapshot_source::{Extents, SnapshotSource};
pub use spill::{remove_spills, remove_stale_spills};
pub use team_name_sink::TeamNameSink;
pub use team_names::{NAME_CHARS_MAX, TeamNameError, TeamNames, clean_name};
pub use views::{client_sql, views_sql};
pub use visitor::{SNAPSHOT_BYTES_MAX, VisitorAnswer, VisitorQuestion, VisitorRows};
pub use write::write_report;
pub use zone::{ZONE_FUNCTION, Zone};

#[cfg(test)]
mod tests;
