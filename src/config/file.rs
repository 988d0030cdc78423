//! The keys of `annals.toml` and their defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files::{self, Links};
use crate::model::{Privacy, RawPolicy, Retained};

use super::ConfigError;

/// The maximum size of an `annals.toml`.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How sealed rows are divided into files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Partition {
    #[default]
    Month,
    /// For very busy teams.
    Day,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub archive: Option<String>,
    /// The folder of the user's own `.sql` reports.
    pub queries: Option<PathBuf>,
    pub api: Api,
    pub windows: Windows,
    pub inventory: Inventory,
    pub schedule: Schedule,
    pub http: Http,
    pub sql: Sql,
    pub alerts: Alerts,
    pub signing: Signing,
    pub store: Store,
    pub fleet: Fleet,
    pub cache: CacheSection,
    pub retention: Retention,
    pub privacy: PrivacySection,
    pub publish: Publish,
}

/// When open tables are published, and the address of the archive for their readers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Publish {
    pub schedule: Option<String>,
    pub location: Option<String>,
}

/// Retention classes by dataset. A dataset without a class never expires.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Retention {
    pub activity: Option<String>,
    pub connections: Option<String>,
    pub billing: Option<String>,
    pub inventory: Option<String>,
    pub quarantine: Option<String>,
    /// Different classes for single teams, by team id.
    pub teams: BTreeMap<String, Classes>,
}

/// A team's classes, by the names of their datasets: serde's `flatten` cannot refuse unknown names.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Classes(pub BTreeMap<Retained, String>);

impl Retention {
    pub fn classes(&self) -> Classes {
        let class = |retained: Retained| match retained {
            Retained::Activity => &self.activity,
            Retained::Connections => &self.connections,
            Retained::Billing => &self.billing,
            Retained::Inventory => &self.inventory,
            Retained::Quarantine => &self.quarantine,
        };
        Classes(Retained::ALL.into_iter().filter_map(|retained| Some((retained, class(retained).clone()?))).collect())
    }
}

/// Whether the archive keeps the texts of events, for all streams and by stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PrivacySection {
    pub raw: RawPolicy,
    pub streams: PrivacyStreams,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PrivacyStreams {
    pub activity: Option<RawPolicy>,
    pub connections: Option<RawPolicy>,
    pub billing: Option<RawPolicy>,
}

impl From<PrivacySection> for Privacy {
    fn from(PrivacySection { raw, streams }: PrivacySection) -> Self {
        let PrivacyStreams { activity, connections, billing } = streams;
        Self {
            activity: activity.unwrap_or(raw),
            connections: connections.unwrap_or(raw),
            billing: billing.unwrap_or(raw),
        }
    }
}

/// The cache of files from buckets, for the SQL engine.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CacheSection {
    pub directory: Option<PathBuf>,
    pub size: String,
}

impl Default for CacheSection {
    fn default() -> Self {
        Self { directory: None, size: "10 GB".into() }
    }
}

/// How several daemons share the teams.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Fleet {
    pub shard: Option<String>,
}

/// The place of the ledger, the modes of the archive's files, the grace of `vacuum`, and the minimum time between two commits of a
/// team.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Store {
    pub ledger: Option<String>,
    pub group_readable: bool,
    pub grace: Option<String>,
    pub commit_every: Option<String>,
}

/// The keys that sign the archive; they are never inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Signing {
    /// The private key that signs each commit's head.
    pub key_file: Option<PathBuf>,
    /// The previous key, which hands over to `key_file`.
    pub previous_key_file: Option<PathBuf>,
    /// The public key that `verify` expects to have signed the heads: the key itself, or its file.
    pub public_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Api {
    pub base_url: Option<String>,
    pub token_file: Option<PathBuf>,
    pub teams: Vec<String>,
    pub plan_span: Option<String>,
    pub requests_per_second: f64,
    pub concurrency: usize,
    pub deadline: String,
    pub retry_for: String,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            base_url: None,
            token_file: None,
            teams: Vec::new(),
            plan_span: None,
            requests_per_second: 5.0,
            concurrency: 4,
            deadline: "60s".into(),
            retry_for: "75s".into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Windows {
    pub length: String,
    pub lag: String,
    pub rescan: Vec<String>,
    pub partition: Partition,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            length: "1d".into(),
            lag: "15m".into(),
            rescan: ["1h", "24h", "72h"].map(String::from).into(),
            partition: Partition::Month,
        }
    }
}

