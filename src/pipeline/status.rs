//! The status of a team: a pure function of the archive's state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::archive::{ExpiredRecord, FindingKind, StreamRecord, TeamState, WindowState};
use crate::model::{Dataset, Instant, InventoryPart, Stream, saturating_sum};
use crate::pipeline::plan::{LastReading, Urgency, each_window, read_to, settled_edge};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamStatus {
    pub stream: Stream,
    /// The start of the archive; `None` before the backfill.
    pub begins: Option<Instant>,
    /// The end of the settled and sealed part that starts at `begins`.
    pub settled_to: Option<Instant>,
    /// The end of the part that was read at least once.
    pub read_to: Option<Instant>,
    /// The time from `read_to` to now.
    pub lag_seconds: Option<u64>,
    pub windows: u64,
    pub sealed_windows: u64,
    /// Windows that are not settled.
    pub open_windows: u64,
    /// The time from the start of the oldest unsettled window to now.
    pub open_seconds: Option<u64>,
    /// Ranges that were never stable, and stay open.
    pub unstable: Vec<String>,
    pub events: u64,
    pub late: u64,
    pub gaps: u64,
    /// The time until unread events leave the plan's span, or until billing's ten entries can all be new. `None` if the
    /// span or the rate is unknown.
    pub seconds_to_loss: Option<u64>,
    /// The same just after a reading: the plan's span, or the time of ten billing entries.
    pub seconds_kept: Option<u64>,
    /// The deprecated per-computer history is read, because `history/devices` does not exist.
    pub deprecated_history: bool,
}

/// The status of a team's inventory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InventoryStatus {
    /// The last scan of any part; `None` before the first.
    pub scanned_at: Option<Instant>,
    /// The last time that the sign-in info of all users was complete; `None` before the first.
    pub sign_in_scanned_at: Option<Instant>,
    /// Users with sign-in info. Before its first complete reading an estimate: a reading that takes days asks some users again, and
    /// each of their rows counts.
    pub users_asked: u64,
    pub users: u64,
    pub computers: u64,
    pub groups: u64,
    /// Parts that the token may not see, as of the last scan of each.
    pub hidden: Vec<InventoryPart>,
    /// Undocumented fields in the service's answers. Annals does not keep them.
    pub unknown_fields: u64,
}

