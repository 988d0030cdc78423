//! `annals hold`: adds, releases and lists legal holds.

use clap::{Args, Subcommand};

use crate::archive::{
    Archive, Body, HoldAdded, HoldRecord, HoldReleased, HoldScope, Subject, check_hold_id, check_ledger_text,
};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{Instant, TeamId, When};

use super::output::{self, Columns, OutputArgs};
use super::{Global, query, reading, teams};

/// Protect the evidence of a case: a legal hold stops expiry and erasure of the rows that it covers
#[derive(Debug, Args)]
pub struct HoldArgs {
    #[command(subcommand)]
    command: HoldCommand,
}

#[derive(Debug, Subcommand)]
enum HoldCommand {
    Add(AddArgs),
    Release(ReleaseArgs),
    /// List all holds, including released ones
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Add a hold to the ledger of every team, or of the teams in --team
#[derive(Debug, Args)]
#[command(after_help = ADD_AFTER)]
struct AddArgs {
    /// The number of the case. No other hold can use it again, even after the release
    #[arg(long, value_name = "ID", value_parser = id)]
    id: String,
    /// The reason, without names of people: the ledger keeps it permanently
    #[arg(long, value_name = "TEXT", value_parser = ledger_text)]
    reason: String,
    /// The department or staff number that requests the hold
    #[arg(long, value_name = "WHO", value_parser = ledger_text)]
    by: Option<String>,
    /// Only this team, by id or name; repeatable [default: every team, including later teams]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Only events from this time on: 2026-11-20, RFC 3339, or -30d
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    from: Option<When>,
    /// Only events before this time
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    to: Option<When>,
    /// Only rows that can be about this email address, user, computer or network address; the ledger stores its keyed digest
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
}

const ADD_AFTER: &str = "\
Expiry and erasure refuse the rows that the hold covers, and name the hold. With --subject, expiry keeps every month of the \
period, because any row can be about the subject; the erasure of another subject is allowed. Repeat an interrupted command unchanged: \
it adds the hold where it is missing. A date such as -30d means another time then, so the error names the dates to give.
Exit codes: 0 done; 1 a ledger cannot be written, such as while a daemon runs; 2 wrong use, such as the id of a different hold; \
3 done, but ledger lines have no signature (`annals anchor --sign`).";

/// Release a hold in every ledger that contains it
#[derive(Debug, Args)]
#[command(after_help = RELEASE_AFTER)]
struct ReleaseArgs {
    /// The hold's id
    #[arg(value_name = "ID", value_parser = id)]
    id: String,
    /// The reason, without names of people: the ledger keeps it permanently
    #[arg(long, value_name = "TEXT", value_parser = ledger_text, default_value = "no reason given")]
    reason: String,
    /// The department or staff number that requests the release
    #[arg(long, value_name = "WHO", value_parser = ledger_text)]
    by: Option<String>,
}

const RELEASE_AFTER: &str = "\
This command removes no rows: the next `annals retention apply`, or the daemon's schedule, removes the due months.
Exit codes: 0 done; 1 a ledger cannot be written, such as while a daemon runs; 2 wrong use, such as an unknown id; 3 done, but \
ledger lines have no signature (`annals anchor --sign`).";

fn id(text: &str) -> Result<String, String> {
    check_hold_id(text).map(|()| text.to_owned())
}

/// Parses a text that a ledger line keeps.
pub fn ledger_text(text: &str) -> Result<String, String> {
    check_ledger_text(text).map(|()| text.trim().to_owned())
}

pub fn run(global: &Global, args: &HoldArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    match &args.command {
        HoldCommand::Add(args) => add(&config, args),
        HoldCommand::Release(args) => release(&config, args),
        HoldCommand::List { output } => list(&config, output),
    }
}

fn add(config: &Config, args: &AddArgs) -> Result<Exit, Error> {
    let now = reading::clock().now();
    let moment = |when: Option<When>| when.map(|when| when.resolve(now));
    let (from, to) = (moment(args.from), moment(args.to));
    if let (Some(from), Some(to)) = (from, to)
        && to <= from
    {
        return Err(Error::Usage(format!("--to {to} is not after --from {from}: give a later --to")));
    }
    let checked = args.subject.as_deref().map(|subject| Subject::new([subject])).transpose();
    checked.map_err(|error| Error::Usage(format!("--subject: {error}")))?;
    let archive = query::open(config)?.with_signer(reading::signer(config)?);
    let scope = if args.team.is_empty() { HoldScope::All } else { HoldScope::Team };
    let asked = teams::in_archive(&archive, &args.team)?;
    if asked.is_empty() {
        return Err(Error::Usage(
            "the archive has no team yet, so no ledger can record the hold: run annals sync first".to_owned(),
        ));
    }
    let (id, reason, by) = (args.id.clone(), args.reason.clone(), args.by.clone());
    let hold = HoldAdded { id, reason, by, at: now, from, to, scope, subject: None };
    let missing = without(&archive, &asked, &hold, args.subject.as_deref())?;
    if missing.is_empty() {
        output::say(&format!("hold {} already exists, unchanged: there is nothing to do", hold.id));
    }
    let mut exit = Exit::Done;
    for team in &missing {
        let mut writer = archive.writer(team)?;
        let subject = args.subject.as_deref().map(|subject| writer.salts().subject(subject)).transpose()?;
        let holds = vec![HoldRecord::Add(HoldAdded { subject, ..hold.clone() })];
        let what = format!("adds hold {}", hold.id);
        exit = exit.and(teams::commit(&archive, &mut writer, Body { holds, ..Body::default() }, &what)?);
    }
    Ok(exit)
}

/// The teams whose ledgers lack the hold. After an interrupted command, the same hold in other ledgers is no conflict.
fn without(archive: &Archive, asked: &[TeamId], hold: &HoldAdded, subject: Option<&str>) -> Result<Vec<TeamId>, Error> {
    let mut missing = Vec::new();
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        let Some(known) = reader.state().holds.get(&hold.id) else {
            if asked.contains(&team) {
                missing.push(team);
            }
            continue;
        };
        let added = &known.added;
        let digest = subject.map(|subject| reader.salts().subject(subject)).transpose()?;
        let is_same = known.is_active()
            && (&added.reason, &added.by, added.scope, added.subject) == (&hold.reason, &hold.by, hold.scope, digest)
            && asked.contains(&team);
        let label = teams::archived_label(archive, &team);
        // A relative date such as -30d gives a different time when the user repeats the command.
        if is_same && (added.from, added.to) != (hold.from, hold.to) {
            let bound = |name: &str, at: Option<Instant>| at.map_or(format!("no {name}"), |at| format!("{name} {at}"));
            return Err(Error::Usage(format!(
                "hold id {} is taken: the hold of team {label} has another period: to repeat an interrupted command, give {} and {}",
                hold.id,
                bound("--from", added.from),
                bound("--to", added.to)
            )));
        }
        if !is_same {
            let what = if known.is_active() { "is active" } else { "is released" };
            return Err(Error::Usage(format!("hold id {} is taken: a different hold of team {label} {what}", hold.id)));
        }
    }
    Ok(missing)
}

