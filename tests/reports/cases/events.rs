//! Revisions, and events without the usual details.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::{Body, Draft, Finding, FindingKind, WindowRecord, WindowRows, WindowState};
use annals::model::{ConnectionDetail, Detail, EventRow, Range, Stream, WindowGrid};
use serde_json::{Value, json};

use crate::golden::answers::Question;
use crate::reporting::{DAY, HOUR, Place, at};

use super::{
    ESTABLISHED, FAILED, NOW, SECOND, SUCCEEDED, asked, column, commit, commit_events, commit_twice, connection, event,
    rows, unnamed,
};

/// Two peers are new, nobody shares an identity, and no failures come from two addresses.
fn finds_no_second_place(place: &Place) {
    assert_eq!(column(place, &asked("R15"), "what"), ["new peer", "new peer"]);
    assert_eq!(rows(place, &asked("R17")), Vec::<Value>::new());
    let distributed = Question { params: &[("distributed_ips", "2")], ..asked("R02") };
    assert_eq!(column(place, &distributed, "pattern"), [Value::Null, Value::Null]);
}

#[test]
fn a_revision_is_no_second_event() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let mut events = Vec::new();
    for nth in 0..6 {
        events.push(connection(&format!("f{nth}"), FAILED, time.plus(SECOND * nth), |_| ()));
    }
    for (nth, kind) in [FAILED, FAILED, SUCCEEDED].into_iter().enumerate() {
        let change = |detail: &mut ConnectionDetail| {
            detail.device_id = Some("d2".into());
            detail.peer_email = Some("bob@own.example".into());
            detail.peer_ip = Some("203.0.113.7".into());
        };
        events.push(connection(
            &format!("g{nth}"),
            kind,
            time.plus(HOUR + SECOND * u32::try_from(nth).unwrap()),
            change,
        ));
    }
    commit_twice(&place, Stream::Connections, &events);
    let seats = Detail::Billing { payload: Some("{\"count\":7}".into()) };
    commit_twice(&place, Stream::Billing, &[event("b1", "userCountUpdatedEvent", time, seats)]);
    let found: Vec<(Value, Value)> =
        rows(&place, &asked("R02")).iter().map(|row| (row["failures"].clone(), row["pattern"].clone())).collect();
    assert_eq!(found, [(json!(6), Value::Null), (json!(2), Value::Null)]);
    assert_eq!(rows(&place, &asked("R03")), Vec::<Value>::new());
    assert_eq!(column(&place, &asked("R22"), "event_id"), ["b1"]);
}

#[test]
fn a_payment_that_succeeds_in_the_same_second_is_recovered() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let payment = |id, kind| event(id, kind, time, Detail::Billing { payload: Some("{}".into()) });
    let entries = vec![payment("p1", "paymentFailedEvent"), payment("p2", "paymentSucceededEvent")];
    commit_events(&place, Stream::Billing, entries);
    assert_eq!(column(&place, &asked("R22"), "payment"), ["recovered", "succeeded"]);
}

/// In Vienna's time, the period ends inside a UTC day. That day is read in windows of an hour.
#[test]
fn the_last_utc_day_of_a_local_period_is_judged_as_a_whole() {
    let (place, grid) = (Place::empty(), WindowGrid::new(HOUR));
    let (mut draft, mut time) = (Draft::default(), at("2026-10-20T00:00:00Z"));
    while time < at("2026-10-21T00:00:00Z") {
        let window = grid.window_of(time);
        draft.body.windows.push(WindowRecord {
            state: WindowState::Settled,
            reads: 2,
            requests: 4,
            settled_at: Some(window.end.plus(HOUR)),
            ..WindowRecord::new(Stream::Connections, window)
        });
        time = window.end;
    }
    commit(&place, draft, at(NOW));
    let period = ("2026-10-19T22:00:00Z", "2026-10-20T22:00:00Z");
    let question = Question { period, zone: "Europe/Vienna", ..Question::usual("R23") };
    assert_eq!(column(&place, &question, "state"), ["never read", "never read", "read whole"]);
}

