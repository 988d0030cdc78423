//! `annals doctor`: checks that a sync can work on this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use strum::IntoStaticStr;

use crate::alert::{check_program, targets};
use crate::api::TokenSource;
use crate::archive::{Archive, ArchiveError};
use crate::config::{Config, open_to_others, readable_by_others};
use crate::daemon::SKEW_SECONDS_MAX;
use crate::error::{Error, Exit};
use crate::model::path::TABLES;
use crate::model::{ArchivePlace, BucketLocation, Instant, Location, Stream};
use crate::store::{LocalStore, UnfinishedUpload, test_bucket};
use crate::web::Guard;

use super::modes::FileModes;
use super::output::{self, Columns, OutputArgs};
use super::public_key::expected_keys;
use super::report::CatalogArgs;
use super::sync::SPAN_UNKNOWN;
use super::{Global, block_on, global, limits, query, reading};

const FREE_BYTES_MIN: u64 = 1 << 30;
const DEADLINE: Duration = Duration::from_secs(20);

/// Check the configuration, token, service, clock, disk and archive
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
enum Health {
    Ok,
    Warning,
    Failed,
}

struct Check {
    name: &'static str,
    health: Health,
    detail: String,
}

fn check(name: &'static str, health: Health, detail: impl Into<String>) -> Check {
    Check { name, health, detail: detail.into() }
}

pub fn run(global: &Global, args: &DoctorArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let mut checks = vec![configuration(&config)];
    checks.extend(block_on(async { Ok(service(&config).await) })?);
    let place = query::archive_place(&config)?;
    let places = [(Some(&place.data), false), (place.ledger.as_ref(), true)];
    let places = places.into_iter().filter_map(|(location, is_ledger)| Some((location?, is_ledger)));
    let places: Vec<(&Location, bool)> = places.collect();
    checks.extend(places.iter().map(|(location, is_ledger)| match location {
        Location::Local(root) => disk(root),
        Location::Bucket(bucket) => store(bucket, *is_ledger),
    }));
    checks.extend(archive(&config, &place));
    checks.extend(refusals(&config));
    checks.extend(reports(&config, &args.catalog));
    checks.extend(places.iter().filter_map(|(location, _)| Some(modes(&config, location.directory()?))));
    if matches!(place.data, Location::Bucket(_)) {
        let inside = query::check_cache_place(&config).err().map(|why| check("cache", Health::Failed, why));
        checks.extend([inside.unwrap_or_else(|| cache(&config.cache.directory)), uploads(&config)]);
    }
    let rows = Columns::of(&checks)
        .text("check", |check| check.name)
        .text("result", |check| check.health.into_str())
        .text("detail", |check| &check.detail);
    args.output.batch(&rows.batch())?;
    let failed = checks.iter().any(|check| check.health == Health::Failed);
    Ok(if failed { Exit::Fault } else { Exit::Done })
}

fn configuration(config: &Config) -> Check {
    let from =
        config.file.as_ref().map_or("no file: defaults, environment and flags".into(), |f| f.display().to_string());
    match config.warnings.as_slice() {
        [] => check("configuration", Health::Ok, from),
        warnings => check("configuration", Health::Warning, format!("{from}; {}", warnings.join("; "))),
    }
}

/// One request checks the token, the service and the clock.
async fn service(config: &Config) -> Vec<Check> {
    let options = match global::http_options(config) {
        Ok(options) => options,
        Err(error) => return vec![check("token", Health::Failed, error.render(false))],
    };
    let place = match &options.token {
        TokenSource::Fixed(_) => "from ANNALS_TOKEN".to_owned(),
        TokenSource::File(path) => format!("from {}", path.display()),
    };
    let token = match open_to_others(&options.token) {
        Some(warning) => check("token", Health::Warning, warning),
        None => check("token", Health::Ok, place),
    };
    let address = options.base_url.clone();
    let clock_here = reading::clock();
    let options = crate::api::HttpOptions { deadline: DEADLINE, ..options };
    let source = match reading::source_without_retries(options, &clock_here) {
        Ok(source) => source,
        Err(error) => return vec![check("token", Health::Failed, error.render(false))],
    };
    match source.teams().await {
        Ok(served) => {
            let teams = served.body.len();
            let health = if teams == 0 { Health::Warning } else { Health::Ok };
            let reach =
                check("reach", health, format!("{address}: the token sees {}", output::counted(teams as u64, "team")));
            vec![token, reach, clock(served.at, clock_here.now())]
        }
        Err(error) => vec![token, check("reach", Health::Failed, format!("{address}: {error}"))],
    }
}

