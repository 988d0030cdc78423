//! `annals sql` without a query: an interactive shell, or a script on standard input.

mod catalog;
mod command;
mod editor;
mod pager;
mod session;
mod target;

use std::cell::RefCell;
use std::env;
use std::fs;
use std::io::{BufRead, IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Editor};

use crate::config::Config;
use crate::error::Error;

use super::output::{self, OutputArgs};
use super::{query, signals};

use catalog::Catalog;
use editor::SqlHelper;
use session::{Next, Session};
use target::Base;

const PROMPT: &str = "annals> ";
const HISTORY_ENTRIES_MAX: usize = 10_000;

/// Runs the statements on standard input: a script until its first error, an interactive session until the user leaves.
///
/// # Errors
/// When no archive exists; in a script, the first error.
pub fn run(config: &Config, args: &OutputArgs, verbose: bool) -> Result<(), Error> {
    if !stdin().is_terminal() {
        return script(config, args, stdin().lock());
    }
    let guard = signals::guard()?;
    let engine = query::engine(config, query::view_data(config)?)?;
    guard.in_shell();
    let mut plain = stdout();
    let is_shown = plain.is_terminal();
    let base = if is_shown { Base::Terminal } else { Base::Writer(&mut plain) };
    let mut session = Session::new(config, &guard, engine, base, args.format);
    if let Some(path) = &args.output {
        session.open_output(path)?;
    }
    interact(&mut session, is_shown, verbose)
}

/// Runs the statements of `source` in order, until the first error.
///
/// # Errors
/// When no archive exists; the first error of a statement.
pub fn script(config: &Config, args: &OutputArgs, source: impl BufRead) -> Result<(), Error> {
    let guard = signals::guard()?;
    let engine = query::engine(config, query::view_data(config)?)?;
    args.rows(|out, _| {
        let mut session = Session::new(config, &guard, engine, Base::Writer(out), Some(args.format()));
        session.script(None, source).map(|_| ())
    })
}

fn interact(session: &mut Session<'_>, is_shown: bool, verbose: bool) -> Result<(), Error> {
    let catalog = Rc::new(RefCell::new(Catalog::of(session.engine())?));
    let mut editor = new_editor(Rc::clone(&catalog), is_shown)?;
    let history = history_file();
    if let Some(path) = &history {
        // Ignore a history file that cannot be read.
        let _ = editor.load_history(path);
    }
    session.begin_interaction();
    loop {
        let input = match editor.readline(PROMPT) {
            Ok(input) => input,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(ReadlineError::Io(source)) => return Err(Error::io("cannot read the terminal", source)),
            Err(other) => return Err(Error::io("cannot read the terminal", std::io::Error::other(other))),
        };
        if !input.trim().is_empty() && editor.add_history_entry(input.trim_end()).unwrap_or(false) {
            // Ignore a history file that cannot be written: answers matter more.
            let _ = history.as_ref().map(|path| editor.append_history(path));
        }
        match session.script(None, input.as_bytes()) {
            Ok(Next::Go) => {}
            Ok(Next::Exit) => return Ok(()),
            Err(error) => output::say(&format!("annals: {}", error.render(verbose))),
        }
        if session.takes_new_names() {
            *catalog.borrow_mut() = Catalog::of(session.engine())?;
        }
    }
}

fn new_editor(catalog: Rc<RefCell<Catalog>>, is_shown: bool) -> Result<Editor<SqlHelper, FileHistory>, Error> {
    let failed = |error: ReadlineError| Error::io("cannot use the terminal", std::io::Error::other(error));
    let config = rustyline::Config::builder()
        .max_history_size(HISTORY_ENTRIES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(failed)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .behavior(if is_shown { Behavior::Stdio } else { Behavior::PreferTerm })
        .build();
    let mut editor = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(SqlHelper::new(catalog)));
    Ok(editor)
}

/// `$XDG_STATE_HOME/annals/sql_history`, readable by its owner alone: queries name people. `None` without a home directory.
fn history_file() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let path = state.join("annals").join("sql_history");
    match make_private(&path) {
        Ok(()) => Some(path),
        Err(error) => {
            output::say(&format!("annals: the shell keeps no history: {}: {error}", path.display()));
            None
        }
    }
}

fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

/// The lines of a script, without their line ends.
fn lines(source: impl BufRead) -> impl Iterator<Item = std::io::Result<String>> {
    source.lines().enumerate().map(|(at, line)| {
        let line = line?;
        // Drop the byte order mark that some editors write.
        Ok(match line.strip_prefix('\u{feff}') {
            Some(rest) if at == 0 => rest.to_owned(),
            _ => line,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_file_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/annals/sql_history");
        make_private(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        make_private(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
    }
}
