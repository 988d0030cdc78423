//! The only code that spells and parses the paths of an archive.
//!
//! Every name consists of `[a-z0-9_=.-]` and is shorter than 200 bytes, so that any file system keeps it unchanged.

use std::fmt;

use super::{Dataset, FileRole, Instant, LedgerSeq, Range, TeamKey};

pub const MANIFEST: &str = "archive.json";
pub const LEDGER: &str = "ledger";
/// Says whose ledger this is, if it lies elsewhere than the data.
pub const LEDGER_MANIFEST: &str = "ledger/archive.json";
pub const SALTS: &str = "salts";
pub const TABLES: &str = "tables";
pub const SNAPSHOTS: &str = "snapshots";
const METADATA: &str = "metadata";
const DATA: &str = "data";
/// The file of a table's metadata that names the newest version.
pub const VERSION_HINT: &str = "version-hint.text";
/// The first number that no version of a table has. Engines read larger numbers inexactly.
const VERSIONS_END: u64 = 1 << 53;
/// The open tables that are not datasets: a publication derives them from the ledger and writes them whole.
pub const LEDGER_TABLES: [&str; 2] = ["coverage", "findings"];
/// The directory of files that have no final name yet.
pub const SCRATCH: &str = "scratch";
/// The directory of lock files, on a local disk.
pub const LOCKS: &str = "locks";
/// The lock of a process that opens a new archive. Only this lock creates the archive's directory.
pub const LOCK_OF_NEW: &str = "archive";

const HASH_DIGITS: usize = 16;
const DAY_SECONDS: i64 = 86_400;

/// The path of a data file, with everything that the path tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPath {
    pub dataset: Dataset,
    pub team: TeamKey,
    pub role: FileRole,
    /// The start of the window (parts, windows), of the year, month or day (sealed files and amendments), or of the day when
    /// Annals first saw the events (quarantine).
    pub start: Instant,
    /// The first 16 hexadecimal digits of the file's SHA-256.
    pub hash: String,
}

impl DataPath {
    /// `None` if the text is no path of a data file.
    pub fn parse(text: &str) -> Option<Self> {
        match ArchivePath::parse(text) {
            Some(ArchivePath::Data(data)) => Some(data),
            _ => None,
        }
    }
}

/// Every path of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchivePath {
    Manifest,
    /// The manifest of a ledger that lies elsewhere than the data.
    LedgerManifest,
    /// The ledger of a team's day; `day` is its first instant.
    Ledger {
        team: TeamKey,
        day: Instant,
    },
    /// The signatures of a day's heads.
    Heads {
        team: TeamKey,
        day: Instant,
    },
    /// The salt of the row digests of a month; `month` is its first instant.
    Salt {
        team: TeamKey,
        month: Instant,
        /// The first 16 hexadecimal digits of the file's SHA-256.
        hash: String,
    },
    Data(DataPath),
    /// A metadata file of an open table; derived.
    Table {
        table: String,
        name: String,
    },
    /// A data file of a ledger table; derived.
    LedgerTable {
        table: String,
        name: String,
    },
    /// The state of the ledger after line `seq`.
    Snapshot {
        team: TeamKey,
        seq: LedgerSeq,
    },
}

