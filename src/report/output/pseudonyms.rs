//! Pseudonyms for an evidence pack: people, computers and addresses get names that are stable within the pack.
//!
//! The SQL runs on the real values, so counts stay. Only the results get pseudonyms. A text column is replaced
//! as a whole, unless it holds words of the program or of the service ([`Content`]): there, only known identifiers, email
//! addresses and IP addresses are replaced. So an unknown column of a user's own report shows too little rather than too much.

mod search;
mod vocabulary;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, SchemaRef};
use ring::hmac;
use serde_json::Value;

use crate::model::Instant;
use crate::report::ReportError;
use crate::report::catalog::Report;
use crate::report::sql::sink::{Flow, Sink};
use crate::report::statement::about::About;
use crate::report::statement::coverage::GapInside;
use search::{address_end, first_run, is_address, is_email, is_inside_run, words};
use vocabulary::Content;

/// Also of the vocabulary, in columns of any name.
const FIXED: [&str; 7] =
    ["all others", "not named", "not recorded", "no domain", "no reason given", "not said", "not yet read"];
/// Digits of a pseudonym. With 48 bits, two of 100,000 people share one with a probability of 0.002 %.
const DIGITS: usize = 12;
/// A shorter id may be an ordinary word of a page, or a part of a number.
const ID_BYTES_MIN: usize = 6;

/// What the archive knows of people, computers and addresses: kind, text, and the id of the same person. If a text
/// occurs several times, its first row counts. A text that belongs to two ids has a pseudonym of its own.
pub const IDENTIFIERS: &str = "
SELECT kind, text, same FROM (
    SELECT 1 AS n, 'person' AS kind, user_id AS text, user_id AS same FROM inventory_users
    UNION ALL SELECT 1, 'person', user_id, user_id FROM inventory_sso_users
    UNION ALL SELECT 2, 'person', email, user_id FROM inventory_users
    UNION ALL SELECT 2, 'person', email, user_id FROM inventory_sso_users
    UNION ALL SELECT 3, 'named', concat_ws(' ', first_name, last_name), user_id FROM inventory_users
    UNION ALL SELECT 3, 'named', concat_ws(' ', first_name, last_name), user_id FROM inventory_sso_users
    UNION ALL SELECT 4, CASE WHEN contains(peer_email, '@') THEN 'person' ELSE 'named' END, peer_email, NULL FROM connections
    UNION ALL SELECT 4, 'person', member_id, NULL FROM inventory_memberships WHERE member_kind = 'user'
    UNION ALL SELECT 4, 'person', grantee_id, NULL FROM inventory_grants WHERE grantee_kind = 'user'
    UNION ALL SELECT 4, 'person', user_id, NULL FROM inventory_tokens
    UNION ALL SELECT 4, 'person', user_id, NULL FROM inventory_sign_in
    UNION ALL SELECT 5, 'computer', unnest([device_id, computer_host_name]), NULL FROM connections
    UNION ALL SELECT 5, 'computer', unnest([device_id, name, os_hostname]), NULL FROM inventory_computers
    UNION ALL SELECT 5, 'computer', device_id, NULL FROM inventory_grants
    UNION ALL SELECT 5, 'computer', subject, NULL FROM findings
        WHERE kind IN ('gap', 'gap_closed', 'removed_before') AND NOT regexp_matches(subject, '[ \\[]')
            AND subject NOT IN ('activity', 'connections', 'billing', 'unstable')
    UNION ALL SELECT 6, 'address', unnest([peer_ip, direct_ip]), NULL FROM connections
    UNION ALL SELECT 6, 'address', last_used_ip, NULL FROM inventory_tokens
    UNION ALL SELECT 7, 'local-user', local_user_name, NULL FROM connections
    UNION ALL SELECT 8, 'named', reviewer, NULL FROM reviews
) WHERE trim(text) <> '' GROUP BY n, kind, text, same ORDER BY n, kind, text, same";

struct Known {
    kind: &'static str,
    /// The text or id from which the pseudonym is made.
    original: String,
    /// Whether the text is an identifier wherever it occurs as a word. A local user name such as `admin` is not.
    is_unmistakable: bool,
}

/// The pseudonyms of one pack. Its key is only in memory, and is dropped with this value.
pub struct Pseudonyms {
    key: hmac::Key,
    known: HashMap<String, Known>,
    /// The lengths of the unmistakable identifiers, longest first, by their first run of letters.
    lengths: HashMap<String, Vec<usize>>,
}

