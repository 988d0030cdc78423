//! The SQL engine: in memory, bounded, without the network, with the views and nothing else in it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use arrow::array::RecordBatch;
use duckdb::types::Value;
use duckdb::{Config, Connection, InterruptHandle, Statement, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::archive::{Loan, VerifyReport};

use super::ReportError;
use super::catalog::Report;
use super::columns::View;
use super::data::ViewData;
use super::error::ARCHIVE_FAILED;
use super::lexer;
use super::lookup::{ArchiveRows, Current, Lookup, ROWS_FUNCTION};
use super::narrow::{Narrowed, mentioned, narrowed};
use super::needs::Needs;
use super::printed::check_columns;
use super::sink::{Flow, Sink};
use super::spill::Spill;
use super::views::{quoted_path, quoted_text, views_sql_of};
use super::zone::{LocalTime, ZONE_FUNCTION};

/// What the engine may use. What does not fit into the memory is spilled to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    data: Arc<ViewData>,
    lookup: Current,
    /// The look whose files stand in a bucket, for views that are made later.
    remote: Option<Arc<ViewData>>,
    /// Files that views read, borrowed from the cache.
    loans: RefCell<Vec<Arc<Loan>>>,
    /// The views that are made: those that the first question names, and what later ones turned out to need.
    made: RefCell<BTreeSet<View>>,
    /// Whether nothing but our views can be meant by their names: no statement has made or set anything.
    is_pristine: Cell<bool>,
    /// Whether somebody wanted the query stopped.
    is_stop_asked: Arc<AtomicBool>,
    /// Its directory stays as long as anybody works with it.
    _spill: Arc<Spill>,
}

/// Stops the query that an engine runs, from another thread. Does nothing where none runs, or the engine is gone.
#[derive(Clone)]
pub struct Interrupter {
    handle: Arc<InterruptHandle>,
    is_asked: Arc<AtomicBool>,
}

impl Interrupter {
    pub fn interrupt(&self) {
        self.is_asked.store(true, Ordering::SeqCst);
        self.handle.interrupt();
    }
}

impl Engine {
    /// Makes the views of `data`; what does not fit into the memory goes to the system's directory for such files.
    ///
    /// # Errors
    /// As [`Engine::open_in`].
    pub fn open(data: ViewData, limits: Limits) -> Result<Self, ReportError> {
        Self::open_in(data, limits, &std::env::temp_dir())
    }

    /// Makes the views of `data`. What does not fit into the memory goes to a directory under `spill_parent` that is
    /// removed with the engine.
    ///
    /// # Errors
    /// When the engine cannot start, a live file cannot be read, or `spill_parent` cannot be written.
    pub fn open_in(data: ViewData, limits: Limits, spill_parent: &Path) -> Result<Self, ReportError> {
        // What stands in a bucket is fetched when a question needs it.
        let wanted = if data.is_remote() { &[][..] } else { &View::ALL };
        Self::open_with(data, limits, spill_parent, wanted)
    }

    /// As [`Engine::open_in`], for one question: views that `sql` does not need are made only if it turns out to need
    /// them.
    ///
    /// # Errors
    /// As [`Engine::open_in`].
    pub fn open_for(mut data: ViewData, limits: Limits, spill_parent: &Path, sql: &str) -> Result<Self, ReportError> {
        // Only what reads can be prepared a second time, when it turns out to need more.
        if !lexer::only_reads(sql) {
            return Self::open_in(data, limits, spill_parent);
        }
        let mut wanted = mentioned(sql);
        match narrowed(sql, &data) {
            // What is left out is not fetched.
            Some(Narrowed { left: (dataset, left), .. }) if data.is_remote() => {
                data.files.insert(dataset, left);
            }
            Some(narrowed) => wanted.retain(|view| *view != narrowed.view),
            None => {}
        }
        Self::open_with(data, limits, spill_parent, &wanted)
    }

    /// As [`Engine::open_in`], with what `needs` names and nothing else: naming a file costs its footer.
    ///
    /// # Errors
    /// As [`Engine::open_in`].
    pub fn open_needed(
        data: &ViewData,
        needs: &Needs,
        limits: Limits,
        spill_parent: &Path,
    ) -> Result<Self, ReportError> {
        Self::open_with(data.narrowed(needs), limits, spill_parent, needs.needed_views())
    }

