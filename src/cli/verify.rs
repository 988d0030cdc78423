//! `annals verify`: the whole archive against its ledger; nothing is changed.

use std::fmt::Write as _;

use clap::Args;

use crate::archive::{LocalStore, TeamReport, VerifyOptions, VerifyReport, verify};
use crate::error::{Error, Exit};
use crate::model::Digest;
use crate::report::printable;

use super::{Global, look, output};

/// Check the whole archive against its ledger, and name every fault
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// A head remembered elsewhere, that the archive must still hold; may be given more than once
    #[arg(long, value_name = "SHA256")]
    head: Vec<Digest>,
    /// Print the whole report as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(global: &Global, args: &VerifyArgs) -> Result<Exit, Error> {
    let root = look::root(&global.load()?)?;
    if !root.is_dir() {
        return Err(Error::Usage(format!("{}: no archive is here; --archive names another place", root.display())));
    }
    let report = verify(&LocalStore::new(&root), &VerifyOptions { heads: args.head.clone() })?;
    let text = if args.json {
        let json = serde_json::to_string_pretty(&report);
        json.expect("BUG: a report is plain data") + "\n"
    } else {
        text(&root.display().to_string(), &report)
    };
    output::print(text.as_bytes())?;
    Ok(if report.is_clean() { Exit::Done } else { Exit::Fault })
}

/// The verdict first, then what was counted, then every fault on a line of its own.
pub fn text(place: &str, report: &VerifyReport) -> String {
    let mut text = format!("{place}: {}\n", report.verdict);
    let pending = if report.pending > 0 { format!(", {} files pending", report.pending) } else { String::new() };
    let _ = writeln!(text, "commits {}, files {}, rows {}{pending}", report.commits, report.files, report.rows);
    for team in &report.teams {
        let _ = writeln!(text, "{}", printable(&team_line(team)));
    }
    for fault in &report.faults {
        let _ = writeln!(text, "{} {}: {}", fault.code.as_str(), printable(&fault.object), printable(&fault.detail));
    }
    text
}

fn team_line(team: &TeamReport) -> String {
    let name = team.team_id.as_ref().map_or(team.ledger.as_str(), |team| team.as_str());
    let mut line = format!("team {name}: commits {}, files {}, rows {}", team.commits, team.files, team.rows);
    if let (Some(first), Some(last)) = (team.first_at, team.last_at) {
        let _ = write!(line, ", from {first} to {last}");
    }
    if let Some(bad) = team.first_bad_line {
        let _ = write!(line, ", line {bad} is the first that does not check");
    }
    if let Some(head) = team.head {
        let _ = write!(line, ", head {head} at {}", team.last_seq);
    }
    line
}