/// Email addresses and ids are compared without case.
fn normal(text: &str) -> String {
    text.trim().to_lowercase()
}

impl Pseudonyms {
    /// The pseudonyms of a key for the rows of [`IDENTIFIERS`].
    pub fn new(key: [u8; 32], rows: impl IntoIterator<Item = (String, String, Option<String>)>) -> Self {
        let mut known = HashMap::<String, Known>::new();
        for (kind, text, same) in rows {
            let (kind, is_unmistakable) = match kind.as_str() {
                "person" => ("person", true),
                "named" => ("person", false),
                "computer" => ("computer", true),
                "address" => ("address", true),
                _ => ("local-user", false),
            };
            let (text, has_same) = (normal(&text), same.is_some());
            let original = same.map_or_else(|| text.clone(), |same| normal(&same));
            match known.entry(text) {
                // An address or a name that belonged to two people is neither of them.
                Entry::Occupied(mut held) if has_same && held.get().original != original => {
                    held.get_mut().original = held.key().clone();
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    place.insert(Known { kind, original, is_unmistakable });
                }
            }
        }
        let mut lengths = HashMap::<String, Vec<usize>>::new();
        for (text, _) in known.iter().filter(|(text, known)| known.is_unmistakable && text.len() >= ID_BYTES_MIN) {
            lengths.entry(first_run(text).to_owned()).or_default().push(text.len());
        }
        for of_run in lengths.values_mut() {
            of_run.sort_unstable_by(|a, b| b.cmp(a));
            of_run.dedup();
        }
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key), known, lengths }
    }

    /// The pseudonym of a text.
    fn name(&self, text: &str) -> String {
        let text = normal(text);
        let known = self.known.get(&text);
        let kind = match known {
            Some(known) => known.kind,
            None if is_email(&text) => "person",
            None if is_address(&text) => "address",
            None => "value",
        };
        let tag = hmac::sign(&self.key, known.map_or(&text, |known| &known.original).as_bytes());
        format!("{kind}-{}", &hex::encode(tag.as_ref())[..DIGITS])
    }

    fn is_identifier(&self, word: &str) -> bool {
        is_email(word) || is_address(word) || self.is_known(word)
    }

    fn is_known(&self, text: &str) -> bool {
        self.known.get(&normal(text)).is_some_and(|known| known.is_unmistakable)
    }

    fn is_computer(&self, text: &str) -> bool {
        self.known.get(&normal(text)).is_some_and(|known| known.kind == "computer")
            && !is_email(text)
            && !is_address(text)
    }

    /// A text with pseudonyms for the identifiers in it.
    pub fn in_text(&self, text: &str) -> String {
        // The name of a computer can have spaces.
        if self.is_known(text) {
            return self.name(text);
        }
        words(text).map(|word| if self.is_identifier(word) { self.name(word) } else { self.in_word(word) }).collect()
    }

    /// A word with pseudonyms for the identifiers in it: `203.0.113.7:51234`, `account:usr-1`.
    fn in_word(&self, word: &str) -> String {
        let (mut changed, mut at) = (String::with_capacity(word.len()), 0);
        while let Some(next) = word[at..].chars().next() {
            let end = self.known_end(word, at).or_else(|| address_end(word, at));
            match end {
                Some(end) => changed.push_str(&self.name(&word[at..end])),
                None => changed.push(next),
            }
            at = end.unwrap_or(at + next.len_utf8());
        }
        changed
    }

    /// The end of the longest unmistakable identifier that begins at `at`, and neither begins nor ends inside another run.
    fn known_end(&self, text: &str, at: usize) -> Option<usize> {
        if is_inside_run(text, at) {
            return None;
        }
        let lengths = self.lengths.get(&first_run(&text[at..]).to_lowercase())?;
        let mut ends = lengths.iter().map(|length| at + length);
        ends.find(|end| {
            let known = text.get(at..*end).and_then(|one| self.known.get(&one.to_lowercase()));
            known.is_some_and(|known| known.is_unmistakable) && !is_inside_run(text, *end)
        })
    }

    /// The pseudonyms of a whole value: of each string of a JSON text, and of each member of a list.
    fn whole(&self, text: &str) -> String {
        if text.trim().is_empty() || FIXED.contains(&text) {
            return text.to_owned();
        }
        if text.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            return self.json(value).to_string();
        }
        match self.known.contains_key(&normal(text)) {
            true => self.name(text),
            false => text.split(", ").map(|one| self.name(one)).collect::<Vec<_>>().join(", "),
        }
    }

    fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) if text.parse::<Instant>().is_ok() => Value::String(text),
            Value::String(text) => Value::String(self.whole(&text)),
            Value::Number(id) if self.known.contains_key(&id.to_string()) => Value::String(self.name(&id.to_string())),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(key, value)| (self.in_text(&key), self.json(value))).collect()
            }
            other => other,
        }
    }

    /// The statement of a report with pseudonyms. Arguments that the report's own text does not name can be identifiers.
    pub fn about(&self, mut about: About, report: &Report) -> About {
        for value in about.params.values_mut() {
            self.argument(value, &report.text);
        }
        for stream in &mut about.coverage {
            for gap in stream.gaps.iter_mut().chain(&mut stream.removed_before) {
                let GapInside { reason, subject, .. } = gap;
                (*reason, *subject) = (self.in_text(reason), self.in_text(subject));
            }
        }
        about.notes.insert(
            0,
            "people, computers and addresses have pseudonyms, which are the same in all reports of this pack; the key was not \
             kept, and the SQL run again on the archive gives the real values"
                .to_owned(),
        );
        about
    }

    fn argument(&self, value: &mut Value, own: &str) {
        match value {
            Value::String(text) if !own.contains(text.as_str()) => *text = self.whole(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.argument(item, own)),
            _ => {}
        }
    }

    /// The first identifier that a text still holds: an address, or an id or email address that the archive knows. It reads no
    /// words, so a text that [`Pseudonyms::in_text`] divides wrongly is found.
    pub fn left_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = |(at, _): (usize, char)| self.known_end(text, at).map(|end| &text[at..end]);
        text.char_indices().filter_map(found).find(|one| {
            let known = self.known.get(&normal(one));
            is_email(one)
                || is_address(one)
                || known.is_some_and(|known| known.kind == "person" && known.original == normal(one))
        })
    }
}

