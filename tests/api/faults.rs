//! A service that fails on the wire: the client names each fault in its error, or retries successfully.

use crate::common;

use std::num::NonZeroUsize;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use annals::api::{
    ApiError, EventSource, HttpOptions, HttpSource, PageQuery, RequestCountsSnapshot, RetryPolicy, Retrying,
    SetupError, TokenSource,
};
use annals::clock::{Clock, SystemClock};
use annals::model::{Instant, Stream, TeamId};
use common::quick_clock::QuickClock;
use common::scripted_server::{Act, ScriptedServer, gzip, head, ok, response, status};
use common::wait::PATIENCE;
use secrecy::SecretString;

const TOKEN: &str = "t0ken-never-shown";
const PAGE: &str = r#"{"events":[{"header":{"eventTimestampUnixNano":1700000000000000000},"aEvent":{}}]}"#;

/// The deadline for faults that never end by themselves. A busy machine may miss it with a good answer, too.
const HASTE: Duration = Duration::from_millis(500);

fn options(base_url: String) -> HttpOptions {
    let token = TokenSource::Fixed(SecretString::from(TOKEN));
    HttpOptions { requests_per_second: None, deadline: PATIENCE, ..HttpOptions::new(base_url, token) }
}

fn hasty(base_url: String) -> HttpOptions {
    HttpOptions { deadline: HASTE, ..options(base_url) }
}

fn query() -> PageQuery {
    PageQuery { stream: Stream::Activity, start: 1, stop: 2, offset: 0, limit: 1001, device: None }
}

/// The number of events of the page, or the error. The error never contains a token, a query or a body.
async fn ask(source: &dyn EventSource) -> Result<usize, ApiError> {
    let answer = source.page(&TeamId::from("t"), &query()).await;
    if let Err(error) = &answer {
        let shown = format!("{error} {error:?}");
        assert!(["t0ken", "startTime", "?", "s3cret"].iter().all(|word| !shown.contains(word)), "{shown}");
        assert!(shown.starts_with("GET /v1/team/t/history: "), "{shown}");
    }
    answer.map(|served| served.body.events.len())
}

async fn ask_once(act: Act) -> Result<usize, ApiError> {
    let server = ScriptedServer::start([act]);
    ask(&HttpSource::new(options(server.base_url())).unwrap()).await
}

fn retrying(server: &ScriptedServer) -> (Retrying, Arc<QuickClock>) {
    retrying_with(options(server.base_url()))
}

fn retrying_with(options: HttpOptions) -> (Retrying, Arc<QuickClock>) {
    let clock = Arc::new(QuickClock::at(Instant::from_seconds(1_800_000_000)));
    let source = Arc::new(HttpSource::new(options).unwrap());
    (Retrying::new(source, clock.clone(), RetryPolicy::default()), clock)
}

/// The whole answer, cut after `length` bytes of its body.
fn cut(length: usize) -> Vec<u8> {
    let mut bytes = head(200, &[], PAGE.len());
    bytes.extend_from_slice(&PAGE.as_bytes()[..length]);
    bytes
}

fn zipped(body: &[u8]) -> Vec<u8> {
    response(200, &[("Content-Encoding", "gzip")], body)
}

#[tokio::test]
async fn a_broken_connection_is_unavailable_and_retried() {
    let status_line = b"HTTP/1.1 200 OK\r\nContent-Le".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"eve\r\n".to_vec();
    for (scenario, act) in [
        ("a reset before a byte", Act::Reset(vec![])),
        ("a reset in the headers", Act::Reset(status_line.clone())),
        ("a reset after the headers", Act::Reset(cut(0))),
        ("a reset in the body", Act::Reset(cut(20))),
        ("a close before a byte", Act::Close(vec![])),
        ("a close in the headers", Act::Close(status_line)),
        ("a close after the headers", Act::Close(cut(0))),
        ("a close in the body", Act::Close(cut(20))),
        ("a close one byte too early", Act::Close(cut(PAGE.len() - 1))),
        ("a half close in the body", Act::HalfClose(cut(20))),
        ("chunks without an end", Act::Close(chunked)),
        ("not HTTP at all", Act::Close(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec())),
    ] {
        let server = ScriptedServer::start([act, ok(PAGE)]);
        let (source, clock) = retrying(&server);
        assert_eq!(ask(&source).await, Ok(1), "{scenario}");
        let counts = source.counts().snapshot();
        assert_eq!((counts.requests, counts.retries, counts.unavailable), (2, 1, 1), "{scenario}");
        assert_eq!((server.requests().len(), clock.slept().len()), (2, 1), "{scenario}");
    }
}

