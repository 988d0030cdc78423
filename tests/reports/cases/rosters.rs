//! Rosters that changed, and rosters that nobody read.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::model::{ConnectionDetail, Detail, Stream};
use serde_json::{Value, json};

use crate::golden::answers::Question;
use crate::reporting::{Place, at};

use super::{
    ESTABLISHED, TEAM, activity, asked, change_by, column, commit_events, connection, event, people, read_roster, rows,
    user,
};

#[test]
fn a_roster_that_is_newer_than_the_sign_in_details_decides_on_the_second_factor() {
    let place = Place::empty();
    for (seen_at, is_on) in [("2026-10-13T03:00:00Z", true), ("2026-10-20T03:00:00Z", false)] {
        let users = json!([{"id": "u1", "email": "ann@own.example", "role": "admin", "remoteAccess": "enabled",
            "totpEnabled": is_on, "authProviders": ["password"]}]);
        let mut served = people(&users, &json!({}), &json!([]));
        if is_on {
            served["info"] = json!({"u1": {"totp": {"enabled": true}, "authProviders": [{"provider": "password"}]}});
        }
        read_roster(&place, seen_at, &served);
    }
    assert_eq!(column(&place, &asked("R10"), "verdict"), ["FAIL"]);
    assert_eq!(column(&place, &asked("R09"), "second_factor"), ["FAIL"]);
}

#[test]
fn an_empty_list_of_sign_in_methods_means_the_same_in_both_reports() {
    let place = Place::empty();
    for (seen_at, providers) in [("2026-10-13T03:00:00Z", Value::Null), ("2026-10-20T03:00:00Z", json!([]))] {
        let users = json!([{"id": "u1", "email": "ann@own.example", "role": "admin", "remoteAccess": "enabled",
            "totpEnabled": false, "authProviders": providers}]);
        let mut served = people(&users, &json!({}), &json!([]));
        if providers.is_null() {
            served["info"] = json!({"u1": {"totp": {"enabled": false}, "authProviders": [{"provider": "saml"}]}});
        }
        read_roster(&place, seen_at, &served);
    }
    assert_eq!(column(&place, &asked("R10"), "verdict"), ["UNKNOWN"]);
    assert_eq!(column(&place, &asked("R09"), "second_factor"), ["UNKNOWN"]);
}

#[test]
fn actions_count_from_the_event_that_gave_the_role_and_under_each_address() {
    let place = Place::empty();
    for (day, role, email) in
        [(13, "user", "bob@own.example"), (20, "admin", "bob@own.example"), (25, "admin", "robert@own.example")]
    {
        let mut bob = user("u2", email);
        bob["role"] = json!(role);
        let users = json!([user("u1", "ann@own.example"), bob]);
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
    }
    let (ann, bob) = (json!({"userID": "u1"}), json!({"email": "bob@own.example"}));
    let set = |id: &str, time: &str| change_by(&bob, id, "teamSettingsChangedEvent", time, &json!({"setting": "x"}));
    let events = vec![
        set("a1", "2026-10-19T08:00:00Z"),
        change_by(&ann, "a2", "teamUserRoleChangedEvent", "2026-10-19T09:00:00Z", &json!({"userID": "u2"})),
        set("a3", "2026-10-19T10:00:00Z"),
        set("a4", "2026-10-22T10:00:00Z"),
    ];
    commit_events(&place, Stream::Activity, events);
    let found = rows(&place, &asked("R09"));
    assert_eq!(found.len(), 1, "{found:?}");
    let row = ["user_id", "granted_by", "granted_local", "actions"].map(|name| found[0][name].clone());
    assert_eq!(row, [json!("u2"), json!("ann@own.example"), json!("2026-10-19T09:00:00"), json!(2)]);
}

