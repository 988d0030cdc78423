//! `annals verify`: checks the whole archive against its ledger; changes nothing.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use clap::Args;

use crate::archive::{
    Archive, ArchiveError, Damage, FaultCode, HEADS_BYTES_MAX, Head, KnownHead, TeamReport, VerifyFault, VerifyOptions,
    VerifyReport, verify,
};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::files::{self, Links};
use crate::lake;
use crate::model::path::{LEDGER, SALTS, SNAPSHOTS, TABLES};
use crate::model::{Digest, Location, Scheme};
use crate::report::{TeamNames, printable};
use crate::store::Store;

use super::public_key::{expected_keys, key_of};
use super::{Global, output, query, reading};

/// The text shows this many notices; the JSON holds all.
const NOTICES_SHOWN_MAX: usize = 20;

/// Check the whole archive against its ledger, and name every fault
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct VerifyArgs {
    /// A head kept elsewhere that the archive must still hold: the output of `annals anchor`, a file of it, or the hash
    /// alone; repeatable
    #[arg(long, value_name = "HEAD|FILE|SHA256")]
    head: Vec<String>,
    /// A public key from a trusted source (or its file) that must have signed the heads; repeatable
    /// [default: signing.public_key of the configuration]
    #[arg(long, value_name = "KEY|FILE")]
    key: Vec<String>,
    /// Print the whole report as JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Verdicts, from the weakest: BROKEN (the report names each fault); UNVERIFIABLE (another version wrote the archive); SELF-CONSISTENT \
(unanchored): everything agrees, but only a head kept elsewhere can show that nobody cut off the end or rewrote the whole; \
ANCHORED up to seq N at T: the archive holds the given heads. With several teams: ANCHORED, each team up to its own seq.
Notices (a clock that was set back, a recorded gap, a long silence) are not faults and do not change the verdict.
Exit codes: 0 no fault; 1 a fault was found; 2 wrong use; 3 no fault, but a notice says that a check is weaker: BAD_SIG (a key was \
given, and a last line is not signed), POLICY_CHANGED (rows expired under another policy than the configured one), REWRITTEN (the \
bucket did not list the older versions of the ledger: allow s3:ListBucketVersions).";

pub fn run(global: &Global, args: &VerifyArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let (place, location) = (query::archive_place(&config)?, query::location(&config)?);
    let store = query::store(&config)?;
    let opened = Archive::open(Arc::clone(&store));
    let options = options(&config, args)?;
    match opened {
        // A part of an archive without its manifest is a damaged archive.
        Err(ArchiveError::NotAnArchive) if !has_part(&location, store.as_ref())? => {
            return Err(query::no_archive(&location));
        }
        // Without its ledger, each file of the archive would be a fault.
        Err(source) if source.is_wrong_ledger() => {
            return Err(Error::ArchiveAt { location: place.to_string(), source });
        }
        _ => {}
    }
    let mut report = verify(store.as_ref(), &options)?;
    if let Ok(archive) = opened {
        lake::verify_tables(&archive, &mut report);
    }
    let ledger = place.ledger.as_ref().unwrap_or(&location);
    if let Location::Bucket(bucket) = ledger
        && bucket.scheme() != Scheme::S3
    {
        output::say(&format!(
            "{ledger}: Annals lists older versions on S3 only: here, only a head kept elsewhere shows that somebody rewrote a ledger line"
        ));
    }
    let text = if args.json {
        let json = serde_json::to_string_pretty(&report);
        json.expect("BUG: a report is plain data") + "\n"
    } else {
        text(&place.to_string(), &report, &names(store))
    };
    output::print(text.as_bytes())?;
    Ok(match report.is_clean() {
        false => Exit::Fault,
        true if report.notices.iter().any(says_weaker) => Exit::Weaker,
        true => Exit::Done,
    })
}

/// Whether a part of an archive is in `store`.
fn has_part(location: &Location, store: &dyn Store) -> Result<bool, Error> {
    if location.directory().is_some_and(|directory| !directory.is_dir()) {
        return Ok(false);
    }
    for part in [LEDGER, TABLES, SALTS, SNAPSHOTS] {
        if !store.list(part).map_err(ArchiveError::from)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn options(config: &Config, args: &VerifyArgs) -> Result<VerifyOptions, Error> {
    let mut heads = Vec::new();
    for given in &args.head {
        heads.extend(heads_of(given)?);
    }
    let keys = match args.key.as_slice() {
        [] => expected_keys(config)?,
        given => given.iter().map(|given| key_of("--key", given)).collect::<Result<_, _>>()?,
    };
    Ok(VerifyOptions {
        heads,
        keys,
        now: Some(reading::clock().now()),
        grace: config.grace_at(&config.archive),
        retention: config.retention.clone(),
    })
}

/// Heads from a hash, from the text of heads, or from a file that holds either.
fn heads_of(given: &str) -> Result<Vec<KnownHead>, Error> {
    let parse = |text: &str| match text.trim().parse() {
        Ok(hash) => Ok(vec![KnownHead::Hash(hash)]),
        Err(_) => Ok(Head::parse_all(text)?.into_iter().map(KnownHead::Note).collect()),
    };
    // A path has no newline, and the name of a file can have 64 characters, too.
    if given.contains('\n') || given.trim().parse::<Digest>().is_ok() {
        return parse(given).map_err(|e: String| Error::Usage(format!("--head: {}", printable(&e))));
    }
    let text = read_given("--head", given)?;
    parse(&text).map_err(|e: String| Error::Usage(format!("--head: {}: {}", printable(given), printable(&e))))
}

fn read_given(place: &str, path: &str) -> Result<String, Error> {
    let read = files::read_text(Path::new(path), Links::Follow, HEADS_BYTES_MAX as u64);
    read.map_err(|source| {
        let why = match source.kind() {
            ErrorKind::FileTooLarge => {
                format!("the file is larger than {HEADS_BYTES_MAX} bytes: divide it, and give each part")
            }
            _ => format!("neither a head nor a readable file: {source}"),
        };
        Error::Usage(format!("{place}: {}: {why}", printable(path)))
    })
}

/// Whether a notice says that a check is weaker.
fn says_weaker(notice: &VerifyFault) -> bool {
    matches!(notice.code, FaultCode::BadSig | FaultCode::PolicyChanged | FaultCode::Rewritten)
}

/// Prints the verdict, then the counts, then every fault on its own line.
pub fn text(place: &str, report: &VerifyReport, names: &TeamNames) -> String {
    let mut text = format!("{place}: {}\n", report.verdict_text());
    let found = match report.found_from.zip(report.found_to) {
        Some((from, to)) => format!("commits from {from} to {to}"),
        None if report.is_clean() => {
            "it holds no commit: no `annals sync` has committed yet, or an `annals copy` stopped before its first team"
                .to_owned()
        }
        None => "no valid commit found".to_owned(),
    };
    let _ = writeln!(text, "checked the whole archive: {found}");
    let left = [(report.retired, "retired"), (report.unnamed, "unnamed")].into_iter().filter(|(files, _)| *files > 0);
    let left: String = left.map(|(files, kind)| format!(", {files} files {kind}")).collect();
    let _ = writeln!(text, "commits {}, files {}, rows {}{left}", report.commits, report.files, report.rows);
    for team in &report.teams {
        let _ = writeln!(text, "{}", printable(&team_line(team, names)));
    }
    let mut put = |prefix: &str, fault: &VerifyFault| {
        let (object, detail) = (printable(&fault.object), printable(&fault.detail));
        let _ = writeln!(text, "{prefix}{} {object}: {detail}", fault.code.into_str());
    };
    report.faults.iter().for_each(|fault| put("", fault));
    let (weaker, others): (Vec<_>, Vec<_>) = report.notices.iter().partition(|notice| says_weaker(notice));
    // The notices that explain the exit code come first: the limit must not hide them behind others.
    weaker.into_iter().chain(others).take(NOTICES_SHOWN_MAX).for_each(|notice| put("notice: ", notice));
    if let Some(more @ 1..) = report.notices.len().checked_sub(NOTICES_SHOWN_MAX) {
        let _ = writeln!(text, "notice: and {more} more: --json shows them");
    }
    text
}

/// The names of the teams. A damaged archive can lack them; then the ids must do.
pub fn names(store: Arc<dyn Store>) -> TeamNames {
    let mut names = TeamNames::default();
    let Ok(archive) = Archive::open(store) else { return names };
    for team in archive.teams().unwrap_or_default() {
        if let Ok(reader) = archive.read(&team) {
            names.put_archived(&archive, reader.state());
        }
    }
    names
}

fn team_line(team: &TeamReport, names: &TeamNames) -> String {
    let name = team.team_id.as_ref().map_or_else(|| team.ledger.clone(), |team| names.with_id(team.as_str()));
    let mut line = format!("team {name}: commits {}, files {}, rows {}", team.commits, team.files, team.rows);
    if let (Some(first), Some(last)) = (team.first_at, team.last_at) {
        let _ = write!(line, ", from {first} to {last}");
    }
    if let Some(bad) = team.first_bad_line {
        let _ = write!(line, ", line {bad} is the first invalid line");
    }
    if let Some(Damage { first_seq, last_seq, first_event, last_event }) = team.damage {
        let _ = write!(line, ", damage from seq {first_seq} to seq {last_seq}");
        if let Some((first, last)) = first_event.zip(last_event) {
            let _ = write!(line, " (events from {first} to {last})");
        }
    }
    if let Some(signed) = &team.signed {
        let worth = if signed.is_self_asserted {
            "self-asserted: --key did not give that key"
        } else {
            "a given key, or joined to one"
        };
        let _ = write!(line, ", signed up to seq {} by {} ({worth})", signed.seq, signed.key);
    }
    if let Some(anchored) = team.anchored {
        let _ = write!(line, ", anchored up to seq {}", anchored.seq);
    }
    if let Some(head) = team.head {
        let _ = write!(line, ", head {head} at {}", team.last_seq);
    }
    line
}
