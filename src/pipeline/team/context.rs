//! What one team's round works with: the edges, the settings, and the batch that waits for its commit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::api::{Computers, EventSource};
use crate::archive::{ArchiveError, ReadPoint, StoredEvent, StreamRecord, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::collect::PageLimit;
use crate::model::{Range, Stream, TeamId};

use crate::pipeline::commit::batch::Batch;
use crate::pipeline::commit::change::StreamChange;
use crate::pipeline::commit::counts::Flushed;
use crate::pipeline::commit::flush::{flush, prepare};
use crate::pipeline::commit::seal::seal_passed;
use crate::pipeline::commit::waiting::{Committed, UnderWay, Waiting};
use crate::pipeline::plan::coverage::read_to;
use crate::pipeline::plan::stream_plan::{Windows, windows_of};
use crate::pipeline::progress::Progress;
use crate::pipeline::sessions::update::Remembered;
use crate::pipeline::settings::{self, Settings};
use crate::pipeline::team::budget::{Budget, Share, Waits};
use crate::pipeline::team::left_open::LeftOpen;
use crate::pipeline::team::memory::TeamMemory;
use crate::pipeline::team::service_clock::ServiceClock;
use crate::pipeline::workers::{Workers, joined, spawn};

/// A read point that is older than this is followed by one that is worth a commit of its own.
const POINT_AGE_MAX: Duration = Duration::from_secs(3600);

/// One team's round.
pub struct TeamContext {
    pub team: TeamId,
    pub source: Arc<dyn EventSource>,
    pub clock: Arc<dyn Clock>,
    pub memory: Arc<TeamMemory>,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
    /// Of what all teams of the process hold.
    pub budget: Arc<Budget>,
    /// Readings of this team that wait for room.
    pub wants_room: AtomicUsize,
    /// How long a run settles and re-scans before it leaves the rest to the next; `None`: to the end.
    pub patience: Option<Duration>,
    began: Duration,
    /// Something was left for the next run.
    is_unfinished: AtomicBool,
    pub writer: Arc<Mutex<TeamWriter>>,
    remembered: Arc<Mutex<Remembered>>,
    pub waiting: futures::lock::Mutex<Waiting>,
    totals: Mutex<Flushed>,
    /// The computers as this round listed them last.
    computers: Mutex<Option<Computers>>,
    pub left: LeftOpen,
    /// Read points of this round's batches, also of those that changed nothing else and so were not written.
    pub read_points: Arc<Mutex<Vec<(Stream, ReadPoint)>>>,
    /// A commit of this round failed, and what it held is lost to the round.
    is_broken: AtomicBool,
}

impl TeamContext {
    pub fn new(
        writer: TeamWriter,
        source: Arc<dyn EventSource>,
        clock: Arc<dyn Clock>,
        settings: Arc<Settings>,
        workers: Workers,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let memory = Arc::new(TeamMemory::new(clock.clone()));
        let writer = Arc::new(Mutex::new(writer));
        Self::sharing(writer, memory, source, clock, settings, workers, progress)
    }

    /// A run with a writer and a memory that outlive it.
    pub fn sharing(
        writer: Arc<Mutex<TeamWriter>>,
        memory: Arc<TeamMemory>,
        source: Arc<dyn EventSource>,
        clock: Arc<dyn Clock>,
        settings: Arc<Settings>,
        workers: Workers,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let team = lock(&writer).state().team_id.clone();
        let budget = Budget::of(&settings);
        Self {
            team,
            source,
            memory,
            waiting: futures::lock::Mutex::new(Waiting::new(budget.nothing(), clock.monotonic())),
            budget,
            wants_room: AtomicUsize::new(0),
            patience: None,
            began: clock.monotonic(),
            is_unfinished: AtomicBool::new(false),
            clock,
            settings,
            workers,
            progress,
            writer,
            remembered: Arc::default(),
            totals: Mutex::new(Flushed::default()),
            computers: Mutex::default(),
            left: LeftOpen::default(),
            read_points: Arc::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Shares `budget` with other teams.
    #[must_use]
    pub fn within(mut self, budget: Arc<Budget>) -> Self {
        self.waiting.get_mut().share = budget.nothing();
        self.budget = budget;
        self
    }

    pub fn limit(&self, stream: Stream) -> &PageLimit {
        &self.memory.limits[stream as usize]
    }

    /// The service's clock.
    pub fn service(&self) -> &ServiceClock {
        &self.memory.service
    }

    /// The events of sessions that more are waited for.
    pub fn remembered(&self) -> Arc<Mutex<Remembered>> {
        self.remembered.clone()
    }

    /// Whether this run has worked long enough, and leaves the rest to the next.
    pub fn is_spent(&self) -> bool {
        let spent = self.clock.monotonic().saturating_sub(self.began);
        self.patience.is_some_and(|patience| spent >= patience)
    }

    pub fn leave_rest(&self) {
        self.is_unfinished.store(true, Ordering::Relaxed);
    }

    pub fn is_unfinished(&self) -> bool {
        self.is_unfinished.load(Ordering::Relaxed)
    }

    /// Looks at the archive's state as of the last commit.
    pub fn with_state<T>(&self, look: impl FnOnce(&TeamState) -> T) -> T {
        look(self.writer.lock().unwrap_or_else(PoisonError::into_inner).state())
    }

    pub fn stream_state(&self, stream: Stream) -> (StreamRecord, Windows) {
        self.with_state(|state| windows_of(state, stream))
    }

    /// The archived events of a range.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub async fn stored(&self, stream: Stream, range: Range) -> Result<Vec<StoredEvent>, ArchiveError> {
        let writer = self.writer.clone();
        self.workers.run(move || writer.lock().unwrap_or_else(PoisonError::into_inner).events_in(stream, range)).await
    }

    /// Adds to the batch. When it has grown or waited long enough, a commit of it begins, and reading goes on beside it;
    /// the next commit waits for it. Windows that are not read whole are held back as long as they may be: a window that is
    /// committed in parts is written twice.
    ///
    /// # Errors
    /// When a commit failed: this one, or one that had begun before.
    pub async fn add(&self, add: impl FnOnce(&mut Batch)) -> Result<(), ArchiveError> {
        self.add_held(self.budget.nothing(), add).await
    }

    /// Adds events that `share` has room for.
    ///
    /// # Errors
    /// As [`TeamContext::add`].
    pub async fn add_held(&self, share: Share, add: impl FnOnce(&mut Batch)) -> Result<(), ArchiveError> {
        let mut waiting = self.waiting.lock().await;
        if waiting.under_way.as_ref().is_some_and(|commit| commit.end.is_finished()) {
            self.finish(&mut waiting).await?;
        }
        self.check_whole()?;
        waiting.add(share, add);
        waiting.encode(self.workers);
        let waited = self.clock.monotonic().saturating_sub(waiting.emptied_at);
        let is_late = waited >= Duration::from_secs(settings::COMMIT_DELAY_SECONDS_MAX);
        if (is_late || self.wants_room.load(Ordering::Relaxed) > 0) && !waiting.batch.is_idle() {
            return self.begin_commit(&mut waiting, false).await;
        }
        if waiting.batch.held_events() >= settings::COMMIT_EVENTS_MAX {
            return self.begin_commit(&mut waiting, true).await;
        }
        Ok(())
    }

    /// Room for so many events, which one reading may bring.
    ///
    /// # Errors
    /// When there is none at first, and the commit that makes some fails.
    pub async fn reserve(&self, events: usize) -> Result<Share, ArchiveError> {
        if let Some(share) = self.budget.try_reserve(events) {
            return Ok(share);
        }
        // Set both first: from then on this team holds nothing back.
        let _here = Waits::among(&self.wants_room);
        let _anywhere = self.budget.waits();
        self.make_room().await?;
        Ok(self.budget.reserve(events).await)
    }

    /// Readings of one stream that may go on side by side now.
    pub fn readings_at_once(&self) -> usize {
        if self.budget.is_contended() { 1 } else { self.settings.concurrency }
    }

    /// Keeps a list of the computers for the inventory, which does not ask for it again.
    pub fn keep_computers(&self, computers: Computers) {
        *lock(&self.computers) = Some(computers);
    }

    /// The computers as this round listed them last, once.
    pub fn take_computers(&self) -> Option<Computers> {
        lock(&self.computers).take()
    }

    /// Notes a reading that went well: committed with whatever is worth a commit, and by itself when the archive's last
    /// read point is old, so that a quiet team does not look like one that is not read.
    ///
    /// # Errors
    /// When the batch is committed, and that fails.
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

    /// Looks at what waits for its commit.
    ///
    /// # Errors
    /// When the commit that was under way failed.
    pub async fn pending<T>(&self, look: impl FnOnce(&Batch) -> T) -> Result<T, ArchiveError> {
        let mut waiting = self.waiting.lock().await;
        self.finish(&mut waiting).await?;
        Ok(look(&waiting.batch))
    }

    /// Waits until no commit is under way: from then on the state and the totals hold what it brought.
    ///
    /// # Errors
    /// When it failed.
    pub async fn settle(&self) -> Result<(), ArchiveError> {
        self.finish(&mut *self.waiting.lock().await).await
    }

    /// Commits what is in the batch.
    ///
    /// # Errors
    /// When a commit fails: this one, or the one that was under way.
    pub async fn commit(&self) -> Result<(), ArchiveError> {
        let mut waiting = self.waiting.lock().await;
        self.finish(&mut waiting).await?;
        if lock(&self.totals).commits > 0 {
            waiting.batch.promote_notes();
        }
        self.begin_commit(&mut waiting, false).await?;
        self.finish(&mut waiting).await
    }

    /// Begins a commit of all that is held.
    ///
    /// # Errors
    /// When a commit fails that was under way.
    pub async fn make_room(&self) -> Result<(), ArchiveError> {
        self.begin_commit(&mut *self.waiting.lock().await, false).await
    }

    /// Begins a commit of the batch; with `holds_back`, of as much of it as is worth one.
    async fn begin_commit(&self, waiting: &mut Waiting, holds_back: bool) -> Result<(), ArchiveError> {
        if waiting.batch.is_idle() {
            return Ok(());
        }
        let held = waiting.batch.held_events();
        let with_those_under_way = |under_way: &UnderWay| held + under_way.events;
        if holds_back
            && waiting.under_way.as_ref().map(with_those_under_way).is_some_and(|all| all < settings::HELD_EVENTS_MAX)
        {
            return Ok(());
        }
        self.finish(waiting).await?;
        self.check_whole()?;
        let mut taken = match holds_back {
            true => match self.ready(waiting).await {
                Some(ready) => ready,
                None => return Ok(()),
            },
            false => {
                waiting.keep_encoded(true).await;
                std::mem::take(&mut waiting.batch)
            }
        };
        if waiting.batch.is_idle() {
            waiting.emptied_at = self.clock.monotonic();
        }
        taken.quiet_points = self.memory.points(Stream::Connections);
        let share = waiting.share.leave(waiting.batch.held_events());
        let events = taken.unencoded_events();
        let made = waiting.made().await;
        let (writer, settings, remembered) = (self.writer.clone(), self.settings.clone(), self.remembered.clone());
        let (seen_at, now, clock) = (self.service().now(), self.clock.now(), self.clock.clone());
        let (read_points, points) = (self.read_points.clone(), taken.read_points());
        let work = move || {
            let _share = share;
            let began = clock.monotonic();
            let (mut writer, mut remembered) = (lock(&writer), lock(&remembered));
            let flushed = match made {
                None => flush(taken, &mut writer, &mut remembered, &settings, seen_at, now)?,
                Some(made) => {
                    let (draft, flushed) = prepare(taken, &writer, &settings, seen_at)?;
                    let flushed = flushed.with(made.commit_with(draft, &mut writer, &mut remembered, now)?);
                    seal_passed(&mut writer, settings.partition, now)?;
                    flushed
                }
            };
            lock(&read_points).extend(points);
            Ok((flushed, clock.monotonic().saturating_sub(began)))
        };
        match self.workers {
            Workers::Inline => self.end_commit(waiting, work()),
            Workers::Threads => {
                waiting.under_way = Some(UnderWay { events, end: spawn(work) });
                Ok(())
            }
        }
    }

    /// Waits for the commit that is under way.
    async fn finish(&self, waiting: &mut Waiting) -> Result<(), ArchiveError> {
        let Some(commit) = &mut waiting.under_way else { return Ok(()) };
        let done = (&mut commit.end).await;
        waiting.under_way = None;
        self.end_commit(waiting, joined(done).await)
    }

    fn end_commit(&self, waiting: &mut Waiting, done: Committed) -> Result<(), ArchiveError> {
        let (flushed, took) = done.inspect_err(|_| self.is_broken.store(true, Ordering::Relaxed))?;
        self.progress.committed(&self.team, &flushed, took);
        self.count(flushed);
        self.begin_making(waiting);
        Ok(())
    }

    /// After a commit that failed, checkpoints and read points of the streams side by side would speak of events that
    /// went with it: the round is over.
    fn check_whole(&self) -> Result<(), ArchiveError> {
        match self.is_broken.load(Ordering::Relaxed) {
            true => Err(ArchiveError::Poisoned { team: self.team.clone() }),
            false => Ok(()),
        }
    }

    fn count(&self, flushed: Flushed) {
        lock(&self.totals).add(&flushed);
    }

    /// What this round has committed so far.
    pub fn totals(&self) -> Flushed {
        lock(&self.totals).clone()
    }

    /// Does something with the writer beside the reading.
    ///
    /// # Errors
    /// As `act`.
    pub async fn with_writer<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut TeamWriter) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let writer = self.writer.clone();
        self.workers.run(move || act(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
