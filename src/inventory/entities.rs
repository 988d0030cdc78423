//! Parses answers about people and computers, and takes the fields of the allow-list.

use std::collections::BTreeMap;

use crate::api::json::Object;
use crate::api::roster::is_usable_id;
use crate::model::{InventoryPart, InventoryValue};

use super::archived_part::Entries;
use super::fields::{Fields, Malformed, Unknown, list};

const TEAM: [&str; 16] = [
    "id",
    "name",
    "avatarURL",
    "createdAt",
    "billing",
    "deleteSchedule",
    "deviceConfigs",
    "deviceInvites",
    "devices",
    "groups",
    "planFeatures",
    "saml",
    "security",
    "userDeviceMigrate",
    "userInvites",
    "users",
];
const USER: [&str; 14] = [
    "id",
    "email",
    "firstName",
    "lastName",
    "avatarURL",
    "role",
    "remoteAccess",
    "totpEnabled",
    "authProviders",
    "annotations",
    "joinedOn",
    "lastUsedAt",
    "scimUserInfo",
    "userDeviceMigrate",
];
const SSO_USER: [&str; 7] = ["id", "email", "firstName", "lastName", "avatarURL", "scimUserInfo", "userDeviceMigrate"];
const COMPUTER: [&str; 7] = ["id", "name", "lastOnlineAt", "users", "groups", "annotations", "clientInfo"];
const GROUP: [&str; 6] = ["id", "name", "users", "devices", "annotations", "scimManaged"];
const USER_INFO: [&str; 3] = ["totp", "authProviders", "tokenLog"];
const TOKEN: [&str; 5] = ["title", "scopes", "lastUsed", "lastUsedIPAddress", "expiresAt"];
/// The annotation that the dashboard shows as a computer's tags.
const TAG: &str = "tag";
const UNTITLED: &str = "(untitled)";
/// Maximum number of kept tokens of one user.
const TOKENS_MAX: usize = 1_000;

/// The content of an answer: each part that it shows completely, and its unexpected fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownParts {
    /// The answer does not show a missing part, so nothing is known about it.
    pub parts: BTreeMap<InventoryPart, Entries>,
    pub unknown: Unknown,
}

impl ShownParts {
    fn add(&mut self, part: InventoryPart, key: Vec<String>, values: Vec<InventoryValue>) {
        self.parts.entry(part).or_default().insert(key, values);
    }

    /// Joins two answers.
    #[must_use]
    pub fn with(mut self, other: ShownParts) -> ShownParts {
        self.parts.extend(other.parts);
        self.unknown = self.unknown.with(&other.unknown);
        self
    }
}

fn malformed(what: &str) -> Malformed {
    Malformed(what.to_owned())
}

/// The team, and its groups with their members if the view shows them. Callers who are no admins get a limited view without any of
/// the maps. In a full view, an empty map can be missing, like any field without a value.
///
/// # Errors
/// When the text is not a team as documented.
pub fn team(text: &str) -> Result<ShownParts, Malformed> {
    let mut snapshot = ShownParts::default();
    let object = Object::parse(text).ok_or_else(|| malformed("the team is not an object"))?;
    let mut fields = Fields::new(object, "team", &TEAM, &mut snapshot.unknown);
    let has_people =
        fields.text_of("users").and_then(Object::parse).is_some_and(|users| users.fields().next().is_some());
    let is_limited = !["users", "devices", "groups"].iter().any(|map| fields.has(map));
    let span = fields.text_of("planFeatures").and_then(Object::parse);
    let span = span.and_then(|plan| plan.get("deviceEventsMaxRetrievalDuration")?.parse::<i64>().ok());
    let groups = fields.text_of("groups");
    let values = vec![
        fields.text("name"),
        fields.time("createdAt"),
        span.filter(|span| *span >= 0).map_or(InventoryValue::Unknown, InventoryValue::Int),
        fields.scalars("planFeatures", "team.planFeatures"),
        InventoryValue::Flag(is_limited),
    ];
    snapshot.add(InventoryPart::Team, Vec::new(), values);
    if groups.is_some() || has_people {
        snapshot.parts.insert(InventoryPart::Groups, Entries::new());
        snapshot.parts.insert(InventoryPart::Memberships, Entries::new());
    }
    let Some(groups) = groups else { return Ok(snapshot) };
    let groups = Object::parse(groups).ok_or_else(|| malformed("`team.groups` is not an object"))?;
    for (id, text) in groups.fields() {
        let object = Object::parse(text).filter(|_| is_usable_id(id));
        let object =
            object.ok_or_else(|| malformed("an entry of `team.groups` has no valid id or is not an object"))?;
        group(&mut snapshot, id, object)?;
    }
    Ok(snapshot)
}

