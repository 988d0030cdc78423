//! `annals retention`: shows and expires the months that are older than their retention class.

use std::time::Duration;

use arrow::array::RecordBatch;
use clap::{Args, Subcommand};

use crate::archive::{Archive, DueMonth, ExpiredRecord, KeptBy};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{Instant, TeamId};
use crate::pipeline::{due_months, expire};

use super::output::{self, Columns, OutputArgs};
use super::{Global, publish, query, reading, teams};

/// Expire rows that are older than the retention classes in [retention]
#[derive(Debug, Args)]
pub struct RetentionArgs {
    #[command(subcommand)]
    command: RetentionCommand,
}

#[derive(Debug, Subcommand)]
enum RetentionCommand {
    /// Show the months that are due, and the reasons that keep them; works while a daemon runs
    #[command(after_help = PLAN_AFTER)]
    Plan(RetentionInput),
    Apply(ApplyArgs),
}

/// Remove the months that are due, in one ledger line per team
#[derive(Debug, Args)]
#[command(after_help = APPLY_AFTER)]
struct ApplyArgs {
    /// Show the months and sessions that would expire, without removing them; works while a daemon runs
    #[arg(long)]
    dry_run: bool,
    /// Remove the months even if the last read of the service is more than 7 days old
    #[arg(long)]
    trust_clock: bool,
    #[command(flatten)]
    input: RetentionInput,
}

