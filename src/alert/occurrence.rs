//! Finds everything that deserves an alert. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::config::{Alerts, Rule};
use crate::daemon::{Detected, Late, LiveSnapshot, TeamLive, Verified};
use crate::model::{Digest, Instant, LedgerSeq, Severity, TeamId};

/// One reason for an alert. It names teams, streams, computers' ids and times, but no person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Occurrence {
    /// Equal for the same occurrence, also after a restart.
    pub key: String,
    #[serde(serialize_with = "rule_name")]
    pub rule: Rule,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Instant>,
    /// The ledger line that records it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_seq: Option<u64>,
    /// The report that detected it, its highest severity, and the number of detections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<u64>,
    /// The time of its discovery.
    pub at: Instant,
    /// Several detections of one report: each is sent once, and they are sent together.
    #[serde(skip)]
    pub detected: Option<Arc<Detected>>,
    /// The faults of the archive, by key: each is sent once, and they are sent together.
    #[serde(skip)]
    pub faults: Vec<(String, String)>,
}

fn rule_name<S: serde::Serializer>(rule: &Rule, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(rule.as_str())
}

/// All occurrences at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertState {
    /// Permanent occurrences, by team and ledger line.
    pub recorded: Vec<(TeamId, LedgerSeq, Occurrence)>,
    /// Conditions that hold now.
    pub firing: Vec<Occurrence>,
    /// Keys of conditions that certainly do not hold.
    pub resolved: BTreeSet<String>,
    /// The keys of everything that each report detects now, for reports that succeeded; also of the archive's faults.
    pub detected: BTreeMap<String, BTreeSet<String>>,
    /// The last ledger line of each team when this process opened it.
    pub opened_at: BTreeMap<TeamId, LedgerSeq>,
}

/// The start of the process, and the current time.
#[derive(Debug, Clone, Copy)]
pub struct Since {
    pub started: Instant,
    pub now: Instant,
}

/// All occurrences at one moment. `late` is `None` while the list of teams is unknown.
pub fn occurrences(snapshot: &LiveSnapshot, late: Option<&[Late]>, config: &Alerts, since: Since) -> AlertState {
    let mut state = AlertState::default();
    for (team, live) in &snapshot.teams {
        if let Some(seq) = live.opened_at {
            state.opened_at.insert(team.clone(), seq);
        }
        if config.rules.contains(&Rule::Gap) {
            state.recorded.extend(gaps(team, live));
        }
        if config.rules.contains(&Rule::TimeLeft) {
            time_left(team, live, config, since.now, &mut state);
        }
        if config.rules.contains(&Rule::Stale) {
            stale(team, live, late.unwrap_or_default(), config, since, &mut state);
        }
    }
    if config.rules.contains(&Rule::Stale) {
        unlisted(snapshot, late.is_some(), config, since, &mut state);
    }
    if config.rules.contains(&Rule::Verify) {
        verify(snapshot, since, &mut state);
    }
    if config.rules.contains(&Rule::Report) {
        reports(snapshot, config.severity, since.now, &mut state);
    }
    state
}

/// A test alert that says so.
pub fn test_alert(now: Instant) -> Occurrence {
    let mut test = occurrence(Rule::Verify, None, None, "test", now);
    test.message = "this is a test alert of annals: nothing is wrong".to_owned();
    test
}

impl AlertState {
    fn condition(&mut self, occurrence: Occurrence, is_firing: bool) {
        match is_firing {
            true => self.firing.push(occurrence),
            false => {
                self.resolved.insert(occurrence.key);
            }
        }
    }
}

fn gaps(team: &TeamId, live: &TeamLive) -> Vec<(TeamId, LedgerSeq, Occurrence)> {
    let gaps = live.gaps.iter().map(|(seq, gap)| {
        let moment = |at: Option<Instant>| at.map_or_else(String::new, |at| at.to_string());
        let stream = gap.stream.map(crate::model::Stream::as_str);
        let apart = format!("{seq} {} {} {}", gap.subject, moment(gap.from), moment(gap.to));
        let mut new = occurrence(Rule::Gap, Some(team), stream, &apart, gap.found_at);
        (new.from, new.to, new.ledger_seq) = (gap.from, gap.to, Some(seq.0));
        let (from, to) = (moment(gap.from), moment(gap.to));
        let what = stream.unwrap_or("events");
        new.message = format!("a gap in {what} of team {team} ({}), from {from} to {to}: {}", gap.subject, gap.reason);
        (team.clone(), *seq, new)
    });
    gaps.collect()
}