/// The last of five windows of seven days is not settled, and it ends after the period.
#[test]
fn a_window_of_several_days_covers_each_of_them() {
    let (place, grid) = (Place::empty(), WindowGrid::new(DAY * 7));
    let (mut draft, mut time) = (Draft::default(), at("2026-10-12T00:00:00Z"));
    while time < at("2026-11-09T00:00:00Z") {
        let window = grid.window_of(time);
        let is_settled = window.end < at(NOW);
        draft.body.windows.push(WindowRecord {
            state: if is_settled { WindowState::Settled } else { WindowState::Provisional },
            reads: 2,
            requests: 4,
            settled_at: is_settled.then(|| window.end.plus(HOUR)),
            ..WindowRecord::new(Stream::Connections, window)
        });
        time = window.end;
    }
    commit(&place, draft, at(NOW));
    let mut days = rows(&place, &asked("R23"));
    days.retain(|day| day["source"] == "connections");
    let number = |state: &str| days.iter().filter(|day| day["state"] == state).count();
    assert_eq!((number("read whole"), number("provisional"), days.len()), (24, 4, 28));
    for day in &days {
        assert_eq!([&day["severity"], &day["events"], &day["polls"]], [&Value::Null; 3], "{day}");
    }
}

#[test]
fn a_computer_without_an_id_is_known_by_its_name() {
    const HOSTS: [&str; 5] = ["H0", "H1", "H2", "H3", "H4"];
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let mut events = Vec::new();
    for (host, hour) in HOSTS.into_iter().zip(0..) {
        let time = time.plus(HOUR * hour);
        events.push(connection(&format!("f{host}"), FAILED, time, unnamed(host)));
        let account = |detail: &mut ConnectionDetail| {
            unnamed(host)(detail);
            detail.peer_email = Some(format!("{host}@own.example").into());
            detail.local_user_name = Some("root".into());
        };
        events.push(connection(&format!("e{host}"), ESTABLISHED, time.plus(SECOND), account));
    }
    for (nth, kind) in [FAILED, FAILED, FAILED, SUCCEEDED].into_iter().enumerate() {
        let time = time.plus(DAY * 3 + SECOND * u32::try_from(nth).unwrap());
        events.push(connection(&format!("g{nth}"), kind, time, unnamed("H9")));
    }
    commit_events(&place, Stream::Connections, events);
    let days = column(&place, &asked("R00"), "sessions");
    // Five failures and five sessions on five computers, and four connections to one.
    assert_eq!(days.iter().filter(|sessions| **sessions == 1).count(), 10, "{days:?}");
    assert_eq!(days.iter().filter(|sessions| **sessions == 4).count(), 1, "{days:?}");
    let patterns = column(&place, &asked("R02"), "pattern");
    assert_eq!(patterns.iter().filter(|pattern| **pattern == "spray").count(), 5, "{patterns:?}");
    assert_eq!(column(&place, &asked("R03"), "computer_host_name"), ["H9"]);
    let shared = column(&place, &asked("R17"), "what");
    assert!(shared.iter().all(|what| *what != "one account of several peers"), "{shared:?}");
}

#[test]
fn a_path_that_names_no_source_or_no_tunnel_is_unmanaged() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let sessions = vec![
        connection("c1", ESTABLISHED, time, |_| ()),
        connection("c2", ESTABLISHED, time, |detail| detail.source_type = None),
        connection("c3", ESTABLISHED, time, |detail| detail.tunnel_id = None),
    ];
    commit_events(&place, Stream::Connections, sessions);
    let found: Vec<(Value, Value)> =
        rows(&place, &asked("R16")).iter().map(|row| (row["source_type"].clone(), row["tunnel_id"].clone())).collect();
    assert_eq!(found, [(json!("cloud"), Value::Null), (Value::Null, json!("fluid"))]);
}