    /// As [`Engine::open_in`], for reports, also for a confined engine. Of an archive in a bucket it fetches the files of the
    /// views that the reports read.
    ///
    /// # Errors
    /// As [`Engine::open_in`].
    pub fn open_for_reports<'a>(
        data: ViewData,
        reports: impl IntoIterator<Item = &'a Report>,
        limits: Limits,
        spill_parent: &Path,
    ) -> Result<Self, ReportError> {
        if !data.is_remote() {
            return Self::open_in(data, limits, spill_parent);
        }
        let mut wanted = Needs::of_reports(reports).needed_views().to_vec();
        // A pack also holds the coverage, which no report may name.
        wanted.extend(Some(View::Coverage).filter(|view| !wanted.contains(view)));
        Self::open_with(data, limits, spill_parent, &wanted)
    }

    fn open_with(data: ViewData, limits: Limits, spill_parent: &Path, wanted: &[View]) -> Result<Self, ReportError> {
        let remote = data.is_remote().then(|| Arc::new(data.clone()));
        let (data, loan) = if data.is_remote() { data.borrowed(wanted)? } else { (data, None) };
        data.check_files()?;
        let spill = Spill::make(spill_parent)?;
        let failed = |e: duckdb::Error| opening_failed(&data, &e);
        let config = Config::default()
            .enable_autoload_extension(false)
            .and_then(|config| config.with("autoinstall_known_extensions", "false"))
            .and_then(|config| config.with("allow_community_extensions", "false"))
            .and_then(|config| config.max_memory(&format!("{}MiB", limits.memory_mib)))
            .and_then(|config| config.threads(i64::from(limits.threads.max(1))))
            .map_err(failed)?
            .with("temp_directory", spill.path()?)
            .map_err(failed)?;
        let connection = Connection::open_in_memory_with_flags(config).map_err(failed)?;
        connection.register_scalar_function::<LocalTime>(ZONE_FUNCTION).map_err(failed)?;
        // A live file never changes, so its footer is read once.
        connection.execute_batch("SET GLOBAL parquet_metadata_cache = true").map_err(failed)?;
        let lookup = Current::new(Lookup::of(&data));
        connection.register_scalar_function_with_state::<ArchiveRows>(ROWS_FUNCTION, &lookup).map_err(failed)?;
        connection.execute_batch(&views_sql_of(&data, wanted)).map_err(failed)?;
        let made = RefCell::new(wanted.iter().copied().collect());
        let (is_pristine, is_stop_asked) = (Cell::new(true), Arc::default());
        let (data, spill, loans) = (Arc::new(data), Arc::new(spill), RefCell::new(loan.into_iter().collect()));
        Ok(Self { connection, data, lookup, remote, loans, made, is_pristine, is_stop_asked, _spill: spill })
    }

    /// Another connection to the same engine, for another thread: the same views, limits and directory, and tables of its own.
    ///
    /// # Errors
    /// When the engine fails.
    pub(super) fn beside(&self) -> Result<Self, ReportError> {
        let connection = self.connection.try_clone().map_err(|e| self.failed(&e))?;
        Ok(Self {
            connection,
            data: Arc::clone(&self.data),
            lookup: self.lookup.clone(),
            remote: self.remote.clone(),
            loans: self.loans.clone(),
            made: self.made.clone(),
            is_pristine: self.is_pristine.clone(),
            is_stop_asked: Arc::clone(&self.is_stop_asked),
            _spill: Arc::clone(&self._spill),
        })
    }

    /// [`Engine::open`], then [`Engine::confined`].
    ///
    /// # Errors
    /// Theirs.
    pub fn open_confined(data: ViewData, limits: Limits) -> Result<Self, ReportError> {
        Self::open(data, limits)?.confined()
    }

    /// Makes the views anew, of what the archive holds now; all else that was made or set stays.
    ///
    /// # Errors
    /// When a live file cannot be read; the views are then as they were, or partly new.
    pub fn renew(&mut self, data: ViewData) -> Result<(), ReportError> {
        let wanted: Vec<View> = match data.is_remote() {
            true => self.made.borrow().iter().copied().collect(),
            false => View::ALL.to_vec(),
        };
        self.remote = data.is_remote().then(|| Arc::new(data.clone()));
        let (data, loan) = data.borrowed(&wanted)?;
        data.check_files()?;
        self.connection.execute_batch(&views_sql_of(&data, &wanted)).map_err(|e| opening_failed(&data, &e))?;
        self.made.replace(wanted.into_iter().collect());
        self.loans.replace(loan.into_iter().collect());
        self.lookup.replace(Lookup::of(&data));
        self.data = Arc::new(data);
        Ok(())
    }

    /// Made fit for reports of strangers: beyond the live files nothing can be read, written or reached any more, and no
    /// setting can be changed.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn confined(self) -> Result<Self, ReportError> {
        let files = self.data.files.values().flatten();
        // A view names a file by a pattern that fits it alone, and the engine asks for both.
        let texts = files.flat_map(|file| [quoted_text(&file.path), quoted_path(&file.path)]);
        let allowed = texts.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        let confine = format!(
            "SET allowed_paths = [{allowed}]; SET enable_external_access = false; SET lock_configuration = true"
        );
        self.connection.execute_batch(&confine).map_err(|e| ReportError::Engine(e.to_string()))?;
        Ok(self)
    }

    pub fn interrupter(&self) -> Interrupter {
        Interrupter { handle: self.connection.interrupt_handle(), is_asked: Arc::clone(&self.is_stop_asked) }
    }

    /// What the views were made of.
    pub fn data(&self) -> &ViewData {
        &self.data
    }

    /// Begins to verify the archive in a thread of its own. Whoever asks for the verdict waits for it.
    pub(super) fn start_verifying(&self) {
        let lookup = self.lookup.get();
        std::thread::spawn(move || {
            let _ = lookup.verified();
        });
    }

    /// What `verify` says of the archive: found once for all who ask this engine.
    ///
    /// # Errors
    /// When the archive cannot be read at all.
    pub(super) fn verified(&self) -> Result<VerifyReport, ReportError> {
        let lookup = self.lookup.get();
        let found = lookup.verified().map_err(|message| ReportError::Engine(format!("{ARCHIVE_FAILED}{message}")))?;
        Ok(found.cloned().unwrap_or_default())
    }

    #[cfg(test)]
    pub(super) fn has_verified(&self) -> bool {
        self.lookup.get().has_verified()
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn failed(&self, error: &duckdb::Error) -> ReportError {
        match ReportError::of_engine(error, |text| self.data.names_a_file(text)) {
            // Where one thread of the engine fails, it stops the others, and sometimes tells of theirs.
            ReportError::Interrupted if !self.is_stop_asked.load(Ordering::SeqCst) => {
                ReportError::Engine("a part of the query failed, and it was not told which; ask again".to_owned())
            }
            error => error,
        }
    }

    /// Answers `sql`, streaming the rows into `sink`; of several statements the last one's.
    ///
    /// # Errors
    /// When the query is wrong, the engine fails, or the sink does.
    pub fn query(&self, sql: &str, sink: &mut dyn Sink) -> Result<(), ReportError> {
        if sql.trim().is_empty() {
            return Err(ReportError::query("the query is empty"));
        }
        self.is_stop_asked.store(false, Ordering::SeqCst);
        let mut statement = self.prepare(sql)?;
        stream_rows(&mut statement, sink, |e| self.failed(e))
    }

    /// The statement over fewer files, where it is plainly about a span of time; else, and where that cannot be prepared,
    /// as it is, over all views.
    fn prepare(&self, sql: &str) -> Result<Statement<'_>, ReportError> {
        if self.is_pristine.get()
            && let Some(narrowed) = narrowed(sql, &self.data)
            && let Ok(statement) = self.connection.prepare(&narrowed.sql)
        {
            return Ok(statement);
        }
        self.is_pristine.set(self.is_pristine.get() && lexer::only_reads(sql));
        match self.connection.prepare(sql) {
            // It may need another view, and if not, its error is to name them.
            Err(_) if self.make_missing(sql)? => self.connection.prepare(sql).map_err(|e| self.failed(&e)),
            prepared => prepared.map_err(|e| self.failed(&e)),
        }
    }

    /// Makes the views that `sql` may need and that are not made yet; whether there were any. Of an archive in a bucket only
    /// those that it may be about, since each is fetched.
    fn make_missing(&self, sql: &str) -> Result<bool, ReportError> {
        let needed = if self.remote.is_some() { mentioned(sql) } else { View::ALL.to_vec() };
        let missing: Vec<View> = needed.into_iter().filter(|view| !self.made.borrow().contains(view)).collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let look = self.remote.as_ref().unwrap_or(&self.data);
        let (data, loan) = look.borrowed(&missing)?;
        data.check_files()?;
        self.connection.execute_batch(&views_sql_of(&data, &missing)).map_err(|e| opening_failed(&data, &e))?;
        self.loans.borrow_mut().extend(loan);
        self.made.borrow_mut().extend(missing);
        Ok(true)
    }
}

