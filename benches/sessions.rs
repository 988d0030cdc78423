//! The cost of sessions: a commit of one day's new events into archives of 1, 12 and 84 months, and questions over
//! seven years of 1,000 sessions a day, compared with the same rows in files that the engine writes itself. Prints
//! ratios; asserts nothing about time.
//!
//! Each past year of the archive is one file, as in the pipeline: 84 months are 17 files. With one file a month, a
//! question over every row took 1.4 to 1.6 times as long as with one large file: the engine opens 84 files, and
//! treats their columns as nullable, because it reads no statistics of several files. With one file a year it took
//! 1.20 times as long on a quiet machine, and up to 1.45 on a busy one. A file a quarter is no faster. See also
//! `REPEATED` in `archive/table/schema.rs`.
//!
//! All variants answer each question in turn, so other load on the machine affects them equally. Late events belong
//! to the first month of the archive's first year: this is the file of a month after one month, and the file of a
//! year after 12 and 84.
//!
//! `cargo bench --bench sessions` does both; `-- --fold` or `-- --ask` one. `--a-day` sets the sessions a day of the
//! first part.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{
    Archive, Body, Committed, Draft, SessionsDraft, SessionsMark, TeamWriter, WindowRecord, WindowRows, WindowState,
};
use annals::clock::{Clock, SystemClock};
use annals::correlate::{SESSION_RULES, session_of};
use annals::model::path::month_of;
use annals::model::{
    ConnectionDetail, Dataset, Detail, Digest, EventRow, Instant, Range, SessionRow, Stream, TeamId, WindowGrid,
};
use annals::pipeline::{Chunk, correlate};
use annals::report::{Engine, Format, Limits, Medium, ViewData, sink_for, views_sql};
use annals::store::LocalStore;
use support::{Failure, has_flag, number, print_ratio};

const FIRST_MONTH: &str = "2019-11-01T00:00:00Z";
/// The beginning of the archives. Their first year is complete.
const FOLDED_FIRST_MONTH: &str = "2019-01-01T00:00:00Z";
const MONTHS: usize = 84;
const DAY: Duration = Duration::from_secs(86_400);
const ROUNDS: usize = 15;
const ASKED_A_DAY: u64 = 1_000;

const QUESTIONS: [(&str, &str); 7] = [
    (
        "a user's month",
        "SELECT first_event_at, computer_host_name, duration_ms, outcome FROM {sessions} WHERE peer_email = \
         'person-77@team.example' AND first_event_at >= '2024-03-01' AND first_event_at < '2024-04-01' ORDER BY 1",
    ),
    (
        "a user's seven years",
        "SELECT count(*), sum(duration_ms), max(last_event_at) FROM {sessions} WHERE peer_email = 'person-77@team.example'",
    ),
    ("one connection", "SELECT * FROM {sessions} WHERE connection_id = '{connection}'"),
    (
        "top computers of a year",
        "SELECT computer_host_name, count(*), count(DISTINCT peer_email) FROM {sessions} WHERE first_event_at >= \
         '2023-01-01' AND first_event_at < '2024-01-01' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
    ),
    (
        "durations by source",
        "SELECT source_type, quantile_disc(duration_ms, [0.5, 0.9, 0.99]), count(*) FROM {sessions} WHERE outcome = 'ended' \
         GROUP BY 1 ORDER BY 1",
    ),
    (
        "failures a month",
        "SELECT date_trunc('month', first_event_at), count(*), sum(failed_attempts) FROM {sessions} WHERE outcome = \
         'auth_failed' GROUP BY 1 ORDER BY 1",
    ),
    ("every row", "SELECT outcome, count(*), count(DISTINCT peer_ip) FROM {sessions} GROUP BY 1 ORDER BY 1"),
];

fn main() -> Result<(), Failure> {
    let both = has_flag("--fold") == has_flag("--ask");
    if both || has_flag("--fold") {
        fold()?;
    }
    if both || has_flag("--ask") {
        ask()?;
    }
    Ok(())
}

