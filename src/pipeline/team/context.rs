//! One team's round for its readings: the edges, and the input of the commit stage.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::archive::{ArchiveError, ReadPoint};
use crate::model::{Range, Stream};
use crate::pipeline::commit::{Batch, Inbox, StreamChange};
use crate::pipeline::plan::read_to;
use crate::pipeline::team::{Permit, TeamEdges};

/// A read point triggers a commit when the last committed one is older than this.
const POINT_AGE_MAX: Duration = Duration::from_secs(3600);

/// One team's round. Dropping it closes the inbox of the commit stage.
pub struct TeamContext {
    edges: Arc<TeamEdges>,
    /// The inbox of the commit stage. When a method that sends to it fails, the stage has ended. The stage has the reason.
    pub inbox: Inbox,
    /// By the monotonic clock.
    ends: Option<Duration>,
    deferred: Mutex<Deferred>,
}

/// The work that a round leaves to the next round.
#[derive(Debug, Clone, Default)]
pub struct Deferred {
    /// Unstable ranges, which stay open.
    pub open: Vec<(Stream, Range)>,
    /// Streams that this round did not read up to its start.
    pub unread: BTreeSet<Stream>,
    /// The round is out of time and has more to do.
    pub is_unfinished: bool,
}

impl Deref for TeamContext {
    type Target = TeamEdges;

    fn deref(&self) -> &TeamEdges {
        &self.edges
    }
}

impl TeamContext {
    pub fn new(edges: Arc<TeamEdges>, inbox: Inbox) -> Self {
        let ends = edges.time_limit.map(|limit| edges.clock.monotonic().saturating_add(limit));
        Self { edges, inbox, ends, deferred: Mutex::default() }
    }

    pub fn deferred(&self) -> MutexGuard<'_, Deferred> {
        self.deferred.lock()
    }

    /// Whether a read point may vouch for the stream: this round read everything up to its start.
    pub fn is_read(&self, stream: Stream) -> bool {
        self.settings.until.is_none() && !self.deferred().unread.contains(&stream)
    }

    /// Notes that this round is out of time. `unread`: a stream that it did not read up to its start.
    pub fn leave_rest(&self, unread: Option<Stream>) {
        let mut deferred = self.deferred();
        deferred.is_unfinished = true;
        deferred.unread.extend(unread);
    }

    /// Whether this round is out of time and leaves the rest to the next round.
    pub fn is_out_of_time(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= self.clock.monotonic())
    }

    /// Sends changes without events.
    pub async fn add(&self, add: impl FnOnce(&mut Batch)) -> Result<(), ArchiveError> {
        let mut batch = Batch::default();
        add(&mut batch);
        self.inbox.add(batch).await
    }

    /// A permit for the events of one reading.
    pub async fn reserve(&self, events: usize) -> Result<Permit, ArchiveError> {
        if let Some(permit) = self.budget.try_reserve(events) {
            return Ok(permit);
        }
        // Count this reading as waiting first: then every team commits the events that it holds.
        let _waits = self.budget.waits();
        self.inbox.commit().await?;
        Ok(self.budget.reserve(events).await)
    }

    /// How many readings of one stream may run in parallel now.
    pub fn readings_at_once(&self) -> usize {
        if self.budget.is_contended() { 1 } else { self.settings.concurrency }
    }

    /// Notes a successful reading. Its read point is written with the next commit. It triggers a commit if the last
    /// committed one is old: then the archive of a quiet team, too, shows that the team is read.
    pub async fn note_point(&self, stream: Stream, point: ReadPoint, change: StreamChange) -> Result<(), ArchiveError> {
        let held = self.with_state(|state| state.streams.get(&stream).and_then(|record| read_to(record, None))).await;
        let add = |batch: &mut Batch| {
            batch.streams.push((stream, change));
            batch.read_points.push((stream, point));
            batch.is_due = held.is_none_or(|held| point.read_to.since(held) >= POINT_AGE_MAX);
        };
        self.add(add).await
    }
}
