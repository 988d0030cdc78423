//! A team's initial state, which the seed determines, and the members who join and leave on a schedule.

use serde_json::{Value, json};

use crate::model::Instant;
use crate::sandbox::person::Person;
use crate::sandbox::roster::{Computer, Invite as SeededInvite, Roster};
use crate::sandbox::seed::{SeededRandom, mix2};

use super::state::{Annotation, Device, Group, Installer, Invite, MemberRole, Plan, TeamState, User};
use super::views::{self, object};

/// The group and the computer of the members who join and leave.
const CONTRACTORS: usize = 3;
const THEIR_COMPUTER: usize = 1;
const INVITE_SECONDS: i64 = 400 * 86_400;
/// More than any team needs, and few enough that a test can reach the limit.
const INSTALLERS_MAX: usize = 50;
const GROUPS_MAX: usize = 100;
const ANNOTATIONS_MAX: usize = 50;

/// The team's initial state, without the members who join and leave. Recent times count back from `end`.
pub fn initial_state(roster: &Roster, created_at: i64, end: Instant) -> TeamState {
    let mut state = TeamState {
        id: roster.id.as_str().to_owned(),
        name: roster.name.clone(),
        created_at,
        seed: roster.seed,
        plan: Plan {
            licensed_users: roster.people.len() + 5,
            installers: INSTALLERS_MAX,
            groups: GROUPS_MAX,
            annotations: ANNOTATIONS_MAX,
            enterprise: true,
            sso: true,
            sso_owner: None,
        },
        users: roster.people.iter().map(|person| user(person, created_at, end)).collect(),
        devices: (0u32..).zip(&roster.computers).map(|(place, seen)| device(roster, place, seen, end)).collect(),
        groups: roster.groups.iter().map(|seen| group(roster, seen)).collect(),
        installers: roster.installers.iter().map(|seen| installer(seen, created_at)).collect(),
        invites: roster.user_invites.iter().map(|seen| invite(seen, created_at)).collect(),
        configs: Vec::new(),
        sso_outsiders: Vec::new(),
        departed: Vec::new(),
        delete_schedule: None,
        migrations: Vec::new(),
        mail: Vec::new(),
        sessions: Vec::new(),
        seasons: vec![None; roster.temporary.len()],
        drawn: 0,
    };
    let forgotten = roster.temporary.iter().filter(|seen| seen.keeps_a_grant()).map(|seen| seen.person.id.clone());
    if let Some(device) = state.devices.get_mut(THEIR_COMPUTER) {
        device.users.extend(forgotten);
    }
    state
}

/// Lets members join and leave up to `at`. A change that a request made to such a member holds until the member's
/// next join or removal.
pub fn apply_turnover(roster: &Roster, state: &mut TeamState, at: Instant, end: Instant) {
    for (number, seen) in roster.temporary.iter().enumerate() {
        let now = seen.joined_at(at).map(|joined| {
            let role = MemberRole::named(seen.role_at(at)).unwrap_or(MemberRole::User);
            (joined.seconds(), role)
        });
        let before = state.seasons.get(number).copied().flatten();
        if before == now {
            continue;
        }
        if state.seasons.len() <= number {
            state.seasons.resize(number + 1, None);
        }
        state.seasons[number] = now;
        match (before, now) {
            (Some((since, _)), Some((joined, role))) if since == joined => {
                if let Ok(user) = state.user_mut(&seen.person.id) {
                    user.role = role;
                }
            }
            (_, Some((joined, role))) => join(roster, state, number, User { role, ..user(&seen.person, joined, end) }),
            (_, None) => leave(roster, state, number),
        }
    }
}

fn join(roster: &Roster, state: &mut TeamState, number: usize, user: User) {
    leave(roster, state, number);
    state.sso_outsiders.retain(|outsider| outsider.id != user.id);
    state.departed.retain(|outsider| outsider.id != user.id);
    let id = user.id.clone();
    // In the order of their numbers, not of their arrival.
    let is_later = |held: &str| roster.temporary[number + 1..].iter().any(|later| later.person.id == held);
    let place = |list: &[String]| list.iter().position(|held| is_later(held)).unwrap_or(list.len());
    let at = state.users.iter().position(|held| is_later(&held.id)).unwrap_or(state.users.len());
    state.users.insert(at, user);
    let group = roster.groups.get(CONTRACTORS).map(|group| group.id.as_str()).unwrap_or_default();
    if let Ok(group) = state.group_mut(group) {
        group.users.insert(place(&group.users), id.clone());
    }
    let device = roster.computers.get(THEIR_COMPUTER).map(|seen| seen.id.as_str()).unwrap_or_default();
    if let Ok(device) = state.device_mut(device)
        && !device.users.contains(&id)
    {
        device.users.insert(place(&device.users), id);
    }
}

/// One of these members keeps access to a computer after the removal.
fn leave(roster: &Roster, state: &mut TeamState, number: usize) {
    let seen = &roster.temporary[number];
    let id = &seen.person.id;
    let device = roster.computers.get(THEIR_COMPUTER).map(|seen| seen.id.as_str()).unwrap_or_default();
    let stays = seen.keeps_a_grant() && state.device(device).is_ok_and(|device| device.users.contains(id));
    let place = state.device(device).ok().and_then(|device| device.users.iter().position(|held| held == id));
    state.forget_user(id);
    if let (true, Some(place), Ok(device)) = (stays, place, state.device_mut(device)) {
        device.users.insert(place, id.clone());
    }
}

