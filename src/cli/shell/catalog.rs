//! The names that a query can use, as the engine lists them now.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::report::{Engine, ReportError};

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
    pub fn of(engine: &Engine) -> Result<Self, ReportError> {
        let functions = "SELECT DISTINCT function_name AS name FROM duckdb_functions() \
                         WHERE regexp_full_match(function_name, '[a-z][a-z0-9_]+') ORDER BY 1";
        let keywords = "SELECT keyword_name AS name FROM duckdb_keywords() ORDER BY 1";
        Ok(Self {
            relations: relations(engine)?,
            functions: names(engine, functions)?,
            keywords: names(engine, keywords)?,
        })
    }

    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.name.eq_ignore_ascii_case(name))
    }
}

/// Tables and views, sorted by name.
pub fn relations(engine: &Engine) -> Result<Vec<Relation>, ReportError> {
    #[derive(Deserialize)]
    struct Column {
        table_name: String,
        column_name: String,
        data_type: String,
    }
    let sql = "SELECT table_name, column_name, data_type FROM duckdb_columns() \
               WHERE NOT internal ORDER BY table_name, column_index";
    let mut relations: Vec<Relation> = Vec::new();
    for Column { table_name: name, column_name, data_type } in engine.rows(sql, &BTreeMap::new())? {
        let column = (column_name, data_type);
        match relations.last_mut().filter(|last| last.name == name) {
            Some(last) => last.columns.push(column),
            None => relations.push(Relation { name, columns: vec![column] }),
        }
    }
    Ok(relations)
}

fn names(engine: &Engine, sql: &str) -> Result<Vec<String>, ReportError> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    Ok(engine.rows(sql, &BTreeMap::new())?.into_iter().map(|row: Named| row.name).collect())
}
