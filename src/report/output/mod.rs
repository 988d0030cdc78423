//! From a result to a text: cells, tables, charts, pages and other formats.

pub(super) mod cell;
pub(super) mod chart;
pub(super) mod page;
pub(super) mod pseudonyms;
pub(super) mod render;
pub(super) mod team_name_sink;
pub(super) mod write;
