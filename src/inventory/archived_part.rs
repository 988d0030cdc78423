//! The archived state of people and computers, and how a new read differs from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Instant, InventoryPart, InventoryRow, InventoryValue};

/// Entries by key, with the values of their columns.
pub type Entries = BTreeMap<Vec<String>, Vec<InventoryValue>>;

/// The scope of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All entries of the part: an archived entry that the read does not show is gone.
    Whole,
    /// The entries of one user: the read says nothing about others.
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
    entries: BTreeMap<Vec<String>, ArchivedEntry>,
    /// The time of the newest row.
    seen_to: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ArchivedEntry {
    values: Vec<InventoryValue>,
    /// The time of the entry's last row, in microseconds since the epoch.
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
                self.entries.insert(row.key, ArchivedEntry { values: row.values, seen_at: row.seen_at });
            } else {
                self.entries.remove(&row.key);
            }
        }
    }

    /// The newest row's time, in microseconds since the epoch.
    pub fn seen_to(&self) -> Option<i64> {
        self.seen_to
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = &[String]> {
        self.entries.keys().map(Vec::as_slice)
    }

    /// The time of an entry's last row, in microseconds since the epoch.
    pub fn row_at(&self, key: &[String]) -> Option<i64> {
        self.entries.get(key).map(|archived| archived.seen_at)
    }

    /// The entries and their values.
    pub fn entries(&self) -> Entries {
        self.entries.iter().map(|(key, archived)| (key.clone(), archived.values.clone())).collect()
    }

    /// The rows of a read: new, changed and deleted entries. An entry is repeated if its last row is in an earlier
    /// month, or if every read of it must be recorded. `seen_at` is later than every archived row.
    pub fn changes(&self, part: InventoryPart, scope: Scope<'_>, seen: &Entries, seen_at: i64) -> Vec<InventoryRow> {
        let row = |key: &Vec<String>, values: &[InventoryValue], present, repeats| InventoryRow {
            key: key.clone(),
            seen_at,
            present,
            repeats,
            values: values.to_vec(),
        };
        let mut rows = Vec::new();
        for (key, values) in seen {
            match self.entries.get(key) {
                Some(archived) if archived.values == *values => {
                    if part == InventoryPart::SignIn || month(archived.seen_at) != month(seen_at) {
                        rows.push(row(key, values, true, true));
                    }
                }
                _ => rows.push(row(key, values, true, false)),
            }
        }
        let gone = self.entries.iter().filter(|(key, _)| scope.holds(key) && !seen.contains_key(*key));
        rows.extend(gone.map(|(key, archived)| row(key, &archived.values, false, false)));
        rows
    }

    /// The users without a row since `since`, in the order of reading: `shown` users with an old row, then the users without any row,
    /// beginning with number `first` of them, then the other old rows.
    pub fn users_due(&self, users: &BTreeSet<String>, since: Instant, (shown, first): (usize, usize)) -> Vec<String> {
        let mut waiting: Vec<(Option<i64>, &String)> =
            users.iter().map(|user| (self.row_at(std::slice::from_ref(user)), user)).collect();
        waiting.retain(|(row_at, _)| row_at.is_none_or(|at| at < since.micros()));
        waiting.sort();
        let never = waiting.iter().take_while(|(row_at, _)| row_at.is_none()).count();
        let shown = shown.min(waiting.len() - never);
        waiting[..never].rotate_left(first.checked_rem(never).unwrap_or(0));
        waiting[..never + shown].rotate_left(never);
        waiting.into_iter().map(|(_, user)| user.clone()).collect()
    }
}

fn month(micros: i64) -> String {
    Instant::from_micros(micros).month()
}
