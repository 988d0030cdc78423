//! The documented service over synthetic teams, for rehearsal and for tests, with the truth of every event kept aside.
//!
//! It shares nothing with the reading side but the vocabulary, so that it can disagree with it. Events are kept as
//! sixteen-byte records in time order and become JSON text when they are served.
//!
//! # What is equal
//! A day's events are a function of seed, team and day alone. Two sandboxes of one seed agree byte for byte on every
//! day that both have, whatever their `end`; a connection that began before the first day of one is missing there.
//! With `end` given, everything served is equal on every machine. Tokens are derived from the seed too, and are
//! worth nothing anywhere else.
//!
//! # What the document leaves open, and what is chosen here
//! | open | chosen | changed by |
//! |---|---|---|
//! | default of `limit` | 100 | [`Choices::default_limit`] |
//! | default of `desc` on team histories | true | [`Choices::default_desc`] |
//! | which part of its last second a range includes | all of it (x.999 too) | [`Choices::bounds`] |
//! | limit over the maximum | 400, code `limit-too-large` | [`Choices::limit_max`], [`Choices::device_limit_max`] |
//! | `limit=0`, unreadable numbers and booleans | 400, code `invalid-parameter` | |
//! | `startTime` after `stopTime`; unknown `ids`; unknown parameters | empty list; no events; passed over | |
//! | a missing or wrong token | 401, code `unauthorized`, `WWW-Authenticate: Bearer` | |
//! | a right token that may not do this | 403, code `forbidden` | |
//! | unknown team, computer, user, path | 404, codes `team-not-found`, `device-not-found`, `user-not-found`, `not-found` | |
//! | a path that is not UTF-8 | 400, code `invalid-request` | |
//! | a method other than GET | 405, code `method-not-allowed` | |
//! | shape of an error body | `{"code", "detail"}` | |
//! | `nextOffset` when nothing is left | omitted | [`Choices::next_offset`] |
//! | order of events of the same moment | stable, by seed | |
//! | rate limits | none | a [`FaultHook`] |
//! | empty lists inside objects | omitted as fields without value | |
//! | `lastUsedAt`, token times, `joinedOn` | seconds; `joinedOn` as `{"seconds": n}` | |
//! | who comes and goes, with `days_ahead` | as the clock moves; three people of each team | |
//! | `createdAt` of a team | `{"unixMilli": n}` | |
//! | `createdAt`, `expiresAt` of installers and invites | seconds | |
//! | whether events older than the plan's span are served | yes | [`SandboxConfig::enforce_plan_span`] |
//! | limited team view | `id`, `name`, `avatarURL` | |
//! | fields of billing event types, and activity payloads | in the document's style | |
//!
//! Every secret in team views and activity begins with [`SECRET_PREFIX`]. `GET /sandbox/truth/{team}/{stream}` is the
//! sandbox's own: every event that ever existed, one JSON object a line, for the admin token.

mod activity;
mod answer;
mod billing;
mod cast;
mod config;
mod connections;
mod directory;
mod error;
mod gate;
mod handle;
mod history;
mod json;
mod listener;
mod overlay;
mod seasons;
mod seed;
mod server;
mod sessions;
mod shelf;
mod team;
mod truth;
mod view;
mod views;
mod words;
mod world;

pub use cast::SECRET_PREFIX;
pub use config::{
    Bounds, Choices, Fault, FaultHook, HasMore, LIVE_DAYS, Lateness, NextOffset, Order, RequestInfo, Rounding,
    SandboxConfig,
};
pub use error::SandboxError;
pub use handle::{InsertedEvent, SandboxHandle};
pub use server::{RunningSandbox, Sandbox};
pub use truth::TruthEvent;
