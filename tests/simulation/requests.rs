//! The requests that the service saw. The laws about requests and the excuses for losses need them.

use std::collections::BTreeMap;
use std::time::Duration;

use annals::api::{ApiError, RETRY_AFTER_SECONDS_MAX};
use annals::model::{Instant, Stream};

use super::faults::{Coverage, Rare};
use super::plan::HOUR;
use super::service::Ask;

/// The most requests of one team in an hour.
const REQUESTS_AN_HOUR_MAX: u32 = 3_000;
/// The most requests of all teams in a world's life.
const REQUESTS_MAX: u64 = 1_000_000;

#[derive(Default)]
pub struct Seen {
    pub seed: u64,
    pub requests: u64,
    /// Broken laws about requests.
    pub broken: Vec<String>,
    /// By team: when its computers were listed.
    pub listed_at: Vec<Vec<i64>>,
    /// By team: the lists of computers that ended a reading of its connections.
    pub readings: Vec<Vec<i64>>,
    /// By team: whether the program read connections since the last list or failure.
    has_read: Vec<bool>,
    /// By team: whether the service hid connections since the last list, so the program did not read all of them.
    is_misled: Vec<bool>,
    /// By team: when a request got no answer, or the process ended, in nanoseconds.
    pub troubles: Vec<Vec<i64>>,
    hours: BTreeMap<(usize, i64), u32>,
    /// By process: until when the service ordered it to wait with all requests.
    not_before: BTreeMap<u32, Instant>,
    begun: u64,
    ended: BTreeMap<Option<usize>, u64>,
    walks: BTreeMap<(usize, Stream), LastWalk>,
}

/// The last reading of a list: its range, its content, and whether it changed during the walk.
struct LastWalk {
    range: (i64, i64),
    rows: Vec<u32>,
    is_moved: bool,
}

impl Seen {
    pub fn new(seed: u64, teams: usize) -> Self {
        let (listed_at, readings, troubles) =
            (vec![Vec::new(); teams], vec![Vec::new(); teams], vec![Vec::new(); teams]);
        let (has_read, is_misled) = (vec![false; teams], vec![false; teams]);
        Self { seed, listed_at, readings, troubles, has_read, is_misled, ..Self::default() }
    }

    /// A request begins. Returns its number.
    pub fn begin(&mut self, process: u32, ask: &Ask, now: Instant, coverage: &mut Coverage) -> u64 {
        self.requests += 1;
        assert!(self.requests < REQUESTS_MAX, "I11: more than {REQUESTS_MAX} requests, {:?}", self.broken.first());
        self.begun += 1;
        if let Some(earliest) = self.not_before.remove(&process) {
            coverage.rare(Rare::RetryWait, self.seed);
            if now < earliest {
                self.not_before.insert(process, earliest);
                self.broken.push(format!("I11: {ask:?} asked at {now}, and Retry-After said not before {earliest}"));
            }
        }
        if let Some(team) = ask.team() {
            let hour = now.seconds() / HOUR;
            let count = self.hours.entry((team, hour)).or_default();
            *count += 1;
            if *count == REQUESTS_AN_HOUR_MAX {
                self.broken.push(format!("I11: {count} requests for team {team} in the hour of {now}"));
            }
        }
        if let Ask::Page { start, stop, .. } = ask {
            match stop - start {
                ..=4 => coverage.rare(Rare::DenseSecond, self.seed),
                5..=HOUR => coverage.rare(Rare::Split, self.seed),
                _ => {}
            }
        }
        if let Ask::Page { device: Some(_), .. } = ask {
            coverage.rare(Rare::Deprecated, self.seed);
        }
        self.begun
    }

    /// The request ends. Returns whether a later request ended before it.
    pub fn end(&mut self, ask: &Ask, number: u64) -> bool {
        let last = self.ended.entry(ask.team()).or_default();
        let is_overtaken = *last > number;
        *last = (*last).max(number);
        is_overtaken
    }

    pub fn answered(&mut self, ask: &Ask, now: Instant) {
        match ask {
            Ask::Page { team, stream: Stream::Connections, .. } => self.has_read[*team] = true,
            Ask::Devices(team) => {
                self.listed_at[*team].push(now.nanos());
                let is_misled = std::mem::take(&mut self.is_misled[*team]);
                if std::mem::take(&mut self.has_read[*team]) && !is_misled {
                    self.readings[*team].push(now.nanos());
                }
            }
            _ => {}
        }
    }

    /// The service shows less than it holds, or has shown before.
    pub fn misled(&mut self, ask: &Ask) {
        if let Ask::Page { team, stream: Stream::Connections, .. } = ask {
            self.is_misled[*team] = true;
        }
    }

    pub fn failed(&mut self, process: u32, ask: &Ask, error: &ApiError, now: Instant) {
        // A process that must wait waits with all requests.
        let team = ask.team().filter(|_| error.retry_after().is_none());
        let teams = team.map_or(0..self.troubles.len(), |team| team..team + 1);
        // A failing view stops no stream that was read before.
        let teams = teams.filter(|_| !matches!(ask, Ask::Team(_)));
        teams.for_each(|team| self.troubles[team].push(now.nanos()));
        if let (Some(Stream::Connections), Some(team)) = (ask.stream(), ask.team()) {
            self.has_read[team] = false;
        }
        if let ApiError::Throttled { retry_after: Some(wait), .. } = error {
            let wait = (*wait).min(Duration::from_secs(RETRY_AFTER_SECONDS_MAX));
            let earliest = self.not_before.entry(process).or_insert(now);
            *earliest = (*earliest).max(now.plus(wait));
        }
    }

    /// The process ended, or its store failed: it may have lost uncommitted events.
    pub fn trouble(&mut self, now: Instant) {
        self.troubles.iter_mut().for_each(|times| times.push(now.nanos()));
        self.has_read.fill(false);
    }

    /// A new process does not know its predecessor's waiting times.
    pub fn forget(&mut self) {
        self.not_before.clear();
    }

    /// The content of a list at a request.
    pub fn shown(
        &mut self,
        (team, stream): (usize, Stream),
        range: (i64, i64),
        offset: usize,
        rows: impl Iterator<Item = u32>,
        coverage: &mut Coverage,
    ) {
        let rows: Vec<u32> = rows.collect();
        let walked = self.walks.entry((team, stream)).or_insert(LastWalk { range, rows: Vec::new(), is_moved: false });
        if walked.range == range && walked.is_moved && offset == 0 {
            coverage.rare(Rare::MovedAnchors, self.seed);
        }
        let passed = offset.min(rows.len()).min(walked.rows.len());
        let is_moved = walked.range == range && offset > 0 && rows[..passed] != walked.rows[..passed];
        self.is_misled[team] |= is_moved && stream == Stream::Connections;
        *walked = LastWalk { range, rows, is_moved };
    }
}
