//! The rows that `annals erase` prints.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};

use super::super::output;
use super::{Instant, Prepared, TeamOutcome};

/// The rows that the orders would change.
pub fn found(orders: &[Prepared]) -> RecordBatch {
    let rows = orders.iter().flat_map(|of| of.found.rows.iter().map(|(team, row)| (&of.order.id, team, row)));
    let rows: Vec<_> = rows.collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("order_id", Arc::new(rows.iter().map(|(order, ..)| Some(order.as_str())).collect::<StringArray>())),
        ("team_id", Arc::new(rows.iter().map(|(_, team, _)| Some(team.as_str())).collect::<StringArray>())),
        ("dataset", Arc::new(rows.iter().map(|(.., row)| Some(row.dataset.as_str())).collect::<StringArray>())),
        (
            "time",
            Arc::new(rows.iter().map(|(.., row)| row.time.map(Instant::micros)).collect::<TimestampMicrosecondArray>()),
        ),
        ("id", Arc::new(rows.iter().map(|(.., row)| Some(row.id.as_str())).collect::<StringArray>())),
    ];
    output::table(columns)
}

/// The rows that each order changed, by team and dataset.
pub fn done(done: &[TeamOutcome]) -> RecordBatch {
    let rows: Vec<_> = done.iter().flat_map(|done| done.erasure.parts.iter().map(move |part| (done, part))).collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("order_id", Arc::new(rows.iter().map(|(done, _)| Some(done.order.as_str())).collect::<StringArray>())),
        ("team_id", Arc::new(rows.iter().map(|(done, _)| Some(done.team.as_str())).collect::<StringArray>())),
        ("dataset", Arc::new(rows.iter().map(|(_, part)| Some(part.dataset.as_str())).collect::<StringArray>())),
        ("files", Arc::new(rows.iter().map(|(_, part)| Some(part.files)).collect::<UInt64Array>())),
        ("rows", Arc::new(rows.iter().map(|(_, part)| Some(part.rows)).collect::<UInt64Array>())),
        (
            "ledger_seq",
            Arc::new(rows.iter().map(|(done, _)| done.erasure.seq.map(|seq| seq.0)).collect::<UInt64Array>()),
        ),
    ];
    output::table(columns)
}
