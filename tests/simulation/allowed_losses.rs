//! The reasons for which an event of the truth may be missing: a gap records it, or no reader could have read it.

use annals::archive::{Finding, FindingKind, TeamState};
use annals::model::{Instant, Stream};

use super::plan::{DAY, HOUR, Plan};
use super::retention::has_gone;
use super::run::Run;
use super::service::Inner;
use super::world::{Device, Event, LossReason, NANO, NEVER};

/// The subject of findings about a computer that no event names.
pub const UNKNOWN_COMPUTER: &str = "unknown_computer";

pub struct Excuses<'a> {
    plan: &'a Plan,
    state: &'a TeamState,
    troubles: &'a [i64],
    disk: Vec<i64>,
    listed_at: &'a [i64],
    devices: &'a [Device],
    events: &'a [Event],
}

/// Whether one of the reasons applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excuse {
    Gap,
    /// Older than the archive's beginning.
    BeforeBeginning,
    /// The event vanished by itself before the program first read it.
    DeletedUnread,
    /// The program read the event, but the process or the disk failed before the commit, and then the event vanished.
    LostWithProcess,
    /// The event appeared after the last re-scan of its window.
    AfterLastRescan,
    /// The event's computer was removed, a gap records that, and the event appeared later than the lag.
    LaterThanLag,
    /// The event left the plan's span before it appeared, or too soon afterwards for a poll.
    OutOfSpan,
    /// The event's computer was removed, and neither a list nor activity nor a connection that was read showed that it existed.
    UnknownComputer,
    /// A line records that the event's month expired.
    Expired,
}

impl<'a> Excuses<'a> {
    pub fn new(run: &'a Run, inner: &'a Inner, team: usize, state: &'a TeamState) -> Self {
        let disk = run.disk.inner().failures.clone();
        let devices = &inner.teams[team].devices[..];
        let events = &inner.teams[team].lists[Stream::Connections as usize][..];
        let (troubles, listed_at) = (&inner.seen.troubles[team], &inner.seen.listed_at[team]);
        Self { plan: &run.plan, state, troubles, disk, listed_at, devices, events }
    }

    /// Until when the service shows the event: it disappears, or the plan's span ends.
    fn shown_until(&self, event: &Event) -> i64 {
        let span = self.plan.plan_span.filter(|_| event.stream == Stream::Connections);
        event.until.min(span.map_or(NEVER, |span| event.at.saturating_add(span * NANO)))
    }

    pub fn of(&self, event: &Event) -> Option<Excuse> {
        let shown_until = self.shown_until(event);
        if has_gone(self.state, event.stream, event.at) {
            return Some(Excuse::Expired);
        }
        if self.is_before_beginning(event) {
            return Some(Excuse::BeforeBeginning);
        }
        if let Some(served) = event.served {
            let is_gone = shown_until < NEVER;
            if is_gone && self.is_in_trouble(served) {
                return Some(if self.is_in_gap(event) { Excuse::Gap } else { Excuse::LostWithProcess });
            }
            return None;
        }
        if self.is_in_gap(event) {
            return Some(Excuse::Gap);
        }
        let window_end = (event.at.div_euclid(DAY * NANO) + 1) * DAY * NANO;
        if event.from > window_end + 72 * HOUR * NANO {
            return Some(Excuse::AfterLastRescan);
        }
        if event.gone == Some(LossReason::Removed) && self.is_later_than_lag(event) {
            return Some(Excuse::LaterThanLag);
        }
        if event.gone == Some(LossReason::Removed) && event.device.is_some_and(|n| !self.was_known(n)) {
            return Some(Excuse::UnknownComputer);
        }
        match event.gone {
            Some(LossReason::Deleted | LossReason::Edited) => Some(Excuse::DeletedUnread),
            _ if event.flaps.is_some() => Some(Excuse::DeletedUnread),
            _ if shown_until < event.until && event.from > event.at + HOUR * NANO => Some(Excuse::OutOfSpan),
            _ if shown_until <= event.from => Some(Excuse::OutOfSpan),
            _ => None,
        }
    }

    pub fn is_in_gap(&self, event: &Event) -> bool {
        self.state.gaps().filter(|gap| gap.stream == Some(event.stream)).any(|gap| {
            let (from, to) = (gap.from.map_or(i64::MIN, Instant::nanos), gap.to.map_or(NEVER, Instant::nanos));
            let of_computer = self.devices.iter().position(|device| device.id == gap.subject);
            // The service's clock has whole seconds.
            let is_inside = from - NANO <= event.at && event.at < to + NANO;
            is_inside && (of_computer.is_none() || of_computer == event.device)
        })
    }

    fn is_before_beginning(&self, event: &Event) -> bool {
        let begins = |stream: Stream| {
            let of = self.state.findings.iter().map(|(_, finding)| finding);
            let of = of.filter(|f| f.kind == FindingKind::ArchiveBegins && f.stream == Some(stream));
            of.filter_map(|f| f.from).min()
        };
        let first_listed = self.listed_at.first().copied().unwrap_or(NEVER);
        let was_hidden = self.plan.plan_span.is_some_and(|span| event.at < first_listed - (span - 2 * HOUR) * NANO);
        // If the service showed the computer or its removal, a finding must record the removal.
        let was_known = event.gone == Some(LossReason::Removed) && event.device.is_some_and(|n| self.was_known(n));
        let was_removed = if was_known { self.is_removed_before(event) } else { event.until <= first_listed };
        begins(event.stream).is_none_or(|begins| event.at < begins.nanos())
            || (event.stream == Stream::Connections && was_hidden)
            || was_removed
    }

    /// Whether activity shows the computer's removal, or an answer from before the removal showed the computer.
    fn was_known(&self, n: usize) -> bool {
        let device = &self.devices[n];
        let served = self.events.iter().filter(|event| event.device == Some(n)).filter_map(|event| event.served);
        let listed = self.listed_at.iter().copied().filter(|at| (device.added..device.removed).contains(at));
        device.is_shown || served.chain(listed).any(|at| !self.is_in_trouble(at))
    }

    /// Whether a finding records that the event's computer was removed before the backfill.
    fn is_removed_before(&self, event: &Event) -> bool {
        let findings = self.state.findings.iter().map(|(_, finding)| finding);
        findings.filter(|finding| finding.kind == FindingKind::RemovedBefore).any(|finding| {
            let is_its = event.device.is_some_and(|n| self.devices[n].id == finding.subject);
            let (from, to) = (finding.from.map_or(i64::MAX, Instant::nanos), finding.to.map_or(0, Instant::nanos));
            (is_its || finding.subject == UNKNOWN_COMPUTER) && from <= event.at && event.at < to + NANO
        })
    }

    /// Whether the event appeared later than the configured lag, and later than the computer's gap reaches back.
    fn is_later_than_lag(&self, event: &Event) -> bool {
        let is_late = event.from - event.at > i64::try_from(self.plan.settings.lag.as_nanos()).unwrap();
        let is_its =
            |subject: &str| subject == UNKNOWN_COMPUTER || event.device.is_some_and(|n| self.devices[n].id == subject);
        let covers = |gap: &Finding| gap.to.is_some_and(|to| to.nanos() + NANO >= event.until);
        is_late && self.state.gaps().any(|gap| is_its(&gap.subject) && covers(gap))
    }

    /// Whether the events of a reading at that time may have been lost before their commit.
    fn is_in_trouble(&self, served: i64) -> bool {
        let soon = served..served + 2 * HOUR * NANO;
        let near = |times: &[i64]| times.iter().any(|at| soon.contains(at));
        near(self.troubles) || near(&self.disk)
    }
}
