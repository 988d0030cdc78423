//! An archive of sealed months of connection events, made without a service.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Body, Draft, WindowRecord, WindowRows, WindowState};
use annals::model::path::month_of;
use annals::model::{ConnectionDetail, Detail, Digest, EventRow, Instant, Stream, TeamId, WindowGrid};
use annals::store::LocalStore;

pub const EVENTS_A_MONTH: u64 = 30_000;
pub const FIRST_MONTH: &str = "2019-11-01T00:00:00Z";

pub fn team() -> TeamId {
    TeamId::from("acme")
}

/// Makes sealed months of events, and returns the start of each.
pub fn make_archive(root: &Path, months: usize) -> Result<Vec<Instant>, Box<dyn Error>> {
    let archive = Archive::open_or_create(Arc::new(LocalStore::new(root)), || "bench".into())?;
    let mut now: Instant = "2026-11-20T00:00:00Z".parse()?;
    let mut writer = archive.writer(&team())?;
    let mut month = month_of(FIRST_MONTH.parse()?);
    let mut starts = Vec::new();
    let grid = WindowGrid::new(Duration::from_secs(86_400));
    for _ in 0..months {
        starts.push(month.start);
        let spacing = month.length() / u32::try_from(EVENTS_A_MONTH)?;
        let mut draft = Draft::from(Body { sealed_months: vec![(Stream::Connections, month)], ..Body::default() });
        let mut day = grid.window_of(month.start);
        while day.start < month.end {
            let times = (0..).map(|n| day.start.plus(spacing * n)).take_while(|time| *time < day.end);
            let rows: Vec<EventRow> = times.map(event).collect();
            draft.body.windows.push(WindowRecord {
                state: WindowState::Sealed,
                reads: 2,
                requests: 2,
                events: rows.len() as u64,
                settled_at: Some(now),
                rescans: 3,
                ..WindowRecord::new(Stream::Connections, day)
            });
            draft.rows.push(WindowRows::new(Stream::Connections, day, rows, true));
            day = grid.window_of(day.end);
        }
        now = now.plus(Duration::from_secs(1));
        let _ = writer.commit(draft, now)?;
        month = month_of(month.end);
    }
    Ok(starts)
}

/// An event of the usual size, with random ids like the service's.
pub fn event(time: Instant) -> EventRow {
    let digest = Digest::of(&time.nanos().to_le_bytes());
    let (id, connection) = (digest.to_string(), Digest::of(&digest.0[..2]).short());
    let device = format!("device-{}", u16::from(digest.0[0]) + u16::from(digest.0[1] % 2) * 256);
    let raw = format!(
        "{{\"id\":\"{id}\",\"timestamp\":{},\"incomingConnectionRequestedEvent\":{{\"connectionID\":\"{connection}\",\
         \"tunnelID\":\"direct\",\"deviceID\":\"{device}\",\"computerHostName\":\"office-{device}.example\",\
         \"sourceType\":\"user\",\"peerEmail\":\"person-{}@team.example\",\"peerIPAddress\":\"192.0.2.{}\"}}}}",
        time.nanos() / 1_000_000,
        digest.0[2],
        digest.0[3],
    );
    EventRow {
        team_id: team(),
        event_id: id.as_str().into(),
        time,
        event_type: "incomingConnectionRequestedEvent".into(),
        revision: 1,
        first_seen_at: time,
        redacted: false,
        raw: raw.into(),
        detail: Detail::Connections(
            ConnectionDetail {
                connection_id: Some(connection.as_str().into()),
                device_id: Some(device.as_str().into()),
                computer_host_name: Some(format!("office-{device}.example").into()),
                peer_email: Some(format!("person-{}@team.example", digest.0[2]).into()),
                peer_ip: Some(format!("192.0.2.{}", digest.0[3]).into()),
                ..ConnectionDetail::default()
            }
            .into(),
        ),
        served_digest: None,
    }
}
