//! Joins file, environment and flags to one [`Config`] and checks it. Flags override the environment, which overrides the file.

mod base_url;
mod cache;
mod cron;
mod daemon;
mod file;
mod publish;
mod retention;
mod sql;
mod store;
mod token;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use url::Url;

use crate::api::TokenSource;
use crate::model::{ArchivePlace, GRACE_MIN, Location, Privacy, Shard, TeamId, TeamRetention, duration_text};

pub use crate::model::{When, parse_duration};
pub use cron::Cron;
pub use daemon::{Alerts, Http, Rule, Schedule, TeamMetrics};
pub use file::{Inventory, Partition, Signing};
pub use publish::Publish;
pub use sql::{SqlLimits, check_threads, parse_memory};
pub use store::overlaps;
pub use token::{open_to_others, readable_by_others};

use base_url::check_base_url;
pub use cache::CacheSettings;
use file::File;
use store::is_inside;

/// The file that is read if none is named and this one exists.
pub const DEFAULT_FILE: &str = "annals.toml";
/// The default archive.
pub const DEFAULT_ARCHIVE: &str = "archive";
const CONCURRENCY_MAX: usize = 64;
const REQUESTS_PER_SECOND_MIN: f64 = 0.01;
const REQUESTS_PER_SECOND_MAX: f64 = 10_000.0;
const DEADLINE_MIN: Duration = Duration::from_secs(1);
const DEADLINE_MAX: Duration = Duration::from_secs(600);
const COMMIT_EVERY_MAX: Duration = Duration::from_secs(3_600);
const GRACE_MAX: Duration = Duration::from_secs(366 * 86_400);
const RETRY_FOR_MAX: Duration = Duration::from_secs(3_600);
const PLAN_SPAN_MIN: Duration = Duration::from_secs(3_600);
const PLAN_SPAN_MAX: Duration = Duration::from_secs(3_660 * 86_400);
const RESCANS_MAX: usize = 8;
const DAY_SECONDS: u64 = 86_400;
/// A month is sealed as a whole, so no window is longer than the shortest month.
const WINDOW_DAYS_MAX: u64 = 28;
/// Annals plans each window: shorter ones of a long history fill the memory.
const WINDOW_MIN: Duration = Duration::from_secs(15 * 60);
const LAG_MAX: Duration = Duration::from_secs(7 * DAY_SECONDS);

/// Why the configuration is invalid.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{path}: line {line}: {message}")]
    Malformed { path: PathBuf, line: usize, message: String },
    #[error("{place}: {message}")]
    Invalid { place: String, message: String },
    #[error("the service's address is missing: give --base-url or ANNALS_BASE_URL, or set api.base_url in annals.toml")]
    NoBaseUrl,
    #[error("the token is missing: set ANNALS_TOKEN or ANNALS_TOKEN_FILE, or api.token_file in annals.toml")]
    NoToken,
}

impl ConfigError {
    fn invalid(place: impl Into<String>, message: impl Into<String>) -> Self {
        ConfigError::Invalid { place: place.into(), message: message.into() }
    }
}

/// Values from flags and environment; `None` if not given.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub archive: Option<PathBuf>,
    /// `ANNALS_ARCHIVE` gives `archive`: nobody may remember the variable.
    pub is_archive_of_environment: bool,
    pub ledger: Option<PathBuf>,
    pub base_url: Option<String>,
    /// 0 for no limit.
    pub requests_per_second: Option<f64>,
    /// `ANNALS_TOKEN` or `ANNALS_TOKEN_FILE`.
    pub token: Option<TokenSource>,
    pub group_readable: Option<bool>,
    pub shard: Option<Shard>,
}

/// How time is divided into windows, and when they are read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRules {
    /// Divides a day, or is a whole number of days.
    pub length: Duration,
    pub lag: Duration,
    /// Ages at which a settled window is re-scanned, ascending; the window is sealed after the last.
    pub rescan: Vec<Duration>,
    pub partition: Partition,
}

