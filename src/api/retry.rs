//! The retry policy. It wraps any event source, so that the simulation runs the real policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use futures::future::{Either, select};

use crate::clock::Clock;
use crate::model::TeamId;
use crate::planted::{self, Bug};

use super::contract::{
    Answer, ApiError, BillingSnapshot, Computers, EventSource, Page, PageComparison, PageQuery, Served, TeamView,
    UnfilteredJson,
};
use super::pause::Pause;
use super::transport::RETRY_AFTER_SECONDS_MAX;

/// The maximum number of attempts of one request.
pub const RETRY_ATTEMPTS_MAX: u32 = 10;
/// The first wait, before jitter.
pub const RETRY_DELAY_MS_MIN: u64 = 500;
/// The longest wait that Annals chooses. Annals waits longer only if the service demands it.
pub const RETRY_DELAY_MS_MAX: u64 = 20_000;
/// No attempt starts after this time. Waits that the service demands do not count.
pub const RETRY_TOTAL_SECONDS_MAX: u64 = 75;
/// A command for a waiting person tries an address that has never answered for this time.
pub const FIRST_CONTACT_SECONDS_MAX: u64 = 10;
/// After this time, a message tells the person that the first answer is still missing.
const FIRST_ANSWER_SECONDS: u64 = 2;
/// After this many consecutive failures of one request, a message tells the person. If the service has never answered, the
/// first failure does.
const FAILURES_BEFORE_NOTICE: u32 = 3;

/// Decides when to retry, and when to give up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts of one request, with the first.
    pub attempts_max: u32,
    pub delay_min: Duration,
    pub delay_max: Duration,
    /// No attempt starts later than this after the first one. Waits that the service demands do not count.
    pub total_max: Duration,
    /// The maximum sum of the waits that the service demands by `Retry-After` in one request.
    pub demanded_max: Duration,
    /// Like `total_max`, for an unreachable address that has never answered; `None`: `total_max` applies.
    pub first_contact_max: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: RETRY_ATTEMPTS_MAX,
            delay_min: Duration::from_millis(RETRY_DELAY_MS_MIN),
            delay_max: Duration::from_millis(RETRY_DELAY_MS_MAX),
            total_max: Duration::from_secs(RETRY_TOTAL_SECONDS_MAX),
            demanded_max: Duration::from_secs(RETRY_AFTER_SECONDS_MAX),
            first_contact_max: None,
        }
    }
}

impl RetryPolicy {
    /// Retries for about this time, without the waits that the service demands. The waits between attempts do not change.
    pub fn within(total: Duration) -> Self {
        let policy = Self::default();
        let longest = total.as_millis() / u128::from(RETRY_DELAY_MS_MAX / 2);
        let attempts = u32::try_from(longest).unwrap_or(u32::MAX);
        Self { attempts_max: policy.attempts_max.max(attempts), total_max: total, ..policy }
    }

    /// For a command with a waiting person: an unreachable address can be a typing error.
    #[must_use]
    pub fn interactive(self) -> Self {
        Self { first_contact_max: Some(Duration::from_secs(FIRST_CONTACT_SECONDS_MAX)), ..self }
    }

    /// The time limit for reaching a service that has never answered, if there is one.
    fn first_contact(&self, error: &ApiError, is_reached: bool) -> Option<Duration> {
        let first = self.first_contact_max.filter(|_| !is_reached && matches!(error, ApiError::Unreachable { .. }));
        first.map(|first| first.min(self.total_max))
    }
}

/// News for a person who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The first answer is late.
    NoAnswerYet,
    /// A request failed. Annals repeats it after `wait`, and for at most `within`, without the waits that the service demands.
    TryingAgain { error: &'a ApiError, wait: Duration, within: Duration },
}

/// Receives one notice for each period of trouble.
pub type Listener = Arc<dyn Fn(Notice<'_>) + Send + Sync>;

/// Counts the requests and their results. Status and progress read it while it grows.
#[derive(Debug, Default)]
pub struct RequestCounts {
    requests: AtomicU64,
    retries: AtomicU64,
    answered: AtomicU64,
    refused: AtomicU64,
    not_found: AtomicU64,
    rejected: AtomicU64,
    throttled: AtomicU64,
    unavailable: AtomicU64,
    unexpected: AtomicU64,
}

/// [`RequestCounts`] at one moment. The results add up to `requests` when no request is running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCountsSnapshot {
    pub requests: u64,
    /// The requests that repeated a failed one.
    pub retries: u64,
    pub answered: u64,
    pub refused: u64,
    pub not_found: u64,
    pub rejected: u64,
    pub throttled: u64,
    pub unavailable: u64,
    pub unexpected: u64,
}

