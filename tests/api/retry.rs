//! The retry policy against a source with scripted failures, in virtual time.

use crate::common;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::api::{
    Answer, ApiError, BillingSnapshot, Computers, EventSource, FIRST_CONTACT_SECONDS_MAX, Notice, Page, PageQuery,
    Pause, RETRY_ATTEMPTS_MAX, RetryPolicy, Retrying, Served, TeamView,
};
use annals::clock::Clock;
use annals::model::{Instant, TeamId};
use common::quick_clock::QuickClock;
use common::virtual_clock::VirtualClock;

/// Answers `teams` with the scripted failures, each after `takes`; then always with the last one, or with success.
struct Failing {
    script: Mutex<VecDeque<ApiError>>,
    last: Option<ApiError>,
    takes: Duration,
    clock: Arc<dyn Clock>,
}

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

/// The outcome of one request: the answer, the number of attempts, its duration and the waits between attempts.
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
    let attempts = retrying.counts().snapshot().requests;
    // Every second sleep is a wait; the others are the durations of requests.
    let waits = clock.slept().into_iter().skip(1).step_by(2).collect();
    Outcome { answer, attempts, took: clock.monotonic(), waits }
}

fn unavailable(retry_after: Option<u64>) -> ApiError {
    let retry_after = retry_after.map(Duration::from_secs);
    ApiError::Unavailable { what: "w".into(), detail: "d".into(), retry_after }
}

fn unreachable() -> ApiError {
    ApiError::Unreachable { what: "w".into(), detail: "d".into() }
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
async fn retries_of_a_dead_service_end_within_two_minutes() {
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
async fn a_permanent_error_is_not_retried() {
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
async fn a_body_that_is_too_long_twice_is_not_retried_again() {
    let error = ApiError::TooLong { what: "w".into(), bytes_max: 1 };
    let once = run(vec![error.clone()], None, Duration::ZERO, RetryPolicy::default()).await;
    assert_eq!((once.answer, once.attempts), (Ok(()), 2));
    let always = run(vec![], Some(error.clone()), Duration::ZERO, RetryPolicy::default()).await;
    assert_eq!((always.answer, always.attempts), (Err(error), 2));
}

#[tokio::test]
async fn retry_after_waits_have_their_own_limit() {
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
async fn all_requests_of_a_token_wait_for_retry_after() {
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
    assert_eq!(
        clock.monotonic(),
        Duration::from_secs(120),
        "the other request with the token started too early or too late"
    );
    assert!(other.teams().await.is_ok() && asked.teams().await.is_ok());
    assert_eq!(clock.monotonic(), Duration::from_secs(120), "other failures do not depend on the token");
}

#[tokio::test]
async fn a_command_gives_up_an_address_that_never_answered_after_ten_seconds() {
    let ten = Duration::from_secs(FIRST_CONTACT_SECONDS_MAX);
    let typed = || RetryPolicy::default().interactive();
    let outcome = run(vec![], Some(unreachable()), Duration::ZERO, typed()).await;
    assert_eq!((outcome.answer, outcome.took), (Err(unreachable()), ten));
    assert!((4..=8).contains(&outcome.attempts), "{}", outcome.attempts);
    // Each attempt takes time itself, like a slow resolver.
    let outcome = run(vec![], Some(unreachable()), Duration::from_secs(4), typed()).await;
    assert!(outcome.answer.is_err() && outcome.took <= ten + Duration::from_secs(4), "{:?}", outcome.took);
    let patient = run(vec![], Some(unreachable()), Duration::ZERO, RetryPolicy::default()).await;
    assert!(patient.answer.is_err() && patient.took > 3 * ten, "the daemon continues: {:?}", patient.took);
    let answered = vec![ApiError::Unexpected { what: "w".into(), detail: "d".into() }];
    let outcome = run(answered, Some(unreachable()), Duration::ZERO, typed()).await;
    assert!(outcome.took > 3 * ten, "the address is right: {:?}", outcome.took);
    let shorter = RetryPolicy::within(Duration::from_secs(3)).interactive();
    let outcome = run(vec![], Some(unreachable()), Duration::ZERO, shorter).await;
    assert_eq!(outcome.took, Duration::from_secs(3));
    let never = RetryPolicy::within(Duration::ZERO).interactive();
    assert_eq!(run(vec![], Some(unreachable()), Duration::ZERO, never).await.attempts, 1);
}

/// What a listener heard and when, and when the request ended.
fn heard(script: Vec<ApiError>, last: Option<ApiError>, takes: u64) -> (Vec<(Duration, String)>, Duration) {
    let clock = VirtualClock::at(Instant::from_seconds(1_800_000_000));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let takes = Duration::from_secs(takes);
    let source = Failing { script: Mutex::new(script.into()), last, takes, clock: clock.clone() };
    let (theirs, at) = (heard.clone(), clock.clone());
    let listen = move |notice: Notice<'_>| {
        let what = match notice {
            Notice::NoAnswerYet => "no answer yet".to_owned(),
            Notice::TryingAgain { error, within, .. } => format!("{error}, {} s", within.as_secs()),
        };
        theirs.lock().unwrap().push((at.monotonic(), what));
    };
    let policy = RetryPolicy::default().interactive();
    let retrying = Retrying::new(Arc::new(source), clock.clone(), policy).with_listener(Arc::new(listen));
    let _ = clock.run(retrying.teams());
    let ended = clock.monotonic();
    (heard.lock().unwrap().clone(), ended)
}

#[test]
fn a_command_explains_a_wait_within_two_seconds() {
    let (said, ended) = heard(vec![], Some(unreachable()), 0);
    assert_eq!(said, [(Duration::ZERO, "w: d, 10 s".to_owned())], "once, and at once");
    assert_eq!(ended, Duration::from_secs(10));
    let (said, _) = heard(vec![], Some(unavailable(None)), 15);
    assert_eq!(said[0], (Duration::from_secs(2), "no answer yet".to_owned()));
    for error in [throttled(120), unavailable(None)] {
        let (said, _) = heard(vec![error; 5], None, 0);
        assert!(said.len() == 1 && said[0].0.is_zero(), "{said:?}");
    }
    let (said, _) = heard(vec![], None, 1);
    assert!(said.is_empty(), "{said:?}");
}
