//! Readings of the users' sign-in info in virtual time: interruptions, and users that the service refuses.

use std::time::Duration;

use annals::model::InventoryPart;

use crate::common::team_world::{Ask, activity, unavailable};
use crate::inventory::{asked, info, keys, last_scan, settings, taken, users, world};

#[tokio::test]
async fn requests_about_users_continue_after_an_interruption() {
    let world = world();
    let ids: Vec<String> = (0..120).map(|n| format!("u{n:03}")).collect();
    let listed: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "user")).collect();
    world.team().roster.users = users(&listed);
    world.team().roster.info = ids.iter().map(|id| (id.clone(), info("web"))).collect();
    let cut = |ask: &Ask<'_>| matches!(ask, Ask::UserInfo(user) if *user >= "u070");
    world.on_ask(move |ask, _| cut(ask).then(unavailable));
    let round = world.round(&settings()).await;
    assert_eq!(round.scan.failures.len(), 3, "after three failures the program sends no more requests");
    assert_eq!(keys(&world, InventoryPart::SignIn).len(), 70);
    assert!(world.state().last_scan(InventoryPart::SignIn).is_none());
    world.set_now("2026-10-30T08:01:00Z");
    let asked = asked(&world);
    world.sync(&settings()).await;
    let asked = taken(&asked);
    assert_eq!(asked.matches("info ").count(), 50, "{asked}");
    assert!(asked.contains("info u070") && !asked.contains("info u069"), "{asked}");
    assert_eq!(last_scan(&world, InventoryPart::SignIn).entities, 120);
    assert_eq!(keys(&world, InventoryPart::Tokens).len(), 120);
}

#[tokio::test]
async fn refused_users_are_skipped() {
    let world = world();
    world.team().roster.info.remove("u1");
    world.sync(&settings()).await;
    assert_eq!(keys(&world, InventoryPart::SignIn), ["u2"]);
    assert!(last_scan(&world, InventoryPart::SignIn).visible);
    // A refusal about a new user does not hide the others either.
    world.set_now("2026-10-30T09:00:00Z");
    world.team().activity.push(activity("teamUserAddedEvent", "u3", "2026-10-30T08:30:00Z"));
    world.team().roster.users = users(&[("u1", "admin"), ("u2", "user"), ("u3", "user")]);
    world.sync(&settings()).await;
    assert!(last_scan(&world, InventoryPart::SignIn).visible);
    // If the service refuses every user, the reading stops after three refusals.
    let world = self::world();
    let ids: Vec<String> = (0..9).map(|n| format!("u{n}")).collect();
    let listed: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "user")).collect();
    world.team().roster.users = users(&listed);
    world.team().roster.info.clear();
    let asked = asked(&world);
    world.sync(&settings()).await;
    assert_eq!(taken(&asked).matches("info ").count(), 3);
    assert!(!last_scan(&world, InventoryPart::SignIn).visible && !last_scan(&world, InventoryPart::Tokens).visible);
    world.set_now("2026-10-30T09:00:00Z");
    world.sync(&settings()).await;
    assert_eq!(taken(&asked), "team, computers");
}

#[tokio::test]
async fn users_that_the_service_always_refuses_hide_no_others() {
    let world = world();
    let visible = || last_scan(&world, InventoryPart::SignIn).visible;
    let list = |ids: &[&str]| {
        let listed: Vec<(&str, &str)> = ids.iter().map(|id| (*id, "user")).collect();
        world.team().roster.users = users(&listed);
    };
    list(&["u5", "u6", "u7", "u8"]);
    world.team().roster.info = ["u5", "u6", "u7", "u8"].map(|id| (id.to_owned(), info("web"))).into();
    world.sync(&settings()).await;
    list(&["a1", "a2", "a3", "u5", "u6", "u7", "u8"]);
    // A new reading of the list: only the new users are due.
    world.team().activity.push(activity("teamUserAddedEvent", "a1", "2026-10-30T08:30:00Z"));
    world.set_now("2026-10-30T09:00:00Z");
    world.sync(&settings()).await;
    assert!(visible());
    // A day later, all are due.
    world.team().roster.info.insert("u8".to_owned(), info("telephone"));
    world.set_now("2026-10-31T10:00:00Z");
    world.sync(&settings()).await;
    assert!(visible());
    assert!(keys(&world, InventoryPart::Tokens).contains(&"u8 telephone #1".to_owned()));
    // Without any earlier answer, the scan begins with other users each day.
    let world = self::world();
    let listed = ["a1", "a2", "a3", "u5"].map(|id| (id, "user"));
    world.team().roster.users = users(&listed);
    world.team().roster.info = [("u5".to_owned(), info("web"))].into();
    let mut days = Vec::new();
    for day in ["29", "30", "31"] {
        world.set_now(&format!("2026-10-{day}T10:00:00Z"));
        world.sync(&settings()).await;
        days.push(last_scan(&world, InventoryPart::SignIn).visible);
    }
    assert!(!days[0]);
    assert!(days.contains(&true), "the answers of other users decide within days");
}

/// The service's `Date` has whole seconds, so its clock seems to go back within a second.
#[tokio::test]
async fn sign_in_info_is_later_than_the_roster_before_it() {
    let world = world();
    let ids = ["u1", "u2", "u3"];
    world.team().roster.users = users(&ids.map(|id| (id, "user")));
    world.team().roster.info = ids.map(|id| (id.to_owned(), info("web"))).into();
    world.on_ask(|ask, team| {
        let ahead = if matches!(ask, Ask::UserInfo(_)) { 0 } else { 900 };
        team.wild_date = Some(team.now.plus(Duration::from_millis(ahead)));
        None
    });
    world.sync(&settings()).await;
    let times = [InventoryPart::Users, InventoryPart::SignIn].map(|part| last_scan(&world, part).read_at);
    assert!(times[0] < times[1], "{times:?}");
}
