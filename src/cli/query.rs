//! Opens the archive for the verbs that read it, and answers queries on one snapshot of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::archive::{Archive, ArchiveError, Cache, TeamReader};
use crate::config::Config;
use crate::error::Error;
use crate::model::{ArchivePlace, Digest, Location, TeamId};
use crate::report::{
    Engine, Flow, Format, Needs, ReportError, Sink, SnapshotSource, TeamNameSink, View, ViewData, remove_stale_spills,
    sessions_behind, sink_for,
};
use crate::store::{Store, open_store, open_store_keeping};

use super::output::{OutputArgs, check_outside_archives, say};
use super::public_key::expected_keys;
use super::{bars, limits, reading, signals};

/// The place of the archive's data; a directory becomes absolute.
///
/// # Errors
/// When the working directory does not exist.
pub fn location(config: &Config) -> Result<Location, Error> {
    absolute(&config.archive)
}

/// The places of the archive and its ledger; directories become absolute.
///
/// # Errors
/// As [`location`].
pub fn archive_place(config: &Config) -> Result<ArchivePlace, Error> {
    Ok(ArchivePlace { data: location(config)?, ledger: config.ledger.as_ref().map(absolute).transpose()? })
}

/// The places of the archive at `data`: the configured archive has the configured ledger, every other archive is whole.
///
/// # Errors
/// As [`location`].
pub fn place_at(config: &Config, data: &Location) -> Result<ArchivePlace, Error> {
    let (data, configured) = (absolute(data)?, archive_place(config)?);
    Ok(if data == configured.data { configured } else { ArchivePlace::whole(data) })
}

/// Makes a directory absolute.
///
/// # Errors
/// When the path is empty, or the working directory does not exist.
pub fn absolute(location: &Location) -> Result<Location, Error> {
    let Location::Local(path) = location else { return Ok(location.clone()) };
    if path.as_os_str().is_empty() {
        return Err(Error::Usage("the place of the archive is empty: name a directory or a bucket".to_owned()));
    }
    let path = std::path::absolute(path).map_err(|source| Error::io(format!("cannot find {location}"), source))?;
    Ok(Location::Local(path))
}

/// The store that holds the archive.
///
/// # Errors
/// When the working directory does not exist, or the environment's settings for the bucket are invalid.
pub fn store(config: &Config) -> Result<Arc<dyn Store>, Error> {
    Ok(open_store(&archive_place(config)?).map_err(ArchiveError::from)?)
}

/// Opens the archive, which must exist.
///
/// # Errors
/// When no archive exists, or this version does not know its format.
pub fn open(config: &Config) -> Result<Archive, Error> {
    open_in(config, store(config)?)
}

/// Opens the archive for a question. The cache keeps the ledger lines and snapshots of a bucket.
///
/// # Errors
/// As [`open`].
fn open_for_question(config: &Config) -> Result<Archive, Error> {
    let store = open_store_keeping(&archive_place(config)?, &cache_outside(config)?.files_directory());
    open_in(config, store.map_err(ArchiveError::from)?)
}

fn open_in(config: &Config, store: Arc<dyn Store>) -> Result<Archive, Error> {
    match Archive::open(store) {
        Err(ArchiveError::NotAnArchive) => Err(no_archive(&location(config)?)),
        other => {
            let mut archive = with_place(config, other)?.with_grace(config.grace_at(&config.archive));
            archive.checks.keys = expected_keys(config)?;
            Ok(archive)
        }
    }
}

/// The error that no archive is at `place`, with the next step.
pub fn no_archive(place: &Location) -> Error {
    let next = reading::check_no_data(place).map_or_else(|why| why, |()| "`annals sync` creates one".to_owned());
    Error::Usage(format!("{place}: no archive exists here: {next}; --archive names another place"))
}

/// Adds the archive's place to the error of an unfit manifest.
fn with_place(config: &Config, opened: Result<Archive, ArchiveError>) -> Result<Archive, Error> {
    match opened {
        Err(source) if source.is_wrong_ledger() || is_unfit(&source) => {
            Err(Error::ArchiveAt { location: archive_place(config)?.to_string(), source })
        }
        other => Ok(other?),
    }
}

fn is_unfit(error: &ArchiveError) -> bool {
    matches!(error, ArchiveError::Manifest { .. } | ArchiveError::Version { .. })
}

