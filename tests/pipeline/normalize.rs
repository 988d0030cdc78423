//! Events become rows, or rejects with a reason.

use annals::api::wire;
use annals::model::{ConnectionDetail, Detail, DeviceId, EventRow, Instant, RejectRow, Stream, TeamId};
use annals::normalize::{event_id, normalize, parse};
use bytes::Bytes;

const TIME: &str = r#""timestamp":1700000000000"#;

fn first_seen() -> Instant {
    Instant::from_seconds(1_800_000_000)
}

fn read(stream: Stream, device: Option<&DeviceId>, event: &[u8]) -> Result<EventRow, Box<RejectRow>> {
    let list = if stream == Stream::Connections && device.is_none() { "deviceEvents" } else { "events" };
    let body = Bytes::from([b"{\"", list.as_bytes(), b"\":[", event, b"]}"].concat());
    let events = match stream {
        Stream::Billing => wire::billing(&body).unwrap().events,
        _ => wire::page(stream, device, &body).unwrap().events,
    };
    let row = normalize(&TeamId::from("t"), stream, (&events[0], parse(stream, &events[0])), 3, 2, first_seen());
    match &row {
        Ok(row) => assert_eq!(*row.raw, events[0].text),
        Err(reject) => assert_eq!((&reject.raw, reject.stream), (&events[0].text, stream)),
    }
    row
}

