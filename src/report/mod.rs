//! Queries: the SQL engine, the views over the ledger's list of live files, and the output of results.
//!
//! [`ViewData`] is a snapshot of the archive. [`views_sql`] makes the SQL text of its views, the same for our engine
//! ([`Engine`]) and for other clients. No view has a timestamp with a zone, and none uses a function of the ICU extension. So an
//! engine without this extension gives the same results.

mod catalog;
mod error;
mod output;
mod pack;
mod run;
mod sql;
mod statement;
mod views;

pub use catalog::{
    AllowedValues, Catalog, CatalogError, Chart, ChartKind, ChartRole, Origin, Param, ParamDefault, ParamKind,
    ParamValue, Report, Severity, SeverityRule,
};
pub use error::ReportError;
pub use output::{
    cell::printable,
    chart::{counted, plural},
    page::{Cell, ColumnHead, Figure, FirstRows, Section, local as local_time_text},
    render::{Format, Medium, sink_for},
    team_name_sink::TeamNameSink,
    write::write_report,
};
pub use pack::{CheckedPack, Manifest, PackError, Tree, check_pack, write_pack, zip_pack};
pub use run::{ReportInput, Run};
pub use sql::{
    bound_query::JsonRows,
    engine::{Engine, Interrupter, Limits},
    lexer,
    sink::{Flow, Sink},
    spill::remove_stale_spills,
    visitor::{SNAPSHOT_BYTES_MAX, VisitorAnswer, VisitorQuestion, VisitorRows},
    zone::{ZONE_FUNCTION, Zone},
};
pub use statement::{
    about::{About, LedgerHead, gaps_recorded},
    coverage::{GapInside, Span, StreamCoverage},
    sessions_behind::{behind_sentence, sessions_behind},
};
pub use views::{
    columns::{Column, View},
    data::{CoverageRow, LiveFile, TeamSnapshot, ViewData},
    needs::{COMPUTERS, Needs},
    pinning::PinnedSnapshot,
    remote::Remote,
    snapshot_source::{Extents, SnapshotSource},
    sql_text::{client_sql, views_sql},
    team_names::{NAME_CHARS_MAX, TeamNameError, TeamNames, clean_name},
};

#[cfg(test)]
mod tests;
