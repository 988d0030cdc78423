//! Converts inventory rows to columns and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use crate::model::{Dataset, InventoryKind, InventoryPart, InventoryRow, InventoryValue, TeamId};

use super::{column, column_of, schema_of};

pub fn inventory_batch(team: &TeamId, part: InventoryPart, rows: &[InventoryRow]) -> Result<RecordBatch, String> {
    let (keys, columns) = (part.keys(), part.columns());
    if let Some(row) = rows.iter().find(|row| row.key.len() != keys.len() || row.values.len() != columns.len()) {
        let (key, values) = (row.key.len(), row.values.len());
        return Err(format!("a row of {part} with {key} keys and {values} values"));
    }
    let mut arrays: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from_iter_values(std::iter::repeat_n(team.as_str(), rows.len())))];
    for at in 0..keys.len() {
        arrays.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.key[at]))));
    }
    arrays.push(Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.seen_at))));
    arrays.push(Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.present)))));
    arrays.push(Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.repeats)))));
    for (at, column) in columns.iter().enumerate() {
        let values: Vec<&InventoryValue> = rows.iter().map(|row| &row.values[at]).collect();
        arrays.push(
            array_of(column.kind, &values)
                .ok_or_else(|| format!("a value of {part}.{} has a wrong type", column.name))?,
        );
    }
    arrays.push(Arc::new(StringArray::new_null(rows.len())));
    RecordBatch::try_new(schema_of(Dataset::Inventory(part)), arrays).map_err(|e| e.to_string())
}

/// `None` if a value has another kind.
fn array_of(kind: InventoryKind, values: &[&InventoryValue]) -> Option<ArrayRef> {
    fn all<'a, T, A: FromIterator<Option<T>> + Array + 'static>(
        values: &[&'a InventoryValue],
        get: fn(&'a InventoryValue) -> Option<T>,
    ) -> Option<ArrayRef> {
        let one = |value: &&'a InventoryValue| match value {
            InventoryValue::Unknown => Some(None),
            other => get(other).map(Some),
        };
        Some(Arc::new(values.iter().map(one).collect::<Option<A>>()?))
    }
    match kind {
        InventoryKind::Text => all::<_, StringArray>(values, |value| value.try_as_text_ref().map(String::as_str)),
        InventoryKind::Int => all::<_, Int64Array>(values, |value| value.try_as_int_ref().copied()),
        InventoryKind::Flag => all::<_, BooleanArray>(values, |value| value.try_as_flag_ref().copied()),
        InventoryKind::Time => all::<_, TimestampMicrosecondArray>(values, |value| value.try_as_time_ref().copied()),
    }
}

/// The rows of a batch that has all columns of the part.
pub fn inventory_rows(part: InventoryPart, batch: &RecordBatch) -> Result<Vec<InventoryRow>, String> {
    let keys = part.keys().iter().map(|name| column_of::<StringArray>(batch, name)).collect::<Result<Vec<_>, _>>()?;
    let seen: &TimestampMicrosecondArray = column_of(batch, column::SEEN_AT)?;
    let present: &BooleanArray = column_of(batch, column::PRESENT)?;
    let repeats: &BooleanArray = column_of(batch, column::REPEATS)?;
    let mut rows: Vec<InventoryRow> = (0..batch.num_rows())
        .map(|at| InventoryRow {
            key: keys.iter().map(|key| key.value(at).to_owned()).collect(),
            seen_at: seen.value(at),
            present: present.value(at),
            repeats: repeats.value(at),
            values: Vec::with_capacity(part.columns().len()),
        })
        .collect();
    for column in part.columns() {
        let values = values_of(column.kind, batch, column.name)?;
        rows.iter_mut().zip(values).for_each(|(row, value)| row.values.push(value));
    }
    Ok(rows)
}

fn values_of(kind: InventoryKind, batch: &RecordBatch, name: &str) -> Result<Vec<InventoryValue>, String> {
    fn all<T>(column: impl Iterator<Item = Option<T>>, of: fn(T) -> InventoryValue) -> Vec<InventoryValue> {
        column.map(|value| value.map_or(InventoryValue::Unknown, of)).collect()
    }
    Ok(match kind {
        InventoryKind::Text => {
            all(column_of::<StringArray>(batch, name)?.iter(), |text| InventoryValue::Text(text.to_owned()))
        }
        InventoryKind::Int => all(column_of::<Int64Array>(batch, name)?.iter(), InventoryValue::Int),
        InventoryKind::Flag => all(column_of::<BooleanArray>(batch, name)?.iter(), InventoryValue::Flag),
        InventoryKind::Time => all(column_of::<TimestampMicrosecondArray>(batch, name)?.iter(), InventoryValue::Time),
    })
}