fn clock(service: Option<Instant>, ours: Instant) -> Check {
    let Some(service) = service else {
        return check(
            "clock",
            Health::Warning,
            "the service sends no Date header: this machine's clock decides when a window settles",
        );
    };
    // Instants subtract to zero at least, so one of the two is zero.
    let skew = ours.since(service).as_secs().max(service.since(ours).as_secs());
    let detail = format!("this machine says {ours} and the service says {service}: {skew} s apart");
    check("clock", if skew > SKEW_SECONDS_MAX { Health::Warning } else { Health::Ok }, detail)
}

fn disk(root: &Path) -> Check {
    let Some(place) = nearest_directory(root) else {
        return check("disk", Health::Failed, format!("{}: cannot read any parent directory", root.display()));
    };
    let tried = tempfile::NamedTempFile::new_in(&place).and_then(|file| file.as_file().sync_all());
    if let Err(error) = tried {
        return check("disk", Health::Failed, format!("{}: cannot write: {error}", place.display()));
    }
    let state = rustix::fs::statvfs(&place);
    match state.ok().and_then(|state| state.f_bavail.checked_mul(state.f_frsize)) {
        Some(free) => {
            let health = if free < FREE_BYTES_MIN { Health::Warning } else { Health::Ok };
            check("disk", health, format!("{}: writable, {} MiB free", place.display(), free >> 20))
        }
        None => check("disk", Health::Ok, format!("{}: writable", place.display())),
    }
}

fn nearest_directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|place| place.is_dir()).map(Path::to_owned)
}

/// Questions read a bucket's files from the cache. A service or a container often has no home directory.
fn cache(directory: &Path) -> Check {
    let tried = disk(directory);
    let hint = if tried.health == Health::Failed { "; set [cache] directory to a place on a disk" } else { "" };
    check("cache", tried.health, tried.detail + hint)
}

/// Tries each operation that an archive needs from its bucket.
fn store(place: &BucketLocation, is_ledger: bool) -> Check {
    let clock = reading::clock();
    match test_bucket(place, is_ledger, clock.random(), clock.now()) {
        Ok(test) if test.are_clocks_apart() => check("store", Health::Warning, format!("{place}: {test}")),
        Ok(test) => check("store", Health::Ok, format!("{place}: {test}")),
        Err(error) => check("store", Health::Failed, error.to_string()),
    }
}

fn archive(config: &Config, place: &ArchivePlace) -> Vec<Check> {
    match check_ledgers(config, place) {
        Ok(checks) => checks,
        Err(Error::Archive(ArchiveError::NotAnArchive)) => vec![match reading::check_no_data(&place.data) {
            Ok(()) => check("archive", Health::Ok, format!("{place}: no archive yet")),
            Err(why) => check("archive", Health::Failed, format!("{place}: {why}")),
        }],
        Err(error) => vec![check("archive", Health::Failed, error.render(false))],
    }
}

/// The settings that `sync`, `run` or a query refuses at its start, or that lose every alert; nothing if there are none.
fn refusals(config: &Config) -> Vec<Check> {
    let spill = limits::limits(config).spill_parent;
    let spilling = tempfile::tempdir_in(&spill)
        .map_err(|error| format!("{} (sql.temp_directory): cannot make a directory: {error}", spill.display()));
    let rendered = |error: Error| error.render(false);
    let found = [
        ("signing", reading::signer(config).map(drop).map_err(rendered)),
        ("signing", expected_keys(config).map(drop).map_err(rendered)),
        ("alerts", targets(&config.alerts).map(drop).map_err(|error| error.to_string())),
        ("alerts", check_program(&config.alerts)),
        ("port", Guard::new(&config.http).map(drop).map_err(|error| error.to_string())),
        ("spill", spilling.map(drop)),
    ];
    let failed = found.into_iter().filter_map(|(name, found)| Some(check(name, Health::Failed, found.err()?)));
    failed.collect()
}

/// Checks the folder of the user's own reports, if there is one: without it, the daemon and the page have no report.
fn reports(config: &Config, own: &CatalogArgs) -> Option<Check> {
    let folder = own.folder(config)?.display();
    let catalog = match own.load(config) {
        Ok(catalog) => catalog,
        Err(error) => return Some(check("reports", Health::Failed, error.to_string())),
    };
    Some(match catalog.faults() {
        [] => check(
            "reports",
            Health::Ok,
            format!("{folder}: {} with the built-in ones", output::counted(catalog.reports().len() as u64, "report")),
        ),
        faults => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            check("reports", Health::Warning, faults.join("; "))
        }
    })
}

