//! Inventory readings in virtual time: the requests and their times, and the archive's content afterwards.

use crate::common;

use std::sync::{Arc, Mutex};

use annals::api::ApiError;
use annals::archive::{Archive, FindingKind, InventoryRead};
use annals::inventory::ArchivedPart;
use annals::model::{InventoryPart, InventoryValue, Stream, TeamId};
use annals::pipeline::{InventorySettings, ScanMode, Settings};
use common::team_world::{Ask, Roster, World, activity, at, connection, unavailable};

const TEAM: &str =
    r#"{"id":"t","name":"Team","users":{"u1":{}},"groups":{"g1":{"name":"Lab","users":["u1"],"devices":["d1"]}}}"#;

fn user(id: &str, role: &str) -> String {
    format!(r#"{{"id":"{id}","email":"{id}@example.com","role":"{role}"}}"#)
}

pub fn users(all: &[(&str, &str)]) -> String {
    let all: Vec<String> = all.iter().map(|(id, role)| user(id, role)).collect();
    format!(r#"{{"users":[{}]}}"#, all.join(","))
}

pub fn info(title: &str) -> String {
    format!(
        r#"{{"totp":{{"enabled":true}},"authProviders":[{{"provider":"saml"}}],"tokenLog":[{{"title":"{title}"}}]}}"#
    )
}

fn roster() -> Roster {
    Roster {
        team: TEAM.to_owned(),
        computers: r#"{"devices":[{"id":"d1","name":"one","users":["u1"]},{"id":"d2","groups":["g1"]}]}"#.to_owned(),
        users: users(&[("u1", "admin"), ("u2", "user")]),
        sso_users: "[]".to_owned(),
        info: ["u1", "u2"].map(|id| (id.to_owned(), info("web"))).into(),
    }
}

pub fn world() -> Arc<World> {
    let world = World::new("2026-10-30T08:00:00Z");
    world.team().roster = roster();
    world.team().connections.push(connection("c1", "d1", "2026-10-30T07:00:00Z"));
    world
}

pub fn settings() -> Settings {
    let inventory = InventorySettings { scan: ScanMode::WhenDue, user_info: true };
    Settings { inventory, ..Settings::default() }
}

/// The requests other than those of streams, in order.
pub fn asked(world: &World) -> Arc<Mutex<Vec<String>>> {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    world.on_ask(move |ask, _| {
        let name = match ask {
            Ask::Team => "team".to_owned(),
            Ask::Devices => "computers".to_owned(),
            Ask::Users => "users".to_owned(),
            Ask::SsoUsers => "sso_users".to_owned(),
            Ask::UserInfo(user) => format!("info {user}"),
            Ask::Teams | Ask::Page(_) | Ask::Billing => return None,
        };
        seen.lock().unwrap().push(name);
        None
    });
    asked
}

pub fn taken(asked: &Mutex<Vec<String>>) -> String {
    std::mem::take(&mut *asked.lock().unwrap()).join(", ")
}

fn archived(world: &World, part: InventoryPart) -> ArchivedPart {
    let archive = Archive::open_or_create(world.store.clone(), || "test".to_owned()).unwrap();
    ArchivedPart::of(archive.read(&TeamId::from("t")).unwrap().rows().inventory(part).unwrap())
}

/// The keys in force, joined.
pub fn keys(world: &World, part: InventoryPart) -> Vec<String> {
    archived(world, part).keys().map(|key| key.join(" ")).collect()
}

pub fn last_scan(world: &World, part: InventoryPart) -> InventoryRead {
    *world.state().last_scan(part).unwrap()
}

#[tokio::test]
async fn the_first_round_reads_everything_and_a_quiet_round_requests_nothing_more() {
    let world = world();
    let asked = asked(&world);
    world.sync(&settings()).await;
    assert_eq!(taken(&asked), "team, computers, computers, team, users, sso_users, info u1, info u2");
    for (part, expected) in [
        (InventoryPart::Team, vec![""]),
        (InventoryPart::Users, vec!["u1", "u2"]),
        (InventoryPart::SsoUsers, vec![]),
        (InventoryPart::Computers, vec!["d1", "d2"]),
        (InventoryPart::Groups, vec!["g1"]),
        (InventoryPart::Memberships, vec!["g1 computer d1", "g1 user u1"]),
        (InventoryPart::Grants, vec!["d1 user u1", "d2 group g1"]),
        (InventoryPart::SignIn, vec!["u1", "u2"]),
        (InventoryPart::Tokens, vec!["u1 web #1", "u2 web #1"]),
    ] {
        assert_eq!(keys(&world, part), expected, "{part}");
        assert_eq!(
            (last_scan(&world, part).visible, last_scan(&world, part).entities),
            (true, expected.len() as u64),
            "{part}"
        );
    }
    let before = world.state();
    for now in ["2026-10-30T08:05:00Z", "2026-10-30T20:00:00Z", "2026-10-31T06:59:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
        assert_eq!(taken(&asked), "team, computers", "{now}");
    }
    assert_eq!(world.state().inventory, before.inventory);
}

#[tokio::test]
async fn days_become_versions_and_months_one_file_each() {
    let world = world();
    world.sync(&settings()).await;
    let days = [
        ("2026-10-31T08:00:00Z", users(&[("u1", "admin"), ("u2", "admin")]), vec!["u1", "u2"]),
        ("2026-11-01T08:00:00Z", users(&[("u1", "admin")]), vec!["u1"]),
        ("2026-11-02T08:00:00Z", users(&[("u1", "admin"), ("u3", "user")]), vec!["u1", "u3"]),
        ("2027-01-02T08:00:00Z", users(&[("u3", "user")]), vec!["u3"]),
    ];
    for (now, listed, expected) in days {
        world.set_now(now);
        world.team().roster.users = listed;
        world.sync(&settings()).await;
        assert_eq!(keys(&world, InventoryPart::Users), expected, "{now}");
        assert_eq!(last_scan(&world, InventoryPart::Users).read_at, at(now));
    }
    let archive = Archive::open_or_create(world.store.clone(), || "test".to_owned()).unwrap();
    let rows = archive.read(&TeamId::from("t")).unwrap().rows().inventory(InventoryPart::Users).unwrap();
    let change_of = |row: &annals::model::InventoryRow| {
        let sign = if row.repeats {
            '='
        } else if row.present {
            '+'
        } else {
            '-'
        };
        let role = match &row.values[3] {
            InventoryValue::Text(role) => role.clone(),
            other => panic!("{other:?}"),
        };
        format!("{}{sign}{role}", row.key[0])
    };
    // The newest two months: November and January each begin with the full inventory.
    let changes: Vec<String> = rows.iter().map(change_of).collect();
    assert_eq!(changes, ["u1=admin", "u2-admin", "u3+user", "u1-admin", "u3=user"]);
    let places: Vec<String> = world
        .state()
        .files
        .keys()
        .filter_map(|path| {
            let name = path.split("inventory_users/team=t/").nth(1)?.split_once('/')?.1;
            Some(name.rsplit_once('-')?.0.to_owned())
        })
        .collect();
    assert_eq!(places, ["20261001t000000z-month", "20261101t000000z-month", "20270102t000000z-part"]);
    // The archive keeps the last known tokens of a user who left, because the service shows them no longer.
    assert_eq!(keys(&world, InventoryPart::Tokens), ["u1 web #1", "u2 web #1"]);
}

#[tokio::test]
async fn a_change_in_activity_causes_an_inventory_reading_but_a_sign_in_does_not() {
    let world = world();
    world.sync(&settings()).await;
    let asked = asked(&world);
    for (now, event, time, expected) in [
        ("2026-10-30T09:00:00Z", "teamUserLoggedInEvent", "2026-10-30T08:59:00Z", "team, computers"),
        (
            "2026-10-30T10:00:00Z",
            "teamUserAddedEvent",
            "2026-10-30T09:59:00Z",
            "team, computers, team, users, sso_users, info u4",
        ),
        ("2026-10-30T11:00:00Z", "teamUserLoggedInEvent", "2026-10-30T10:59:00Z", "team, computers"),
        ("2026-10-30T12:00:00Z", "teamPolicyEvent", "2026-10-30T13:30:00Z", "team, computers"),
        ("2026-10-30T13:00:00Z", "teamUserLoggedInEvent", "2026-10-30T12:59:00Z", "team, computers"),
        (
            "2026-10-30T14:00:00Z",
            "teamUserLoggedInEvent",
            "2026-10-30T13:59:00Z",
            "team, computers, team, users, sso_users",
        ),
        // A late event about a change that the last reading already saw.
        ("2026-10-30T15:00:00Z", "teamUserAddedEvent", "2026-10-30T13:00:00Z", "team, computers"),
    ] {
        world.set_now(now);
        world.team().activity.push(activity(event, "u4", time));
        if now == "2026-10-30T10:00:00Z" {
            world.team().roster.users = users(&[("u1", "admin"), ("u2", "user"), ("u4", "user")]);
            world.team().roster.info.insert("u4".to_owned(), info("web"));
        }
        world.sync(&settings()).await;
        assert_eq!(taken(&asked), expected, "{now}");
    }
    assert_eq!(keys(&world, InventoryPart::Tokens), ["u1 web #1", "u2 web #1", "u4 web #1"]);
}

#[tokio::test]
async fn a_hidden_part_is_recorded_and_removes_nothing() {
    let world = world();
    world.sync(&settings()).await;
    let held = |part| keys(&world, part);
    let before: Vec<_> = InventoryPart::ALL.map(held).into();
    world.set_now("2026-10-31T08:00:00Z");
    world.team().roster = Roster {
        team: r#"{"id":"t","name":"Team"}"#.to_owned(),
        computers: r#"{"devices":[{"id":"d1","name":"one"},{"id":"d2"}]}"#.to_owned(),
        ..Roster::default()
    };
    let round = world.sync(&settings()).await;
    assert!(round.is_done());
    let after: Vec<_> = InventoryPart::ALL.map(held).into();
    assert_eq!(after, before);
    for part in InventoryPart::ALL {
        let is_shown = matches!(part, InventoryPart::Team | InventoryPart::Computers);
        assert_eq!(last_scan(&world, part).visible, is_shown, "{part}");
        assert_eq!(last_scan(&world, part).read_at.seconds(), at("2026-10-31T08:00:00Z").seconds(), "{part}");
    }
    // The next reading is a day later, not at the next poll.
    let asked = asked(&world);
    world.set_now("2026-10-31T09:00:00Z");
    world.sync(&settings()).await;
    assert_eq!(taken(&asked), "team, computers");
    world.set_now("2026-11-01T08:00:00Z");
    world.team().roster = roster();
    world.sync(&settings()).await;
    assert_eq!(taken(&asked), "team, computers, team, users, sso_users, info u1, info u2");
    assert!(InventoryPart::ALL.iter().all(|part| last_scan(&world, *part).visible));
}

#[tokio::test]
async fn a_failed_inventory_reading_does_not_affect_the_streams_and_is_retried() {
    let world = world();
    world.on_ask(|ask, _| matches!(ask, Ask::Users).then(unavailable));
    let round = world.round(&settings()).await;
    assert!(round.failures.is_empty() && !round.is_done());
    assert_eq!(world.held(Stream::Connections).len(), 1);
    assert!(world.state().last_scan(InventoryPart::Users).is_none());
    assert_eq!(keys(&world, InventoryPart::Computers), ["d1", "d2"]);
    world.set_now("2026-10-30T08:01:00Z");
    let asked = asked(&world);
    world.sync(&settings()).await;
    assert_eq!(taken(&asked), "team, computers, team, users, info u1, info u2");
    assert_eq!(keys(&world, InventoryPart::Users), ["u1", "u2"]);
    // An answer of another shape is also a failure, and removes no user.
    world.calm();
    for listed in [r#"{"users":{}}"#, r#"{"users":[{"id":"u1"},{"id":"u1"}]}"#, "<html>", r#"{"users":[{"id":""}]}"#] {
        world.set_now("2026-10-31T08:00:00Z");
        world.team().roster.users = listed.to_owned();
        let round = world.round(&settings()).await;
        assert!(!round.is_done() && round.failures.is_empty(), "{listed}");
        assert_eq!(keys(&world, InventoryPart::Users), ["u1", "u2"], "{listed}");
    }
}

#[tokio::test]
async fn inventory_readings_follow_the_settings() {
    let world = world();
    let asked = asked(&world);
    for (scan, user_info, expected) in [
        (ScanMode::Never, true, "team, computers, computers"),
        (ScanMode::WhenDue, false, "team, computers, team, users, sso_users"),
        (ScanMode::WhenDue, false, "team, computers"),
        (ScanMode::Now, false, "team, computers, team, users, sso_users"),
        (ScanMode::Now, true, "team, computers, team, users, sso_users, info u1, info u2"),
        (ScanMode::Now, true, "team, computers, team, users, sso_users"),
    ] {
        let inventory = InventorySettings { scan, user_info };
        world.sync(&Settings { inventory, ..Settings::default() }).await;
        assert_eq!(taken(&asked), expected, "{scan:?} {user_info}");
    }
    // Without the streams, the inventory reading lists the computers itself.
    let inventory = InventorySettings { scan: ScanMode::Now, user_info: false };
    world.sync(&Settings { inventory, streams: Vec::new(), ..Settings::default() }).await;
    assert_eq!(taken(&asked), "team, team, computers, users, sso_users");
}

#[tokio::test]
async fn a_clock_that_was_ahead_neither_stops_nor_reverses_inventory_readings() {
    let world = world();
    world.set_now("2030-01-01T00:00:00Z");
    world.sync(&settings()).await;
    world.set_now("2026-10-30T08:00:00Z");
    world.team().roster.users = users(&[("u1", "user")]);
    world.sync(&settings()).await;
    assert_eq!(keys(&world, InventoryPart::Users), ["u1"]);
    assert!(last_scan(&world, InventoryPart::Users).read_at > at("2030-01-01T00:00:00Z"));
}

#[tokio::test]
async fn undocumented_fields_are_announced_once_by_path_and_kind() {
    let world = world();
    world.team().roster.users =
        r#"{"users":[{"id":"u1","mood":"planted"},{"id":"u2","mood":"planted","age":7}]}"#.to_owned();
    for now in ["2026-10-30T08:00:00Z", "2026-10-31T08:00:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
    }
    let fields: Vec<String> =
        world.findings(FindingKind::UnknownField).into_iter().map(|f| format!("{} {}", f.subject, f.count)).collect();
    assert_eq!(fields, ["users.age: number 1", "users.mood: string 2"]);
}

#[tokio::test]
async fn a_refused_list_of_tokens_is_no_failure() {
    let world = world();
    world.on_ask(|ask, _| match ask {
        Ask::Users | Ask::SsoUsers => Some(ApiError::Refused { what: "a request".into(), status: 403 }),
        _ => None,
    });
    let round = world.sync(&settings()).await;
    assert!(round.is_done());
    assert!(!last_scan(&world, InventoryPart::Users).visible);
    assert!(world.state().last_scan(InventoryPart::SignIn).is_none(), "no user is known");
}

#[tokio::test]
async fn an_empty_list_of_users_is_refused_if_the_team_had_users() {
    let world = world();
    world.sync(&settings()).await;
    // On the second day the token may not list the users.
    for (now, listed) in
        [("2026-10-31T09:00:00Z", true), ("2026-11-01T09:00:00Z", false), ("2026-11-02T09:00:00Z", true)]
    {
        world.team().roster.users = if listed { users(&[]) } else { String::new() };
        world.set_now(now);
        let failures = world.sync(&settings()).await.scan.failures;
        let is_refused = failures.iter().any(|error| error.to_string().contains("had 2 users"));
        assert_eq!((is_refused, keys(&world, InventoryPart::Users).len()), (listed, 2), "{now}: {failures:?}");
    }
}
