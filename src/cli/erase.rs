//! `annals erase`: carries out an order to erase a person or a computer.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use clap::Args;

use crate::archive::{Archive, Erasure, FoundRow, Order, PendingOrder, Subject, TeamReader, check_order};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{Digest, Instant, TeamId};
use crate::web::plural;

use super::output::{self, OutputArgs};
use super::{Global, publish, query, reading, teams};

/// Erase a person or a computer: replace every value that means the subject by a pseudonym, in every row
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct EraseArgs {
    /// An email address, the id of a user or a computer, an address, a local user name; may be given several times for one
    /// subject; - reads one from each line of standard input
    #[arg(long, value_name = "VALUE", required = true)]
    subject: Vec<String>,
    /// The order's name, which the ledger keeps: letters, digits and -_./#
    #[arg(long, value_name = "NAME", value_parser = order_name)]
    order: String,
    /// Only this team, by id or name; may be given several times [default: all of the archive]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Show the rows that hold the subject, and change nothing; works beside a daemon
    #[arg(long)]
    dry_run: bool,
    /// Erase also where more than half of all rows hold the subject
    #[arg(long)]
    yes_all: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER: &str = "\
A value is found where it is a whole column or a whole JSON string, also as a key, escaped, or within a string that holds JSON; \
email addresses in any case. Rows, times and counts stay. The files that held the subject are removed at once, and so is every \
file that no ledger line names. The ledger says what the order changed, and never of whom. An order that was stopped goes on when \
it is given again; until then `annals status` names it. Remove a person at the service first: the next look at people and computers \
keeps whom it shows. Stop the daemon before: it holds the teams.
Exit codes: 0 done, also where no row holds the subject; 1 a team was not erased, such as beside a daemon; 2 wrong use; 3 done, but \
something stays, which is named.";

fn order_name(text: &str) -> Result<String, String> {
    check_order(text).map(|()| text.to_owned())
}

pub fn run(global: &Global, args: &EraseArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let archive = query::open(&config)?.signed_by(reading::signer(&config)?);
    let subject = subject(&args.subject)?;
    let mut asked: BTreeSet<TeamId> = teams::in_archive(&archive, &args.team)?.into_iter().collect();
    let pending = archive.pending_orders()?.into_iter().find(|pending| pending.order == args.order);
    asked.extend(pending.iter().flat_map(|pending| pending.teams.iter().cloned()));
    refuse_another(&archive, args, &subject)?;
    let (order, pending, is_resumed) = match pending {
        Some(pending) => (pending.resumed(&subject).ok_or_else(|| of_another(&args.order))?, pending, true),
        None => {
            let (order, pending) = archive.new_order(&args.order, &subject, asked.clone());
            (order, pending, false)
        }
    };
    let found = found(&archive, &asked, &order)?;
    let held = held(&archive, &asked, &order)?;
    if args.dry_run {
        args.output.batch(&found_table(&found))?;
        output::say(&would(&found, &args.order));
        held.iter().for_each(|why| output::say(why));
        return Ok(Exit::Done);
    }
    if let Some(why) = held.first() {
        return Err(Error::Refused(why.clone()));
    }
    if found.is_empty() && !is_resumed {
        output::say("no row holds the subject: nothing is written");
        // A copy that was brought up to date still holds the files that the order replaced.
        if !was_carried_out(&archive, &asked, &args.order)? {
            return named_in_ledger(&archive, &asked, &subject);
        }
    }
    if found.is_most && !args.yes_all {
        let (rows, all) = (found.rows.len(), found.all);
        return Err(Error::Usage(format!(
            "{rows} of {all} rows hold the subject, more than half: is it one? --yes-all erases it all the same"
        )));
    }
    let exit = carry_out(&config, &archive, (&order, &pending), &asked, &args.output)?;
    let named = named_in_ledger(&archive, &asked, &subject)?;
    Ok(if exit == Exit::Done { named } else { exit })
}

fn subject(given: &[String]) -> Result<Subject, Error> {
    let mut values: Vec<String> = Vec::new();
    for value in given {
        if value == "-" {
            let lines = std::io::stdin().lock().lines().collect::<Result<Vec<_>, _>>();
            let lines = lines.map_err(|source| Error::io("cannot read standard input", source))?;
            values.extend(lines.into_iter().filter(|line| !line.trim().is_empty()));
        } else {
            values.push(value.clone());
        }
    }
    Subject::new(values.iter().map(String::as_str)).map_err(Error::Usage)
}

fn of_another(order: &str) -> Error {
    Error::Usage(format!("order {order} was given before, for another subject: each order has a name of its own"))
}

/// Refuses an order that was carried out for another subject, and a subject that means no person and no computer.
fn refuse_another(archive: &Archive, args: &EraseArgs, subject: &Subject) -> Result<(), Error> {
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        if reader.order_is_of_another(&args.order, subject)? {
            return Err(of_another(&args.order));
        }
        let types = reader.state().streams.values().flat_map(|stream| &stream.event_types);
        if subject.find(team.as_str()).is_some() || types.into_iter().any(|name| subject.find(name).is_some()) {
            let what =
                "the subject is the id of a team or the name of an event type, which means no person and no computer";
            return Err(Error::Usage(what.to_owned()));
        }
    }
    Ok(())
}

fn was_carried_out(archive: &Archive, asked: &BTreeSet<TeamId>, order: &str) -> Result<bool, Error> {
    let mut was = false;
    for team in asked {
        was |= archive.read(team)?.state().erased.iter().any(|(_, record)| record.order == order);
    }
    Ok(was)
}