impl ArchivePath {
    /// `None` if the text is no path of an archive.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let found = match parts.as_slice() {
            [MANIFEST] => ArchivePath::Manifest,
            [LEDGER, MANIFEST] => ArchivePath::LedgerManifest,
            [LEDGER, team, name] if name.ends_with(".heads") => {
                ArchivePath::Heads { team: team_of(team)?, day: parse_day(name.strip_suffix(".heads")?)? }
            }
            [LEDGER, team, name] => {
                ArchivePath::Ledger { team: team_of(team)?, day: parse_day(name.strip_suffix(".jsonl")?)? }
            }
            [SALTS, team, name] => {
                let (month, hash) = month_and_hash(name.strip_suffix(".json")?)?;
                ArchivePath::Salt { team: team_of(team)?, month, hash: hash.to_owned() }
            }
            [SNAPSHOTS, team, name] => {
                let seq = LedgerSeq(name.strip_suffix(".json")?.parse().ok()?);
                ArchivePath::Snapshot { team: team_of(team)?, seq }
            }
            [TABLES, table, METADATA, name] if is_table(table) && is_metadata(name) => {
                ArchivePath::Table { table: (*table).to_owned(), name: (*name).to_owned() }
            }
            [TABLES, table, DATA, name] if LEDGER_TABLES.contains(table) => {
                month_and_hash(name.strip_suffix(".parquet")?)?;
                ArchivePath::LedgerTable { table: (*table).to_owned(), name: (*name).to_owned() }
            }
            [TABLES, dataset, team, _, name] => {
                let dataset = Dataset::named(dataset)?;
                let mut pieces = name.strip_suffix(".parquet")?.splitn(3, '-');
                let start = compact_time(pieces.next()?)?;
                let role = FileRole::named(pieces.next()?)?;
                let hash = pieces.next()?.to_owned();
                if !is_hash(&hash) {
                    return None;
                }
                ArchivePath::Data(DataPath { dataset, team: team_of(team)?, role, start, hash })
            }
            _ => return None,
        };
        (found.to_string() == text).then_some(found)
    }
}

impl fmt::Display for DataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dataset, team, role, start, hash } = self;
        let time = start.floor_second().to_string().replace(['-', ':'], "").to_ascii_lowercase();
        write!(f, "{}/{time}-{}-{hash}.parquet", month_place(*dataset, team, *start), role.name())
    }
}

impl fmt::Display for ArchivePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchivePath::Manifest => f.write_str(MANIFEST),
            ArchivePath::LedgerManifest => f.write_str(LEDGER_MANIFEST),
            ArchivePath::Ledger { team, day } => write!(f, "{}/{}.jsonl", ledger_of(team), day.day()),
            ArchivePath::Heads { team, day } => write!(f, "{}/{}.heads", ledger_of(team), day.day()),
            ArchivePath::Salt { team, month, hash } => write!(f, "{}/{}-{hash}.json", salts_of(team), month.month()),
            ArchivePath::Data(data) => data.fmt(f),
            ArchivePath::Table { table, name } => write!(f, "{}/{name}", metadata_of(table)),
            ArchivePath::LedgerTable { table, name } => write!(f, "{}/{name}", data_of(table)),
            ArchivePath::Snapshot { team, seq } => write!(f, "{}/{seq}.json", snapshots_of(team)),
        }
    }
}

/// Whether a path is of a file of the ledger.
pub fn is_in_ledger(path: &str) -> bool {
    path.strip_prefix(LEDGER).is_some_and(|rest| rest.starts_with('/'))
}

/// The directory of a team's ledger.
pub fn ledger_of(team: &TeamKey) -> String {
    format!("{LEDGER}/team={team}")
}

/// The directory of a team's salts.
pub fn salts_of(team: &TeamKey) -> String {
    format!("{SALTS}/team={team}")
}

/// The directory of a team's snapshots.
pub fn snapshots_of(team: &TeamKey) -> String {
    format!("{SNAPSHOTS}/team={team}")
}

/// The directory of a team's files of a dataset.
pub fn table_of(dataset: Dataset, team: &TeamKey) -> String {
    format!("{TABLES}/{dataset}/team={team}")
}

/// The directory of an open table's metadata.
pub fn metadata_of(table: &str) -> String {
    format!("{TABLES}/{table}/{METADATA}")
}

/// The directory of the data files of an open table that is not a dataset.
pub fn data_of(table: &str) -> String {
    format!("{TABLES}/{table}/{DATA}")
}

/// The directory of a dataset's files whose time is in the month of `start`.
fn month_place(dataset: Dataset, team: &TeamKey, start: Instant) -> String {
    format!("{}/month={}", table_of(dataset, team), start.month())
}

/// A day or month whose rows become one file: the rows of the windows that begin in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SealUnit {
    Day,
    Month,
}

impl SealUnit {
    /// Days come first: a time in a sealed day belongs to that day, even if its month is sealed in the same commit.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// The unit that contains `at`, in UTC.
    pub fn of(self, at: Instant) -> Range {
        match self {
            Self::Day => day_of(at),
            Self::Month => month_of(at),
        }
    }

