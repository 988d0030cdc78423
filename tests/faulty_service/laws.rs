//! The laws that hold after every scenario, whatever the service did.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use serde_json::Value;

use super::http::Request;
use super::program::{Program, files_below};
use super::serve::SECRET;
use super::service::Service;
use super::world::{Event, Kind, Team};
use super::{behaviour::SECOND, parquet_files};

/// The differences from the truth that a scenario expects.
#[derive(Debug, Clone, Default)]
pub struct Expected<'a> {
    /// Stream and subject of each expected gap; no other gap may exist.
    pub gaps: &'a [(&'a str, &'a str)],
    /// The most requests of all runs together; 0: the usual number.
    pub requests_max: usize,
    /// Whether further syncs may find more, because windows stay open.
    pub is_moving: bool,
    /// The exit code of every further `sync`; `None`: the usual code.
    pub arguments: &'a [&'a str],
}

/// The most requests of a sync of one team's small history.
const REQUESTS_USUAL_MAX: usize = 100;

pub fn hold(service: &Service, program: &Program, arguments: &[&str]) {
    hold_with(service, program, &Expected { arguments, ..Expected::default() });
}

pub fn hold_with(service: &Service, program: &Program, expected: &Expected) {
    let requests = service.requests_count();
    let usual = REQUESTS_USUAL_MAX * program.syncs().max(1) * service.world().teams.len();
    let most = if expected.requests_max == 0 { usual } else { expected.requests_max };
    assert!(requests <= most, "{requests} requests, at most {most} were needed");
    service.calm();
    archive_holds(service, program, expected.gaps);
    if !expected.is_moving {
        a_second_sync_adds_nothing(program, expected.arguments);
    }
    no_secret_anywhere(program);
    requests_are_explicit(service);
}

/// For every kind of store: each event is archived once or lies in one of these gaps, there is no other gap, and the
/// archive verifies.
#[track_caller]
pub fn archive_holds(service: &Service, program: &Program, expected: &[(&str, &str)]) {
    let gaps = open_gaps(program);
    let found: BTreeSet<(String, String)> =
        gaps.iter().map(|gap| (word(gap, "stream"), word(gap, "subject"))).collect();
    let named = expected.iter().map(|(stream, subject)| ((*stream).to_owned(), (*subject).to_owned())).collect();
    assert_eq!(found, named, "the gaps that stand: {gaps:#?}");
    rows_equal_the_truth(service, program, &gaps);
    verified(program);
}

pub fn word(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_default().to_owned()
}

/// The gaps that no later finding closed.
pub fn open_gaps(program: &Program) -> Vec<Value> {
    program.sql(
        "select stream, subject, from_time, to_time, reason, \
         coalesce(epoch_ns(from_time), -9e18::bigint) as from_ns, coalesce(epoch_ns(to_time), 9e18::bigint) as to_ns \
         from findings as gap where kind = 'gap' and not exists (select 1 from findings as closed \
         where closed.kind = 'gap_closed' and closed.team_id = gap.team_id and closed.stream = gap.stream \
         and closed.subject = gap.subject and closed.from_time is not distinct from gap.from_time \
         and closed.to_time is not distinct from gap.to_time) order by all",
    )
}

/// The number of findings of a kind, by subject.
pub fn findings(program: &Program, kind: &str) -> BTreeMap<String, i64> {
    let rows = program
        .sql(&format!("select subject, sum(count)::bigint as n from findings where kind = '{kind}' group by all"));
    rows.iter().map(|row| (word(row, "subject"), row["n"].as_i64().unwrap())).collect()
}

/// By team and stream: each archived text, and how often.
type Texts = HashMap<(String, String), HashMap<String, i64>>;

pub fn archived(program: &Program) -> Texts {
    let rows = program.sql(
        "select team_id, 'activity' as stream, raw from activity union all \
         select team_id, 'connections', raw from connections union all \
         select team_id, 'billing', raw from billing union all \
         select team_id, stream, coalesce(raw, decode(raw_bytes)) from quarantine",
    );
    let mut texts = Texts::new();
    for row in rows {
        let of = (word(&row, "team_id"), word(&row, "stream"));
        *texts.entry(of).or_default().entry(word(&row, "raw")).or_default() += 1;
    }
    texts
}

fn rows_equal_the_truth(service: &Service, program: &Program, gaps: &[Value]) {
    let mut archived = archived(program);
    for team in &service.world().teams {
        for kind in Kind::ALL {
            let held = archived.remove(&(team.id.clone(), kind.name().to_owned())).unwrap_or_default();
            compare(team, kind, held, gaps, &service.requests());
        }
    }
    assert!(archived.is_empty(), "rows of teams or streams that never were: {:?}", archived.keys());
}

