//! Replaces the values of a subject in texts and rows. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::DataType;
use serde::de::IgnoredAny;

use crate::model::{Dataset, Digest, ErasedMark, RejectRow};
use crate::planted::{self, Bug};

use super::Order;
use super::strings::find_strings;
use crate::archive::event_key::EventKey;
use crate::archive::salts::Salt;
use crate::archive::table::{column, reject_batch, reject_rows, sort_rows};

/// Columns that never hold a value of a person. Annals reads datasets by them.
const KEPT: [&str; 6] =
    [column::TEAM_ID, column::STREAM, column::EVENT_TYPE, column::REASON, column::ERASED, column::SERVED_DIGEST];
/// Columns whose values are words of the service, which a person's name can equal.
const WORDS: [&str; 7] =
    ["outcome", "member_kind", "grantee_kind", "role", "remote_access", "tunnel_id", "source_type"];
/// Columns of the roster that name the person of the row.
const PERSON: [&str; 2] = ["user_id", "email"];
/// Columns of the roster that describe this person. If they stayed, they would tell whose pseudonym the row holds.
const OF_PERSON: [&str; 4] = ["first_name", "last_name", "annotations", "last_used_ip"];
/// The key of a token: its title, ` #` and a number.
const TOKEN_KEY: &str = "token_key";
/// The number of hash digits in the id of an event whose id Annals made from its content.
const CONTENT_ID_DIGITS: usize = 32;

/// Applies an order to the rows of one team.
pub struct Eraser<'a> {
    order: &'a Order,
    names: Vec<String>,
    /// The team's key for the identities of erased events.
    team_key: Salt,
}

/// The rows of a batch that hold the subject, before and after.
pub struct Changed {
    pub before: RecordBatch,
    pub after: RecordBatch,
    /// All rows of the batch, after.
    pub all: RecordBatch,
}

impl<'a> Eraser<'a> {
    pub fn new(order: &'a Order, team_key: Salt) -> Self {
        Self { order, names: order.subject.pseudonyms(&order.key), team_key }
    }

    /// The text with each value replaced, if the whole text or a JSON string in it is a value. `None` if there is none.
    pub fn text(&self, text: &str) -> Option<String> {
        if let Some(value) = self.order.subject.find(text) {
            return Some(self.names[value].clone());
        }
        let bytes = self.json(text.as_bytes())?;
        Some(String::from_utf8(bytes).expect("BUG: whole strings of a text were replaced by ASCII"))
    }

    /// The text of a column with each value replaced. `None` if there is none.
    fn cell(&self, column: &str, text: &str) -> Option<String> {
        let of_title = || {
            let (title, number) = text.rsplit_once(" #").filter(|_| column == TOKEN_KEY)?;
            Some(format!("{} #{number}", self.text(title)?))
        };
        self.text(text).or_else(of_title)
    }

    fn json(&self, text: &[u8]) -> Option<Vec<u8>> {
        let places = find_strings(text, &|content| self.order.subject.find(content));
        if places.is_empty() {
            return None;
        }
        let mut made = Vec::with_capacity(text.len());
        let mut at = 0;
        for (range, value) in places {
            made.extend_from_slice(&text[at..range.start]);
            made.extend_from_slice(self.names[value].as_bytes());
            at = range.end;
        }
        made.extend_from_slice(&text[at..]);
        Some(made)
    }

    /// The rows of a batch of `dataset` without the subject. `None` if no row holds it.
    pub fn rows(&self, dataset: Dataset, batch: &RecordBatch) -> Result<Option<Changed>, String> {
        let (hits, all) = match dataset {
            Dataset::Quarantine => self.rejects(batch)?,
            _ => self.columns(batch)?,
        };
        if hits.is_empty() {
            return Ok(None);
        }
        let hits = UInt32Array::from_iter_values(hits);
        let take = |from: &RecordBatch| take_record_batch(from, &hits).map_err(|e| e.to_string());
        let (before, after) = (take(batch)?, take(&all)?);
        Ok(Some(Changed { before, after, all: sort_rows(all)? }))
    }

    fn columns(&self, batch: &RecordBatch) -> Result<(BTreeSet<u32>, RecordBatch), String> {
        let mut hits = BTreeSet::new();
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        let schema = batch.schema();
        let own = self.own_rows(batch);
        for (field, array) in schema.fields().iter().zip(&mut columns) {
            let name = field.name().as_str();
            if *field.data_type() != DataType::Utf8 || KEPT.contains(&name) || WORDS.contains(&name) {
                continue;
            }
            let texts = array.as_string_opt::<i32>().ok_or_else(|| format!("column {} is not text", field.name()))?;
            let new: Vec<Option<String>> =
                texts.iter().map(|text| text.and_then(|text| self.cell(name, text))).collect();
            hits.extend((0..).zip(&new).filter(|(_, new)| new.is_some()).map(|(at, _)| at));
            let is_lost = |at: &u32| OF_PERSON.contains(&name) && own.contains(at);
            if !own.is_empty() || new.iter().any(Option::is_some) {
                let rewritten = (0..).zip(texts.iter().zip(&new));
                let rewritten = rewritten.map(|(at, (text, new))| new.as_deref().or(text).filter(|_| !is_lost(&at)));
                *array = Arc::new(rewritten.collect::<StringArray>());
            }
        }
        self.mark(batch, &hits, &mut columns);
        let all = RecordBatch::try_new(schema, columns).map_err(|e| e.to_string())?;
        Ok((hits, all))
    }