/// All checked settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    pub archive: Location,
    /// The place of the ledger, if it lies elsewhere than the archive.
    pub ledger: Option<Location>,
    /// Whether the group can read new files.
    pub group_readable: bool,
    /// How long files remain after no ledger line names them, if the file sets it; see [`Config::grace_at`].
    pub grace: Option<Duration>,
    /// The minimum time between two commits of a team, if the file sets it; see [`Config::commit_interval`].
    pub commit_every: Option<Duration>,
    /// The cache of files from buckets, for the SQL engine.
    pub cache: CacheSettings,
    /// The folder of the user's own reports.
    pub queries: Option<PathBuf>,
    base_url: Option<Url>,
    token: Option<TokenSource>,
    /// Empty: all teams that the token sees.
    pub teams: Vec<TeamId>,
    /// The plan's span of teams for which the service does not show it.
    pub plan_span: Option<Duration>,
    /// Only this shard's teams are read.
    pub shard: Shard,
    /// `None` for no limit.
    pub requests_per_second: Option<f64>,
    pub concurrency: NonZeroUsize,
    /// The time limit of one request with its body.
    pub deadline: Duration,
    /// How long `sync` and `plan` retry a request that can succeed later; zero: never.
    pub retry_for: Duration,
    pub windows: WindowRules,
    pub inventory: Inventory,
    pub schedule: Schedule,
    pub sql: SqlLimits,
    pub http: Http,
    pub alerts: Alerts,
    pub publish: Publish,
    pub signing: Signing,
    pub retention: TeamRetention,
    pub privacy: Privacy,
    /// Warnings about unwise settings, one sentence each.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads and checks the file that `overrides` names, or [`DEFAULT_FILE`] in the working directory if it exists.
    ///
    /// # Errors
    /// When a file cannot be read or is not TOML, a key is unknown, or a value is invalid.
    pub fn load(overrides: Overrides) -> Result<Self, ConfigError> {
        let (path, file) = match &overrides.config {
            Some(path) => (Some(path.clone()), File::read(path)?),
            None => match File::read_if_there(Path::new(DEFAULT_FILE))? {
                Some(file) => (Some(PathBuf::from(DEFAULT_FILE)), file),
                None => (None, File::default()),
            },
        };
        Self::merge(path, file, overrides)
    }

    /// Checks the text of a file at `path`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn of_text(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::merge(Some(path.to_owned()), File::parse(path, text)?, Overrides::default())
    }

    fn merge(path: Option<PathBuf>, file: File, overrides: Overrides) -> Result<Self, ConfigError> {
        let place = |key: &str| match &path {
            Some(path) => format!("{}: {key}", path.display()),
            None => key.to_owned(),
        };
        // The file's paths are relative to the file, so that they mean the same in every working directory.
        let directory = path.as_deref().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
        let mut warnings = Vec::new();
        let ArchivePlace { data: archive, ledger } =
            store::check_place(&file, &overrides, &directory, &place, &mut warnings)?;
        let base_url = match (overrides.base_url, &file.api.base_url) {
            (Some(text), _) => Some(check_base_url("--base-url or ANNALS_BASE_URL", &text, &mut warnings)?),
            (None, Some(text)) => Some(check_base_url(&place("api.base_url"), text, &mut warnings)?),
            (None, None) => None,
        };
        let token = overrides.token.or(file.api.token_file.map(|path| TokenSource::File(directory.join(path))));
        let requests_per_second = match overrides.requests_per_second {
            Some(rate) => check_rate("--requests-per-second or ANNALS_REQUESTS_PER_SECOND", rate)?,
            None => check_rate(&place("api.requests_per_second"), file.api.requests_per_second)?,
        };
        let windows = check_windows(&file.windows, &place)?;
        let sql = SqlLimits::of_file(&file.sql, &directory, &place)?;
        let optional_span = |key: &str, text: Option<&str>, min, max| {
            text.map(|text| check_span(&place(key), text, min, max)).transpose()
        };
        let signing = check_signing(file.signing, &directory, [Some(&archive), ledger.as_ref()], &place)?;
        Ok(Self {
            archive,
            ledger,
            group_readable: overrides.group_readable.unwrap_or(file.store.group_readable),
            cache: CacheSettings::of_file(&file.cache, &directory, &place)?,
            grace: optional_span("store.grace", file.store.grace.as_deref(), GRACE_MIN, GRACE_MAX)?,
            commit_every: optional_span(
                "store.commit_every",
                file.store.commit_every.as_deref(),
                Duration::ZERO,
                COMMIT_EVERY_MAX,
            )?,
            queries: file.queries.map(|path| directory.join(path)),
            base_url,
            token,
            sql,
            teams: check_teams(&file.api.teams, &place)?,
            plan_span: optional_span("api.plan_span", file.api.plan_span.as_deref(), PLAN_SPAN_MIN, PLAN_SPAN_MAX)?,
            shard: check_shard(overrides.shard, file.fleet.shard.as_deref(), &place)?,
            requests_per_second,
            concurrency: check_concurrency(file.api.concurrency, &place)?,
            deadline: check_span(&place("api.deadline"), &file.api.deadline, DEADLINE_MIN, DEADLINE_MAX)?,
            retry_for: check_span(&place("api.retry_for"), &file.api.retry_for, Duration::ZERO, RETRY_FOR_MAX)?,
            windows,
            inventory: file.inventory,
            schedule: daemon::check_schedule(&file.schedule, &place)?,
            http: daemon::check_http(&file.http, &directory, &place)?,
            alerts: daemon::check_alerts(&file.alerts, &directory, &place)?,
            publish: Publish::of_file(&file.publish, &place)?,
            signing,
            retention: retention::check_retention(&file.retention, &place)?,
            privacy: file.privacy.into(),
            warnings,
            file: path,
        })
    }

    /// The service's address; its path ends without a slash.
    ///
    /// # Errors
    /// When no address is configured.
    pub fn base_url(&self) -> Result<&Url, ConfigError> {
        self.base_url.as_ref().ok_or(ConfigError::NoBaseUrl)
    }

    /// The source of the token, which is read at each use, so that a rotated file takes effect.
    ///
    /// # Errors
    /// When no token is configured.
    pub fn token_source(&self) -> Result<&TokenSource, ConfigError> {
        self.token.as_ref().ok_or(ConfigError::NoToken)
    }
}