/// The rows that hold the subject.
struct Found {
    rows: Vec<(TeamId, FoundRow)>,
    all: u64,
    is_most: bool,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn found(archive: &Archive, asked: &BTreeSet<TeamId>, order: &Order) -> Result<Found, Error> {
    let mut found = Found { rows: Vec::new(), all: 0, is_most: false };
    for team in asked {
        let (rows, all) = archive.read(team)?.rows_of_subject(order)?;
        found.all += all;
        found.rows.extend(rows.into_iter().map(|row| (team.clone(), row)));
    }
    found.is_most = found.rows.len() as u64 > found.all / 2;
    Ok(found)
}

/// Why teams are not erased of: a sentence for each that a hold covers.
fn held(archive: &Archive, asked: &BTreeSet<TeamId>, order: &Order) -> Result<Vec<String>, Error> {
    let mut said = Vec::new();
    for team in asked {
        let holds = archive.holds_on_order(team, order)?.into_iter().collect::<Vec<_>>().join(", ");
        if !holds.is_empty() {
            let label = teams::archived_label(archive, team);
            said.push(format!("team {label}: nothing is erased of what a legal hold covers: {holds}"));
        }
    }
    Ok(said)
}

fn would(found: &Found, order: &str) -> String {
    let rows = plural(found.rows.len() as u64, "row");
    format!("{order} would replace the subject in {rows} of {}: nothing was changed", found.all)
}

/// Carries the order out team by team, and then throws its key away.
fn carry_out(
    config: &Config,
    archive: &Archive,
    (order, pending): (&Order, &PendingOrder),
    asked: &BTreeSet<TeamId>,
    output: &OutputArgs,
) -> Result<Exit, Error> {
    let (mut done, mut exit) = (Vec::new(), Exit::Done);
    let now = reading::clock().now();
    let pending = pending.of_teams(asked);
    let store = archive.store().as_ref();
    let mut unerased = Vec::new();
    for team in asked {
        match archive.writer(team).and_then(|mut writer| writer.erase(order, &pending, now)) {
            Ok(erasure) => {
                unerased.extend(erasure.unerased.iter().cloned());
                done.push((team.clone(), erasure));
            }
            Err(error) => {
                let label = teams::archived_label(archive, team);
                output::say(&format!("team {label}: not erased: {error}; give the order again to go on"));
                exit = Exit::Fault;
            }
        }
    }
    forget_cached(config, archive)?;
    // The metadata of a table holds no value of a person, and names the removed files.
    publish::again(config, archive)?;
    if exit == Exit::Done {
        unerased.extend(pending.end(store)?);
    }
    for stays in &unerased {
        output::say(&format!("{}: may stay: {}", stays.path, stays.why));
    }
    if exit == Exit::Done && !unerased.is_empty() {
        exit = Exit::Weaker;
    }
    output.batch(&done_table(&done))?;
    Ok(exit)
}

/// Removes from the cache of buckets what is no live file any more.
fn forget_cached(config: &Config, archive: &Archive) -> Result<(), Error> {
    let mut live: BTreeSet<Digest> = BTreeSet::new();
    archive.read_each(&|_| true, |reader: TeamReader| {
        live.extend(reader.state().files.values().map(|file| file.sha256));
    })?;
    let cache = query::cache(config);
    cache.keep_only(&live).map_err(|error| Error::Refused(error.to_string()))?;
    Ok(())
}

/// What no erasure reaches is said.
fn named_in_ledger(archive: &Archive, asked: &BTreeSet<TeamId>, subject: &Subject) -> Result<Exit, Error> {
    let mut exit = Exit::Done;
    for team in asked {
        if archive.read(team)?.named_in_ledger(subject) {
            let label = teams::archived_label(archive, team);
            output::say(&format!(
                "team {label}: lines of the ledger name the subject, as a computer's id or as who reviewed a pack: they stay"
            ));
            exit = Exit::Weaker;
        }
    }
    Ok(exit)
}

fn found_table(found: &Found) -> RecordBatch {
    let text = |get: fn(&(TeamId, FoundRow)) -> String| -> ArrayRef {
        Arc::new(found.rows.iter().map(|row| Some(get(row))).collect::<StringArray>())
    };
    let times = found.rows.iter().map(|(_, row)| row.time.map(Instant::micros));
    let columns: [(&str, ArrayRef); 4] = [
        ("team_id", text(|(team, _)| team.to_string())),
        ("dataset", text(|(_, row)| row.dataset.to_string())),
        ("time", Arc::new(times.collect::<TimestampMicrosecondArray>())),
        ("id", text(|(_, row)| row.id.clone())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .expect("BUG: columns of one length")
}

fn done_table(done: &[(TeamId, Erasure)]) -> RecordBatch {
    let rows: Vec<_> = done
        .iter()
        .flat_map(|(team, erasure)| erasure.parts.iter().map(move |part| (team, erasure.seq, part)))
        .collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("team_id", Arc::new(rows.iter().map(|(team, ..)| Some(team.as_str())).collect::<StringArray>())),
        ("dataset", Arc::new(rows.iter().map(|(.., part)| Some(part.dataset.as_str())).collect::<StringArray>())),
        ("files", Arc::new(rows.iter().map(|(.., part)| Some(part.files)).collect::<UInt64Array>())),
        ("rows", Arc::new(rows.iter().map(|(.., part)| Some(part.rows)).collect::<UInt64Array>())),
        ("ledger_seq", Arc::new(rows.iter().map(|(_, seq, _)| seq.map(|seq| seq.0)).collect::<UInt64Array>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .expect("BUG: columns of one length")
}
