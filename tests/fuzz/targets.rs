//! Each parser of external input as one function: it takes any bytes, checks the laws of its parser, and returns a
//! short outcome. A broken law is a panic.

use std::path::Path;

use annals::api::{json::Object, outline::Outline, roster, wire};
use annals::archive::{Head, HeadLine, LedgerLine, LineError, PublicKey};
use annals::config::{Config, Cron, When, parse_duration, parse_memory};
use annals::inventory;
use annals::model::path::ArchivePath;
use annals::model::{DeviceId, Digest, Instant, Stream, TeamId, TeamKey};
use annals::normalize::{normalize, parse};
use annals::report::{Origin, Report, lexer};
use bytes::Bytes;
use jiff::tz::TimeZone;

/// A parser, under the name of its corpus.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]) -> String,
}

pub const TARGETS: [Target; 10] = [
    Target { name: "page", run: page },
    Target { name: "roster", run: lists },
    Target { name: "ledger", run: ledger },
    Target { name: "heads", run: heads },
    Target { name: "path", run: path },
    Target { name: "config", run: config },
    Target { name: "cron", run: cron },
    Target { name: "date", run: date },
    Target { name: "report", run: report },
    Target { name: "sql", run: sql },
];

fn now() -> Instant {
    "2026-11-20T08:00:00Z".parse().unwrap()
}

/// An error's text without its numbers and names.
fn kind(error: &impl ToString) -> String {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error says nothing");
    text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| word.len() > 3).take(8).collect::<Vec<_>>().join(" ")
}

/// A page of each stream. Every event becomes a row or a reject, with its original bytes.
fn page(input: &[u8]) -> String {
    let body = Bytes::copy_from_slice(input);
    let device = DeviceId::from("d1");
    let mut found = Vec::new();
    for (stream, device) in [
        (Stream::Activity, None),
        (Stream::Connections, None),
        (Stream::Connections, Some(&device)),
        (Stream::Billing, None),
    ] {
        let page = match wire::page(stream, device, &body) {
            Ok(page) => page,
            Err(error) => {
                found.push(kind(&error));
                continue;
            }
        };
        found.push(format!("{} {:?}", page.events.len().min(3), page.has_more));
        for event in &page.events {
            let served = body.as_ptr_range();
            let is_served = served.contains(&event.text.as_ptr()) && event.text.as_ptr_range().end <= served.end;
            assert!(is_served || event.redacted, "an event that was not served");
            match normalize(&TeamId::from("t"), stream, (event, parse(stream, event)), 1, 1, now()) {
                Ok(row) => assert_eq!(*row.raw, event.text),
                Err(reject) => {
                    assert_eq!(reject.raw, event.text);
                    found.push(kind(&reject.reason));
                }
            }
        }
    }
    if let Ok(snapshot) = wire::billing(&body) {
        assert_eq!(snapshot.events.len(), wire::page(Stream::Billing, None, &body).unwrap().events.len());
    }
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = (Object::parse(text), Outline::of(text));
    }
    found.join("; ")
}

/// The lists of teams, computers and people, and the kept fields.
fn lists(input: &[u8]) -> String {
    let teams = wire::teams(input).map_or_else(|e| kind(&e), |teams| teams.len().min(3).to_string());
    let devices = wire::devices(input).map_or_else(|e| kind(&e), |computers| computers.ids.len().min(3).to_string());
    let team = wire::team(input).map_or_else(|e| kind(&e), |view| format!("{}", view.plan_span.is_some()));
    let people = [roster::users(input), roster::sso_users(input), roster::user_info(input)];
    let mut found = vec![teams, devices, team];
    found.extend(people.into_iter().map(|list| list.map_or_else(|e| kind(&e), |_| "read".to_owned())));
    if let Ok(text) = std::str::from_utf8(input) {
        for parts in [
            inventory::team(text),
            inventory::users(text),
            inventory::sso_users(text),
            inventory::computers(text, true),
            inventory::user_info("u1", text),
        ] {
            found.push(parts.map_or_else(|e| kind(&e), |parts| format!("{} parts", parts.parts.len())));
        }
    }
    found.join("; ")
}

/// A ledger line, unchanged and with a matching hash: a line that parses is written back with the same bytes.
fn ledger(input: &[u8]) -> String {
    let member = b",\"sha256\":\"";
    let end = input.windows(member.len()).rposition(|part| part == member).unwrap_or(input.len());
    let hash = Digest::with_domain("annals ledger line v1\n", &[&input[..end]]);
    let hashed = [&input[..end], member, hash.to_string().as_bytes(), b"\"}"].concat();
    let found = [input, &hashed].map(|bytes| match LedgerLine::decode(bytes) {
        Ok((line, hash)) => {
            let (written, same) = line.encode();
            assert_eq!((written.strip_suffix(b"\n"), same), (Some(bytes), hash), "written in other bytes");
            format!("a line with {} files", line.body.adds.len().min(2))
        }
        Err(error) => {
            assert!(bytes != hashed || !matches!(error, LineError::Hash { .. }), "the hash is right: {error}");
            kind(&error)
        }
    });
    found.join("; ")
}

