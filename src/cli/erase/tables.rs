//! The rows that `annals erase` prints.

use arrow::array::RecordBatch;

use super::super::output::Columns;
use super::{Prepared, TeamOutcome};

/// The rows that the orders would change.
pub fn found(orders: &[Prepared]) -> RecordBatch {
    let rows = orders.iter().flat_map(|of| of.found.rows.iter().map(|(team, row)| (&of.order.id, team, row)));
    Columns::of(&rows.collect::<Vec<_>>())
        .text("order_id", |(order, ..)| order)
        .text("team_id", |(_, team, _)| team.as_str())
        .text("dataset", |(.., row)| row.dataset.as_str())
        .time_or_null("time", |(.., row)| row.time)
        .text("id", |(.., row)| &row.id)
        .batch()
}

/// The rows that each order changed, by team and dataset.
pub fn done(done: &[TeamOutcome]) -> RecordBatch {
    let rows = done.iter().flat_map(|done| done.erasure.parts.iter().map(move |part| (done, part)));
    Columns::of(&rows.collect::<Vec<_>>())
        .text("order_id", |(done, _)| &done.order)
        .text("team_id", |(done, _)| done.team.as_str())
        .text("dataset", |(_, part)| part.dataset.as_str())
        .number("files", |(_, part)| part.files)
        .number("rows", |(_, part)| part.rows)
        .number_or_null("ledger_seq", |(done, _)| done.erasure.seq.map(|seq| seq.0))
        .batch()
}
