//! The client's requests, and its reading of valid answers.

use crate::common;

use std::io::Write;
use std::time::Duration;

use annals::api::{ApiError, EventSource, HttpOptions, HttpSource, PageQuery, TokenSource};
use annals::clock::{Clock, SystemClock};
use annals::model::{DeviceId, Instant, RejectReason, ServedTime, Stream, TeamId};
use common::scripted_server::{Act, ScriptedServer, gzip, ok, response, status};
use secrecy::SecretString;

const TOKEN: &str = "t0ken-never-shown";

fn options(base_url: String) -> HttpOptions {
    let token = TokenSource::Fixed(SecretString::from(TOKEN));
    HttpOptions { requests_per_second: None, ..HttpOptions::new(base_url, token) }
}

fn source(server: &ScriptedServer) -> HttpSource {
    HttpSource::new(options(server.base_url())).unwrap()
}

fn query(stream: Stream) -> PageQuery {
    PageQuery { stream, start: 1_700_000_000, stop: 1_700_086_400, offset: 993, limit: 1001, device: None }
}

#[tokio::test]
async fn every_parameter_and_header_is_sent_and_connections_are_reused() {
    let page = r#"{"deviceEvents":[],"hasMoreEvents":false}"#;
    let server = ScriptedServer::start([ok(page), ok(page), ok(r#"{"events":[]}"#), ok(r#"{"events":[]}"#)]);
    let source = source(&server);
    let team = TeamId::from("t/1 ?#%é");
    source.page(&team, &query(Stream::Connections)).await.unwrap();
    source.page(&team, &query(Stream::Connections)).await.unwrap();
    source.page(&team, &query(Stream::Activity)).await.unwrap();
    let device = Some(DeviceId::from("d:1/2"));
    source.page(&team, &PageQuery { device, limit: 100, ..query(Stream::Connections) }).await.unwrap();

    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|r| r.target.split('?').next().unwrap()).collect();
    let encoded = "/v1/team/t%2F1%20%3F%23%25%C3%A9";
    assert_eq!(paths[0], format!("{encoded}/history/devices"));
    assert_eq!(paths[2], format!("{encoded}/history"));
    assert_eq!(paths[3], format!("{encoded}/device/d:1%2F2/history"));
    let window = [("startTime", "1700000000"), ("stopTime", "1700086400")];
    assert_eq!(requests[0].query()[..3], [("desc", "false"), ("limit", "1001"), ("offset", "993")]);
    assert_eq!(requests[0].query()[3..], window);
    assert_eq!(requests[3].query()[1], ("limit", "100"));
    for request in &requests {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(request.header("cache-control"), Some("no-store"));
        assert_eq!(request.header("accept-encoding"), Some("gzip"));
        assert!(request.header("user-agent").unwrap().starts_with("annals/"));
        assert_eq!(request.header("referer"), None);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn inventory_requests_leave_their_share_of_the_rate_to_events() {
    let (scans, events) = (30, 4);
    let server = ScriptedServer::start((0..scans + events).map(|_| ok("[]")));
    let source =
        HttpSource::new(HttpOptions { requests_per_second: Some(60.0), ..options(server.base_url()) }).unwrap();
    let team = TeamId::from("t");
    let asked_first = futures::future::try_join_all((0..scans).map(|_| source.sso_users(&team)));
    let asked_then = futures::future::try_join_all((0..events).map(|_| source.teams()));
    let clock = SystemClock::new();
    let when_events_are_here = async {
        let _ = asked_then.await?;
        let of_people = server.requests().iter().filter(|request| request.target.ends_with("/saml/users")).count();
        Ok((of_people, clock.monotonic().as_secs_f64()))
    };
    let (_, (of_people, seconds)) = futures::try_join!(asked_first, when_events_are_here).unwrap();
    // At most half of the rate is for people. On a busy machine, the events can have less than their half.
    assert!(of_people as f64 <= 2.0 + seconds * 30.0, "{of_people} requests about people in {seconds} s");
}

#[tokio::test]
async fn a_base_url_may_have_a_path_and_a_trailing_slash() {
    let server = ScriptedServer::start([ok("[]"), ok("[]"), ok("[]")]);
    for suffix in ["", "/api", "/api/"] {
        HttpSource::new(options(server.base_url() + suffix)).unwrap().teams().await.unwrap();
    }
    let targets: Vec<String> = server.requests().into_iter().map(|r| r.target).collect();
    assert_eq!(targets, ["/v1/user/teams", "/api/v1/user/teams", "/api/v1/user/teams"]);
}

#[tokio::test]
async fn events_come_back_byte_for_byte_with_the_moment_of_the_answer() {
    let event = "{ \"id\" : \"e1\",\t\"timestamp\":1700000000123 , \"x\":1e400}";
    let body = format!("{{\"deviceEvents\":[ {event} ,null],\"hasMoreEvents\":true,\"nextOffset\":7}}");
    let date = [("Date", "Fri, 20 Nov 2026 08:00:00 GMT")];
    let zipped = [date[0], ("Content-Encoding", "gzip")];
    let server = ScriptedServer::start([
        Act::Answer(response(200, &date, body.as_bytes())),
        Act::Answer(response(200, &zipped, &gzip(body.as_bytes()))),
    ]);
    let source = source(&server);
    for _ in 0..2 {
        let served = source.page(&TeamId::from("t"), &query(Stream::Connections)).await.unwrap();
        assert_eq!(served.at, Some("2026-11-20T08:00:00Z".parse().unwrap()));
        assert_eq!((served.body.has_more, served.body.next_offset), (Some(true), Some(7)));
        let [first, second] = &served.body.events[..] else { panic!("two events: {:?}", served.body.events) };
        assert_eq!(first.text, event);
        assert_eq!(first.time, ServedTime::At(Instant::from_nanos(1_700_000_000_123_000_000)));
        assert_eq!(first.id.as_ref().unwrap().as_str(), "e1");
        assert_eq!(second.text, "null");
        assert!(matches!(&second.time, ServedTime::Unusable(reject) if reject.reason == RejectReason::NotAnObject));
    }
}

#[tokio::test]
async fn team_devices_and_billing_are_read() {
    let team = r#"{"name":"T","userInvites":[{"secret":"s3"}],"planFeatures":{"deviceEventsMaxRetrievalDuration":60}}"#;
    let server = ScriptedServer::start([
        ok(team),
        ok(r#"{"devices":[{"id":"d1","name":"x"},{"id":"d2"}]}"#),
        status(404, &[]),
        ok(r#"{"events":[{"id":"b1","timestamp":1700000000,"event":{}}]}"#),
    ]);
    let (source, id) = (source(&server), TeamId::from("t"));
    let view = source.team(&id).await.unwrap().body;
    assert_eq!((view.name.as_deref(), view.plan_span), (Some("T"), Some(Duration::from_secs(60))));
    assert_eq!(source.devices(&id).await.unwrap().body.ids, ["d1".into(), "d2".into()]);
    let gone = source.devices(&id).await.unwrap_err();
    assert_eq!(gone, ApiError::NotFound { what: "GET /v1/team/t/devices".into(), status: 404 });
    assert_eq!(source.billing(&id).await.unwrap().body.events.len(), 1);
}

#[tokio::test]
async fn an_id_that_a_path_cannot_hold_is_never_requested() {
    let server = ScriptedServer::start([]);
    for id in ["", ".", "..", "a\nb", "a\tb", "a\u{7f}"] {
        let error = source(&server).team(&TeamId::from(id)).await.unwrap_err();
        assert!(matches!(error, ApiError::UnusableId { .. }) && !error.is_transient(), "{id:?}");
        assert!(error.to_string().contains("no request was sent"), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_token_file_is_read_again_when_the_token_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let keep = |text: &str| {
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    keep("first\n");
    let server = ScriptedServer::start([ok("[]"), status(401, &[]), ok("[]"), status(401, &[]), ok("[]")]);
    let options = HttpOptions { token: TokenSource::File(path.clone()), ..options(server.base_url()) };
    let source = HttpSource::new(options).unwrap();
    source.teams().await.unwrap();
    keep("second\n");
    source.teams().await.unwrap();
    let refused = source.teams().await.unwrap_err();
    assert!(matches!(refused, ApiError::Refused { status: 401, .. }), "the same token is not sent twice: {refused}");
    keep("two\nlines");
    source.teams().await.unwrap();
    let sent: Vec<_> = server.requests().iter().map(|r| r.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer first", "Bearer first", "Bearer second", "Bearer second", "Bearer second"]);
}

#[tokio::test]
async fn the_previous_token_is_redacted_too() {
    let rejected = |code: &str| Act::Answer(response(400, &[], format!("{{\"code\":\"{code}\"}}").as_bytes()));
    let server =
        ScriptedServer::start([rejected(TOKEN), rejected(TOKEN), rejected("another-token"), rejected("third")]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let put = |token: &str| std::fs::File::create(file.path()).unwrap().write_all(token.as_bytes()).unwrap();
    put(TOKEN);
    let token = TokenSource::File(file.path().to_owned());
    let source = HttpSource::new(HttpOptions { token, ..options(server.base_url()) }).unwrap();
    let code = async || match source.teams().await.unwrap_err() {
        ApiError::Rejected { code, .. } => code.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code().await, "[redacted]");
    put("another-token");
    source.token().renew();
    assert_eq!(code().await, "[redacted]", "it was in force before");
    assert_eq!(code().await, "[redacted]", "it is in force");
    assert_eq!(code().await, "third");
}
