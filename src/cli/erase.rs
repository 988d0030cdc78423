//! `annals erase`: carries out orders to erase a person or a computer.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use crate::archive::{Archive, ErasedRecord, Erasure, PendingOrder, check_order};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{Instant, Location, TeamId};
use crate::store::Unerased;

use super::output::{OutputArgs, counted, say};
use super::{Global, publish, query, reading, teams};

mod prepared;
mod request;
mod tables;

use prepared::Prepared;
use request::Request;

/// Erase a person or a computer: replace every value that names the person or computer by a pseudonym, in every row
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct EraseArgs {
    /// An email address, the id of a user or a computer, an IP address or a local user name. Repeat it to give all values of one
    /// subject. With -, standard input holds one value on each line
    #[arg(long, value_name = "VALUE", required_unless_present = "again")]
    subject: Vec<String>,
    /// The name of the order, which the ledger records: letters, digits and -_./#
    #[arg(long, value_name = "NAME", value_parser = order_name, required_unless_present = "again")]
    order: Option<String>,
    /// Only this team, by id or name; repeatable [default: all teams of the archive]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Carry out every order in FILE again, for example after you restored an older back-up. Each line of FILE is a JSON object:
    /// {"order":"DPO-12","subject":["ann@example.com"],"team":["acme"]}. Without team, the order covers all teams. With -,
    /// standard input holds the orders
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "order", "team"])]
    again: Option<String>,
    /// Also replace the salts of the months that the order changes. Then nobody can compare earlier ledger lines with a guessed row,
    /// and only hashes and signatures attest what these lines say of the months
    #[arg(long)]
    unlinkable: bool,
    /// Show the rows that hold the subject, and change nothing. You can do this while a daemon runs
    #[arg(long)]
    dry_run: bool,
    /// Erase even if more than half of all rows hold the subject
    #[arg(long)]
    yes_all: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER: &str = "\
Annals finds a value if it is a whole column or a whole JSON string: also as a key, in an escaped spelling, or inside a string that \
holds JSON. It compares values without case (STRASSE is Straße), but zoe is not Zoë, and 192.0.2.7 is not 192.0.2.7:443: give each such value as a further \
--subject. In the person's own rows of the roster, names, annotations and the last IP address \
become empty. Rows, times and counts stay. Annals removes the files that held the subject \
at once, together with every other file that no ledger line names. The ledger records what the order changed, and never records the \
subject. If an order was interrupted, give it again: it continues where it stopped. Until then `annals status` names it. \
Remove the person at the service first: otherwise the next read of people and computers archives the person again. Stop the daemon \
first: on a local disk it locks the teams, and in a bucket it may still upload files with the subject. \
FILE contains personal data: keep it outside the archive and its back-ups.
Exit codes: 0 done, or nothing holds the subject; 1 a team was not erased, for example because a daemon runs or a legal hold \
covers it; 2 wrong use; 3 done, but something stays, or ledger lines have no \
signature (`annals anchor --sign`), and the output names it.";

/// A commit ends within an hour of its first file.
const WRITER_AGE_MAX: Duration = Duration::from_secs(3_600);

fn order_name(text: &str) -> Result<String, String> {
    check_order(text).map(|()| text.to_owned())
}

pub fn run(global: &Global, args: &EraseArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let archive = query::open(&config)?.with_signer(reading::signer(&config)?);
    let requests = match &args.again {
        Some(file) => request::read(file)?,
        None => vec![Request::given(args.order.clone().unwrap_or_default(), &args.subject, args.team.clone())?],
    };
    // Check every order before the first one changes anything.
    let prepare =
        |request: Request| Prepared::new(&archive, &request, args.unlinkable).map_err(|error| request.placed(error));
    let orders = requests.into_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
    for order in &orders {
        if order.order.subject.has_address() {
            say(&format!(
                "{}: an IP address with a port or a prefix length is another value, and stays: give it as a further --subject",
                order.order.id
            ));
        }
        let further = order.further_ids();
        if further > 0 {
            say(&format!(
                "{}: the roster joins the subject to {} that the order does not give: --dry-run lists each one in \
                 inventory_users; if it is the same person, give it as a further --subject",
                order.order.id,
                counted(further as u64, "user id")
            ));
        }
    }
    if args.dry_run {
        return dry_run(&orders, &args.output);
    }
    if let Some(most) = orders.iter().find(|order| order.found.is_most && !args.yes_all) {
        return Err(Error::Usage(format!(
            "{}: {} of {} rows hold the subject, which is more than half: check the subject, or give --yes-all to erase them",
            most.order.id,
            most.found.rows.len(),
            most.found.all
        )));
    }
    let mut work =
        ErasureRun { config: &config, archive: &archive, done: Vec::new(), unerased: Vec::new(), exit: Exit::Done };
    let begun = orders.iter().map(|order| work.run_order(order)).collect::<Result<Vec<_>, _>>()?;
    work.finish(begun.into_iter().flatten().collect(), &args.output)
}

