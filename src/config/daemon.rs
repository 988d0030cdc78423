//! The settings of the daemon: its schedules, its port, its alerts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;
use strum::IntoStaticStr;
use url::Url;

use crate::model::Severity;

use super::cron::Cron;
use super::{ConfigError, file, parse_duration};

/// By default, each team has its own metric series up to this number of teams.
const TEAMS_IN_METRICS_MAX: usize = 100;
/// Limits of the time for a visitor's query.
const SQL_TIME_MIN: Duration = Duration::from_secs(1);
const SQL_TIME_MAX: Duration = Duration::from_secs(600);
/// Limits of the period that reports cover for alerts.
const PERIOD_MIN: Duration = Duration::from_secs(3_600);
const PERIOD_MAX: Duration = Duration::from_secs(92 * 86_400);

/// The daemon's schedules, in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub connections: Cron,
    pub activity: Cron,
    pub billing: Cron,
    pub inventory: Cron,
    /// The check of the whole archive against its ledger.
    pub verify: Cron,
    /// The detecting reports, for alerts.
    pub reports: Cron,
    /// Expires rows that are older than their retention class.
    pub retention: Cron,
}

/// Whether each team has its own metric series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TeamMetrics {
    /// Up to `TEAMS_IN_METRICS_MAX` teams.
    #[default]
    Auto,
    Always,
    Never,
}

impl TeamMetrics {
    pub const fn shows(self, teams: usize) -> bool {
        match self {
            TeamMetrics::Auto => teams <= TEAMS_IN_METRICS_MAX,
            TeamMetrics::Always => true,
            TeamMetrics::Never => false,
        }
    }
}

impl FromStr for TeamMetrics {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(TeamMetrics::Auto),
            "true" => Ok(TeamMetrics::Always),
            "false" => Ok(TeamMetrics::Never),
            _ => Err(format!("{text} must be \"auto\", true or false")),
        }
    }
}

/// The daemon's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    pub listen: SocketAddr,
    /// The file with the bearer token of the port.
    pub token_file: Option<PathBuf>,
    /// Whether visitors can use SQL.
    pub sql: bool,
    /// The time limit of a visitor's query.
    pub sql_time: Duration,
    pub team_metrics: TeamMetrics,
}

/// The targets of alerts, and their rules.
#[derive(Debug, Clone)]
pub struct Alerts {
    /// The address often contains a secret.
    pub webhook: Option<SecretString>,
    /// A program with arguments; it receives one JSON object on its standard input.
    pub command: Vec<String>,
    pub rules: Vec<Rule>,
    /// Alert when less time than this is left until a loss, and less than half of the service's span.
    pub time_left: Duration,
    /// Alert when a stream has not been read for this time.
    pub stale: Duration,
    /// Alert about detections of this severity or higher.
    pub severity: Severity,
    /// The period that the reports cover.
    pub period: Duration,
}

/// The rules of alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Rule {
    Gap,
    TimeLeft,
    Stale,
    Verify,
    Report,
}

impl Rule {
    pub const ALL: [Rule; 5] = [Rule::Gap, Rule::TimeLeft, Rule::Stale, Rule::Verify, Rule::Report];

    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

pub(super) fn check_schedule(
    section: &file::Schedule,
    place: &impl Fn(&str) -> String,
) -> Result<Schedule, ConfigError> {
    let cron =
        |key: &str, text: &str| text.parse::<Cron>().map_err(|message| ConfigError::invalid(place(key), message));
    Ok(Schedule {
        connections: cron("schedule.connections", &section.connections)?,
        activity: cron("schedule.activity", &section.activity)?,
        billing: cron("schedule.billing", &section.billing)?,
        inventory: cron("schedule.inventory", &section.inventory)?,
        verify: cron("schedule.verify", &section.verify)?,
        reports: cron("schedule.reports", &section.reports)?,
        retention: cron("schedule.retention", &section.retention)?,
    })
}

fn listen_message(text: &str) -> String {
    format!("{text:?} is not address:port: give an IP address, such as 127.0.0.1:9464")
}

/// Relative paths are relative to `directory`.
pub(super) fn check_http(
    section: &file::Http,
    directory: &Path,
    place: &impl Fn(&str) -> String,
) -> Result<Http, ConfigError> {
    let listen = (section.listen.parse())
        .map_err(|_| ConfigError::invalid(place("http.listen"), listen_message(&section.listen)))?;
    let invalid = |message: String| ConfigError::invalid(place("http.sql_time"), message);
    let sql_time = parse_duration(&section.sql_time).map_err(invalid)?;
    if sql_time < SQL_TIME_MIN || sql_time > SQL_TIME_MAX {
        return Err(invalid(format!("{} is not in the range 1s to 10m", section.sql_time)));
    }
    let token_file = section.token_file.as_ref().map(|path| directory.join(path));
    let team_metrics = match &section.team_metrics {
        toml::Value::String(text) => text.parse::<TeamMetrics>(),
        other => other.to_string().parse(),
    };
    let team_metrics = team_metrics.map_err(|message| ConfigError::invalid(place("http.team_metrics"), message))?;
    Ok(Http { listen, token_file, sql: section.sql, sql_time, team_metrics })
}

/// A relative path of the program is relative to `directory`. The system looks up a name without a slash.
pub(super) fn check_alerts(
    section: &file::Alerts,
    directory: &Path,
    place: &impl Fn(&str) -> String,
) -> Result<Alerts, ConfigError> {
    let invalid = |key: &str, message: String| ConfigError::invalid(place(key), message);
    let webhook = match &section.webhook {
        None => None,
        Some(text) => Some(check_webhook(text).map_err(|message| invalid("alerts.webhook", message))?),
    };
    if section.command.first().is_some_and(String::is_empty) {
        return Err(invalid("alerts.command", "the program's name is empty".to_owned()));
    }
    let rule = |name: &String| {
        let known = Rule::ALL.map(Rule::as_str).join(", ");
        let found = Rule::ALL.into_iter().find(|rule| rule.as_str() == name);
        found.ok_or_else(|| invalid("alerts.rules", format!("{name:?} is unknown: expected one of {known}")))
    };
    let rules = match &section.rules {
        None => Rule::ALL.to_vec(),
        Some(names) => names.iter().map(rule).collect::<Result<_, _>>()?,
    };
    let time_left = parse_duration(&section.time_left).map_err(|message| invalid("alerts.time_left", message))?;
    let stale = parse_duration(&section.stale).map_err(|message| invalid("alerts.stale", message))?;
    let severity = section.severity.parse().map_err(|message| invalid("alerts.severity", message))?;
    let period = parse_duration(&section.period).map_err(|message| invalid("alerts.period", message))?;
    if period < PERIOD_MIN || period > PERIOD_MAX {
        return Err(invalid("alerts.period", format!("{} is not in the range 1h to 92d", section.period)));
    }
    let mut command = section.command.clone();
    if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
        *program = directory.join(&*program).into_os_string().into_string().map_err(|path| {
            invalid("alerts.command", format!("{}: the path is not valid UTF-8", Path::new(&path).display()))
        })?;
    }
    Ok(Alerts { webhook, command, rules, time_left, stale, severity, period })
}

/// No message repeats the address: it often contains a secret.
fn check_webhook(text: &str) -> Result<SecretString, String> {
    let url = Url::parse(text).map_err(|error| format!("not a URL: {error}"))?;
    match matches!(url.scheme(), "http" | "https") && url.host().is_some() {
        true => Ok(SecretString::from(url.to_string())),
        false => Err("the address must begin with https:// or http:// and a host".to_owned()),
    }
}
