//! `annals copy`: copies a whole archive to another place.

use std::convert::Infallible;

use clap::Args;

use crate::archive::{Archive, ArchiveError, Copied, Copy, CopyStep, VerifyOptions, verify};
use crate::config::overlaps;
use crate::error::{Error, Exit};
use crate::model::{ArchivePlace, Location, TeamId};
use crate::store::open_store;
use crate::threads::each;

use super::{Global, bars, output, query, reading, verify as verifying};

/// Number of teams that are copied in parallel: a bucket takes long to answer, and each ledger line is a request.
const TEAMS_AT_ONCE: usize = 8;

/// Copy an archive to another directory or bucket, and verify the copy
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct CopyArgs {
    /// The archive: a directory, or s3://bucket/prefix, gs:// or az://
    from: Location,
    /// The target, outside FROM: an empty place, or an earlier copy of the same archive
    to: Location,
}

const AFTER: &str = "\
A copy is one whole tree with its ledger inside. FROM or TO may be the configured archive: then its ledger is at [store] ledger or \
--ledger. If TO is the configured archive, the copy puts the ledger into the place that [store] ledger names. \
The command checks each file against the ledger while it copies. If it is interrupted, run it again: it continues where it \
stopped. Run it later to update the copy. At the end it removes from the copy, as `annals vacuum` does, the files that no ledger line names \
and that are older than the grace ([store] grace). A daemon may write the archive meanwhile: for each team, the copy ends at the last line \
that the ledger had when the command reached the team. Write only one of the two archives: after a write to both, they differ forever.
Exit codes: 0 the copy is complete and verifies; 1 something was not copied, or verify found a fault; 2 wrong use.";

pub fn run(global: &Global, args: &CopyArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let (from, to) = (query::place_at(&config, &args.from)?, query::place_at(&config, &args.to)?);
    check_apart(&from, &to)?;
    let source = match Archive::open(open_store(&from).map_err(ArchiveError::from)?) {
        Err(ArchiveError::NotAnArchive) => return Err(Error::Usage(format!("FROM: {from}: no archive exists here"))),
        opened => opened.map_err(|source| Error::ArchiveAt { location: from.to_string(), source })?,
    };
    let teams = source.teams()?;
    let failed = |source| Error::ArchiveAt { location: to.to_string(), source };
    let target = open_store(&to).map_err(|error| failed(error.into()))?;
    reading::test_new_places(target.clone(), &to, &reading::clock())?;
    let grace = config.grace_at(&to.data);
    let copy = Copy::new(source, target.clone(), grace).map_err(failed)?;
    let (mut all, mut exit) = (Vec::new(), Exit::Done);
    let bar = bars::of_bytes("copying");
    let progress = |step: CopyStep| match step {
        CopyStep::Needed(bytes) => bar.inc_length(bytes),
        CopyStep::Held(bytes) => bar.inc(bytes),
    };
    // The copy of a team names the same error again.
    let Ok(_) = each(&teams, TEAMS_AT_ONCE, |team| Ok::<_, Infallible>(copy.begin(team)));
    let copy_team = |team: TeamId| Ok::<_, Infallible>((copy.team(&team, &progress), team));
    let Ok(copies) = each(teams, TEAMS_AT_ONCE, copy_team);
    bar.finish_and_clear();
    for (copied, team) in copies {
        match copied {
            Ok(copied) => all.push(copied),
            Err(error) => {
                output::say(&format!("team {team}: the copy is not complete: {error}"));
                exit = Exit::Fault;
            }
        }
    }
    let sum = |count: fn(&Copied) -> u64| all.iter().map(count).sum::<u64>();
    let uncounted = if exit == Exit::Fault { "; this does not count the teams that failed" } else { "" };
    output::say(&format!(
        "copied {} files of {} bytes and {} ledger lines; {} files were in the copy already; {} old files that no \
         line names were removed from it{uncounted}",
        sum(|team| team.files),
        sum(|team| team.bytes),
        sum(|team| team.lines),
        sum(|team| team.held),
        sum(|team| team.removed)
    ));
    let options = VerifyOptions { now: Some(reading::clock().now()), grace, ..VerifyOptions::default() };
    let report = verify(target.as_ref(), &options)?;
    output::print(verifying::text(&to.to_string(), &report, &verifying::names(target)).as_bytes())?;
    Ok(if report.is_clean() { exit } else { Exit::Fault })
}

/// Refuses a place of one archive that lies inside a place of the other: each would find foreign files.
fn check_apart(from: &ArchivePlace, to: &ArchivePlace) -> Result<(), Error> {
    let places =
        |of: &ArchivePlace| [Some(of.data.clone()), of.ledger.clone()].into_iter().flatten().collect::<Vec<_>>();
    let targets = places(to);
    for one in places(from) {
        if let Some(two) = targets.iter().find(|two| overlaps(&one, two)) {
            let what = format!("FROM at {one} and TO at {two} are one place, or one is inside the other");
            return Err(Error::Usage(format!("{what}: choose another TO")));
        }
    }
    Ok(())
}