/// A key inside the archive would prove nothing: who can write the data can write the key.
fn check_signing(
    signing: Signing,
    directory: &Path,
    archive: [Option<&Location>; 2],
    place: &impl Fn(&str) -> String,
) -> Result<Signing, ConfigError> {
    let is_inside = |path: &Path| archive.into_iter().flatten().any(|of| is_inside_archive(path, of));
    let key_file = |key: &str, path: Option<PathBuf>| match path.map(|path| directory.join(path)) {
        Some(path) if is_inside(&path) => {
            let message = format!("{} is inside the archive: move the key to another place", path.display());
            Err(ConfigError::invalid(place(key), message))
        }
        other => Ok(other),
    };
    // The value is the key itself, or its file.
    let public_key = signing.public_key.map(|given| match directory.join(&given) {
        file if file.is_file() => file.display().to_string(),
        _ => given,
    });
    Ok(Signing {
        key_file: key_file("signing.key_file", signing.key_file)?,
        previous_key_file: key_file("signing.previous_key_file", signing.previous_key_file)?,
        public_key,
    })
}

/// Whether `path` is inside an archive on this machine.
pub fn is_inside_archive(path: &Path, archive: &Location) -> bool {
    archive.directory().is_some_and(|directory| is_inside(path, directory))
}

fn check_teams(teams: &[String], place: &impl Fn(&str) -> String) -> Result<Vec<TeamId>, ConfigError> {
    if teams.iter().any(|team| team.trim().is_empty()) {
        return Err(ConfigError::invalid(place("api.teams"), "a team's id is empty"));
    }
    Ok(teams.iter().map(|team| TeamId::from(team.as_str())).collect())
}

