//! Shows long answers through a pager.

use std::env;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Stdout, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cli::terminal::SanitizedWriter;

/// The pager that the environment names; `None` if none is available.
pub fn program() -> Option<OsString> {
    let named = ["ANNALS_PAGER", "PAGER"].into_iter().find_map(env::var_os).unwrap_or_else(|| "less".into());
    let name = named.to_str()?.split_whitespace().next()?.to_owned();
    let is_there = |directory: &Path| directory.join(&name).is_file();
    let found = if name.contains('/') {
        Path::new(&name).is_file()
    } else {
        env::split_paths(&env::var_os("PATH")?).any(|directory| is_there(&directory))
    };
    found.then_some(named)
}

/// Writes short output to the terminal, and output longer than the screen to the pager.
pub struct Paged {
    program: Option<OsString>,
    screen_lines: usize,
    /// Output that is not shown yet.
    held: Vec<u8>,
    lines: usize,
    shown: Destination,
}

enum Destination {
    Nowhere,
    Terminal(SanitizedWriter<Stdout>),
    Pager(Child),
}

impl Paged {
    /// Without a `program`, all output goes to the terminal.
    pub fn new(program: Option<OsString>, screen_lines: usize) -> Self {
        Self { program, screen_lines, held: Vec::new(), lines: 0, shown: Destination::Nowhere }
    }

    /// Shows the remaining output, and waits until the pager ends.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        if matches!(self.shown, Destination::Nowhere) {
            self.shown = Destination::Terminal(SanitizedWriter::new(io::stdout()));
        }
        let written = self.pass_on();
        match self.shown {
            Destination::Nowhere => Ok(()),
            Destination::Terminal(mut terminal) => written.and_then(|()| terminal.flush()),
            Destination::Pager(mut child) => {
                drop(child.stdin.take());
                child.wait()?;
                // A broken pipe: the user has left the pager.
                written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
            }
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        match &mut self.shown {
            Destination::Nowhere => Ok(()),
            Destination::Terminal(terminal) => terminal.write_all(&held),
            Destination::Pager(child) => match &mut child.stdin {
                Some(input) => SanitizedWriter::new(input).write_all(&held),
                None => Err(ErrorKind::BrokenPipe.into()),
            },
        }
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        if matches!(self.shown, Destination::Nowhere) && self.lines >= self.screen_lines {
            self.shown = match &self.program {
                Some(program) => Destination::Pager(start(program)?),
                None => Destination::Terminal(SanitizedWriter::new(io::stdout())),
            };
        }
        // Pass on whole lines, so that no character is split.
        if !matches!(self.shown, Destination::Nowhere) && bytes.contains(&b'\n') {
            self.pass_on()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start(program: &OsString) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(program).stdin(Stdio::piped());
    // The same flags as `git`: quit if the output fits on the screen. No -R: escape sequences remain visible text.
    for (name, value) in [("LESS", "FSX"), ("LESSCHARSET", "utf-8")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    command.spawn()
}
