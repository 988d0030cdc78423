//! Rosters that are read again after an erasure of a person who is still on the team.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::Subject;
use annals::model::{Stream, TeamId};
use serde_json::{Value, json};

use crate::reporting::{Place, at};

use super::{TEAM, activity, asked, column, commit_events, people, read_roster, rows, user};

/// Carries out an order about one value.
fn erase(place: &Place, value: &str, time: &str) {
    let (archive, team) = (place.opened(), TeamId::from(TEAM));
    let (order, pending) = archive.new_order("DPO-1", &Subject::new([value]).unwrap(), [team.clone()].into());
    let erasure = archive.writer(&team).unwrap().erase(&order, &pending, at(time)).unwrap();
    assert!(erasure.seq.is_some());
    pending.destroy(archive.store().as_ref()).unwrap();
}

#[test]
fn an_erased_address_that_is_read_again_is_no_change() {
    let place = Place::empty();
    let erased = "erased-0123456789abcdef0123456789abcdef@own.example";
    for (day, email) in [(13, erased), (15, "bob@own.example"), (17, "robert@own.example")] {
        let users = json!([user("u1", "ann@own.example"), user("u2", email)]);
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
    }
    assert_eq!(column(&place, &asked("R06"), "before"), ["bob@own.example"]);
}

/// The next reading shows the real id, and no reading shows the pseudonym.
#[test]
fn a_person_whose_id_was_erased_neither_leaves_nor_joins() {
    let place = Place::empty();
    let users = json!([user("u1", "ann@own.example"), user("u2", "bob@own.example")]);
    let groups = json!({"g1": {"name": "One", "users": ["u1", "u2"]}});
    let mut served = people(&users, &groups, &json!([]));
    served["info"] = json!({"u2": {"tokenLog": [{"title": "export", "scopes": ["team:read"]}]}});
    read_roster(&place, "2026-10-13T03:00:00Z", &served);
    erase(&place, "u2", "2026-10-14T12:00:00Z");
    read_roster(&place, "2026-10-15T03:00:00Z", &served);
    let role = activity("a1", "teamUserRoleChangedEvent", "2026-10-14T18:00:00Z", &json!({"userID": "u2"}));
    commit_events(&place, Stream::Activity, vec![role]);
    let mut changes: Vec<String> = rows(&place, &asked("R06"))
        .iter()
        .map(|row| ["change", "standing", "severity"].map(|name| row[name].to_string()).join(" ").replace('"', ""))
        .collect();
    changes.sort();
    let expected =
        ["changed", "joined", "joined group", "left", "left group"].map(|change| format!("{change} erased null"));
    assert_eq!(changes, expected);
    assert_eq!(column(&place, &asked("R05"), "removed_known_by"), ["erasure"]);
    assert_eq!(column(&place, &asked("R05"), "severity"), [Value::Null]);
    let tokens = rows(&place, &asked("R13"));
    let of_pseudonym = tokens.iter().find(|row| row["user_id"].as_str().unwrap().starts_with("erased-")).unwrap();
    assert_eq!((&of_pseudonym["state"], &of_pseudonym["severity"]), (&json!("owner erased, endless"), &Value::Null));
    // A later reading shows real leavers and joiners again.
    let served = people(&json!([user("u1", "ann@own.example"), user("u3", "eve@own.example")]), &groups, &json!([]));
    read_roster(&place, "2026-10-17T03:00:00Z", &served);
    let changed: Vec<String> = rows(&place, &asked("R06"))
        .iter()
        .filter(|row| row["standing"] == "no event")
        .map(|row| ["user_id", "change"].map(|name| row[name].as_str().unwrap().to_owned()).join(" "))
        .collect();
    assert_eq!(changed, ["u2 left", "u3 joined"]);
}
