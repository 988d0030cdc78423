//! The place of the data: standard output, or a file that appears whole or not at all.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write, stderr, stdout};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use clap::builder::{PathBufValueParser, TypedValueParser};
use tempfile::NamedTempFile;

use crate::archive::Archive;
use crate::error::Error;
use crate::model::Instant;
use crate::report::{Format, Medium, printable, sink_for};
use crate::store::LocalStore;

use super::terminal::SanitizedWriter;

/// The place and format of a verb's result.
#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// Format of the rows: table, csv, json, ndjson, parquet, markdown, html [default: by the file's ending, else table]
    #[arg(long)]
    pub format: Option<Format>,
    /// Write into this file, outside every archive; the file appears whole or not at all
    #[arg(long, short, value_name = "FILE", value_parser = writable_file())]
    pub output: Option<PathBuf>,
}

/// Parses a path outside every archive: a foreign file breaks an archive, or replaces a file of it.
pub fn outside_archives() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| check_outside_archives(&path).map(|()| path))
}

/// Parses the path of a file that can be written. A verb that changes something must not fail only at its output.
pub fn writable_file() -> impl TypedValueParser<Value = PathBuf> {
    outside_archives().try_map(|path| match check_writable(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("cannot write this file: {error}")),
    })
}

/// Checks that [`to`] can write a file at this path, and leaves no trace.
fn check_writable(path: &Path) -> io::Result<()> {
    // Never open a pipe for a check: its reader would take the close for the end of the output.
    if is_special(path) { Ok(()) } else { stage(path).map(drop) }
}

/// Refuses a path inside an archive of this machine, and the archive itself.
pub fn check_outside_archives(path: &Path) -> Result<(), String> {
    match archive_around(path) {
        Some(archive) => Err(inside_archive(&archive.display())),
        None => Ok(()),
    }
}

pub fn inside_archive(archive: &dyn Display) -> String {
    format!("this place is inside the archive at {archive}: choose a place outside")
}

fn archive_around(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    // A directory that exists shows the true place behind links.
    let place = path.ancestors().find_map(|place| place.canonicalize().ok())?;
    place.ancestors().find(|directory| Archive::is_at(&LocalStore::new(*directory))).map(Path::to_owned)
}

impl OutputArgs {
    /// The format that the user asked for, or the one of the file's ending.
    pub fn format(&self) -> Format {
        let ending = self.output.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
        self.format.unwrap_or(match ending {
            Some("csv") => Format::Csv,
            Some("json") => Format::Json,
            Some("ndjson" | "jsonl") => Format::Ndjson,
            Some("parquet") => Format::Parquet,
            Some("md") => Format::Markdown,
            Some("html" | "htm") => Format::Html,
            _ => Format::Table,
        })
    }

    /// Opens the output and calls `write` with it.
    ///
    /// # Errors
    /// The errors of `write`, or when the output cannot be written; then the file keeps its old content.
    pub fn rows(&self, write: impl FnOnce(&mut (dyn Write + Send), Medium) -> Result<(), Error>) -> Result<(), Error> {
        if self.output.is_none() && self.format() == Format::Parquet && stdout().is_terminal() {
            return Err(Error::Usage("a terminal cannot show parquet: give -o FILE".into()));
        }
        let terminal_width = if self.output.is_none() { comfy_table::Table::new().width() } else { None };
        to(self.output.as_deref(), |out| write(out, Medium { terminal_width }))
    }

    /// Writes rows that are in memory.
    pub fn batch(&self, rows: &RecordBatch) -> Result<(), Error> {
        self.rows(|out, medium| {
            let mut sink = sink_for(self.format(), out, medium);
            sink.begin(rows.schema())?;
            let _ = sink.batch(rows)?;
            Ok(sink.finish()?)
        })
    }
}

