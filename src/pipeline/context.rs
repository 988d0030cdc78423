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
use super::settings::{COMMIT_DELAY_SECONDS_MAX, COMMIT_EVENTS_MAX, Settings};

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
    batch: futures::lock::Mutex<Batch>,
    totals: Mutex<Flushed>,
    flushed_at: Mutex<Duration>,
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
            flushed_at: Mutex::new(clock.monotonic()),
            clock,
            settings,
            workers,
            progress,
            limits: [PageLimit::documented(), PageLimit::documented(), PageLimit::documented()],
            writer: Arc::new(Mutex::new(writer)),
            remembered: Arc::default(),
            batch: futures::lock::Mutex::new(Batch::default()),
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

    /// Adds to the batch, and commits it when it has grown or waited long enough.
    ///
    /// # Errors
    /// When the commit fails.
    pub async fn add(&self, add: impl FnOnce(&mut Batch)) -> Result<(), ArchiveError> {
        let mut batch = self.batch.lock().await;
        self.check_whole()?;
        add(&mut batch);
        let waited = self.clock.monotonic().saturating_sub(*lock(&self.flushed_at));
        let is_due = waited >= Duration::from_secs(COMMIT_DELAY_SECONDS_MAX) && !batch.is_idle();
        if is_due || batch.held_events() >= COMMIT_EVENTS_MAX {
            self.flush(&mut batch).await?;
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
    pub async fn pending<T>(&self, look: impl FnOnce(&Batch) -> T) -> T {
        look(&*self.batch.lock().await)
    }

    /// Commits what is in the batch.
    ///
    /// # Errors
    /// When the commit fails.
    pub async fn commit(&self) -> Result<(), ArchiveError> {
        let mut batch = self.batch.lock().await;
        if lock(&self.totals).commits > 0 {
            batch.promote_notes();
        }
        self.flush(&mut batch).await
    }

    async fn flush(&self, batch: &mut Batch) -> Result<(), ArchiveError> {
        if batch.is_idle() {
            return Ok(());
        }
        self.check_whole()?;
        let taken = std::mem::take(batch);
        let (writer, settings, remembered) = (self.writer.clone(), self.settings.clone(), self.remembered.clone());
        let (seen_at, now) = (self.service.now(), self.clock.now());
        let flushed = self
            .work(move || {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                flush(taken, &mut writer, &mut lock(&remembered), &settings, seen_at, now)
            })
            .await
            .inspect_err(|_| self.is_broken.store(true, Ordering::Relaxed))?;
        *lock(&self.flushed_at) = self.clock.monotonic();
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
            Workers::Threads => match tokio::task::spawn_blocking(work).await {
                Ok(done) => done,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => unreachable!("BUG: blocking work is never cancelled"),
            },
        }
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
