//! A server with the documented interface over synthetic teams, for rehearsal and for tests. It also serves the
//! truth: every event that ever existed.
//!
//! It shares only the vocabulary with the client, so it can disagree with the client. It stores events as
//! sixteen-byte records in time order, and writes their JSON text for each answer.
//!
//! # What depends on the seed
//! A day's events are a function of seed, team and day alone (and of [`SandboxConfig::odd_events`]). Two sandboxes
//! with one seed agree byte for byte on every day that both have, whatever their `end`; a sandbox lacks connections
//! that began before its first day. With a given `end`, every answer is equal on every machine. The seed also
//! determines the tokens, which are worth nothing anywhere else.
//!
//! # What administration does
//! The sandbox serves every documented endpoint and keeps each change. `admin` holds the rules as pure functions;
//! `routes` holds the one table from which the router, the body checks and `GET /openapi.json` are made. Changes
//! appear in activity and billing under the names in `admin/events.rs`. One address is one person on every team: a
//! removal of 2-factor authentication affects the whole account, and an account outlives its removal from a team.
//! Some members join and leave on a schedule that the seed determines; a change of such a member holds until the
//! member next joins or leaves.
//!
//! # What the document leaves open, and the sandbox's choice
//! [`Choices`], `annals sandbox --choice name=value` and `PATCH /sandbox/choices` set the switches.
//!
//! | open point | choice | switch |
//! |---|---|---|
//! | default of `limit` | 100 | `default_limit` |
//! | default of `desc` on team histories | true | `default_desc` |
//! | which part of the last second a range includes | all of it (x.999 too) | `bounds` |
//! | how `desc` is written | `true`, `false` in any case, 1, 0 | |
//! | a limit over the maximum | refused, code `limit-too-large` | `limit_max`, `device_limit_max` |
//! | whether a page is smaller than the request's limit | no | `page_cap` |
//! | `hasMoreEvents`, `nextOffset` (omitted when nothing is left), order | honest, by time | `has_more`, `next_offset`, `order` |
//! | `limit=0`, unreadable numbers, wrong bodies | 400, codes `invalid-parameter`, `invalid-request` | `invalid_status` |
//! | `startTime` after `stopTime`; unknown `ids`; unknown parameters | empty list; no events; ignored | |
//! | a missing or wrong token | 401, code `unauthorized`, `WWW-Authenticate: Bearer` | `unauthorized_status` |
//! | a valid token without the right | 403, code `forbidden` | `forbidden_status` |
//! | status of the codes without one, and of a refused SCIM-managed group | 400 | `rule_status` |
//! | shape of an error body | `{"code", "detail"}` | `error_shape` |
//! | body of "OK" and "Created" | `{}`, because clients parse every body as JSON | `created_body` |
//! | a body that is not `application/json` | 415 | `require_content_type` |
//! | a body's field that the endpoint does not have | ignored | `refuse_unknown_fields` |
//! | null for an optional field | the same as a missing field | |
//! | a body without the endpoint's main field: `name`, `annotations`, `annotationKeys` | refused as an invalid body |
//! `invalid_status` |
//! | `name` filters with asterisks inside; `*`; an empty filter | the whole name, with its asterisks; every name; no name | |
//! | whether an admin without remote access counts as the admin that a team must keep | yes; but a request that turns an admin's remote access off must leave an admin with remote access, because the document names that as a case of `team-requires-admin` | `admin_needs_access` |
//! | how long an invite is valid | 30 days | `invite_days` |
//! | whether lists show expired invites and installers | no | `list_expired` |
//! | `singleUse` of an invite with `sendTo` | true unless the request says otherwise | |
//! | rate limits | none | `requests_per_minute` |
//! | the delay before the sandbox serves a change's events | none | `event_delay_ms` |
//! | unknown team, computer, user, group, path | 404, codes `team-not-found`, `device-not-found`, … | |
//! | unknown user, group or computer in a list | 404 and no change; in bulk requests one error for each | |
//! | shape of an error item in computer bulk responses | `deviceID`, `code`, `detail` | |
//! | `devices` and `users` in bulk responses | those that at least one computer or group accepted | |
//! | a path that is not UTF-8 | 400, code `invalid-request` | |
//! | another method | 405, code `method-not-allowed` | |
//! | order of events of the same moment | stable, by seed | |
//! | empty lists and texts inside objects, `sentTo` of a public invite too | omitted like fields without a value, except requested `annotations` | `empty_lists` |
//! | `lastUsedAt`, token times, `joinedOn` | seconds; `joinedOn` as `{"seconds": n}` | |
//! | `createdAt` of a team | `{"unixMilli": n}` | |
//! | `createdAt`, `expiresAt` of installers and invites | seconds | |
//! | members who join and leave, with `days_ahead` | three of each team, as the clock moves | |
//! | whether histories show events older than the plan's span (`--plan-days`) | yes | `enforce_plan_span` |
//! | limited team view | `id`, `name`, `avatarURL` | |
//! | what else a member who is no admin may read | everything | `members_read` |
//! | fields of `deleteSchedule`, `userDeviceMigrate`, `deviceConfigs`, `deviceConfigID` | in the document's style | |
//! | fields of `clientInfo` | `version`, and `osInfo` with `platform`, `version` and `hostname`, as real clients read them | |
//! | what happens at the end of a team's deletion schedule | nothing | |
//! | who counts as one person | everyone with the same address, on every team | |
//! | who shares an SSO connection | everyone who signs in with SSO on its owner or on a team that names that owner | |
//! | `tokenInfo` of actions outside the API | the person, if one is known | |
//! | undocumented event types and fields, missing fields | none in connection events; with `--odd-events` a few in a hundred, `peerID` in connection details among them. Activity has one undocumented type |
//! [`SandboxConfig::odd_events`] |
//! | limits of installers, groups, annotations, licensed users | 50, 100, 50, the people and five | `PATCH /sandbox/team/{team}/plan` |
//! | who owns the three fixed tokens | the team's first person; their rights never change | |
//! | fields of billing event types, and activity payloads | in the document's style | |
//!
//! # The sandbox's own requests
//! These requests stand under `/sandbox` and need the admin token; `GET /openapi.json` describes them too. Some do
//! what people do outside the API: `team/{team}/device/{device}/connect` (five connection events, ending now),
//! `…/device/{device}/online`, `…/connection/{id}/close`, `…/install`, `…/join`, `…/mail`, `…/confirm`, `…/sso`,
//! `…/scim-group`, `…/config`, `…/plan`, `…/deletion`, `…/user/{user}/migration`, `…/user/{user}/token`. Others are
//! `clock`, `choices`, `faults` ([`FaultRule`]), `state` (the whole sandbox as one JSON file: [`Saved`]) and
//! `truth/{team}/{stream}` (every event that ever existed, one JSON object a line). Rate limits and fault rules never
//! affect these requests, so a test can always reset them.
//!
//! Every secret in team views and activity begins with [`SECRET_PREFIX`].

mod activity;
mod activity_record;
mod admin;
mod admin_requests;
mod answer;
mod billing;
mod choices;
mod config;
mod connections;
mod control_requests;
mod effects;
mod error;
mod fault;
mod fault_rules;
mod handle;
mod history;
mod issued;
mod json;
mod listener;
mod middleware;
mod names;
mod openapi;
mod overlay;
mod people;
mod person;
mod records;
mod roster;
mod routes;
mod saved;
mod seed;
mod server;
mod sessions;
mod snapshot;
mod stream_store;
mod team;
mod team_requests;
mod time;
mod tokens;
mod truth;
mod turnover;
mod view;
mod world;

pub use choices::{AdminAccess, Bounds, Choices, CreatedBody, ErrorShape, HasMore, NextOffset, Order, Rounding};
pub use config::{LIVE_DAYS, SandboxConfig};
pub use error::SandboxError;
pub use fault::{Fault, FaultHook, RequestInfo};
pub use fault_rules::{FaultRule, RuleFault};
pub use handle::{InsertedEvent, SandboxHandle};
pub use saved::{Saved, SavedError};
pub use seed::SECRET_PREFIX;
pub use server::{RunningSandbox, Sandbox};
pub use stream_store::Lateness;
pub use truth::TruthEvent;
