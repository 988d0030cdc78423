//! Parsed answers: the time and id of each event, redaction, and invalid answers.

use annals::api::wire;
use annals::model::{EventId, Instant, RawEvent, ServedTime, Stream};
use bytes::Bytes;
use proptest::prelude::*;

fn events(stream: Stream, body: impl Into<Bytes>) -> Vec<RawEvent> {
    let body = body.into();
    if stream == Stream::Billing {
        return wire::billing(&body).unwrap().events;
    }
    wire::page(stream, None, &body).unwrap().events
}

fn list_name(stream: Stream) -> &'static str {
    if stream == Stream::Connections { "deviceEvents" } else { "events" }
}

fn one(stream: Stream, event: &[u8]) -> RawEvent {
    let body = [b"{\"", list_name(stream).as_bytes(), b"\":[", event, b"]}"].concat();
    let mut events = events(stream, body);
    assert_eq!(events.len(), 1, "{}", String::from_utf8_lossy(event));
    events.remove(0)
}

fn event_with_time(stream: Stream, time: &str) -> String {
    match stream {
        Stream::Activity => format!(r#"{{"header":{{"eventTimestampUnixNano":{time}}},"xEvent":{{}}}}"#),
        _ => format!(r#"{{"id":"e","timestamp":{time}}}"#),
    }
}

/// The time in nanoseconds, or the reason why there is none.
fn time_of(event: &RawEvent) -> Result<i64, String> {
    match &event.time {
        ServedTime::At(at) => Ok(at.nanos()),
        ServedTime::Unusable(reject) => {
            assert!(!reject.detail.is_empty());
            Err(reject.reason.as_str().to_owned())
        }
    }
}

#[test]
fn an_error_beside_an_empty_list_is_not_an_empty_answer() {
    for stream in Stream::ALL {
        let list = list_name(stream);
        let read = |rest: &str| {
            let body = Bytes::from(format!(r#"{{{rest},"{list}":[]}}"#));
            match stream {
                Stream::Billing => wire::billing(&body).is_ok(),
                _ => wire::page(stream, None, &body).is_ok(),
            }
        };
        for error in [r#""code":"timeout""#, r#""error":"too busy""#, r#""error":{"code":1}"#, r#""errors":["x"]"#] {
            assert!(!read(error), "{stream} {error}");
        }
        for none in [r#""error":null"#, r#""errors":[]"#, r#""code":0"#, r#""other":{"error":"x"}"#] {
            assert!(read(none), "{stream} {none}");
        }
        let body = format!(r#"{{"error":"some are left out","{list}":[{}]}}"#, event_with_time(stream, "1"));
        assert_eq!(events(stream, body).len(), 1, "{stream}: the events that came with the error are kept");
    }
}

#[test]
fn times_at_the_limits_of_each_unit() {
    use Stream::{Activity, Billing, Connections};
    let out = Err("time_out_of_range");
    for (stream, time, expected) in [
        (Billing, "946684800", Ok(946_684_800_000_000_000)),
        (Billing, "946684799", out),
        (Billing, "4102444799", Ok(4_102_444_799_000_000_000)),
        (Billing, "4102444800", out),
        (Billing, "1700000000123", out),
        (Connections, "946684800000", Ok(946_684_800_000_000_000)),
        (Connections, "946684799999", out),
        (Connections, "4102444799999", Ok(4_102_444_799_999_000_000)),
        (Connections, "4102444800000", out),
        (Connections, "1700000000", out),
        (Connections, "9007199254740993", out),
        (Activity, "946684800000000000", Ok(946_684_800_000_000_000)),
        (Activity, "946684799999999999", out),
        (Activity, "4102444799999999999", Ok(4_102_444_799_999_999_999)),
        (Activity, "4102444800000000000", out),
        (Activity, "1700000000123", out),
        (Activity, "1700000000000000001", Ok(1_700_000_000_000_000_001)),
        (Activity, "9223372036854775807", out),
        (Activity, "9223372036854775808", out),
        (Billing, "253402300799", out),
        (Connections, "253402300799999", out),
        (Connections, "-1", out),
        (Connections, "-1700000000000", out),
        (Connections, "0", out),
        (Connections, "-0", out),
        (Connections, "99999999999999999999999999999999999999", out),
    ] {
        let event = one(stream, event_with_time(stream, time).as_bytes());
        assert_eq!(time_of(&event), expected.map_err(str::to_owned), "{stream} {time}");
    }
}

#[test]
fn a_time_that_is_not_an_integer_is_rejected() {
    for stream in Stream::ALL {
        for (time, word) in [
            ("1700000000.0", "time_not_integer"),
            ("1.7e9", "time_not_integer"),
            ("17E8", "time_not_integer"),
            ("1e999", "time_not_integer"),
            (r#""1700000000""#, "time_not_integer"),
            (r#""""#, "time_not_integer"),
            ("true", "time_not_integer"),
            ("{}", "time_not_integer"),
            ("[1700000000]", "time_not_integer"),
            ("null", "time_missing"),
        ] {
            let event = one(stream, event_with_time(stream, time).as_bytes());
            assert_eq!(time_of(&event), Err(word.to_owned()), "{stream} {time}");
        }
    }
    for event in ["{}", r#"{"header":{}}"#, r#"{"header":null}"#, r#"{"header":5}"#, r#"{"timestamp":1}"#] {
        assert_eq!(time_of(&one(Stream::Activity, event.as_bytes())), Err("time_missing".into()), "{event}");
    }
    for event in ["null", "5", "\"x\"", "[]", "true"] {
        assert_eq!(time_of(&one(Stream::Activity, event.as_bytes())), Err("not_an_object".into()), "{event}");
    }
}

#[test]
fn ids_may_have_several_types_and_activity_has_none() {
    for (event, id) in [
        (r#"{"id":"a"}"#, Some("a")),
        (r#"{"id":"\u0061\/"}"#, Some("a/")),
        (r#"{"id":17}"#, Some("17")),
        (r#"{"id":9007199254740993.50}"#, Some("9007199254740993.50")),
        (r#"{"id":""}"#, None),
        (r#"{"id":null}"#, None),
        ("{}", None),
        (r#"{"id":"a","id":"b"}"#, Some("b")),
        (r#"{"i\u0064":"c"}"#, Some("c")),
        (r#"{"x":{"id":"inner"}}"#, None),
    ] {
        for stream in [Stream::Connections, Stream::Billing] {
            let event = one(stream, event.as_bytes());
            assert_eq!(event.id.as_ref().map(EventId::as_str), id, "{:?}", event.text);
        }
        assert_eq!(one(Stream::Activity, event.as_bytes()).id, None);
    }
}

#[test]
fn one_bad_event_does_not_spoil_the_page() {
    let good = br#"{"id":"g","timestamp":1700000000000}"#.as_slice();
    for (scenario, bad, id) in [
        (
            "a byte that is not UTF-8",
            b"{\"id\":\"b\",\"timestamp\":1700000000000,\"x\":\"\xff\"}".as_slice(),
            Some("b"),
        ),
        ("a character cut short", b"{\"id\":\"b\",\"timestamp\":1700000000000,\"x\":\"\xe2\x82\"}", Some("b")),
        ("an id that is not UTF-8", b"{\"id\":\"b\xff\",\"timestamp\":1700000000000}", None),
        ("a bare NUL", b"{\"id\":\"b\",\"timestamp\":1700000000000,\"x\":\"a\0b\"}", Some("b")),
        ("an escaped line break", b"{\"id\":\"b\",\"timestamp\":1700000000000,\"x\":\"a\\\nb\"}", Some("b")),
        ("an unknown escape", br#"{"id":"b","timestamp":1700000000000,"x":"\x41\"\\"}"#, Some("b")),
        ("half an escape", br#"{"id":"b","timestamp":1700000000000,"x":"\u12"}"#, Some("b")),
        ("a lone surrogate", br#"{"id":"b","timestamp":1700000000000,"x":"\ud800"}"#, Some("b")),
        ("a huge number", br#"{"id":"b","timestamp":1700000000000,"x":1e99999}"#, Some("b")),
        ("a NUL", br#"{"id":"b","timestamp":1700000000000,"x":"\u0000"}"#, Some("b")),
    ] {
        let body = [b"{\"deviceEvents\":[".as_slice(), good, b" , ", bad, b",", good, b"]}"].concat();
        let events = events(Stream::Connections, body);
        let texts: Vec<&[u8]> = events.iter().map(|event| event.text.as_ref()).collect();
        assert_eq!(texts, [good, bad, good], "{scenario}");
        assert_eq!(events[1].id.as_ref().map(EventId::as_str), id, "{scenario}");
        assert_eq!(time_of(&events[1]), Ok(1_700_000_000_000_000_000), "{scenario}");
    }
}

#[test]
fn deep_and_large_events_are_kept() {
    let deep =
        format!(r#"{{"timestamp":1700000000000,"x":{}{}}}"#, "[{\"a\":".repeat(10_000) + "1", "}]".repeat(10_000));
    assert_eq!(one(Stream::Connections, deep.as_bytes()).text, deep);
    let secret = deep.replace("\"a\"", "\"secret\"").replace('1', "\"s3\"");
    let event = one(Stream::Connections, secret.replace("\"s3\"700000000000", "1700000000000").as_bytes());
    assert!(event.redacted && memchr::memmem::find(&event.text, b"s3").is_none());
    let long = format!(r#"{{"timestamp":1700000000000,"x":"{}"}}"#, "y".repeat(10_000_000));
    assert_eq!(one(Stream::Connections, long.as_bytes()).text, long);
}

#[test]
fn secrets_are_redacted_before_the_digest_is_taken() {
    let event = one(Stream::Activity, br#"{"header":{"eventTimestampUnixNano":1},"xEvent":{"secret":"s3"}}"#);
    assert_eq!(event.text, r#"{"header":{"eventTimestampUnixNano":1},"xEvent":{"secret":"[redacted]"}}"#);
    assert!(event.redacted);
    assert_eq!(event.digest, annals::model::Digest::of(&event.text));
    let spoiled = one(Stream::Activity, b"{\"\xff\":\"\xfe\",\"a\":{\"secret\":\"s\xff3\"}}");
    assert_eq!(spoiled.text, b"{\"\xff\":\"\xfe\",\"a\":{\"secret\":\"[redacted]\"}}".as_slice());
    assert!(!one(Stream::Activity, br#"{"secret":null,"secrets":"kept"}"#).redacted);
}

#[test]
fn an_invalid_answer_is_an_error_and_never_an_empty_page() {
    for body in [
        "",
        " \n",
        "null",
        "[]",
        "5",
        "\"events\"",
        "{}",
        r#"{"events":null}"#,
        r#"{"events":{}}"#,
        r#"{"events":""}"#,
        r#"{"events":5}"#,
        r#"{"Events":[]}"#,
        r#"{"deviceEvents":[]}"#,
        r#"{"x":{"events":[]}}"#,
        r#"{"events":[],"events":[]}"#,
        r#"{"events":[]"#,
        r#"{"events":[{"id":"a"},"#,
        r#"{"events":[]} trailing"#,
        r#"{"events":[{]}"#,
        r#"{"events":[],}"#,
        "<html>s3cret page</html>",
        "upstream connect error s3cret",
        r#"{"events":"s3cret"}"#,
    ] {
        for error in [
            wire::page(Stream::Activity, None, &Bytes::from(body)).unwrap_err(),
            wire::billing(&Bytes::from(body)).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(!error.is_empty() && !error.contains("s3cret"), "{body:?} gave {error:?}");
        }
    }
    let other = Bytes::from(r#"{"events":[]}"#);
    assert!(wire::page(Stream::Connections, None, &other).is_err());
    assert!(wire::page(Stream::Connections, Some(&"d".into()), &other).unwrap().events.is_empty());
    let invalid = Bytes::from_static(b"{\"events\":[]}\xff");
    assert!(wire::page(Stream::Activity, None, &invalid).is_err());
}

#[test]
fn paging_claims_of_a_wrong_type_are_ignored() {
    for (claims, has_more, next_offset) in [
        (r#""hasMoreEvents":true,"nextOffset":1001"#, Some(true), Some(1001)),
        (r#""hasMoreEvents":false,"nextOffset":-5"#, Some(false), Some(-5)),
        (r#""hasMoreEvents":null,"nextOffset":null"#, None, None),
        (r#""hasMoreEvents":"true","nextOffset":"7""#, None, None),
        (r#""hasMoreEvents":1,"nextOffset":7.0"#, None, None),
        (r#""hasMoreEvents":{},"nextOffset":99999999999999999999"#, None, None),
        (r#""other":0"#, None, None),
    ] {
        let body = Bytes::from(format!(r#"{{{claims},"events":[]}}"#));
        let page = wire::page(Stream::Activity, None, &body).unwrap();
        assert_eq!((page.has_more, page.next_offset), (has_more, next_offset), "{claims}");
    }
}

#[test]
fn teams_devices_and_a_team_are_read_for_what_is_needed() {
    assert_eq!(wire::teams(br#"["a","b"]"#).unwrap(), ["a".into(), "b".into()]);
    for body in ["", "null", "{}", r#"["a",5]"#, r#"["a",null]"#, "<html>", "\"a\"", r#"["a""#] {
        assert!(wire::teams(body.as_bytes()).is_err(), "{body}");
    }
    for body in ["", "null", "{}", "[]", r#"{"devices":null}"#, r#"{"devices":[{}]}"#, r#"{"devices":["a"]}"#] {
        assert!(wire::devices(body.as_bytes()).is_err(), "{body}");
    }
    assert_eq!(wire::devices(br#"{"devices":[]}"#).unwrap().ids, []);
    for (span, seconds) in [
        ("2592000", Some(2_592_000)),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("\"60\"", None),
        ("null", None),
        ("99999999999999", None),
        ("99999999999999999999999", None),
    ] {
        let body = format!(r#"{{"planFeatures":{{"deviceEventsMaxRetrievalDuration":{span}}}}}"#);
        assert_eq!(wire::team(body.as_bytes()).unwrap().plan_span.map(|s| s.as_secs()), seconds, "{span}");
    }
    for (body, name) in [("{}", None), (r#"{"name":5,"planFeatures":[]}"#, None), (r#"{"name":"ü"}"#, Some("ü"))] {
        let team = wire::team(body.as_bytes()).unwrap();
        assert_eq!((team.name.as_deref(), team.plan_span), (name, None), "{body}");
    }
    assert!(["", "[]", "null", "<html>"].into_iter().all(|body| wire::team(body.as_bytes()).is_err()));
}

/// JSON of any shape, in which no key is named `secret`.
fn json_text() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", " ", "\t", "\r\n"]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        Just("-1.50e+400".to_owned()),
        Just(r#""secret""#.to_owned()),
        Just(r#""\ud800\u0073""#.to_owned()),
        any::<String>().prop_map(|s| serde_json::to_string(&s).unwrap()),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let key = prop_oneof![Just("secrets".to_owned()), Just("s\\u0065".to_owned()), "[a-z ]{0,5}"];
        let pair = (key, space.clone(), inner.clone()).prop_map(|(k, s, v)| format!("\"{k}\"{s}:{s}{v}"));
        prop_oneof![
            (prop::collection::vec(inner, 0..5), space.clone()).prop_map(|(v, s)| format!("[{s}{}{s}]", v.join(","))),
            (prop::collection::vec(pair, 0..5), space.clone()).prop_map(|(v, s)| format!("{{{s}{}{s}}}", v.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = Bytes::from(body);
        let _ = (wire::page(Stream::Activity, None, &body), wire::teams(&body), wire::team(&body), wire::devices(&body));
    }

    #[test]
    fn any_bytes_in_a_string_are_kept(inside in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'u')], 0..60)) {
        // A quote would end the string, and a final backslash would keep it open.
        let mut inside: Vec<u8> = inside.into_iter().filter(|byte| *byte != b'"').collect();
        inside.push(b'.');
        let event = [b"{\"timestamp\":1700000000,\"x\":\"".as_slice(), &inside, b"\"}"].concat();
        let read = one(Stream::Billing, &event);
        prop_assert_eq!(read.text, event);
        prop_assert_eq!(read.time, ServedTime::At(Instant::from_seconds(1_700_000_000)));
    }

    #[test]
    fn the_slices_are_the_events_as_served(list in prop::collection::vec(json_text(), 0..8), gap in "[ \n]{0,2}") {
        let body = format!("{{\"a\":1,\"events\":[{gap}{}{gap}]}}", list.join(&format!("{gap},{gap}")));
        let read = events(Stream::Activity, body);
        let texts: Vec<&[u8]> = read.iter().map(|event| event.text.as_ref()).collect();
        prop_assert_eq!(texts, list.iter().map(String::as_bytes).collect::<Vec<_>>());
        prop_assert!(read.iter().all(|event| !event.redacted));
    }

    #[test]
    fn redaction_leaves_everything_else(before in json_text(), after in json_text(), secret in "[a-z0-9]{1,9}") {
        let text = |s: &str| format!(r#"{{"a":{before}, "b":[{{"secret" : "{s}"}}] ,"c":{after}}}"#);
        let read = one(Stream::Activity, text(&secret).as_bytes());
        prop_assert!(read.redacted);
        prop_assert_eq!(read.text, text("[redacted]"));
    }
}
