//! One month's question on an archive of 84 months, against the same question on that month's file alone.
//!
//! Prints one line a question: both medians, and their ratio, which is to be at most 1.3. What
//! the other months cost is a matter of files, not of rows: a fixed millisecond or two.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Dataset, Draft, LocalStore, WindowRecord, WindowRows, WindowState, month_of};
use annals::clock::{Clock, SystemClock};
use annals::model::{ConnectionDetail, Detail, Digest, EventRow, Instant, Stream, TeamId, WindowGrid};
use annals::report::{Engine, Format, Limits, Look, ViewData, sink_for};
use bytes::Bytes;

const MONTHS: usize = 84;
const EVENTS_A_MONTH: u64 = 30_000;
const ROUNDS: usize = 31;
const FIRST_MONTH: &str = "2019-11-01T00:00:00Z";

const QUESTIONS: [(&str, &str); 3] = [
    ("count", "SELECT count(*), count(DISTINCT device_id) FROM connections WHERE {month}"),
    (
        "top computers",
        "SELECT device_id, count(*), count(DISTINCT connection_id), max(event_time) FROM connections WHERE {month} \
         GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
    ),
    ("raw text", "SELECT count(*), sum(length(raw)) FROM connections WHERE {month}"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let months = make_archive(directory.path())?;
    let reader = Archive::open(Arc::new(LocalStore::new(directory.path())))?.read(&team())?;
    let mut whole = ViewData::default();
    whole.add_state(directory.path().to_str().ok_or("the temporary directory is UTF-8")?, reader.state());
    let asked = months[MONTHS / 2];
    let mut alone = whole.clone();
    let kept = |span: Option<(Instant, Instant)>| span.is_some_and(|(first, _)| month_of(first).start == asked);
    alone.files.entry(Dataset::Connections).or_default().retain(|file| kept(file.span));
    let files = |data: &ViewData| data.files.get(&Dataset::Connections).map_or(0, Vec::len);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} files of {EVENTS_A_MONTH} events each, against {}", files(&whole), files(&alone))?;
    let engines = [Engine::open(whole, Limits::default())?, Engine::open(alone, Limits::default())?];
    let month = month_of(asked);
    let range = format!("event_time >= '{}' AND event_time < '{}'", month.start.day(), month.end.day());
    for (name, question) in QUESTIONS {
        let [whole, alone] = measure(&[&engines[0], &engines[1]], &question.replace("{month}", &range))?;
        let ratio = whole.as_secs_f64() / alone.as_secs_f64();
        writeln!(out, "{name}: {whole:.1?} of 84 months, {alone:.1?} of the month alone, ratio {ratio:.2}")?;
    }
    look_ups(&mut out, &engines[0])
}

/// One connection, computer, user and address over all months, against a question that must read every row.
fn look_ups(out: &mut dyn Write, whole: &Engine) -> Result<(), Box<dyn Error>> {
    let full = "SELECT count(*), sum(length(raw)) FROM connections";
    let [scan] = measure(&[whole], full)?;
    writeln!(out, "every row of all months: {scan:.1?}")?;
    let known = event(FIRST_MONTH.parse()?);
    let Detail::Connections(known) = known.detail else { return Err("not a connection".into()) };
    let known = known.detail();
    let values = [
        ("connection_id", known.connection_id.map(|id| id.to_string())),
        ("device_id", known.device_id.map(|id| id.to_string())),
        ("peer_email", known.peer_email.map(String::from)),
        ("peer_ip", known.peer_ip.map(String::from)),
    ];
    for (column, value) in values {
        let value = value.ok_or("the event has it")?;
        let sql =
            format!("SELECT count(*), max(event_time), max(event_id) FROM connections WHERE {column} = '{value}'");
        let [took] = measure(&[whole], &sql)?;
        let ratio = took.as_secs_f64() / scan.as_secs_f64();
        writeln!(out, "one {column}: {took:.1?}, ratio to every row {ratio:.2}")?;
    }
    Ok(())
}

/// The medians, the engines asked by turns.
fn measure<const N: usize>(engines: &[&Engine; N], sql: &str) -> Result<[Duration; N], Box<dyn Error>> {
    let clock = SystemClock::new();
    let (mut times, mut answers) = ([const { Vec::new() }; N], [const { Vec::new() }; N]);
    for _ in 0..ROUNDS {
        for (at, engine) in engines.iter().enumerate() {
            answers[at].clear();
            let begun = clock.monotonic();
            engine.query(sql, sink_for(Format::Csv, &mut answers[at], Look::default()).as_mut())?;
            times[at].push(clock.monotonic() - begun);
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{sql}");
    Ok(times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    }))
}

fn team() -> TeamId {
    TeamId::from("acme")
}

/// Sealed months of events, and the start of each.
fn make_archive(root: &Path) -> Result<Vec<Instant>, Box<dyn Error>> {
    let archive = Archive::open_or_create(Arc::new(LocalStore::new(root)), || "bench".into())?;
    let mut now: Instant = "2026-11-20T00:00:00Z".parse()?;
    let mut writer = archive.writer(&team())?;
    let mut month = month_of(FIRST_MONTH.parse()?);
    let mut starts = Vec::new();
    let grid = WindowGrid::new(Duration::from_secs(86_400));
    for _ in 0..MONTHS {
        starts.push(month.start);
        let spacing = month.length() / u32::try_from(EVENTS_A_MONTH)?;
        let mut draft = Draft { seal_months: vec![(Stream::Connections, month)], ..Draft::default() };
        let mut day = grid.window_of(month.start);
        while day.start < month.end {
            let times = (0..).map(|n| day.start.plus(spacing * n)).take_while(|time| *time < day.end);
            let rows: Vec<EventRow> = times.map(event).collect();
            draft.windows.push(WindowRecord {
                stream: Stream::Connections,
                range: day,
                state: WindowState::Sealed,
                reads: 2,
                requests: 2,
                events: rows.len() as u64,
                late: 0,
                settled_at: Some(now),
                confirmed_at: None,
                rescans: 3,
                confirmed: Vec::new(),
                unstable: Vec::new(),
                walk: None,
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

/// An event of the usual size, its ids as random as the service's.
fn event(time: Instant) -> EventRow {
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
        raw: Bytes::from(raw),
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
    }
}
