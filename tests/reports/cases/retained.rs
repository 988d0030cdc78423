//! Days held, and holds, in the report on retention.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::{Body, Draft};
use annals::model::Stream;
use serde_json::json;

use crate::golden::answers::Question;
use crate::reporting::{Place, at};

use super::{ESTABLISHED, NOW, asked, column, commit, commit_events, connection, rows};

fn until(to: &'static str) -> Question {
    Question { period: ("2026-10-01T00:00:00Z", to), zone: "UTC", ..asked("R25") }
}

/// The only session begins half a second after midnight.
#[test]
fn a_day_that_is_not_whole_does_not_count_as_held() {
    let place = Place::empty();
    let event = connection("c1", ESTABLISHED, at("2026-10-10T00:00:00.5Z"), |_| ());
    commit_events(&place, Stream::Connections, vec![event]);
    assert_eq!(column(&place, &until("2026-10-12T00:00:00Z"), "held_days"), [2, 1], "connections, sessions");
    assert_eq!(column(&place, &until("2026-10-05T00:00:00Z"), "held_days"), [0, 0], "before the archive begins");
}

#[test]
fn a_hold_that_ended_after_the_period_shows_when_it_began() {
    let place = Place::empty();
    let added = json!({"id": "CASE-7", "reason": "a case", "at": "2026-10-02T00:00:00Z", "scope": "team"});
    let released = json!({"id": "CASE-7", "reason": "settled", "at": "2026-10-20T00:00:00Z"});
    let holds = serde_json::from_value(json!([{"add": added}, {"release": released}])).unwrap();
    commit(&place, Draft::from(Body { holds, ..Body::default() }), at(NOW));
    for (to, state, done) in [
        ("2026-10-10T00:00:00Z", "hold", "2026-10-02T00:00:00"),
        ("2026-11-01T00:00:00Z", "released", "2026-10-20T00:00:00"),
    ] {
        let found = rows(&place, &until(to));
        assert_eq!((&found[0]["state"], &found[0]["done_local"]), (&json!(state), &json!(done)));
    }
}
