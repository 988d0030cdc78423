//! `annals review`: records reviews in the ledger.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::archive::{Archive, Body, ReviewOutcome, ReviewRecord, TeamState};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{LedgerSeq, TeamId};
use crate::report::{CheckedPack, check_pack, printable};

use super::hold::ledger_text;
use super::{Global, output, query, reading, teams};

/// Record in the ledger who reviewed which evidence pack, and the outcome
#[derive(Debug, Args)]
pub struct ReviewArgs {
    #[command(subcommand)]
    what: ReviewCommand,
}

#[derive(Debug, Subcommand)]
enum ReviewCommand {
    Sign(SignArgs),
}

/// Check a pack against its hashes and the ledger, then record its review in the ledger of every team in it
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
struct SignArgs {
    /// The pack: a folder or a zip file
    #[arg(long, value_name = "DIR|FILE.zip")]
    pack: PathBuf,
    /// The reviewer: a name or a staff number, as your policy says; not an address, because no ledger line can be erased
    #[arg(long, value_name = "NAME", value_parser = ledger_text)]
    reviewer: String,
    /// accepted: no action needed; followed-up: somebody acts on it; rejected: the pack is not usable
    #[arg(long, value_name = "accepted|followed-up|rejected")]
    outcome: ReviewOutcome,
    /// The number of the follow-up ticket, not its address
    #[arg(long, value_name = "NUMBER", value_parser = ledger_text)]
    ticket: Option<String>,
}

const AFTER: &str = "\
A recorded review is permanent: nobody can change or remove a ledger line. Another review adds another line. If \
`review sign` was interrupted, repeat it unchanged: it adds the line where it is missing. The view `reviews` and report R26 show all \
reviews.
Exit codes: 0 done; 1 a file of the pack was changed, or the ledger cannot be written; 2 wrong use; 3 done, but ledger lines \
have no signature (`annals anchor --sign`).";

pub fn run(global: &Global, args: &ReviewArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    match &args.what {
        ReviewCommand::Sign(sign_args) => sign(&config, sign_args),
    }
}

fn sign(config: &Config, args: &SignArgs) -> Result<Exit, Error> {
    let pack = check_pack(&args.pack)?;
    let archive = query::open(config)?.with_signer(reading::signer(config)?);
    let reviewed = teams_of(&archive, &pack, args)?;
    let now = reading::clock().now();
    let manifest = &pack.manifest;
    let review = ReviewRecord {
        reviewed_at: now,
        reviewer: args.reviewer.clone(),
        pack_sha256: pack.sha256,
        period_from: manifest.from,
        period_to: manifest.to,
        reports: manifest.reports.iter().map(|report| report.id.clone()).collect(),
        findings: manifest.findings(),
        outcome: args.outcome,
        ticket: args.ticket.clone(),
    };
    let mut exit = Exit::Done;
    for team in &reviewed {
        let mut writer = archive.writer(team)?;
        exit = exit.and(if let Some(seq) = recorded(writer.state(), &review) {
            let label = teams::archived_label(&archive, team);
            output::say(&format!("team {label}: line {seq} of the ledger already records this review"));
            teams::exit_of_unsigned(&label, writer.unsigned_lines())
        } else {
            let body = Body { reviews: vec![review.clone()], ..Body::default() };
            teams::commit(&archive, &mut writer, body, "records the review")?
        });
    }
    let message = format!(
        "{} {} by {}: pack {}, {}, {}\n",
        now,
        args.outcome.into_str(),
        args.reviewer,
        pack.sha256,
        output::counted(review.reports.len() as u64, "report"),
        output::counted(review.findings, "finding")
    );
    output::print(printable(&message).trim_end().as_bytes())?;
    output::print(b"\n")?;
    Ok(exit)
}

/// The line of a team's last review of the pack, if it says the same: an interrupted command can have written it.
fn recorded(state: &TeamState, review: &ReviewRecord) -> Option<LedgerSeq> {
    let (seq, last) = state.reviews.iter().rfind(|(_, held)| held.pack_sha256 == review.pack_sha256)?;
    let said = |of: &ReviewRecord| (of.reviewer.clone(), of.outcome, of.ticket.clone());
    (said(last) == said(review)).then_some(*seq)
}

/// The teams of the pack. This archive must hold all of them.
fn teams_of(archive: &Archive, pack: &CheckedPack, args: &SignArgs) -> Result<Vec<TeamId>, Error> {
    let place = args.pack.display();
    let manifest = &pack.manifest;
    if manifest.archive_id != archive.id() {
        return Err(Error::Usage(printable(&format!(
            "{place}: the pack comes from archive {}, but this is archive {}: name the right archive with --archive",
            manifest.archive_id,
            archive.id()
        ))));
    }
    let archived = archive.teams()?;
    let mut teams = Vec::new();
    for head in &manifest.ledger {
        let team = TeamId::from(head.team.as_str());
        if !archived.contains(&team) {
            return Err(Error::Usage(printable(&format!(
                "{place}: this archive does not hold team {team} of the pack"
            ))));
        }
        let seen = archive.read(&team)?.state().seq;
        if seen.0 < head.seq {
            return Err(Error::Usage(printable(&format!(
                "{place}: the pack names ledger line {} of team {team}, but this archive ends at line {seen}: is this an older copy?",
                head.seq
            ))));
        }
        let lines = archive.lines(&team, LedgerSeq(head.seq))?.lines;
        if lines.last().is_none_or(|line| line.sha256 != head.sha256) {
            return Err(Error::Usage(printable(&format!(
                "{place}: the pack says that ledger line {} of team {team} has the hash {}, but this archive has another line there: \
                 somebody altered the pack or the archive; run `annals verify`, then make the pack again",
                head.seq, head.sha256
            ))));
        }
        teams.push(team);
    }
    if teams.is_empty() {
        return Err(Error::Usage(format!("{place}: the pack covers no team, so no ledger can record its review")));
    }
    Ok(teams)
}
