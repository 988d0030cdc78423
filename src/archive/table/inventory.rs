//! Converts inventory rows to columns and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

use crate::model::{Dataset, InventoryKind, InventoryPart, InventoryRow, InventoryValue, TeamId};

use super::{column, schema_of};

/// The columns of rows of one part.
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
    fn all<'a, T>(values: &[&'a InventoryValue], get: fn(&'a InventoryValue) -> Option<T>) -> Option<Vec<Option<T>>> {
        let one = |value: &&'a InventoryValue| match value {
            InventoryValue::Unknown => Some(None),
            other => get(other).map(Some),
        };
        values.iter().map(one).collect()
    }
    Some(match kind {
        InventoryKind::Text => Arc::new(StringArray::from_iter(all(values, |value| match value {
            InventoryValue::Text(text) => Some(text.as_str()),
            _ => None,
        })?)),
        InventoryKind::Int => Arc::new(Int64Array::from_iter(all(values, |value| match value {
            InventoryValue::Int(number) => Some(*number),
            _ => None,
        })?)),
        InventoryKind::Flag => Arc::new(BooleanArray::from_iter(all(values, |value| match value {
            InventoryValue::Flag(flag) => Some(*flag),
            _ => None,
        })?)),
        InventoryKind::Time => Arc::new(TimestampMicrosecondArray::from_iter(all(values, |value| match value {
            InventoryValue::Time(micros) => Some(*micros),
            _ => None,
        })?)),
    })
}

/// The rows of a batch that has all columns of the part.
pub fn inventory_rows(part: InventoryPart, batch: &RecordBatch) -> Result<Vec<InventoryRow>, String> {
    let named = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"));
    let typed = |name: &str| format!("column {name} has a wrong type");
    let text = |name: &str| named(name)?.as_string_opt::<i32>().ok_or_else(|| typed(name));
    let flag = |name: &str| named(name)?.as_boolean_opt().ok_or_else(|| typed(name));
    let keys = part.keys().iter().map(|name| text(name)).collect::<Result<Vec<_>, String>>()?;
    let seen = named(column::SEEN_AT)?.as_primitive_opt::<TimestampMicrosecondType>();
    let seen = seen.ok_or_else(|| typed(column::SEEN_AT))?;
    let (present, repeats) = (flag(column::PRESENT)?, flag(column::REPEATS)?);
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
        let array = named(column.name)?.as_ref();
        for (at, row) in rows.iter_mut().enumerate() {
            row.values.push(value_at(column.kind, array, at).ok_or_else(|| typed(column.name))?);
        }
    }
    Ok(rows)
}

fn value_at(kind: InventoryKind, array: &dyn Array, at: usize) -> Option<InventoryValue> {
    if array.is_null(at) {
        return Some(InventoryValue::Unknown);
    }
    Some(match kind {
        InventoryKind::Text => InventoryValue::Text(array.as_string_opt::<i32>()?.value(at).to_owned()),
        InventoryKind::Int => InventoryValue::Int(array.as_primitive_opt::<Int64Type>()?.value(at)),
        InventoryKind::Flag => InventoryValue::Flag(array.as_boolean_opt()?.value(at)),
        InventoryKind::Time => InventoryValue::Time(array.as_primitive_opt::<TimestampMicrosecondType>()?.value(at)),
    })
}
