//! Sessions of a part of a backfill, made beside its commits: what the archive gains meanwhile is of later times.

use tokio::sync::OwnedSemaphorePermit;

use crate::archive::{ArchiveError, Committed, Draft, LentSessions, SessionColumns, TeamWriter};
use crate::model::Instant;

use crate::pipeline::sessions::part::Part;
use crate::pipeline::sessions::update::{Remembered, defer_sessions};

/// What is to be made.
pub struct Making {
    part: Part,
    lent: LentSessions,
    remembered: Remembered,
    service_now: Instant,
    /// Nobody else makes any meanwhile.
    turn: Option<OwnedSemaphorePermit>,
}

/// What was made, and of what.
pub struct Made {
    part: Part,
    lent: LentSessions,
    remembered: Remembered,
    draft: Result<Draft, ArchiveError>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Making {
    /// The next part of about so many events.
    pub fn next(writer: &mut TeamWriter, remembered: &mut Remembered, events: u64, service_now: Instant) -> Self {
        Self::begin(Part::next(writer.state(), events), writer, remembered, service_now)
    }

    /// The part of the archive as it is.
    pub fn begin(part: Part, writer: &mut TeamWriter, remembered: &mut Remembered, service_now: Instant) -> Self {
        Self { part, lent: writer.lend_sessions(), remembered: std::mem::take(remembered), service_now, turn: None }
    }

    /// Nobody else makes any until it has ended.
    pub fn in_turn(self, turn: OwnedSemaphorePermit) -> Self {
        Self { turn: Some(turn), ..self }
    }

    pub fn end(self) -> Made {
        let Self { part, mut lent, mut remembered, service_now, turn } = self;
        let made = part.make(&mut lent.reader(), &mut remembered, service_now);
        let draft = made.and_then(|mut draft| {
            if let Some(change) = &mut draft.sessions {
                change.columns = SessionColumns::take_many(&mut change.resting, lent.salts())?;
            }
            Ok(draft)
        });
        Made { part, lent, remembered, draft, turn }
    }
}

impl Made {
    /// Commits another draft, and with it what was made, unless what that was made of has changed since, or changes with this
    /// draft: it is then to be made again.
    ///
    /// # Errors
    /// When the archive cannot be written. A part that could not be made does not keep the other draft from its commit.
    pub fn commit_with(
        self,
        mut draft: Draft,
        writer: &mut TeamWriter,
        remembered: &mut Remembered,
        now: Instant,
    ) -> Result<Committed, ArchiveError> {
        defer_sessions(&mut draft, writer);
        let Self { part, lent, remembered: learned, draft: made, turn: _turn } = self;
        // What failed may have looked for files, of times after the part too, that have gone up in others since.
        let is_there = |path: &String| writer.state().files.contains_key(path);
        let is_sound = made.is_ok() || lent.state().files.keys().all(is_there);
        let is_of_now = is_sound && part.is_of(lent.state(), writer.state()) && !part.is_met_by(&draft);
        writer.take_back(lent);
        if !is_of_now {
            return writer.commit(draft, now);
        }
        let failed = match made {
            Ok(made) => {
                draft.findings.extend(made.findings);
                let behind = draft.sessions.take().map(|behind| behind.mark).or(writer.state().sessions);
                draft.sessions = made.sessions.map(|mut change| {
                    // What the archive has gained meanwhile is made up for after the rest.
                    if change.mark.until.is_some() {
                        change.mark.until = behind.and_then(|behind| behind.until);
                    }
                    change
                });
                None
            }
            Err(error) => Some(error),
        };
        let committed = writer.commit(draft, now)?;
        if let Some(error) = failed {
            return Err(error);
        }
        // Of what is not committed nothing is remembered.
        if matches!(committed, Committed::Committed { .. }) {
            *remembered = learned;
        }
        Ok(committed)
    }
}
