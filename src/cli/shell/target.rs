//! Where answers go.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::cli::terminal;
use crate::error::Error;
use crate::report::{Flow, Format, Look, ReportError, Sink};

use super::pager::{self, Paged};

/// Where answers go unless `.output` says otherwise.
pub enum Base<'a> {
    Terminal,
    Writer(&'a mut (dyn Write + Send)),
}

/// The file that `.output` named.
pub struct Opened {
    pub path: PathBuf,
    pub file: BufWriter<File>,
    pub format: Format,
    /// Answers written into it.
    pub answers: u64,
}

/// Lets `write` write an answer to `opened`, else to `base`; a long one for the terminal through the pager, if `pager`.
///
/// # Errors
/// Those of `write`, or when the place cannot be written.
pub fn write_to(
    base: &mut Base<'_>,
    opened: Option<&mut Opened>,
    pager: bool,
    write: impl FnOnce(&mut (dyn Write + Send), Look) -> Result<(), ReportError>,
) -> Result<(), Error> {
    match (opened, base) {
        (Some(opened), _) => {
            let failed = |source| Error::io(format!("cannot write {}", opened.path.display()), source);
            let written = write(&mut opened.file, Look::default()).and_then(|()| Ok(opened.file.flush()?));
            written.map_err(|error| match error {
                ReportError::Output(source) => failed(source),
                other => other.into(),
            })
        }
        (None, Base::Writer(out)) => {
            write(*out, Look::default())?;
            out.flush().map_err(Error::output)
        }
        (None, Base::Terminal) => {
            let size = terminal::size();
            let program = if pager && size.is_some() { pager::program() } else { None };
            let lines = size.map_or(usize::MAX, |(_, rows)| usize::from(rows).saturating_sub(1));
            let mut paged = Paged::new(program, lines);
            let written = write(&mut paged, Look { terminal_width: size.map(|(columns, _)| columns) });
            let shown = paged.finish();
            match written {
                // Whoever leaves the pager has seen enough.
                Err(ReportError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                written => {
                    written?;
                    shown.map_err(Error::output)
                }
            }
        }
    }
}

/// A query plan is a drawing of many lines, which no table can hold.
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

    fn finish(&mut self) -> Result<(), ReportError> {
        Ok(())
    }
}