/// An administrator removes Bob, who then connects, and later takes the computer's access away from him.
#[test]
fn the_first_event_about_the_person_tells_the_time_of_a_removal() {
    let place = Place::empty();
    let computers = json!([{"id": "d1", "name": "PC-1"}]);
    let both = json!([user("u1", "ann@own.example"), user("u2", "bob@own.example")]);
    for (seen_at, users) in
        [("2026-10-15T03:00:00Z", both), ("2026-10-20T03:00:00Z", json!([user("u1", "ann@own.example")]))]
    {
        read_roster(&place, seen_at, &people(&users, &json!({}), &computers));
    }
    let access = json!({"userID": "u2", "deviceID": "d1"});
    let events = vec![
        activity("a0", "teamDeviceUserAccessRemovedEvent", "2026-10-18T08:00:00Z", &access),
        activity("a1", "teamUserRemovedEvent", "2026-10-18T09:00:00Z", &json!({"userID": "u2"})),
        activity("a2", "teamDeviceUserAccessRemovedEvent", "2026-10-18T11:00:00Z", &access),
    ];
    commit_events(&place, Stream::Activity, events);
    let bob = |detail: &mut ConnectionDetail| detail.peer_email = Some("bob@own.example".into());
    commit_events(&place, Stream::Connections, vec![connection("c1", ESTABLISHED, at("2026-10-18T10:00:00Z"), bob)]);
    let leavers = rows(&place, &asked("R05"));
    assert_eq!(leavers.len(), 1, "{leavers:?}");
    let leaver = ["removed_local", "sessions_after", "severity"].map(|name| leavers[0][name].clone());
    assert_eq!(leaver, [json!("2026-10-18T09:00:00"), json!(1), json!("critical")]);
    assert_eq!(column(&place, &asked("R06"), "event_type"), ["teamUserRemovedEvent"]);
}

#[test]
fn a_session_under_an_earlier_address_belongs_to_the_person() {
    let place = Place::empty();
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u2"]}]);
    for (seen_at, users) in [
        ("2026-10-13T03:00:00Z", json!([user("u1", "old1@own.example"), user("u2", "old2@own.example")])),
        ("2026-10-15T03:00:00Z", json!([user("u1", "new1@own.example"), user("u2", "new2@own.example")])),
        ("2026-10-17T03:00:00Z", json!([user("u2", "new2@own.example")])),
    ] {
        read_roster(&place, seen_at, &people(&users, &json!({}), &computers));
    }
    let session = |id, time, email: &'static str| {
        connection(id, ESTABLISHED, at(time), |detail| detail.peer_email = Some(email.into()))
    };
    let sessions = vec![
        session("c1", "2026-10-20T10:00:00Z", "Old1@own.example"),
        session("c2", "2026-10-14T10:00:00Z", "old2@own.example"),
    ];
    commit_events(&place, Stream::Connections, sessions);
    let leavers = rows(&place, &asked("R05"));
    assert_eq!(
        (leavers.len(), &leavers[0]["sessions_after"], &leavers[0]["severity"]),
        (1, &json!(1), &json!("critical"))
    );
    let dormant = Question { params: &[("early_days", "10")], ..asked("R11") };
    assert_eq!(column(&place, &dormant, "state"), ["soon dormant"]);
    assert_eq!(column(&place, &asked("R07"), "last_session_here_local"), ["2026-10-14T10:00:00"]);
}

#[test]
fn the_own_domain_is_that_of_most_people_not_of_most_changes() {
    let place = Place::empty();
    for (day, access) in [(13, "enabled"), (14, "disabled"), (15, "enabled"), (16, "disabled")] {
        let mut vendor = user("x1", "max@vendor.example");
        vendor["remoteAccess"] = json!(access);
        let users = json!([user("u1", "ann@own.example"), user("u2", "bob@own.example"), vendor]);
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
    }
    let vendor = |detail: &mut ConnectionDetail| detail.peer_email = Some("max@vendor.example".into());
    let sessions = vec![
        connection("c1", ESTABLISHED, at("2026-10-20T10:00:00Z"), |_| ()),
        connection("c2", ESTABLISHED, at("2026-10-20T11:00:00Z"), vendor),
    ];
    commit_events(&place, Stream::Connections, sessions);
    let none_given = Question { params: &[("own_domains", "")], ..asked("R19") };
    for question in [asked("R19"), none_given] {
        assert_eq!(column(&place, &question, "peer_email"), ["max@vendor.example"], "{:?}", question.params);
        assert_eq!(column(&place, &question, "own"), ["own.example"], "{:?}", question.params);
    }
}

#[test]
fn white_space_around_an_address_does_not_change_its_domain() {
    let place = Place::empty();
    let users =
        json!([user("u1", " Ann@own.example "), user("u2", "\"a@b\"@own.example "), user("u3", "cat@other.example")]);
    read_roster(&place, "2026-10-12T03:00:00Z", &people(&users, &json!({}), &json!([])));
    let session = connection("c1", ESTABLISHED, at("2026-10-20T10:00:00Z"), |_| ());
    commit_events(&place, Stream::Connections, vec![session]);
    assert_eq!(rows(&place, &asked("R19")), Vec::<Value>::new());
}

