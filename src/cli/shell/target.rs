//! The place of the shell's answers.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::cli::terminal;
use crate::error::Error;
use crate::report::{Flow, Format, Medium, ReportError, Sink};

use super::pager::{self, Paged};

/// The place of the answers without `.output`.
pub enum Base<'a> {
    Terminal,
    Writer(&'a mut (dyn Write + Send)),
}

/// The file that `.output` named.
pub struct OutputFile {
    pub path: PathBuf,
    pub file: BufWriter<File>,
    pub format: Format,
    /// Number of answers written into it.
    pub answers: u64,
}

/// Opens `opened`, else `base`, and calls `write` with it; with `pager`, a long answer for the terminal goes through the pager.
///
/// # Errors
/// The errors of `write`, or when the target cannot be written.
pub fn write_to(
    base: &mut Base<'_>,
    opened: Option<&mut OutputFile>,
    pager: bool,
    write: impl FnOnce(&mut (dyn Write + Send), Medium) -> Result<(), ReportError>,
) -> Result<(), Error> {
    match (opened, base) {
        (Some(opened), _) => {
            let failed = |source| Error::io(format!("cannot write {}", opened.path.display()), source);
            let written = write(&mut opened.file, Medium::default()).and_then(|()| Ok(opened.file.flush()?));
            written.map_err(|error| match error {
                ReportError::Output(source) => failed(source),
                other => other.into(),
            })
        }
        (None, Base::Writer(out)) => {
            write(*out, Medium::default())?;
            out.flush().map_err(Error::output)
        }
        (None, Base::Terminal) => {
            let size = terminal::size();
            let program = if pager && size.is_some() { pager::program() } else { None };
            let lines = size.map_or(usize::MAX, |(_, rows)| usize::from(rows).saturating_sub(1));
            let mut paged = Paged::new(program, lines);
            let written = write(&mut paged, Medium { terminal_width: size.map(|(columns, _)| columns) });
            let shown = paged.finish();
            match written {
                // A broken pipe: the user has left the pager.
                Err(ReportError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                written => {
                    written?;
                    shown.map_err(Error::output)
                }
            }
        }
    }
}

/// Prints a query plan as it is: a plan is a drawing of many lines, which a table would break.
pub struct Plan<'a>(pub &'a mut (dyn Write + Send));

impl Sink for Plan<'_> {
    fn begin(&mut self, _: SchemaRef) -> Result<(), ReportError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let drawings = batch.columns().last().and_then(|column| column.as_string_opt::<i32>());
        for drawing in drawings.into_iter().flatten().flatten() {
            writeln!(self.0, "{}", drawing.trim_end())?;
        }
        Ok(Flow::More)
    }
}
