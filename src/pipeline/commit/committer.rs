//! The commit stage: the only owner of what a round has read and not committed. It takes what readings bring, in the order in
//! which it comes, has whole windows encoded, and makes commits, one at a time; reading goes on beside them.
//!
//! A commit takes all that is held where a reading waits for room, where it has waited long, or where it is asked for; else as
//! much as is worth one. Windows that are not read whole are held back as long as they may be: a window that is committed in
//! parts is written twice. Where too much is held, the stage waits for the commit under way, and its inbox is full meanwhile.
//!
//! An error ends the stage, and closes its inbox: a commit that failed takes what it held with it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};

use crate::archive::{ArchiveError, ReadPoint, TeamWriter};
use crate::model::{Instant, Stream};
use crate::pipeline::commit::batch::Batch;
use crate::pipeline::commit::change::StreamChange;
use crate::pipeline::commit::counts::Flushed;
use crate::pipeline::commit::encoder::Encoder;
use crate::pipeline::commit::flush::{flush, prepare};
use crate::pipeline::commit::inbox::{Message, Messages};
use crate::pipeline::commit::seal::seal_passed;
use crate::pipeline::sessions::maker::SessionMaker;
use crate::pipeline::sessions::making::Made;
use crate::pipeline::sessions::update::Remembered;
use crate::pipeline::settings::{COMMIT_DELAY_SECONDS_MAX, COMMIT_EVENTS_MAX, COMMIT_EVENTS_MIN, HELD_EVENTS_MAX};
use crate::pipeline::team::budget::Permit;
use crate::pipeline::team::edges::TeamEdges;
use crate::pipeline::workers::Work;

/// The stage at work.
pub struct Committer {
    edges: Arc<TeamEdges>,
    /// What was read and is in no commit.
    batch: Batch,
    /// The room that the batch's events take.
    permit: Permit,
    encoder: Encoder,
    sessions: SessionMaker,
    /// Commits follow one another.
    under_way: Option<UnderWay>,
    /// When nothing was held last.
    emptied_at: Duration,
    committed: Flushed,
    read_points: Vec<(Stream, ReadPoint)>,
}

/// What the stage leaves.
pub struct Ended {
    pub committed: Flushed,
    /// Read points of the round's batches, also of those that changed nothing else and so were not written.
    pub read_points: Vec<(Stream, ReadPoint)>,
    /// Notes that no commit took.
    pub notes: BTreeMap<Stream, StreamChange>,
    /// Why the stage ended before its inbox was closed.
    pub error: Option<ArchiveError>,
}

struct UnderWay {
    /// Events that the commit has to encode itself.
    events: usize,
    /// The sessions' events come back, whatever becomes of the commit.
    work: Work<(Result<Done, ArchiveError>, Remembered)>,
}

struct Done {
    flushed: Flushed,
    took: Duration,
    read_points: Vec<(Stream, ReadPoint)>,
}

/// What happens next to the stage.
enum Next {
    /// The commit under way has ended.
    Committed,
    /// `None`: its inbox is closed.
    Told(Option<Message>),
}

/// One commit, from its batch to the archive's files.
struct Commit {
    edges: Arc<TeamEdges>,
    batch: Batch,
    /// Sessions that go with it.
    made: Option<Made>,
    /// The service's clock, and the machine's.
    seen_at: Instant,
    now: Instant,
}

impl Commit {
    fn run(self, remembered: &mut Remembered) -> Result<Done, ArchiveError> {
        let clock = self.edges.clock.clone();
        let (began, read_points) = (clock.monotonic(), self.batch.read_points());
        let flushed = self.write(remembered)?;
        Ok(Done { flushed, took: clock.monotonic().saturating_sub(began), read_points })
    }

    fn write(self, remembered: &mut Remembered) -> Result<Flushed, ArchiveError> {
        let Self { edges, batch, made, seen_at, now } = self;
        let mut writer = edges.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, settings): (&mut TeamWriter, _) = (&mut writer, &edges.settings);
        let Some(made) = made else { return flush(batch, writer, remembered, settings, seen_at, now) };
        let (draft, flushed) = prepare(batch, writer, settings, seen_at)?;
        let flushed = flushed.with(made.commit_with(draft, writer, remembered, now)?);
        seal_passed(writer, settings.partition, now)?;
        Ok(flushed)
    }
}

impl Committer {
    pub fn new(edges: Arc<TeamEdges>) -> Self {
        Self {
            batch: Batch::default(),
            permit: edges.budget.nothing(),
            encoder: Encoder::new(edges.workers, edges.salts.clone()),
            sessions: SessionMaker::new(edges.clone()),
            under_way: None,
            emptied_at: edges.clock.monotonic(),
            committed: Flushed::default(),
            read_points: Vec::new(),
            edges,
        }
    }

    /// Works until its inbox is closed, or an error ends it.
    pub async fn run(mut self, mut inbox: Messages) -> Ended {
        let worked = self.work(&mut inbox).await;
        drop(inbox);
        let notes = if worked.is_ok() { self.batch.notes } else { BTreeMap::new() };
        Ended { committed: self.committed, read_points: self.read_points, notes, error: worked.err() }
    }

