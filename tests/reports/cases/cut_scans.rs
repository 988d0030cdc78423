//! Sign-in details whose reading was cut: some people have newer details than the last complete reading.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::Draft;
use annals::inventory::{ArchivedPart, Scope, user_info};
use annals::model::{InventoryPart, TeamId};
use serde_json::json;

use crate::reporting::{Place, at};

use super::{TEAM, asked, column, commit, people, read_roster};

#[test]
fn details_that_are_newer_than_the_roster_decide_on_the_second_factor() {
    let place = Place::empty();
    let info = |is_on: bool| json!({"totp": {"enabled": is_on}, "authProviders": [{"provider": "password"}]});
    for (seen_at, role) in [("2026-10-13T03:00:00Z", "user"), ("2026-10-20T03:00:00Z", "admin")] {
        let users = json!([{"id": "u1", "email": "ann@own.example", "role": role, "remoteAccess": "enabled",
            "totpEnabled": false, "authProviders": ["password"]}]);
        let mut served = people(&users, &json!({}), &json!([]));
        if role == "user" {
            served["info"] = json!({"u1": info(false)});
        }
        read_roster(&place, seen_at, &served);
    }
    let (part, seen_at) = (InventoryPart::SignIn, at("2026-10-20T04:00:00Z"));
    let shown = user_info("u1", &info(true).to_string()).unwrap();
    let rows = place.opened().read(&TeamId::from(TEAM)).unwrap().rows().inventory(part).unwrap();
    let rows = ArchivedPart::of(rows).changes(part, Scope::User("u1"), &shown.parts[&part], seen_at.micros());
    commit(&place, Draft { inventory: vec![(part, rows)], ..Draft::default() }, seen_at);
    assert_eq!(column(&place, &asked("R10"), "verdict"), ["PASS"]);
    assert_eq!(column(&place, &asked("R09"), "second_factor"), ["PASS"]);
}
