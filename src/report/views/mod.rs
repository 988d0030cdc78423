//! The views over an archive: their columns and SQL text, the data behind them, and the files that a query needs.

pub(super) mod columns;
pub(super) mod data;
pub(super) mod lookup;
pub(super) mod needs;
pub(super) mod pinning;
pub(super) mod pruning;
pub(super) mod remote;
pub(super) mod snapshot_source;
pub(super) mod team_names;
pub(super) mod sql_text;