#[test]
fn white_space_around_an_address_hides_no_actor() {
    let place = Place::empty();
    let users = json!([{"id": "u1", "email": " ann@own.example ", "role": "admin", "remoteAccess": "enabled"}]);
    read_roster(&place, "2026-10-12T03:00:00Z", &people(&users, &json!({}), &json!([])));
    let by = json!({"email": " Ann@own.example "});
    let change = change_by(&by, "a1", "teamSettingsChangedEvent", "2026-10-20T10:00:00Z", &json!({}));
    commit_events(&place, Stream::Activity, vec![change]);
    assert_eq!(column(&place, &asked("R09"), "actions"), [1]);
    assert_eq!(column(&place, &asked("R20"), "actor"), [" ann@own.example "]);
}

/// No reading of the roster can tell who it was.
#[test]
fn a_session_without_an_email_is_a_detection_before_the_first_reading_too() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let nobody = |detail: &mut ConnectionDetail| detail.peer_email = None;
    let sessions = vec![connection("c1", ESTABLISHED, time, |_| ()), connection("c2", ESTABLISHED, time, nobody)];
    commit_events(&place, Stream::Connections, sessions);
    assert_eq!(column(&place, &asked("R04"), "standing"), ["no email", "roster not yet read"]);
    assert_eq!(column(&place, &asked("R04"), "severity"), [json!("medium"), Value::Null]);
}

#[test]
fn a_computer_in_a_session_is_not_offline() {
    let place = Place::empty();
    let computers = json!([{"id": "d1", "name": "PC-1"}]);
    let served = people(&json!([user("u1", "ann@own.example")]), &json!({}), &computers);
    read_roster(&place, "2026-10-12T03:00:00Z", &served);
    let same = |detail: &mut ConnectionDetail| detail.connection_id = Some("c1".into());
    let session = vec![
        connection("c1", ESTABLISHED, at("2026-10-20T10:00:00Z"), |_| ()),
        connection("c1-end", "connectionClosedEvent", at("2026-10-25T10:00:00Z"), same),
    ];
    commit_events(&place, Stream::Connections, session);
    let during = Question { period: ("2026-10-12T00:00:00Z", "2026-10-22T00:00:00Z"), ..asked("R12") };
    assert_eq!(column(&place, &during, "days_offline"), [0]);
}

#[test]
fn what_nobody_has_read_yet_has_a_row_that_says_so() {
    let place = Place::one_event();
    for (report, name) in [
        ("R07", "via"),
        ("R08", "change"),
        ("R09", "since_known"),
        ("R10", "verdict"),
        ("R11", "state"),
        ("R12", "state"),
        ("R13", "state"),
        ("R19", "own"),
    ] {
        assert_eq!(column(&place, &asked(report), name), ["not yet read"], "{report}");
    }
}

/// The token may not read the roster any more: an empty report would say that nothing changed.
#[test]
fn a_roster_that_nobody_read_again_states_its_last_read() {
    let place = Place::empty();
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u1"]}]);
    let served = people(&json!([user("u1", "ann@own.example")]), &json!({}), &computers);
    read_roster(&place, "2026-10-02T03:00:00Z", &served);
    assert_eq!(column(&place, &asked("R08"), "change"), ["not read again"]);
    let statement = |report: &str| {
        let period = ["--from", "2026-10-12", "--to", "2026-11-09", "--tz", "UTC", "--format", "csv"];
        place.run(&[&["report", "run", report], &period[..]].concat()).text().to_owned()
    };
    let read =
        ": people last read at 2026-10-02T03:00:00Z, computers last read at 2026-10-02T03:00:00Z, groups last read at";
    for report in ["r07", "r08", "r10", "r11"] {
        let said = statement(report);
        assert!(said.contains("# roster: ") && said.contains(read), "{report}: {said}");
    }
    assert!(!statement("r02").contains("roster:"), "R02 uses no roster");
    read_roster(&place, "2026-10-20T03:00:00Z", &served);
    assert_eq!(column(&place, &asked("R08"), "change"), Vec::<Value>::new());
    assert!(statement("r10").contains("people last read at 2026-10-20T03:00:00Z"));
}

#[test]
fn computers_whose_grants_may_not_be_read_are_not_called_computers_without_grants() {
    let place = Place::empty();
    let mut served =
        people(&json!([user("u1", "ann@own.example")]), &json!({}), &json!([{"id": "d1", "name": "PC-1"}]));
    served["team"] = json!({"id": TEAM, "name": "Acme"});
    read_roster(&place, "2026-10-13T03:00:00Z", &served);
    let found = rows(&place, &asked("R12"));
    assert_eq!((found.len(), &found[0]["state"], &found[0]["severity"]), (1, &json!("grants not read"), &Value::Null));
}

