//! Reports over months that a retention policy removed.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::{Body, Draft, Hold, HoldAdded, HoldRecord, HoldScope};
use annals::model::{ConnectionDetail, Retained, Retention, Stream, TeamId};
use serde_json::{Value, json};

use crate::golden::answers::Question;
use crate::reporting::{Place, at};

use super::{
    ESTABLISHED, NOW, TEAM, activity, asked, column, commit, commit_events, connection, people, read_roster, rows, user,
};

/// Expires all months that are 30 days old.
fn expire(place: &Place, retained: Retained) {
    let mut writer = place.opened().writer(&TeamId::from(TEAM)).unwrap();
    let classes = Retention([(retained, "30d".parse().unwrap())].into());
    let holds: Vec<Hold> = writer.state().holds.values().cloned().collect();
    let mut due = writer.state().due(&classes, &holds, at(NOW));
    due.retain(|month| month.kept_by.is_none());
    assert!(!due.is_empty());
    let _ = writer.expire(&due, at(NOW), at(NOW)).unwrap();
}

fn over(report: &'static str, from: &'static str, to: &'static str) -> Question {
    Question { period: (from, to), ..asked(report) }
}

#[test]
fn the_first_reading_that_stays_is_the_first_one_of_all() {
    const FROM: &str = "2026-08-01T00:00:00Z";
    const TO: &str = "2026-11-09T00:00:00Z";
    const MIDDLE: &str = "2026-08-20T00:00:00Z";
    let place = Place::empty();
    let mut ann = user("u1", "ann@own.example");
    ann["role"] = json!("admin");
    let users = json!([ann, user("u2", "bob@own.example")]);
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u1", "u2"]}]);
    for day in ["08-01", "08-15", "09-02", "10-02", "10-20"] {
        read_roster(&place, &format!("2026-{day}T03:00:00Z"), &people(&users, &json!({}), &computers));
    }
    let bob = |detail: &mut ConnectionDetail| detail.peer_email = Some("bob@own.example".into());
    commit_events(&place, Stream::Connections, vec![connection("c1", ESTABLISHED, at("2026-08-21T10:00:00Z"), bob)]);
    let noted = activity("a1", "teamUserTagNotedEvent", "2026-10-01T10:00:00Z", &json!({"userID": "u2"}));
    commit_events(&place, Stream::Activity, vec![noted]);
    let before = column(&place, &over("R09", FROM, TO), "since_local");
    assert_eq!(before, ["2026-08-01T03:00:00"]);

    expire(&place, Retained::Inventory);
    let found = rows(&place, &over("R04", FROM, TO));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["standing"], &found[0]["severity"]), (&json!("roster not yet read"), &Value::Null));
    assert_eq!(rows(&place, &over("R06", FROM, TO)), Vec::<Value>::new());
    assert_eq!(column(&place, &over("R20", FROM, TO), "confirmed_by"), [Value::Null]);
    let found = rows(&place, &over("R09", FROM, TO));
    assert_eq!(
        (&found[0]["since_known"], &found[0]["since_local"]),
        (&json!("at or before"), &json!("2026-10-02T03:00:00"))
    );
    for (question, name) in [
        (over("R07", FROM, MIDDLE), "via"),
        (over("R08", MIDDLE, TO), "change"),
        (over("R10", FROM, MIDDLE), "verdict"),
        (over("R11", FROM, MIDDLE), "state"),
    ] {
        assert_eq!(column(&place, &question, name), ["not yet read"], "{}", question.report);
    }
}

/// A hold keeps August, so only September expires: in that month Ann becomes an administrator, and Bob leaves.
#[test]
fn a_month_that_a_hold_keeps_says_nothing_of_the_time_after_an_expired_month() {
    let place = Place::empty();
    let ann = |role: &str| {
        let mut ann = user("u1", "ann@own.example");
        ann["role"] = json!(role);
        ann
    };
    for (day, users) in [
        ("08-10", json!([ann("user"), user("u2", "bob@own.example")])),
        ("09-10", json!([ann("admin")])),
        ("10-02", json!([ann("admin")])),
    ] {
        read_roster(&place, &format!("2026-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
    }
    let hold = HoldRecord::Add(HoldAdded {
        id: "CASE-7".to_owned(),
        reason: "a case".to_owned(),
        by: None,
        at: at(NOW),
        from: Some(at("2026-08-01T00:00:00Z")),
        to: Some(at("2026-09-01T00:00:00Z")),
        scope: HoldScope::Team,
        subject: None,
    });
    commit(&place, Draft::from(Body { holds: vec![hold], ..Body::default() }), at(NOW));
    expire(&place, Retained::Inventory);
    let admins = rows(&place, &asked("R09"));
    assert_eq!(admins.len(), 1, "{admins:?}");
    assert_eq!((&admins[0]["role"], &admins[0]["since_local"]), (&json!("admin"), &json!("2026-10-02T03:00:00")));
    assert_eq!(column(&place, &asked("R11"), "user_id"), ["u1"]);
    assert_eq!(rows(&place, &over("R06", "2026-08-01T00:00:00Z", "2026-11-09T00:00:00Z")), Vec::<Value>::new());
}

#[test]
fn an_expired_month_is_no_history() {
    let place = Place::empty();
    let direct = |detail: &mut ConnectionDetail| {
        detail.source_type = Some("directip".into());
        detail.tunnel_id = Some("rdp".into());
    };
    let session = |id, time| connection(id, ESTABLISHED, at(time), direct);
    let events = vec![
        session("c1", "2026-08-02T10:00:00Z"),
        session("c2", "2026-08-28T10:00:00Z"),
        session("c3", "2026-10-20T10:00:00Z"),
    ];
    commit_events(&place, Stream::Connections, events);
    assert_eq!(column(&place, &asked("R16"), "is_new"), [false]);
    expire(&place, Retained::Connections);
    let new = rows(&place, &asked("R15"));
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!((&new[0]["what"], &new[0]["days_of_history"]), (&json!("new peer"), &json!(52)));
    let unknown = rows(&place, &asked("R16"));
    assert_eq!((&unknown[0]["is_new"], &unknown[0]["severity"]), (&Value::Null, &json!("low")));
    // This history begins after the expired month.
    let short = Question { params: &[("history_days", "30")], ..asked("R16") };
    assert_eq!(column(&place, &short, "is_new"), [true]);
    let held = Question { params: &[("keep_at_least_days", "100")], ..asked("R25") };
    let classes = rows(&place, &held);
    let class = classes.iter().find(|row| row["class"] == "connections" && row["state"] != "expired").unwrap();
    let found = ["begins_local", "held_days", "state"].map(|name| class[name].clone());
    assert_eq!(found, [json!("2026-08-29T00:00:00"), json!(72), json!("short")]);
}