fn check_shard(over: Option<Shard>, text: Option<&str>, place: &impl Fn(&str) -> String) -> Result<Shard, ConfigError> {
    match (over, text) {
        (Some(shard), _) => Ok(shard),
        (None, Some(text)) => {
            text.parse().map_err(|message: String| ConfigError::invalid(place("fleet.shard"), message))
        }
        (None, None) => Ok(Shard::WHOLE),
    }
}

/// 0 means no limit.
fn check_rate(place: &str, rate: f64) -> Result<Option<f64>, ConfigError> {
    if rate == 0.0 {
        return Ok(None);
    }
    if !(REQUESTS_PER_SECOND_MIN..=REQUESTS_PER_SECOND_MAX).contains(&rate) {
        let range = format!("{REQUESTS_PER_SECOND_MIN} to {REQUESTS_PER_SECOND_MAX}");
        return Err(ConfigError::invalid(place, format!("{rate} is neither 0 (no limit) nor in the range {range}")));
    }
    Ok(Some(rate))
}

fn check_concurrency(value: usize, place: &impl Fn(&str) -> String) -> Result<NonZeroUsize, ConfigError> {
    NonZeroUsize::new(value).filter(|value| value.get() <= CONCURRENCY_MAX).ok_or_else(|| {
        ConfigError::invalid(place("api.concurrency"), format!("{value} is not in the range 1 to {CONCURRENCY_MAX}"))
    })
}

fn check_span(place: &str, text: &str, min: Duration, max: Duration) -> Result<Duration, ConfigError> {
    let span = parse_duration(text).map_err(|message| ConfigError::invalid(place, message))?;
    match (min..=max).contains(&span) {
        true => Ok(span),
        false => Err(ConfigError::invalid(
            place,
            format!("{text} is not in the range {} to {}", duration_text(min), duration_text(max)),
        )),
    }
}

fn check_windows(section: &file::Windows, place: &impl Fn(&str) -> String) -> Result<WindowRules, ConfigError> {
    let span =
        |key: &str, text: &str| parse_duration(text).map_err(|message| ConfigError::invalid(place(key), message));
    let length = span("windows.length", &section.length)?;
    let seconds = length.as_secs();
    let fits = length >= WINDOW_MIN && (DAY_SECONDS.is_multiple_of(seconds) || seconds.is_multiple_of(DAY_SECONDS));
    if !fits || seconds > WINDOW_DAYS_MAX * DAY_SECONDS {
        return Err(ConfigError::invalid(
            place("windows.length"),
            format!(
                "{} must divide a day and be at least {}, or be 1 to {WINDOW_DAYS_MAX} whole days",
                section.length,
                duration_text(WINDOW_MIN)
            ),
        ));
    }
    let lag = span("windows.lag", &section.lag)?;
    if lag > LAG_MAX {
        return Err(ConfigError::invalid(place("windows.lag"), format!("{} is more than 7d", section.lag)));
    }
    let rescan = section.rescan.iter().map(|text| span("windows.rescan", text)).collect::<Result<Vec<_>, _>>()?;
    if rescan.len() > RESCANS_MAX || !rescan.is_sorted_by(|earlier, later| earlier < later) {
        return Err(ConfigError::invalid(
            place("windows.rescan"),
            format!("{:?} must be a list of at most {RESCANS_MAX} ascending ages", section.rescan),
        ));
    }
    if section.partition == Partition::Day && seconds > DAY_SECONDS {
        let message = format!(
            "\"day\" seals days, but windows of {} are longer: set \"month\", or a windows.length of at most 1d",
            section.length
        );
        return Err(ConfigError::invalid(place("windows.partition"), message));
    }
    Ok(WindowRules { length, lag, rescan, partition: section.partition })
}

#[cfg(test)]
mod tests;
