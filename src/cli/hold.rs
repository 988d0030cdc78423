//! `annals hold`: what must stay although a policy or an order would remove it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use clap::{Args, Subcommand};

use crate::archive::{
    Archive, Draft, HoldAdded, HoldRecord, HoldReleased, HoldScope, check_hold_id, check_hold_text, normal_subject,
};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{Instant, TeamId, When};

use super::output::{self, OutputArgs};
use super::{Global, query, reading, teams};

/// Keep what a case needs: nothing that a legal hold covers expires or is erased
#[derive(Debug, Args)]
pub struct HoldArgs {
    #[command(subcommand)]
    command: HoldCommand,
}

#[derive(Debug, Subcommand)]
enum HoldCommand {
    Add(AddArgs),
    Release(ReleaseArgs),
    List(ListArgs),
}

/// Add a hold to the ledger of every team, or of those that --team names
#[derive(Debug, Args)]
#[command(after_help = ADD_AFTER)]
struct AddArgs {
    /// The case's number; it cannot be used again, not even after the release
    #[arg(long, value_name = "ID", value_parser = id)]
    id: String,
    /// Why, without names of people: it stays in the ledger for ever
    #[arg(long, value_name = "TEXT", value_parser = text)]
    reason: String,
    /// Who asked for it: a department or a staff number, as your policy has it
    #[arg(long, value_name = "WHO", value_parser = text)]
    by: Option<String>,
    /// Only this team, by id or name; may be given several times [default: every team, also those that come later]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Only what happened from then on: 2026-11-20, RFC 3339, or -30d
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    from: Option<When>,
    /// Only what happened before then
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    to: Option<When>,
    /// Only what may be about this email address, user, computer or address; the ledger keeps a keyed digest of it
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
}

const ADD_AFTER: &str = "\
Expiry and erasure refuse what the hold covers, and name it. With --subject, expiry keeps every month of the period, since any \
row may be the subject's; erasure of another subject goes on. An interrupted command is given again as it was.
Exit codes: 0 done; 1 a ledger cannot be written, such as beside a daemon; 2 wrong use, such as an id that is used already.";

/// Release a hold in every ledger that has it
#[derive(Debug, Args)]
#[command(after_help = RELEASE_AFTER)]
struct ReleaseArgs {
    /// The hold's id
    #[arg(value_name = "ID", value_parser = id)]
    id: String,
    /// Why, without names of people
    #[arg(long, value_name = "TEXT", value_parser = text)]
    reason: String,
    /// Who asked for it
    #[arg(long, value_name = "WHO", value_parser = text)]
    by: Option<String>,
}

const RELEASE_AFTER: &str = "\
Nothing goes by this command: the next `annals retention apply`, or the daemon's schedule, removes what is due.
Exit codes: 0 done; 1 a ledger cannot be written, such as beside a daemon; 2 wrong use, such as an id that is not there.";

/// List all holds, released ones as well
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
}

fn id(text: &str) -> Result<String, String> {
    check_hold_id(text).map(|()| text.to_owned())
}

fn text(text: &str) -> Result<String, String> {
    check_hold_text(text).map(|()| text.trim().to_owned())
}

pub fn run(global: &Global, args: &HoldArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    match &args.command {
        HoldCommand::Add(args) => add(&config, args),
        HoldCommand::Release(args) => release(&config, args),
        HoldCommand::List(args) => list(&config, args),
    }
}

fn add(config: &Config, args: &AddArgs) -> Result<Exit, Error> {
    let now = reading::clock().now();
    let moment = |when: Option<When>| when.map(|when| when.resolve(now));
    let (from, to) = (moment(args.from), moment(args.to));
    if let (Some(from), Some(to)) = (from, to)
        && to <= from
    {
        return Err(Error::Usage(format!("--to {to} is not after --from {from}: nothing would be held")));
    }
    if args.subject.as_ref().is_some_and(|subject| normal_subject(subject).is_empty()) {
        return Err(Error::Usage("--subject is empty: leave it out to hold everything".to_owned()));
    }
    let archive = query::open(config)?.signed_by(reading::signer(config)?);
    let scope = if args.team.is_empty() { HoldScope::All } else { HoldScope::Team };
    let asked = teams::in_archive(&archive, &args.team)?;
    if asked.is_empty() {
        return Err(Error::Usage("the archive has no team yet, so there is no ledger for a hold".to_owned()));
    }
    let (id, reason, by) = (args.id.clone(), args.reason.clone(), args.by.clone());
    let hold = HoldAdded { id, reason, by, at: now, from, to, scope, subject: None };
    let missing = without(&archive, &asked, &hold, args.subject.as_deref())?;
    if missing.is_empty() {
        return Err(Error::Usage(format!("hold {} is there already: give another id", hold.id)));
    }
    for team in &missing {
        let mut writer = archive.writer(team)?;
        let subject = args.subject.as_deref().map(|subject| writer.salts().subject(subject)).transpose();
        let subject = subject.map_err(|lost| Error::Refused(lost.to_string()))?;
        let record = HoldRecord::Add(HoldAdded { subject, ..hold.clone() });
        let _ = writer.commit(Draft { holds: vec![record], ..Draft::default() }, now)?;
        let (label, seq) = (teams::archived_label(&archive, team), writer.state().seq);
        output::say(&format!("team {label}: hold {} stands in line {seq} of the ledger", hold.id));
    }
    Ok(Exit::Done)
}

