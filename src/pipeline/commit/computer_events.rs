//! Events of a commit about computers: the computers that they name, and removals. The commit that archives a removal
//! also records its loss.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::archive::{ArchiveError, DeviceDelta, Draft, Finding, FindingKind, ReadPoint, TeamState, TeamWriter};
use crate::model::{Detail, DeviceId, EventRow, Instant, Range, Stream};
use crate::normalize::{computer_name, devices_in, devices_named, is_addition, is_removal};
use crate::planted::{self, Bug};

use crate::pipeline::commit::Batch;
use crate::pipeline::commit::join::NewRows;
use crate::pipeline::loss::{ReadHistory, Removal, UNKNOWN_COMPUTER};
use crate::pipeline::settings::Settings;

/// The service gives its time in whole seconds. A reading that ended this long before a removal certainly ended before it.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// The inputs of a commit, besides its batch.
pub struct CommitContext<'a> {
    pub writer: &'a TeamWriter,
    pub settings: &'a Settings,
    /// Read points of connections that no commit holds.
    pub uncommitted: &'a [ReadPoint],
    /// The service's clock.
    pub seen_at: Instant,
}

/// An activity event about a computer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputerEvent {
    at: Instant,
    event_type: String,
    text: String,
}

impl ComputerEvent {
    fn of(row: &EventRow) -> Self {
        let text = String::from_utf8_lossy(&row.raw).into_owned();
        Self { at: row.time, event_type: row.event_type.to_string(), text }
    }
}

/// New events about computers.
#[derive(Debug, Default)]
pub struct ComputerEvents {
    pub removals: Vec<ComputerEvent>,
    additions: Vec<ComputerEvent>,
    /// Computers with new connections that the last list does not show, and the newest time of these connections.
    used: BTreeMap<DeviceId, Instant>,
}

impl ComputerEvents {
    /// Observes the new rows of a stream.
    pub fn observe(&mut self, state: &TeamState, stream: Stream, added: &NewRows) {
        match stream {
            Stream::Activity => {
                let of = |is_one: fn(&str) -> bool| added.rows.iter().filter(move |row| is_one(&row.event_type));
                self.removals.extend(of(is_removal).map(ComputerEvent::of));
                self.additions.extend(of(is_addition).map(ComputerEvent::of));
            }
            Stream::Connections => {
                for row in &added.rows {
                    let Detail::Connections(texts) = &row.detail else { continue };
                    let Some(id) = texts.device_id().filter(|id| !id.is_empty() && !state.devices.contains(*id)) else {
                        continue;
                    };
                    match self.used.get_mut(id) {
                        Some(newest) => *newest = row.time.max(*newest),
                        None => drop(self.used.insert(DeviceId::from(id), row.time)),
                    }
                }
            }
            Stream::Billing => {}
        }
    }

    /// Adds computers and losses to the draft.
    pub fn record(mut self, ctx: &CommitContext<'_>, batch: &Batch, draft: &mut Draft) -> Result<(), ArchiveError> {
        let (writer, state) = (ctx.writer, ctx.writer.state());
        self.note_unlisted(ctx, draft);
        let named = self.additions.iter().flat_map(|event| devices_named(&event.text, &event.event_type));
        draft.body.devices.named.extend(named.filter(|device| !state.devices_ever.contains(device)));
        let begins = |finding: &Finding| {
            finding.kind == FindingKind::ArchiveBegins && finding.stream == Some(Stream::Connections)
        };
        if batch.findings.iter().any(begins) {
            // Removals before this backfill were archived without a record.
            let before = Range { start: Instant::EARLIEST, end: ctx.seen_at };
            self.removals.extend(archived(writer, before, is_removal)?);
        }
        if self.removals.is_empty() {
            return Ok(());
        }
        let of_batch = batch.read_points.iter().filter(|(stream, _)| *stream == Stream::Connections);
        let uncommitted: Vec<ReadPoint> =
            ctx.uncommitted.iter().chain(of_batch.map(|(_, point)| point)).copied().collect();
        let mut history = ReadHistory::of(state, &uncommitted, ctx.settings);
        history.note_findings(draft.body.findings.iter());
        draft.body.windows.iter().for_each(|window| history.note_window(window));
        let removals = self.removals(ctx, &draft.body.devices, &history)?;
        let mut existing: BTreeSet<DeviceId> = draft.body.devices.unlisted.keys().cloned().collect();
        existing.extend(state.computers().chain(&batch.devices.added).cloned());
        for (device, removal) in removals {
            let losses = history.losses(&removal, ctx.seen_at);
            // The removed computer is no longer known, unless a later list showed it again.
            let is_back = |device: &DeviceId| {
                batch.listed.as_ref().is_some_and(|(at, listed)| removal.at <= *at && listed.contains(device))
            };
            let is_gone =
                |device: &DeviceId| existing.contains(device) && !is_back(device) && history.has_begun_by(removal.at);
            draft.body.devices.removed.extend(device.filter(is_gone));
            history.note_findings(losses.iter());
            draft.body.findings.extend(losses);
        }
        Ok(())
    }

