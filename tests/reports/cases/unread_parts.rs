//! Parts of the roster that nobody read in time, and facts that the archive learned only after the period.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::{Body, Draft, Finding, FindingKind, StreamRecord, WindowRecord, WindowState};
use annals::model::{Instant, RejectRow, Stream, WindowGrid};
use serde_json::{Value, json};

use crate::golden::answers::Question;
use crate::reporting::{DAY, HOUR, Place, at};

use super::{
    ESTABLISHED, NOW, TEAM, asked, column, commit, commit_events, connection, people, read_roster, rows, user,
};

/// The answers of a token that may not see groups.
fn without_groups(users: &Value, computers: &Value) -> Value {
    let mut served = people(users, &json!({}), computers);
    served["team"] = json!({"id": TEAM, "name": "Acme", "users": {}, "devices": {}});
    served
}

/// Ann's access lies in a group: without the group's first reading, its absence at the beginning means nothing.
#[test]
fn drift_says_that_it_compares_only_direct_access() {
    let users = json!([user("u1", "ann@own.example")]);
    let computers = json!([{"id": "d1", "name": "PC-1", "groups": ["g1"]}]);
    let groups = json!({"g1": {"name": "G", "users": ["u1"], "devices": ["d1"]}});
    let whole = people(&users, &groups, &computers);
    for (first, second, expected) in [
        (without_groups(&users, &computers), &whole, vec!["groups not read"]),
        (whole.clone(), &without_groups(&users, &computers), vec!["groups not read"]),
        (whole.clone(), &whole, vec![]),
    ] {
        let place = Place::empty();
        read_roster(&place, "2026-10-10T03:00:00Z", &first);
        read_roster(&place, "2026-10-20T03:00:00Z", second);
        assert_eq!(column(&place, &asked("R08"), "change"), expected, "{first}");
    }
}

#[test]
fn what_remains_of_a_leaver_is_empty_where_nobody_read_it() {
    let place = Place::empty();
    let (ann, bob) = (user("u1", "ann@own.example"), user("u2", "bob@own.example"));
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u2"]}]);
    for (day, users) in [(13, json!([ann, bob])), (20, json!([ann]))] {
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &without_groups(&users, &computers));
    }
    for (name, expected) in [
        ("residual_grants", json!(1)),
        ("residual_groups", Value::Null),
        ("live_tokens", Value::Null),
        ("severity", json!("high")),
    ] {
        assert_eq!(column(&place, &asked("R05"), name), [expected], "{name}");
    }
}

/// The same report, run before and after the person lost the role, says the same about the period.
#[test]
fn a_role_that_ended_after_the_period_does_not_excuse_a_missing_second_factor() {
    let place = Place::empty();
    for (day, role) in [(13, "admin"), (20, "user")] {
        let users = json!([{"id": "u1", "email": "ann@own.example", "role": role, "remoteAccess": "enabled",
            "totpEnabled": false, "authProviders": ["password"]}]);
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
    }
    for (to, expected) in [("2026-10-15T00:00:00Z", json!("high")), ("2026-10-25T00:00:00Z", Value::Null)] {
        let question = Question { period: ("2026-10-12T00:00:00Z", to), ..asked("R09") };
        assert_eq!(column(&place, &question, "severity"), [expected], "{to}");
    }
}

/// The token may read connections only.
#[test]
fn the_health_of_the_collection_names_streams_that_nobody_read() {
    let place = Place::empty();
    let session = connection("c1", ESTABLISHED, at("2026-10-20T10:00:00Z"), |_| ());
    commit_events(&place, Stream::Connections, vec![session]);
    let never_read = || -> Vec<(Value, Value)> {
        let found = rows(&place, &asked("R23")).into_iter().filter(|row| row["state"] == "never read");
        found.map(|row| (row["source"].clone(), row["severity"].clone())).collect()
    };
    assert_eq!(never_read(), ["activity", "billing"].map(|source| (json!(source), json!("high"))));
    let (stream, kind) = (Some(Stream::Billing), FindingKind::ArchiveBegins);
    let begins = Finding::new(stream, kind, "billing", "the archive holds the whole billing history", at(NOW));
    commit(&place, Draft::from(Body { findings: vec![begins], ..Body::default() }), at(NOW));
    assert_eq!(never_read(), [(json!("activity"), json!("high"))]);
}