#[derive(Debug, Args)]
struct RetentionInput {
    /// Only this team, by id or name; repeatable [default: all teams of the archive]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// After a longer time without a read of the service, nothing confirms this machine's clock.
const READ_AGE_MAX: Duration = Duration::from_secs(7 * 86_400);

const PLAN_AFTER: &str = "\
A month is due when its end is older than the class of its dataset ([retention] in annals.toml). A due month stays while a hold \
covers it (`annals hold list`), until its last window is sealed, and until Annals has made its sessions. Sessions expire with the \
connections at their start. Without [retention], no month is ever due.
Exit codes: 0 done; 2 wrong use.";

const APPLY_AFTER: &str = "\
The line records policy, months, rows and digests: `annals verify` proves that it removed no other rows. The files stay for the \
grace of [store]; then `vacuum` removes them. The open tables that exist are published again, without the expired rows. The cache of \
a bucket on this machine loses these files at once. Repeat an interrupted command unchanged: it continues where it stopped. Annals never reads expired events again, even if the service still \
shows them. They are neither a gap nor missing: coverage and reports show the policy and the date of the expiry. A wrong clock \
could expire the whole archive. So Annals removes nothing of a team that it last read more than 7 days ago, unless you give --trust-clock.
Exit codes: 0 done; 1 a hold keeps a due month, the clock is not confirmed, or a team cannot be written, such as while a daemon \
runs; 2 wrong use; 3 done, but ledger lines have no signature (`annals anchor --sign`).";

pub fn run(global: &Global, args: &RetentionArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let archive = query::open(&config)?;
    let (RetentionCommand::Plan(input) | RetentionCommand::Apply(ApplyArgs { input, .. })) = &args.command;
    let asked = teams::in_archive(&archive, &input.team)?;
    name_unused_policy(&config, &archive)?;
    match &args.command {
        RetentionCommand::Plan(input) => show(&config, &archive, &asked, &input.output),
        RetentionCommand::Apply(apply) => {
            remove(&config, &archive.with_signer(reading::signer(&config)?), &asked, apply)
        }
    }
}

/// Says that no policy exists, or names the teams of the policy that the archive does not hold.
fn name_unused_policy(config: &Config, archive: &Archive) -> Result<(), Error> {
    if config.retention.is_empty() {
        output::say("no [retention] in the configuration: nothing ever expires");
    }
    let archived = archive.teams()?;
    let unknown: Vec<&str> =
        config.retention.teams.keys().filter(|team| !archived.contains(team)).map(TeamId::as_str).collect();
    if !unknown.is_empty() {
        output::say(&format!(
            "[retention.teams]: the archive holds no team with the id {}, so these classes apply to no team",
            unknown.join(" or ")
        ));
    }
    Ok(())
}

fn show(config: &Config, archive: &Archive, asked: &[TeamId], output: &OutputArgs) -> Result<Exit, Error> {
    let now = reading::clock().now();
    let mut months = Vec::new();
    for team in asked {
        let reader = archive.read(team)?;
        let (due, kept) = due_months(archive, reader.state(), config.retention.of(team), now)?;
        months.extend(due.into_iter().chain(kept).map(|month| (team.clone(), month)));
    }
    output.batch(&plan_table(&months))?;
    Ok(Exit::Done)
}

fn remove(config: &Config, archive: &Archive, asked: &[TeamId], args: &ApplyArgs) -> Result<Exit, Error> {
    let now = reading::clock().now();
    let (mut gone, mut exit) = (Vec::new(), Exit::Done);
    for team in asked {
        let label = teams::archived_label(archive, team);
        match remove_of(config, archive, team, args, now) {
            Ok((expired, kept, unsigned)) => {
                exit = exit.and(teams::exit_of_unsigned(&label, unsigned));
                for month in &kept {
                    let (dataset, name) = (month.dataset, month.month.month());
                    output::say(&format!("team {label}: {dataset} of {name} stays: {}", reason(month)));
                    if matches!(month.kept_by, Some(KeptBy::Holds(_))) {
                        exit = Exit::Fault;
                    }
                }
                gone.extend(expired.into_iter().map(|record| (team.clone(), record)));
            }
            Err(error) => {
                output::say(&format!("team {label}: no month was removed: {error}"));
                exit = Exit::Fault;
            }
        }
    }
    // Vacuum keeps the files that a table names, also the files that an interrupted run expired.
    let published = match args.dry_run {
        true => Ok(()),
        false => publish::again(config, archive).and(query::forget_cached(config, archive)),
    };
    args.input.output.batch(&gone_table(&gone))?;
    published.map(|()| exit)
}

/// The expired months, the kept ones, and the number of ledger lines without a signature.
fn remove_of(
    config: &Config,
    archive: &Archive,
    team: &TeamId,
    args: &ApplyArgs,
    now: Instant,
) -> Result<(Vec<ExpiredRecord>, Vec<DueMonth>, u64), Error> {
    let retention = config.retention.of(team);
    let reader = archive.read(team)?;
    let (due, kept) = due_months(archive, reader.state(), retention, now)?;
    // A month does not expire while its sessions are missing: an interrupted run can leave some.
    let is_behind = reader.state().sessions.is_some_and(|mark| mark.through.is_some());
    if args.dry_run || (due.is_empty() && !is_behind) {
        return Ok((reader.would_expire(&due, now)?, kept, 0));
    }
    if !args.trust_clock {
        check_clock(reader.state().last_read(), now)?;
    }
    let mut writer = archive.writer(team)?;
    let done = expire(archive, &mut writer, retention, (now, reading::clock().now()))?;
    Ok((done.expired, done.kept, writer.unsigned_lines()))
}

/// Refuses a clock that is far ahead of the last read: a clock that is wrong by years would expire the whole archive.
fn check_clock(last_read: Option<Instant>, now: Instant) -> Result<(), Error> {
    let read = match last_read {
        Some(at) if now.since(at) <= READ_AGE_MAX => return Ok(()),
        Some(at) => format!("the archive's last read of the service was at {at}"),
        None => "the archive records no read of the service".to_owned(),
    };
    Err(Error::Refused(format!(
        "this machine's clock shows {now}, but {read}: run `annals sync` first, or give --trust-clock if the clock is right"
    )))
}

fn reason(month: &DueMonth) -> String {
    month.kept_text().unwrap_or_default()
}

fn plan_table(months: &[(TeamId, DueMonth)]) -> RecordBatch {
    Columns::of(months)
        .text("team_id", |(team, _)| team.as_str())
        .text("dataset", |(_, month)| month.dataset.as_str())
        .text("month", |(_, month)| month.month.month())
        .text("policy", |(_, month)| month.policy.to_string())
        .text("due_since", |(_, month)| month.due_at.to_string())
        .number("files", |(_, month)| month.files)
        .number("rows", |(_, month)| month.rows)
        .number("bytes", |(_, month)| month.bytes)
        .text("kept_by", |(_, month)| reason(month))
        .batch()
}

fn gone_table(gone: &[(TeamId, ExpiredRecord)]) -> RecordBatch {
    Columns::of(gone)
        .text("team_id", |(team, _)| team.as_str())
        .text("dataset", |(_, record)| record.dataset.as_str())
        .text("month", |(_, record)| record.month.month())
        .text("policy", |(_, record)| &record.policy)
        .number("files", |(_, record)| record.files)
        .number("rows", |(_, record)| record.rows)
        .batch()
}