    /// The rows of the roster that describe the subject.
    fn own_rows(&self, batch: &RecordBatch) -> BTreeSet<u32> {
        let columns = PERSON.iter().filter_map(|name| batch.column_by_name(name)?.as_string_opt::<i32>());
        let is_subject = |text: Option<&str>| text.is_some_and(|text| self.order.subject.find(text).is_some());
        columns.flat_map(|texts| (0..).zip(texts)).filter_map(|(at, text)| is_subject(text).then_some(at)).collect()
    }

    /// Marks the rewritten rows, if the dataset has columns for marks.
    fn mark(&self, before: &RecordBatch, hits: &BTreeSet<u32>, columns: &mut [ArrayRef]) {
        if hits.is_empty() {
            return;
        }
        type Rewrite<'a> = &'a dyn Fn(usize, Option<&str>) -> Option<String>;
        let rewritten = |name: &str, new: Rewrite<'_>| -> Option<(usize, ArrayRef)> {
            let place = before.schema_ref().index_of(name).ok()?;
            let held = columns[place].as_string_opt::<i32>()?.iter().zip(0_u32..).enumerate();
            let texts = held.map(|(row, (held, at))| match hits.contains(&at) {
                true => new(row, held),
                false => held.map(str::to_owned),
            });
            Some((place, Arc::new(texts.collect::<StringArray>())))
        };
        let raw = before.column_by_name(column::RAW).and_then(|column| column.as_string_opt::<i32>());
        let served = |raw: &StringArray, row: usize, held: Option<&str>| match held {
            None if !planted::is(Bug::ErasedEventsReadAgain) => Some(self.original(raw.value(row).as_bytes())),
            held => held.map(str::to_owned),
        };
        let marks = [
            rewritten(column::ERASED, &|_, held| Some(self.orders(held))),
            raw.and_then(|raw| rewritten(column::SERVED_DIGEST, &|row, held| served(raw, row, held))),
            raw.and_then(|_| rewritten(column::EVENT_ID, &|_, id| id.map(|id| self.event_id(id)))),
        ];
        for (place, column) in marks.into_iter().flatten() {
            columns[place] = column;
        }
    }

    /// The orders that rewrote a row, including this one.
    fn orders(&self, held: Option<&str>) -> String {
        let own = self.order.id.as_str();
        match held {
            Some(held) if held.split(' ').any(|order| order == own) => held.to_owned(),
            Some(held) => format!("{held} {own}"),
            None => own.to_owned(),
        }
    }

    fn original(&self, raw: &[u8]) -> String {
        EventKey(self.team_key).original(&Digest::of(raw)).to_string()
    }

    /// Replaces an id that is a hash of the content, because it would confirm a guess of the content.
    fn event_id(&self, id: &str) -> String {
        let is_hash = |digits: &str| digits.len() == CONTENT_ID_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
        match id.split_once('-') {
            Some((digits, occurrence)) if is_hash(digits) && occurrence.bytes().all(|b| b.is_ascii_digit()) => {
                let other = self.order.key.keyed("annals erased id v1\n", digits.as_bytes()).to_string();
                format!("{}-{occurrence}", &other[..CONTENT_ID_DIGITS])
            }
            _ => id.to_owned(),
        }
    }

    fn rejects(&self, batch: &RecordBatch) -> Result<(BTreeSet<u32>, RecordBatch), String> {
        let mut rows = reject_rows(batch)?;
        let hits = (0..).zip(&mut rows).filter_map(|(at, row)| self.reject(row).then_some(at)).collect();
        Ok((hits, reject_batch(&rows)?))
    }

    /// Rewrites a quarantined event, whose text can be invalid JSON. Returns whether it held the subject.
    fn reject(&self, row: &mut RejectRow) -> bool {
        let original = self.original(&row.raw);
        let words = |text: &[u8]| self.order.subject.replace_words(text, &self.names);
        let mut raw = self.json(&row.raw);
        if serde_json::from_slice::<IgnoredAny>(&row.raw).is_err() {
            raw = words(raw.as_deref().unwrap_or(&row.raw)).or(raw);
        }
        let detail = words(row.detail.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok());
        let id = self.text(row.event_id.as_str());
        if raw.is_none() && detail.is_none() && id.is_none() {
            return false;
        }
        row.raw = raw.map_or_else(|| row.raw.clone(), Into::into);
        row.detail = detail.unwrap_or_else(|| std::mem::take(&mut row.detail));
        row.event_id = self.event_id(id.as_deref().unwrap_or(row.event_id.as_str())).as_str().into();
        let held = row.erased.take();
        row.erased = Some(ErasedMark {
            orders: self.orders(held.as_ref().map(|mark| mark.orders.as_str())),
            original: held.map_or(original, |mark| mark.original),
        });
        true
    }
}

#[cfg(test)]
mod tests;
