//! Events of a commit about computers: the computers that they name, and removals. The commit that archives a removal
//! also records its loss.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::archive::{ArchiveError, Draft, Finding, FindingKind, ReadPoint, TeamState, TeamWriter};
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
    named: BTreeSet<DeviceId>,
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
                let ids = added.rows.iter().filter_map(|row| match &row.detail {
                    Detail::Connections(texts) => texts.device_id(),
                    Detail::Activity { .. } | Detail::Billing { .. } => None,
                });
                let new = ids.filter(|id| !id.is_empty() && !state.devices_ever.contains(*id));
                self.named.extend(new.map(DeviceId::from));
            }
            Stream::Billing => {}
        }
    }

    /// Adds computers and losses to the draft.
    pub fn record(mut self, ctx: &CommitContext<'_>, batch: &Batch, draft: &mut Draft) -> Result<(), ArchiveError> {
        let (writer, state) = (ctx.writer, ctx.writer.state());
        self.additions.iter().for_each(|event| self.named.extend(devices_named(&event.text, &event.event_type)));
        self.named.retain(|device| !state.devices_ever.contains(device));
        draft.body.devices.named.clone_from(&self.named);
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
        let removals = self.removals(ctx, batch, &history)?;
        for (device, removal) in removals {
            let losses = history.losses(&removal, ctx.seen_at);
            // The removed computer is no longer known, unless a later list showed it again.
            let is_known = |device: &DeviceId| state.devices.contains(device) || batch.devices.added.contains(device);
            let is_back = |device: &DeviceId| {
                batch.listed.as_ref().is_some_and(|(at, listed)| removal.at <= *at && listed.contains(device))
            };
            let is_gone = |device: &DeviceId| is_known(device) && !is_back(device) && history.has_begun_by(removal.at);
            draft.body.devices.removed.extend(device.filter(is_gone));
            history.note_findings(losses.iter());
            draft.body.findings.extend(losses);
        }
        Ok(())
    }

    /// Finds the computers of the removals: by the usual places of ids, by known ids, and by the name of an added computer.
    fn removals(
        mut self,
        ctx: &CommitContext<'_>,
        batch: &Batch,
        history: &ReadHistory,
    ) -> Result<Vec<(Option<DeviceId>, Removal)>, ArchiveError> {
        let state = ctx.writer.state();
        let mut known = state.devices_ever.clone();
        known.extend(batch.devices.added.iter().chain(&self.named).cloned());
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
