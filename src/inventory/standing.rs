//! What is there as far as the archive knows, and how a look differs from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Instant, InventoryPart, InventoryRow, InventoryValue};

/// Things by key, with the values of their columns.
pub type Things = BTreeMap<Vec<String>, Vec<InventoryValue>>;

/// What a look was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All things of the part: what is held and was not seen is gone.
    Whole,
    /// Those of one user: of others the look says nothing.
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

/// What is there of one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    things: BTreeMap<Vec<String>, Held>,
    /// The newest row.
    seen_to: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    values: Vec<InventoryValue>,
    /// The last row that told of it, microseconds since the epoch.
    seen_at: i64,
}

impl Standing {
    /// The standing after rows, oldest first.
    pub fn of(rows: impl IntoIterator<Item = InventoryRow>) -> Self {
        let mut standing = Self::default();
        standing.follow(rows);
        standing
    }

    /// Takes over later rows.
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

    /// The newest row's time, microseconds since the epoch.
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

    /// When a row last told of a thing, microseconds since the epoch.
    pub fn told_at(&self, key: &[String]) -> Option<i64> {
        self.things.get(key).map(|held| held.seen_at)
    }

    /// The things and their values.
    pub fn things(&self) -> Things {
        self.things.iter().map(|(key, held)| (key.clone(), held.values.clone())).collect()
    }

    /// The rows that a look makes: what is new, changed or gone, and what is told again because its last row lies in an
    /// earlier month, or because each look at it is to be on record. `seen_at` is later than every row held.
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

    /// Of `users`, those of whom no row since `since` tells, in the order in which to ask: never asked, then oldest first.
    pub fn unasked(&self, users: &BTreeSet<String>, since: Instant) -> Vec<String> {
        let mut waiting: Vec<(Option<i64>, &String)> =
            users.iter().map(|user| (self.told_at(std::slice::from_ref(user)), user)).collect();
        waiting.retain(|(told_at, _)| told_at.is_none_or(|at| at < since.micros()));
        waiting.sort();
        waiting.into_iter().map(|(_, user)| user.clone()).collect()
    }
}

fn month(micros: i64) -> String {
    Instant::from_nanos(micros.saturating_mul(1_000)).month()
}