impl RequestCounts {
    pub fn snapshot(&self) -> RequestCountsSnapshot {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RequestCountsSnapshot {
            requests: read(&self.requests),
            retries: read(&self.retries),
            answered: read(&self.answered),
            refused: read(&self.refused),
            not_found: read(&self.not_found),
            rejected: read(&self.rejected),
            throttled: read(&self.throttled),
            unavailable: read(&self.unavailable),
            unexpected: read(&self.unexpected),
        }
    }

    fn started(&self, attempt: u32) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if attempt > 1 {
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ended<T>(&self, answer: &Result<T, ApiError>) {
        let count = match answer {
            Ok(_) => &self.answered,
            Err(ApiError::Refused { .. }) => &self.refused,
            Err(ApiError::NotFound { .. }) => &self.not_found,
            Err(ApiError::Rejected { .. } | ApiError::UnusableId { .. }) => &self.rejected,
            Err(ApiError::Throttled { .. }) => &self.throttled,
            Err(ApiError::Unavailable { .. } | ApiError::Unreachable { .. }) => &self.unavailable,
            Err(ApiError::Unexpected { .. } | ApiError::TooLong { .. }) => &self.unexpected,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// An event source that retries requests that can succeed later, and obeys the pauses that the service demands.
pub struct Retrying {
    source: Arc<dyn EventSource>,
    clock: Arc<dyn Clock>,
    policy: RetryPolicy,
    counts: Arc<RequestCounts>,
    pause: Arc<Pause>,
    /// The address has answered.
    is_reached: AtomicBool,
    /// A request has succeeded.
    has_answered: AtomicBool,
    listener: Option<Listener>,
    /// The listener knows the current trouble.
    is_notified: AtomicBool,
}

impl Retrying {
    pub fn new(source: Arc<dyn EventSource>, clock: Arc<dyn Clock>, policy: RetryPolicy) -> Self {
        let pause = Arc::new(Pause::new(clock.clone()));
        Self::sharing(source, clock, policy, Arc::default(), pause)
    }

    /// Uses counters and a pause that outlive this source.
    pub fn sharing(
        source: Arc<dyn EventSource>,
        clock: Arc<dyn Clock>,
        policy: RetryPolicy,
        counts: Arc<RequestCounts>,
        pause: Arc<Pause>,
    ) -> Self {
        let [is_reached, has_answered, is_notified] = [const { AtomicBool::new(false) }; 3];
        Self { source, clock, policy, counts, pause, is_reached, has_answered, listener: None, is_notified }
    }

    /// Sends notices about waiting to `listener`.
    #[must_use]
    pub fn with_listener(self, listener: Listener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// The counters of this source's requests.
    pub fn counts(&self) -> Arc<RequestCounts> {
        Arc::clone(&self.counts)
    }

    async fn run<'a, T>(&'a self, ask: impl Fn() -> Answer<'a, T> + Send) -> Result<Served<T>, ApiError> {
        let mut schedule = Schedule::new(&self.policy, self.clock.monotonic());
        loop {
            schedule.waited_for_others(self.pause.over().await);
            self.counts.started(schedule.attempts + 1);
            let answer = self.first_answer(ask()).await;
            self.counts.ended(&answer);
            if !matches!(answer, Err(ApiError::Unreachable { .. })) {
                self.is_reached.store(true, Ordering::Relaxed);
            }
            if let Err(error @ ApiError::Throttled { .. }) = &answer {
                self.pause.start(retry_after(error).unwrap_or_default());
            }
            let error = match answer {
                Err(error) if error.is_transient() => error,
                answer => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    self.is_notified.store(false, Ordering::Relaxed);
                    return answer;
                }
            };
            let is_reached = self.is_reached.load(Ordering::Relaxed);
            let wait = schedule.next(&error, is_reached, self.clock.monotonic(), self.clock.random());
            let Some(wait) = wait else { return Err(error) };
            if !self.has_answered.load(Ordering::Relaxed) || schedule.attempts >= FAILURES_BEFORE_NOTICE {
                let within = self.policy.first_contact(&error, is_reached).unwrap_or(self.policy.total_max);
                self.notify(Notice::TryingAgain { error: &error, wait, within });
            }
            tracing::debug!(%error, attempt = schedule.attempts, ?wait, "trying again");
            self.clock.sleep(wait).await;
        }
    }

    /// Waits for an answer. If it is the first one and late, tells the listener.
    async fn first_answer<T>(&self, answer: Answer<'_, T>) -> Result<Served<T>, ApiError> {
        if self.listener.is_none() || self.has_answered.load(Ordering::Relaxed) {
            return answer.await;
        }
        let long = self.clock.sleep(Duration::from_secs(FIRST_ANSWER_SECONDS));
        match select(answer, long).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), answer)) => {
                self.notify(Notice::NoAnswerYet);
                answer.await
            }
        }
    }

    fn notify(&self, notice: Notice<'_>) {
        if let Some(listener) = &self.listener
            && !self.is_notified.swap(true, Ordering::Relaxed)
        {
            listener(notice);
        }
    }
}