fn release(config: &Config, args: &ReleaseArgs) -> Result<Exit, Error> {
    let archive = query::open(config)?.with_signer(reading::signer(config)?);
    let now = reading::clock().now();
    let (mut count, mut standing) = (0, Vec::new());
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        let Some(hold) = reader.state().holds.get(&args.id) else { continue };
        count += 1;
        if hold.is_active() {
            standing.push(team);
        }
    }
    if standing.is_empty() {
        let what = if count == 0 { "does not exist" } else { "is already released" };
        return Err(Error::Usage(format!("hold {} {what}: `annals hold list` shows all holds", args.id)));
    }
    let mut exit = Exit::Done;
    for team in &standing {
        let mut writer = archive.writer(team)?;
        let (id, reason, by) = (args.id.clone(), args.reason.clone(), args.by.clone());
        let holds = vec![HoldRecord::Release(HoldReleased { id, reason, by, at: now })];
        let what = format!("releases hold {}", args.id);
        exit = exit.and(teams::commit(&archive, &mut writer, Body { holds, ..Body::default() }, &what)?);
    }
    Ok(exit)
}

fn list(config: &Config, output: &OutputArgs) -> Result<Exit, Error> {
    let archive = query::open(config)?;
    let mut all = Vec::new();
    archive.read_each(&|_| true, |reader| {
        let state = reader.state();
        all.extend(state.holds.values().map(|hold| (state.team_id.clone(), hold.clone())));
    })?;
    let rows = Columns::of(&all)
        .text("hold_id", |(_, hold)| &hold.added.id)
        .text("team_id", |(team, _)| team.as_str())
        .text("scope", |(_, hold)| hold.added.scope.into_str())
        .text_or_null("held_from", |(_, hold)| hold.added.from.map(|at| at.to_string()))
        .text_or_null("held_to", |(_, hold)| hold.added.to.map(|at| at.to_string()))
        .flag("is_by_subject", |(_, hold)| hold.added.subject.is_some())
        .text("reason", |(_, hold)| &hold.added.reason)
        .text_or_null("by", |(_, hold)| hold.added.by.as_ref())
        .text("added_at", |(_, hold)| hold.added.at.to_string())
        .text_or_null("released_at", |(_, hold)| hold.released.as_ref().map(|release| release.at.to_string()))
        .text_or_null("release_reason", |(_, hold)| hold.released.as_ref().map(|release| &release.reason))
        .number("ledger_seq", |(_, hold)| hold.seq.0);
    output.batch(&rows.batch())?;
    Ok(Exit::Done)
}