/// Measures the commits of one more day, and of one late event of the first month, in archives of several lengths.
fn fold() -> Result<(), Failure> {
    let a_day = u64::from(number("--a-day", 300)?);
    let (mut days, mut lates) = (Vec::new(), Vec::new());
    for months in [1, 12, MONTHS] {
        let directory = tempfile::tempdir()?;
        let archive = Archive::open_or_create(Arc::new(LocalStore::new(directory.path())), || "bench".into())?;
        let end = make_archive(&archive, months, a_day)?;
        let (mut day, mut late) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS as u64 {
            let window = WindowGrid::new(DAY).window_of(end.plus(DAY * u32::try_from(round)?));
            // Close a connection that the day before left open.
            let mut events = day_of(window, a_day);
            let close = session_events(window.start.minus(DAY), window.start, "open").pop();
            events.extend(close.map(|row| EventRow { time: window.start.plus(Duration::from_secs(3_600)), ..row }));
            events.extend(session_events(window.start, window.end, "open").into_iter().take(2));
            day.push(timed_commit(&archive, window, events)?);
            let first = WindowGrid::new(DAY).window_of(FOLDED_FIRST_MONTH.parse()?);
            let touched = session_events(first.start, first.end, "0");
            late.push(timed_commit(&archive, first, vec![again(&touched[2], round)])?);
        }
        days.push((months, median(day)));
        lates.push((months, median(late)));
    }
    for (what, times) in [("one day's events", days), ("one late event of the first month", lates)] {
        for (months, (without, with)) in &times {
            println!(
                "{what}, {a_day} sessions a day, after {months} months: {with:.1?}; correlating takes {:.1?} of it",
                *with - *without
            );
        }
        let sessions = |(_, (without, with)): &(usize, (Duration, Duration))| (*with - *without).as_secs_f64();
        print_ratio(
            &format!("{what}: correlating, 12 months / 1 month"),
            sessions(&times[1]) / sessions(&times[0]),
            "-",
            "1.00",
        );
        print_ratio(
            &format!("{what}: correlating, 84 months / 1 month"),
            sessions(&times[2]) / sessions(&times[0]),
            "-",
            "1.00",
        );
        let whole = times[2].1.1.as_secs_f64() / times[0].1.1.as_secs_f64();
        print_ratio(&format!("{what}: the commit, 84 months / 1 month"), whole, "-", "1.00");
    }
    Ok(())
}

/// The time of a commit of new events in a process that has read nothing of the archive yet: without and with an
/// update of the affected sessions.
fn timed_commit(archive: &Archive, window: Range, rows: Vec<EventRow>) -> Result<(Duration, Duration), Failure> {
    let clock = SystemClock::new();
    let now: Instant = "2026-11-20T00:00:00Z".parse()?;
    let mut writer = archive.writer(&team())?;
    let mut draft = Draft::default();
    draft.rows.push(WindowRows::new(Stream::Connections, window, rows, false));
    let begun = clock.monotonic();
    correlate(&mut draft, &mut writer, now)?;
    let correlated = clock.monotonic() - begun;
    let files = draft.sessions.as_ref().map_or(0, |sessions| sessions.replaced.len());
    let done = writer.commit(draft, now)?;
    let whole = clock.monotonic() - begun;
    if !matches!(done, Committed::Committed { .. }) {
        return Err(format!("{done:?}, {files} files").into());
    }
    Ok((whole - correlated, whole))
}

/// Makes sealed months of events and their sessions, and returns their end.
fn make_archive(archive: &Archive, months: usize, a_day: u64) -> Result<Instant, Failure> {
    let now: Instant = "2026-11-20T00:00:00Z".parse()?;
    let mut writer = archive.writer(&team())?;
    let mut month = month_of(FOLDED_FIRST_MONTH.parse()?);
    for _ in 0..months {
        let mut draft = Draft::default();
        let mut day = WindowGrid::new(DAY).window_of(month.start);
        while day.start < month.end {
            let rows = day_of(day, a_day);
            draft.body.windows.push(sealed(day, rows.len() as u64, now));
            draft.rows.push(WindowRows::new(Stream::Connections, day, rows, true));
            day = WindowGrid::new(DAY).window_of(day.end);
        }
        correlate(&mut draft, &mut writer, now)?;
        let _ = writer.commit(draft, now)?;
        while writer.state().sessions.is_some_and(|mark| mark.through.is_some()) {
            let _ = Chunk::of_events(writer.state(), 1_000_000).commit(&mut writer, now, now)?;
        }
        let sealed_months = vec![(Stream::Connections, month)];
        let _ = writer.commit(Draft::from(Body { sealed_months, ..Body::default() }), now)?;
        join_years(&mut writer, now)?;
        month = month_of(month.end);
    }
    Ok(month.start)
}

fn sealed(range: Range, events: u64, at: Instant) -> WindowRecord {
    WindowRecord {
        state: WindowState::Sealed,
        reads: 2,
        requests: 2,
        events,
        settled_at: Some(at),
        rescans: 3,
        ..WindowRecord::new(Stream::Connections, range)
    }
}

fn day_of(day: Range, sessions: u64) -> Vec<EventRow> {
    (0..sessions).flat_map(|n| session_events(day.start, day.end, &n.to_string())).collect()
}

