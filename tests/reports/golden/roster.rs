//! Turns the roster of one day into inventory rows.

use std::path::Path;

use annals::archive::{Draft, InventoryRead, TeamWriter};
use annals::inventory::{ArchivedPart, Scope, ShownParts, computers, sso_users, team, user_info, users};
use annals::model::{Instant, InventoryPart, InventoryRow};
use serde_json::Value;

const INFO: [InventoryPart; 2] = [InventoryPart::SignIn, InventoryPart::Tokens];

/// Commits a reading of the roster in the file at `path`, at `seen_at`.
pub fn write(writer: &mut TeamWriter, path: &Path, seen_at: Instant) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    record(writer, &serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())), seen_at);
}

/// Commits a reading of the roster `served`, at `seen_at`.
pub fn record(writer: &mut TeamWriter, served: &Value, seen_at: Instant) {
    let roster = roster(served);
    let mut draft = Draft::default();
    for part in InventoryPart::ALL {
        let mut part_before = ArchivedPart::of(writer.rows().inventory(part).unwrap());
        let rows = if INFO.contains(&part) {
            told_of_each(served, part, &mut part_before, seen_at)
        } else {
            roster
                .parts
                .get(&part)
                .map_or_else(Vec::new, |entries| part_before.changes(part, Scope::Whole, entries, seen_at.micros()))
        };
        let visible =
            if INFO.contains(&part) { served.get("info").is_some() } else { roster.parts.contains_key(&part) };
        part_before.follow(rows.iter().cloned());
        if !rows.is_empty() {
            draft.inventory.push((part, rows));
        }
        let entities = if visible { part_before.len() as u64 } else { 0 };
        draft.body.inventory.push(InventoryRead { part, read_at: seen_at, visible, entities });
    }
    let _ = writer.commit(draft, seen_at).unwrap();
}

fn roster(served: &Value) -> ShownParts {
    let text = |name: &str| served[name].to_string();
    let whole = team(&text("team")).unwrap();
    let is_whole = whole.parts.contains_key(&InventoryPart::Groups);
    let mut roster = whole.with(users(&text("users")).unwrap()).with(computers(&text("devices"), is_whole).unwrap());
    if served.get("saml/users").is_some() {
        roster = roster.with(sso_users(&text("saml/users")).unwrap());
    }
    roster
}

/// One part of the authentication info of each user.
fn told_of_each(
    served: &Value,
    part: InventoryPart,
    part_before: &mut ArchivedPart,
    seen_at: Instant,
) -> Vec<InventoryRow> {
    let infos = served.get("info").and_then(Value::as_object);
    let mut rows = Vec::new();
    for (user, info) in infos.into_iter().flatten() {
        let roster = user_info(user, &info.to_string()).unwrap();
        if let Some(entries) = roster.parts.get(&part) {
            rows.extend(part_before.changes(part, Scope::User(user), entries, seen_at.micros()));
        }
    }
    rows
}