/// Signed lines, keys and heads.
fn heads(input: &[u8]) -> String {
    let line = match HeadLine::decode(input) {
        Ok(line) => {
            assert_eq!(line.encode().trim_end_matches('\n').as_bytes(), input, "written in other bytes");
            "a line".to_owned()
        }
        Err(error) => kind(&error),
    };
    let Ok(text) = std::str::from_utf8(input) else { return line };
    let notes = match Head::parse_all(text) {
        Ok(heads) => {
            let notes: String = heads.iter().map(Head::note).collect();
            assert_eq!(Head::parse_all(&notes).as_ref(), Ok(&heads), "the written text parses to another value");
            format!("{} heads", heads.len().min(3))
        }
        Err(error) => kind(&error),
    };
    let key = match text.parse::<PublicKey>() {
        Ok(key) => {
            assert_eq!(key.to_string().parse().as_ref(), Ok(&key));
            "a key".to_owned()
        }
        Err(error) => kind(&error),
    };
    format!("{line}; {notes}; {key}")
}

/// A path of the archive: a path that parses is spelled the same, in characters that every file system keeps.
fn path(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let key = TeamKey::of(&TeamId::from(text.as_ref())).to_string();
    for part in [key.as_str(), &format!("team={key}")] {
        let is_plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'=' | b'.' | b'-');
        assert!(!part.is_empty() && part.len() < 200 && part.bytes().all(is_plain), "{part}");
    }
    match ArchivePath::parse(&text) {
        Some(path) => {
            assert_eq!(path.to_string(), text, "spelled otherwise");
            format!("{path:?}").split(|c: char| !c.is_alphanumeric()).take(6).collect::<Vec<_>>().join(" ")
        }
        None => "none".to_owned(),
    }
}

/// A configuration: accepted, or refused with its place. The error never repeats a possible secret.
fn config(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let memory = parse_memory(&text).map_or_else(|e| kind(&e), |_| "memory".to_owned());
    match Config::of_text(Path::new("place/annals.toml"), &text) {
        Ok(config) => format!("accepted with {} teams; {memory}", config.teams.len().min(2)),
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("annals.toml") || said.starts_with("--"), "names no file: {said}");
            assert!(!said.contains("hunter2"), "repeats a secret: {said}");
            format!("{}; {memory}", kind(&said))
        }
    }
}

/// A cron expression: its moments are increasing whole seconds; an error quotes the expression.
fn cron(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    match text.parse::<Cron>() {
        Ok(cron) => {
            let mut at = now();
            for _ in 0..4 {
                let Some(next) = cron.next_after(at) else { break };
                assert!(next > at && Instant::from_seconds(next.seconds()) == next, "{next} after {at}");
                at = next;
            }
            assert!(!cron.interval(now()).is_zero());
            assert_eq!(cron.as_str(), text);
            "taken".to_owned()
        }
        Err(error) => {
            assert!(error.contains(&format!("{text:?}")), "does not quote the input: {error}");
            kind(&error.replace(&format!("{text:?}"), ""))
        }
    }
}

/// Dates, moments and spans: in range, and their text parses to the same value.
fn date(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let mut found = Vec::new();
    match text.parse::<When>() {
        Ok(when) => {
            for zone in ["UTC", "Europe/Prague", "America/Sao_Paulo", "Pacific/Apia"] {
                let at = when.resolve_in(now(), &TimeZone::get(zone).unwrap());
                assert_eq!(at.to_string().parse(), Ok(at), "{zone}");
            }
            found.push(format!("{when:?}").chars().take(2).collect());
        }
        Err(error) => {
            assert!(error.contains(&format!("{text:?}")), "does not quote the input: {error}");
            found.push(kind(&error.replace(&format!("{text:?}"), "")));
        }
    }
    if let Ok(at) = text.parse::<Instant>() {
        assert_eq!(at.to_string().parse(), Ok(at));
        found.push("moment".to_owned());
    }
    match parse_duration(&text) {
        Ok(span) => found.push(format!("span {}", span.as_secs() > 0)),
        Err(error) => assert!(error.contains(&format!("{text:?}")), "does not quote the input: {error}"),
    }
    found.join("; ")
}

/// A report's file: refused with place and line, or accepted; then each parameter's default has a value or a reason.
fn report(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let place = Path::new("r00-fuzzed.sql");
    match Report::parse(place, &text, Origin::File(place.to_owned())) {
        Ok(report) => {
            let lines = text.lines().count();
            assert!(report.rows.line <= lines, "a query on line {} of {lines}", report.rows.line);
            match report.values(&[], now(), &TimeZone::UTC) {
                Ok(values) => assert_eq!(values.len(), report.params.len()),
                Err(error) => assert!(error.to_string().contains(&report.id), "{error}"),
            }
            let (params, chart, severity) = (report.params.len(), report.chart.is_some(), report.severity.is_some());
            format!("taken, {} {chart} {severity}", params.min(3))
        }
        Err(error) => {
            assert!(error.to_string().starts_with("r00-fuzzed.sql:"), "{error}");
            kind(&error)
        }
    }
}

/// SQL, divided into statements and coloured: the parts make the whole text, in order.
fn sql(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let (statements, _) = lexer::statements(&text);
    let tokens = lexer::tokens(&text);
    let ends: Vec<usize> = [0].into_iter().chain(tokens.iter().map(|token| token.range.end)).collect();
    assert!(tokens.iter().zip(&ends).all(|(token, end)| token.range.start == *end && !token.range.is_empty()));
    assert_eq!(ends.last(), Some(&text.len()));
    let _ = (lexer::only_reads(&text), lexer::first_word(&text));
    format!("{} statements, {} tokens", statements.len().min(4), tokens.len().min(9))
}