fn user(seen: &Person, joined_on: i64, end: Instant) -> User {
    User {
        id: seen.id.clone(),
        email: seen.email.clone(),
        first_name: seen.first_name.clone(),
        last_name: seen.last_name.clone(),
        avatar_url: has_avatar(seen).then(|| format!("https://avatars.example/{}.png", seen.id)),
        role: MemberRole::named(seen.role).unwrap_or(MemberRole::User),
        remote_access: seen.remote_access,
        totp: seen.totp,
        providers: vec![if seen.sso { "saml" } else { "password" }.to_owned()],
        annotations: Vec::new(),
        joined_on,
        last_used_at: last_used(seen, end),
        scim: seen.scim,
        token_log: tokens(seen, end),
    }
}

/// Most people used the service recently; some have not for months, and some never did.
fn last_used(seen: &Person, end: Instant) -> Option<i64> {
    let mut random = SeededRandom::new(u64::from(seen.home_address));
    let age = random.span(0, 500_000);
    match random.below(10) {
        0 => None,
        1 => Some(end.seconds() - age - 120 * 86_400),
        _ => Some(end.seconds() - age),
    }
}

/// A random choice that uses no random number of the stream.
fn has_avatar(seen: &Person) -> bool {
    seen.home_address.is_multiple_of(3)
}

/// A dashboard session, and for some people an API token: one that never expires, is expired, or is unused for long.
fn tokens(seen: &Person, end: Instant) -> Value {
    const DAY: i64 = 86_400;
    let mut random = SeededRandom::new(u64::from(seen.home_address) + 1);
    let used = end.seconds() - random.span(0, 90_000);
    let address = std::net::Ipv4Addr::from(seen.home_address).to_string();
    let token = |title: &str, scope: &str, used: Option<i64>, expires: Option<i64>| {
        object(vec![
            ("title", json!(title)),
            ("scopes", json!([scope])),
            ("lastUsed", json!(used)),
            ("lastUsedIPAddress", used.map_or(Value::Null, |_| json!(address))),
            ("expiresAt", json!(expires)),
        ])
    };
    let mut all = vec![token("dashboard session", "team:read", Some(used), Some(used + 90 * DAY))];
    match random.below(8) {
        0 => all.push(token("nightly export", "team:read", Some(used), None)),
        1 => all.push(token("old script", "team:write", Some(used - 300 * DAY), None)),
        2 => all.push(token("trial", "team:read", Some(used - 40 * DAY), Some(used - 10 * DAY))),
        3 => all.push(token("never used", "team:write", None, Some(used + 14 * DAY))),
        _ => {}
    }
    json!(all)
}

fn device(roster: &Roster, place: u32, seen: &Computer, end: Instant) -> Device {
    let tags = || Annotation { key: "tag".to_owned(), value: "studio,floor-2".to_owned() };
    Device {
        id: seen.id.as_str().to_owned(),
        name: seen.name.clone(),
        last_online_at: last_online(roster, place, end),
        users: seen.users.iter().map(|&user| roster.people[user].id.clone()).collect(),
        groups: seen.groups.iter().map(|&group| roster.groups[group].id.clone()).collect(),
        annotations: place.is_multiple_of(4).then(tags).into_iter().collect(),
        client_info: views::client_info(seen.system, &seen.name),
        config: None,
    }
}

/// Most computers were online recently; some were not for months, and some never were.
fn last_online(roster: &Roster, place: u32, end: Instant) -> Option<i64> {
    let mut random = SeededRandom::new(mix2(roster.seed, u64::from(place)));
    let idle_seconds = random.span(0, 400_000);
    match place % 20 {
        13 => None,
        17 => Some(end.seconds() - idle_seconds - 200 * 86_400),
        _ => Some(end.seconds() - idle_seconds),
    }
}

fn group(roster: &Roster, seen: &crate::sandbox::roster::Group) -> Group {
    Group {
        id: seen.id.clone(),
        name: seen.name.clone(),
        users: seen.users.iter().map(|&user| roster.people[user].id.clone()).collect(),
        scim: seen.scim,
        annotations: Vec::new(),
        config: None,
    }
}

fn installer(seen: &SeededInvite, created_at: i64) -> Installer {
    Installer {
        id: seen.id.clone(),
        name: seen.name.clone(),
        secret: seen.secret.clone(),
        users: Vec::new(),
        groups: Vec::new(),
        requires_authentication: false,
        single_use: false,
        created_at,
        expires_at: None,
        config: None,
    }
}

fn invite(seen: &SeededInvite, created_at: i64) -> Invite {
    Invite {
        secret: seen.secret.clone(),
        name: seen.name.clone(),
        sent_to: seen.sent_to.clone(),
        single_use: seen.sent_to.is_some(),
        groups: Vec::new(),
        devices: Vec::new(),
        created_at,
        expires_at: Some(created_at + INVITE_SECONDS),
    }
}
