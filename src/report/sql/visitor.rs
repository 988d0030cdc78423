//! A visitor's SQL: the question to its process, and the answer.
//!
//! The engine limits the memory for sorts, joins and groups, but not for a single value. So an untrusted query runs in a process
//! that the system limits as a whole, and whose death harms nothing else.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bound_query::JsonRows;
use super::engine::Limits;
use crate::report::output::page::FirstRows;
use crate::report::{Engine, ReportError, ViewData};

/// The maximum size of spill files, in MiB.
const SPILL_MIB_MAX: u32 = 2_048;
/// The maximum size of the snapshot that a process receives.
pub const SNAPSHOT_BYTES_MAX: u64 = 64 << 20;

/// One query and its limits. The snapshot of the archive follows on the next line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitorQuestion {
    /// The archive's absolute directory; `None` if a part of the archive is where this process cannot reach it.
    pub root: Option<PathBuf>,
    /// The grace and the public keys that a check of the archive expects.
    pub grace: Duration,
    pub keys: Vec<String>,
    pub sql: String,
    pub shape: VisitorRows,
    /// The engine's limits.
    pub engine: Limits,
    /// The limits of the whole process: address space, and processor time of all threads.
    pub process_mib: u32,
    pub cpu_seconds: u64,
}

/// The form and maximum number of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VisitorRows {
    Page { rows_max: usize },
    Json { rows_max: usize, bytes_max: usize },
}

/// The outcome. If the process sends no answer, it has died.
#[derive(Debug, Serialize, Deserialize)]
pub enum VisitorAnswer {
    /// The first rows, and whether there are more.
    Page(FirstRows),
    Json(JsonRows),
    /// The query is wrong; the message says why.
    Wrong(String),
    /// The query needed more memory or spill space than its limit.
    TooLarge,
    /// Another failure; the query is not at fault.
    Failed(String),
}

impl VisitorQuestion {
    /// Runs the query on one snapshot of the archive.
    ///
    /// # Errors
    /// When the text is not one query, the engine fails, or a live file cannot be read.
    pub fn answer(&self, data: ViewData) -> Result<VisitorAnswer, ReportError> {
        let engine = Engine::open_for(data, &self.engine, &self.sql)?;
        let bound = format!("SET max_temp_directory_size = '{SPILL_MIB_MAX}MiB'");
        engine.connection().execute_batch(&bound).map_err(|e| engine.failed(&e))?;
        let engine = engine.confined()?;
        engine.check_query(&self.sql)?;
        match self.shape {
            VisitorRows::Page { rows_max } => {
                let mut rows = FirstRows::without_count(rows_max);
                engine.query(&self.sql, &mut rows)?;
                Ok(VisitorAnswer::Page(rows))
            }
            VisitorRows::Json { rows_max, bytes_max } => {
                let mut rows = JsonRows::new(rows_max, bytes_max);
                engine.query(&self.sql, &mut rows)?;
                Ok(VisitorAnswer::Json(rows))
            }
        }
    }
}

impl From<ReportError> for VisitorAnswer {
    fn from(error: ReportError) -> Self {
        let message = error.to_string();
        match error {
            error if error.is_short_of_memory() => Self::TooLarge,
            error if error.is_wrong_use() => Self::Wrong(message),
            _ => Self::Failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(sql: &str, shape: VisitorRows) -> VisitorQuestion {
        VisitorQuestion {
            root: Some("/".into()),
            grace: Duration::from_secs(1),
            keys: vec!["key".to_owned()],
            sql: sql.to_owned(),
            shape,
            engine: Limits { memory_mib: 128, threads: 1, ..Limits::default() },
            process_mib: 1_024,
            cpu_seconds: 10,
        }
    }

    fn ask(sql: &str, shape: VisitorRows) -> VisitorAnswer {
        let question = question(sql, shape);
        let sent = serde_json::to_string(&question).unwrap();
        assert_eq!(serde_json::from_str::<VisitorQuestion>(&sent).unwrap(), question);
        let answer = question.answer(ViewData::default()).unwrap_or_else(VisitorAnswer::from);
        serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap()
    }

    #[test]
    fn rows_arrive_unchanged() {
        let page = VisitorRows::Page { rows_max: 2 };
        let VisitorAnswer::Page(rows) = ask("SELECT i, NULL AS x, 'é' AS t FROM range(5000) t(i)", page) else {
            panic!("no page")
        };
        assert!(rows.rows.len() == 2 && rows.total > 2);
        assert_eq!((rows.rows[1][0].text.as_str(), rows.rows[1][0].class.as_ref()), ("1", "n"));
        assert_eq!((rows.rows[1][1].class.as_ref(), rows.rows[1][2].text.as_str()), ("null", "é"));
        let json = VisitorRows::Json { rows_max: 1, bytes_max: 100 };
        let VisitorAnswer::Json(rows) =
            ask("SELECT 12345678901234567890123::HUGEINT AS i, [1] AS l UNION ALL FROM (VALUES (1, [2]))", json)
        else {
            panic!("no rows")
        };
        assert_eq!((rows.columns, rows.is_cut), (vec!["i".to_owned(), "l".to_owned()], true));
        assert_eq!(rows.rows.len(), 1);
    }

    #[test]
    fn errors_of_a_visitor_s_query_are_distinguished() {
        let page = VisitorRows::Page { rows_max: 2 };
        assert!(matches!(ask("DROP VIEW sessions", page), VisitorAnswer::Wrong(_)));
        assert!(matches!(ask("SELECT nothing", page), VisitorAnswer::Wrong(why) if why.contains("nothing")));
        let mut nowhere = question("SELECT 1", page);
        nowhere.engine.spill_parent = "/nowhere/at all".into();
        let answer = nowhere.answer(ViewData::default()).unwrap_or_else(VisitorAnswer::from);
        assert!(matches!(answer, VisitorAnswer::Failed(why) if why.contains("/nowhere/at all")));
        let short = ReportError::Engine("Out of Memory Error: could not allocate".to_owned());
        assert!(matches!(VisitorAnswer::from(short), VisitorAnswer::TooLarge));
    }
}
