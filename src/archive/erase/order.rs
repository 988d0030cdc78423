//! An order of erasure, and the scratch file that keeps its key until the order is done.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::path::SCRATCH;
use crate::model::{Digest, Instant, TeamId};
use crate::store::{Store, StoreError, Unerased, Verb, put};

use super::super::random::Random;
use super::super::salts::Salt;
use super::super::{Archive, ArchiveError};
use super::Subject;
use super::place::{is_order, order_of};

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
    /// In hexadecimal; destroyed when the order is done.
    key: String,
}

impl PendingOrder {
    fn path(&self) -> String {
        order_of(&Digest::of(self.order.as_bytes()).short())
    }

    fn key(&self) -> Option<Salt> {
        let mut key = [0; 32];
        hex::decode_to_slice(&self.key, &mut key).ok().map(|()| Salt(key))
    }

    /// The interrupted order; `None` if it began for another subject.
    pub fn resumed(&self, subject: &Subject) -> Option<Order> {
        let key = self.key().filter(|key| subject.digests(key) == self.subjects)?;
        Some(Order { id: self.order.clone(), subject: subject.clone(), key })
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

    /// Writes the scratch file, and returns its time by the store's clock. The order's next line fences the commits that wrote
    /// older files.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(&self, store: &dyn Store) -> Result<Instant, ArchiveError> {
        let mut bytes = serde_json::to_vec(self).expect("BUG: an order has no map with odd keys");
        bytes.push(b'\n');
        let path = self.path();
        put(store, &path, &bytes)?;
        let kept = store.list(SCRATCH)?.into_iter().find(|entry| entry.path == path);
        Ok(kept.ok_or(StoreError::NotFound { path })?.modified)
    }

    /// Destroys the key.
    ///
    /// # Errors
    /// When the store fails.
    pub fn end(&self, store: &dyn Store) -> Result<Vec<Unerased>, ArchiveError> {
        Ok(store.erase_all(&[&self.path()])?)
    }
}

impl Order {
    /// A new order, without a scratch file yet.
    pub(super) fn begin(
        id: String,
        subject: Subject,
        teams: BTreeSet<TeamId>,
        random: &Random,
    ) -> (Self, PendingOrder) {
        let key = Salt(random.seed());
        let pending = PendingOrder {
            order: id.clone(),
            teams,
            subjects: subject.digests(&key),
            unlinkable: false,
            key: hex::encode(key.0),
        };
        (Self { id, subject, key }, pending)
    }
}

impl Archive {
    /// A new order with a new key. Writes nothing yet.
    pub fn new_order(&self, id: &str, subject: &Subject, teams: BTreeSet<TeamId>) -> (Order, PendingOrder) {
        Order::begin(id.to_owned(), subject.clone(), teams, self.random())
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
    if order.key().is_none() || order.path() != path {
        return Err(odd("the file holds no order of erasure"));
    }
    Ok(order)
}