    async fn work(&mut self, inbox: &mut Messages) -> Result<(), ArchiveError> {
        loop {
            let next = match &mut self.under_way {
                None => Next::Told(inbox.messages.recv().await),
                Some(commit) => match select(pin!(commit.work.wait()), pin!(inbox.messages.recv())).await {
                    Either::Left(_) => Next::Committed,
                    Either::Right((message, _)) => Next::Told(message),
                },
            };
            match next {
                Next::Committed => self.finish().await?,
                Next::Told(Some(message)) => self.take(message, inbox.want_room()).await?,
                Next::Told(None) => return self.finish().await,
            }
        }
    }

    /// Does what a message says, and answers it.
    async fn take(&mut self, message: Message, wants_room: bool) -> Result<(), ArchiveError> {
        match message {
            Message::Add(batch, permit) => self.add(*batch, permit, wants_room).await?,
            Message::MakeRoom => self.begin_all().await?,
            Message::Commit(done) => {
                self.commit().await?;
                let _ = done.send(());
            }
            Message::CatchUp(done) => {
                self.finish().await?;
                self.sessions.catch_up().await?;
                let _ = done.send(());
            }
            Message::Inspect(inspect) => {
                self.finish().await?;
                inspect(&self.batch);
            }
        }
        Ok(())
    }

    async fn add(&mut self, batch: Batch, permit: Permit, wants_room: bool) -> Result<(), ArchiveError> {
        self.batch.join(batch);
        self.permit.join(permit);
        self.permit.hold(self.batch.held_events(), false);
        self.encoder.begin(self.batch.take_whole());
        let waited = self.edges.clock.monotonic().saturating_sub(self.emptied_at);
        if wants_room || waited >= Duration::from_secs(COMMIT_DELAY_SECONDS_MAX) {
            return self.begin_all().await;
        }
        if self.batch.held_events() >= COMMIT_EVENTS_MAX {
            return self.begin_ready().await;
        }
        Ok(())
    }

    /// Commits all that is held.
    async fn commit(&mut self) -> Result<(), ArchiveError> {
        self.finish().await?;
        if self.committed.commits > 0 {
            self.batch.promote_notes();
        }
        self.begin_all().await?;
        self.finish().await
    }

    /// Begins a commit of all that is held.
    async fn begin_all(&mut self) -> Result<(), ArchiveError> {
        if self.batch.is_idle() {
            return Ok(());
        }
        self.finish().await?;
        self.keep_encoded(true).await;
        let all = std::mem::take(&mut self.batch);
        self.begin(all).await
    }

    /// Begins a commit of as much as is worth one. It waits for the commit under way only where no more may be held.
    async fn begin_ready(&mut self) -> Result<(), ArchiveError> {
        let held = self.batch.held_events();
        if self.under_way.as_ref().is_some_and(|commit| held + commit.events < HELD_EVENTS_MAX) {
            return Ok(());
        }
        self.finish().await?;
        match self.ready().await {
            Some(ready) => self.begin(ready).await,
            None => Ok(()),
        }
    }

    /// As much of the batch as is worth a commit; windows that are being encoded wait for the next one, unless no more may
    /// be held.
    async fn ready(&mut self) -> Option<Batch> {
        self.keep_encoded(false).await;
        let ready = self.take_ready(false);
        if ready.is_some() || self.batch.held_events() < HELD_EVENTS_MAX {
            return ready;
        }
        self.keep_encoded(true).await;
        Some(self.take_ready(true).unwrap_or_else(|| std::mem::take(&mut self.batch)))
    }

    fn take_ready(&mut self, is_full: bool) -> Option<Batch> {
        let busy = self.encoder.busy();
        let ready = self.edges.with_state(|state| self.batch.take_ready(state, &busy, is_full));
        if ready.held_events() < COMMIT_EVENTS_MIN {
            self.batch.join(ready);
            return None;
        }
        Some(ready)
    }

    async fn keep_encoded(&mut self, waits: bool) {
        self.batch.encoded.extend(self.encoder.take(waits).await);
    }

    /// Begins a commit of `batch`, which was taken out of what is held.
    async fn begin(&mut self, mut batch: Batch) -> Result<(), ArchiveError> {
        let edges = &self.edges;
        if self.batch.is_idle() {
            self.emptied_at = edges.clock.monotonic();
        }
        batch.quiet_points = edges.memory.points(Stream::Connections);
        let permit = self.permit.leave(self.batch.held_events());
        let events = batch.unencoded_events();
        let (made, mut remembered) = (self.sessions.made().await, self.sessions.lend_remembered());
        let (seen_at, now) = (edges.service().now(), edges.clock.now());
        let commit = Commit { edges: edges.clone(), batch, made, seen_at, now };
        let work = edges.workers.begin(move || {
            let done = commit.run(&mut remembered);
            // The events of a commit are gone when it has ended.
            drop(permit);
            (done, remembered)
        });
        let is_done = work.is_done();
        self.under_way = Some(UnderWay { events, work });
        if is_done { self.finish().await } else { Ok(()) }
    }

    /// Waits for the commit under way.
    async fn finish(&mut self) -> Result<(), ArchiveError> {
        let Some(commit) = self.under_way.take() else { return Ok(()) };
        let (done, remembered) = commit.work.end().await;
        self.sessions.take_back(remembered);
        let Done { flushed, took, read_points } = done?;
        self.edges.progress.committed(&self.edges.team, &flushed, took);
        self.committed.add(&flushed);
        self.read_points.extend(read_points);
        self.sessions.begin();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
