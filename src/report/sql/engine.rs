//! The SQL engine: in memory, with limits, without the network, and with only our views.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use arrow::array::RecordBatch;
use duckdb::types::Value;
use duckdb::{Config, Connection, InterruptHandle, Statement, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::archive::{PinnedFiles, VerifyReport};
use crate::files::WorkFolder;

use super::exact_types::check_columns;
use super::one_spelling::{OneSpelling, SPELLING_FUNCTION};
use super::sink::{Flow, Sink};
use super::spill::make_spill;
use super::zone::{LocalTime, ZONE_FUNCTION};
use crate::report::ReportError;
use crate::report::catalog::Report;
use crate::report::error::ARCHIVE_FAILED;
use crate::report::output::pseudonyms::Pseudonyms;
use crate::report::sql::lexer;
use crate::report::views::columns::View;
use crate::report::views::data::ViewData;
use crate::report::views::lookup::{ArchiveRows, CurrentLookup, Lookup, ROWS_FUNCTION};
use crate::report::views::needs::Needs;
use crate::report::views::pruning::{Pruned, pruned};
use crate::report::views::sql_text::{MACROS, quoted_path, quoted_text, views_sql_of};

/// The engine's limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory_mib: u32,
    pub threads: u32,
    /// When the engine runs out of memory, it spills to a directory of its own under this one.
    pub spill_parent: PathBuf,
}

impl Default for Limits {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
        Self { memory_mib: 1_024, threads: threads.min(8), spill_parent: std::env::temp_dir() }
    }
}

/// An engine over one snapshot of an archive.
pub struct Engine {
    connection: Connection,
    data: Arc<ViewData>,
    lookup: CurrentLookup,
    /// The snapshot of an archive in a bucket, for views that are made later.
    remote: Option<Arc<ViewData>>,
    /// Files that views read, pinned in the cache.
    pinned: RefCell<Vec<Arc<PinnedFiles>>>,
    /// The views made so far: those that the first query names, and those that later queries needed.
    made: RefCell<BTreeSet<View>>,
    /// True while no statement has created or set anything: then a view's name always means our view.
    is_pristine: Cell<bool>,
    /// Whether somebody asked to stop the query.
    is_stop_asked: Arc<AtomicBool>,
    /// See [`Engine::pseudonymise`].
    pub(in crate::report) pseudonyms: Option<Arc<Pseudonyms>>,
    /// Keeps the directory while any connection uses it.
    _spill: Arc<WorkFolder>,
}

