//! The commit stage owns the events that a round has read and not committed. It takes batches from its inbox one after
//! another. It commits when it holds enough events, when a reading waits for room, when an event has waited long, or on
//! request. During a commit the inbox fills up and the readings wait: this is the back-pressure.
//!
//! An error ends the stage and closes its inbox; the next round reads the events of the failed commit again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use crate::archive::{ArchiveError, ReadPoint};
use crate::model::Stream;
use crate::pipeline::commit::flush::flush;
use crate::pipeline::commit::inbox::Message;
use crate::pipeline::commit::{Batch, CommitCounts};
use crate::pipeline::settings::{COMMIT_DELAY_SECONDS_MAX, COMMIT_EVENTS_MAX, COMMIT_WINDOWS_MAX};
use crate::pipeline::team::TeamEdges;

/// The running stage.
pub struct Committer {
    edges: Arc<TeamEdges>,
    batch: Batch,
    /// The last time at which the batch was empty.
    emptied_at: Duration,
    pub committed: CommitCounts,
    /// The round's read points, also those that no commit wrote because nothing else had changed.
    pub read_points: Vec<(Stream, ReadPoint)>,
    /// The error that ended the stage before its inbox was closed.
    pub error: Option<ArchiveError>,
}

impl Committer {
    pub fn new(edges: Arc<TeamEdges>) -> Self {
        Self {
            batch: Batch::default(),
            emptied_at: edges.clock.monotonic(),
            committed: CommitCounts::default(),
            read_points: Vec::new(),
            error: None,
            edges,
        }
    }

    /// Runs until the inbox is closed or an error occurs.
    pub async fn run(mut self, mut inbox: Receiver<Message>) -> Self {
        self.error = self.work(&mut inbox).await.err();
        if self.error.is_none() {
            self.read_points.append(&mut self.batch.read_points);
        }
        self
    }

    async fn work(&mut self, inbox: &mut Receiver<Message>) -> Result<(), ArchiveError> {
        while let Some(message) = inbox.recv().await {
            match message {
                Message::Add(batch) => self.add(*batch).await?,
                Message::Commit(done) => {
                    // A round that has written other things also writes its read points.
                    self.batch.is_due |= self.committed.commits > 0 && self.batch.has_streams();
                    self.commit_all().await?;
                    let _ = done.send(());
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, batch: Batch) -> Result<(), ArchiveError> {
        self.batch.join(batch);
        let waited = self.edges.clock.monotonic().saturating_sub(self.emptied_at);
        let is_late = waited >= Duration::from_secs(COMMIT_DELAY_SECONDS_MAX);
        if self.edges.budget.is_contended() || is_late || self.batch.changes.len() >= COMMIT_WINDOWS_MAX {
            return self.commit_all().await;
        }
        if self.batch.size() < COMMIT_EVENTS_MAX {
            return Ok(());
        }
        match self.edges.with_state(|state| self.batch.take_ready(state)).await {
            Some(ready) => self.commit(ready).await,
            None => Ok(()),
        }
    }

    async fn commit_all(&mut self) -> Result<(), ArchiveError> {
        if self.batch.is_idle() {
            return Ok(());
        }
        let all = std::mem::take(&mut self.batch);
        self.commit(all).await
    }

    /// Commits `batch`, which was taken out of the held events.
    async fn commit(&mut self, mut batch: Batch) -> Result<(), ArchiveError> {
        let edges = self.edges.clone();
        if self.batch.is_idle() {
            self.emptied_at = edges.clock.monotonic();
        }
        // The room becomes free at the end of the commit.
        let _permit = batch.permit.take();
        let (began, read_points) = (edges.clock.monotonic(), batch.read_points.clone());
        let (seen_at, now) = (edges.service().now(), edges.clock.now());
        let shared = edges.clone();
        let flushed = edges.with_writer(move |writer| flush(&shared, writer, batch, (seen_at, now))).await?;
        let took = edges.clock.monotonic().saturating_sub(began);
        edges.progress.committed(&edges.team, &flushed, took);
        self.committed.add(&flushed);
        self.read_points.extend(read_points);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
