//! Inventory readings of a person who was away for months.

use annals::archive::Archive;
use annals::inventory::ArchivedPart;
use annals::model::{InventoryPart, TeamId};

use crate::inventory::{settings, users, world};

/// The newest two months have rows of the first user alone.
#[tokio::test]
async fn a_user_who_comes_back_after_months_without_a_token_has_none() {
    let world = world();
    world.sync(&settings()).await;
    let (both, first) = (users(&[("u1", "admin"), ("u2", "user")]), users(&[("u1", "admin")]));
    for (now, listed) in [
        ("2026-11-02T08:00:00Z", &first),
        ("2026-12-02T08:00:00Z", &first),
        ("2027-01-02T08:00:00Z", &first),
        ("2027-01-04T08:00:00Z", &both),
    ] {
        world.set_now(now);
        {
            let mut team = world.team();
            team.roster.users.clone_from(listed);
            team.roster.info.insert("u2".to_owned(), r#"{"totp":{"enabled":true}}"#.to_owned());
        }
        world.sync(&settings()).await;
    }
    let archive = Archive::open_or_create(world.store.clone(), || "test".to_owned()).unwrap();
    let rows = archive.read(&TeamId::from("t")).unwrap().rows().whole_inventory(InventoryPart::Tokens).unwrap();
    let keys: Vec<String> = ArchivedPart::of(rows).keys().map(|key| key.join(" ")).collect();
    assert_eq!(keys, ["u1 web #1"]);
}