/// Warns of uploads that a killed process left unfinished longer ago than the grace.
fn uploads(config: &Config) -> Check {
    let uploads = || -> Result<Vec<UnfinishedUpload>, Error> {
        let store = query::store(config)?;
        let before = store.now().map_err(ArchiveError::from)?.minus(config.grace_at(&config.archive));
        let bucket = store.bucket_of(TABLES).expect("BUG: these data are in a bucket");
        let mut found = bucket.unfinished_uploads().map_err(ArchiveError::from)?;
        found.retain(|upload| upload.since < before);
        Ok(found)
    };
    match uploads() {
        Ok(found) => match found.first() {
            None => check("uploads", Health::Ok, "no upload is older than the grace and unfinished"),
            Some(first) => {
                let (path, since) = (&first.path, first.since);
                let detail = format!(
                    "{} unfinished uploads, such as {path} of {since}: you pay for their parts, and `annals vacuum` aborts them",
                    found.len()
                );
                check("uploads", Health::Warning, detail)
            }
        },
        Err(error) => check(
            "uploads",
            Health::Warning,
            format!("cannot look for unfinished uploads (s3:ListBucketMultipartUploads): {}", error.render(false)),
        ),
    }
}

/// Warns of files that other users can read, or own. Looks at no file of a directory that is no archive.
fn modes(config: &Config, root: &Path) -> Check {
    let is_archive = Archive::is_at(&LocalStore::new(root));
    let found = match is_archive.then(|| FileModes::under(root, config.group_readable)).transpose() {
        Ok(found) => found.unwrap_or_default(),
        Err(error) => return check("modes", Health::Failed, format!("{}: {error}", root.display())),
    };
    let mut warnings = found.warnings(root);
    let keys = [
        (&config.http.token_file, "the port's token"),
        (&config.signing.key_file, "the signing key"),
        (&config.signing.previous_key_file, "the previous signing key"),
    ];
    warnings.extend(keys.iter().filter_map(|(path, what)| readable_by_others(path.as_deref()?, what)));
    match warnings.as_slice() {
        [] => check(
            "modes",
            Health::Ok,
            format!("{} files and directories are readable by {}", found.seen, found.readers()),
        ),
        warnings => check("modes", Health::Warning, warnings.join("; ")),
    }
}

/// Checks the ledgers, and warns of teams whose plan's span is unknown.
fn check_ledgers(config: &Config, place: &ArchivePlace) -> Result<Vec<Check>, Error> {
    let archive = Archive::open(query::store(config)?)?;
    let teams = archive.teams()?;
    let (mut commits, mut without_span) = (0, 0);
    for team in &teams {
        let reader = archive.read(team)?;
        commits += reader.state().seq.0;
        let read = reader.state().streams.get(&Stream::Connections);
        without_span += u64::from(read.is_some_and(|record| record.plan_span_seconds.is_none()));
    }
    let (teams, commits) = (output::counted(teams.len() as u64, "team"), output::counted(commits, "commit"));
    let mut checks = vec![check("archive", Health::Ok, format!("{place}: {teams}, {commits}, every ledger is valid"))];
    if without_span > 0 && config.plan_span.is_none() {
        let teams = output::counted(without_span, "team");
        checks.push(check("span", Health::Warning, format!("{teams}: {SPAN_UNKNOWN}")));
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_skew_is_measured_in_both_directions() {
        let noon: Instant = "2026-11-20T12:00:00Z".parse().unwrap();
        for (seconds, health) in [(0, Health::Ok), (60, Health::Ok), (61, Health::Warning)] {
            let other = noon.plus(Duration::from_secs(seconds));
            assert_eq!(clock(Some(noon), other).health, health, "{seconds} ahead");
            assert_eq!(clock(Some(other), noon).health, health, "{seconds} behind");
        }
        assert_eq!(clock(None, noon).health, Health::Warning);
    }

    #[test]
    fn the_disk_check_uses_the_nearest_existing_directory() {
        let directory = tempfile::tempdir().unwrap();
        let check = disk(&directory.path().join("not/yet/there"));
        assert_ne!(check.health, Health::Failed, "{}", check.detail);
        assert!(check.detail.starts_with(&directory.path().display().to_string()), "{}", check.detail);
        let refused = cache(Path::new("/proc/nowhere/annals/files"));
        assert_eq!(refused.health, Health::Failed, "{}", refused.detail);
        assert!(refused.detail.contains("set [cache] directory"), "{}", refused.detail);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