#[test]
fn a_request_that_reached_nothing_does_not_make_a_path_known() {
    let place = Place::empty();
    let direct = |detail: &mut ConnectionDetail| detail.source_type = Some("directip".into());
    let events = vec![
        connection("c1", "incomingConnectionRequest", at("2026-10-05T10:00:00Z"), direct),
        connection("c2", ESTABLISHED, at("2026-10-20T10:00:00Z"), direct),
    ];
    commit_events(&place, Stream::Connections, events);
    let found = rows(&place, &asked("R16"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["is_new"], &found[0]["severity"]), (&json!(true), &json!("medium")));
}

/// As `annals erase`, the dossier finds an address in JSON text inside a string, and an address with white space around it.
#[test]
fn the_dossier_finds_an_address_inside_json_text_and_beside_white_space() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let inner = json!({"user": "bob@own.example"}).to_string();
    let deeper = json!({"text": inner}).to_string();
    let texts = [json!({"s": inner}), json!({"s": deeper}), json!({"u": "bob@own.example\n"}), json!({"s": "bob"})];
    let events = texts.iter().zip(0..).map(|(text, nth)| {
        let detail = Detail::Activity { token_info: None, payload: Some(text.to_string()) };
        let event = event(&format!("a{nth}"), "teamThingEvent", time.plus(SECOND * nth), detail);
        EventRow { raw: text.to_string().into(), ..event }
    });
    commit_events(&place, Stream::Activity, events.collect());
    let spaced = |detail: &mut ConnectionDetail| detail.peer_email = Some("\u{a0}Bob@own.example\t".into());
    commit_events(&place, Stream::Connections, vec![connection("c1", ESTABLISHED, time.plus(HOUR), spaced)]);
    let bob = Question { params: &[("subject", "bob@own.example")], ..asked("R21") };
    assert_eq!(column(&place, &bob, "id"), ["a0", "a1", "a2", "c1"]);
}

#[test]
fn the_dossier_finds_each_spelling_that_an_erasure_finds() {
    const CASES: [(&str, &str); 5] = [
        ("192.0.2.7", "::FFFF:192.0.2.7"),
        ("2001:db8::1", "2001:0DB8:0:0::1"),
        ("fe80::7", "FE80::7%en0"),
        ("νικος@own.example", "ΝΙΚΟΣ@own.example"),
        ("zo\u{eb}@own.example", " Zoe\u{308}@own.example"),
    ];
    let place = Place::empty();
    let events = CASES.iter().zip(0..).map(|((_, text), nth)| {
        let time = at("2026-10-20T10:00:00Z").plus(SECOND * nth);
        connection(&format!("c{nth}"), ESTABLISHED, time, |detail| detail.peer_email = Some((*text).into()))
    });
    commit_events(&place, Stream::Connections, events.collect());
    for ((subject, text), nth) in CASES.into_iter().zip(0..) {
        let question = Question { params: Box::leak(Box::new([("subject", subject)])), ..asked("R21") };
        assert_eq!(column(&place, &question, "id"), [format!("c{nth}")], "{subject}: {text}");
    }
}

#[test]
fn an_empty_address_is_no_person() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let mut events = Vec::new();
    for (ip, nth) in ["203.0.113.1", "203.0.113.2", "203.0.113.3"].into_iter().zip(0..) {
        let empty = |detail: &mut ConnectionDetail| {
            detail.peer_email = Some(" ".into());
            detail.peer_ip = Some(ip.into());
        };
        events.push(connection(&format!("f{nth}"), FAILED, time.plus(SECOND * nth), empty));
    }
    commit_events(&place, Stream::Connections, events);
    let burst = Question { params: &[("burst_count", "3")], ..asked("R02") };
    assert_eq!(column(&place, &burst, "pattern"), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(rows(&place, &asked("R15")), Vec::<Value>::new());
}

