//! Refuses values of the engine's types that Arrow would change, and suggests a cast.

use duckdb::Statement;
use duckdb::core::{LogicalTypeHandle, LogicalTypeId};

use crate::report::ReportError;

/// Checks the columns of a statement that was run.
///
/// # Errors
/// [`ReportError::Query`], which names the column and its type.
pub fn check_columns(statement: &Statement<'_>) -> Result<(), ReportError> {
    for at in 0..statement.column_count() {
        if let Some(kind) = changed(&statement.column_logical_type(at)) {
            let name = statement.column_name(at).map_or_else(|_| (at + 1).to_string(), Clone::clone);
            return Err(ReportError::query(format!(
                "column {name} has values of type {kind}, which Annals cannot print exactly: cast it to VARCHAR"
            )));
        }
    }
    Ok(())
}

/// The type, or an inner type, whose values arrive changed: without the offset, with another sign, or in the engine's own encoding.
fn changed(kind: &LogicalTypeHandle) -> Option<&'static str> {
    match kind.id() {
        LogicalTypeId::TimeTZ => Some("TIMETZ"),
        LogicalTypeId::UHugeint => Some("UHUGEINT"),
        LogicalTypeId::Bit => Some("BIT"),
        LogicalTypeId::Bignum => Some("BIGNUM"),
        _ => (0..kind.num_children()).find_map(|at| changed(&kind.child(at))),
    }
}
