//! The holds that stop an order: a hold covers the rows of its period, and rows that also hold the hold's subject.

use std::cell::RefCell;
use std::collections::BTreeSet;

use arrow::array::{AsArray, RecordBatch};

use crate::model::{Dataset, Digest, TeamId};

use super::super::hold::Hold;
use super::super::salts::{Salt, Salts};
use super::super::{Archive, ArchiveError, TeamReader};
use super::carry::Rows;
use super::eraser::Eraser;
use super::rules::holds_on_part;
use super::scan::changes;
use super::strings::picked;
use super::{Order, Subject, bad, key_of};

impl Archive {
    /// The ids of the holds that cover rows of a team that an order would change.
    ///
    /// # Errors
    /// When a file cannot be read, or the key of the subjects' digests is lost.
    pub fn holds_on_order(&self, team: &TeamId, order: &Order) -> Result<BTreeSet<String>, ArchiveError> {
        let reader = self.read(team)?;
        let mut holds: Vec<Hold> = reader.state().holds.values().filter(|hold| hold.stands()).cloned().collect();
        for value in order.subject.values() {
            for hold in self.holds_on(team, &value)? {
                if !holds.contains(&hold) {
                    holds.push(hold);
                }
            }
        }
        match holds.is_empty() {
            true => Ok(BTreeSet::new()),
            false => reader.held(order, &holds),
        }
    }
}

impl TeamReader {
    fn held(&self, order: &Order, holds: &[Hold]) -> Result<BTreeSet<String>, ArchiveError> {
        let (store, state) = (self.store(), self.state());
        let salts = Salts::of_verifier(store, state);
        let key = key_of(&salts)?;
        let own = order.subject.digests(&key);
        let of_holds: BTreeSet<Digest> = holds.iter().filter_map(|hold| hold.added.subject).collect();
        let eraser = Eraser::new(order, key);
        let mut found = BTreeSet::new();
        for dataset in Dataset::ALL {
            let mut rows = Rows::default();
            let mut subjects: BTreeSet<Digest> = own.iter().copied().collect();
            for file in state.files_of(dataset) {
                changes(store, file, &eraser, &mut |changed| {
                    rows = rows.plus(Rows::of(&changed, &salts).map_err(|reason| bad(&state.team_id, reason))?);
                    if !of_holds.is_empty() {
                        subjects.extend(named(&changed.before, &key).intersection(&of_holds));
                    }
                    Ok(())
                })?;
            }
            if !rows.is_empty() {
                let (part, subjects) = (rows.part(dataset, 0), subjects.into_iter().collect::<Vec<_>>());
                found.extend(holds_on_part(holds, &part, &subjects).into_iter().map(|hold| hold.added.id.clone()));
            }
        }
        Ok(found)
    }
}

/// The keyed digests of all texts in these rows, as holds record subjects.
fn named(rows: &RecordBatch, key: &Salt) -> BTreeSet<Digest> {
    let found = RefCell::new(BTreeSet::new());
    let take = |text: &str| {
        if let Ok(subject) = Subject::new([text]) {
            found.borrow_mut().extend(subject.digests(key));
        }
        None::<()>
    };
    for text in rows.columns().iter().filter_map(|column| column.as_string_opt::<i32>()).flatten().flatten() {
        take(text);
        picked(text.as_bytes(), &take);
    }
    found.into_inner()
}