#[test]
fn an_empty_ip_address_is_no_place() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let empty = |detail: &mut ConnectionDetail| detail.peer_ip = Some(" ".into());
    let stranger = |detail: &mut ConnectionDetail| {
        empty(detail);
        detail.peer_email = Some("bob@own.example".into());
    };
    let events = vec![
        connection("c1", ESTABLISHED, time, |_| ()),
        connection("c2", ESTABLISHED, time, empty),
        connection("f1", FAILED, time.plus(HOUR * 5), |_| ()),
        connection("f2", FAILED, time.plus(HOUR * 5 + SECOND), empty),
        connection("s1", SUCCEEDED, time.plus(HOUR * 5 + SECOND * 2), stranger),
    ];
    commit_events(&place, Stream::Connections, events);
    finds_no_second_place(&place);
    let guessed = Question { params: &[("min_failures", "1")], ..asked("R03") };
    assert_eq!(rows(&place, &guessed), Vec::<Value>::new());
}

#[test]
fn a_session_of_one_event_overlaps_a_session_from_another_address() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let same = |detail: &mut ConnectionDetail| detail.connection_id = Some("c1".into());
    let elsewhere = |detail: &mut ConnectionDetail| detail.peer_ip = Some("198.51.100.4".into());
    let events = vec![
        connection("c1", ESTABLISHED, time, |_| ()),
        connection("c1-end", "connectionClosedEvent", time.plus(HOUR * 2), same),
        connection("c2", ESTABLISHED, time.plus(HOUR), elsewhere),
    ];
    commit_events(&place, Stream::Connections, events);
    assert_eq!(column(&place, &asked("R17"), "shared_by_count"), [json!(2)]);
}

/// A failure that a later revision turns into another event.
#[test]
fn a_revision_of_another_type_replaces_the_failure() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let failure = connection("f1", FAILED, time, |_| ());
    let revised = EventRow {
        revision: 2,
        event_type: ESTABLISHED.into(),
        first_seen_at: time.plus(HOUR * 2),
        raw: "{\"revision\":2}".into(),
        ..failure.clone()
    };
    let success = connection("s1", SUCCEEDED, time.plus(SECOND), |_| ());
    let window = WindowGrid::new(DAY).window_of(time);
    for events in [vec![failure, success], vec![revised]] {
        let rows = vec![WindowRows::new(Stream::Connections, window, events, false)];
        commit(&place, Draft { rows, ..Draft::default() }, at(NOW));
    }
    assert_eq!(rows(&place, &asked("R02")), Vec::<Value>::new());
    let one = Question { params: &[("min_failures", "1")], ..asked("R03") };
    assert_eq!(rows(&place, &one), Vec::<Value>::new());
}

#[test]
fn an_id_that_repeats_on_another_connection_is_another_event() {
    let place = Place::empty();
    let mut events = Vec::new();
    for (name, day) in [("c1", "20"), ("c2", "21")] {
        let time = at(&format!("2026-10-{day}T10:00:00Z"));
        let of = |detail: &mut ConnectionDetail| detail.connection_id = Some(name.into());
        events.push(connection("0", FAILED, time, of));
        events.push(connection("1", SUCCEEDED, time.plus(SECOND), of));
    }
    commit_events(&place, Stream::Connections, events);
    assert_eq!(column(&place, &asked("R02"), "failures"), [1, 1]);
    let one = Question { params: &[("min_failures", "1")], ..asked("R03") };
    assert_eq!(column(&place, &one, "failures"), [1, 1]);
}

#[test]
fn a_number_of_seats_is_not_guessed() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let cases = [
        ("{\"count\":7}", json!(7)),
        ("{\"userCount\":10.0}", json!(10)),
        ("{\"userCount\":7.5}", Value::Null),
        ("{\"userCount\":10.0,\"planVersion\":3}", Value::Null),
        ("{\"from\":\"4\",\"to\":\"7\",\"revision\":2}", json!(7)),
        ("{\"counts\":[5,6]}", Value::Null),
        ("no JSON: 5", Value::Null),
    ];
    let entries = cases.iter().zip(0..).map(|((payload, _), nth)| {
        let detail = Detail::Billing { payload: Some((*payload).to_owned()) };
        event(&format!("b{nth}"), "userCountUpdatedEvent", time.plus(SECOND * nth), detail)
    });
    commit_events(&place, Stream::Billing, entries.collect());
    assert_eq!(column(&place, &asked("R22"), "seats"), cases.map(|(_, seats)| seats));
}

