//! Reads as tables, and the rows of successive reads.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::model::{Instant, InventoryPart, InventoryRow, InventoryValue};

use super::*;

/// The entries of a part as `key | value | value`, with `-` for unknown values.
fn shown(snapshot: &ShownParts, part: InventoryPart) -> Vec<String> {
    let show = |value: &InventoryValue| match value {
        InventoryValue::Unknown => "-".to_owned(),
        InventoryValue::Text(text) => text.clone(),
        InventoryValue::Int(number) | InventoryValue::Time(number) => number.to_string(),
        InventoryValue::Flag(flag) => flag.to_string(),
    };
    let entries = snapshot.parts.get(&part).unwrap_or_else(|| panic!("{part} is not shown"));
    entries
        .iter()
        .map(|(key, values)| key.iter().cloned().chain(values.iter().map(show)).collect::<Vec<_>>().join(" | "))
        .collect()
}

fn unknown(snapshot: &ShownParts) -> Vec<String> {
    snapshot.unknown.counts().map(|(path, kind, count)| format!("{path} {kind} {count}")).collect()
}

#[test]
fn only_allowed_fields_of_a_team_are_kept_and_no_secret() {
    let snapshot = team(
        r#"{"id":"t","name":"Team","avatarURL":"https://x","createdAt":{"unixMilli":1763640000000},
        "billing":{"card":"planted"},"deviceInvites":[{"secret":"planted"}],"userInvites":[{"secret":"planted"}],
        "planFeatures":{"deviceEventsMaxRetrievalDuration":2592000,"sso":true,"note":"planted","odd key":1},
        "users":{"u1":{"email":"planted"}},"inviteCodes":{"planted":1},"planted-secret":1,
        "groups":{"g1":{"name":"Lab","users":["u2","u1","u1"],"devices":["d1"],"scimManaged":true,
            "annotations":[{"key":"b","value":"2"},{"key":"a","value":"1"}],"token":"planted"},
            "g2":{"name":5}}}"#,
    )
    .unwrap();
    assert_eq!(
        shown(&snapshot, InventoryPart::Team),
        [r#"Team | 1763640000000000 | 2592000 | {"deviceEventsMaxRetrievalDuration":2592000,"sso":true} | false"#]
    );
    assert_eq!(shown(&snapshot, InventoryPart::Groups), [r#"g1 | Lab | true | {"a":"1","b":"2"}"#, "g2 | - | - | -"]);
    assert_eq!(
        shown(&snapshot, InventoryPart::Memberships),
        ["g1 | computer | d1", "g1 | user | u1", "g1 | user | u2"]
    );
    assert_eq!(
        unknown(&snapshot),
        [
            "team.(odd name) number 1",
            "team.groups.name number 1",
            "team.groups.token string 1",
            "team.inviteCodes object 1",
            "team.planFeatures.(odd name) number 1",
            "team.planFeatures.note string 1",
        ]
    );
    assert!(!format!("{snapshot:?}").contains("planted"));
}

#[test]
fn things_hidden_by_a_limited_view_do_not_count_as_deleted() {
    for (scenario, text, limited, shows_groups) in [
        ("name alone", r#"{"id":"t","name":"Team"}"#, true, false),
        ("with a plan", r#"{"planFeatures":{}}"#, true, false),
        ("people without groups", r#"{"users":{"u1":{}}}"#, false, true),
        ("nobody", r#"{"users":{}}"#, false, false),
        ("groups", r#"{"groups":{}}"#, false, true),
        ("computers alone", r#"{"devices":{"d1":{}}}"#, false, false),
    ] {
        let snapshot = team(text).unwrap();
        assert_eq!(snapshot.parts[&InventoryPart::Team][&vec![]][4], InventoryValue::Flag(limited), "{scenario}");
        for part in [InventoryPart::Groups, InventoryPart::Memberships] {
            assert_eq!(snapshot.parts.contains_key(&part), shows_groups, "{scenario}: {part}");
        }
    }
}

#[test]
fn only_allowed_fields_of_people_and_computers_are_kept() {
    let snapshot = users(
        r#"{"users":[{"id":"u1","email":"a@b.example","firstName":"A","role":"admin-read-only","remoteAccess":"enabled",
        "totpEnabled":false,"authProviders":["saml","password"],"lastUsedAt":1763640000,"joinedOn":{"seconds":1763640001},
        "scimUserInfo":{"secret":"planted"},"avatarURL":"https://planted"},
        {"id":"u2","authProviders":[{"provider":"google","email":"planted"}],"lastUsedAt":7,"totpEnabled":"yes"}]}"#,
    )
    .unwrap();
    assert_eq!(
        shown(&snapshot, InventoryPart::Users),
        [
            r#"u1 | a@b.example | A | - | admin-read-only | enabled | false | ["password","saml"] | 1763640000000000 | true | - | 1763640001000000"#,
            r#"u2 | - | - | - | - | - | - | ["google"] | - | false | - | -"#,
        ]
    );
    assert_eq!(unknown(&snapshot), ["users.lastUsedAt number 1", "users.totpEnabled string 1"]);
    let snapshot = sso_users(r#"[{"id":"u1","email":"a@b.example","lastName":"B","scimUserInfo":{}}]"#).unwrap();
    assert_eq!(shown(&snapshot, InventoryPart::SsoUsers), ["u1 | a@b.example | - | B | true"]);
    let text = r#"{"devices":[{"id":"d1","name":"pc","lastOnlineAt":1763640000,"users":["u1"],"groups":["g1"],
        "annotations":[{"key":"tag","value":" b, a,,b"},{"key":"rack","value":"7"}],"clientInfo":{"x":"planted",
        "osInfo":{"hostname":"PC-1","platform":"linux","version":"6.1","serial":"planted"}}},
        {"id":"d2","clientInfo":{"osInfo":{"hostname":7,"platform":null,"version":{"x":"planted"}}}},
        {"id":"d3","clientInfo":"planted"},{"id":"d4"}]}"#;
    let snapshot = computers(text, true).unwrap();
    assert_eq!(
        shown(&snapshot, InventoryPart::Computers),
        [
            r#"d1 | pc | 1763640000000000 | ["a","b"] | {"rack":"7"} | PC-1 | linux | 6.1"#,
            "d2 | - | - | - | - | - | - | -",
            "d3 | - | - | - | - | - | - | -",
            "d4 | - | - | - | - | - | - | -",
        ]
    );
    let odd = [
        "devices.clientInfo string 1",
        "devices.clientInfo.osInfo.hostname number 1",
        "devices.clientInfo.osInfo.version object 1",
    ];
    assert_eq!(unknown(&snapshot), odd);
    assert_eq!(shown(&snapshot, InventoryPart::Grants), ["d1 | group | g1", "d1 | user | u1"]);
    let bare = computers(r#"{"devices":[{"id":"d1"}]}"#, false).unwrap();
    assert!(!bare.parts.contains_key(&InventoryPart::Grants), "nothing was shown about access");
    assert!(!format!("{snapshot:?}").contains("planted"));
}

#[test]
fn tokens_are_keyed_by_title_and_number_in_any_served_order() {
    let tokens = [
        r#"{"title":"ci","scopes":["b","a"],"lastUsed":1763640000,"lastUsedIPAddress":"192.0.2.1","expiresAt":1763650000}"#,
        r#"{"title":"ci","expiresAt":1763640000,"token":"planted"}"#,
        r#"{"lastUsed":"2025-11-20T12:00:00Z"}"#,
    ];
    let info = |order: [usize; 3]| {
        let list = order.map(|at| tokens[at]).join(",");
        let text =
            format!(r#"{{"totp":{{"enabled":true}},"authProviders":[{{"provider":"saml"}}],"tokenLog":[{list}]}}"#);
        user_info("u1", &text).unwrap()
    };
    let snapshot = info([0, 1, 2]);
    assert_eq!(shown(&snapshot, InventoryPart::SignIn), [r#"u1 | true | ["saml"]"#]);
    assert_eq!(
        shown(&snapshot, InventoryPart::Tokens),
        [
            "u1 | (untitled) #1 | - | - | 1763640000000000 | - | -",
            "u1 | ci #1 | ci | - | - | - | 1763640000000000",
            r#"u1 | ci #2 | ci | ["a","b"] | 1763640000000000 | 192.0.2.1 | 1763650000000000"#,
        ]
    );
    assert_eq!(unknown(&snapshot), ["info.tokenLog.token string 1"]);
    assert_eq!(info([2, 1, 0]), snapshot);
    assert!(!format!("{snapshot:?}").contains("planted"));
}

#[test]
fn an_answer_of_another_shape_is_refused_completely() {
    let long = "x".repeat(300);
    for text in
        ["", "null", "[]", "<html></html>", "{", r#"{"groups":[]}"#, r#"{"groups":{"":{}}}"#, r#"{"groups":{"g":[]}}"#]
    {
        assert!(team(text).is_err(), "{text}");
    }
    for text in [
        r#"{"groups":{"g":{"users":{}}}}"#,
        r#"{"groups":{"g":{"users":[1]}}}"#,
        r#"{"groups":{"g":{"devices":[""]}}}"#,
    ] {
        assert!(team(text).is_err(), "{text}");
    }
    for list in [
        "",
        "null",
        "{}",
        "<html></html>",
        r#"{"users":null,"devices":null}"#,
        r#"{"users":{},"devices":{}}"#,
        r#"{"users":[{}],"devices":[{}]}"#,
        r#"{"users":[[]],"devices":[[]]}"#,
        r#"{"users":[{"id":""}],"devices":[{"id":""}]}"#,
        r#"{"users":[{"id":7}],"devices":[{"id":7}]}"#,
        r#"{"users":[{"id":"a"},{"id":"a"}],"devices":[{"id":"a"},{"id":"a"}]}"#,
        &format!(r#"{{"users":[{{"id":"{long}"}}],"devices":[{{"id":"{long}"}}]}}"#),
    ] {
        assert!(users(list).is_err() && computers(list, true).is_err() && sso_users(list).is_err(), "{list}");
    }
    assert!(computers(r#"{"devices":[{"id":"a","users":"u1"}]}"#, true).is_err());
    for text in ["", "[]", r#"{"totp":true}"#, r#"{"tokenLog":{}}"#, r#"{"tokenLog":["x"]}"#] {
        assert!(user_info("u1", text).is_err(), "{text}");
    }
}

fn seen_at(day: u32) -> i64 {
    Instant::from_seconds(1_763_640_000 + i64::from(day) * 86_400).micros()
}

fn entries(names: &[(&str, &str)]) -> Entries {
    names.iter().map(|(id, name)| (vec![(*id).to_owned()], vec![InventoryValue::Text((*name).to_owned())])).collect()
}

#[test]
fn a_scan_writes_changes_and_once_a_month_everything() {
    let mut part = ArchivedPart::default();
    for (day, scope, names, expected) in [
        (0, Scope::Whole, vec![("a", "1"), ("b", "1")], vec!["a+1", "b+1"]),
        (1, Scope::Whole, vec![("a", "1"), ("b", "1")], vec![]),
        (2, Scope::Whole, vec![("a", "2"), ("c", "1")], vec!["a+2", "c+1", "b-1"]),
        (3, Scope::User("c"), vec![("c", "2")], vec!["c+2"]),
        (4, Scope::User("c"), vec![], vec!["c-2"]),
        (12, Scope::Whole, vec![("a", "2"), ("b", "9")], vec!["a=2", "b+9"]),
        (13, Scope::Whole, vec![], vec!["a-2", "b-9"]),
    ] {
        let rows = part.changes(InventoryPart::Groups, scope, &entries(&names), seen_at(day));
        let sign = |row: &InventoryRow| {
            if row.repeats {
                '='
            } else if row.present {
                '+'
            } else {
                '-'
            }
        };
        let text = |row: &InventoryRow| match &row.values[0] {
            InventoryValue::Text(text) => format!("{}{}{text}", row.key[0], sign(row)),
            other => panic!("{other:?}"),
        };
        assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), expected, "day {day}");
        part.follow(rows);
    }
    assert!(part.is_empty());
}

#[test]
fn users_are_due_in_the_order_shown_never_read_oldest() {
    let mut part = ArchivedPart::default();
    for (user, day) in [("b", 5), ("a", 3), ("c", 9)] {
        let seen = BTreeMap::from([(vec![user.to_owned()], vec![InventoryValue::Unknown])]);
        part.follow(part.clone().changes(InventoryPart::SignIn, Scope::User(user), &seen, seen_at(day)));
    }
    let users: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    assert_eq!(ArchivedPart::default().users_due(&users, Instant::from_nanos(0), (3, 6)), ["c", "d", "a", "b"]);
    let since = Instant::from_nanos(seen_at(9) * 1_000);
    assert_eq!(part.users_due(&users, since, (0, 0)), ["d", "a", "b"]);
    assert_eq!(part.users_due(&users, since, (1, 7)), ["a", "d", "b"]);
    assert_eq!(part.users_due(&users, since, (9, 0)), ["a", "b", "d"]);
    // A read without changes is recorded, too.
    let seen = BTreeMap::from([(vec!["a".to_owned()], vec![InventoryValue::Unknown])]);
    let rows = part.changes(InventoryPart::SignIn, Scope::User("a"), &seen, seen_at(10));
    assert!(rows[0].repeats && rows[0].present);
    part.follow(rows);
    assert_eq!(part.users_due(&users, since, (0, 0)), ["d", "b"]);
}

fn any_entries() -> impl Strategy<Value = Entries> {
    let value = prop_oneof![
        Just(InventoryValue::Unknown),
        "[a-c]{0,2}".prop_map(InventoryValue::Text),
        any::<bool>().prop_map(InventoryValue::Flag),
        (0..3i64).prop_map(InventoryValue::Time),
    ];
    prop::collection::btree_map(prop::collection::vec("[a-d]", 1..3), prop::collection::vec(value, 1..3), 0..8)
}

proptest! {
    #[test]
    fn replayed_rows_of_scans_give_the_last_scan(scans in prop::collection::vec((any_entries(), 0..200u32), 1..8)) {
        let mut part = ArchivedPart::default();
        let mut rows = Vec::new();
        let mut day = 0;
        for (seen, gap) in scans {
            day += gap + 1;
            let new = part.changes(InventoryPart::Users, Scope::Whole, &seen, seen_at(day));
            // A second read of the same makes no rows.
            let mut after = part.clone();
            after.follow(new.clone());
            prop_assert_eq!(after.changes(InventoryPart::Users, Scope::Whole, &seen, seen_at(day) + 1), vec![]);
            prop_assert_eq!(after.entries(), seen);
            rows.extend(new.clone());
            part = after;
            // The rows of one month give the same state as all rows.
            let month = |row: &&InventoryRow| Instant::from_nanos(row.seen_at * 1_000).month();
            let newest = rows.iter().map(|row| month(&row)).max();
            let recent = rows.iter().filter(|row| Some(month(row)) == newest).cloned();
            prop_assert_eq!(ArchivedPart::of(recent).entries(), part.entries());
        }
        prop_assert_eq!(ArchivedPart::of(rows), part);
    }

    #[test]
    fn no_answer_panics_or_passes_the_allow_list(text in "[\\[\\]{}\":,a-z0-9]{0,60}", json in any_json(3)) {
        for text in [text, json.to_string()] {
            let _ = (team(&text), users(&text), sso_users(&text), computers(&text, true), user_info("u", &text));
        }
    }
}

fn any_json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let names = "(users|devices|groups|id|totp|tokenLog|annotations|planFeatures|key|value|x)";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
