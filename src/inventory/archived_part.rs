//! The archived state of people and computers, and how a new read differs from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Instant, InventoryPart, InventoryRow, InventoryValue};

/// Entries by key, with the values of their columns.
pub type Things = BTreeMap<Vec<String>, Vec<InventoryValue>>;

/// The scope of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All things of the part: an archived thing that the read does not show is gone.
    Whole,
    /// The things of one user: the read says nothing about others.
    User(&'a str),
}

impl Scope<'_> {
    fn holds(self, key: &[String]) -> bool {
        match self {
            Scope::Whole => true,
            Scope::User(user) => key.first().is_some_and(|of| of == user),
        }
    }
}

/// The archived state of one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivedPart {
    things: BTreeMap<Vec<String>, Held>,
    /// The time of the newest row.
    seen_to: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    values: Vec<InventoryValue>,
    /// The time of the thing's last row, in microseconds since the epoch.
    seen_at: i64,
}

impl ArchivedPart {
    /// The state after these rows, oldest first.
    pub fn of(rows: impl IntoIterator<Item = InventoryRow>) -> Self {
        let mut part = Self::default();
        part.follow(rows);
        part
    }

    /// Applies later rows.
    pub fn follow(&mut self, rows: impl IntoIterator<Item = InventoryRow>) {
        for row in rows {
            self.seen_to = self.seen_to.max(Some(row.seen_at));
            if row.present {
                self.things.insert(row.key, Held { values: row.values, seen_at: row.seen_at });
            } else {
                self.things.remove(&row.key);
            }
        }
    }

    /// The newest row's time, in microseconds since the epoch.
    pub fn seen_to(&self) -> Option<i64> {
        self.seen_to
    }

    pub fn len(&self) -> usize {
        self.things.len()
    }

    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = &[String]> {
        self.things.keys().map(Vec::as_slice)
    }

    /// The time of a thing's last row, in microseconds since the epoch.
    pub fn row_at(&self, key: &[String]) -> Option<i64> {
        self.things.get(key).map(|held| held.seen_at)
    }

    /// The things and their values.
    pub fn things(&self) -> Things {
        self.things.iter().map(|(key, held)| (key.clone(), held.values.clone())).collect()
    }

    /// The rows of a read: new, changed and deleted entries. An entry is repeated if its last row is in an earlier
    /// month, or if every read of it must be recorded. `seen_at` is later than every archived row.
    pub fn changes(&self, part: InventoryPart, scope: Scope<'_>, seen: &Things, seen_at: i64) -> Vec<InventoryRow> {
        let row = |key: &Vec<String>, values: &[InventoryValue], present, repeats| InventoryRow {
            key: key.clone(),
            seen_at,
            present,
            repeats,
            values: values.to_vec(),
        };
        let mut rows = Vec::new();
        for (key, values) in seen {
            match self.things.get(key) {
                Some(held) if held.values == *values => {
                    if part == InventoryPart::SignIn || month(held.seen_at) != month(seen_at) {
                        rows.push(row(key, values, true, true));
                    }
                }
                _ => rows.push(row(key, values, true, false)),
            }
        }
        let gone = self.things.iter().filter(|(key, _)| scope.holds(key) && !seen.contains_key(*key));
        rows.extend(gone.map(|(key, held)| row(key, &held.values, false, false)));
        rows
    }

    /// The users without a row since `since`, in the order of reading: never read ones first, then the oldest.
    pub fn unasked(&self, users: &BTreeSet<String>, since: Instant) -> Vec<String> {
        let mut waiting: Vec<(Option<i64>, &String)> =
            users.iter().map(|user| (self.row_at(std::slice::from_ref(user)), user)).collect();
        waiting.retain(|(row_at, _)| row_at.is_none_or(|at| at < since.micros()));
        waiting.sort();
        waiting.into_iter().map(|(_, user)| user.clone()).collect()
    }
}

fn month(micros: i64) -> String {
    Instant::from_nanos(micros.saturating_mul(1_000)).month()
}
