//! The retry policy against a source that fails as it is told, in virtual time.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::api::{
    Answer, ApiError, BillingSnapshot, Computers, Directory, EventSource, Page, PageQuery, Pause, RETRY_ATTEMPTS_MAX,
    RetryPolicy, Retrying, Served, TeamView,
};
use annals::clock::Clock;
use annals::model::{Instant, TeamId};
use common::quick_clock::QuickClock;

/// Answers `teams` with the scripted failures, each after `takes`; then with the last for ever, or with success.
struct Failing {
    script: Mutex<VecDeque<ApiError>>,
    last: Option<ApiError>,
    takes: Duration,
    clock: Arc<QuickClock>,
}

impl Directory for Failing {}

impl EventSource for Failing {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        Box::pin(async {
            self.clock.sleep(self.takes).await;
            let next = self.script.lock().unwrap().pop_front().or_else(|| self.last.clone());
            next.map_or(Ok(Served { body: vec![TeamId::from("t")], at: None }), Err)
        })
    }

    fn team<'a>(&'a self, _: &'a TeamId) -> Answer<'a, TeamView> {
        panic!("not asked")
    }

    fn devices<'a>(&'a self, _: &'a TeamId) -> Answer<'a, Computers> {
        panic!("not asked")
    }

    fn page<'a>(&'a self, _: &'a TeamId, _: &'a PageQuery) -> Answer<'a, Page> {
        panic!("not asked")
    }

    fn billing<'a>(&'a self, _: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        panic!("not asked")
    }
}

/// What came of one request: the answer, the attempts, the time that it took and the waits between attempts.
struct Outcome {
    answer: Result<(), ApiError>,
    attempts: u64,
    took: Duration,
    waits: Vec<Duration>,
}

async fn run(script: Vec<ApiError>, last: Option<ApiError>, takes: Duration, policy: RetryPolicy) -> Outcome {
    let clock = Arc::new(QuickClock::at(Instant::from_seconds(1_800_000_000)));
    let source = Failing { script: Mutex::new(script.into()), last, takes, clock: clock.clone() };
    let retrying = Retrying::new(Arc::new(source), clock.clone(), policy);
    let answer = retrying.teams().await.map(|_| ());
    let attempts = retrying.counts().now().requests;
    // Every second sleep is a wait: the others are the requests' own time.
    let waits = clock.slept().into_iter().skip(1).step_by(2).collect();
    Outcome { answer, attempts, took: clock.monotonic(), waits }
}

fn unavailable(retry_after: Option<u64>) -> ApiError {
    let retry_after = retry_after.map(Duration::from_secs);
    ApiError::Unavailable { what: "w".into(), detail: "d".into(), retry_after }
}

fn throttled(seconds: u64) -> ApiError {
    ApiError::Throttled { what: "w".into(), retry_after: Some(Duration::from_secs(seconds)) }
}

#[tokio::test]
async fn waits_grow_with_jitter_up_to_a_limit() {
    let policy = RetryPolicy { attempts_max: 12, total_max: Duration::from_secs(3_600), ..RetryPolicy::default() };
    let outcome = run(vec![], Some(unavailable(None)), Duration::ZERO, policy.clone()).await;
    let mut whole = policy.delay_min;
    for wait in &outcome.waits {
        assert!(*wait >= whole / 2 && *wait <= whole, "{:?}", outcome.waits);
        whole = (whole * 2).min(policy.delay_max);
    }
    assert_eq!((outcome.waits.len(), outcome.attempts), (11, 12));
    let odd = outcome.waits.iter().filter(|wait| wait.subsec_micros() % 1_000 != 0).count();
    assert!(odd > 8, "no jitter: {:?}", outcome.waits);
}

#[tokio::test]
async fn a_dead_service_is_given_up_within_two_minutes() {
    for (scenario, takes) in [("at once", 0), ("after a while", 7), ("at the deadline", 60)] {
        let error = unavailable(None);
        let outcome = run(vec![], Some(error.clone()), Duration::from_secs(takes), RetryPolicy::default()).await;
        assert_eq!(outcome.answer, Err(error), "{scenario}");
        let range = Duration::from_secs(40)..=Duration::from_secs(140);
        assert!(range.contains(&outcome.took), "{scenario}: {:?}", outcome.took);
        assert!((2..=u64::from(RETRY_ATTEMPTS_MAX)).contains(&outcome.attempts), "{scenario}: {}", outcome.attempts);
    }
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    let what = || "w".to_owned();
    for error in [
        ApiError::Refused { what: what(), status: 401 },
        ApiError::NotFound { what: what(), status: 404 },
        ApiError::Rejected { what: what(), status: 400, code: None },
    ] {
        let outcome = run(vec![error.clone()], None, Duration::ZERO, RetryPolicy::default()).await;
        assert_eq!((outcome.answer, outcome.attempts), (Err(error), 1));
        assert!(outcome.waits.is_empty());
    }
}

#[tokio::test]
async fn waits_that_are_asked_for_do_not_count_as_a_dead_service_but_have_their_own_limit() {
    let asked: Vec<ApiError> = (0..5).map(|_| throttled(120)).collect();
    let outcome = run(asked, None, Duration::ZERO, RetryPolicy::default()).await;
    assert_eq!((outcome.answer, outcome.attempts), (Ok(()), 6));
    assert!(outcome.waits.iter().all(|wait| *wait >= Duration::from_secs(120)), "{:?}", outcome.waits);

    for seconds in [100, 600, 1_000_000_000] {
        let outcome = run(vec![], Some(throttled(seconds)), Duration::ZERO, RetryPolicy::default()).await;
        assert_eq!(outcome.answer, Err(throttled(seconds)));
        assert!(outcome.took <= Duration::from_secs(15 * 60 + 120), "{seconds}: {:?}", outcome.took);
        assert!(outcome.waits.iter().all(|wait| *wait <= Duration::from_secs(15 * 60)), "{:?}", outcome.waits);
        assert!(outcome.attempts > 1);
    }
    let outcome = run(vec![unavailable(Some(33))], None, Duration::ZERO, RetryPolicy::default()).await;
    assert_eq!((outcome.answer, outcome.waits), (Ok(()), vec![Duration::from_secs(33)]));
}

#[tokio::test]
async fn what_one_request_is_asked_to_wait_all_wait_that_share_its_token() {
    let clock = Arc::new(QuickClock::at(Instant::from_seconds(1_800_000_000)));
    let pause = Arc::new(Pause::new(clock.clone()));
    let retrying = |script: Vec<ApiError>| {
        let source =
            Failing { script: Mutex::new(script.into()), last: None, takes: Duration::ZERO, clock: clock.clone() };
        let policy = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
        Retrying::sharing(Arc::new(source), clock.clone(), policy, Arc::default(), pause.clone())
    };
    let (asked, other) = (retrying(vec![throttled(120)]), retrying(vec![unavailable(Some(60))]));
    assert_eq!(asked.teams().await.map(|_| ()), Err(throttled(120)));
    assert!(other.teams().await.is_err());
    assert_eq!(clock.monotonic(), Duration::from_secs(120), "the other one was asked too early or too late");
    assert!(other.teams().await.is_ok() && asked.teams().await.is_ok());
    assert_eq!(clock.monotonic(), Duration::from_secs(120), "what failed otherwise is no matter of the token's");
}