    /// The role of the file with all its rows.
    pub const fn role(self) -> FileRole {
        match self {
            Self::Day => FileRole::Day,
            Self::Month => FileRole::Month,
        }
    }
}

impl fmt::Display for SealUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Day => "day",
            Self::Month => "calendar month",
        })
    }
}

/// The path prefix of the files whose time is in a month or day.
pub fn place_of(dataset: Dataset, team: &TeamKey, unit: SealUnit, start: Instant) -> String {
    let place = month_place(dataset, team, start);
    match unit {
        SealUnit::Day => format!("{place}/{}", start.day().replace('-', "")),
        SealUnit::Month => format!("{place}/"),
    }
}

/// The name of the lock of a team's writer.
pub fn lock_of(team: &TeamKey) -> String {
    format!("team={team}")
}

/// Whether files of this role hold sealed rows.
pub const fn is_sealed(role: FileRole) -> bool {
    matches!(role, FileRole::Day | FileRole::Month | FileRole::Amendment)
}

/// The calendar month of `at`, in UTC.
pub fn month_of(at: Instant) -> Range {
    let start = at.first_of_month();
    // 32 days after the first day of a month is one of the first days of the next month.
    let next = Instant::from_seconds(start.seconds() + 32 * 86_400);
    Range::new(start, next.first_of_month())
}

/// The calendar year of `at`, in UTC.
pub fn year_of(at: Instant) -> Range {
    let start = at.first_of_year();
    // 366 days after the first day of a year is the first or second day of the next year.
    let next = Instant::from_seconds(start.seconds() + 366 * DAY_SECONDS);
    Range::new(start, next.first_of_year())
}

/// The UTC day of `at`.
pub fn day_of(at: Instant) -> Range {
    let start = day_start(at);
    Range::new(start, Instant::from_seconds(start.seconds() + DAY_SECONDS))
}

/// The first instant of the UTC day of `at`.
pub fn day_start(at: Instant) -> Instant {
    Instant::from_seconds(at.seconds().div_euclid(DAY_SECONDS) * DAY_SECONDS)
}

fn team_of(part: &str) -> Option<TeamKey> {
    TeamKey::parse(part.strip_prefix("team=")?)
}

fn is_table(name: &str) -> bool {
    Dataset::named(name).is_some() || LEDGER_TABLES.contains(&name)
}

/// Whether a publisher gives this name to a file of a table's metadata.
fn is_metadata(name: &str) -> bool {
    let kinds = [("snap-", ".avro"), ("lines-", ".json"), ("", "-m0.avro")];
    let is_of = |(start, end): (&str, &str)| {
        name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)).is_some_and(is_hash)
    };
    name == VERSION_HINT || version_number(name).is_some() || kinds.into_iter().any(is_of)
}

/// The number in the name of a table's version, `v<N>.metadata.json`. `None` for a name that no publisher writes.
pub fn version_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('v')?.strip_suffix(".metadata.json")?;
    let version = digits.parse().ok().filter(|version| (1..VERSIONS_END).contains(version))?;
    (version.to_string() == digits).then_some(version)
}

/// The parts of `2026-11-0123456789abcdef`: the first instant of the month, and the hash.
fn month_and_hash(text: &str) -> Option<(Instant, &str)> {
    let (month, hash) = text.split_at_checked("2026-11".len())?;
    let hash = hash.strip_prefix('-').filter(|hash| is_hash(hash))?;
    Some((parse_day(&format!("{month}-01"))?, hash))
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn parse_day(text: &str) -> Option<Instant> {
    format!("{text}T00:00:00Z").parse().ok()
}

/// The instant of `20261120t000000z`. The caller compares the text with the spelling of the result.
fn compact_time(text: &str) -> Option<Instant> {
    let at = |from: usize, to: usize| text.get(from..to);
    let (date, time) = ([at(0, 4)?, at(4, 6)?, at(6, 8)?].join("-"), [at(9, 11)?, at(11, 13)?, at(13, 15)?].join(":"));
    format!("{date}T{time}Z").parse().ok()
}

#[cfg(test)]
mod tests;
