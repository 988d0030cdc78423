//! The holds that stop an order: a hold covers the rows of its period, and rows that also hold the hold's subject.

use std::cell::RefCell;
use std::collections::BTreeSet;

use arrow::array::{AsArray, RecordBatch};
use serde::de::IgnoredAny;

use crate::model::{Dataset, Digest, RejectRow, TeamId};

use super::eraser::Eraser;
use super::scan::part_of;
use super::strings::find_strings;
use super::{ErasedPart, Order, Subject};
use crate::archive::deletion::hold::Hold;
use crate::archive::salts::Salt;
use crate::archive::table::reject_rows;
use crate::archive::{Archive, ArchiveError, TeamReader};

impl Archive {
    /// The ids of the holds that cover rows of a team that an order would change.
    ///
    /// # Errors
    /// When a file cannot be read, or the key of the subjects' digests is lost.
    pub fn holds_on_order(&self, team: &TeamId, order: &Order) -> Result<BTreeSet<String>, ArchiveError> {
        let reader = self.read(team)?;
        reader.holds_covering(order, self.holds_for(&reader)?)
    }
}

impl TeamReader {
    fn holds_covering(&self, order: &Order, held: (Vec<Hold>, Vec<Salt>)) -> Result<BTreeSet<String>, ArchiveError> {
        let (holds, mut keys) = held;
        if holds.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (store, state) = (self.store(), self.state());
        let salts = self.salts();
        let key = salts.key()?;
        keys.push(key);
        let own: Vec<Digest> = keys.iter().flat_map(|key| order.subject.digests(key)).collect();
        let of_holds: BTreeSet<Digest> = holds.iter().filter_map(|hold| hold.added.subject).collect();
        let eraser = Eraser::new(order, key);
        let mut found = BTreeSet::new();
        for dataset in Dataset::ALL {
            let mut part: Option<ErasedPart> = None;
            let mut subjects: BTreeSet<Digest> = own.iter().copied().collect();
            for file in state.files_of(dataset) {
                let of_file = part_of(store, file, &eraser, &salts, &mut |rows| {
                    // A text that is not JSON can hold any subject as a word, and no search for a digest finds words.
                    let is_json = |row: &RejectRow| serde_json::from_slice::<IgnoredAny>(&row.raw).is_ok();
                    if dataset == Dataset::Quarantine && !reject_rows(rows)?.iter().all(is_json) {
                        subjects.extend(&of_holds);
                    } else if !of_holds.is_empty() {
                        subjects.extend(named(rows, &keys).intersection(&of_holds));
                    }
                    Ok(())
                })?;
                part = part.into_iter().chain(of_file).reduce(ErasedPart::plus);
            }
            let subjects: Vec<Digest> = subjects.into_iter().collect();
            let covering = part.map(|part| state.holds_on_part(&holds, &part, &subjects)).unwrap_or_default();
            found.extend(covering.into_iter().map(|hold| hold.added.id.clone()));
        }
        Ok(found)
    }
}

/// The digests under these keys of all texts in these rows, as holds record subjects.
fn named(rows: &RecordBatch, keys: &[Salt]) -> BTreeSet<Digest> {
    let found = RefCell::new(BTreeSet::new());
    let take = |text: &str| {
        if let Ok(subject) = Subject::new([text]) {
            found.borrow_mut().extend(keys.iter().flat_map(|key| subject.digests(key)));
        }
        None::<()>
    };
    for text in rows.columns().iter().filter_map(|column| column.as_string_opt::<i32>()).flatten().flatten() {
        take(text);
        find_strings(text.as_bytes(), &take);
    }
    found.into_inner()
}
