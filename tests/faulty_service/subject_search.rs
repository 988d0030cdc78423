//! Searches for the traces of a person in an archive: in every file, and in every text of its tables, in every JSON spelling.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::behaviour::SECOND;
use super::events;
use super::world::{Kind, World};
use super::{DAY, HOUR};

/// A peer of each seventh connection event.
pub const EMAIL: &str = "p3@example.com";
pub const USER: &str = "user-zoë/1";
/// 2024-10-02T00:00:00Z.
pub const FIRST_DAY: i64 = DAY - 769 * 24 * HOUR;
pub const SINCE: [&str; 2] = ["--since", "2024-10-01"];
/// The order's arguments.
pub const ORDER: [&str; 7] = ["erase", "--order", "DPO-1", "--subject", EMAIL, "--subject", USER];
/// The depth of JSON texts within strings of JSON.
const DEPTH_MAX: usize = 8;

/// The subject as values, keys, in escapes, in other case, and in JSON texts within strings.
const PAYLOADS: [&str; 9] = [
    r#"{"user":{"id":"user-zo\u00EB\/1","email":"P3@Example.com"}}"#,
    r#"{"p3@example.com":["\u0070\u0033\u0040example.com"],"by":"user-zoë/1"}"#,
    r#"{"text":"{\"email\":\"p3@example.com\",\"of\":{\"user-zo\\u00eb\\/1\":true}}"}"#,
    r#"{"text":"{\"in\":\"{\\\"email\\\":\\\"\\\\u0070\\\\u0033@example.com\\\"}\"}"}"#,
    r#"{"\u0050\u0033\u0040\u0045\u0078\u0061\u006d\u0070\u006c\u0065\u002e\u0063\u006f\u006d":1}"#,
    r#"{"deep":[[[{"a":{"b":["user-zoë/1"]}}]]],"list":["p3@example.com","p3@example.com"]}"#,
    r#"{"text":"\u007b\u0022a\u0022:\u0022p3@example.com\u0022\u007d"}"#,
    r#"{"user":"somebody","email":"other@example.com"}"#,
    r#"{"peers":["P3@EXAMPLE.COM","p4@example.com"]}"#,
];

/// Two years of events, with the subject in many of them.
pub fn years(world: &mut World) {
    for day in (0..769).step_by(11) {
        for n in 0..8 {
            world.connection(FIRST_DAY + day * 24 * HOUR + n * 900, n);
        }
        add_activity(world, FIRST_DAY + day * 24 * HOUR + 5 * HOUR, usize::try_from(day).unwrap());
    }
    world.fill(DAY, 0..4);
    for n in 0..PAYLOADS.len() {
        add_activity(world, DAY + 5 * HOUR + i64::try_from(n).unwrap() * 1_800, n);
    }
    // This event has an unknown form, so quarantine keeps it.
    let at = (DAY + 9 * HOUR) * 1_000_000_000;
    let text =
        format!(r#"{{"header":{{"eventTimestampUnixNano":{at}}},"oneEvent":{{"a":"{EMAIL}"}},"twoEvent":{{}}}}"#);
    world.add(Kind::Activity, i128::from(at), None, text);
}

/// Events that appear late, in months that are sealed already.
pub fn late(world: &mut World) {
    for day in [20, 400, 700] {
        for n in 0..8 {
            world.connection(FIRST_DAY + day * 24 * HOUR + n * 700 + 11, n);
        }
        add_activity(world, FIRST_DAY + day * 24 * HOUR + 9 * HOUR, 1);
    }
}

fn add_activity(world: &mut World, at: i64, n: usize) {
    let nanos = at * 1_000_000_000 + i64::try_from(n).unwrap();
    let text = events::activity_event("teamUserLoggedInEvent", nanos, PAYLOADS[n % PAYLOADS.len()]);
    world.add(Kind::Activity, i128::from(at) * SECOND + i128::try_from(n).unwrap(), None, text);
}

/// The first trace of the subject in a file, if there is one. A file of a table is searched text by text, too.
pub fn trace(path: &str, bytes: Vec<u8>) -> Option<String> {
    let is_table = path.ends_with(".parquet");
    let whole = found(&String::from_utf8_lossy(&bytes)).map(|text| format!("{path}: {text}"));
    if !is_table || whole.is_some() {
        return whole;
    }
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    for row in reader.get_row_iter(None).unwrap() {
        for (name, field) in row.unwrap().get_column_iter() {
            let text = match field {
                Field::Str(text) => text.clone(),
                Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
                _ => continue,
            };
            if let Some(text) = found(&text) {
                return Some(format!("{path}: {name}: {text}"));
            }
        }
    }
    None
}

/// The text, if it holds a value in any spelling.
fn found(text: &str) -> Option<String> {
    let mut plain = text.to_owned();
    for _ in 0..DEPTH_MAX {
        let lower = plain.to_lowercase();
        if lower.contains(EMAIL) || lower.contains(USER) {
            return Some(text.chars().take(400).collect());
        }
        let less = unescaped(&plain);
        if less == plain {
            return None;
        }
        plain = less;
    }
    None
}

/// The text with each JSON escape replaced by its meaning.
fn unescaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        made.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let unit = escape.strip_prefix('u').and_then(|digits| digits.get(..4));
        match unit.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                made.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                rest = &escape[5..];
            }
            None => {
                let next = escape.chars().next();
                made.extend(next);
                rest = &escape[next.map_or(0, char::len_utf8)..];
            }
        }
    }
    made + rest
}

#[test]
fn a_trace_is_found_in_every_spelling() {
    for (n, payload) in PAYLOADS.iter().enumerate() {
        assert_eq!(found(payload).is_some(), n != 7, "{payload}");
    }
    for text in ["p3@example.org", "user-zoe/1", r"\u00", r"\", ""] {
        assert_eq!(found(text), None);
    }
}
