//! The documented service over synthetic teams, for rehearsal and for tests, with the truth of every event kept aside.
//!
//! It shares nothing with the reading side but the vocabulary, so that it can disagree with it. Events are kept as
//! sixteen-byte records in time order and become JSON text when they are served.
//!
//! # What is equal
//! A day's events are a function of seed, team and day alone (and of [`SandboxConfig::odd_events`]). Two sandboxes of one seed agree byte for byte on every
//! day that both have, whatever their `end`; a connection that began before the first day of one is missing there.
//! With `end` given, everything served is equal on every machine. Tokens are derived from the seed too, and are
//! worth nothing anywhere else.
//!
//! # What administration does
//! Every documented endpoint is served, and changes stay: `admin` holds the rules, pure and by table; `routes` the one
//! table that router, body checks and `GET /openapi.json` are made of. Changes appear in activity and billing under the
//! names that `admin/told.rs` lists. An address is one person, whatever teams they are on: 2-factor authentication goes from
//! the whole account, and an account outlives its removal from a team. People who come and go do so by seed; what administration did to one of them
//! holds until they next come or go.
//!
//! # What the document leaves open, and what is chosen here
//! Switches are set by [`Choices`], `annals sandbox --choice name=value`, or `PATCH /sandbox/choices`.
//!
//! | open | chosen | switch |
//! |---|---|---|
//! | default of `limit` | 100 | `default_limit` |
//! | default of `desc` on team histories | true | `default_desc` |
//! | which part of its last second a range includes | all of it (x.999 too) | `bounds` |
//! | how `desc` is written | `true`, `false` in any case, 1, 0 | |
//! | limit over the maximum | refused, code `limit-too-large` | `limit_max`, `device_limit_max` |
//! | whether a page is smaller than asked for | no | `page_cap` |
//! | `hasMoreEvents`, `nextOffset` (omitted when nothing is left), order | honest, by time | `has_more`, `next_offset`, `order` |
//! | `limit=0`, unreadable numbers, wrong bodies | 400, codes `invalid-parameter`, `invalid-request` | `invalid_status` |
//! | `startTime` after `stopTime`; unknown `ids`; unknown parameters | empty list; no events; passed over | |
//! | a missing or wrong token | 401, code `unauthorized`, `WWW-Authenticate: Bearer` | `unauthorized_status` |
//! | a right token that may not do this | 403, code `forbidden` | `forbidden_status` |
//! | status of the codes without one, and of a refused SCIM-managed group | 400 | `rule_status` |
//! | shape of an error body | `{"code", "detail"}` | `error_shape` |
//! | body of "OK" and "Created" | `{}`, for bodies are JSON and clients parse them | `created_body` |
//! | a body that is not `application/json` | 415 | `require_content_type` |
//! | a body's field that the endpoint does not have | passed over | `refuse_unknown_fields` |
//! | null for an optional field | as if left out | |
//! | a body without the field that its endpoint is about: `name`, `annotations`, `annotationKeys` | refused as a wrong body | `invalid_status` |
//! | `name` filters with asterisks elsewhere; `*`; an empty one | the whole name, asterisks too; every name; no name | |
//! | whether an admin without remote access is the admin that must stay | yes; but turning an admin's off must leave one who has it, for the document names that as a case of `team-requires-admin` | `admin_needs_access` |
//! | how long an invite is valid | 30 days | `invite_days` |
//! | whether what has expired is still listed | no | `list_expired` |
//! | `singleUse` of an invite with `sendTo` | true unless sent | |
//! | rate limits | none | `requests_per_minute` |
//! | how soon a change's events are served | at once | `event_delay_ms` |
//! | unknown team, computer, user, group, path | 404, codes `team-not-found`, `device-not-found`, … | |
//! | unknown user, group or computer in a list | 404 and nothing done; in bulk requests an error of each | |
//! | shape of an error item in computer bulk responses | `deviceID`, `code`, `detail` | |
//! | `devices` and `users` in bulk responses | those that at least one computer or group took | |
//! | a path that is not UTF-8 | 400, code `invalid-request` | |
//! | another method | 405, code `method-not-allowed` | |
//! | order of events of the same moment | stable, by seed | |
//! | empty lists and texts inside objects: `sentTo` of a public invite too | omitted as fields without value; `annotations` that were asked for are not | `empty_lists` |
//! | `lastUsedAt`, token times, `joinedOn` | seconds; `joinedOn` as `{"seconds": n}` | |
//! | `createdAt` of a team | `{"unixMilli": n}` | |
//! | `createdAt`, `expiresAt` of installers and invites | seconds | |
//! | who comes and goes, with `days_ahead` | as the clock moves; three people of each team | |
//! | whether events older than the plan's span (`--plan-days`) are served | yes | `enforce_plan_span` |
//! | limited team view | `id`, `name`, `avatarURL` | |
//! | what else members who are no admins may read | all that may be read | `members_read` |
//! | fields of `deleteSchedule`, `userDeviceMigrate`, `deviceConfigs`, `deviceConfigID` | in the document's style | |
//! | fields of `clientInfo` | `version`, and `osInfo` with `platform`, `version` and `hostname`, as real clients read them | |
//! | what comes at the end of a team's deletion schedule | nothing | |
//! | who one and the same person is | who has the same address, on every team | |
//! | who shares an SSO connection | all that sign in with SSO on its owner and on the teams that name that owner | |
//! | `tokenInfo` of what people do outside the API | the person, where one is known | |
//! | event types and fields beyond the document's, fields left out | none of connection events; `--odd-events`: a few of a hundred, as of a service that grows, `peerID` in connection details among them. Activity has one type of a future | [`SandboxConfig::odd_events`] |
//! | limits of installers, groups, annotations, licensed users | 50, 100, 50, the people and five | `PATCH /sandbox/team/{team}/plan` |
//! | whose the three standing tokens are | the team's first person; they keep what they may | |
//! | fields of billing event types, and activity payloads | in the document's style | |
//!
//! # The sandbox's own requests
//! For the admin token, under `/sandbox`; `GET /openapi.json` describes them too. What people do and the API does not:
//! `team/{team}/device/{device}/connect` (five connection events, ending now), `…/device/{device}/online`,
//! `…/connection/{id}/close`, `…/install`, `…/join`, `…/mail`, `…/confirm`, `…/sso`, `…/scim-group`, `…/config`, `…/plan`,
//! `…/deletion`, `…/user/{user}/migration`, `…/user/{user}/token`. And `clock`, `choices`, `faults` ([`FaultRule`]),
//! `state` (the whole sandbox as one JSON file: [`Saved`]), and `truth/{team}/{stream}`: every event that ever existed, one
//! JSON object a line. Rate limits and faults by rule spare these, so that what sets them stays in reach.
//!
//! Every secret in team views and activity begins with [`SECRET_PREFIX`].

mod activity;
mod admin;
mod answer;
mod billing;
mod cast;
mod choices;
mod config;
mod connections;
mod console;
mod desk;
mod directory;
mod effects;
mod error;
mod gate;
mod handle;
mod history;
mod json;
mod listener;
mod mishaps;
mod openapi;
mod overlay;
mod people;
mod routes;
mod saved;
mod seasons;
mod seed;
mod server;
mod sessions;
mod shelf;
mod team;
mod time;
mod tokens;
mod truth;
mod view;
mod words;
mod world;

pub use cast::SECRET_PREFIX;
pub use choices::{AdminAccess, Bounds, Choices, CreatedBody, ErrorShape, HasMore, NextOffset, Order, Rounding};
pub use config::{Fault, FaultHook, LIVE_DAYS, Lateness, RequestInfo, SandboxConfig};
pub use error::SandboxError;
pub use handle::{InsertedEvent, SandboxHandle};
pub use mishaps::{FaultRule, Mishap};
pub use saved::{Saved, SavedError};
pub use server::{RunningSandbox, Sandbox};
pub use truth::TruthEvent;