/// Makes a connection with all four events within `[start, end)`.
fn session_events(start: Instant, end: Instant, name: &str) -> Vec<EventRow> {
    let digest = Digest::of(format!("{start} {name}").as_bytes());
    let seconds = end.since(start).as_secs();
    let at = u64::from(u32::from_le_bytes([digest.0[0], digest.0[1], digest.0[2], 0])) % (seconds - 4_000);
    let length = u64::from(digest.0[3]) * 15;
    let kinds = [("incomingConnectionRequest", 0), ("incomingConnectionEvent", 2), ("authSucceededEvent", 5)];
    let failed = if digest.0[4] < 12 { "authFailedEvent" } else { "authSucceededEvent" };
    let kinds = [kinds[0], kinds[1], (failed, 5), ("connectionClosedEvent", 6 + length)];
    let event = |(kind, second): (&str, u64)| event(&digest, kind, start.plus(Duration::from_secs(at + second)));
    kinds.into_iter().map(event).collect()
}

fn event(digest: &Digest, kind: &str, time: Instant) -> EventRow {
    let id = Digest::with_domain(kind, &[&digest.0]).short();
    let device = u16::from(digest.0[5]) + u16::from(digest.0[6] % 2) * 256;
    let detail = ConnectionDetail {
        connection_id: Some(digest.short().as_str().into()),
        device_id: Some(format!("device-{device}").as_str().into()),
        computer_host_name: Some(format!("office-{device}.team.example").into()),
        tunnel_id: Some(["fluid", "rdp", "vnc"][usize::from(digest.0[7] % 3)].into()),
        source_type: Some(["cloud", "cloud", "cloud", "directip"][usize::from(digest.0[8] % 4)].into()),
        peer_email: Some(format!("person-{}@team.example", digest.0[9]).into()),
        peer_ip: Some(format!("192.0.{}.{}", digest.0[9], digest.0[10] % 4).into()),
        direct_ip: None,
        local_user_name: Some(format!("user{}", digest.0[9] % 64).into()),
        failure_reason: (kind == "authFailedEvent").then(|| "wrong password".into()),
    };
    let raw = format!("{{\"id\":\"{id}\",\"timestamp\":{},\"{kind}\":{{}}}}", time.nanos() / 1_000_000);
    EventRow {
        team_id: team(),
        event_id: id.as_str().into(),
        time,
        event_type: kind.into(),
        revision: 1,
        first_seen_at: time,
        redacted: false,
        raw: raw.into(),
        detail: Detail::Connections(detail.into()),
        served_digest: None,
    }
}

/// Another event of the same connection.
fn again(event: &EventRow, nth: u64) -> EventRow {
    let time = event.time.plus(Duration::from_secs(nth + 1));
    EventRow { event_id: format!("late-{nth}").as_str().into(), time, ..event.clone() }
}

/// Questions over 2.5 million sessions: compares the archive's files with the best of several layouts that the engine
/// writes.
fn ask() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("archive");
    let archive = Archive::open_or_create(Arc::new(LocalStore::new(&root)), || "bench".into())?;
    let now: Instant = "2026-11-20T00:00:00Z".parse()?;
    let mut writer = archive.writer(&team())?;
    let mut month = month_of(FIRST_MONTH.parse()?);
    let mut connection = String::new();
    for at in 0..MONTHS {
        let sessions = sessions_of(month, ASKED_A_DAY);
        if at == MONTHS / 3 {
            connection = sessions[sessions.len() / 2].connection_id.to_string();
        }
        seal_sessions(&mut writer, month, sessions, now)?;
        join_years(&mut writer, now)?;
        month = month_of(month.end);
    }
    let mut data = ViewData::default();
    data.add_state(root.to_str().ok_or("the temporary directory is UTF-8")?, writer.state());
    let files = data.files.get(&Dataset::Sessions).map_or(0, Vec::len);
    let (rows, bytes) =
        (writer.state().files.values()).fold((0, 0), |(rows, bytes), f| (rows + f.rows, bytes + f.bytes));
    println!("{rows} sessions in {files} files, {:.1} bytes a session", bytes as f64 / rows as f64);
    let hands = by_hand(&data, directory.path())?;
    let engine = Engine::open(data, &Limits::default())?;
    for (name, question) in QUESTIONS {
        let question = question.replace("{connection}", &connection);
        let ours = ("archive".to_owned(), question.replace("{sessions}", "sessions"));
        let others = hands.iter().map(|(how, source)| (how.clone(), question.replace("{sessions}", source)));
        let asked: Vec<(String, String)> = [ours].into_iter().chain(others).collect();
        let times = measure(&engine, &asked).map_err(|e| format!("{name}: {e}"))?;
        let timed: Vec<String> = asked.iter().zip(&times).map(|((how, _), took)| format!("{how} {took:.1?}")).collect();
        println!("{name}: {}", timed.join(", "));
        let by_hand = times.iter().zip(&asked).skip(1).min_by_key(|(took, _)| **took);
        let (best, (how, _)) = by_hand.ok_or("no hand-written layout was measured")?;
        print_ratio(
            &format!("{name}: archive / best by hand ({how})"),
            times[0].as_secs_f64() / best.as_secs_f64(),
            "1.50",
            "1.00",
        );
    }
    Ok(())
}