#[tokio::test]
async fn silence_is_unavailable_and_retried() {
    for (scenario, act) in [
        ("silence", Act::Stall(vec![])),
        ("silence in the headers", Act::Stall(b"HTTP/1.1 2".to_vec())),
        ("silence in the body", Act::Stall(cut(20))),
        ("one byte now and then", now_and_then()),
    ] {
        let server = ScriptedServer::start([vec![act], vec![ok(PAGE); 6]].concat());
        let (source, clock) = retrying_with(hasty(server.base_url()));
        assert_eq!(ask(&source).await, Ok(1), "{scenario}");
        let counts = source.counts().snapshot();
        let retries = clock.slept().len() as u64;
        assert!(retries >= 1, "{scenario}");
        assert_eq!(
            (counts.requests, counts.retries, counts.unavailable),
            (retries + 1, retries, retries),
            "{scenario}"
        );
    }
}

/// A whole answer that takes minutes.
fn now_and_then() -> Act {
    Act::Drip(cut(PAGE.len()), Duration::from_secs(2))
}

#[tokio::test]
async fn a_complete_answer_counts_even_if_the_connection_ends_badly() {
    for act in [Act::Close(cut(PAGE.len())), Act::HalfClose(cut(PAGE.len()))] {
        assert_eq!(ask_once(act).await, Ok(1));
    }
    // The reset may overtake the answer, so the client may repeat the request.
    let server = ScriptedServer::start([Act::Reset(cut(PAGE.len())), ok(PAGE)]);
    assert_eq!(ask(&retrying(&server).0).await, Ok(1));
}