/// Four windows of an hour are read, and the rest of the day is not. Until the rest is overdue, its absence is no detection.
#[test]
fn a_day_that_is_read_in_part_is_never_called_whole() {
    let place = Place::empty();
    let windows = (0..4).map(|hour| settled(WindowGrid::new(HOUR), at("2026-10-20T00:00:00Z").plus(HOUR * hour)));
    commit(&place, Draft::from(Body { windows: windows.collect(), ..Body::default() }), at(NOW));
    for (params, severity) in [(&[][..], json!("high")), (&[("unread_after", "3660d")], Value::Null)] {
        let period = ("2026-10-20T00:00:00Z", "2026-10-21T00:00:00Z");
        let days = rows(&place, &Question { period, params, ..asked("R23") });
        let day = days.iter().find(|day| day["source"] == "connections").unwrap();
        assert_eq!((&day["state"], &day["severity"]), (&json!("read in part"), &severity), "{params:?}");
    }
}

/// The plan's span began in the afternoon: the service showed nothing of the first window's morning.
#[test]
fn the_part_of_the_first_window_that_the_span_does_not_reach_is_not_covered() {
    let (place, stream) = (Place::empty(), Stream::Connections);
    let (first, begins) = (at("2026-10-20T00:00:00Z"), at("2026-10-20T14:00:00Z"));
    let windows = vec![settled(WindowGrid::new(DAY), first), settled(WindowGrid::new(DAY), first.plus(DAY))];
    let streams = vec![(stream, StreamRecord { begins: Some(first), ..StreamRecord::default() })];
    let found = Finding::new(Some(stream), FindingKind::ArchiveBegins, "connections", "the plan's span", at(NOW));
    let findings = vec![Finding { from: Some(begins), ..found }];
    commit(&place, Draft::from(Body { windows, streams, findings, ..Body::default() }), at(NOW));
    let period = ("2026-10-20T00:00:00Z", "2026-10-22T00:00:00Z");
    let mut days = rows(&place, &Question { period, ..asked("R23") });
    days.retain(|day| day["source"] == "connections");
    let found: Vec<_> = days.iter().map(|day| (&day["state"], &day["severity"])).collect();
    assert_eq!(found, [(&json!("read in part"), &Value::Null), (&json!("read whole"), &Value::Null)]);
    let run = place.run(&["report", "run", "R23", "--from", period.0, "--to", period.1, "--format", "json"]);
    let covered = run.json()["about"]["coverage"][1].take();
    assert_eq!(covered["before_archive"], json!({"from": period.0, "to": "2026-10-20T14:00:00Z"}), "{covered}");
    assert_eq!(covered["complete"], false);
    let status = place.run(&["status", "--json"]).json();
    assert_eq!(status["teams"][0]["streams"][1]["begins"], "2026-10-20T14:00:00Z", "{status}");
}

fn settled(grid: WindowGrid, time: Instant) -> WindowRecord {
    let window = grid.window_of(time);
    let settled_at = Some(window.end.plus(HOUR));
    WindowRecord { state: WindowState::Settled, settled_at, ..WindowRecord::new(Stream::Connections, window) }
}

/// `annals erase` finds these rows, too.
#[test]
fn the_dossier_finds_words_in_quarantined_events_that_are_not_json() {
    let place = Place::empty();
    let reject = |id: &str, raw: &str| RejectRow {
        team_id: TEAM.into(),
        stream: Stream::Connections,
        event_id: id.into(),
        time: Some(at("2026-10-20T10:00:00Z")),
        reason: "not_json".to_owned(),
        detail: "the event's text is not JSON".to_owned(),
        first_seen_at: at("2026-10-20T11:00:00Z"),
        redacted: false,
        raw: raw.to_owned().into(),
        erased: None,
    };
    let rejects = vec![
        reject("x1", "{\"bad\":\"\\q\",\"note\":\"call <Zoe\u{308}@own.example> from 2001:0DB8:0::7, now\"}"),
        reject("x2", "{\"note\":\"call zo\u{eb}@own.example now\"}"),
        reject("x3", "{\"bad\":\"\\q\",\"note\":\"call azo\u{eb}@own.example.org from 2001:db8::77\"}"),
    ];
    commit(&place, Draft { rejects, ..Draft::default() }, at(NOW));
    for (params, expected) in [
        (&[("subject", "zo\u{eb}@own.example")], vec!["x1"]),
        (&[("subject", "2001:db8::7")], vec!["x1"]),
        (&[("subject", "q")], vec!["x1", "x3"]),
        (&[("subject", "own.example.org")], vec!["x3"]),
        (&[("subject", "nobody")], vec![]),
    ] {
        assert_eq!(column(&place, &Question { params, ..asked("R21") }, "id"), expected, "{params:?}");
    }
}
