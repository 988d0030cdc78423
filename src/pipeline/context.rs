//! What one team's round works with: the edges, the settings, and the batch that waits for its commit.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::api::{Computers, EventSource};
use crate::archive::{ArchiveError, StoredEvent, StreamRecord, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::collect::PageLimit;
use crate::model::{Instant, Range, Stream, TeamId};

use super::batch::Batch;
use super::flush::{Flushed, flush};
use super::plan::Windows;
use super::progress::Progress;
use super::sessions::Remembered;
use super::settings::{COMMIT_DELAY_SECONDS_MAX, COMMIT_EVENTS_MAX, COMMIT_EVENTS_MIN, HELD_EVENTS_MAX, Settings};

/// Where heavy work (decoding, compressing, syncing) is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// On the runtime's threads for blocking work, beside the reading.
    Threads,
    /// In place: the simulation has one thread.
    Inline,
}

/// Answers whose dates are compared.
const DATES_HEARD: usize = 5;

/// The service's clock, as its `Date` headers tell it; ours where it sends none. It is the middle one of the last few
/// answers: one wild date decides nothing.
pub struct ServiceClock {
    clock: Arc<dyn Clock>,
    /// Each `Date` less our monotonic time when it came: what the service's clock showed at our zero.
    zeros: Mutex<VecDeque<Instant>>,
}

impl ServiceClock {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, zeros: Mutex::default() }
    }

    pub fn hear(&self, date: Option<Instant>) {
        let Some(date) = date else { return };
        let mut zeros = lock(&self.zeros);
        zeros.push_back(date.minus(self.clock.monotonic()));
        if zeros.len() > DATES_HEARD {
            zeros.pop_front();
        }
    }

    pub fn now(&self) -> Instant {
        let mut zeros: Vec<Instant> = lock(&self.zeros).iter().copied().collect();
        zeros.sort_unstable();
        let middle = zeros.get(zeros.len().saturating_sub(1) / 2);
        middle.map_or_else(|| self.clock.now(), |zero| zero.plus(self.clock.monotonic()))
    }
}

/// What was read and is not committed.
#[derive(Default)]
struct Waiting {
    batch: Batch,
    /// Events of the commit under way, and how it ends. There is one at a time: commits follow one another.
    under_way: Option<(usize, tokio::task::JoinHandle<Result<Flushed, ArchiveError>>)>,
    /// When nothing was held back last.
    emptied_at: Duration,
}