/// Opens the archive if it exists.
///
/// # Errors
/// When this version does not know its format.
pub fn existing(config: &Config) -> Result<Option<Archive>, Error> {
    match Archive::open(store(config)?) {
        Err(ArchiveError::NotAnArchive) => Ok(None),
        other => Ok(Some(with_place(config, other)?)),
    }
}

/// A snapshot of the archive.
///
/// # Errors
/// When no archive exists, or a ledger is not valid.
pub fn view_data(config: &Config) -> Result<ViewData, Error> {
    snapshot(config, false, &|_| true)
}

/// A snapshot of this shard's teams.
///
/// # Errors
/// As [`view_data`].
pub fn own_view_data(config: &Config) -> Result<ViewData, Error> {
    snapshot(config, false, &|team| config.shard.owns(team))
}

/// A snapshot of the archive for a report, with the names of the teams. If `team` is the id of a team, only this team needs a valid
/// ledger.
///
/// # Errors
/// As [`view_data`].
pub fn report_view_data(config: &Config, team: Option<&str>) -> Result<ViewData, Error> {
    let archive = open_for_question(config)?;
    let source = snapshot_source(config, archive.clone())?;
    let (mut data, mut invalid) = (source.empty_snapshot(), Vec::new());
    archive.try_each(&|_| true, |team, reader| {
        match reader {
            Ok(reader) => add_named(&mut data, &source, &reader),
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => invalid.push((team.clone(), error)),
        }
        Ok(())
    })?;
    // Another ledger may hold the same name, so only an id names a team for certain.
    let is_valid = team.is_some_and(|team| data.names.holds(team));
    for (broken, error) in invalid {
        if !is_valid {
            let other = data.teams.first().map_or_else(String::new, |other| {
                format!("; for a report of another team, give its id, such as --team {}", other.team_id)
            });
            return Err(Error::Refused(format!("{error}: no report shows team {broken} with this ledger{other}")));
        }
        say(&format!("annals: the report leaves out team {broken}, also its holds on the whole archive: {error}"));
    }
    Ok(data)
}

/// A snapshot of the archive with the names of the teams, for a pack: it states the result of `verify`, which reads the bucket, so each
/// cached file is compared with the ledger again.
///
/// # Errors
/// As [`view_data`].
pub fn evidence_view_data(config: &Config) -> Result<ViewData, Error> {
    let archive = open_for_question(config)?;
    let source = snapshot_source(config, archive.clone())?.checking_cache();
    let mut data = source.empty_snapshot();
    archive.read_each(&|_| true, |reader| add_named(&mut data, &source, &reader))?;
    Ok(data)
}

fn add_named(data: &mut ViewData, source: &SnapshotSource, reader: &TeamReader) {
    source.add(data, reader.state());
    source.add_name(data, reader.state());
}

/// The archive with its store or cache, for taking snapshots.
///
/// # Errors
/// When the engine cannot read files at that place, or the cache is inside an archive of this machine.
pub fn snapshot_source(config: &Config, archive: Archive) -> Result<SnapshotSource, Error> {
    let cache = cache_outside(config)?.with_progress(bars::fetching());
    Ok(SnapshotSource::new(archive, location(config)?, cache)?.with_retention(config.retention.clone()))
}

/// The configured cache of files from buckets.
pub fn cache(config: &Config) -> Cache {
    Cache::new(&config.cache.directory, config.cache.bytes)
}

/// The configured cache, for an archive in a bucket. Inside an archive of this machine, `verify` would find its files as orphans.
fn cache_outside(config: &Config) -> Result<Cache, Error> {
    check_cache_place(config).map_err(Error::Usage)?;
    Ok(cache(config))
}

/// Refuses a cache inside an archive of this machine.
pub fn check_cache_place(config: &Config) -> Result<(), String> {
    let directory = &config.cache.directory;
    match config.archive {
        Location::Local(_) => Ok(()),
        Location::Bucket(_) => {
            check_outside_archives(directory).map_err(|why| format!("[cache] directory {}: {why}", directory.display()))
        }
    }
}

/// Removes files from the cache of a bucket that are not live any more, and the spill files that killed queries left on this machine.
///
/// # Errors
/// When a ledger is invalid, or a file cannot be removed.
pub fn forget_cached(config: &Config, archive: &Archive) -> Result<(), Error> {
    [config.sql.temp_directory.clone().unwrap_or_else(std::env::temp_dir), std::env::temp_dir()]
        .iter()
        .for_each(|directory| remove_stale_spills(directory));
    if matches!(config.archive, Location::Local(_)) {
        return Ok(());
    }
    let mut live: BTreeSet<Digest> = BTreeSet::new();
    archive.read_each(&|_| true, |reader| live.extend(reader.state().files.values().map(|file| file.sha256)))?;
    cache(config).keep_only(&live).map(drop).map_err(|error| Error::Refused(error.to_string()))
}

