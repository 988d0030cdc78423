//! The ledger: its lines and their records, the state that they build, snapshots of this state, and signatures of its heads.

pub(super) mod commit_history;
pub(super) mod finding;
pub(super) mod heads;
pub(super) mod ledger_files;
pub(super) mod line;
pub(super) mod note;
pub(super) mod pairs;
pub(super) mod record;
pub(super) mod replay;
pub(super) mod review;
pub(super) mod rows_sum;
pub(super) mod snapshot;
pub(super) mod state;
pub(super) mod state_error;
pub(super) mod text_lines;