/// Executes a statement that has no parameters, and streams the rows into `sink`.
pub(super) fn stream_rows(
    statement: &mut Statement<'_>,
    sink: &mut dyn Sink,
    failed: impl Fn(&duckdb::Error) -> ReportError,
) -> Result<(), ReportError> {
    stream_bound(statement, &[], sink, failed)
}

/// Executes a statement with its parameters' values, in their order, and streams the rows into `sink`.
pub(super) fn stream_bound(
    statement: &mut Statement<'_>,
    values: &[Value],
    sink: &mut dyn Sink,
    failed: impl Fn(&duckdb::Error) -> ReportError,
) -> Result<(), ReportError> {
    let schema = statement.stream_arrow(params_from_iter(values)).map_err(|e| failed(&e))?.get_schema();
    check_columns(statement)?;
    sink.begin(schema)?;
    // The iterator of the crate panics where a later batch fails; stepping does not.
    while let Some(rows) = statement.step().map_err(|e| failed(&e))? {
        if sink.batch(&RecordBatch::from(rows))? == Flow::Enough {
            break;
        }
    }
    sink.finish()
}

/// While the views are made there is no query that could be wrong.
fn opening_failed(data: &ViewData, error: &duckdb::Error) -> ReportError {
    match ReportError::of_engine(error, |text| data.names_a_file(text)) {
        ReportError::Query { message, .. } => ReportError::Engine(message),
        other => other,
    }
}