fn time_left(team: &TeamId, live: &TeamLive, config: &Alerts, now: Instant, state: &mut AlertState) {
    let aged = live.seen_at.map_or(0, |at| now.since(at).as_secs());
    for stream in live.status.iter().flat_map(|status| &status.streams).filter(|of| of.seconds_to_loss.is_some()) {
        let left = stream.short_of_time(config.time_left, aged);
        let mut short = occurrence(Rule::TimeLeft, Some(team), Some(stream.stream.as_str()), "", now);
        let seconds = left.unwrap_or_default().as_secs();
        short.message = format!(
            "{} of team {team}: {} h {} min left until unread events can be lost",
            stream.stream,
            seconds / 3_600,
            seconds / 60 % 60
        );
        short.from = stream.read_to;
        state.condition(short, left.is_some());
    }
}

fn stale(team: &TeamId, live: &TeamLive, late: &[Late], config: &Alerts, since: Since, state: &mut AlertState) {
    for (task, run) in &live.tasks {
        let is_late = late.iter().find(|late| late.team == *team && late.stream.as_str() == task.as_str());
        let mut unread = occurrence(Rule::Stale, Some(team), Some(task.as_str()), "", since.now);
        match is_late {
            None if run.done_at.is_some() => state.condition(unread, false),
            Some(late) if since.now.since(late.done_at.unwrap_or(since.started)) >= config.stale => {
                let last = late.done_at.map_or_else(|| "since the start".to_owned(), |at| format!("since {at}"));
                let why = late.error.as_deref().unwrap_or("no round has ended");
                unread.message = format!("{} of team {team} was not read {last}: {why}", task.as_str());
                unread.from = late.done_at;
                state.condition(unread, true);
            }
            _ => {}
        }
    }
}

fn unlisted(snapshot: &LiveSnapshot, is_known: bool, config: &Alerts, since: Since, state: &mut AlertState) {
    let mut unlisted = occurrence(Rule::Stale, None, None, "teams", since.now);
    let error = snapshot.listing_error.as_deref().unwrap_or("the service has not answered");
    unlisted.message = format!("the daemon does not know the teams: {error}");
    if is_known {
        state.condition(unlisted, false);
    } else if since.now.since(since.started) >= config.stale {
        state.condition(unlisted, true);
    }
}

fn verify(snapshot: &LiveSnapshot, since: Since, state: &mut AlertState) {
    let mut unchecked = occurrence(Rule::Verify, None, None, "unchecked", since.now);
    if let Some(error) = &snapshot.check_error {
        unchecked.message = format!("the archive could not be checked: {error}");
        state.condition(unchecked, true);
    } else if snapshot.verified.as_ref().is_some_and(|verified| verified.at >= since.started) {
        state.condition(unchecked, false);
    }
    let Some(Verified { at, faults, named }) = &snapshot.verified else { return };
    let mut alert = occurrence(Rule::Verify, None, None, "", *at);
    let count = if *faults == 1 { "1 fault".to_owned() } else { format!("{faults} faults") };
    // Faults beyond those that are named change the number.
    let more = (*faults > named.len()).then(|| count.clone());
    let keyed = named.iter().cloned().chain(more).map(|fault| {
        let key = Digest::with_domain("annals fault\n", &[fault.as_bytes()]).short();
        (format!("{}:{key}", Rule::Verify.as_str()), fault)
    });
    alert.faults = keyed.collect();
    let keys = alert.faults.iter().map(|(key, _)| key.clone()).collect();
    state.detected.insert(Rule::Verify.as_str().to_owned(), keys);
    if let Some((_, first)) = alert.faults.first() {
        alert.message = format!("the archive differs from its ledger: {count}, the first: {first}");
        state.firing.push(alert);
    }
}

fn reports(snapshot: &LiveSnapshot, severity: Severity, now: Instant, state: &mut AlertState) {
    for (report, detected) in &snapshot.detections.found {
        let subjects = detected.subjects.iter().filter(|(_, grave)| **grave >= severity);
        let subjects: BTreeMap<String, Severity> = subjects.map(|(key, grave)| (key.clone(), *grave)).collect();
        state.detected.insert(report.clone(), subjects.keys().cloned().collect());
        let alert = occurrence(Rule::Report, None, None, report, now);
        state.firing.extend(alert.of(&Detected { subjects, ..Detected::clone(detected) }));
    }
}