fn connection(fields: &str) -> Result<EventRow, Box<RejectRow>> {
    read(Stream::Connections, None, format!(r#"{{"id":"e",{TIME},{fields}}}"#).as_bytes())
}

fn detail(fields: &str) -> ConnectionDetail {
    match connection(fields).unwrap().detail {
        Detail::Connections(texts) => texts.detail(),
        other => panic!("not a connection: {other:?}"),
    }
}

/// The event type, or the reason of the reject.
fn outcome(row: Result<EventRow, Box<RejectRow>>) -> Result<String, String> {
    row.map(|row| row.event_type.to_string()).map_err(|reject| {
        assert!(!reject.detail.is_empty());
        reject.reason
    })
}

#[test]
fn a_connection_event_has_exactly_one_type() {
    for (scenario, fields, expected) in [
        ("requested", r#""incomingConnectionRequest":{}"#, Ok("incomingConnectionRequest")),
        ("established", r#""incomingConnectionEvent":{}"#, Ok("incomingConnectionEvent")),
        ("succeeded", r#""authSucceededEvent":{}"#, Ok("authSucceededEvent")),
        ("failed", r#""authFailedEvent":{}"#, Ok("authFailedEvent")),
        ("closed", r#""connectionClosedEvent":{}"#, Ok("connectionClosedEvent")),
        ("a known one of a wrong type", r#""authFailedEvent":true"#, Ok("authFailedEvent")),
        ("others null", r#""authFailedEvent":null,"connectionClosedEvent":{}"#, Ok("connectionClosedEvent")),
        (
            "a known beside unknown ones",
            r#""newEvent":{},"more":5,"connectionClosedEvent":{}"#,
            Ok("connectionClosedEvent"),
        ),
        ("the same one twice", r#""authFailedEvent":{},"authFailedEvent":{}"#, Ok("authFailedEvent")),
        ("two known", r#""authFailedEvent":{},"connectionClosedEvent":{}"#, Err("two_event_fields")),
        ("an unknown event", r#""filesSentEvent":{},"note":{}"#, Ok("filesSentEvent")),
        ("an unknown request", r#""shellRequest":{}"#, Ok("shellRequest")),
        ("an unknown object", r#""somethingNew":{},"flag":true"#, Ok("somethingNew")),
        ("two unknown events", r#""aEvent":{},"bEvent":{}"#, Err("two_event_fields")),
        ("two unknown objects", r#""a":{},"b":{}"#, Err("two_event_fields")),
        ("details alone", r#""peerInfo":{},"associatedIncomingConnectionEvent":{}"#, Err("no_event_field")),
        ("no object", r#""aEvent":5,"bEvent":null,"c":[]"#, Err("no_event_field")),
        ("nothing else", r#""deviceID":"d""#, Err("no_event_field")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(outcome(connection(fields)), expected, "{scenario}");
    }
}

#[test]
fn an_activity_event_has_exactly_one_type() {
    let header = r#""header":{"eventTimestampUnixNano":1700000000000000001,"tokenInfo":{"a": 1}},"id":{"x":1}"#;
    for (fields, expected) in [
        (r#","teamUserAddedEvent":{ "u":"é" }"#, Ok("teamUserAddedEvent")),
        (r#","teamUserAddedEvent":{},"note":{}"#, Ok("teamUserAddedEvent")),
        (r#","aEvent":null,"bEvent":5"#, Ok("bEvent")),
        (r#","something":{}"#, Ok("something")),
        (r#","aEvent":{},"bEvent":{}"#, Err("two_event_fields")),
        (r#","a":{},"b":{}"#, Err("two_event_fields")),
        (r#","a":5"#, Err("no_event_field")),
        ("", Err("no_event_field")),
    ] {
        let row = read(Stream::Activity, None, format!("{{{header}{fields}}}").as_bytes());
        assert_eq!(outcome(row), expected.map(str::to_owned).map_err(str::to_owned), "{fields}");
    }
    let event = format!(r#"{{{header},"teamUserAddedEvent":{{ "u":"é" }}}}"#);
    let row = read(Stream::Activity, None, event.as_bytes()).unwrap();
    let payload = Some(r#"{ "u":"é" }"#.to_owned());
    assert_eq!(row.detail, Detail::Activity { token_info: Some(r#"{"a": 1}"#.into()), payload });
    assert_eq!(row.time.nanos(), 1_700_000_000_000_000_001);
    let digest = annals::model::Digest::of(event.as_bytes()).to_string();
    assert_eq!(row.event_id.as_str(), format!("{}-3", &digest[..32]));
}

#[test]
fn a_billing_entry_has_exactly_one_type() {
    for (event, expected) in [
        (r#"{"paymentSucceeded":{"cents":5}}"#, Ok("paymentSucceeded")),
        (r#"{"paymentSucceeded":null,"canceled":true}"#, Ok("canceled")),
        (r#"{"a":{},"b":{}}"#, Err("two_event_fields")),
        ("{}", Err("no_event_field")),
        ("null", Err("no_event_field")),
        ("[]", Err("no_event_field")),
        ("\"paymentSucceeded\"", Err("no_event_field")),
    ] {
        let entry = format!(r#"{{"id":"b","teamid":"t","timestamp":1700000000,"event":{event}}}"#);
        let row = read(Stream::Billing, None, entry.as_bytes());
        assert_eq!(outcome(row), expected.map(str::to_owned).map_err(str::to_owned), "{event}");
    }
    let entry = br#"{"id":"b","timestamp":1700000000,"event":{"paid":{"cents": 5}}}"#;
    let row = read(Stream::Billing, None, entry).unwrap();
    assert_eq!(row.detail, Detail::Billing { payload: Some(r#"{"cents": 5}"#.into()) });
    assert_eq!((row.event_id.as_str(), row.revision, row.first_seen_at), ("b", 2, first_seen()));
}

const DETAILS: &str = r#"{"connectionID":"c","tunnelID":"fluid","sourceType":"cloud","localUserName":"",
    "peerInfo":{"email":"e@x","ipAddress":"10.0.0.1"},"directConnectionInfo":{"ipaddress":"10.0.0.2"}}"#;

#[test]
fn details_are_found_in_every_place_of_an_event() {
    let text = |text: &str| Some(text.into());
    let expected = ConnectionDetail {
        connection_id: Some(annals::model::ConnectionId::new("c")),
        device_id: Some(DeviceId::from("d")),
        computer_host_name: text("host"),
        tunnel_id: text("fluid"),
        source_type: text("cloud"),
        peer_email: text("e@x"),
        peer_ip: text("10.0.0.1"),
        direct_ip: text("10.0.0.2"),
        local_user_name: text(""),
        failure_reason: None,
    };
    let associated = format!(r#""associatedIncomingConnectionEvent":{DETAILS}"#);
    let nested = format!(r#""associatedIncomingConnectionEvent":{{"incomingConnectionEvent":{DETAILS}}}"#);
    let at_top = DETAILS.trim_start_matches('{').trim_end_matches('}').to_owned() + "}";
    for (scenario, fields) in [
        ("in the event field", format!(r#""incomingConnectionEvent":{DETAILS}"#)),
        ("in the associated event", format!(r#""connectionClosedEvent":{{{associated}}}"#)),
        ("one level further down", format!(r#""authSucceededEvent":{{{nested}}}"#)),
        ("in an associated event at the top", format!(r#""connectionClosedEvent":{{}},{associated}"#)),
        ("at the top", format!(r#""connectionClosedEvent":{{}},{at_top}"#)),
    ] {
        let fields = format!(r#""deviceID":"d","computerHostName":"host",{fields}"#);
        assert_eq!(detail(&fields), expected, "{scenario}");
    }
    let failed = format!(r#""authFailedEvent":{{"reason":"bad-password",{associated}}}"#);
    let failed = detail(&failed);
    assert_eq!((failed.failure_reason, failed.peer_email), (text("bad-password"), text("e@x")));
    assert_eq!((failed.device_id, failed.computer_host_name), (None, None));
}

#[test]
fn details_of_a_wrong_type_are_absent() {
    for fields in [
        r#""deviceID":5,"computerHostName":{},"incomingConnectionEvent":{"connectionID":5,"tunnelID":null,"sourceType":[]}"#,
        r#""incomingConnectionEvent":{"peerInfo":"x","directConnectionInfo":[]}"#,
        r#""incomingConnectionEvent":{"peerInfo":{"email":5,"ipAddress":null},"directConnectionInfo":{"ipaddress":{}}}"#,
        r#""authFailedEvent":{"reason":7,"associatedIncomingConnectionEvent":[]}"#,
        r#""authFailedEvent":[]"#,
    ] {
        assert_eq!(detail(fields), ConnectionDetail::default(), "{fields}");
    }
}

#[test]
fn unusual_text_is_kept_and_its_details_are_read() {
    let row = detail(r#""incomingConnectionEvent":{"localUserName":"a\u0000\"\ud83d\ude00","sourceType":"x\ud800"}"#);
    assert_eq!(row.local_user_name.as_deref(), Some("a\0\"\u{1F600}"));
    assert!(row.source_type.unwrap().starts_with("x\u{fffd}"));
    let twice = detail(r#""incomingConnectionEvent":{"tunnelID":"rdp","tunnelID":"vnc"}"#);
    assert_eq!(twice.tunnel_id.as_deref(), Some("vnc"));
    let deep = format!(r#""xEvent":{}1{}"#, "{\"a\":[".repeat(10_000), "]}".repeat(10_000));
    assert_eq!(outcome(connection(&deep)), Ok("xEvent".into()));
    let long = "y".repeat(10_000_000);
    let long_name = detail(&format!(r#""incomingConnectionEvent":{{"localUserName":"{long}"}}"#)).local_user_name;
    assert_eq!(long_name.map(|name| name.len()), Some(10_000_000));
}

#[test]
fn the_deprecated_form_takes_its_computer_from_the_request() {
    let device = DeviceId::from("asked");
    for (fields, expected) in [
        (r#""incomingConnectionEvent":{}"#, "asked"),
        (r#""deviceID":"own","incomingConnectionEvent":{}"#, "own"),
        (r#""deviceID":5,"incomingConnectionEvent":{}"#, "asked"),
    ] {
        let event = format!(r#"{{"id":"e",{TIME},{fields}}}"#);
        let row = read(Stream::Connections, Some(&device), event.as_bytes()).unwrap();
        assert_eq!(*row.raw, event);
        let Detail::Connections(texts) = row.detail else { panic!("not a connection") };
        assert_eq!(texts.detail().device_id, Some(DeviceId::from(expected)), "{fields}");
    }
}

#[test]
fn an_invalid_event_is_rejected_with_its_bytes() {
    let at = Some(Instant::from_seconds(1_700_000_000));
    for (event, reason, time, id) in [
        (
            b"{\"id\":\"e\",\"timestamp\":1700000000000,\"aEvent\":{\"x\":\"\xff\"}}".as_slice(),
            "not_utf8",
            at,
            Some("e"),
        ),
        (b"{\"id\":\"e\",\"timestamp\":1700000000000,\"aEvent\":{\"x\":\"\0\"}}", "not_json", at, Some("e")),
        (br#"{"id":"e","timestamp":1700000000000,"aEvent":{"x":"\q"}}"#, "not_json", at, Some("e")),
        (br#"{"id":"e","aEvent":{}}"#, "time_missing", None, Some("e")),
        (br#"{"id":"e","timestamp":"1700000000000","aEvent":{}}"#, "time_not_integer", None, Some("e")),
        (br#"{"id":"e","timestamp":1700000000,"aEvent":{}}"#, "time_out_of_range", None, Some("e")),
        (br#"{"id":"e","timestamp":1700000000000}"#, "no_event_field", at, Some("e")),
        (b"[1]", "not_an_object", None, None),
        (b"null", "not_an_object", None, None),
    ] {
        let reject = read(Stream::Connections, None, event).unwrap_err();
        let shown = String::from_utf8_lossy(event);
        assert_eq!((reject.reason.as_str(), reject.time), (reason, time), "{shown}");
        assert_eq!(reject.raw, event, "{shown}");
        assert!(reject.detail.len() > 10 && !reject.detail.contains(reason), "{}", reject.detail);
        match id {
            Some(id) => assert_eq!(reject.event_id.as_str(), id),
            None => assert!(reject.event_id.as_str().ends_with("-3") && reject.event_id.as_str().len() == 34),
        }
    }
}

#[test]
fn redacted_events_are_marked_in_both_forms() {
    let row = connection(r#""incomingConnectionEvent":{"secret":"s3"}"#).unwrap();
    assert!(row.redacted && !String::from_utf8_lossy(&row.raw).contains("s3"));
    let reject = connection(r#""secret":"s3""#).unwrap_err();
    assert!(reject.redacted && !String::from_utf8_lossy(&reject.raw).contains("s3"));
}

#[test]
fn equal_events_without_ids_differ_by_their_number() {
    let body = Bytes::from(r#"{"events":[{"a":1},{"a":1},{"a":2}]}"#);
    let events = wire::page(Stream::Activity, None, &body).unwrap().events;
    assert_eq!(event_id(&events[0], 1), event_id(&events[1], 1));
    assert_ne!(event_id(&events[0], 1), event_id(&events[1], 2));
    assert_ne!(event_id(&events[0], 1), event_id(&events[2], 1));
}