fn group(snapshot: &mut ShownParts, id: &str, object: Object<'_>) -> Result<(), Malformed> {
    let mut fields = Fields::new(object, "team.groups", &GROUP, &mut snapshot.unknown);
    let (users, computers) = (fields.ids("users")?, fields.ids("devices")?);
    let values = vec![fields.text("name"), fields.flag("scimManaged"), fields.annotations(None)];
    snapshot.add(InventoryPart::Groups, vec![id.to_owned()], values);
    for (kind, members) in [("user", users), ("computer", computers)] {
        for member in members {
            let key = vec![id.to_owned(), kind.to_owned(), member];
            snapshot.add(InventoryPart::Memberships, key, Vec::new());
        }
    }
    Ok(())
}

/// `{users: [User]}`
///
/// # Errors
/// When the text is not a list of users as documented.
pub fn users(text: &str) -> Result<ShownParts, Malformed> {
    let mut snapshot = ShownParts::default();
    snapshot.parts.insert(InventoryPart::Users, Entries::new());
    for (id, object) in entries(text, Some("users"))? {
        let mut fields = Fields::new(object, "users", &USER, &mut snapshot.unknown);
        let values = vec![
            fields.text("email"),
            fields.text("firstName"),
            fields.text("lastName"),
            fields.text("role"),
            fields.text("remoteAccess"),
            fields.flag("totpEnabled"),
            fields.list("authProviders", Some("provider")),
            fields.time("lastUsedAt"),
            fields.presence("scimUserInfo"),
            fields.annotations(None),
            fields.time("joinedOn"),
        ];
        snapshot.add(InventoryPart::Users, vec![id], values);
    }
    Ok(snapshot)
}

/// A list of SSO users.
///
/// # Errors
/// When the text is not a list of SSO users as documented.
pub fn sso_users(text: &str) -> Result<ShownParts, Malformed> {
    let mut snapshot = ShownParts::default();
    snapshot.parts.insert(InventoryPart::SsoUsers, Entries::new());
    for (id, object) in entries(text, None)? {
        let mut fields = Fields::new(object, "saml.users", &SSO_USER, &mut snapshot.unknown);
        let values = vec![
            fields.text("email"),
            fields.text("firstName"),
            fields.text("lastName"),
            fields.presence("scimUserInfo"),
        ];
        snapshot.add(InventoryPart::SsoUsers, vec![id], values);
    }
    Ok(snapshot)
}

/// `{devices: [Computer]}`: the computers, and who has direct access to each. `is_whole`: the caller sees everything. Otherwise, a
/// computer that nobody has access to tells nothing about access.
///
/// # Errors
/// When the text is not a list of computers as documented.
pub fn computers(text: &str, is_whole: bool) -> Result<ShownParts, Malformed> {
    let mut snapshot = ShownParts::default();
    snapshot.parts.insert(InventoryPart::Computers, Entries::new());
    if is_whole {
        snapshot.parts.insert(InventoryPart::Grants, Entries::new());
    }
    for (id, object) in entries(text, Some("devices"))? {
        let mut fields = Fields::new(object, "devices", &COMPUTER, &mut snapshot.unknown);
        let (users, groups) = (fields.ids("users")?, fields.ids("groups")?);
        let (tags, annotations) = (fields.tags(TAG), fields.annotations(Some(TAG)));
        let mut values = vec![fields.text("name"), fields.time("lastOnlineAt"), tags, annotations];
        values.extend(system_of(&mut fields));
        snapshot.add(InventoryPart::Computers, vec![id.clone()], values);
        for (kind, grantees) in [("user", users), ("group", groups)] {
            for grantee in grantees {
                snapshot.add(InventoryPart::Grants, vec![id.clone(), kind.to_owned(), grantee], Vec::new());
            }
        }
    }
    Ok(snapshot)
}

