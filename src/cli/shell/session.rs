//! A shell session: its settings, and how it answers a statement.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::error::Error;
use crate::report::lexer::{self, Kind};
use crate::report::{Engine, Format, Medium, ReportError, Sink, sink_for};

use super::catalog::{Relation, relations};
use super::command::{self, ShellCommand};
use super::target::{Base, OutputFile, Plan, write_to};
use crate::cli::output::{self, OutputArgs};
use crate::cli::query::{self, Tally, TallySink};
use crate::cli::signals::Guard;

/// Stops files that `.read` each other forever.
const READ_DEPTH_MAX: u32 = 16;
/// Statements that return no rows: the shell does not print the engine's report about them.
const ROWLESS: [&str; 28] = [
    "alter",
    "analyze",
    "attach",
    "begin",
    "checkpoint",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "delete",
    "detach",
    "drop",
    "execute",
    "export",
    "grant",
    "import",
    "insert",
    "merge",
    "prepare",
    "reset",
    "rollback",
    "set",
    "start",
    "truncate",
    "update",
    "use",
    "vacuum",
];

/// Whether the shell continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    Go,
    Exit,
}

pub struct Session<'a> {
    config: &'a Config,
    guard: &'a Guard,
    engine: Engine,
    clock: SystemClock,
    base: Base<'a>,
    /// Number of answers written without `.output`.
    answers: u64,
    opened: Option<OutputFile>,
    format: Option<Format>,
    timer: bool,
    pager: bool,
    depth: u32,
    /// A person types the statements; else they come from a script.
    is_person: bool,
    has_new_names: bool,
    /// The time of the engine's snapshot of the archive.
    snapshot_at: Duration,
}

/// The shell renews an older snapshot of the archive. `vacuum` keeps replaced files for at least two hours.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(3_600);