/// The teams whose ledgers lack the hold. An earlier command may have been interrupted: the same hold is no other one.
fn without(archive: &Archive, asked: &[TeamId], hold: &HoldAdded, subject: Option<&str>) -> Result<Vec<TeamId>, Error> {
    let mut missing = Vec::new();
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        let Some(held) = reader.state().holds.get(&hold.id) else {
            if asked.contains(&team) {
                missing.push(team);
            }
            continue;
        };
        let added = &held.added;
        // A date such as -30d is another moment when the command is given again.
        let digest = subject.map(|subject| reader.subject(subject)).transpose()?;
        let is_same = held.stands()
            && (&added.reason, &added.by, added.scope, added.subject) == (&hold.reason, &hold.by, hold.scope, digest)
            && (added.from, added.to) == (hold.from, hold.to)
            && asked.contains(&team);
        if !is_same {
            let label = teams::archived_label(archive, &team);
            let what = if held.stands() { "stands there" } else { "was released there" };
            return Err(Error::Usage(format!("hold {} is used already: another of team {label} {what}", hold.id)));
        }
    }
    Ok(missing)
}

fn release(config: &Config, args: &ReleaseArgs) -> Result<Exit, Error> {
    let archive = query::open(config)?.signed_by(reading::signer(config)?);
    let now = reading::clock().now();
    let (mut held, mut standing) = (0, Vec::new());
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        let Some(hold) = reader.state().holds.get(&args.id) else { continue };
        held += 1;
        if hold.stands() {
            standing.push(team);
        }
    }
    if standing.is_empty() {
        let what = if held == 0 { "is in no ledger" } else { "was released already" };
        return Err(Error::Usage(format!("hold {} {what}: `annals hold list` shows those that stand", args.id)));
    }
    for team in &standing {
        let mut writer = archive.writer(team)?;
        let (id, reason, by) = (args.id.clone(), args.reason.clone(), args.by.clone());
        let record = HoldRecord::Release(HoldReleased { id, reason, by, at: now });
        let _ = writer.commit(Draft { holds: vec![record], ..Draft::default() }, now)?;
        let (label, seq) = (teams::archived_label(&archive, team), writer.state().seq);
        output::say(&format!("team {label}: hold {} is released in line {seq} of the ledger", args.id));
    }
    Ok(Exit::Done)
}

fn list(config: &Config, args: &ListArgs) -> Result<Exit, Error> {
    let archive = query::open(config)?;
    let mut all = Vec::new();
    archive.read_each(&archive.teams()?, |reader| {
        let state = reader.state();
        all.extend(state.holds.values().map(|hold| (state.team_id.clone(), hold.clone())));
    })?;
    let texts = |text: &dyn Fn(&HoldAdded) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(|(_, hold)| text(&hold.added)).collect::<StringArray>())
    };
    let released = |text: &dyn Fn(&HoldReleased) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(|(_, hold)| hold.released.as_ref().and_then(text)).collect::<StringArray>())
    };
    let said = |at: Option<Instant>| at.map(|at| at.to_string());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("hold_id", texts(&|hold| Some(hold.id.clone()))),
        ("team_id", Arc::new(all.iter().map(|(team, _)| Some(team.as_str())).collect::<StringArray>())),
        ("scope", texts(&|hold| Some(hold.scope.as_str().to_owned()))),
        ("held_from", texts(&|hold| said(hold.from))),
        ("held_to", texts(&|hold| said(hold.to))),
        ("is_by_subject", Arc::new(all.iter().map(|(_, h)| Some(h.added.subject.is_some())).collect::<BooleanArray>())),
        ("reason", texts(&|hold| Some(hold.reason.clone()))),
        ("by", texts(&|hold| hold.by.clone())),
        ("added_at", texts(&|hold| said(Some(hold.at)))),
        ("released_at", released(&|release| said(Some(release.at)))),
        ("release_reason", released(&|release| Some(release.reason.clone()))),
        ("ledger_seq", Arc::new(all.iter().map(|(_, hold)| Some(hold.seq.0)).collect::<UInt64Array>())),
    ];
    args.output.batch(&RecordBatch::try_from_iter(columns).expect("BUG: columns of one length"))?;
    Ok(Exit::Done)
}