/// Stops an engine's query from another thread. Does nothing if no query runs, or the engine is gone.
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
    /// Creates the views of `data`.
    ///
    /// # Errors
    /// When the engine cannot start, a live file cannot be read, or [`Limits::spill_parent`] is not writable.
    pub fn open(data: ViewData, limits: &Limits) -> Result<Self, ReportError> {
        // Files in a bucket are fetched only when a query needs them.
        let wanted = if data.is_remote() { &[][..] } else { &View::ALL };
        Self::open_with(data, limits, wanted)
    }

    /// Like [`Engine::open`], for one query: first creates only the views that `sql` names, and the others when the query
    /// needs them.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_for(mut data: ViewData, limits: &Limits, sql: &str) -> Result<Self, ReportError> {
        // Only a reading statement can be prepared a second time with more views.
        if !lexer::only_reads(sql) {
            return Self::open(data, limits);
        }
        let mut wanted = Needs::of_sql([sql]).needed_views().to_vec();
        match pruned(sql, &data) {
            // Do not fetch the files that the query cannot need.
            Some(Pruned { left: (dataset, left), .. }) if data.is_remote() => {
                data.files.insert(dataset, left);
            }
            Some(pruned) => wanted.retain(|view| *view != pruned.view),
            None => {}
        }
        Self::open_with(data, limits, &wanted)
    }

    /// Like [`Engine::open`], with only the views and files in `needs`: each named file costs a read of its footer.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_needed(data: &ViewData, needs: &Needs, limits: &Limits) -> Result<Self, ReportError> {
        Self::open_with(data.narrowed(needs), limits, needs.needed_views())
    }

    /// Like [`Engine::open`], for reports, also in a confined engine. For an archive in a bucket, fetches the files of the
    /// views that the reports use.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_for_reports<'a>(
        data: ViewData,
        reports: impl IntoIterator<Item = &'a Report>,
        limits: &Limits,
    ) -> Result<Self, ReportError> {
        if !data.is_remote() {
            return Self::open(data, limits);
        }
        let mut wanted = Needs::of_reports(reports).needed_views().to_vec();
        // A pack also contains the coverage, which no report names.
        wanted.extend(Some(View::Coverage).filter(|view| !wanted.contains(view)));
        Self::open_with(data, limits, &wanted)
    }

    fn open_with(data: ViewData, limits: &Limits, wanted: &[View]) -> Result<Self, ReportError> {
        let remote = data.is_remote().then(|| Arc::new(data.clone()));
        let (data, files) = if data.is_remote() { data.pinned(wanted)? } else { (data, None) };
        data.check_files()?;
        let (spill, spill_path) = make_spill(&limits.spill_parent)?;
        let failed = |e: duckdb::Error| opening_failed(&data, &e);
        let config = Config::default()
            .enable_autoload_extension(false)
            .and_then(|config| config.with("autoinstall_known_extensions", "false"))
            .and_then(|config| config.with("allow_community_extensions", "false"))
            .and_then(|config| config.max_memory(&format!("{}MiB", limits.memory_mib)))
            .and_then(|config| config.threads(i64::from(limits.threads.max(1))))
            .and_then(|config| config.with("temp_directory", &spill_path))
            // An `ATTACH` of another kind of database loads an extension: here it finds none.
            .and_then(|config| config.with("extension_directory", &spill_path))
            .map_err(failed)?;
        let connection = Connection::open_in_memory_with_flags(config).map_err(failed)?;
        connection.register_scalar_function::<LocalTime>(ZONE_FUNCTION).map_err(failed)?;
        connection.register_scalar_function::<OneSpelling>(SPELLING_FUNCTION).map_err(failed)?;
        // A live file never changes, so its footer can be cached.
        connection.execute_batch("SET GLOBAL parquet_metadata_cache = true").map_err(failed)?;
        let lookup = CurrentLookup::new(Lookup::of(&data));
        connection.register_scalar_function_with_state::<ArchiveRows>(ROWS_FUNCTION, &lookup).map_err(failed)?;
        connection.execute_batch(&format!("{MACROS}{}", views_sql_of(&data, wanted))).map_err(failed)?;
        let made = RefCell::new(wanted.iter().copied().collect());
        let (is_pristine, is_stop_asked) = (Cell::new(true), Arc::default());
        let (data, spill, pinned) = (Arc::new(data), Arc::new(spill), RefCell::new(files.into_iter().collect()));
        let pseudonyms = None;
        Ok(Self {
            connection,
            data,
            lookup,
            remote,
            pinned,
            made,
            is_pristine,
            is_stop_asked,
            pseudonyms,
            _spill: spill,
        })
    }

    /// Another connection to the same engine for another thread, with the same views, limits and directory, and its own tables.
    pub(in crate::report) fn second_connection(&self) -> Result<Self, ReportError> {
        let connection = self.connection.try_clone().map_err(|e| self.failed(&e))?;
        Ok(Self {
            connection,
            data: Arc::clone(&self.data),
            lookup: self.lookup.clone(),
            remote: self.remote.clone(),
            pinned: self.pinned.clone(),
            made: self.made.clone(),
            is_pristine: self.is_pristine.clone(),
            is_stop_asked: Arc::clone(&self.is_stop_asked),
            pseudonyms: self.pseudonyms.clone(),
            _spill: Arc::clone(&self._spill),
        })
    }

    /// Recreates the views for the archive's current state; everything else that statements created remains.
    ///
    /// # Errors
    /// When a live file cannot be read; then some views can be old and some new.
    pub fn renew(&mut self, data: ViewData) -> Result<(), ReportError> {
        let wanted: Vec<View> = match data.is_remote() {
            true => self.made.borrow().iter().copied().collect(),
            false => View::ALL.to_vec(),
        };
        self.remote = data.is_remote().then(|| Arc::new(data.clone()));
        let (data, files) = data.pinned(&wanted)?;
        data.check_files()?;
        self.connection.execute_batch(&views_sql_of(&data, &wanted)).map_err(|e| opening_failed(&data, &e))?;
        self.made.replace(wanted.into_iter().collect());
        self.pinned.replace(files.into_iter().collect());
        self.lookup.replace(Lookup::of(&data));
        self.data = Arc::new(data);
        Ok(())
    }

    /// Confines the engine for untrusted reports: it can read the live files, but cannot read, write or reach anything else, and no
    /// statement can change a setting.
    pub fn confined(self) -> Result<Self, ReportError> {
        let files = self.data.files.values().flatten();
        // A view names a file by a pattern that matches only this file, and the engine checks both.
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

    /// The snapshot of the views.
    pub fn data(&self) -> &ViewData {
        &self.data
    }

    /// Starts to verify the archive on another thread. A query for the verdict waits for it.
    pub(in crate::report) fn start_verifying(&self) {
        let lookup = self.lookup.get();
        std::thread::spawn(move || {
            let _ = lookup.verified();
        });
    }

    /// The result of `verify`, computed once for this engine.
    pub(in crate::report) fn verified(&self) -> Result<VerifyReport, ReportError> {
        let lookup = self.lookup.get();
        let found = lookup.verified().map_err(|message| ReportError::Engine(format!("{ARCHIVE_FAILED}{message}")))?;
        Ok(found.cloned().unwrap_or_default())
    }

    #[cfg(test)]
    pub(in crate::report) fn has_verified(&self) -> bool {
        self.lookup.get().has_verified()
    }

    pub(in crate::report) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(in crate::report) fn failed(&self, error: &duckdb::Error) -> ReportError {
        match ReportError::of_engine(error, |text| self.data.advice_on(text)) {
            // When a thread of the engine fails, it stops the others, and the engine can report their interruption instead of the cause.
            ReportError::Interrupted if !self.is_stop_asked.load(Ordering::SeqCst) => ReportError::Engine(
                "a part of the query failed, and the engine does not name the cause: run the query again".to_owned(),
            ),
            error => error,
        }
    }

    /// Runs `sql` and streams the rows into `sink`; for several statements, the rows of the last one.
    pub fn query(&self, sql: &str, sink: &mut dyn Sink) -> Result<(), ReportError> {
        if lexer::all_statements(sql).next().is_none() {
            return Err(ReportError::query("the query is empty"));
        }
        if lexer::loads_extension(sql) {
            return Err(ReportError::query(
                "Annals loads no extension of the engine, and runs no statements of a file: no query reaches the network",
            ));
        }
        self.is_stop_asked.store(false, Ordering::SeqCst);
        let mut statement = self.prepare(sql)?;
        stream_rows(&mut statement, &[], sink, |e| self.failed(e))
    }

    /// Prepares the statement over fewer files if it clearly concerns a range of time. Else, or if that fails, prepares it unchanged over
    /// all views.
    fn prepare(&self, sql: &str) -> Result<Statement<'_>, ReportError> {
        if self.is_pristine.get()
            && let Some(pruned) = pruned(sql, &self.data)
            && let Ok(statement) = self.connection.prepare(&pruned.sql)
        {
            return Ok(statement);
        }
        self.is_pristine.set(self.is_pristine.get() && lexer::only_reads(sql));
        match self.connection.prepare(sql) {
            // The query can need another view; if not, its error message must list all views.
            Err(_) if self.make_missing(sql)? => self.connection.prepare(sql).map_err(|e| self.failed(&e)),
            prepared => prepared.map_err(|e| self.failed(&e)),
        }
    }

    /// Creates missing views that `sql` can need; returns whether there were any. For an archive in a bucket, only views that `sql`
    /// can name, because their files are fetched.
    fn make_missing(&self, sql: &str) -> Result<bool, ReportError> {
        let needs = if self.remote.is_some() { Needs::of_sql([sql]) } else { Needs::views(&View::ALL) };
        let needed = needs.needed_views().iter().copied();
        let missing: Vec<View> = needed.filter(|view| !self.made.borrow().contains(view)).collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let source = self.remote.as_ref().unwrap_or(&self.data);
        let (data, files) = source.pinned(&missing)?;
        data.check_files()?;
        self.connection.execute_batch(&views_sql_of(&data, &missing)).map_err(|e| opening_failed(&data, &e))?;
        self.pinned.borrow_mut().extend(files);
        self.made.borrow_mut().extend(missing);
        Ok(true)
    }
}

/// Runs a statement with the values of its parameters, in order, and streams the rows into `sink`.
pub fn stream_rows(
    statement: &mut Statement<'_>,
    values: &[Value],
    sink: &mut dyn Sink,
    failed: impl Fn(&duckdb::Error) -> ReportError,
) -> Result<(), ReportError> {
    let schema = statement.stream_arrow(params_from_iter(values)).map_err(|e| failed(&e))?.get_schema();
    check_columns(statement)?;
    sink.begin(schema)?;
    // The crate's iterator panics when a later batch fails; stepping does not.
    while let Some(rows) = statement.step().map_err(|e| failed(&e))? {
        if sink.batch(&RecordBatch::from(rows))? == Flow::Enough {
            break;
        }
    }
    sink.finish()
}

/// No query exists yet, so the error is never the query's fault.
fn opening_failed(data: &ViewData, error: &duckdb::Error) -> ReportError {
    match ReportError::of_engine(error, |text| data.advice_on(text)) {
        ReportError::Query { message, .. } => ReportError::Engine(message),
        other => other,
    }
}