/// One team's round.
pub struct TeamContext {
    pub team: TeamId,
    pub source: Arc<dyn EventSource>,
    pub clock: Arc<dyn Clock>,
    pub service: ServiceClock,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
    limits: [PageLimit; 3],
    writer: Arc<Mutex<TeamWriter>>,
    remembered: Arc<Mutex<Remembered>>,
    waiting: futures::lock::Mutex<Waiting>,
    totals: Mutex<Flushed>,
    /// The computers as this round listed them last.
    computers: Mutex<Option<Computers>>,
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
        Self {
            team: writer.state().team_id.clone(),
            source,
            service: ServiceClock::new(clock.clone()),
            waiting: futures::lock::Mutex::new(Waiting { emptied_at: clock.monotonic(), ..Waiting::default() }),
            clock,
            settings,
            workers,
            progress,
            limits: [PageLimit::documented(), PageLimit::documented(), PageLimit::documented()],
            writer: Arc::new(Mutex::new(writer)),
            remembered: Arc::default(),
            totals: Mutex::new(Flushed::default()),
            computers: Mutex::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    pub fn limit(&self, stream: Stream) -> &PageLimit {
        &self.limits[stream as usize]
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
        self.work(move || writer.lock().unwrap_or_else(PoisonError::into_inner).events_in(stream, range)).await
    }

    /// Adds to the batch. When it has grown or waited long enough, a commit of it begins, and reading goes on beside it;
    /// the next commit waits for it. Windows that are not read whole are held back as long as they may be: a window that is
    /// committed in parts is written twice.
    ///
    /// # Errors
    /// When a commit failed: this one, or one that had begun before.
    pub async fn add(&self, add: impl FnOnce(&mut Batch)) -> Result<(), ArchiveError> {
        let mut waiting = self.waiting.lock().await;
        if waiting.under_way.as_ref().is_some_and(|(_, commit)| commit.is_finished()) {
            self.finish(&mut waiting).await?;
        }
        self.check_whole()?;
        add(&mut waiting.batch);
        let waited = self.clock.monotonic().saturating_sub(waiting.emptied_at);
        if waited >= Duration::from_secs(COMMIT_DELAY_SECONDS_MAX) && !waiting.batch.is_idle() {
            return self.begin_commit(&mut waiting, false).await;
        }
        if waiting.batch.held_events() >= COMMIT_EVENTS_MAX {
            return self.begin_commit(&mut waiting, true).await;
        }
        Ok(())
    }

    /// Keeps a list of the computers for the inventory, which does not ask for it again.
    pub fn keep_computers(&self, computers: Computers) {
        *lock(&self.computers) = Some(computers);
    }

    /// The computers as this round listed them last, once.
    pub fn take_computers(&self) -> Option<Computers> {
        lock(&self.computers).take()
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

    /// Begins a commit of the batch; with `holds_back`, of as much of it as is worth one.
    async fn begin_commit(&self, waiting: &mut Waiting, holds_back: bool) -> Result<(), ArchiveError> {
        if waiting.batch.is_idle() {
            return Ok(());
        }
        let held = waiting.batch.held_events();
        let under_way = waiting.under_way.as_ref().map_or(0, |(events, _)| *events);
        if holds_back && under_way > 0 && held + under_way < HELD_EVENTS_MAX {
            return Ok(());
        }
        self.finish(waiting).await?;
        self.check_whole()?;
        let ready = holds_back.then(|| self.with_state(|state| waiting.batch.take_ready(state)));
        let taken = match ready {
            Some(ready) if ready.held_events() >= COMMIT_EVENTS_MIN => ready,
            Some(too_few) if held < HELD_EVENTS_MAX => {
                waiting.batch.join(too_few);
                return Ok(());
            }
            ready => {
                waiting.batch.join(ready.unwrap_or_default());
                std::mem::take(&mut waiting.batch)
            }
        };
        if waiting.batch.is_idle() {
            waiting.emptied_at = self.clock.monotonic();
        }
        let events = taken.held_events();
        let (writer, settings, remembered) = (self.writer.clone(), self.settings.clone(), self.remembered.clone());
        let (seen_at, now) = (self.service.now(), self.clock.now());
        let work = move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            flush(taken, &mut writer, &mut lock(&remembered), &settings, seen_at, now)
        };
        match self.workers {
            Workers::Inline => self.end_commit(work()),
            Workers::Threads => {
                waiting.under_way = Some((events, tokio::task::spawn_blocking(work)));
                Ok(())
            }
        }
    }

    /// Waits for the commit that is under way.
    async fn finish(&self, waiting: &mut Waiting) -> Result<(), ArchiveError> {
        let Some((_, commit)) = &mut waiting.under_way else { return Ok(()) };
        let done = commit.await;
        waiting.under_way = None;
        self.end_commit(joined(done))
    }

    fn end_commit(&self, done: Result<Flushed, ArchiveError>) -> Result<(), ArchiveError> {
        let flushed = done.inspect_err(|_| self.is_broken.store(true, Ordering::Relaxed))?;
        self.progress.committed(&self.team, &flushed);
        self.count(flushed);
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
        let mut totals = lock(&self.totals);
        totals.rows += flushed.rows;
        totals.rejects += flushed.rejects;
        totals.late += flushed.late;
        totals.gaps += flushed.gaps;
        totals.commits += flushed.commits;
        totals.removals.extend(flushed.removals);
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
        self.work(move || act(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        match self.workers {
            Workers::Inline => work(),
            Workers::Threads => joined(tokio::task::spawn_blocking(work).await),
        }
    }
}

/// What blocking work came to.
fn joined<T>(done: Result<T, tokio::task::JoinError>) -> T {
    match done {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => unreachable!("BUG: blocking work is never cancelled"),
    }
}

/// One stream's record and windows.
pub fn windows_of(state: &TeamState, stream: Stream) -> (StreamRecord, Windows) {
    let windows = state.windows.range((stream, Instant::from_nanos(i64::MIN))..);
    let windows = windows.take_while(|((of, _), _)| *of == stream);
    let record = state.streams.get(&stream).cloned().unwrap_or_default();
    (record, windows.map(|((_, start), window)| (*start, window.clone())).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn one_wild_date_does_not_move_the_service_s_clock() {
        let at = |text: &str| text.parse::<Instant>().unwrap();
        let (true_date, ahead, behind) =
            (at("2026-11-20T08:00:00Z"), at("2099-01-01T00:00:00Z"), at("2001-01-01T00:00:00Z"));
        for dates in [
            vec![true_date],
            vec![true_date, ahead],
            vec![ahead, true_date, true_date],
            vec![behind, true_date, true_date],
            vec![true_date, ahead, true_date, behind, true_date],
            vec![ahead, ahead, true_date, true_date, true_date, true_date],
        ] {
            let clock = ServiceClock::new(Arc::new(SystemClock::new()));
            dates.iter().for_each(|date| clock.hear(Some(*date)));
            clock.hear(None);
            let (now, span) = (clock.now(), Duration::from_secs(60));
            assert!(now >= true_date.minus(span) && now <= true_date.plus(span), "{dates:?}: {now}");
        }
    }
}
