//! Administrative changes by people whose address passed on, and reviews of a young archive.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::{Body, Draft, Finding, FindingKind};
use annals::model::Stream;
use serde_json::{Value, json};

use crate::golden::answers::Question;
use crate::reporting::{Place, at};

use super::{NOW, asked, change_by, column, commit, commit_events, people, read_roster, rows, user};

#[test]
fn an_address_means_the_person_who_had_it_at_the_time_of_the_change() {
    let place = Place::empty();
    let first = json!([user("u1", "office@own.example"), user("u2", "bob@own.example")]);
    let then = json!([user("u1", "ann@own.example"), user("u2", "office@own.example")]);
    for (seen_at, users) in [("2026-10-13T03:00:00Z", first), ("2026-10-20T03:00:00Z", then)] {
        read_roster(&place, seen_at, &people(&users, &json!({}), &json!([])));
    }
    let office = json!({"email": "office@own.example"});
    let change = |id, time| change_by(&office, id, "teamSettingsChangedEvent", time, &office);
    // The first person has the address also before the first reading.
    let changes = [("a1", "2026-10-12T10:00:00Z"), ("a2", "2026-10-18T10:00:00Z"), ("a3", "2026-10-22T10:00:00Z")]
        .map(|(id, time)| change(id, time));
    commit_events(&place, Stream::Activity, changes.into());
    let (ann, bob) = ("ann@own.example", "office@own.example");
    assert_eq!(column(&place, &asked("R20"), "actor"), [ann, ann, bob]);
    assert_eq!(column(&place, &asked("R20"), "target_ids"), ["u1", "u1", "u2"]);
}

#[test]
fn a_person_is_called_by_the_newest_address() {
    let place = Place::empty();
    let read = |seen_at: &str, addresses: [&str; 2], role: &str, members: &Value| {
        let mut users = json!([user("u1", addresses[0]), user("u2", addresses[1]), user("u3", "carl@own.example")]);
        users[2]["role"] = role.into();
        let groups = json!({"g1": {"name": "Staff", "users": members, "devices": []}});
        read_roster(&place, seen_at, &people(&users, &groups, &json!([])));
    };
    // The first address of u1 passes to u2.
    read("2026-10-13T03:00:00Z", ["alarm@own.example", "bob@own.example"], "user", &json!([]));
    read("2026-10-14T03:00:00Z", ["zulu@own.example", "alarm@own.example"], "user", &json!([]));
    read("2026-10-15T03:00:00Z", ["mia@own.example", "alarm@own.example"], "user", &json!([]));
    let raised = json!({"userID": "u3"});
    let change = change_by(&json!({"userID": "u1"}), "a1", "teamUserRoleChangedEvent", "2026-10-18T10:00:00Z", &raised);
    commit_events(&place, Stream::Activity, vec![change]);
    read("2026-10-20T03:00:00Z", ["mia@own.example", "alarm@own.example"], "admin", &json!(["u1"]));
    let found = rows(&place, &asked("R06"));
    let of = |change: &str, column: &str| found.iter().find(|row| row["change"] == change).unwrap()[column].clone();
    assert_eq!(of("role", "actor"), "mia@own.example");
    assert_eq!(of("joined group", "email"), "mia@own.example");
    assert_eq!(column(&place, &asked("R09"), "granted_by"), ["mia@own.example"]);
}

#[test]
fn a_role_outlasts_later_changes_of_the_person() {
    let place = Place::empty();
    let named = |email: &str, role: &str| {
        let mut person = user("u1", email);
        person["role"] = role.into();
        json!([person])
    };
    let read = |seen_at: &str, users| read_roster(&place, seen_at, &people(&users, &json!({}), &json!([])));
    read("2026-10-13T03:00:00Z", named("ann@own.example", "admin"));
    read("2026-11-20T03:00:00Z", named("ann.berg@own.example", "admin"));
    assert_eq!(column(&place, &asked("R09"), "until_local"), [json!(null)]);
    read("2026-11-25T03:00:00Z", named("ann.berg@own.example", "user"));
    assert_eq!(column(&place, &asked("R09"), "until_local"), ["2026-11-25T03:00:00"]);
    assert_eq!(column(&place, &asked("R09"), "email"), ["ann@own.example"]);
}

#[test]
fn a_change_by_a_shared_address_counts_for_each_person_who_has_it() {
    let place = Place::empty();
    let mut users = json!([user("u1", "Office@own.example"), user("u2", "office@own.example")]);
    for nth in 0..2 {
        users[nth]["role"] = "admin".into();
    }
    read_roster(&place, "2026-10-13T03:00:00Z", &people(&users, &json!({}), &json!([])));
    let office = json!({"email": "office@own.example"});
    let change = change_by(&office, "a1", "teamSettingsChangedEvent", "2026-10-20T10:00:00Z", &json!({}));
    commit_events(&place, Stream::Activity, vec![change]);
    assert_eq!(column(&place, &asked("R09"), "actions"), [1, 1]);
}

#[test]
fn nobody_is_late_to_review_an_archive_that_did_not_exist() {
    let place = Place::empty();
    let begins = |stream, found_at| {
        let reason = "the start of the backfill";
        Finding::new(Some(stream), FindingKind::ArchiveBegins, "", reason, at(found_at))
    };
    let findings =
        vec![begins(Stream::Connections, "2026-11-05T09:00:00Z"), begins(Stream::Activity, "2026-11-05T08:00:00Z")];
    commit(&place, Draft::from(Body { findings, ..Body::default() }), at(NOW));
    let day = json!({"id": "a1"});
    commit_events(
        &place,
        Stream::Activity,
        vec![change_by(&day, "a1", "teamSettingsChangedEvent", "2026-10-13T10:00:00Z", &day)],
    );
    let whole = Question { period: ("2026-10-01T00:00:00Z", "2026-11-09T00:00:00Z"), ..asked("R26") };
    assert_eq!(column(&place, &whole, "from_local"), ["2026-11-06T08:00:00"]);
    let later = Question { period: ("2026-11-06T00:00:00Z", "2026-11-09T00:00:00Z"), ..asked("R26") };
    assert_eq!(column(&place, &later, "from_local"), ["2026-11-07T00:00:00"]);
}
