//! A commit: a draft of rows and records, the plan of its files, and the only writer of a team.

pub(super) mod draft;
pub(super) mod draft_rows;
pub(super) mod plan;
pub(super) mod planned_file;
pub(super) mod seals;
pub(super) mod stage;
pub(super) mod writer;