#[test]
fn an_event_before_the_first_roster_is_no_missing_change_and_a_removal_explains_lost_groups() {
    let place = Place::empty();
    let users = json!([user("u1", "ann@own.example"), user("u2", "bob@own.example")]);
    let groups = json!({"g1": {"name": "One", "users": ["u1", "u2"]}, "g2": {"name": "Two", "users": ["u1"]}});
    read_roster(&place, "2026-10-15T03:00:00Z", &people(&users, &groups, &json!([])));
    let users = json!([user("u1", "ann@own.example")]);
    read_roster(
        &place,
        "2026-10-20T03:00:00Z",
        &people(&users, &json!({"g1": {"name": "One", "users": ["u1"]}}), &json!([])),
    );
    let events = vec![
        activity("a1", "teamUserAddedEvent", "2026-10-14T10:00:00Z", &json!({"userID": "u1"})),
        activity("a2", "teamUserRemovedEvent", "2026-10-18T10:00:00Z", &json!({"userID": "u2"})),
        activity("a3", "teamGroupDeletedEvent", "2026-10-18T11:00:00Z", &json!({"groupID": "g2"})),
    ];
    commit_events(&place, Stream::Activity, events);
    let found: Vec<String> = rows(&place, &asked("R06"))
        .iter()
        .map(|row| {
            ["event_id", "user_id", "change", "standing", "severity"].map(|name| row[name].to_string()).join(" ")
        })
        .map(|text| text.replace('"', ""))
        .collect();
    let expected = [
        "a1 u1 joined roster not yet read null",
        "a2 u2 left recorded null",
        "a2 u2 left group recorded null",
        "a3 u1 left group recorded null",
    ];
    assert_eq!(found, expected);
}

/// A writer of JSON may spell `&` and `ü` as escapes, and put JSON text into a string.
#[test]
fn a_name_with_escapes_is_the_person() {
    let place = Place::empty();
    let mut admin = user("u1", "r&d@own.example");
    admin["role"] = json!("admin");
    let both = json!([admin.clone(), user("u2", "müller@own.example")]);
    for (seen_at, users) in [("2026-10-13T03:00:00Z", both), ("2026-10-20T03:00:00Z", json!([admin]))] {
        read_roster(&place, seen_at, &people(&users, &json!({}), &json!([])));
    }
    let change = |id: &str, kind: &str, time: &str, token_info: &str, payload: &str| {
        let detail = Detail::Activity { token_info: Some(token_info.into()), payload: Some(payload.into()) };
        event(id, kind, at(time), detail)
    };
    let (admin, muller) = (r#"{"email":"r\u0026d@own.example"}"#, r#"{"email":"m\u00fcller@own.example"}"#);
    let inside = r#"{"raw":"{\"email\":\"r\\u0026d@own.example\"}"}"#;
    let events = vec![
        change("a1", "teamUserRemovedEvent", "2026-10-18T09:00:00Z", admin, muller),
        change("a2", "teamSettingsChangedEvent", "2026-10-18T10:00:00Z", inside, "{}"),
        change("a3", "teamSettingsChangedEvent", "2026-10-18T12:00:00Z", muller, "{}"),
    ];
    commit_events(&place, Stream::Activity, events);
    assert_eq!(column(&place, &asked("R20"), "actor"), ["r&d@own.example", "r&d@own.example", "müller@own.example"]);
    assert_eq!(column(&place, &asked("R20"), "target_ids"), [json!("u2"), Value::Null, Value::Null]);
    assert_eq!(column(&place, &asked("R09"), "actions"), [2]);
    assert_eq!(column(&place, &asked("R06"), "standing"), ["recorded"]);
    let leavers = rows(&place, &asked("R05"));
    assert_eq!(leavers.len(), 1, "{leavers:?}");
    let leaver = ["removed_known_by", "changes_after", "severity"].map(|name| leavers[0][name].clone());
    assert_eq!(leaver, [json!("activity event"), json!(1), json!("critical")]);
}

#[test]
fn access_drift_knows_a_name_with_escapes() {
    let place = Place::empty();
    let users = json!([user("u1", "r&d@own.example")]);
    for (seen_at, granted) in [("2026-10-10T03:00:00Z", json!([])), ("2026-10-20T03:00:00Z", json!(["u1"]))] {
        let computers = json!([{"id": "d1", "name": "PC-1", "users": granted}]);
        read_roster(&place, seen_at, &people(&users, &json!({}), &computers));
    }
    let payload = r#"{"email":"r\u0026d@own.example","deviceID":"d1"}"#;
    let detail = Detail::Activity { token_info: None, payload: Some(payload.into()) };
    let given = event("a1", "teamDeviceUserAccessAddedEvent", at("2026-10-18T09:00:00Z"), detail);
    commit_events(&place, Stream::Activity, vec![given]);
    assert_eq!(column(&place, &asked("R08"), "event"), ["teamDeviceUserAccessAddedEvent"]);
}

/// Bob is removed, and comes back. Then he works as before.
#[test]
fn only_activity_before_a_return_counts_against_a_leaver() {
    for (times, expected) in [
        (&["2026-10-19T11:00:00Z"][..], [json!(0), json!(0), Value::Null]),
        // Three changes at once, while he is away.
        (&["2026-10-17T10:00:00Z"; 3][..], [json!(0), json!(3), json!("critical")]),
    ] {
        let place = Place::empty();
        let (ann, bob) = (user("u1", "ann@own.example"), user("u2", "bob@own.example"));
        for (day, users) in [(13, json!([ann, bob])), (16, json!([ann])), (18, json!([ann, bob]))] {
            read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &json!([])));
        }
        let of_bob = |detail: &mut ConnectionDetail| detail.peer_email = Some("bob@own.example".into());
        let session = connection("c1", ESTABLISHED, at("2026-10-19T10:00:00Z"), of_bob);
        commit_events(&place, Stream::Connections, vec![session]);
        let changes = times.iter().zip(0..).map(|(time, nth)| {
            let payload = json!({"setting": nth});
            change_by(&json!({"userID": "u2"}), &format!("a{nth}"), "teamSettingsChangedEvent", time, &payload)
        });
        commit_events(&place, Stream::Activity, changes.collect());
        let leavers = rows(&place, &asked("R05"));
        assert_eq!(leavers.len(), 1, "{leavers:?}");
        let found = ["sessions_after", "changes_after", "severity"].map(|name| leavers[0][name].clone());
        assert_eq!(found, expected, "{times:?}");
    }
}

