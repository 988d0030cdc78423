//! Why an event of the truth may be missing: a gap says so, or nobody could have read it.

use annals::archive::{FindingKind, TeamState};
use annals::model::{Instant, Stream};

use super::plan::{DAY, HOUR, Plan};
use super::run::Run;
use super::service::Inner;
use super::world::{Event, Gone, NANO, NEVER};

pub struct Excuses<'a> {
    plan: &'a Plan,
    state: &'a TeamState,
    troubles: &'a [i64],
    disk: Vec<i64>,
    looks: &'a [i64],
    devices: Vec<String>,
}

/// What is accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excuse {
    Gap,
    /// Older than the archive's beginning.
    BeforeBeginning,
    /// It vanished by itself before anybody read it, and nothing tells of that.
    DeletedUnread,
    /// It was read, and what was read was lost with its process or its disk before it was committed; then it vanished.
    LostWithProcess,
    /// It appeared after the last re-scan of its window.
    AfterLastRescan,
    /// The plan's span had passed before it appeared, or so soon after that no poll could see it.
    OutOfSpan,
}

impl<'a> Excuses<'a> {
    pub fn new(run: &'a Run, inner: &'a Inner, team: usize, state: &'a TeamState) -> Self {
        let disk = run.disk.inner().failures.clone();
        let devices = inner.teams[team].devices.iter().map(|device| device.id.clone()).collect();
        let (troubles, looks) = (&inner.seen.troubles[team], &inner.seen.looks[team]);
        Self { plan: &run.plan, state, troubles, disk, looks, devices }
    }

    /// Until when the service shows it: it ends, or the plan's span has passed.
    fn shown_until(&self, event: &Event) -> i64 {
        let span = self.plan.plan_span.filter(|_| event.stream == Stream::Connections);
        event.until.min(span.map_or(NEVER, |span| event.at.saturating_add(span * NANO)))
    }

    pub fn of(&self, event: &Event) -> Option<Excuse> {
        let shown_until = self.shown_until(event);
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
        match event.gone {
            Some(Gone::Deleted | Gone::Edited) => Some(Excuse::DeletedUnread),
            _ if event.flaps.is_some() => Some(Excuse::DeletedUnread),
            _ if shown_until < event.until && event.from > event.at + HOUR * NANO => Some(Excuse::OutOfSpan),
            _ if shown_until <= event.from => Some(Excuse::OutOfSpan),
            _ => None,
        }
    }

    pub fn is_in_gap(&self, event: &Event) -> bool {
        self.state.gaps().filter(|gap| gap.stream == Some(event.stream)).any(|gap| {
            let (from, to) = (gap.from.map_or(i64::MIN, Instant::nanos), gap.to.map_or(NEVER, Instant::nanos));
            let of_computer = self.devices.iter().position(|device| *device == gap.subject);
            // The service's clock is told in whole seconds.
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
        let first_look = self.looks.first().copied().unwrap_or(NEVER);
        let was_hidden = self.plan.plan_span.is_some_and(|span| event.at < first_look - (span - 2 * HOUR) * NANO);
        let was_removed = event.until <= first_look;
        begins(event.stream).is_none_or(|begins| event.at < begins.nanos())
            || (event.stream == Stream::Connections && was_hidden)
            || was_removed
    }

    /// Whether what was read then may have been lost before its commit.
    fn is_in_trouble(&self, served: i64) -> bool {
        let soon = served..served + 2 * HOUR * NANO;
        let near = |times: &[i64]| times.iter().any(|at| soon.contains(at));
        near(self.troubles) || near(&self.disk)
    }
}