#[test]
fn billing_entries_that_newer_ones_hide_are_lost_permanently() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let detail = Detail::Billing { payload: Some("{}".into()) };
    commit_events(&place, Stream::Billing, vec![event("b1", "paymentSucceededEvent", time, detail)]);
    let reason = "all ten shown entries are new: entries before them may be lost";
    let gap = Finding::new(Some(Stream::Billing), FindingKind::Gap, "billing", reason, at(NOW));
    let gap = gap.over(Range::new(time, time.plus(HOUR)));
    commit(&place, Draft::from(Body { findings: vec![gap], ..Body::default() }), at(NOW));
    let days = rows(&place, &asked("R23"));
    let day = days.iter().find(|day| day["gaps"] == 1).unwrap();
    let found = ["source", "is_permanent", "severity"].map(|name| day[name].clone());
    assert_eq!(found, [json!("billing"), json!(true), json!("critical")]);
}

#[test]
fn two_spellings_of_an_address_are_one_place() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let same = |detail: &mut ConnectionDetail| detail.connection_id = Some("c1".into());
    let mapped = |detail: &mut ConnectionDetail| detail.peer_ip = Some("::FFFF:203.0.113.9".into());
    let bob = |detail: &mut ConnectionDetail| {
        mapped(detail);
        detail.peer_email = Some("bob@own.example".into());
    };
    let events = vec![
        connection("c1", ESTABLISHED, time, |_| ()),
        connection("c1-end", "connectionClosedEvent", time.plus(HOUR * 2), same),
        connection("c2", ESTABLISHED, time.plus(HOUR), mapped),
        connection("f1", FAILED, time.plus(HOUR * 5), |_| ()),
        connection("f2", FAILED, time.plus(HOUR * 5 + SECOND), mapped),
        connection("s1", SUCCEEDED, time.plus(HOUR * 5 + SECOND * 2), bob),
    ];
    commit_events(&place, Stream::Connections, events);
    finds_no_second_place(&place);
    let guessed = Question { params: &[("min_failures", "2")], ..asked("R03") };
    assert_eq!(column(&place, &guessed, "failures"), [2]);
}

#[test]
fn a_network_is_the_same_in_each_spelling_of_its_addresses() {
    let place = Place::empty();
    let addresses =
        ["203.0.113.9", "::ffff:203.0.113.80", "::FFFF:198.51.100.4", "2001:db8::1", "2001:0db8:0:0:0:0:0:1", "::1"];
    let events = addresses.iter().zip(10..).map(|(address, day)| {
        let from = |detail: &mut ConnectionDetail| detail.peer_ip = Some((*address).into());
        connection(&format!("c{day}"), ESTABLISHED, at(&format!("2026-10-{}T10:00:00Z", day + 3)), from)
    });
    commit_events(&place, Stream::Connections, events.collect());
    let found: Vec<String> = rows(&place, &asked("R15"))
        .iter()
        .map(|row| ["what", "network"].map(|name| row[name].as_str().unwrap().to_owned()).join(" "))
        .collect();
    let expected = [
        "new peer 203.0.113",
        "new address 203.0.113",
        "new network 198.51.100",
        "new network 2001:db8:0",
        "new network 0:0:0",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_computer_without_an_id_is_new_by_its_host_name() {
    let place = Place::empty();
    let events = [("c1", "HOST-1"), ("c2", "HOST-1"), ("c3", "HOST-2")]
        .into_iter()
        .zip(13..)
        .map(|((id, host), day)| connection(id, ESTABLISHED, at(&format!("2026-10-{day}T10:00:00Z")), unnamed(host)));
    commit_events(&place, Stream::Connections, events.collect());
    assert_eq!(column(&place, &asked("R15"), "what"), ["new peer", "new computer"]);
}
