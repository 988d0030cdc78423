//! People who left.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::model::{ConnectionDetail, Stream};
use serde_json::json;

use crate::golden::answers::Question;
use crate::reporting::{HOUR, Place, at};

use super::{ESTABLISHED, activity, asked, change_by, column, commit_events, connection, people, read_roster, user};

/// Without it, a session between the removal and the period's end is in no report: the next one begins later.
#[test]
fn an_event_tells_of_a_removal_that_only_a_reading_after_the_period_shows() {
    let (place, removed_at) = (Place::empty(), "2026-10-20T10:00:00Z");
    let (ann, bob) = (user("u1", "ann@own.example"), user("u2", "bob@own.example"));
    for (seen_at, users) in [("2026-10-12T03:00:00Z", json!([ann, bob])), ("2026-10-22T03:00:00Z", json!([bob]))] {
        read_roster(&place, seen_at, &people(&users, &json!({}), &json!([])));
    }
    let removal = activity("a1", "teamUserRemovedEvent", removed_at, &json!({"userID": "u1"}));
    commit_events(&place, Stream::Activity, vec![removal]);
    let session = connection("c1", ESTABLISHED, at(removed_at).plus(HOUR), |_| ());
    commit_events(&place, Stream::Connections, vec![session]);
    for (to, expected) in [("2026-10-20T00:00:00Z", vec![]), ("2026-10-21T00:00:00Z", vec![json!(1)])] {
        let question = Question { period: ("2026-10-12T00:00:00Z", to), ..asked("R05") };
        assert_eq!(column(&place, &question, "sessions_after"), expected, "{to}");
    }
}

/// Bob leaves, comes back, leaves again, and then connects once.
#[test]
fn activity_counts_only_after_the_last_removal_before_it() {
    let place = Place::empty();
    let (ann, bob) = (user("u1", "ann@own.example"), user("u2", "bob@own.example"));
    for (day, users) in
        [(12, json!([ann, bob])), (14, json!([ann])), (16, json!([ann, bob])), (18, json!([ann])), (22, json!([ann]))]
    {
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
    }
    let by = json!({"userID": "u2"});
    let set = |id, time| change_by(&by, id, "teamSettingsChangedEvent", time, &json!({"setting": "x"}));
    commit_events(&place, Stream::Activity, vec![set("a1", "2026-10-15T10:00:00Z"), set("a2", "2026-10-20T11:00:00Z")]);
    let of_bob = |detail: &mut ConnectionDetail| detail.peer_email = Some("bob@own.example".into());
    commit_events(&place, Stream::Connections, vec![connection("c1", ESTABLISHED, at("2026-10-20T10:00:00Z"), of_bob)]);
    for (name, expected) in [
        ("removed_local", [json!("2026-10-14T03:00:00"), json!("2026-10-18T03:00:00")]),
        ("last_activity_local", [json!("2026-10-15T10:00:00"), json!("2026-10-20T11:00:00")]),
        ("sessions_after", [json!(0), json!(1)]),
        ("changes_after", [json!(1), json!(1)]),
    ] {
        assert_eq!(column(&place, &asked("R05"), name), expected, "{name}");
    }
}