impl<'a> Session<'a> {
    pub fn new(config: &'a Config, guard: &'a Guard, engine: Engine, base: Base<'a>, format: Option<Format>) -> Self {
        let is_shown = matches!(base, Base::Terminal);
        let clock = SystemClock::new();
        Self {
            config,
            guard,
            engine,
            snapshot_at: clock.monotonic(),
            clock,
            base,
            answers: 0,
            opened: None,
            format,
            timer: is_shown,
            pager: is_shown,
            depth: 0,
            is_person: false,
            has_new_names: false,
        }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// From now on, a person types the statements.
    pub fn begin_interaction(&mut self) {
        self.is_person = true;
        output::say(&format!(
            "annals {}: SQL on the archive {}. .help lists the commands; .tables lists the tables and views",
            env!("CARGO_PKG_VERSION"),
            self.config.archive
        ));
    }

    /// Whether the names for completion changed since the last call.
    pub fn takes_new_names(&mut self) -> bool {
        std::mem::take(&mut self.has_new_names)
    }

    /// Runs the statements and commands of `source` in order, each as soon as it is complete. An error names the script
    /// `name`.
    ///
    /// # Errors
    /// The first error; the rest of the script does not run.
    pub fn script(&mut self, name: Option<&Path>, source: impl BufRead) -> Result<Next, Error> {
        let is_typed = self.depth == 0 && self.is_person;
        let place = |line: usize| match name {
            Some(name) => format!("{}: line {line}: ", name.display()),
            None if is_typed => String::new(),
            None => format!("line {line}: "),
        };
        let (mut pending, mut first) = (String::new(), 1);
        for (at, line) in super::lines(source).enumerate() {
            let line = line.map_err(|source| Error::io("cannot read the statements", source))?;
            if command::is_command(&line) && is_blank(&pending) {
                if self.command(&line).map_err(|error| at_place(error, &place(at + 1)))? == Next::Exit {
                    return Ok(Next::Exit);
                }
                continue;
            }
            pending.push_str(&line);
            pending.push('\n');
            if !line.contains(';') {
                continue;
            }
            let (found, rest) = lexer::statements(&pending);
            for statement in found {
                self.ask(&statement.sql).map_err(|error| at_place(error, &place(first + statement.line)))?;
            }
            first += pending[..rest].matches('\n').count();
            pending.drain(..rest);
        }
        if let Some(statement) = lexer::statement(&pending, 0..pending.len()) {
            self.ask(&statement.sql).map_err(|error| at_place(error, &place(first + statement.line)))?;
        }
        Ok(Next::Go)
    }

    fn command(&mut self, line: &str) -> Result<Next, Error> {
        let switch = |on: bool| if on { "on" } else { "off" };
        match command::parse(line).map_err(Error::Usage)? {
            ShellCommand::Help => self.print(command::HELP)?,
            ShellCommand::Tables => {
                let names = relations(&self.engine)?.into_iter().map(|relation| relation.name + "\n");
                self.print(&names.collect::<String>())?;
            }
            ShellCommand::Schema(name) => self.print_schema(name.as_deref())?,
            ShellCommand::Timer(None) => output::say(&format!("the timer is {}", switch(self.timer))),
            ShellCommand::Timer(Some(on)) => self.timer = on,
            ShellCommand::Pager(None) => output::say(&format!("the pager is {}", switch(self.pager))),
            ShellCommand::Pager(Some(on)) => self.pager = on,
            ShellCommand::Format(None) => output::say(&format!("the format is {}", self.format().as_str())),
            ShellCommand::Format(Some(format)) => {
                self.format = Some(format);
                if let Some(opened) = &mut self.opened {
                    opened.format = format;
                }
            }
            ShellCommand::Output(None) => self.opened = None,
            ShellCommand::Output(Some(path)) => self.open_output(&path)?,
            ShellCommand::Read(path) => return self.read(&path),
            ShellCommand::Refresh => {
                self.engine.renew(query::view_data(self.config)?)?;
                self.has_new_names = true;
            }
            ShellCommand::Exit => return Ok(Next::Exit),
        }
        Ok(Next::Go)
    }

    /// Sends answers to the file at `path` from now on, and empties the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn open_output(&mut self, path: &Path) -> Result<(), Error> {
        output::check_outside_archives(path).map_err(|why| Error::Usage(format!("{}: {why}", path.display())))?;
        let file =
            File::create(path).map_err(|source| Error::io(format!("cannot write {}", path.display()), source))?;
        let by_ending = OutputArgs { format: None, output: Some(path.to_owned()) }.format();
        let format = if by_ending == Format::Table { self.format.unwrap_or(by_ending) } else { by_ending };
        self.opened = Some(OutputFile { path: path.to_owned(), file: BufWriter::new(file), format, answers: 0 });
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<Next, Error> {
        if self.depth == READ_DEPTH_MAX {
            let reason = format!("{}: .read is nested more than {READ_DEPTH_MAX} files deep", path.display());
            return Err(Error::Usage(reason));
        }
        let file = File::open(path).map_err(|e| Error::Usage(format!("cannot read {}: {e}", path.display())))?;
        self.depth += 1;
        let done = self.script(Some(path), BufReader::new(file));
        self.depth -= 1;
        done
    }

    fn print_schema(&mut self, name: Option<&str>) -> Result<(), Error> {
        let known = relations(&self.engine)?;
        let is_asked = |relation: &&Relation| name.is_none_or(|name| relation.name.eq_ignore_ascii_case(name));
        let asked: Vec<&Relation> = known.iter().filter(is_asked).collect();
        if let (Some(name), true) = (name, asked.is_empty()) {
            return Err(Error::Usage(format!("no table or view has the name {name:?}: .tables lists them")));
        }
        let mut text = String::new();
        for relation in asked {
            let columns = relation.columns.iter().map(|(column, kind)| format!("  {column} {kind}"));
            text.push_str(&format!("{} (\n{}\n)\n", relation.name, columns.collect::<Vec<_>>().join(",\n")));
        }
        self.print(&text)
    }

    fn format(&self) -> Format {
        self.opened.as_ref().map(|opened| opened.format).or(self.format).unwrap_or(Format::Table)
    }

    /// Writes the shell's own text to the place of the answers.
    fn print(&mut self, text: &str) -> Result<(), Error> {
        self.write(|out, _| Ok(out.write_all(text.as_bytes())?))
    }

    /// Runs one statement. Replaced files remain for the grace, which is longer than [`SNAPSHOT_AGE_MAX`].
    fn ask(&mut self, sql: &str) -> Result<(), Error> {
        let begun = self.clock.monotonic();
        if begun.saturating_sub(self.snapshot_at) > SNAPSHOT_AGE_MAX {
            self.engine.renew(query::view_data(self.config)?)?;
            self.snapshot_at = begun;
        }
        let mut tally = Tally { is_rowless: ROWLESS.contains(&lexer::first_word(sql).as_str()), ..Tally::default() };
        self.answer(sql, &mut tally)?;
        self.has_new_names |= tally.is_rowless;
        if self.timer {
            let took = self.clock.monotonic().saturating_sub(begun);
            let rows = match tally.rows {
                _ if tally.is_quiet => String::new(),
                1 => "1 row, ".to_owned(),
                rows => format!("{rows} rows, "),
            };
            output::say(&format!("({rows}{took:.1?})"));
        }
        Ok(())
    }

    fn answer(&mut self, sql: &str, tally: &mut Tally) -> Result<(), Error> {
        let format = self.format();
        let answers = self.opened.as_ref().map_or(self.answers, |opened| opened.answers);
        if format == Format::Parquet && !tally.is_rowless {
            if self.opened.is_none() && matches!(self.base, Base::Terminal) {
                return Err(Error::Usage("a terminal cannot show parquet: run .output FILE first".into()));
            }
            if answers > 0 {
                return Err(Error::Usage("a parquet file holds one answer: run .output FILE for another file".into()));
            }
        }
        let interrupter = self.engine.interrupter();
        let _running = self.guard.running(interrupter);
        // A method would borrow the engine together with the other fields.
        let Self { engine, base, opened, pager, .. } = self;
        let is_plan = lexer::first_word(sql) == "explain" && format == Format::Table;
        write_to(base, opened.as_mut(), *pager, |out, medium| {
            let inner: Box<dyn Sink> = if is_plan { Box::new(Plan(out)) } else { sink_for(format, out, medium) };
            engine.query(sql, &mut TallySink { inner, tally })
        })?;
        query::warn_of_sessions(engine.data(), sql);
        if !tally.is_quiet {
            let answers = self.opened.as_mut().map_or(&mut self.answers, |opened| &mut opened.answers);
            *answers += 1;
        }
        Ok(())
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut (dyn Write + Send), Medium) -> Result<(), ReportError>,
    ) -> Result<(), Error> {
        write_to(&mut self.base, self.opened.as_mut(), self.pager, write)
    }
}

fn is_blank(text: &str) -> bool {
    let is_space = |token: &lexer::Token| matches!(token.kind, Kind::Space | Kind::Comment) && !token.is_open;
    lexer::tokens(text).iter().all(is_space)
}

/// Adds the place in the script to an error.
fn at_place(error: Error, place: &str) -> Error {
    match error {
        Error::Usage(reason) => Error::Usage(format!("{place}{reason}")),
        Error::Report(ReportError::Query { message, line }) => {
            Error::Report(ReportError::Query { message: format!("{place}{message}"), line })
        }
        Error::Report(ReportError::Engine(reason)) => Error::Report(ReportError::Engine(format!("{place}{reason}"))),
        other => other,
    }
}
