//! Dot commands, which the shell handles itself.

use std::path::PathBuf;

use crate::report::Format;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellCommand {
    Help,
    Tables,
    Schema(Option<String>),
    /// `None`: show the setting.
    Timer(Option<bool>),
    Format(Option<Format>),
    Pager(Option<bool>),
    /// `None`: back to standard output.
    Output(Option<PathBuf>),
    Read(PathBuf),
    Refresh,
    Exit,
}

pub const HELP: &str = "\
.help             show this list
.tables           list the tables and views
.schema [T]       show columns and types of all of them, or of T
.timer on|off     show after each answer its number of rows and its time
.format F         format of the rows: table, csv, json, ndjson, parquet, markdown, html
.output [FILE]    write answers into FILE, whose ending chooses the format; without FILE: to the terminal again
.pager on|off     show long answers with $ANNALS_PAGER, $PAGER or less
.read FILE        run the statements in FILE
.refresh          read the ledger again, to see new commits
.exit             leave the shell; Ctrl-D does the same
A statement ends with a semicolon. Tab completes names, Ctrl-R searches the history, Ctrl-C stops the query.
";

/// The command names, for completion.
pub const NAMES: [&str; 11] =
    [".exit", ".format", ".help", ".output", ".pager", ".quit", ".read", ".refresh", ".schema", ".tables", ".timer"];

/// Whether a line at the start of a statement is a command: it begins with a dot, or is a command word of other shells.
pub fn is_command(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('.') || matches!(line, "exit" | "quit" | "help")
}

/// # Errors
/// A sentence that explains the mistake, if the line is no valid command.
pub fn parse(line: &str) -> Result<ShellCommand, String> {
    let words = words(line)?;
    let (name, arguments) = words.split_first().ok_or("no command")?;
    let argument = match arguments {
        [] => None,
        [one] => Some(one.as_str()),
        [_, other, ..] => return Err(format!("{name} takes at most one argument: {other:?} is too many")),
    };
    let none = |command: ShellCommand| match argument {
        None => Ok(command),
        Some(other) => Err(format!("{name} takes no argument: remove {other:?}")),
    };
    let switch = || match argument {
        None => Ok(None),
        Some("on") => Ok(Some(true)),
        Some("off") => Ok(Some(false)),
        Some(other) => Err(format!("{name} takes on or off, not {other:?}")),
    };
    match name.as_str() {
        ".help" | "help" => Ok(ShellCommand::Help),
        ".tables" => none(ShellCommand::Tables),
        ".schema" => Ok(ShellCommand::Schema(argument.map(str::to_owned))),
        ".timer" => Ok(ShellCommand::Timer(switch()?)),
        ".pager" => Ok(ShellCommand::Pager(switch()?)),
        ".format" => Ok(ShellCommand::Format(argument.map(str::parse).transpose()?)),
        ".output" => Ok(ShellCommand::Output(argument.map(PathBuf::from))),
        ".read" => argument.map(|path| ShellCommand::Read(path.into())).ok_or_else(|| ".read needs a file name".into()),
        ".refresh" => none(ShellCommand::Refresh),
        ".exit" | ".quit" | "exit" | "quit" => none(ShellCommand::Exit),
        other => Err(format!("unknown command {other:?}: .help lists them")),
    }
}

/// Splits a line into words at spaces and quotes. Drops a semicolon at the end, which users type by habit.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut chars = line.trim().trim_end_matches(';').chars().peekable();
    while let Some(&first) = chars.peek() {
        if first.is_whitespace() {
            chars.next();
        } else if matches!(first, '\'' | '"') {
            chars.next();
            let word: String = std::iter::from_fn(|| chars.next_if(|c| *c != first)).collect();
            chars.next().ok_or_else(|| format!("the quote before {word:?} has no closing quote"))?;
            words.push(word);
        } else {
            words.push(std::iter::from_fn(|| chars.next_if(|c| !c.is_whitespace())).collect());
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_commands_are_parsed() {
        for (line, command) in [
            (".help", ShellCommand::Help),
            (" help ", ShellCommand::Help),
            (".tables;", ShellCommand::Tables),
            (".schema connections", ShellCommand::Schema(Some("connections".into()))),
            (".timer on", ShellCommand::Timer(Some(true))),
            (".timer", ShellCommand::Timer(None)),
            (".format ndjson", ShellCommand::Format(Some(Format::Ndjson))),
            (".output 'my file.csv'", ShellCommand::Output(Some("my file.csv".into()))),
            (".output", ShellCommand::Output(None)),
            (".read \"a b\"", ShellCommand::Read("a b".into())),
            ("quit", ShellCommand::Exit),
        ] {
            assert!(is_command(line));
            assert_eq!(parse(line), Ok(command), "{line}");
        }
        for line in [".nonsense", ".timer maybe", ".format xlsx", ".read", ".exit now", ".output 'x", ".read a b"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(!is_command("select .5") && !is_command("exit the room"));
    }

    #[test]
    fn every_command_has_a_help_text() {
        for name in NAMES {
            let error = parse(name).err().unwrap_or_default();
            assert!(!error.contains("unknown"), "{name}: {error}");
            assert!(name == ".quit" || HELP.contains(name), "{name}");
        }
        let formats = HELP.lines().find(|line| line.starts_with(".format")).unwrap_or_default();
        assert!(Format::ALL.iter().all(|format| formats.contains(format.as_str())), "{formats}");
    }
}