/// Opens the file at `path`, or standard output, and calls `write` with it. A reader may close standard output early: this is no
/// error, so the exit code of a verb still tells its verdict.
///
/// # Errors
/// The errors of `write`, or when the output cannot be written; then the file keeps its old content.
pub fn to(path: Option<&Path>, write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>) -> Result<(), Error> {
    let Some(path) = path else {
        let out = stdout();
        let mut out: Box<dyn Write + Send> = if out.is_terminal() {
            Box::new(BufWriter::new(SanitizedWriter::new(out)))
        } else {
            Box::new(BufWriter::new(out))
        };
        return ignoring_closed(write(out.as_mut()).and_then(|()| out.flush().map_err(Error::output)));
    };
    let failed = |source| Error::io(format!("cannot write {}", path.display()), source);
    if is_special(path) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path).map_err(failed)?);
        write(&mut out).map_err(|error| match error {
            Error::Output { source } => failed(source),
            other => other,
        })?;
        return out.flush().map_err(failed);
    }
    let (staged, target) = stage(path).map_err(failed)?;
    let mut out = BufWriter::new(staged);
    write(&mut out).map_err(|error| match error {
        Error::OutputClosed => failed(ErrorKind::BrokenPipe.into()),
        Error::Output { source } => failed(source),
        other => other,
    })?;
    let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map_err(|e| failed(e.error))?;
    // Sync the directory, so that the new name is durable. Some systems cannot sync directories, and need no sync.
    if let Ok(directory) = File::open(directory_of(&target)) {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn ignoring_closed(written: Result<(), Error>) -> Result<(), Error> {
    match written {
        Err(Error::OutputClosed) => Ok(()),
        other => other,
    }
}

/// A writer that discards everything after the reader of `out` is gone. A verdict over all rows needs it: an error would end the
/// rows early.
pub struct UnreadWriter<'a> {
    out: &'a mut (dyn Write + Send),
    is_closed: bool,
}

impl<'a> UnreadWriter<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, is_closed: false }
    }

    fn unless_closed<T>(&mut self, done: T, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
        if self.is_closed {
            return Ok(done);
        }
        match write(self.out) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(done)
            }
            other => other,
        }
    }
}

impl Write for UnreadWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), |out| out.flush())
    }
}

/// Whether a pipe or a device is at the path, which a rename cannot replace.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|place| !place.is_file() && !place.is_dir())
}

/// A temporary file with the permissions of an ordinary file, and the place that it gets when it is whole. Errors do not name the
/// temporary file.
fn stage(path: &Path) -> io::Result<(NamedTempFile, PathBuf)> {
    // Follow a link, so that it remains a link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_directory = std::fs::metadata(&target).is_ok_and(|place| place.is_dir());
    if is_directory || target.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(ErrorKind::IsADirectory.into());
    }
    let create = |name: &Path| OpenOptions::new().read(true).write(true).create_new(true).mode(0o666).open(name);
    let staged = tempfile::Builder::new().prefix(".annals-").make_in(directory_of(&target), create)?;
    Ok((staged, target))
}

/// Writes a new file with these permissions; never replaces a file.
pub fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path as one word of a shell command.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Writes data to standard output. Its reader may have closed it, as in [`to`].
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    let mut out = stdout().lock();
    ignoring_closed(out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::output))
}

/// Makes a verb's result of rows in memory, column by column. Each column may lack a value, so that the schema does not depend on
/// the rows.
pub struct Columns<'a, Row> {
    rows: &'a [Row],
    columns: Vec<(&'static str, ArrayRef)>,
}

impl<'a, Row> Columns<'a, Row> {
    pub fn of(rows: &'a [Row]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    pub fn text<T: AsRef<str>>(self, name: &'static str, value: impl Fn(&'a Row) -> T) -> Self {
        self.text_or_null(name, |row| Some(value(row)))
    }

    pub fn text_or_null<T: AsRef<str>>(self, name: &'static str, value: impl Fn(&'a Row) -> Option<T>) -> Self {
        let values: StringArray = self.rows.iter().map(value).collect();
        self.with(name, values)
    }

