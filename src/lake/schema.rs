//! The columns of a table in Iceberg's terms, with the field ids of the Parquet files.

use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde::{Deserialize, Serialize};

use super::LakeError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub id: i32,
    pub name: String,
    pub required: bool,
    #[serde(rename = "type")]
    pub kind: String,
}

/// A version of a table's columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableSchema {
    #[serde(rename = "type")]
    pub kind: String,
    pub schema_id: i32,
    pub fields: Vec<Column>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Mapped<'a> {
    field_id: i32,
    names: [&'a str; 1],
}

impl TableSchema {
    /// The columns of a file's schema, whose fields have ids.
    ///
    /// # Errors
    /// [`LakeError::Column`] for a column without an id, or of a type that no dataset has.
    pub fn of(schema: &Schema) -> Result<Self, LakeError> {
        let fields = schema.fields().iter().map(|field| column(field)).collect::<Result<_, _>>()?;
        Ok(Self { kind: "struct".to_owned(), schema_id: 0, fields })
    }

    /// The columns by their names in the files, for engines that ignore field ids.
    pub fn name_mapping(&self) -> String {
        let mapped: Vec<Mapped<'_>> =
            self.fields.iter().map(|field| Mapped { field_id: field.id, names: [&field.name] }).collect();
        serde_json::to_string(&mapped).expect("BUG: names and numbers serialise")
    }

    /// Whether it has the columns of `other`, and perhaps more after them: a newer program adds columns at the end.
    pub fn extends(&self, other: &Self) -> bool {
        self.fields.starts_with(&other.fields)
    }

    pub fn last_column_id(&self) -> i32 {
        self.fields.iter().map(|field| field.id).max().unwrap_or(0)
    }
}

fn column(field: &Field) -> Result<Column, LakeError> {
    let wrong = |what: &str| LakeError::Column { name: field.name().clone(), what: what.to_owned() };
    let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY).and_then(|id| id.parse().ok());
    let kind = match field.data_type() {
        DataType::Utf8 => "string",
        DataType::Binary => "binary",
        DataType::Boolean => "boolean",
        DataType::Int32 => "int",
        DataType::Int64 => "long",
        DataType::Timestamp(_, None) => "timestamp",
        _ => return Err(wrong("has a type that no table has")),
    };
    let id = id.ok_or_else(|| wrong("has no field id"))?;
    Ok(Column { id, name: field.name().clone(), required: !field.is_nullable(), kind: kind.to_owned() })
}

/// Whether engines skip files by this column. Bounds of other columns would only make the metadata longer.
pub fn is_pruned_by(column: &Column) -> bool {
    column.kind == "timestamp" || matches!(column.name.as_str(), "team_id" | "event_time_ns" | "stream")
}
