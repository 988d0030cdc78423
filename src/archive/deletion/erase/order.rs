//! An order of erasure, and the scratch file that keeps its key until the order is done.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::path::SCRATCH;
use crate::model::{Digest, TeamId};
use crate::store::{Store, StoreError, Unerased, Verb, erase_all, put};

use super::Subject;
use crate::archive::salts::Salt;
use crate::archive::{Archive, ArchiveError};

/// The first part of the name of an order's scratch file.
const FILE_PREFIX: &str = "erasure-";
/// The maximum size of an order's scratch file: some hundred bytes, and the ids of teams.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The subject of an order, and the key of its pseudonyms.
#[derive(Debug, Clone)]
pub struct Order {
    pub id: String,
    pub subject: Subject,
    pub(super) key: Salt,
}

/// An order that began and is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingOrder {
    pub order: String,
    /// The teams that the order covers.
    pub teams: BTreeSet<TeamId>,
    /// Digests of the subject's values under the order's key.
    subjects: Vec<Digest>,
    /// The order also replaces the salts of the months that it changes.
    unlinkable: bool,
    /// Destroyed when the order is done.
    key: Salt,
}

impl PendingOrder {
    /// The interrupted order; `None` if it began for another subject.
    pub fn resumed(&self, subject: &Subject) -> Option<Order> {
        let key = self.key;
        let is_same = subject.digests(&key) == self.subjects;
        is_same.then(|| Order { id: self.order.clone(), subject: subject.clone(), key })
    }

    /// The same order, which also replaces salts.
    #[must_use]
    pub fn making_unlinkable(self) -> Self {
        Self { unlinkable: true, ..self }
    }

    pub fn is_unlinkable(&self) -> bool {
        self.unlinkable
    }

    /// The same order, which also covers these teams.
    #[must_use]
    pub fn of_teams(&self, teams: &BTreeSet<TeamId>) -> Self {
        Self { teams: self.teams.union(teams).cloned().collect(), ..self.clone() }
    }

    /// Writes the scratch file.
    pub fn save(&self, store: &dyn Store) -> Result<(), ArchiveError> {
        let mut bytes = serde_json::to_vec(self).expect("BUG: an order has no map with odd keys");
        bytes.push(b'\n');
        Ok(put(store, &order_path(&self.order), &bytes)?)
    }

    pub fn destroy(&self, store: &dyn Store) -> Result<Vec<Unerased>, ArchiveError> {
        Ok(erase_all(store, &[&order_path(&self.order)])?)
    }
}

pub fn order_path(order: &str) -> String {
    format!("{SCRATCH}/{FILE_PREFIX}{}.json", Digest::of(order.as_bytes()).short())
}

pub fn is_order(path: &str) -> bool {
    path.strip_prefix(SCRATCH).and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| name.starts_with(FILE_PREFIX))
}

impl Archive {
    /// A new order with a new key. Writes nothing yet.
    pub fn new_order(&self, id: &str, subject: &Subject, teams: BTreeSet<TeamId>) -> (Order, PendingOrder) {
        let (id, key) = (id.to_owned(), Salt(self.random().seed()));
        let (order, subjects) = (id.clone(), subject.digests(&key));
        let pending = PendingOrder { order, teams, subjects, unlinkable: false, key };
        (Order { id, subject: subject.clone(), key }, pending)
    }

    /// The orders that began and are not done.
    ///
    /// # Errors
    /// When the store fails, or a scratch file is not valid.
    pub fn pending_orders(&self) -> Result<Vec<PendingOrder>, ArchiveError> {
        let store = self.store().as_ref();
        let listed = store.list(SCRATCH)?.into_iter().filter(|entry| is_order(&entry.path));
        listed.map(|entry| read(store, &entry.path)).collect()
    }
}

fn read(store: &dyn Store, path: &str) -> Result<PendingOrder, ArchiveError> {
    let odd = |what: &str| {
        let what = format!("{what}: remove this file, and give the order again");
        ArchiveError::from(StoreError::Irregular { path: path.to_owned(), what })
    };
    let blob = store.read(path)?;
    if blob.size() > FILE_BYTES_MAX {
        return Err(odd("the file is too long for an order"));
    }
    let bytes = blob.to_bytes().map_err(|e| StoreError::io(Verb::Read, path, e))?;
    let order: PendingOrder = serde_json::from_slice(&bytes).map_err(|_| odd("the file holds no order of erasure"))?;
    if order_path(&order.order) != path {
        return Err(odd("the file holds no order of erasure"));
    }
    Ok(order)
}