/// Compares multisets: a missing event must have been out of reach, and no event may be too many.
fn compare(team: &Team, kind: Kind, mut held: HashMap<String, i64>, gaps: &[Value], requests: &[Request]) {
    let truth: Vec<&Event> = team.events.iter().filter(|event| event.kind == kind).collect();
    let mut missing = Vec::new();
    // If twins are missing, count the ones that vanished unseen as missing.
    let (served, unseen): (Vec<&Event>, Vec<&Event>) =
        truth.iter().copied().partition(|event| event.served || event.alive);
    for event in served.into_iter().chain(unseen) {
        match held.get_mut(&event.kept) {
            Some(count) if *count > 0 => *count -= 1,
            _ => missing.push(event),
        }
    }
    held.retain(|_, count| *count > 0);
    let sample: Vec<_> = held.iter().take(3).collect();
    assert!(held.is_empty(), "{} {}: {} texts doubled or never served: {sample:?}", team.id, kind.name(), held.len());
    missing.retain(|event| !is_excused(event, gaps));
    let by = |event: &Event| event.served_by.map(|number| requests[number - 1].query.clone());
    let sample: Vec<_> = missing.iter().take(3).map(|event| (event, by(event))).collect();
    assert!(
        missing.is_empty(),
        "{} {}: {} of {} lost outside every gap: {sample:#?}",
        team.id,
        kind.name(),
        missing.len(),
        truth.len()
    );
}

/// Whether no reader could have read the event, or a gap records it.
fn is_excused(event: &Event, gaps: &[Value]) -> bool {
    let was_listed = event.alive || event.served || event.removed || event.kind == Kind::Billing;
    if !was_listed || event.shown == 0 {
        return true;
    }
    gaps.iter().any(|gap| {
        let (from, to) = (gap["from_ns"].as_i64().unwrap(), gap["to_ns"].as_i64().unwrap());
        let subject = word(gap, "subject");
        let of_other_computer = event.device.as_deref() != Some(&subject) && subject.contains("-computer-");
        word(gap, "stream") == event.kind.name()
            && !of_other_computer
            && (i128::from(from)..i128::from(to)).contains(&event.at)
    })
}

pub fn verified(program: &Program) {
    let run = program.run(&["verify", "--json"]).ended(0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout));
    assert!(report.is_object(), "{report}");
}

fn a_second_sync_adds_nothing(program: &Program, arguments: &[&str]) {
    let (before, lines) = (archived(program), program.ledger());
    program.sync(arguments).ended(0);
    assert_eq!(archived(program), before, "a second sync changed rows");
    let after = program.ledger();
    let grown = || -> Vec<String> {
        let tail = |bytes: &[u8], from: usize| String::from_utf8_lossy(&bytes[from.min(bytes.len())..]).into_owned();
        let old = |path| lines.iter().find(|(known, _)| known == path).map_or(0, |(_, bytes)| bytes.len());
        after.iter().map(|(path, bytes)| tail(bytes, old(path))).collect()
    };
    assert!(after == lines, "a second sync wrote a ledger line: {:?}", grown());
}

/// The token and every planted secret begin with `SECRET`.
pub fn no_secret_anywhere(program: &Program) {
    let secret = SECRET.as_bytes();
    for path in files_below(program.home()) {
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "a secret in {}", path.display());
        assert!(!path.to_string_lossy().contains(SECRET), "a secret in a name: {}", path.display());
    }
    let texts = parquet_files::all_texts(program);
    assert!(!texts.iter().any(|text| text.contains(SECRET)), "a secret in a Parquet column");
    let printed = program.printed();
    let line = printed.lines().find(|line| line.contains(SECRET));
    assert_eq!(line, None, "a secret was printed");
}

pub fn requests_are_explicit(service: &Service) {
    for request in service.requests() {
        assert_eq!(request.method, "GET", "{request:?}");
        assert!(request.header("authorization").is_some_and(|value| value.starts_with("Bearer ")), "{request:?}");
        if request.is_history() {
            for name in ["limit", "offset", "startTime", "stopTime"] {
                assert!(request.number(name).is_some(), "{name} in {request:?}");
            }
            assert_eq!(request.param("desc"), Some("false"), "{request:?}");
            assert!(request.number("startTime") <= request.number("stopTime"), "{request:?}");
        }
    }
}

/// Asserts that the files of every dataset, read without the program, hold the rows that the program shows.
pub fn files_agree(program: &Program) {
    let mut seen: HashMap<String, i64> = HashMap::new();
    for dataset in ["activity", "connections", "billing", "quarantine"] {
        parquet_files::raw_of(program, dataset).into_iter().for_each(|text| *seen.entry(text).or_default() += 1);
    }
    let mut answered: HashMap<String, i64> = HashMap::new();
    for texts in archived(program).into_values() {
        texts.into_iter().for_each(|(text, count)| *answered.entry(text).or_default() += count);
    }
    assert!(seen == answered, "{} texts in files, {} in the program's answer", seen.len(), answered.len());
}

/// A second in nanoseconds.
pub fn nanos(second: i64) -> i128 {
    i128::from(second) * SECOND
}