impl StreamStatus {
    /// The time until unread events are lost, `aged` seconds after this status. `None` if it is more than `threshold`,
    /// or more than half of the time just after a reading.
    pub fn short_of_time(&self, threshold: Duration, aged: u64) -> Option<Duration> {
        let left = self.seconds_to_loss?.saturating_sub(aged);
        let least = threshold.as_secs().min(self.seconds_kept.unwrap_or(u64::MAX) / 2);
        (left < least).then(|| Duration::from_secs(left))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TeamStatus {
    pub team: String,
    pub ledger_seq: u64,
    pub ledger_head: String,
    pub committed_at: Option<Instant>,
    pub quarantined: u64,
    /// Bytes of the live files.
    pub bytes: u64,
    pub streams: Vec<StreamStatus>,
    pub inventory: InventoryStatus,
    /// The last expiry of each dataset: a sentence each.
    pub expired: Vec<String>,
    /// The ids of the legal holds in force in the team's ledger.
    pub holds: Vec<String>,
    /// Rows past the retention of their class that a hold keeps, by the last expiry of the daemon: a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<String>,
    /// The time from which sessions lack archived events; `None`: they lack none.
    pub sessions_lack: Option<Instant>,
    /// The file with the team's name. Another name is in another file.
    #[serde(skip)]
    pub name_file: Option<String>,
}

/// The status of a team at `now`, from its archive.
pub fn status(state: &TeamState, now: Instant) -> TeamStatus {
    status_with(state, &|_| LastReading::default(), now)
}

/// The status of a team at `now`. `known`: the last readings of this process, committed or not.
pub fn status_with(state: &TeamState, known: &dyn Fn(Stream) -> LastReading, now: Instant) -> TeamStatus {
    let quarantine = state.files.values().filter(|file| file.dataset == Dataset::Quarantine);
    TeamStatus {
        team: state.team_id.to_string(),
        ledger_seq: state.seq.0,
        ledger_head: state.head.to_string(),
        committed_at: state.at,
        quarantined: saturating_sum(quarantine.map(|file| file.rows)),
        bytes: saturating_sum(state.files.values().map(|file| file.bytes)),
        streams: Stream::ALL.into_iter().map(|stream| stream_status(state, stream, &known(stream), now)).collect(),
        inventory: inventory_status(state),
        expired: expired(state),
        holds: state.holds.values().filter(|hold| hold.is_active()).map(|hold| hold.added.id.clone()).collect(),
        held_back: Vec::new(),
        sessions_lack: state.sessions_lack(),
        name_file: state.name_file().map(|file| file.path.clone()),
    }
}

/// `connections up to 2019-03 expired under connections = 7y on 2026-04-01`
fn expired(state: &TeamState) -> Vec<String> {
    let mut last: BTreeMap<Dataset, &ExpiredRecord> = BTreeMap::new();
    for ((dataset, _), (_, record)) in &state.expired {
        last.insert(*dataset, record);
    }
    let of = |(dataset, record): (Dataset, &ExpiredRecord)| {
        format!("{dataset} of {} expired under {} on {}", record.month.month(), record.policy, record.at.day())
    };
    last.into_iter().map(of).collect()
}

fn inventory_status(state: &TeamState) -> InventoryStatus {
    let scans = || InventoryPart::ALL.into_iter().filter_map(|part| state.last_scan(part));
    let unknown = state.findings.iter().filter(|(_, finding)| finding.kind == FindingKind::UnknownField);
    let users = state.entities(InventoryPart::Users);
    let asked = saturating_sum(state.files_of(Dataset::Inventory(InventoryPart::SignIn)).map(|file| file.rows));
    InventoryStatus {
        scanned_at: scans().map(|scan| scan.read_at).max(),
        sign_in_scanned_at: state.last_scan(InventoryPart::SignIn).map(|scan| scan.read_at),
        users_asked: asked.min(users),
        users,
        computers: state.entities(InventoryPart::Computers),
        groups: state.entities(InventoryPart::Groups),
        hidden: scans().filter(|scan| !scan.visible).map(|scan| scan.part).collect(),
        unknown_fields: unknown.count() as u64,
    }
}

fn stream_status(state: &TeamState, stream: Stream, known: &LastReading, now: Instant) -> StreamStatus {
    let unread = StreamRecord::default();
    let record = state.streams.get(&stream).unwrap_or(&unread);
    let windows = || each_window(state, stream);
    let begins = state.begins(stream);
    let settled_to = record.begins.map(|first| settled_edge(state, stream, first)).max(begins);
    // `sync --until` settles windows and makes no read point.
    let read_to = read_to(record, known.point).map(|read_to| settled_to.map_or(read_to, |to| to.max(read_to)));
    let of_kind = |kind| state.findings.iter().filter(move |(_, f)| f.kind == kind && f.stream == Some(stream)).count();
    let urgency = Urgency::of(state, stream, known, now);
    let left = urgency.time_left(now);
    let oldest_open = windows().find(|window| window.state == WindowState::Provisional);
    StreamStatus {
        stream,
        begins,
        settled_to,
        read_to,
        lag_seconds: read_to.map(|read_to| now.since(read_to).as_secs()),
        windows: windows().count() as u64,
        sealed_windows: windows().filter(|window| window.state == WindowState::Sealed).count() as u64,
        open_windows: windows().filter(|window| window.state == WindowState::Provisional).count() as u64,
        open_seconds: oldest_open.map(|window| now.since(window.range.start).as_secs()),
        unstable: windows().flat_map(|window| window.unstable.iter().map(ToString::to_string)).collect(),
        events: saturating_sum(windows().map(|window| window.events)),
        late: saturating_sum(windows().map(|window| window.late)),
        gaps: of_kind(FindingKind::Gap) as u64,
        seconds_kept: left.and(urgency.span).map(|span| span.as_secs()),
        seconds_to_loss: left.map(|left| left.as_secs()),
        deprecated_history: of_kind(FindingKind::DeprecatedHistory) > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::ReadPoint;
    use crate::model::TeamId;

    #[test]
    fn the_time_to_loss_starts_at_the_read_point() {
        let at = Instant::from_seconds;
        let mut state = TeamState::genesis("a", TeamId::from("t"));
        let record = StreamRecord {
            begins: Some(at(1_700_000_000)),
            read_points: vec![ReadPoint { at: at(1_700_050_000), read_to: at(1_700_050_000), listed_at: None }],
            plan_span_seconds: Some(100_000),
            ..StreamRecord::default()
        };
        state.streams.insert(Stream::Connections, record);
        let of = |now| status(&state, at(now)).streams[1].clone();
        assert_eq!(of(1_700_060_000).seconds_to_loss, Some(90_000));
        assert_eq!(of(1_700_060_000).lag_seconds, Some(10_000));
        assert_eq!(of(1_700_200_000).seconds_to_loss, Some(0));
        let short = |now, threshold, aged| {
            of(now).short_of_time(Duration::from_secs(threshold), aged).map(|left| left.as_secs())
        };
        assert_eq!(short(1_700_060_000, 86_400, 0), None, "more than half of the span is left");
        assert_eq!(short(1_700_120_000, 86_400, 0), Some(30_000));
        assert_eq!(short(1_700_120_000, 20_000, 0), None);
        assert_eq!(short(1_700_120_000, 20_000, 15_000), Some(15_000), "time has passed since the status");
    }
}
