//! `annals vacuum`: removes files that no ledger line names.

use arrow::array::RecordBatch;
use clap::Args;

use crate::archive::{Archive, ArchiveError, ObsoleteFiles};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::lake::{self, TableId};
use crate::model::TeamId;
use crate::store::{Listed, Unerased, UnfinishedUpload};

use super::output::{self, Columns, OutputArgs, counted};
use super::{Global, query, reading, teams};

/// Remove files that no ledger line names and that are older than the grace
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct VacuumArgs {
    /// Only this team, by id or name; repeatable [default: all teams of the archive]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Show what would be removed, and remove nothing; works beside a daemon
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER: &str = "\
A commit leaves the files that it replaces, and a failed commit leaves its orphan files. Readers, other engines and copies that \
started earlier can use them for the grace ([store] grace: 1 day on a local disk, 7 days in a bucket). A file that the newest \
version of an open table names stays until a grace after the next `annals publish`. The daemon and `sync` vacuum by themselves. \
The command leaves files of a team under names that Annals never gives, and says so. For each team the table shows the files \
removed, and the files kept because they are within the grace or an open table names them. Without --team, the command also removes the \
metadata of open tables that no snapshot within the grace needs. In a bucket of S3 the command also aborts uploads that a killed \
process left unfinished. For an archive in a bucket it also removes from the cache on this machine every file that is not live \
any more.
Exit codes: 0 done; 1 a team could not be vacuumed, such as beside a daemon; 2 wrong use; 3 done, but ledger lines have no signature \
(`annals anchor --sign`).";

pub fn run(global: &Global, args: &VacuumArgs) -> Result<Exit, Error> {
    let config: Config = global.load()?;
    let signer = if args.dry_run { None } else { reading::signer(&config)? };
    let archive = query::open(&config)?.with_signer(signer);
    let (mut all, mut exit) = (Vec::new(), Exit::Done);
    for team in teams::in_archive(&archive, &args.team)? {
        match vacuum(&archive, &team, args.dry_run) {
            Ok((found, unsigned)) => {
                exit = exit.and(teams::exit_of_unsigned(&teams::archived_label(&archive, &team), unsigned));
                let did = if args.dry_run { "would be aborted" } else { "aborted" };
                for UnfinishedUpload { path, since, .. } in &found.uploads {
                    output::say(&format!("unfinished upload of {path}, begun at {since}: {did}"));
                }
                if let Some(Unerased { path, why }) = found.foreign.first() {
                    let (label, count) =
                        (teams::archived_label(&archive, &team), counted(found.foreign.len() as u64, "foreign file"));
                    output::say(&format!("team {label}: {count} not removed, the first is {path}: {why}"));
                }
                all.push((team, found));
            }
            Err(error) => {
                let label = teams::archived_label(&archive, &team);
                // The label names the team already, and some errors do too.
                let why = error.to_string();
                let why = why.strip_prefix(&format!("team {team}: ")).unwrap_or(&why);
                output::say(&format!("team {label}: cannot vacuum: {why}"));
                exit = Exit::Fault;
            }
        }
    }
    if args.team.is_empty() && !vacuum_tables(&archive, args.dry_run) {
        exit = Exit::Fault;
    }
    let forgotten = if args.dry_run { Ok(()) } else { query::forget_cached(&config, &archive) };
    args.output.batch(&table(&all))?;
    forgotten.map(|()| exit)
}

/// The files, and the number of ledger lines without a signature.
fn vacuum(archive: &Archive, team: &TeamId, is_dry_run: bool) -> Result<(ObsoleteFiles, u64), ArchiveError> {
    if is_dry_run {
        return Ok((archive.obsolete_files(team)?, 0));
    }
    let mut writer = archive.writer(team)?;
    let found = writer.vacuum(SystemClock::new().now())?;
    Ok((found, writer.unsigned_lines()))
}

/// Removes, or only counts, old metadata of the open tables. Returns whether it succeeded for every table.
fn vacuum_tables(archive: &Archive, is_dry_run: bool) -> bool {
    let mut is_done = true;
    for name in TableId::all().into_iter().map(TableId::as_str) {
        let found = if is_dry_run { lake::obsolete_files(archive, name) } else { lake::vacuum(archive, name) };
        match found {
            Ok(found) if found.expired.is_empty() => {}
            Ok(found) => {
                let did = if is_dry_run { "would be removed" } else { "removed" };
                output::say(&format!("table {name}: {} metadata files {did}", found.expired.len()));
            }
            Err(error) => {
                output::say(&format!("table {name}: not vacuumed: {error}"));
                is_done = false;
            }
        }
    }
    is_done
}

fn table(all: &[(TeamId, ObsoleteFiles)]) -> RecordBatch {
    let bytes = |files: &[Listed]| files.iter().map(|file| file.bytes).sum::<u64>();
    Columns::of(all)
        .text("team_id", |(team, _)| team.as_str())
        .number("files_removed", |(_, found)| found.expired.len() as u64)
        .number("bytes_removed", |(_, found)| bytes(&found.expired))
        .number("files_kept", |(_, found)| found.kept.len() as u64)
        .number("bytes_kept", |(_, found)| bytes(&found.kept))
        .batch()
}