fn snapshot(config: &Config, is_named: bool, keeps: &dyn Fn(&TeamId) -> bool) -> Result<ViewData, Error> {
    let archive = open_for_question(config)?;
    let source = snapshot_source(config, archive.clone())?;
    let mut data = source.empty_snapshot();
    archive.read_each(keeps, |reader| {
        source.add(&mut data, reader.state());
        if is_named {
            source.add_name(&mut data, reader.state());
        }
    })?;
    Ok(data)
}

/// Starts an engine over `data`, with the limits of `config`.
///
/// # Errors
/// When the engine cannot start, or cannot read a live file.
pub fn engine(config: &Config, data: ViewData) -> Result<Engine, Error> {
    Ok(Engine::open(data, &limits::limits(config))?)
}

/// Runs `sql` and writes the rows to `output`. A signal stops the query and removes its temporary files.
///
/// # Errors
/// When no archive exists, the query is wrong, or the result cannot be written.
pub fn answer(config: &Config, sql: &str, output: &OutputArgs) -> Result<(), Error> {
    answer_with(config, sql, output, false)
}

/// Like [`answer`]. In the formats for people (table, HTML), the names of the teams replace their ids.
///
/// # Errors
/// As [`answer`].
pub fn answer_named(config: &Config, sql: &str, output: &OutputArgs) -> Result<(), Error> {
    answer_with(config, sql, output, matches!(output.format(), Format::Table | Format::Html))
}

fn answer_with(config: &Config, sql: &str, output: &OutputArgs, is_named: bool) -> Result<(), Error> {
    let guard = signals::guard()?;
    let data = snapshot(config, is_named, &|_| true)?;
    output.rows(|out, medium| {
        let engine = Engine::open_for(data, &limits::limits(config), sql)?;
        let _running = guard.running(engine.interrupter());
        let mut sink = sink_for(output.format(), out, medium);
        match is_named {
            true => engine.query(sql, &mut TeamNameSink::new(sink.as_mut(), &engine.data().names))?,
            false => engine.query(sql, sink.as_mut())?,
        }
        warn_of_sessions(engine.data(), sql);
        Ok(())
    })
}

/// Says on standard error that sessions lack archived events, if `sql` names sessions.
pub fn warn_of_sessions(data: &ViewData, sql: &str) {
    if !sql.to_ascii_lowercase().contains(View::Sessions.as_str()) {
        return;
    }
    match sessions_behind(data, &Needs::views(&[View::Sessions]), None).as_slice() {
        [] => {}
        [sentence] => say(sentence),
        all => say(&format!("sessions are not complete in {} teams: `annals status` names them", all.len())),
    }
}

/// Counts an answer while it is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Output was written, so the query cannot be retried.
    pub begun: bool,
    pub rows: u64,
    /// The statement returns no rows: the engine's report about it is left out.
    pub is_rowless: bool,
    /// The engine's report was left out.
    pub is_quiet: bool,
}

/// A sink that counts the rows of an answer, and passes them to the inner sink.
pub struct TallySink<'a, 'b> {
    pub inner: Box<dyn Sink + 'a>,
    pub tally: &'b mut Tally,
}

impl Sink for TallySink<'_, '_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LocalStore;

    #[test]
    fn a_cache_inside_an_archive_of_this_machine_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("local");
        let _ = Archive::open_or_create(Arc::new(LocalStore::new(&root)), || "a".into()).unwrap();
        for (archive, directory, is_refused) in [
            ("s3://bucket/x", "local/cache", true),
            ("s3://bucket/x", "local", true),
            ("s3://bucket/x", "cache", false),
            ("local", "local/cache", false),
        ] {
            let text = format!("archive = \"{archive}\"\n[cache]\ndirectory = \"{directory}\"\n");
            let config = Config::of_text(&place.path().join("annals.toml"), &text).unwrap();
            let refused = cache_outside(&config).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), is_refused, "{archive} {directory}: {refused:?}");
            assert!(refused.is_none_or(|why| why.contains("[cache] directory") && why.contains("local")));
        }
    }
}