fn dry_run(orders: &[Prepared], output: &OutputArgs) -> Result<Exit, Error> {
    output.batch(&tables::found(orders))?;
    for Prepared { order, found, holds, .. } in orders {
        let rows = counted(found.rows.len() as u64, "row");
        say(&format!("{} would replace the subject in {rows} of {}: nothing was changed", order.id, found.all));
        if let Some(files) = found.unnamed() {
            say(&format!("{} would remove {files}", order.id));
        }
        found.foreign.iter().for_each(|Unerased { path, why }| say(&format!("{path}: a copy may stay: {why}")));
        holds.iter().for_each(|why| say(why));
    }
    Ok(Exit::Done)
}

/// The orders of this run.
struct ErasureRun<'a> {
    config: &'a Config,
    archive: &'a Archive,
    done: Vec<TeamOutcome>,
    /// Files that may still have a version in the store.
    unerased: Vec<Unerased>,
    exit: Exit,
}

/// The result of an order in one team.
struct TeamOutcome {
    order: String,
    team: TeamId,
    erasure: Erasure,
}

impl ErasureRun<'_> {
    fn note(&mut self, exit: Exit) {
        self.exit = self.exit.and(exit);
    }

    /// Carries an order out team by team. Returns the order if its key can be destroyed now.
    fn run_order<'o>(&mut self, prepared: &'o Prepared) -> Result<Option<&'o PendingOrder>, Error> {
        let (id, holds) = (&prepared.order.id, &prepared.holds);
        if !holds.is_empty() {
            holds.iter().for_each(|why| say(&format!("{id}: {why}: nothing was erased; release the hold first")));
            self.note(Exit::Fault);
            return Ok(None);
        }
        let records = records_of(self.archive, &prepared.teams, id)?;
        self.name_kept_salts(prepared, &records);
        let mut can_end = true;
        if prepared.found.rows.is_empty() && !prepared.is_resumed {
            let what = match (prepared.found.unnamed(), records.is_empty()) {
                (Some(files), _) => &format!("the order removes {files}"),
                (None, true) => "nothing is written",
                (None, false) => "already carried out",
            };
            say(&format!("{id}: no row holds the subject: {what}"));
            // An updated copy still holds the files that the order replaced.
            can_end = !records.is_empty() || prepared.found.unnamed > 0;
            if !can_end {
                self.unerased.extend(prepared.found.foreign.iter().cloned());
            }
        }
        if can_end {
            can_end = self.erase(prepared)?;
        }
        self.name_ledger_lines(prepared)?;
        Ok(can_end.then_some(&prepared.pending))
    }

    /// Names the teams where an order already ran without `--unlinkable`. An interrupted order can have ended in some teams.
    fn name_kept_salts(&mut self, prepared: &Prepared, records: &[(TeamId, ErasedRecord)]) {
        if !prepared.pending.is_unlinkable() {
            return;
        }
        let is_linkable = |record: &ErasedRecord| !record.parts.is_empty() && !record.replaced_salts();
        let teams: BTreeSet<_> =
            records.iter().filter(|(_, record)| is_linkable(record)).map(|(team, _)| team).collect();
        for team in teams {
            let label = teams::archived_label(self.archive, team);
            let id = &prepared.order.id;
            say(&format!("{id}: team {label}: it was carried out without --unlinkable: the salts stay"));
            self.note(Exit::Weaker);
        }
    }

    /// Whether all teams were erased.
    fn erase(&mut self, prepared: &Prepared) -> Result<bool, Error> {
        let pending = prepared.pending.of_teams(&prepared.teams);
        let mut is_whole = true;
        for team in &prepared.teams {
            let before = self.last_of_other_writer(team)?;
            let erased = self.archive.writer(team).and_then(|mut writer| {
                let erasure = writer.erase(&prepared.order, &pending, reading::clock().now())?;
                Ok((erasure, writer.unsigned_lines()))
            });
            let label = teams::archived_label(self.archive, team);
            match erased {
                Ok((erasure, unsigned)) => {
                    self.note(teams::exit_of_unsigned(&label, unsigned));
                    self.name_other_writer(prepared, team, before);
                    self.unerased.extend(erasure.unerased.iter().cloned());
                    self.done.push(TeamOutcome { order: prepared.order.id.clone(), team: team.clone(), erasure });
                }
                Err(error) => {
                    say(&format!(
                        "{}: team {label}: not erased: {error}; give the order again to continue",
                        prepared.order.id
                    ));
                    self.note(Exit::Fault);
                    is_whole = false;
                }
            }
        }
        Ok(is_whole)
    }

    /// The time of the team's last line, if no order wrote it. On a local disk a lock keeps other writers out.
    fn last_of_other_writer(&self, team: &TeamId) -> Result<Option<Instant>, Error> {
        if matches!(self.config.archive, Location::Local(_)) {
            return Ok(None);
        }
        let reader = self.archive.read(team)?;
        let state = reader.state();
        Ok(state.at.filter(|_| state.erased.last().is_none_or(|(seq, _)| *seq != state.seq)))
    }

    /// A bucket has no locks: a process that still writes can upload files with the subject after the order.
    fn name_other_writer(&mut self, prepared: &Prepared, team: &TeamId, last: Option<Instant>) {
        let Some(at) = last.filter(|at| reading::clock().now().since(*at) < WRITER_AGE_MAX) else { return };
        let label = teams::archived_label(self.archive, team);
        say(&format!(
            "{}: team {label}: another process wrote the team at {at}, and may still upload files with the subject: make sure that \
             it ended, and give the order again",
            prepared.order.id
        ));
        self.note(Exit::Weaker);
    }

    /// Names the ledger lines with the subject: no erasure reaches them.
    fn name_ledger_lines(&mut self, prepared: &Prepared) -> Result<(), Error> {
        for team in &prepared.teams {
            if self.archive.read(team)?.named_in_ledger(&prepared.order.subject) {
                let label = teams::archived_label(self.archive, team);
                say(&format!(
                    "{}: team {label}: ledger lines name the subject, as the id of a computer or as the reviewer of a pack; \
                     these lines stay",
                    prepared.order.id
                ));
                self.note(Exit::Weaker);
            }
        }
        Ok(())
    }

    /// Updates caches and open tables, and destroys the keys of the completed orders.
    fn finish(mut self, ended: Vec<&PendingOrder>, output: &OutputArgs) -> Result<Exit, Error> {
        // Rows that expired before the order can still be in the cache and in the record of sent alerts.
        let forgotten = query::forget_cached(self.config, self.archive);
        let forgotten = forgotten.and(super::run::forget_detections(self.config, self.archive));
        // The metadata of a table holds no value of a person, and names the removed files. A key must not survive because a
        // list cannot be read or a table cannot be published.
        let published = if self.done.is_empty() { Ok(()) } else { publish::again(self.config, self.archive) };
        for pending in ended {
            self.unerased.extend(pending.destroy(self.archive.store().as_ref())?);
        }
        let mut named = BTreeSet::new();
        self.unerased.retain(|Unerased { path, why }| named.insert((path.clone(), why.clone())));
        for Unerased { path, why } in std::mem::take(&mut self.unerased) {
            say(&format!("{path}: a copy may stay: {why}"));
            self.note(Exit::Weaker);
        }
        if !self.done.is_empty() {
            output.batch(&tables::done(&self.done))?;
        }
        forgotten.and(published).map(|()| self.exit)
    }
}

/// The ledgers' records of an order.
fn records_of(archive: &Archive, asked: &BTreeSet<TeamId>, order: &str) -> Result<Vec<(TeamId, ErasedRecord)>, Error> {
    let mut records = Vec::new();
    for team in asked {
        let reader = archive.read(team)?;
        let of_order = reader.state().erased.iter().map(|(_, record)| record).filter(|record| record.order == order);
        records.extend(of_order.map(|record| (team.clone(), record.clone())));
    }
    Ok(records)
}