    /// Connections that were read prove that their computer existed at the reading. If the next list lacks it, it was removed.
    /// A connection from before the last recorded removal proves nothing about the time after it.
    fn note_unlisted(&mut self, ctx: &CommitContext<'_>, draft: &mut Draft) {
        let state = ctx.writer.state();
        self.used
            .retain(|device, _| !state.unlisted.contains_key(device) && !draft.body.devices.added.contains(device));
        if self.used.is_empty() || planted::is(Bug::UsedComputersForgotten) {
            return;
        }
        let findings = state.findings.iter().map(|(_, finding)| finding).chain(&draft.body.findings);
        let of_removals = findings.filter(|finding| {
            finding.stream == Some(Stream::Connections)
                && matches!(finding.kind, FindingKind::Gap | FindingKind::RemovedBefore)
        });
        for removal in of_removals {
            self.used.retain(|device, at| device.as_str() != removal.subject || removal.to <= Some(*at));
        }
        let before = ReadHistory::of(state, ctx.uncommitted, ctx.settings).point_by(Some(Instant::LATEST));
        let used = std::mem::take(&mut self.used).into_keys();
        draft.body.devices.unlisted.extend(used.map(|device| (device, before.map(|point| point.at))));
    }

    /// Finds the computers of the removals: by the usual places of ids, by known ids, and by the name of an added computer.
    fn removals(
        mut self,
        ctx: &CommitContext<'_>,
        devices: &DeviceDelta,
        history: &ReadHistory,
    ) -> Result<Vec<(Option<DeviceId>, Removal)>, ArchiveError> {
        let state = ctx.writer.state();
        let mut known = state.devices_ever.clone();
        known.extend(devices.added.iter().chain(&devices.named).chain(devices.unlisted.keys()).cloned());
        self.removals.sort();
        self.removals.dedup();
        let named = self.removals.into_iter().map(|event| (named_by(&event, &known, &state.devices), event));
        let named: Vec<(BTreeSet<DeviceId>, ComputerEvent)> = named.collect();
        let seen_until = |event: &ComputerEvent| event.at.minus(CLOCK_STEP);
        let searched_from = |(devices, event): &(BTreeSet<DeviceId>, ComputerEvent)| {
            if devices.is_empty() { Some(Instant::EARLIEST) } else { history.open_from(seen_until(event)) }
        };
        let since = named.iter().filter(|(_, event)| history.has_begun_by(event.at)).filter_map(searched_from).min();
        let mut additions = self.additions;
        if let Some(since) = since {
            additions.extend(archived(ctx.writer, Range { start: since, end: Instant::LATEST }, is_addition)?);
        }
        let additions: Vec<Addition> = additions.iter().map(Addition::of).collect();
        let mut removals = Vec::new();
        for (mut devices, event) in named {
            let before = || additions.iter().filter(|added| added.at <= event.at);
            if devices.is_empty()
                && let Some(name) = computer_name(&event.text, &event.event_type)
            {
                let added = before().filter(|added| added.name.as_ref() == Some(&name)).max_by_key(|added| added.at);
                devices.extend(added.into_iter().flat_map(|added| &added.devices).cloned());
            }
            let of = |device: Option<DeviceId>| {
                let is_its = |added: &&Addition| device.as_ref().is_some_and(|id| added.devices.contains(id));
                let subject = device.as_ref().map_or_else(|| UNKNOWN_COMPUTER.to_owned(), DeviceId::to_string);
                let added_at = before().filter(is_its).map(|added| added.at).max();
                (device, Removal { subject, at: event.at, seen_until: Some(seen_until(&event)), added_at })
            };
            match devices.is_empty() {
                true if planted::is(Bug::UnlistedComputersIgnored) => {}
                true => removals.push(of(None)),
                false => removals.extend(devices.into_iter().map(Some).map(of)),
            }
        }
        Ok(removals)
    }
}

/// A computer that was added.
struct Addition {
    at: Instant,
    devices: BTreeSet<DeviceId>,
    name: Option<String>,
}

impl Addition {
    fn of(event: &ComputerEvent) -> Self {
        let devices = devices_named(&event.text, &event.event_type);
        Self { at: event.at, devices, name: computer_name(&event.text, &event.event_type) }
    }
}

/// The computers that a removal names.
fn named_by(event: &ComputerEvent, known: &BTreeSet<DeviceId>, listed: &BTreeSet<DeviceId>) -> BTreeSet<DeviceId> {
    if planted::is(Bug::UnlistedComputersIgnored) {
        return devices_in(&event.text, &event.event_type, listed);
    }
    let mut devices = devices_in(&event.text, &event.event_type, known);
    devices.extend(devices_named(&event.text, &event.event_type));
    devices
}

/// Archived activity of a range whose type satisfies `is_one`.
fn archived(writer: &TeamWriter, range: Range, is_one: fn(&str) -> bool) -> Result<Vec<ComputerEvent>, ArchiveError> {
    let mut found = Vec::new();
    writer.rows().rows_in(Stream::Activity, range, &mut |row| {
        found.extend(is_one(&row.event_type).then(|| ComputerEvent::of(&row)));
        Ok(())
    })?;
    Ok(found)
}