    pub fn number(self, name: &'static str, value: impl Fn(&'a Row) -> u64) -> Self {
        self.number_or_null(name, |row| Some(value(row)))
    }

    pub fn number_or_null(self, name: &'static str, value: impl Fn(&'a Row) -> Option<u64>) -> Self {
        let values: UInt64Array = self.rows.iter().map(value).collect();
        self.with(name, values)
    }

    pub fn time_or_null(self, name: &'static str, value: impl Fn(&'a Row) -> Option<Instant>) -> Self {
        let values: TimestampMicrosecondArray = self.rows.iter().map(|row| value(row).map(Instant::micros)).collect();
        self.with(name, values)
    }

    pub fn flag(self, name: &'static str, value: impl Fn(&'a Row) -> bool) -> Self {
        let values: BooleanArray = self.rows.iter().map(|row| Some(value(row))).collect();
        self.with(name, values)
    }

    fn with(mut self, name: &'static str, values: impl Array + 'static) -> Self {
        self.columns.push((name, Arc::new(values)));
        self
    }

    pub fn batch(self) -> RecordBatch {
        let columns = self.columns.into_iter().map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns).expect("BUG: columns of one length")
    }
}

/// `1 team`, `3260 teams`: without separators, because scripts read these lines.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Writes a message to standard error, without terminal control characters. Ignores a closed standard error.
pub fn say(text: &str) {
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let _ = writeln!(stderr(), "{}{}", &line[..indent], printable(&line[indent..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, result: Result<&str, Error>) -> Result<(), Error> {
        to(Some(path), |out| {
            out.write_all(b"partial ").unwrap();
            out.write_all(result?.as_bytes()).map_err(Error::output)
        })
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.csv");
        assert!(write(&path, Err(Error::Usage("no".into()))).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        write(&path, Ok("one")).unwrap();
        assert!(write(&path, Err(Error::Usage("no".into()))).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "partial one");
        write(&path, Ok("two")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "partial two");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(write(&directory.path().join("nowhere/out.csv"), Ok("x")).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_without_a_trace() {
        let directory = tempfile::tempdir().unwrap();
        for (name, says) in [("nowhere/out.csv", "No such file"), (".", "is a directory"), ("new/", "is a directory")] {
            let error = check_writable(&directory.path().join(name)).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains(".annals-"), "{name}: {error}");
        }
        check_writable(&directory.path().join("out.csv")).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "team")), ["0 teams", "1 team", "2 teams"]);
    }

    #[test]
    fn a_writer_whose_reader_is_gone_takes_everything() {
        let (reader, mut pipe) = io::pipe().unwrap();
        drop(reader);
        let mut unread = UnreadWriter::new(&mut pipe);
        unread.write_all(b"one").and_then(|()| unread.write_all(b"two")).and_then(|()| unread.flush()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut unwritable = File::open(directory.path()).unwrap();
        let error = UnreadWriter::new(&mut unwritable).write(b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()));
    }

    #[test]
    fn a_path_with_spaces_is_quoted_for_the_shell() {
        assert_eq!(shell_word(Path::new("/tmp/annals-demo")), "/tmp/annals-demo");
        assert_eq!(shell_word(Path::new("/tmp/it's here")), r"'/tmp/it'\''s here'");
    }

    #[cfg(unix)]
    #[test]
    fn writing_through_a_link_keeps_the_link() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        File::create(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, Ok("x")).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "partial x");
    }

    #[test]
    fn the_file_ending_selects_the_default_format() {
        let format = |format, output: Option<&str>| OutputArgs { format, output: output.map(PathBuf::from) }.format();
        assert_eq!(format(None, None), Format::Table);
        assert_eq!(format(None, Some("a.csv")), Format::Csv);
        assert_eq!(format(None, Some("a.jsonl")), Format::Ndjson);
        assert_eq!(format(None, Some("a.txt")), Format::Table);
        assert_eq!(format(Some(Format::Json), Some("a.csv")), Format::Json);
    }
}
