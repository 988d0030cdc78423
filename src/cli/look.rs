//! One consistent look at the archive, for verbs that ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::archive::{Archive, ArchiveError, LocalStore};
use crate::config::Config;
use crate::error::Error;
use crate::model::TeamId;
use crate::report::{Engine, Flow, Format, Named, ReportError, Sink, ViewData, sink_for};

use super::output::OutputArgs;
use super::{limits, signals};

/// The archive's directory, absolute.
///
/// # Errors
/// When the working directory is gone.
pub fn root(config: &Config) -> Result<PathBuf, Error> {
    std::path::absolute(&config.archive)
        .map_err(|source| Error::io(format!("cannot find {}", config.archive.display()), source))
}

/// The archive that is there.
///
/// # Errors
/// When there is none, or this program does not know its format.
pub fn open(config: &Config) -> Result<Archive, Error> {
    let root = root(config)?;
    match Archive::open(Arc::new(LocalStore::new(&root))) {
        Err(ArchiveError::NotAnArchive) => Err(Error::Usage(format!(
            "{}: no archive is here: `annals sync` makes one, and --archive names another place",
            root.display()
        ))),
        other => Ok(other?.keeping(config.grace)),
    }
}

/// The archive, if there is one.
///
/// # Errors
/// When this program does not know its format.
pub fn existing(config: &Config) -> Result<Option<Archive>, Error> {
    match Archive::open(Arc::new(LocalStore::new(root(config)?))) {
        Err(ArchiveError::NotAnArchive) => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// What the archive holds now.
///
/// # Errors
/// When there is no archive, or a ledger does not check.
pub fn view_data(config: &Config) -> Result<ViewData, Error> {
    look(config, false, &|_| true)
}

/// What the archive holds now of the teams of this shard.
///
/// # Errors
/// As [`view_data`].
pub fn own_view_data(config: &Config) -> Result<ViewData, Error> {
    look(config, false, &|team| config.shard.owns(team))
}

/// What the archive holds now, with the names of the teams.
///
/// # Errors
/// As [`view_data`].
pub fn named_view_data(config: &Config) -> Result<ViewData, Error> {
    look(config, true, &|_| true)
}

fn look(config: &Config, is_named: bool, keeps: &dyn Fn(&TeamId) -> bool) -> Result<ViewData, Error> {
    let (archive, root) = (open(config)?, root(config)?);
    let mut data = ViewData { archive: Some(archive.clone()), ..ViewData::default() };
    let place = utf8(&root)?;
    let teams: Vec<TeamId> = archive.teams()?.into_iter().filter(keeps).collect();
    archive.read_each(&teams, |reader| {
        data.add_state(place, reader.state());
        if is_named {
            data.names.put_archived(&archive, reader.state());
        }
    })?;
    Ok(data)
}

/// An engine over `data`, within the limits that `config` sets.
///
/// # Errors
/// When the engine cannot start, or a live file cannot be read.
pub fn engine(config: &Config, data: ViewData) -> Result<Engine, Error> {
    Ok(Engine::open_in(data, limits::limits(config), &limits::spill_parent(config))?)
}

/// Answers `sql` and writes the rows to where `output` says. A signal stops the query, and leaves nothing behind.
///
/// # Errors
/// When there is no archive, the query is wrong, or the result cannot be written.
pub fn answer(config: &Config, sql: &str, output: &OutputArgs) -> Result<(), Error> {
    answer_with(config, sql, output, false)
}

/// The same with the names of the teams in place of their ids, where rows are for people: as a table or a page.
///
/// # Errors
/// As [`answer`].
pub fn answer_named(config: &Config, sql: &str, output: &OutputArgs) -> Result<(), Error> {
    answer_with(config, sql, output, matches!(output.format(), Format::Table | Format::Html))
}

fn answer_with(config: &Config, sql: &str, output: &OutputArgs, is_named: bool) -> Result<(), Error> {
    let guard = signals::guard()?;
    let data = look(config, is_named, &|_| true)?;
    output.rows(|out, look| {
        let engine = Engine::open_for(data, limits::limits(config), &limits::spill_parent(config), sql)?;
        let _running = guard.running(engine.interrupter());
        let mut sink = sink_for(output.format(), out, look);
        match is_named {
            true => engine.query(sql, &mut Named::new(sink.as_mut(), &engine.data().names))?,
            false => engine.query(sql, sink.as_mut())?,
        }
        Ok(())
    })
}

/// What is known of an answer while it is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Output was made, after which nothing can be tried again.
    pub begun: bool,
    pub rows: u64,
    /// The statement is of a kind that makes no rows: what the engine reports of it is left out.
    pub is_rowless: bool,
    /// Nothing of it was written.
    pub is_quiet: bool,
}

/// A sink that keeps the tally of another one.
pub struct Watched<'a, 'b> {
    pub inner: Box<dyn Sink + 'a>,
    pub tally: &'b mut Tally,
}

impl Sink for Watched<'_, '_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.tally.begun = true;
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        self.tally.is_quiet = self.tally.is_rowless && matches!(names[..], ["Count" | "Success"]);
        if self.tally.is_quiet { Ok(()) } else { self.inner.begin(schema) }
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        if self.tally.is_quiet {
            return Ok(Flow::More);
        }
        self.tally.rows += batch.num_rows() as u64;
        self.inner.batch(batch)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        if self.tally.is_quiet { Ok(()) } else { self.inner.finish() }
    }
}

fn utf8(path: &Path) -> Result<&str, Error> {
    path.to_str().ok_or_else(|| ReportError::Path { path: path.display().to_string() }.into())
}