/// Ann gives her address to Zoe, who never connected. The session is from before the first reading.
#[test]
fn a_session_belongs_to_whoever_had_its_address_then() {
    let place = Place::empty();
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u1", "u2"]}]);
    for (day, users) in [
        (13, json!([user("u1", "desk@own.example")])),
        (15, json!([user("u1", "ann@own.example"), user("u2", "desk@own.example")])),
    ] {
        read_roster(&place, &format!("2026-10-{day}T03:00:00Z"), &people(&users, &json!({}), &computers));
    }
    let desk = |detail: &mut ConnectionDetail| detail.peer_email = Some("desk@own.example".into());
    commit_events(&place, Stream::Connections, vec![connection("c1", ESTABLISHED, at("2026-10-12T10:00:00Z"), desk)]);
    let last = [json!("2026-10-12T10:00:00"), Value::Null];
    assert_eq!(column(&place, &asked("R07"), "last_session_here_local"), last);
    let dormant = Question { params: &[("early_days", "10")], ..asked("R11") };
    assert_eq!(column(&place, &dormant, "email"), ["desk@own.example", "ann@own.example"]);
    assert_eq!(column(&place, &dormant, "state"), ["never used", "soon dormant"]);
    let sql = "SELECT user_id, held_from, held_to FROM inventory_addresses ORDER BY email DESC, valid_from";
    let addresses = place.run(&["sql", sql, "--format", "csv"]);
    let expected = ["user_id,held_from,held_to", "u1,,2026-10-15T03:00:00", "u2,2026-10-15T03:00:00,", "u1,,"];
    assert_eq!(addresses.text().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn two_groups_of_one_name_are_two_ways() {
    let place = Place::empty();
    let group = json!({"name": "Support", "users": ["u1"], "devices": ["d1"]});
    let groups = json!({"g1": group, "g2": group, "g3": {"name": "Lab", "users": ["u1"], "devices": ["d1"]}});
    let served = people(&json!([user("u1", "ann@own.example")]), &groups, &json!([{"id": "d1", "name": "PC-1"}]));
    read_roster(&place, "2026-10-13T03:00:00Z", &served);
    assert_eq!(column(&place, &asked("R07"), "ways"), [3]);
    assert_eq!(column(&place, &asked("R07"), "via"), ["group Lab; group Support (g1); group Support (g2)"]);
}