#[tokio::test]
async fn the_deadline_covers_the_whole_answer() {
    let server = ScriptedServer::start([now_and_then()]);
    let error = ask(&HttpSource::new(hasty(server.base_url())).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("no whole answer") && error.to_string().contains("500ms"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_not_the_interface_is_unexpected() {
    let mut longer = head(200, &[], PAGE.len() - 10);
    longer.extend_from_slice(PAGE.as_bytes());
    for (scenario, bytes) in [
        ("a page for people", response(200, &[("Content-Type", "text/html")], b"<html>s3cret</html>")),
        ("nothing", response(200, &[], b"")),
        ("null", response(200, &[], b"null")),
        ("another list", response(200, &[], br#"{"deviceEvents":[]}"#)),
        ("truncated JSON", response(200, &[], &PAGE.as_bytes()[..30])),
        ("a length that is too small", longer),
        ("no content", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        ("another success", response(206, &[], PAGE.as_bytes())),
        ("not modified", b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()),
        ("a redirect to nowhere", response(302, &[], b"")),
        ("a copy from a cache", response(200, &[("Age", "61")], PAGE.as_bytes())),
    ] {
        let answer = ask_once(Act::Close(bytes)).await;
        assert!(matches!(answer, Err(ApiError::Unexpected { .. })), "{scenario}: {answer:?}");
    }
}

#[tokio::test]
async fn compressed_bodies_that_are_damaged_are_never_a_page() {
    let whole = gzip(PAGE.as_bytes());
    assert_eq!(ask_once(Act::Answer(zipped(&whole))).await, Ok(1));
    let mut flipped = whole.clone();
    let checksum = flipped.len() - 6;
    flipped[checksum] ^= 1;
    for (scenario, body) in [
        ("not compressed", PAGE.as_bytes().to_vec()),
        ("cut short", whole[..whole.len() - 12].to_vec()),
        ("without its checksum", whole[..whole.len() - 8].to_vec()),
        ("a wrong checksum", flipped),
    ] {
        let answer = ask_once(Act::Answer(zipped(&body))).await;
        assert!(answer.as_ref().is_err_and(ApiError::is_transient), "{scenario}: {answer:?}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_dropped_early() {
    let limit = 1024 * 1024;
    let huge = vec![b' '; 64 * limit];
    for (scenario, bytes) in [("plain", response(200, &[], &huge)), ("a bomb", zipped(&gzip(&huge)))] {
        let server = ScriptedServer::start([Act::Answer(bytes)]);
        let options = HttpOptions { body_bytes_max: limit, ..options(server.base_url()) };
        let error = ask(&HttpSource::new(options).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("longer than 1048576 bytes"), "{scenario}: {error}");
        assert!(server.bytes_written() < 32 * limit as u64, "{scenario}: {}", server.bytes_written());
    }
    let exact = format!("{PAGE}{}", " ".repeat(limit - PAGE.len()));
    for (length, fits) in [(limit, true), (limit - 1, false)] {
        let server = ScriptedServer::start([ok(&exact)]);
        let options = HttpOptions { body_bytes_max: length, ..options(server.base_url()) };
        assert_eq!(ask(&HttpSource::new(options).unwrap()).await.is_ok(), fits, "{length}");
    }
}

#[tokio::test]
async fn the_client_never_follows_a_redirect_to_another_host() {
    let elsewhere = ScriptedServer::start([ok(PAGE)]);
    let port = elsewhere.base_url().rsplit(':').next().unwrap().to_owned();
    for code in [301, 302, 303, 307, 308] {
        for target in [
            format!("{}/v1/team/t/history", elsewhere.base_url()),
            format!("//127.0.0.1:{port}/x?s3cret=1"),
            format!("http://localhost:{port}/"),
        ] {
            let server = ScriptedServer::start([status(code, &[("Location", &target)])]);
            let error = ask(&HttpSource::new(options(server.base_url())).unwrap()).await.unwrap_err().to_string();
            assert!(error.contains("redirect to another address") && error.contains(&port), "{error}");
        }
    }
    assert!(elsewhere.requests().is_empty() && elsewhere.connections() == 0);

    let server = ScriptedServer::start([]);
    let secure = server.base_url().replace("http:", "https:");
    let server = ScriptedServer::start([status(302, &[("Location", &secure)])]);
    let error = ask(&HttpSource::new(options(server.base_url())).unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("https://127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_redirect_within_the_service_is_followed_a_few_times() {
    let hop = |n: u32| status(307, &[("Location", format!("/hop/{n}").as_str())]);
    let server = ScriptedServer::start([hop(1), hop(2), hop(3), ok(PAGE)]);
    assert_eq!(ask(&HttpSource::new(options(server.base_url())).unwrap()).await, Ok(1));
    assert_eq!(server.requests()[3].target, "/hop/3");
    let server = ScriptedServer::start((1..9).map(hop));
    let error = ask(&HttpSource::new(options(server.base_url())).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("more than 3 redirects"), "{error}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn each_status_has_its_error_and_only_temporary_ones_are_retried() {
    for (code, kind, tried) in [
        (400, "rejected", 1),
        (401, "refused", 1),
        (403, "refused", 1),
        (404, "not found", 1),
        (410, "not found", 1),
        (422, "rejected", 1),
        (408, "unavailable", 2),
        (425, "unavailable", 2),
        (429, "throttled", 2),
        (500, "unavailable", 2),
        (502, "unavailable", 2),
        (503, "unavailable", 2),
        (504, "unavailable", 2),
        (599, "unavailable", 2),
    ] {
        let body = br#"{"code":"limit-too-large","detail":"s3cret"}"#;
        let server = ScriptedServer::start([Act::Answer(response(code, &[], body)), ok(PAGE)]);
        let (source, _) = retrying(&server);
        let answer = ask(&source).await;
        let counts = source.counts().snapshot();
        assert_eq!(counts.requests, tried, "{code}");
        let seen = [
            (counts.refused, "refused"),
            (counts.not_found, "not found"),
            (counts.rejected, "rejected"),
            (counts.throttled, "throttled"),
            (counts.unavailable, "unavailable"),
        ];
        assert_eq!(seen.iter().find(|(count, _)| *count == 1).map(|(_, kind)| *kind), Some(kind), "{code}");
        assert_eq!(answer.is_ok(), tried == 2, "{code}");
        if let Err(ApiError::Rejected { status, code: Some(word), .. }) = answer {
            assert_eq!((status, word.as_str()), (code, "limit-too-large"));
        }
    }
}

#[tokio::test]
async fn retry_after_is_obeyed_up_to_a_limit() {
    let date = ("Date", "Fri, 20 Nov 2026 08:00:00 GMT");
    for (wish, at_least, at_most) in [
        ("0", 0, 1),
        ("-1", 0, 1),
        ("40", 40, 40),
        ("1000000000", 900, 900),
        ("Fri, 20 Nov 2026 08:01:00 GMT", 60, 60),
        ("Fri, 20 Nov 2026 07:00:00 GMT", 0, 1),
        ("tomorrow", 0, 1),
    ] {
        for code in [429, 503] {
            let server = ScriptedServer::start([status(code, &[date, ("Retry-After", wish)]), ok(PAGE)]);
            let (source, clock) = retrying(&server);
            assert_eq!(ask(&source).await, Ok(1));
            let slept = clock.slept();
            let expected = Duration::from_secs(at_least)..=Duration::from_secs(at_most);
            assert!(slept.len() == 1 && expected.contains(&slept[0]), "{code} {wish}: {slept:?}");
        }
    }
}

#[tokio::test]
async fn a_burst_of_everything_is_survived() {
    let server = ScriptedServer::start([
        status(429, &[("Retry-After", "3")]),
        status(503, &[]),
        Act::Reset(vec![]),
        ok("<html>"),
        Act::Close(cut(30)),
        status(500, &[]),
        Act::Answer(zipped(b"nonsense")),
        status(429, &[]),
        ok(PAGE),
    ]);
    let (source, clock) = retrying(&server);
    assert_eq!(ask(&source).await, Ok(1));
    let counts = source.counts().snapshot();
    let expected = RequestCountsSnapshot {
        requests: 9,
        retries: 8,
        answered: 1,
        throttled: 2,
        unavailable: 5,
        unexpected: 1,
        ..RequestCountsSnapshot::default()
    };
    assert_eq!((counts, clock.slept().len()), (expected, 8));
}

#[tokio::test]
async fn a_stale_answer_is_refused() {
    let answer = |date: &str| Act::Answer(response(200, &[("Date", date)], PAGE.as_bytes()));
    let newest = "Fri, 20 Nov 2026 08:00:00 GMT";
    let server = ScriptedServer::start([
        answer(newest),
        answer("Fri, 20 Nov 2026 07:56:00 GMT"),
        answer("Fri, 20 Nov 2026 07:54:00 GMT"),
        answer(newest),
    ]);
    let source = HttpSource::new(options(server.base_url())).unwrap();
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(ask(&source).await.is_ok());
    }
    assert_eq!(answers, [true, true, false, true]);
}

#[tokio::test]
async fn a_missing_thing_has_its_own_error() {
    // No system gives this port to a program that asks for any free port.
    let nobody = HttpSource::new(options("http://127.0.0.1:1".into())).unwrap();
    let error = ask(&nobody).await.unwrap_err().to_string();
    assert!(error.contains("http://127.0.0.1:1 refused the connection"), "{error}");

    let unknown = HttpSource::new(options("http://no-such-host.invalid".into())).unwrap();
    let error = ask(&unknown).await.unwrap_err().to_string();
    assert!(error.contains("the host of http://no-such-host.invalid cannot be found"), "{error}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}", listener.local_addr().unwrap());
    // The thread ends with the test program, because no client may connect.
    std::thread::spawn(move || {
        let (mut plain, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut plain, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    match HttpSource::new(options(secure)) {
        Err(SetupError::Client { reason }) => assert!(reason.contains("certificate"), "{reason}"),
        Err(other) => panic!("{other}"),
        Ok(source) => {
            let error = ask(&source).await.unwrap_err().to_string();
            assert!(error.contains("no secure connection to https://127.0.0.1"), "{error}");
        }
    }
}

#[tokio::test]
async fn parallel_requests_and_the_request_rate_are_limited() {
    // Each answer waits for two other requests.
    let meeting = Arc::new(Barrier::new(3));
    let shared = || Act::Together(meeting.clone(), response(200, &[], br#"{"events":[]}"#));
    let server = ScriptedServer::start((0..12).map(|_| shared()));
    let limited = HttpOptions { concurrency: NonZeroUsize::new(3).unwrap(), ..options(server.base_url()) };
    let source = HttpSource::new(limited).unwrap();
    let answers = futures::future::join_all((0..12).map(|_| ask(&source))).await;
    assert!(answers.iter().all(|answer| *answer == Ok(0)));
    assert_eq!(server.at_once_max(), 3);
    assert!(server.connections() < 12, "connections are used again");

    let server = ScriptedServer::start((0..6).map(|_| ok(PAGE)));
    let limited = HttpOptions { requests_per_second: Some(40.0), ..options(server.base_url()) };
    let source = HttpSource::new(limited).unwrap();
    let clock = SystemClock::new();
    futures::future::join_all((0..6).map(|_| ask(&source))).await;
    assert!(clock.monotonic() >= Duration::from_millis(120), "{:?}", clock.monotonic());
}
