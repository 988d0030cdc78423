//! People who left.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::model::Stream;
use serde_json::json;

use crate::golden::answers::Question;
use crate::reporting::{HOUR, Place, at};

use super::{ESTABLISHED, activity, asked, column, commit_events, connection, people, read_roster, user};

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