/// What happens to a column.
#[derive(Clone, Copy)]
enum Rule {
    Keep,
    Text(Content),
    List(Content),
}

/// A sink that replaces identifiers, and passes the rows to the inner sink.
pub struct Pseudonymised<'a> {
    inner: &'a mut dyn Sink,
    names: &'a Pseudonyms,
    rules: Vec<Rule>,
}

impl<'a> Pseudonymised<'a> {
    pub fn new(inner: &'a mut dyn Sink, names: &'a Pseudonyms) -> Self {
        Self { inner, names, rules: Vec::new() }
    }

    fn texts(&self, texts: &StringArray, content: Content) -> StringArray {
        let one = |text: &str| match content {
            Content::Value => self.names.whole(text),
            Content::Word if self.names.is_computer(text) => text.to_owned(),
            Content::Word | Content::Sentence => self.names.in_text(text),
        };
        texts.iter().map(|text| text.map(one)).collect()
    }
}

fn has_text(kind: &DataType) -> bool {
    let is_plain = kind.is_numeric() || kind.is_temporal() || matches!(kind, DataType::Boolean | DataType::Null);
    !is_plain
}

impl Sink for Pseudonymised<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        for field in schema.fields() {
            let content = Content::of(field.name());
            self.rules.push(match field.data_type() {
                DataType::Utf8 => Rule::Text(content),
                DataType::List(item) if *item.data_type() == DataType::Utf8 => Rule::List(content),
                kind if has_text(kind) => {
                    let (name, why) = (field.name(), "has a type that cannot be pseudonymised: cast it to VARCHAR");
                    return Err(ReportError::query(format!("column {name} {why}, or leave its report out")));
                }
                _ => Rule::Keep,
            });
        }
        self.inner.begin(schema)
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let changed = batch.columns().iter().zip(&self.rules).map(|(column, rule)| match rule {
            Rule::Keep => Arc::clone(column),
            Rule::Text(content) => Arc::new(self.texts(column.as_string(), *content)) as ArrayRef,
            Rule::List(content) => {
                let (field, offsets, values, nulls) = column.as_list::<i32>().clone().into_parts();
                let values = self.texts(values.as_string(), *content);
                Arc::new(ListArray::new(field, offsets, Arc::new(values), nulls)) as ArrayRef
            }
        });
        let changed = RecordBatch::try_new(batch.schema(), changed.collect());
        self.inner.batch(&changed.expect("BUG: each column has the type and length of the one before"))
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests;