/// Whether people and computers are read, and each user's sign-in methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Inventory {
    pub enabled: bool,
    /// Each user's sign-in methods and tokens: one request for each user and day.
    pub user_info: bool,
}

impl Default for Inventory {
    fn default() -> Self {
        Self { enabled: true, user_info: true }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Schedule {
    pub connections: String,
    pub activity: String,
    pub billing: String,
    pub inventory: String,
    pub verify: String,
    pub reports: String,
    pub retention: String,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            connections: "* * * * *".into(),
            activity: "*/5 * * * *".into(),
            billing: "*/15 * * * *".into(),
            inventory: "0 3 * * *".into(),
            verify: "0 4 * * SUN".into(),
            reports: "20 * * * *".into(),
            retention: "40 3 * * *".into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Http {
    pub listen: String,
    pub token_file: Option<PathBuf>,
    pub sql: bool,
    pub sql_time: String,
    /// "auto", true or false.
    pub team_metrics: toml::Value,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:9464".into(),
            token_file: None,
            sql: false,
            sql_time: "30s".into(),
            team_metrics: "auto".into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Alerts {
    pub webhook: Option<String>,
    pub command: Vec<String>,
    pub rules: Option<Vec<String>>,
    pub time_left: String,
    pub stale: String,
    pub severity: String,
    pub period: String,
}

impl Default for Alerts {
    fn default() -> Self {
        Self {
            webhook: None,
            command: Vec::new(),
            rules: None,
            time_left: "3d".into(),
            stale: "15m".into(),
            severity: "high".into(),
            period: "1d".into(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Sql {
    pub memory: Option<String>,
    pub threads: Option<u32>,
    pub temp_directory: Option<PathBuf>,
}

impl File {
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = files::read_text(path, Links::Follow, FILE_BYTES_MAX)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// `None` if the file does not exist; other failures are errors.
    pub fn read_if_there(path: &Path) -> Result<Option<Self>, ConfigError> {
        match files::read_text(path, Links::Follow, FILE_BYTES_MAX) {
            Ok(text) => Self::parse(path, &text).map(Some),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        }
    }

    /// The parser's own message quotes the line, which can contain a misplaced token. So only its short message and the line number
    /// are used.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|e| {
            let span = e.span().unwrap_or_default();
            let before = &text[..span.start.min(text.len())];
            let after = text.get(span.end..).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            // The parser's "variant" is a value, or a key of a map.
            let variant = if after.trim_start().starts_with('=') { "unknown key" } else { "unknown value" };
            let said = e.message().replace("unknown field", "unknown key").replace("unknown variant", variant);
            let is_of_value = ["invalid ", "unknown value"].iter().any(|start| said.starts_with(start));
            let message = match key_before(before).filter(|_| is_of_value) {
                Some(key) => format!("{key}: {}", plain(&said)),
                None => plain(&said),
            };
            ConfigError::Malformed { path: path.to_owned(), line, message }
        })
    }
}

/// The key, with its table, of the value that begins after `text`; `None` if the value is on a line of its own.
fn key_before(text: &str) -> Option<String> {
    let (above, line) = text.rsplit_once('\n').unwrap_or(("", text));
    let (key, _) = line.split_once('=')?;
    let table = above.lines().rev().find_map(|line| Some(line.trim().strip_prefix('[')?.split_once(']')?.0));
    let key = table.map_or_else(|| key.trim().to_owned(), |table| format!("{table}.{}", key.trim()));
    key.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)).then_some(key)
}

/// A message about a wrong type names Rust's types, and repeats the value, which can be a secret.
fn plain(message: &str) -> String {
    let expected = message.strip_prefix("invalid ").and_then(|rest| rest.rsplit_once(", expected "));
    let form = match expected.map(|(_, form)| form) {
        Some("a sequence") => "a list in square brackets",
        Some("a boolean") => "true or false",
        Some("f64") => "a number",
        Some("u32" | "u64" | "usize") => "a whole number that is not negative",
        Some("a string" | "path string") => "a text in quotes",
        Some(form) if form == "a map" || form.starts_with("struct ") => "a table",
        _ => return message.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    format!("expected {form}")
}