/// The attempts of one request so far. Pure: time and chance are arguments.
struct Schedule<'a> {
    policy: &'a RetryPolicy,
    started: Duration,
    attempts: u32,
    /// The sum of the waits that the service demanded from this request, beyond our own delays.
    demanded: Duration,
    /// The time that this request waited because of pauses that the service demanded from other requests.
    waited_for_others: Duration,
    delays: backon::ExponentialBackoff,
}

impl<'a> Schedule<'a> {
    fn new(policy: &'a RetryPolicy, started: Duration) -> Self {
        let delays = ExponentialBuilder::new()
            .with_min_delay(policy.delay_min)
            .with_max_delay(policy.delay_max)
            .with_factor(2.0)
            .without_max_times()
            .build();
        Self { policy, started, attempts: 0, demanded: Duration::ZERO, waited_for_others: Duration::ZERO, delays }
    }

    fn waited_for_others(&mut self, wait: Duration) {
        self.waited_for_others += wait;
    }

    /// The wait before the next attempt; `None` to give up. `is_reached`: the service has answered before.
    fn next(&mut self, error: &ApiError, is_reached: bool, now: Duration, random: u64) -> Option<Duration> {
        self.attempts += 1;
        let own = jittered(self.delays.next().unwrap_or(self.policy.delay_max), random);
        let spent = now.saturating_sub(self.started).saturating_sub(self.demanded + self.waited_for_others);
        let first_contact = self.policy.first_contact(error, is_reached);
        // The last attempt to reach a new address starts when its time is over.
        let own = first_contact.map_or(own, |total_max| own.min(total_max.saturating_sub(spent)));
        let demanded = retry_after(error).unwrap_or_default().saturating_sub(own);
        self.demanded += demanded;
        // A page that is too long twice stays too long: the caller asks for a smaller one.
        let is_final = matches!(error, ApiError::TooLong { .. }) && self.attempts > 1;
        let is_over = is_final
            || own.is_zero()
            || spent + own > self.policy.total_max
            || self.demanded > self.policy.demanded_max;
        (self.attempts < self.policy.attempts_max && !is_over).then_some(own + demanded)
    }
}

/// A random time between half of `delay` and all of it, so that requests that failed together do not retry together.
fn jittered(delay: Duration, random: u64) -> Duration {
    let half = delay / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX - 1);
    half + Duration::from_nanos(random % (nanos + 1))
}

fn retry_after(error: &ApiError) -> Option<Duration> {
    let demanded = error.retry_after().filter(|_| !planted::is(Bug::RetryAfterIgnored));
    demanded.map(|wait| wait.min(Duration::from_secs(RETRY_AFTER_SECONDS_MAX)))
}

impl EventSource for Retrying {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        Box::pin(self.run(|| self.source.teams()))
    }

    fn team<'a>(&'a self, team: &'a TeamId) -> Answer<'a, TeamView> {
        Box::pin(self.run(move || self.source.team(team)))
    }

    fn devices<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Computers> {
        Box::pin(self.run(move || self.source.devices(team)))
    }

    fn page<'a>(&'a self, team: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        Box::pin(self.run(move || self.source.page(team, query)))
    }

    fn page_again<'a>(
        &'a self,
        team: &'a TeamId,
        query: &'a PageQuery,
        former: &'a Bytes,
    ) -> Answer<'a, PageComparison> {
        Box::pin(self.run(move || self.source.page_again(team, query, former)))
    }

    fn billing<'a>(&'a self, team: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        Box::pin(self.run(move || self.source.billing(team)))
    }

    fn users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        Box::pin(self.run(move || self.source.users(team)))
    }

    fn sso_users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        Box::pin(self.run(move || self.source.sso_users(team)))
    }

    fn user_info<'a>(&'a self, team: &'a TeamId, user: &'a str) -> Answer<'a, UnfilteredJson> {
        Box::pin(self.run(move || self.source.user_info(team, user)))
    }
}