/// Host name, platform and version of a computer's system, from undocumented fields.
fn system_of(computer: &mut Fields<'_, '_>) -> [InventoryValue; 3] {
    let mut client = computer.undocumented("clientInfo", "devices.clientInfo");
    let mut system = client.undocumented("osInfo", "devices.clientInfo.osInfo");
    ["hostname", "platform", "version"].map(|name| system.text(name))
}

/// One user's sign-in methods and tokens.
///
/// # Errors
/// When the text is not authentication info as documented.
pub fn user_info(user: &str, text: &str) -> Result<ShownParts, Malformed> {
    let mut snapshot = ShownParts::default();
    let object = Object::parse(text).ok_or_else(|| malformed("the authentication info is not an object"))?;
    let mut fields = Fields::new(object, "info", &USER_INFO, &mut snapshot.unknown);
    let (totp, tokens) = (fields.text_of("totp"), fields.text_of("tokenLog"));
    let providers = fields.list("authProviders", Some("provider"));
    let totp = totp.map(|text| Object::parse(text).ok_or_else(|| malformed("`info.totp` is not an object")));
    let totp = match totp.transpose()? {
        Some(object) => Fields::new(object, "info.totp", &["enabled"], &mut snapshot.unknown).flag("enabled"),
        None => InventoryValue::Unknown,
    };
    snapshot.add(InventoryPart::SignIn, vec![user.to_owned()], vec![totp, providers]);
    let tokens = tokens.map(|text| list(text).ok_or_else(|| malformed("`info.tokenLog` is not a list")));
    let tokens = tokens.transpose()?.unwrap_or_default();
    let mut read = Vec::new();
    for text in tokens.into_iter().take(TOKENS_MAX) {
        let object = Object::parse(text).ok_or_else(|| malformed("an entry of `info.tokenLog` is not an object"))?;
        read.push(token(object, &mut snapshot.unknown));
    }
    snapshot.parts.insert(InventoryPart::Tokens, keyed(user, read));
    Ok(snapshot)
}

fn token(object: Object<'_>, unknown: &mut Unknown) -> Vec<InventoryValue> {
    let mut fields = Fields::new(object, "info.tokenLog", &TOKEN, unknown);
    vec![
        fields.text("title"),
        fields.list("scopes", None),
        fields.time("lastUsed"),
        fields.text("lastUsedIPAddress"),
        fields.time("expiresAt"),
    ]
}

/// Tokens have no id. A token's key is its title and its number among tokens of that title, sorted by expiry and scopes. So
/// neither the served order nor a later use changes the key.
fn keyed(user: &str, mut tokens: Vec<Vec<InventoryValue>>) -> Entries {
    tokens.sort_by(|a, b| (&a[0], &a[4], &a[1], &a[2]).cmp(&(&b[0], &b[4], &b[1], &b[2])));
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let key = |values: Vec<InventoryValue>| {
        let title = match &values[0] {
            InventoryValue::Text(title) => title.clone(),
            _ => UNTITLED.to_owned(),
        };
        let number = numbers.entry(title.clone()).or_default();
        *number += 1;
        (vec![user.to_owned(), format!("{title} #{number}")], values)
    };
    tokens.into_iter().map(key).collect()
}

/// The objects of a list by their ids. `under` is the field that contains the list.
fn entries<'a>(text: &'a str, under: Option<&str>) -> Result<Vec<(String, Object<'a>)>, Malformed> {
    let listed = match under {
        Some(name) => Object::parse(text).and_then(|object| object.get(name)),
        None => Some(text),
    };
    let name = under.unwrap_or("saml/users");
    let items = listed.and_then(list).ok_or_else(|| Malformed(format!("the list `{name}` is missing")))?;
    let mut found = BTreeMap::new();
    for item in items {
        let object = Object::parse(item);
        let id = object.as_ref().and_then(|object| object.string("id")).filter(|id| is_usable_id(id));
        let id = id.ok_or_else(|| Malformed(format!("an entry of `{name}` has no valid id")))?.into_owned();
        if found.insert(id, object.unwrap_or_default()).is_some() {
            return Err(Malformed(format!("`{name}` contains an id twice")));
        }
    }
    Ok(found.into_iter().collect())
}
