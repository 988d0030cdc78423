//! The endpoints that are not history: teams, computers, people; and the sandbox's own one, the truth.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::model::{DeviceId, Stream};

use super::answer::{Refusal, json_value};
use super::team::{Member, Team};
use super::truth::Truth;
use super::views;
use super::world::{Role, World};

const TRUTH_CHUNK_EVENTS: usize = 2_000;

type Answer = Result<Response, Refusal>;

fn find_team<'a>(world: &'a World, id: &str) -> Result<&'a Arc<Team>, Refusal> {
    world.team(id).ok_or_else(|| Refusal::not_found("team"))
}

fn parameter(query: Option<String>, name: &str) -> Option<String> {
    let query = query.unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

pub(super) async fn teams(State(world): State<Arc<World>>) -> Answer {
    let ids: Value = world.teams.iter().map(|team| json!(team.cast.id.as_str())).collect();
    Ok(json_value(&ids))
}

pub(super) async fn team(
    State(world): State<Arc<World>>,
    Extension(role): Extension<Role>,
    Path(team): Path<String>,
) -> Answer {
    let team = find_team(&world, &team)?;
    Ok(json_value(&views::team(&world, team, role)))
}

pub(super) async fn computers(
    State(world): State<Arc<World>>,
    Path(team): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let team = find_team(&world, &team)?;
    let filter = parameter(query, "name");
    let is_asked = |&place: &u32| {
        filter.as_ref().is_none_or(|filter| name_matches(filter, &team.cast.computers[place as usize].name))
    };
    let found: Value = team.computers().filter(is_asked).map(|place| views::computer(team, place, &world)).collect();
    Ok(json_value(&json!({"devices": found})))
}

/// Ignores case. `text` is the whole name, `text*` its beginning, `*text*` any part of it.
fn name_matches(filter: &str, name: &str) -> bool {
    let (filter, name) = (filter.to_lowercase(), name.to_lowercase());
    match (filter.strip_prefix('*'), filter.strip_suffix('*')) {
        (Some(rest), Some(_)) => name.contains(rest.strip_suffix('*').unwrap_or(rest)),
        (None, Some(beginning)) => name.starts_with(beginning),
        _ => name == filter,
    }
}

pub(super) async fn computer(
    State(world): State<Arc<World>>,
    Path((team, computer)): Path<(String, String)>,
) -> Answer {
    let team = find_team(&world, &team)?;
    let place = team.computer(&DeviceId::from(computer.as_str())).ok_or_else(|| Refusal::not_found("computer"))?;
    Ok(json_value(&views::computer(team, place, &world)))
}

pub(super) async fn people(
    State(world): State<Arc<World>>,
    Path(team): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let team = find_team(&world, &team)?;
    let email = parameter(query, "email");
    let is_asked = |seen: &Member<'_>| email.as_ref().is_none_or(|email| seen.person.email.eq_ignore_ascii_case(email));
    let members = team.members(world.roster_at()).filter(is_asked);
    let found: Value = members.map(|seen| views::member(team, &seen, world.end)).collect();
    Ok(json_value(&json!({"users": found})))
}

pub(super) async fn sso_people(
    State(world): State<Arc<World>>,
    Extension(role): Extension<Role>,
    Path(team): Path<String>,
) -> Answer {
    let team = find_team(&world, &team)?;
    if role == Role::Member {
        return Err(Refusal::forbidden("the list of SSO users is for admins who sign in with SSO"));
    }
    let found: Value = team
        .members(world.roster_at())
        .filter(|seen| seen.person.sso)
        .map(|seen| views::sso_person(seen.person))
        .collect();
    Ok(json_value(&found))
}

pub(super) async fn authentication(
    State(world): State<Arc<World>>,
    Path((team, user)): Path<(String, String)>,
) -> Answer {
    let team = find_team(&world, &team)?;
    let member = team.members(world.roster_at()).find(|seen| seen.person.id == user);
    let member = member.ok_or_else(|| Refusal::not_found("user"))?;
    Ok(json_value(&views::authentication(member.person, world.end)))
}

/// Every event that ever existed, one JSON object a line; for the admin token only.
pub(super) async fn truth(
    State(world): State<Arc<World>>,
    Extension(role): Extension<Role>,
    Path((team, stream)): Path<(String, String)>,
) -> Answer {
    if role != Role::Admin {
        return Err(Refusal::forbidden("the truth is for the admin token"));
    }
    let team = Arc::clone(find_team(&world, &team)?);
    let stream: Stream = stream.parse().map_err(|_| Refusal::not_found("stream"))?;
    let mut events = Truth::new(team, stream, world.clock.now());
    let chunks = std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        events.by_ref().take(TRUTH_CHUNK_EVENTS).for_each(|event| event.push_line(&mut chunk));
        (!chunk.is_empty()).then(|| Ok::<_, std::convert::Infallible>(Bytes::from(chunk)))
    });
    let mut response = Response::new(Body::from_stream(futures::stream::iter(chunks)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_filter_has_three_forms() {
        for (filter, name, matches) in [
            ("edit-001", "EDIT-001", true),
            ("edit", "EDIT-001", false),
            ("edit*", "EDIT-001", true),
            ("dit*", "EDIT-001", false),
            ("*DIT-0*", "EDIT-001", true),
            ("*xyz*", "EDIT-001", false),
            ("*001", "EDIT-001", false),
            ("*", "EDIT-001", true),
            ("**", "EDIT-001", true),
            ("", "EDIT-001", false),
            ("東京*", "東京-受付", true),
            ("CHLOÉ", "chloé", true),
        ] {
            assert_eq!(name_matches(filter, name), matches, "{filter:?} on {name:?}");
        }
    }
}
