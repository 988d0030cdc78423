//! Compares a question about one month of an archive of 84 months with the same question on that month's file alone.
//!
//! Prints one line for each question: both medians and their ratio, which should be at most 1.3. The other months
//! cost a fixed millisecond or two, for their files and not for their rows.

#[path = "support/months.rs"]
mod months;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::clock::{Clock, SystemClock};
use annals::model::path::month_of;
use annals::model::{Dataset, Detail, Instant};
use annals::report::{Engine, Format, Limits, Medium, ViewData, sink_for};
use annals::store::LocalStore;

use months::{EVENTS_A_MONTH, FIRST_MONTH, event, make_archive, team};

const MONTHS: usize = 84;
const ROUNDS: usize = 31;

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
    let months = make_archive(directory.path(), MONTHS)?;
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
    let engines = [Engine::open(whole, &Limits::default())?, Engine::open(alone, &Limits::default())?];
    let month = month_of(asked);
    let range = format!("event_time >= '{}' AND event_time < '{}'", month.start.day(), month.end.day());
    for (name, question) in QUESTIONS {
        let [whole, alone] = measure(&[&engines[0], &engines[1]], &question.replace("{month}", &range))?;
        let ratio = whole.as_secs_f64() / alone.as_secs_f64();
        writeln!(out, "{name}: {whole:.1?} of 84 months, {alone:.1?} of the month alone, ratio {ratio:.2}")?;
    }
    look_ups(&mut out, &engines[0])
}

/// Questions about one connection, computer, user and address over all months, and a question that must read every row.
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

/// The medians of both engines, which answer in turn.
fn measure<const N: usize>(engines: &[&Engine; N], sql: &str) -> Result<[Duration; N], Box<dyn Error>> {
    let clock = SystemClock::new();
    let (mut times, mut answers) = ([const { Vec::new() }; N], [const { Vec::new() }; N]);
    for _ in 0..ROUNDS {
        for (at, engine) in engines.iter().enumerate() {
            answers[at].clear();
            let begun = clock.monotonic();
            engine.query(sql, sink_for(Format::Csv, &mut answers[at], Medium::default()).as_mut())?;
            times[at].push(clock.monotonic() - begun);
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{sql}");
    Ok(times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    }))
}
