//! The names that a query can use, as the engine lists them now.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::report::{Engine, Flow, ReportError, Sink};

/// A table or view, and its columns with their types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pub relations: Vec<Relation>,
    pub functions: Vec<String>,
    pub keywords: Vec<String>,
}

impl Catalog {
    /// Asks `engine` for all names.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn of(engine: &Engine) -> Result<Self, ReportError> {
        let functions = "SELECT DISTINCT function_name FROM duckdb_functions() \
                         WHERE regexp_full_match(function_name, '[a-z][a-z0-9_]+') ORDER BY 1";
        Ok(Self {
            relations: relations(engine)?,
            functions: rows(engine, functions)?.into_iter().flatten().collect(),
            keywords: rows(engine, "SELECT keyword_name FROM duckdb_keywords() ORDER BY 1")?
                .into_iter()
                .flatten()
                .collect(),
        })
    }

    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.name.eq_ignore_ascii_case(name))
    }
}

/// Tables and views, sorted by name.
///
/// # Errors
/// When the engine fails.
pub fn relations(engine: &Engine) -> Result<Vec<Relation>, ReportError> {
    let sql = "SELECT table_name, column_name, data_type FROM duckdb_columns() \
               WHERE NOT internal ORDER BY table_name, column_index";
    let mut relations: Vec<Relation> = Vec::new();
    for row in rows(engine, sql)? {
        let [name, column, kind] = <[String; 3]>::try_from(row).unwrap_or_default();
        match relations.last_mut().filter(|last| last.name == name) {
            Some(last) => last.columns.push((column, kind)),
            None => relations.push(Relation { name, columns: vec![(column, kind)] }),
        }
    }
    Ok(relations)
}

/// The rows of a result whose columns are all text.
fn rows(engine: &Engine, sql: &str) -> Result<Vec<Vec<String>>, ReportError> {
    let mut texts = Texts(Vec::new());
    engine.query(sql, &mut texts)?;
    Ok(texts.0)
}

struct Texts(Vec<Vec<String>>);

impl Sink for Texts {
    fn begin(&mut self, _: SchemaRef) -> Result<(), ReportError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        for row in 0..batch.num_rows() {
            let cell = |column: &arrow::array::ArrayRef| {
                column.as_string_opt::<i32>().map_or_else(String::new, |texts| texts.value(row).to_owned())
            };
            self.0.push(batch.columns().iter().map(cell).collect());
        }
        Ok(Flow::More)
    }
}
