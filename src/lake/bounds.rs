//! The least and greatest values of a file's columns, from its Parquet footer. Engines answer `min` and `max` from bounds, so a
//! bound is exact or left out.

use std::collections::BTreeMap;

use parquet::basic::Type;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;

use crate::store::Store;

use super::LakeError;
use super::manifest::Bounds;
use super::schema::{TableSchema, is_pruned_by};

/// The part of a file's footer that a manifest repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    pub rows: u64,
    pub bytes: u64,
    pub bounds: Bounds,
}

/// Reads the footer of a data file.
///
/// # Errors
/// When the file is missing, or is no Parquet file.
pub fn read_footer(store: &dyn Store, path: &str, schema: &TableSchema) -> Result<Footer, LakeError> {
    let blob = store.read(path)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&blob);
    let metadata = metadata.map_err(|e| LakeError::damaged(path, e))?;
    let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
    Ok(Footer { rows, bytes: blob.size(), bounds: bounds_of(&metadata, schema) })
}

fn bounds_of(metadata: &ParquetMetaData, schema: &TableSchema) -> Bounds {
    let columns = metadata.file_metadata().schema_descr().columns().iter().enumerate();
    let by_id: BTreeMap<i32, usize> = columns
        .filter(|(_, column)| column.self_type().get_basic_info().has_id())
        .map(|(at, column)| (column.self_type().get_basic_info().id(), at))
        .collect();
    let mut bounds = Bounds::default();
    for column in schema.fields.iter().filter(|column| is_pruned_by(column)) {
        if let Some((least, greatest)) = by_id.get(&column.id).and_then(|at| exact(metadata, *at)) {
            bounds.lower.push((column.id, least));
            bounds.upper.push((column.id, greatest));
        }
    }
    bounds
}

/// The least and the greatest value of a column over all row groups. `None`: a row group lacks an exact value.
fn exact(metadata: &ParquetMetaData, at: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut found: Option<(Vec<u8>, Vec<u8>)> = None;
    for group in metadata.row_groups() {
        let chunk = group.column(at);
        let statistics = chunk.statistics()?;
        let has_nulls_alone = statistics.null_count_opt() == u64::try_from(chunk.num_values()).ok();
        if has_nulls_alone {
            continue;
        }
        let (least, greatest) = exact_in(statistics)?;
        found = Some(match found {
            None => (least, greatest),
            Some((low, high)) => {
                let kind = statistics.physical_type();
                let low = if is_before(kind, &least, &low) { least } else { low };
                let high = if is_before(kind, &high, &greatest) { greatest } else { high };
                (low, high)
            }
        });
    }
    found
}

fn exact_in(statistics: &Statistics) -> Option<(Vec<u8>, Vec<u8>)> {
    if !statistics.min_is_exact() || !statistics.max_is_exact() || statistics.is_min_max_deprecated() {
        return None;
    }
    Some((statistics.min_bytes_opt()?.to_vec(), statistics.max_bytes_opt()?.to_vec()))
}

/// Iceberg encodes these values like Parquet: numbers as eight bytes, the lowest byte first; texts unchanged.
fn is_before(kind: Type, one: &[u8], other: &[u8]) -> bool {
    let number = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).ok();
    match kind {
        Type::INT64 => number(one) < number(other),
        _ => one < other,
    }
}
