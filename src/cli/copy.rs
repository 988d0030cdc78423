//! `annals copy`: a whole archive from one place to another.

use clap::Args;

use crate::archive::{Archive, ArchiveError, Copied, Copy, VerifyOptions, open_store, verify};
use crate::error::{Error, Exit};
use crate::model::Location;

use super::{Global, bars, look, output, reading, verify as verifying};

/// Copy an archive to another directory or bucket, and verify the copy
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct CopyArgs {
    /// The archive: a directory, or s3://bucket/prefix, gs:// or az://
    from: Location,
    /// Where to: an empty place, or an earlier copy of the same archive
    to: Location,
}

const AFTER: &str = "\
Each file is checked against the ledger on the way. Cut off, the command goes on where it was when it is given again; later it \
brings the copy up to date. The archive may be written meanwhile: the copy ends at the lines that stood when each team was \
reached. Two places that go on from one archive are two archives: write only one of them.
Exit codes: 0 the copy is there and verifies; 1 something was not copied, or a fault was found; 2 wrong use.";

pub fn run(global: &Global, args: &CopyArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let (from, to) = (look::absolute(&args.from)?, look::absolute(&args.to)?);
    if from == to {
        return Err(Error::Usage(format!("{from}: from and to are one place")));
    }
    let source = Archive::open(open_store(&from).map_err(ArchiveError::from)?)
        .map_err(|source| Error::ArchiveAt { location: from.to_string(), source })?;
    let failed = |source| Error::ArchiveAt { location: to.to_string(), source };
    let target = open_store(&to).map_err(|error| failed(error.into()))?;
    reading::prove(target.clone(), &to, &reading::clock())?;
    let copy = Copy::new(source.clone(), target.clone()).map_err(failed)?;
    let (mut sum, mut exit) = (Copied::default(), Exit::Done);
    let bar = bars::fetching();
    for team in source.teams()? {
        match copy.team(&team, &mut |_, bytes, all| bar(bytes, all)) {
            Ok(copied) => sum = sum.plus(copied),
            Err(error) => {
                output::say(&format!("team {team}: not copied whole: {error}"));
                exit = Exit::Fault;
            }
        }
    }
    let Copied { files, bytes, lines, held } = sum;
    output::say(&format!(
        "{files} files of {bytes} bytes and {lines} ledger lines are copied; {held} files were there"
    ));
    let options =
        VerifyOptions { now: Some(reading::clock().now()), grace: config.grace_at(&to), ..VerifyOptions::default() };
    let report = verify(target.as_ref(), &options)?;
    output::print(verifying::text(&to.to_string(), &report, &verifying::names(target)).as_bytes())?;
    Ok(if report.is_clean() { exit } else { Exit::Fault })
}