impl Occurrence {
    /// The alert for a report's detections; `None` without any.
    fn of(mut self, detected: &Detected) -> Option<Self> {
        let severity = *detected.subjects.values().max()?;
        let (count, Detected { report, name, title, period, .. }) = (detected.subjects.len(), detected);
        let (from, to) = (period.start, period.end);
        self.message = format!(
            "report {report} ({title}) detects {count} new {}, the highest severity is {severity}: see `annals report run {name} --from {from} --to {to}`",
            if count == 1 { "row" } else { "rows" }
        );
        (self.from, self.to) = (Some(from), Some(to));
        (self.report, self.severity, self.findings) = (Some(name.clone()), Some(severity), Some(count as u64));
        self.detected = Some(Arc::new(detected.clone()));
        Some(self)
    }

    /// The part that is new to a target that has received `keys`; `None` if nothing is new.
    pub(super) fn unsent_part(&self, keys: &BTreeSet<String>) -> Option<Self> {
        let Some(detected) = &self.detected else {
            return if self.faults.is_empty() {
                (!keys.contains(&self.key)).then(|| self.clone())
            } else {
                self.new_faults(keys)
            };
        };
        let new = detected.subjects.iter().filter(|(key, _)| !keys.contains(*key));
        let subjects = new.map(|(key, severity)| (key.clone(), *severity)).collect();
        self.clone().of(&Detected { subjects, ..Detected::clone(detected) })
    }

    fn new_faults(&self, keys: &BTreeSet<String>) -> Option<Self> {
        let new: Vec<_> = self.faults.iter().filter(|(key, _)| !keys.contains(key)).cloned().collect();
        let (_, first) = new.first()?;
        let mut part = self.clone();
        if new.len() < self.faults.len() {
            part.message = format!("{}; new since the last alert: {}, the first: {first}", self.message, new.len());
        }
        part.faults = new;
        Some(part)
    }

    /// The keys of everything in this alert.
    pub(super) fn keys(&self) -> Vec<String> {
        match &self.detected {
            Some(detected) => detected.subjects.keys().cloned().collect(),
            None if self.faults.is_empty() => vec![self.key.clone()],
            None => self.faults.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

fn occurrence(rule: Rule, team: Option<&TeamId>, stream: Option<&str>, apart: &str, at: Instant) -> Occurrence {
    let team = team.map(ToString::to_string);
    let parts = [rule.as_str(), team.as_deref().unwrap_or(""), stream.unwrap_or(""), apart];
    Occurrence {
        key: Digest::with_domain("annals alert\n", &[parts.join("\n").as_bytes()]).short(),
        rule,
        team,
        stream: stream.map(str::to_owned),
        message: String::new(),
        from: None,
        to: None,
        ledger_seq: None,
        report: None,
        severity: None,
        findings: None,
        at,
        detected: None,
        faults: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn each_new_fault_of_the_archive_brings_an_alert_and_an_unfinished_check_brings_another() {
        let config = Config::of_text(Path::new("annals.toml"), "").unwrap().alerts;
        let (started, at) = (Instant::from_seconds(1_800_000_000), Instant::from_seconds(1_800_000_100));
        let state = |faults: &[&str], error: Option<&str>| {
            let named = faults.iter().map(ToString::to_string).collect();
            let verified = Some(Verified { at, faults: faults.len(), named });
            let check_error = error.map(str::to_owned);
            let snapshot = LiveSnapshot { verified, check_error, ..LiveSnapshot::default() };
            occurrences(&snapshot, Some(&[]), &config, Since { started, now: at })
        };
        let mut target = super::super::sent_log::SentToTarget::default();
        let mut send = |state: AlertState| {
            target.settle(&state);
            let unsent = target.unsent(&state);
            unsent.iter().for_each(|occurrence| target.note(occurrence, &state));
            unsent.into_iter().map(|occurrence| occurrence.message).collect::<Vec<_>>()
        };
        let differs = "the archive differs from its ledger: ";
        assert_eq!(send(state(&["A x"], None)), [format!("{differs}1 fault, the first: A x")]);
        assert!(send(state(&["A x"], None)).is_empty());
        let both = format!("{differs}2 faults, the first: A x; new since the last alert: 1, the first: B y");
        assert_eq!(send(state(&["A x", "B y"], None)), [both]);
        assert_eq!(send(state(&["A x", "B y"], Some("403"))), ["the archive could not be checked: 403"]);
        assert!(send(state(&["A x", "B y"], Some("403"))).is_empty());
        assert!(send(state(&["B y"], None)).is_empty());
        assert_eq!(send(state(&["B y"], Some("403"))).len(), 1, "another check did not end");
        assert_eq!(send(state(&["A x", "B y"], None)).len(), 1, "the fault came back");
    }
}
