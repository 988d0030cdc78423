//! The rules of a line that carries out an erasure: it replaces files one by one, and rows one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::path::DataPath;
use crate::model::{Dataset, Digest, FileRole, Instant, Range};

use super::{ErasedPart, ErasedRecord, check_order};
use crate::archive::deletion::hold::{Hold, covering};
use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::ledger::state::TeamState;
use crate::archive::ledger::state_error::StateError;
use crate::archive::salts::DRAFTS_MONTH;
use crate::archive::{Body, FileEntry};

/// The members that a file and its replacement have in common.
type FileIdentity = (Dataset, FileRole, Instant, u64, Option<Instant>, Option<Instant>);

impl TeamState {
    /// Checks a line that erases: it does nothing else, each added file replaces one removed file, and the declared sums hold.
    pub(in crate::archive) fn check_erased(&self, body: &Body, record: &ErasedRecord) -> Result<(), StateError> {
        let refused = |reason: String| StateError::Erasure { order: record.order.clone(), reason };
        let alone = Body {
            adds: body.adds.clone(),
            removes: body.removes.clone(),
            erased: body.erased.clone(),
            salts: body.salts.clone(),
            draft: body.draft,
            findings: body.findings.clone(),
            ..Body::default()
        };
        if *body != alone {
            return Err(refused("the line does more than erase".to_owned()));
        }
        check_order(&record.order).map_err(|why| refused(format!("its name is invalid: {why}")))?;
        if self.erased.iter().any(|(_, held)| held.order == record.order && held.subjects != record.subjects) {
            return Err(refused("the order was carried out for another subject".to_owned()));
        }
        if identities(self.removed_files(body)) != identities(&body.adds) {
            return Err(refused("no added file replaces a removed file".to_owned()));
        }
        self.check_held(record)?;
        self.check_resalted(body, record).map_err(refused)?;
        let mut parts: BTreeMap<Dataset, &ErasedPart> = BTreeMap::new();
        for part in &record.parts {
            if parts.insert(part.dataset, part).is_some() {
                return Err(refused(format!("{} is named twice", part.dataset)));
            }
        }
        for dataset in Dataset::ALL {
            let before: Vec<&FileEntry> = self.removed_files(body).filter(|file| file.dataset == dataset).collect();
            let after = RowsSum::of_files(body.adds.iter().filter(|file| file.dataset == dataset));
            check_part(dataset, &before, after, parts.remove(&dataset)).map_err(refused)?;
        }
        Ok(())
    }

    /// No active hold covers an erased row.
    fn check_held(&self, record: &ErasedRecord) -> Result<(), StateError> {
        for part in &record.parts {
            let held = self.holds_on_part(self.holds.values(), part, &record.subjects);
            if let Some(hold) = held.first() {
                return Err(StateError::Protected(format!(
                    "erasure {}: hold {} covers rows of {} that it would change: they stay until the hold is released",
                    record.order, hold.added.id, part.dataset
                )));
            }
        }
        Ok(())
    }

    /// The holds on these subjects that cover the erased rows of a part.
    pub(super) fn holds_on_part<'a>(
        &self,
        holds: impl IntoIterator<Item = &'a Hold> + Clone,
        part: &ErasedPart,
        subjects: &[Digest],
    ) -> Vec<&'a Hold> {
        let period = self.period_of_part(part);
        let of = |subject: &Digest| covering(holds.clone(), part.dataset, period, Some(*subject));
        let mut found: Vec<&Hold> = Vec::new();
        for hold in subjects.iter().flat_map(of) {
            if !found.contains(&hold) {
                found.push(hold);
            }
        }
        found
    }

    /// The period of the erased rows of a part. An inventory row describes the state until the first scan of a later month.
    pub(in crate::archive) fn period_of_part(&self, part: &ErasedPart) -> Range {
        let Some((first, last)) = part.first.zip(part.last) else {
            return Range::new(Instant::EARLIEST, Instant::LATEST);
        };
        let end = match part.dataset {
            Dataset::Inventory(_) => self.period_of(part.dataset, last).end,
            _ => last.plus(Duration::from_nanos(1)),
        };
        Range::new(first, end)
    }

    /// A line that replaces salts gives live files new row digests, and only such a line does.
    fn check_resalted(&self, body: &Body, record: &ErasedRecord) -> Result<(), String> {
        let replaced: Vec<Instant> =
            body.salts.iter().map(|salt| salt.month).filter(|month| self.salts.contains_key(month)).collect();
        if replaced.contains(&DRAFTS_MONTH) {
            return Err("it replaces the key of the team".to_owned());
        }
        if replaced.is_empty() != record.resalted.is_empty() {
            return Err("it replaces salts without new row digests, or the other way round".to_owned());
        }
        let mut named = BTreeSet::new();
        for file in &record.resalted {
            let is_kept = self.files.contains_key(&file.path) && !body.removes.contains(&file.path);
            let is_live = is_kept || body.adds.iter().any(|added| added.path == file.path);
            if !is_live || !named.insert(&file.path) {
                return Err(format!(
                    "it gives {} a new row digest, but the file is not live, or named twice",
                    file.path
                ));
            }
        }
        Ok(())
    }
}

fn identities<'a>(files: impl IntoIterator<Item = &'a FileEntry>) -> BTreeMap<FileIdentity, usize> {
    let mut found = BTreeMap::new();
    for file in files {
        let start = DataPath::parse(&file.path).map_or(Instant::EARLIEST, |path| path.start);
        *found.entry((file.dataset, file.role, start, file.rows, file.first, file.last)).or_default() += 1;
    }
    found
}

fn check_part(
    dataset: Dataset,
    before: &[&FileEntry],
    after: RowsSum,
    part: Option<&ErasedPart>,
) -> Result<(), String> {
    let Some(part) = part else {
        return if before.is_empty() { Ok(()) } else { Err(format!("it does not declare the changes in {dataset}")) };
    };
    let held = RowsSum::of_files(before.iter().copied());
    if part.rows == 0 || part.rows > held.rows || part.files != before.len() as u64 {
        return Err(format!(
            "it declares {} rows in {} files of {dataset}, but the files have {} rows",
            part.rows, part.files, held.rows
        ));
    }
    if held.less(part.erased()).plus(part.replaced()) != after {
        return Err(format!("rows of {dataset} changed beside the {} declared ones", part.rows));
    }
    Ok(())
}