fn sessions_of(month: Range, a_day: u64) -> Vec<SessionRow> {
    let mut sessions = Vec::new();
    let mut day = WindowGrid::new(DAY).window_of(month.start);
    while day.start < month.end {
        for n in 0..a_day {
            let events = session_events(day.start, day.end, &n.to_string());
            sessions.extend(session_of(&events.iter().collect::<Vec<_>>()));
        }
        day = WindowGrid::new(DAY).window_of(day.end);
    }
    sessions
}

fn seal_sessions(
    writer: &mut TeamWriter,
    month: Range,
    finished: Vec<SessionRow>,
    now: Instant,
) -> Result<(), Failure> {
    let mark = SessionsMark { rules: SESSION_RULES, through: Some(month.end), until: None };
    let sessions = SessionsDraft { mark, is_anew: false, open: Vec::new(), finished, replaced: BTreeMap::new() };
    let sealed_months = vec![(Stream::Connections, month)];
    let _ = writer.commit(
        Draft { body: Body { sealed_months, ..Body::default() }, sessions: Some(sessions), ..Draft::default() },
        now,
    )?;
    Ok(())
}

/// The layout of the pipeline after it seals months.
fn join_years(writer: &mut TeamWriter, now: Instant) -> Result<(), Failure> {
    for year in writer.state().years_to_join() {
        let _ = writer.commit(Draft { join_years: vec![year], ..Draft::default() }, now)?;
    }
    Ok(())
}

/// The same rows from the engine's own writer: the name of each layout, and its SQL.
fn by_hand(data: &ViewData, directory: &Path) -> Result<Vec<(String, String)>, Failure> {
    let writer = duckdb::Connection::open_in_memory()?;
    writer.execute_batch(&views_sql(data))?;
    let mut hands = Vec::new();
    for (name, order, options) in [
        ("one file, zstd", "first_event_at", "COMPRESSION zstd"),
        ("one file, zstd 9", "first_event_at", "COMPRESSION zstd, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE 122880"),
        ("one file, snappy", "first_event_at", "COMPRESSION snappy"),
    ] {
        let path = directory.join(format!("{}.parquet", name.replace([' ', ','], "_")));
        let path = path.to_str().ok_or("the temporary directory is UTF-8")?;
        let copy = format!("COPY (FROM sessions ORDER BY {order}) TO '{path}' (FORMAT parquet, {options})");
        writer.execute_batch(&copy)?;
        hands.push((name.to_owned(), format!("read_parquet('{path}')")));
    }
    let months = directory.join("months");
    let months = months.to_str().ok_or("the temporary directory is UTF-8")?;
    let copy = format!(
        "COPY (SELECT *, strftime(first_event_at, '%Y-%m') AS month FROM sessions ORDER BY first_event_at) TO '{months}' \
         (FORMAT parquet, COMPRESSION zstd, PARTITION_BY month)"
    );
    writer.execute_batch(&copy)?;
    hands.push((
        "a file a month, zstd".to_owned(),
        format!("read_parquet('{months}/*/*.parquet', hive_partitioning = false)"),
    ));
    Ok(hands)
}

/// The median of each layout. The layouts answer in turn, and their answers must be equal.
fn measure(engine: &Engine, asked: &[(String, String)]) -> Result<Vec<Duration>, Failure> {
    let clock = SystemClock::new();
    let mut times = vec![Vec::new(); asked.len()];
    let mut expected: Option<Vec<u8>> = None;
    for _ in 0..ROUNDS {
        for ((how, sql), times) in asked.iter().zip(&mut times) {
            let mut answer = Vec::new();
            let begun = clock.monotonic();
            engine.query(sql, sink_for(Format::Csv, &mut answer, Medium::default()).as_mut())?;
            times.push(clock.monotonic() - begun);
            if *expected.get_or_insert_with(|| answer.clone()) != answer {
                return Err(format!("{how} answers otherwise").into());
            }
        }
    }
    times.iter_mut().for_each(|times| times.sort());
    Ok(times.into_iter().map(|times| times[ROUNDS / 2]).collect())
}

fn median(mut times: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    times.sort_by_key(|(_, whole)| *whole);
    times[times.len() / 2]
}

fn team() -> TeamId {
    TeamId::from("acme")
}
