//! The error families, and their exit codes.

use std::error::Error as StdError;
use std::process::ExitCode;

use thiserror::Error;

use crate::api::{ApiError, SetupError};
use crate::archive::ArchiveError;
use crate::config::ConfigError;
use crate::lake::LakeError;
use crate::report::{CatalogError, PackError, ReportError};
use crate::sandbox::SandboxError;

/// The exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Something was not done, or a fault was found.
    Fault = 1,
    /// Wrong use or configuration.
    Usage = 2,
    /// Done, but a gap was recorded, the token no longer sees an archived team, or a check is weaker than asked.
    Weaker = 3,
}

impl Exit {
    /// The exit code of a command from the codes of its parts: what was not done outranks a weaker check.
    #[must_use]
    pub fn and(self, part: Exit) -> Exit {
        match self {
            Exit::Done | Exit::Weaker if part != Exit::Done => part,
            own => own,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Who must act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The system failed: a retry can succeed.
    World,
    /// The state refuses: continuing would break a promise.
    State,
    /// The input is wrong.
    Input,
}

/// Any error that ends a command.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    /// Another process or a setting is in the way.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Like [`Error::Archive`], for an error whose `source` names only paths inside the archive.
    #[error("the archive at {location}: {source}")]
    ArchiveAt { location: String, source: ArchiveError },
    #[error(transparent)]
    Lake(#[from] LakeError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Report(ReportError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error(transparent)]
    Sandbox(SandboxError),
    #[error("{what}")]
    Io { what: String, source: std::io::Error },
    #[error("cannot write to standard output")]
    Output { source: std::io::Error },
    /// The reader of standard output is gone: print nothing.
    #[error("standard output was closed")]
    OutputClosed,
}

impl From<ReportError> for Error {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Output(source) => Error::output(source),
            other => Error::Report(other),
        }
    }
}

impl From<SandboxError> for Error {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Print(source) => Error::output(source),
            other => Error::Sandbox(other),
        }
    }
}

impl Error {
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Error::Io { what: what.into(), source }
    }

    /// An error while writing to standard output: a closed pipe is no fault.
    pub fn output(source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::BrokenPipe => Error::OutputClosed,
            _ => Error::Output { source },
        }
    }

    pub fn family(&self) -> Family {
        match self {
            Error::Usage(_) | Error::Config(_) | Error::Setup(_) | Error::Catalog(_) => Family::Input,
            Error::Api(error) if error.is_transient() => Family::World,
            Error::Archive(error) | Error::ArchiveAt { source: error, .. } if error.is_transient() => Family::World,
            Error::Archive(error) | Error::ArchiveAt { source: error, .. } if error.is_wrong_ledger() => Family::Input,
            Error::Lake(error) if error.is_transient() => Family::World,
            Error::Lake(_) => Family::State,
            Error::Refused(_) | Error::Api(_) | Error::Archive(_) | Error::ArchiveAt { .. } => Family::State,
            Error::Sandbox(error) if error.is_wrong_use() => Family::Input,
            Error::Report(error) if error.is_wrong_use() => Family::Input,
            Error::Pack(error) if error.is_wrong_use() => Family::Input,
            Error::Pack(_) => Family::State,
            Error::Sandbox(_) | Error::Report(_) => Family::World,
            Error::Io { .. } | Error::Output { .. } | Error::OutputClosed => Family::World,
        }
    }

    pub fn exit(&self) -> Exit {
        match (self, self.family()) {
            (Error::OutputClosed, _) => Exit::Done,
            (_, Family::Input) => Exit::Usage,
            (_, Family::World | Family::State) => Exit::Fault,
        }
    }

    /// The message for a person: one or two lines; with `verbose`, every cause.
    pub fn render(&self, verbose: bool) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        // Include the first cause: "cannot read x" alone does not say why.
        let mut depth = 0;
        while let Some(error) = cause {
            if verbose {
                text.push_str(&format!("\n  because: {error}"));
            } else if depth == 0 && !text.contains(&error.to_string()) {
                text.push_str(&format!(": {error}"));
            }
            cause = error.source();
            depth += 1;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_exit_code() {
        let gone = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let slow = ApiError::Throttled { what: "teams".into(), retry_after: None };
        let refused = ApiError::Refused { what: "teams".into(), status: 401 };
        for (error, family, exit) in [
            (Error::Usage("no".into()), Family::Input, Exit::Usage),
            (Error::from(ConfigError::NoToken), Family::Input, Exit::Usage),
            (Error::from(slow), Family::World, Exit::Fault),
            (Error::from(refused), Family::State, Exit::Fault),
            (Error::io("cannot read x", gone()), Family::World, Exit::Fault),
            (Error::output(std::io::ErrorKind::BrokenPipe.into()), Family::World, Exit::Done),
            (Error::output(gone()), Family::World, Exit::Fault),
        ] {
            assert_eq!((error.family(), error.exit()), (family, exit), "{error:?}");
        }
    }

    #[test]
    fn the_worst_part_gives_the_exit_code() {
        use Exit::{Done, Fault, Weaker};
        for (parts, whole) in [
            (&[][..], Done),
            (&[Done, Weaker, Done], Weaker),
            (&[Weaker, Fault, Weaker, Done], Fault),
            (&[Fault, Done], Fault),
        ] {
            assert_eq!(parts.iter().fold(Done, |exit, part| exit.and(*part)), whole, "{parts:?}");
        }
    }

    #[test]
    fn verbose_shows_the_chain() {
        let error = Error::io("cannot read annals.toml", std::io::Error::other("disk on fire"));
        assert_eq!(error.render(false), "cannot read annals.toml: disk on fire");
        assert_eq!(error.render(true), "cannot read annals.toml\n  because: disk on fire");
    }
}
