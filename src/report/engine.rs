//! The SQL engine: in memory, bounded, without the network, with the views and nothing else in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::available_parallelism;

use arrow::array::RecordBatch;
use duckdb::{Config, Connection, Statement};
use tempfile::TempDir;

use crate::archive::VerifyReport;

use super::ReportError;
use super::data::ViewData;
use super::lookup::{ARCHIVE_FAILED, ArchiveRows, Lookup, ROWS_FUNCTION};
use super::sink::{Flow, Sink};
use super::views::{looked_up_sql, quoted_path, quoted_text, views_sql};
use super::zone::{LocalTime, ZONE_FUNCTION};

/// What the engine may use. Beyond the memory it spills to a temporary directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub memory_mib: u32,
    pub threads: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
        Self { memory_mib: 1_024, threads: threads.min(8) }
    }
}

/// An engine over one consistent look at an archive.
pub struct Engine {
    connection: Connection,
    data: ViewData,
    lookup: Arc<Lookup>,
    _spill: TempDir,
}

impl Engine {
    /// Makes the views of `data`.
    ///
    /// # Errors
    /// When the engine cannot start or a live file cannot be read.
    pub fn open(data: ViewData, limits: Limits) -> Result<Self, ReportError> {
        let spill = tempfile::Builder::new().prefix("annals-sql-").tempdir()?;
        let spill_path =
            spill.path().to_str().ok_or_else(|| ReportError::Path { path: spill.path().display().to_string() })?;
        let failed = |e: duckdb::Error| match ReportError::of_engine(&e, |text| data.names_a_file(text)) {
            ReportError::Query { message, .. } => ReportError::Engine(message),
            other => other,
        };
        let config = Config::default()
            .enable_autoload_extension(false)
            .and_then(|config| config.with("autoinstall_known_extensions", "false"))
            .and_then(|config| config.with("allow_community_extensions", "false"))
            .and_then(|config| config.with("temp_directory", spill_path))
            .and_then(|config| config.max_memory(&format!("{}MiB", limits.memory_mib)))
            .and_then(|config| config.threads(i64::from(limits.threads.max(1))))
            .map_err(failed)?;
        let connection = Connection::open_in_memory_with_flags(config).map_err(failed)?;
        connection.register_scalar_function::<LocalTime>(ZONE_FUNCTION).map_err(failed)?;
        // A live file never changes, so its footer is read once.
        connection.execute_batch("SET GLOBAL parquet_metadata_cache = true").map_err(failed)?;
        let lookup = Arc::new(Lookup::of(&data));
        connection.register_scalar_function_with_state::<ArchiveRows>(ROWS_FUNCTION, &lookup).map_err(failed)?;
        connection.execute_batch(&(views_sql(&data) + &looked_up_sql())).map_err(failed)?;
        Ok(Self { connection, data, lookup, _spill: spill })
    }

    /// As [`Engine::open`], for reports of strangers: beyond the live files nothing can be read, written or reached, and
    /// no setting can be changed.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_confined(data: ViewData, limits: Limits) -> Result<Self, ReportError> {
        let engine = Self::open(data, limits)?;
        let files = engine.data.files.values().flatten();
        // A view names a file by a pattern that fits it alone, and the engine asks for both.
        let texts = files.flat_map(|file| [quoted_text(&file.path), quoted_path(&file.path)]);
        let allowed = texts.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        let confine = format!(
            "SET allowed_paths = [{allowed}]; SET enable_external_access = false; SET lock_configuration = true"
        );
        engine.connection.execute_batch(&confine).map_err(|e| ReportError::Engine(e.to_string()))?;
        Ok(engine)
    }

    /// Begins to verify the archive in a thread of its own. Whoever asks for the verdict waits for it.
    pub(super) fn start_verifying(&self) {
        let lookup = Arc::clone(&self.lookup);
        std::thread::spawn(move || {
            let _ = lookup.verified();
        });
    }

    /// What `verify` says of the archive: found once for all who ask this engine.
    ///
    /// # Errors
    /// When the archive cannot be read at all.
    pub(super) fn verified(&self) -> Result<VerifyReport, ReportError> {
        let found =
            self.lookup.verified().map_err(|message| ReportError::Engine(format!("{ARCHIVE_FAILED}{message}")))?;
        Ok(found.cloned().unwrap_or_default())
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn data(&self) -> &ViewData {
        &self.data
    }

    pub(super) fn failed(&self, error: &duckdb::Error) -> ReportError {
        ReportError::of_engine(error, |text| self.data.names_a_file(text))
    }

    /// Answers `sql`, streaming the rows into `sink`; of several statements the last one's.
    ///
    /// # Errors
    /// When the query is wrong, the engine fails, or the sink does.
    pub fn query(&self, sql: &str, sink: &mut dyn Sink) -> Result<(), ReportError> {
        if sql.trim().is_empty() {
            return Err(ReportError::query("the query is empty"));
        }
        let mut statement = self.connection.prepare(sql).map_err(|e| self.failed(&e))?;
        stream_rows(&mut statement, sink, |e| self.failed(e))
    }
}

/// Executes a statement whose parameters are bound, or that has none, and streams the rows into `sink`.
pub(super) fn stream_rows(
    statement: &mut Statement<'_>,
    sink: &mut dyn Sink,
    failed: impl Fn(&duckdb::Error) -> ReportError,
) -> Result<(), ReportError> {
    let schema = statement.stream_arrow([]).map_err(|e| failed(&e))?.get_schema();
    sink.begin(schema)?;
    // The iterator of the crate panics where a later batch fails; stepping does not.
    while let Some(rows) = statement.step().map_err(|e| failed(&e))? {
        if sink.batch(&RecordBatch::from(rows))? == Flow::Enough {
            break;
        }
    }
    sink.finish()
}
