//! One team's round, as its readings see it: what they work with, and where they send what they read.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::api::EventSource;
use crate::archive::ArchiveError;
use crate::model::Stream;
use crate::pipeline::commit::batch::Batch;
use crate::pipeline::commit::change::StreamChange;
use crate::pipeline::commit::inbox::Inbox;
use crate::pipeline::plan::coverage::read_to;
use crate::pipeline::team::budget::Permit;
use crate::pipeline::team::deferred::Deferred;
use crate::pipeline::team::edges::TeamEdges;

/// A read point that is older than this is followed by one that is worth a commit of its own.
const POINT_AGE_MAX: Duration = Duration::from_secs(3600);

/// One team's round. It ends for the commit stage when this is dropped.
pub struct TeamContext {
    edges: Arc<TeamEdges>,
    pub source: Arc<dyn EventSource>,
    /// The inbox of the commit stage. An error of a method that sends to it says that the stage has ended; the stage says why.
    pub inbox: Inbox,
    began: Duration,
    pub deferred: Deferred,
}

impl Deref for TeamContext {
    type Target = TeamEdges;

    fn deref(&self) -> &TeamEdges {
        &self.edges
    }
}

impl TeamContext {
    pub fn new(edges: Arc<TeamEdges>, source: Arc<dyn EventSource>, inbox: Inbox) -> Self {
        let began = edges.clock.monotonic();
        Self { edges, source, inbox, began, deferred: Deferred::default() }
    }

    /// Whether this round has worked long enough, and leaves the rest to the next.
    pub fn is_out_of_time(&self) -> bool {
        let spent = self.clock.monotonic().saturating_sub(self.began);
        self.time_limit.is_some_and(|time_limit| spent >= time_limit)
    }

    /// Sends what is worth no room of its own.
    ///
    /// # Errors
    /// When the commit stage has ended.
    pub async fn add(&self, add: impl FnOnce(&mut Batch)) -> Result<(), ArchiveError> {
        let mut batch = Batch::default();
        add(&mut batch);
        self.inbox.add(batch, self.budget.nothing()).await
    }

    /// Room for so many events, which one reading may bring.
    ///
    /// # Errors
    /// As [`TeamContext::add`].
    pub async fn reserve(&self, events: usize) -> Result<Permit, ArchiveError> {
        if let Some(permit) = self.budget.try_reserve(events) {
            return Ok(permit);
        }
        // Set both first: from then on this team holds nothing back.
        let _here = self.inbox.waits();
        let _anywhere = self.budget.waits();
        self.inbox.make_room().await?;
        Ok(self.budget.reserve(events).await)
    }

    /// Readings of one stream that may go on side by side now.
    pub fn readings_at_once(&self) -> usize {
        if self.budget.is_contended() { 1 } else { self.settings.concurrency }
    }

    /// Notes a reading that went well: committed with whatever is worth a commit, and by itself when the archive's last
    /// read point is old, so that a quiet team does not look like one that is not read.
    ///
    /// # Errors
    /// As [`TeamContext::add`].
    pub async fn note_point(&self, stream: Stream, change: StreamChange) -> Result<(), ArchiveError> {
        let is_due = change.read_points.last().is_some_and(|point| {
            self.with_state(|state| {
                let held = state.streams.get(&stream).and_then(|record| read_to(&record.read_points));
                held.is_none_or(|held| point.read_to.since(held) >= POINT_AGE_MAX)
            })
        });
        self.add(|batch| match is_due {
            true => batch.change_stream(stream, change),
            false => batch.note_stream(stream, change),
        })
        .await
    }
}
