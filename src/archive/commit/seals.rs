//! Sealed calendar months and days: when a commit may seal them, and in which files their rows may stand.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::path::{DataPath, SealUnit, is_sealed, month_of, place_of};
use crate::model::{Dataset, FileRole, Instant, Range, Stream, TeamKey};

use crate::archive::ledger::state::{TeamState, stream_of};
use crate::archive::ledger::state_error::StateError;
use crate::archive::{Body, WindowRecord, WindowState};

/// The stream, start and unit of everything that a commit seals.
pub type Sealing = BTreeSet<(Stream, Instant, SealUnit)>;

/// The start, unit and role of the sealed file for rows of a window that begins at `start`; `None` if nothing is sealed there.
/// `sealing` is everything that the current commit seals.
pub fn sealed_place(
    state: &TeamState,
    sealing: &Sealing,
    stream: Stream,
    start: Instant,
) -> Option<(Instant, SealUnit, FileRole)> {
    SealUnit::ALL.into_iter().find_map(|unit| {
        let begins = unit.of(start).start;
        let role = match sealing.contains(&(stream, begins, unit)) {
            true => Some(unit.role()),
            false => state.holds_seal(unit, stream, begins).then_some(FileRole::Amendment),
        };
        role.map(|role| (begins, unit, role))
    })
}

/// Everything that a line seals.
fn sealed_by(body: &Body) -> impl Iterator<Item = (Stream, Range, SealUnit)> {
    let days = body.sealed_days.iter().map(|(stream, day)| (*stream, *day, SealUnit::Day));
    days.chain(body.sealed_months.iter().map(|(stream, month)| (*stream, *month, SealUnit::Month)))
}

impl TeamState {
    fn holds_seal(&self, unit: SealUnit, stream: Stream, start: Instant) -> bool {
        let held = match unit {
            SealUnit::Day => &self.sealed_days,
            SealUnit::Month => &self.sealed_months,
        };
        held.contains(&(stream, start))
    }

    pub fn is_month_sealed(&self, stream: Stream, at: Instant) -> bool {
        self.holds_seal(SealUnit::Month, stream, month_of(at).start)
    }

    /// Whether the day or month of `at` is sealed for `stream`; a day is sealed by itself or with its month.
    pub fn is_sealed(&self, unit: SealUnit, stream: Stream, at: Instant) -> bool {
        self.holds_seal(unit, stream, unit.of(at).start) || self.is_month_sealed(stream, at)
    }

    /// Applies a line's seals. A sealed month replaces its sealed days: new rows go to the month's amendments.
    pub(in crate::archive) fn seal(&mut self, days: Vec<(Stream, Range)>, months: Vec<(Stream, Range)>) {
        self.sealed_days.extend(days.into_iter().map(|(stream, day)| (stream, day.start)));
        for (stream, month) in months {
            self.sealed_days.retain(|(of, day)| *of != stream || !month.owns(*day));
            self.sealed_months.insert((stream, month.start));
        }
    }

    /// Whether a line may seal its days and months. `changed` are the windows that the line changes.
    pub(in crate::archive) fn check_seals(
        &self,
        body: &Body,
        changed: &BTreeMap<(Stream, Instant), &WindowRecord>,
    ) -> Result<(), StateError> {
        for (stream, range, unit) in sealed_by(body) {
            if unit.of(range.start) != range {
                return Err(StateError::NotAUnit { stream, range, unit });
            }
            if self.is_sealed(unit, stream, range.start) {
                return Err(StateError::Sealed { stream, range });
            }
            let keys = (stream, range.start)..(stream, range.end);
            let held = self.windows.range(keys.clone()).filter(|(key, _)| !changed.contains_key(key)).map(|(_, r)| r);
            let open = held.chain(changed.range(keys).map(|(_, r)| *r)).find(|r| r.state != WindowState::Sealed);
            if let Some(open) = open {
                return Err(StateError::Open { stream, range, window: open.range, state: open.state });
            }
        }
        self.check_sealed_places(body)
    }

    /// Checks that sealed units have only sealed files. Reads only the files of the new seals.
    fn check_sealed_places(&self, body: &Body) -> Result<(), StateError> {
        let fresh: Sealing = sealed_by(body).map(|(stream, range, unit)| (stream, range.start, unit)).collect();
        let removed: BTreeSet<&String> = body.removes.iter().collect();
        let key = TeamKey::of(&self.team_id);
        for (stream, start, unit) in &fresh {
            let begins = place_of(Dataset::from(*stream), &key, *unit, *start);
            let held = self.files.range(begins.clone()..).take_while(|(path, _)| path.starts_with(&begins));
            let mut left = held.filter(|(path, file)| !is_sealed(file.role) && !removed.contains(path));
            if let Some((path, _)) = left.next() {
                return Err(StateError::LeftOutside { stream: *stream, range: unit.of(*start), path: path.clone() });
            }
        }
        for file in &body.adds {
            let Some(data) = DataPath::parse(&file.path).filter(|data| !is_sealed(data.role)) else { continue };
            let Some(stream) = stream_of(data.dataset) else { continue };
            if let Some((start, unit, _)) = sealed_place(self, &fresh, stream, data.start) {
                return Err(StateError::LeftOutside { stream, range: unit.of(start), path: file.path.clone() });
            }
        }
        Ok(())
    }
}
