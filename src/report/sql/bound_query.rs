//! Queries of a program: bound values in, rows in memory out.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::engine::stream_rows;
use super::query_policy::find_refused;
use super::sink::{Flow, Sink, unique_names};
use crate::report::catalog::ParamValue;
use crate::report::output::cell;
use crate::report::run::serialized;
use crate::report::sql::lexer;
use crate::report::{Engine, ReportError};

/// The maximum size of the rows, as JSON.
const ROWS_BYTES_MAX: usize = 64 << 20;

impl Engine {
    /// Runs `sql` with each `$name` bound to a value; values never become SQL.
    ///
    /// # Errors
    /// As [`Engine::query`]; [`ReportError::Query`] also if a name has no value.
    pub fn ask(&self, sql: &str, values: &BTreeMap<&str, ParamValue>, sink: &mut dyn Sink) -> Result<(), ReportError> {
        let mut statement = self.connection().prepare(sql).map_err(|e| self.failed(&e))?;
        let mut bound = Vec::new();
        for at in 1..=statement.parameter_count() {
            let name = statement.parameter_name(at).map_err(|e| self.failed(&e))?;
            let value = values.get(name.as_str()).ok_or_else(|| ReportError::query(format!("${name} has no value")))?;
            bound.push(value.bound());
        }
        stream_rows(&mut statement, &bound, sink, |e| self.failed(e))
    }

    /// The rows of `sql` as values of a type whose members are the columns.
    ///
    /// # Errors
    /// As [`Engine::ask`]; [`ReportError::Format`] when a row does not fit the type, or the rows are too large.
    pub fn rows<T: DeserializeOwned>(
        &self,
        sql: &str,
        values: &BTreeMap<&str, ParamValue>,
    ) -> Result<Vec<T>, ReportError> {
        let mut sink = JsonRows::new(usize::MAX, ROWS_BYTES_MAX);
        self.ask(sql, values, &mut sink)?;
        if sink.is_cut {
            return Err(unprintable(format!("the rows have more than {ROWS_BYTES_MAX} bytes")));
        }
        let typed = sink.rows.iter().map(|row| serde_json::from_str(row.get()));
        typed.collect::<Result<_, _>>().map_err(|e| unprintable(e.to_string()))
    }

    /// Allows only one query that uses only the views. Everything else is refused before the engine runs it.
    ///
    /// # Errors
    /// [`ReportError::Query`], which names the forbidden part.
    pub fn check_query(&self, sql: &str) -> Result<(), ReportError> {
        if lexer::all_statements(sql).next().is_none() {
            return Err(ReportError::query("the query is empty"));
        }
        let query = serialized(self.connection(), sql).map_err(|(before, message)| {
            let line = before.map(|position| 1 + sql.get(..position).unwrap_or_default().matches('\n').count());
            ReportError::Query { message, line }
        })?;
        match find_refused(&query) {
            Some(refused) => Err(ReportError::query(format!("{refused}: a visitor's query can use only the views"))),
            None => Ok(()),
        }
    }
}

/// Keeps rows as JSON objects, within limits.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JsonRows {
    pub columns: Vec<String>,
    pub rows: Vec<Box<RawValue>>,
    /// There are more rows than the limits allow.
    pub is_cut: bool,
    #[serde(skip)]
    rows_max: usize,
    #[serde(skip)]
    bytes_left: usize,
}

impl JsonRows {
    pub fn new(rows_max: usize, bytes_max: usize) -> Self {
        Self { rows_max, bytes_left: bytes_max, ..Self::default() }
    }
}

impl Sink for JsonRows {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.columns = unique_names(&schema);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        for row in 0..batch.num_rows() {
            let mut object = String::new();
            cell::push_row(&mut object, batch, &self.columns, row).map_err(|e| unprintable(e.to_string()))?;
            if self.rows.len() >= self.rows_max || object.len() > self.bytes_left {
                self.is_cut = true;
                return Ok(Flow::Enough);
            }
            self.bytes_left -= object.len();
            self.rows.push(RawValue::from_string(object).map_err(|e| unprintable(e.to_string()))?);
        }
        Ok(Flow::More)
    }
}

fn unprintable(detail: String) -> ReportError {
    ReportError::Format { format: "json", detail }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::report::{Limits, ViewData};

    fn engine() -> Engine {
        Engine::open(ViewData::default(), &Limits { memory_mib: 128, threads: 1, ..Limits::default() })
            .and_then(Engine::confined)
            .unwrap()
    }

    #[test]
    fn values_are_bound_and_rows_are_typed() {
        #[derive(Deserialize)]
        struct Row {
            text: String,
            number: Option<i64>,
        }
        let hostile = "'; DROP TABLE x; --";
        let values = BTreeMap::from([("text", ParamValue::Text(hostile.into())), ("n", ParamValue::Null)]);
        let rows: Vec<Row> = engine().rows("SELECT $text AS text, $n::BIGINT AS number", &values).unwrap();
        assert_eq!((rows[0].text.as_str(), rows[0].number), (hostile, None));
        let unbound = engine().rows::<Row>("SELECT $other AS text", &values).err().unwrap();
        assert!(unbound.to_string().contains("$other"), "{unbound}");
    }

    #[test]
    fn kept_rows_are_bounded() {
        let ask = |rows, bytes| {
            let mut sink = JsonRows::new(rows, bytes);
            engine().ask("SELECT i, repeat('x', 10) AS x FROM range(5000) t(i)", &BTreeMap::new(), &mut sink).unwrap();
            (sink.rows.len(), sink.is_cut)
        };
        assert_eq!(ask(7, 1 << 20), (7, true));
        assert_eq!(ask(5_000, 1 << 20), (5_000, false));
        assert!(ask(5_000, 1_000).0 < 60 && ask(5_000, 1_000).1);
    }

    #[test]
    fn only_a_single_query_is_accepted() {
        let engine = engine();
        for sql in ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "FROM sessions", "VALUES (1)", "SELECT 1;"] {
            engine.check_query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        for sql in [
            "",
            "SELECT 1; SELECT 2",
            "COPY sessions TO '/tmp/x'",
            "ATTACH '/tmp/x'",
            "PRAGMA database_list",
            "SET threads = 1",
            "INSTALL httpfs",
            "LOAD httpfs",
            "CREATE TABLE t AS SELECT 1",
            "DROP VIEW sessions",
            "CALL pragma_version()",
            "EXPORT DATABASE '/tmp/x'",
            "selec 1",
        ] {
            let refused = engine.check_query(sql).expect_err(sql);
            assert!(refused.is_wrong_use(), "{sql}: {refused}");
        }
        let error = engine.check_query("SELECT 1,\n  FROM WHERE").err().unwrap();
        assert!(matches!(error, ReportError::Query { line: Some(2), .. }), "{error:?}");
    }
}
